//! `bilinear`: the learned composition function of compositional embeddings.
//!
//! g(a, b) = lin₁(a) + lin₁(b) + lin₂(a∘b) with linᵢ(x) = Wᵢx + βᵢ, so β₁ enters twice. It is symmetric, but not
//! associative: the composition of three depends on their order. Both maps are done by one matrix product,
//! [a+b | a∘b]·[W₁ | W₂]ᵀ + 2β₁ + β₂, at 4p² operations per pair of vectors of length p.
//!
//! Li, Mozer and Whitehill, "Compositional embeddings for multi-label one-shot learning", WACV 2021,
//! doi:10.48550/arXiv.2002.04193.

use std::path::Path;

use compflow_api::{Component, Composer, Error, Flags, Result, Services, register};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, s};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::weights::Weights;

/// Pairs multiplied at a time, so that what a product needs stays in the cache whatever the caller's batch.
const BATCH: usize = 512;

/// A learned composition: g(a, b) = lin₁(a) + lin₁(b) + lin₂(a∘b), where linᵢ(x) = Wᵢx + βᵢ.
///
/// The weights come from a safetensors file with the tensors `linear1.weight` and `linear2.weight` (each p×p, in
/// PyTorch's layout: one row per output) and, if they were learned, `linear1.bias` and `linear2.bias` (each p).
/// It composes embeddings of length p only. g takes and returns embeddings that are not normalised.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The safetensors file with the weights, relative to the pipeline file.
    pub weights: String,
}

/// The composer `bilinear`.
#[derive(Debug)]
pub struct Bilinear {
    /// [W₁ | W₂], p×2p.
    weights: Array2<f32>,
    /// 2β₁ + β₂.
    bias: Array1<f32>,
}
register!(composer Bilinear);

impl Component for Bilinear {
    const NAME: &'static str = "bilinear";
    const SUMMARY: &'static str = "W₁a + W₁b + W₂(a∘b) with learned weights";
    const FLAGS: Flags = Flags::HAS_GRADIENTS;
    type Params = Params;

    fn new(params: Params, services: &Services<'_>) -> Result<Self> {
        read(&params.weights, services).map_err(|error| match error {
            Error::Cancelled => error,
            failed => Error::parameter("weights", format!("cannot be used: {failed}")),
        })
    }
}

fn read(path: &str, services: &Services<'_>) -> Result<Bilinear> {
    let (path, content) = services.content(path)?;
    Bilinear::from_safetensors(&content, &path)
}

impl Bilinear {
    /// From the content of the file at `path`.
    pub(crate) fn from_safetensors(content: &[u8], path: &Path) -> Result<Self> {
        let tensors = Weights::new(content, path)?;
        let (linear1, p) = tensors.square("linear1.weight")?;
        let linear2 = tensors.shaped("linear2.weight", &[p, p])?;
        let bias1 = tensors.shaped_or_zeros("linear1.bias", &[p])?;
        let bias2 = tensors.shaped_or_zeros("linear2.bias", &[p])?;
        let mut weights = Array2::zeros((p, 2 * p));
        weights.slice_mut(s![.., ..p]).assign(&ArrayView2::from_shape((p, p), &linear1)?);
        weights.slice_mut(s![.., p..]).assign(&ArrayView2::from_shape((p, p), &linear2)?);
        let bias = bias1.iter().zip(&bias2).map(|(bias1, bias2)| 2.0 * bias1 + bias2).collect();
        Ok(Self { weights, bias })
    }

    /// The length of the embeddings it is for.
    fn p(&self) -> usize {
        self.bias.len()
    }

    fn require_dim(&self, dim: usize) -> Result<()> {
        if dim == self.p() {
            return Ok(());
        }
        let p = self.p();
        Err(Error::data(format!("the composer's weights are for embeddings of length {p}, found {dim}")))
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
        self.require_dim(dim)?;
        let batch = BATCH * dim;
        let mut features = Array2::zeros((BATCH.min(left.len() / dim), 2 * dim));
        for ((left, right), out) in left.chunks(batch).zip(right.chunks(batch)).zip(out.chunks_mut(batch)) {
            let rows = left.len() / dim;
            let left = ArrayView2::from_shape((rows, dim), left)?;
            let right = ArrayView2::from_shape((rows, dim), right)?;
            let mut out = ArrayViewMut2::from_shape((rows, dim), out)?;
            let mut features = features.slice_mut(s![..rows, ..]);
            let (sum, product) = features.view_mut().split_at(Axis(1), dim);
            ndarray::azip!((sum in sum, product in product, &left in left, &right in right) {
                *sum = left + right;
                *product = left * right;
            });
            out.assign(&self.bias);
            general_mat_mul(1.0, &features, &self.weights.t(), 1.0, &mut out);
        }
        Ok(())
    }

    /// With u = gradᵀW₁ and v = gradᵀW₂: u + v∘b to the left, u + v∘a to the right.
    fn vjp(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        grad: &[f32],
        grad_left: &mut [f32],
        grad_right: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        self.require_dim(dim)?;
        let batch = BATCH * dim;
        let mut pulled = Array2::zeros((BATCH.min(left.len() / dim), 2 * dim));
        let inputs = left.chunks(batch).zip(right.chunks(batch)).zip(grad.chunks(batch));
        let outputs = grad_left.chunks_mut(batch).zip(grad_right.chunks_mut(batch));
        for (((left, right), grad), (grad_left, grad_right)) in inputs.zip(outputs) {
            let rows = left.len() / dim;
            let mut pulled = pulled.slice_mut(s![..rows, ..]);
            general_mat_mul(1.0, &ArrayView2::from_shape((rows, dim), grad)?, &self.weights, 0.0, &mut pulled);
            for (row, pulled) in pulled.outer_iter().enumerate() {
                for element in 0..dim {
                    let (at, u, v) = (row * dim + element, pulled[element], pulled[dim + element]);
                    grad_left[at] = u + v * right[at];
                    grad_right[at] = u + v * left[at];
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
