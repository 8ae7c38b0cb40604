//! Composition functions as plain loops in f64.

use compflow_api::{Composer, Result, Services};

use super::examples;

/// A composition function of two vectors.
#[derive(Debug, Clone)]
pub enum Plain {
    /// The larger, element by element.
    Max,
    /// a + b.
    Sum,
    /// (a + b) / 2.
    Mean,
    /// W₁a + W₁b + W₂(a∘b) + β.
    Bilinear {
        /// W₁, p×p, row-major.
        linear: Vec<f64>,
        /// W₂, likewise.
        product: Vec<f64>,
        /// β.
        bias: Vec<f64>,
    },
}

impl Plain {
    /// A bilinear one with weights drawn from a seed.
    pub fn bilinear(dim: usize, seed: u64) -> Self {
        let draw = |len: usize, size: f64, seed: u64| -> Vec<f64> {
            examples::uniform(len, 1, seed).iter().map(|&value| f64::from(value) * size).collect()
        };
        let size = (1.5 / dim as f64).sqrt();
        Self::Bilinear {
            linear: draw(dim * dim, size, 3 * seed),
            product: draw(dim * dim, size, 3 * seed + 1),
            bias: draw(dim, 0.3, 3 * seed + 2),
        }
    }

    /// g(a, b).
    pub fn compose_pair(&self, a: &[f64], b: &[f64]) -> Vec<f64> {
        let pairs = a.iter().zip(b);
        match self {
            Self::Max => pairs.map(|(a, b)| a.max(*b)).collect(),
            Self::Sum => pairs.map(|(a, b)| a + b).collect(),
            Self::Mean => pairs.map(|(a, b)| (a + b) / 2.0).collect(),
            Self::Bilinear { linear, product, bias } => {
                let rows = linear.chunks_exact(a.len()).zip(product.chunks_exact(a.len())).zip(bias);
                rows.map(|((linear, product), bias)| {
                    (0..a.len()).map(|at| linear[at] * (a[at] + b[at]) + product[at] * a[at] * b[at]).sum::<f64>()
                        + bias
                })
                .collect()
            }
        }
    }

    /// `grad` pulled back to a and b.
    pub fn pull_back_pair(&self, a: &[f64], b: &[f64], grad: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let both = |to_a: &dyn Fn(usize) -> f64, to_b: &dyn Fn(usize) -> f64| {
            ((0..a.len()).map(to_a).collect(), (0..a.len()).map(to_b).collect())
        };
        match self {
            Self::Max => both(&|at| if a[at] >= b[at] { grad[at] } else { 0.0 }, &|at| {
                if a[at] >= b[at] { 0.0 } else { grad[at] }
            }),
            Self::Sum => both(&|at| grad[at], &|at| grad[at]),
            Self::Mean => both(&|at| grad[at] / 2.0, &|at| grad[at] / 2.0),
            Self::Bilinear { linear, product, .. } => {
                let dim = a.len();
                let column = |weights: &[f64], at: usize| -> f64 {
                    (0..dim).map(|row| weights[row * dim + at] * grad[row]).sum()
                };
                both(&|at| column(linear, at) + column(product, at) * b[at], &|at| {
                    column(linear, at) + column(product, at) * a[at]
                })
            }
        }
    }

    /// The composition of a set of rows, as [`compflow_api::compose_sets`] says; of [`Mean`](Self::Mean) the mean.
    pub fn compose_set(&self, rows: &[f64], dim: usize, set: &[u32]) -> Vec<f64> {
        let row = |at: u32| &rows[at as usize * dim..][..dim];
        let mean = |vectors: &[Vec<f64>]| -> Vec<f64> {
            let sum = |axis: usize| vectors.iter().map(|vector| vector[axis]).sum::<f64>();
            (0..dim).map(|axis| sum(axis) / vectors.len() as f64).collect()
        };
        match (self, set) {
            (_, [one]) => row(*one).to_vec(),
            (Self::Mean, _) => mean(&set.iter().map(|&member| row(member).to_vec()).collect::<Vec<_>>()),
            (_, [a, b]) => self.compose_pair(row(*a), row(*b)),
            _ => {
                let term = |at: usize| {
                    let others = [&set[..at], &set[at + 1..]].concat();
                    self.compose_pair(&self.compose_set(rows, dim, &others), row(set[at]))
                };
                mean(&(0..set.len()).map(term).collect::<Vec<_>>())
            }
        }
    }
}

fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&value| f64::from(value)).collect()
}

fn narrow(to: &mut [f32], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from as f32);
}

impl Composer for Plain {
    fn compose(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        for ((left, right), out) in
            left.chunks_exact(dim).zip(right.chunks_exact(dim)).zip(out.chunks_exact_mut(dim))
        {
            narrow(out, &self.compose_pair(&wide(left), &wide(right)));
        }
        Ok(())
    }

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
        let inputs = left.chunks_exact(dim).zip(right.chunks_exact(dim)).zip(grad.chunks_exact(dim));
        let outputs = grad_left.chunks_exact_mut(dim).zip(grad_right.chunks_exact_mut(dim));
        for (((left, right), grad), (grad_left, grad_right)) in inputs.zip(outputs) {
            let (to_left, to_right) = self.pull_back_pair(&wide(left), &wide(right), &wide(grad));
            narrow(grad_left, &to_left);
            narrow(grad_right, &to_right);
        }
        Ok(())
    }

    fn is_associative(&self) -> bool {
        matches!(self, Self::Max | Self::Sum)
    }
}
