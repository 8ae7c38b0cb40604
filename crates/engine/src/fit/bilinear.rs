//! A fitted g: W₁(a + b) + W₂(a∘b) + β, as the component `bilinear` computes it from the file that is written.

use compflow_api::{Composer, Result, Services};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, s};

/// A composition function that is not in a library yet.
#[derive(Debug, Clone)]
pub(super) struct Bilinear {
    /// [W₁ | W₂], p×2p.
    pub(super) weights: Array2<f32>,
    pub(super) bias: Array1<f32>,
}

impl Bilinear {
    /// c·(a + b).
    pub(super) fn scaled_sum(c: f64, dim: usize) -> Self {
        let mut weights = Array2::zeros((dim, 2 * dim));
        weights.slice_mut(s![.., ..dim]).diag_mut().fill(c as f32);
        Self { weights, bias: Array1::zeros(dim) }
    }

    /// The length of the vectors that it composes.
    pub(super) fn p(&self) -> usize {
        self.bias.len()
    }
}

impl Composer for Bilinear {
    fn dim(&self) -> Option<usize> {
        Some(self.p())
    }

    fn compose(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        let rows = left.len() / dim;
        let mut features = Array2::zeros((rows, 2 * dim));
        for ((mut features, left), right) in
            features.outer_iter_mut().zip(left.chunks_exact(dim)).zip(right.chunks_exact(dim))
        {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                features[at] = left + right;
                features[dim + at] = left * right;
            }
        }
        let mut out = ArrayViewMut2::from_shape((rows, dim), out)?;
        out.assign(&self.bias);
        let weights: ArrayView2<'_, f32> = self.weights.view();
        general_mat_mul(1.0, &features, &weights.t(), 1.0, &mut out);
        Ok(())
    }
}
