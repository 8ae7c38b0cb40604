//! Σ, the covariance of all sets, from the scatter of the examples around their centres.
//!
//! ```text
//! Σ = (A + ν s I) / (n + ν)
//! ```
//!
//! maximises -½ (n log|Σ| + tr Σ⁻¹A) - ½ ν (log|Σ| + s tr Σ⁻¹): the likelihood, and a prior that knows of ν further examples
//! of a sphere of variance s. Both are settled once, from the first scatter: s is its mean variance, and ν/(n + ν) the
//! shrinkage ρ that brings the estimate nearest to the truth on average if examples are normal,
//!
//! ```text
//! ρ = ((1 - 2/p) tr S² + tr² S) / ((n + 1 - 2/p)(tr S² - tr² S / p)),  at most 1,  S = A/n
//! ```
//!
//! the oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero, "Shrinkage algorithms for MMSE covariance estimation",
//! IEEE Transactions on Signal Processing 58, 2010, doi:10.1109/TSP.2010.2053029, equation 23. It is near 1 for p ≫ n and
//! vanishes with n.

use compflow_kernels::cholesky::{gram, inverse_factor};
use compflow_kernels::pairs::dot;
use serde::{Deserialize, Serialize};

use crate::params::{Kind, Shrinkage};

/// The strongest prior: with more, examples would not count.
const MOST: f64 = 0.999;
/// No variance falls below this part of the mean variance of all data.
const FLOOR: f64 = 1e-6;

/// What is known of Σ before any example is seen.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Prior {
    kind: Kind,
    /// ν.
    pub(crate) strength: f64,
    /// s.
    pub(crate) variance: f64,
    /// Whether the examples vary so little that s is held up.
    pub(crate) is_floored: bool,
}

/// Σ as distances and densities need it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Covariance {
    /// F with FᵀF = Σ⁻¹, lower triangular, row-major.
    pub(crate) factor: Vec<f64>,
    /// Σ⁻¹, row-major.
    pub(crate) precision: Vec<f64>,
    /// log|Σ|.
    pub(crate) log_det: f64,
}

impl Prior {
    /// From the scatter A of `n` examples; `spread` is the mean variance of all data.
    pub(crate) fn new(kind: Kind, shrinkage: Shrinkage, scatter: &[f64], n: f64, dim: usize, spread: f64) -> Self {
        let (mean, floor) =
            (trace(scatter, dim) / (n * dim as f64), (FLOOR * spread).max(f64::MIN_POSITIVE.sqrt()));
        let variance = mean.max(floor);
        let part = match shrinkage {
            Shrinkage::Value(part) => part,
            Shrinkage::Auto(_) => oracle_approximating(&shaped(kind, scatter, dim), n, dim),
        };
        let part = part.min(MOST);
        // One example at least, so that Σ is never singular; and no more where there is no shape to shrink.
        let shapeless = kind == Kind::Spherical || dim == 1;
        let strength = if shapeless { 1.0 } else { (n * part / (1.0 - part)).max(1.0) };
        Self { kind, strength, variance, is_floored: mean <= floor }
    }

    /// ν/(n + ν).
    pub(crate) fn shrinkage(&self, n: f64) -> f64 {
        self.strength / (n + self.strength)
    }

    /// Σ from the scatter of `n` examples.
    pub(crate) fn covariance(&self, scatter: &[f64], n: f64, dim: usize) -> Covariance {
        let mut sigma = shaped(self.kind, scatter, dim);
        for (at, value) in sigma.iter_mut().enumerate() {
            let sphere = if at % (dim + 1) == 0 { self.strength * self.variance } else { 0.0 };
            *value = (*value + sphere) / (n + self.strength);
        }
        if self.kind != Kind::Tied {
            return Covariance::diagonal(sigma.iter().step_by(dim + 1).map(|variance| variance.sqrt().recip()));
        }
        let factor = inverse_factor(&sigma, dim).unwrap_or_else(|| {
            // Only rounding gets here: the sphere of the same size.
            let size = (trace(&sigma, dim) / dim as f64).max(f64::MIN_POSITIVE.sqrt());
            diagonal((0..dim).map(|_| size.sqrt().recip()))
        });
        Covariance::new(factor, dim)
    }

    /// What the prior adds to the bound: -½ ν (log|Σ/s| + s tr Σ⁻¹ - p), 0 at the sphere itself.
    pub(crate) fn log_density(&self, covariance: &Covariance, dim: usize) -> f64 {
        let sphere = self.variance * trace(&covariance.precision, dim);
        let log_det = covariance.log_det - dim as f64 * libm::log(self.variance);
        -0.5 * self.strength * (log_det + sphere - dim as f64)
    }

    /// How many numbers Σ has.
    pub(crate) fn parameters(&self, dim: usize) -> f64 {
        match self.kind {
            Kind::Tied => (dim * (dim + 1) / 2) as f64,
            Kind::Diagonal => dim as f64,
            Kind::Spherical => 1.0,
        }
    }
}

impl Covariance {
    fn new(factor: Vec<f64>, dim: usize) -> Self {
        let precision = gram(&factor, dim);
        Self { log_det: log_det(&factor, dim), factor, precision }
    }

    /// Of the inverse standard deviations of all dimensions, which vary on their own: no work of p³.
    fn diagonal(inverse: impl ExactSizeIterator<Item = f64> + Clone) -> Self {
        let (dim, factor) = (inverse.len(), diagonal(inverse.clone()));
        Self { log_det: log_det(&factor, dim), factor, precision: diagonal(inverse.map(|value| value * value)) }
    }

    /// The unit sphere.
    pub(crate) fn sphere(dim: usize) -> Self {
        Self::diagonal((0..dim).map(|_| 1.0))
    }

    /// κΣ with κ such that all data, whose scatter this is, are as wide: tr (κΣ)⁻¹T = n p. At least Σ.
    pub(crate) fn as_wide_as(&self, scatter: &[f64], n: f64, dim: usize) -> Self {
        let factor = (self.traced(scatter) / (n * dim as f64)).max(1.0).sqrt();
        Self::new(self.factor.iter().map(|value| value / factor).collect(), dim)
    }

    /// Σ⁻¹r.
    pub(crate) fn measured<'a>(&'a self, rest: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        self.precision.chunks_exact(rest.len()).map(move |row| dot(row, rest))
    }

    /// rᵀΣ⁻¹r.
    pub(crate) fn squared(&self, rest: &[f64]) -> f64 {
        self.measured(rest).zip(rest).map(|(a, b)| a * b).sum()
    }

    /// tr Σ⁻¹A.
    pub(crate) fn traced(&self, scatter: &[f64]) -> f64 {
        dot(&self.precision, scatter)
    }
}

/// A matrix with these numbers on its diagonal, and no others.
fn diagonal(values: impl ExactSizeIterator<Item = f64>) -> Vec<f64> {
    let dim = values.len();
    let mut matrix = vec![0.0; dim * dim];
    matrix.iter_mut().step_by(dim + 1).zip(values).for_each(|(place, value)| *place = value);
    matrix
}

/// log|Σ| by the diagonal of its factor.
fn log_det(factor: &[f64], dim: usize) -> f64 {
    -2.0 * factor.iter().step_by(dim + 1).map(|pivot| libm::log(*pivot)).sum::<f64>()
}

pub(crate) fn trace(matrix: &[f64], dim: usize) -> f64 {
    matrix.iter().step_by(dim + 1).sum()
}

/// What of a scatter the shape keeps.
fn shaped(kind: Kind, scatter: &[f64], dim: usize) -> Vec<f64> {
    let mean = trace(scatter, dim) / dim as f64;
    let diagonal = |at: usize| at.is_multiple_of(dim + 1);
    let each = scatter.iter().enumerate();
    match kind {
        Kind::Tied => scatter.to_vec(),
        Kind::Diagonal => each.map(|(at, value)| if diagonal(at) { *value } else { 0.0 }).collect(),
        Kind::Spherical => each.map(|(at, _)| if diagonal(at) { mean } else { 0.0 }).collect(),
    }
}

/// ρ, as above.
fn oracle_approximating(scatter: &[f64], n: f64, dim: usize) -> f64 {
    let p = dim as f64;
    let (sum, squares) = (trace(scatter, dim) / n, dot(scatter, scatter) / (n * n));
    let apart = (n + 1.0 - 2.0 / p) * (squares - sum * sum / p);
    let share = ((1.0 - 2.0 / p) * squares + sum * sum) / apart;
    if apart > 0.0 && share.is_finite() { share.clamp(0.0, 1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Auto;

    const AUTO: Shrinkage = Shrinkage::Auto(Auto::Auto);

    #[test]
    fn it_is_what_maximises_likelihood_and_prior() {
        let (scatter, n) = (vec![8.0, 3.0, 3.0, 5.0], 10.0);
        for kind in [Kind::Tied, Kind::Diagonal, Kind::Spherical] {
            let prior = Prior::new(kind, Shrinkage::Value(0.2), &scatter, n, 2, 1.0);
            let value = |covariance: &Covariance| {
                -0.5 * (n * covariance.log_det + covariance.traced(&scatter)) + prior.log_density(covariance, 2)
            };
            let found = prior.covariance(&scatter, n, 2);
            let best = value(&found);
            for (at, by) in (0..3).flat_map(|at| [(at, 0.97), (at, 1.03)]) {
                let mut factor = found.factor.clone();
                match (kind, at) {
                    (Kind::Tied, 0) => factor[2] += by - 1.0,
                    (Kind::Tied | Kind::Diagonal, _) => factor[3 * (at % 2)] *= by,
                    (Kind::Spherical, _) => factor.iter_mut().for_each(|value| *value *= by),
                }
                assert!(value(&Covariance::new(factor, 2)) < best, "{kind:?}");
            }
        }
    }

    #[test]
    fn shrinkage_vanishes_with_examples_and_carries_without() {
        let dim = 40;
        let scatter = |n: f64| -> Vec<f64> {
            let each = |at: usize| if at.is_multiple_of(dim + 1) { n * (1.0 + (at % 7) as f64) } else { 0.0 };
            (0..dim * dim).map(each).collect()
        };
        let part = |n: f64| Prior::new(Kind::Tied, AUTO, &scatter(n), n, dim, 1.0).shrinkage(n);
        assert!(
            part(10.0) > 0.8 && part(1e3) < 0.2 && part(1e6) < 1e-3,
            "{} {} {}",
            part(10.0),
            part(1e3),
            part(1e6)
        );
    }

    #[test]
    fn all_data_are_as_wide_as_the_component_of_outliers() {
        let scatter = [50.0, 2.0, 2.0, 30.0];
        let covariance = Prior::new(Kind::Tied, Shrinkage::Value(0.1), &[4.0, 1.0, 1.0, 2.0], 10.0, 2, 1.0)
            .covariance(&[4.0, 1.0, 1.0, 2.0], 10.0, 2);
        let wide = covariance.as_wide_as(&scatter, 10.0, 2);
        assert!((wide.traced(&scatter) - 20.0).abs() < 1e-9);
        assert!(covariance.as_wide_as(&[0.0; 4], 10.0, 2).log_det == covariance.log_det);
    }

    #[test]
    fn nothing_is_singular() {
        for scatter in [vec![0.0; 4], vec![1.0, 1.0, 1.0, 1.0], vec![1e-300, 0.0, 0.0, 0.0]] {
            for spread in [0.0, 1.0] {
                let prior = Prior::new(Kind::Tied, Shrinkage::Value(0.0), &scatter, 2.0, 2, spread);
                let found = prior.covariance(&scatter, 2.0, 2);
                assert!(found.log_det.is_finite() && found.precision.iter().all(|value| value.is_finite()));
            }
        }
    }
}
