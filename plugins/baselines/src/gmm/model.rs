//! From the moments of examples to the components of a mixture.

use std::f64::consts::TAU;

use super::Variant;
use crate::bayes::Prior;
use crate::gaussians::{Factors, Gaussians, Triangle};
use crate::moments::{Covariance, Estimator, Moments, add_to_diagonal};
use compflow_kernels::cholesky::inverse_factor;

/// What `reg_covar` = 0 is raised to first if a covariance is singular.
const FIRST_RAISE: f64 = 1e-6;

/// Turns moments into components.
pub(super) struct Model {
    /// Only the variant `bayes` has one.
    prior: Option<Prior>,
    covariance: Covariance,
    reg_covar: f64,
    dim: usize,
    examples: f64,
    /// What had to be added to covariances so that they are not singular.
    pub(super) raised: f64,
    /// The part of the bound that follows from the last components, if there is a prior.
    pub(super) bound: f64,
}

impl Model {
    pub(super) fn new(variant: Variant, estimator: &Estimator<'_>) -> Self {
        let (covariance, dim) = (estimator.covariance, estimator.tiles.dim());
        Self {
            prior: (variant == Variant::Bayes).then(|| Prior::new(estimator.overall(), covariance, dim)),
            covariance,
            reg_covar: estimator.reg_covar,
            dim,
            examples: estimator.tiles.total(),
            raised: 0.0,
            bound: 0.0,
        }
    }

    pub(super) fn maximise(&mut self, moments: &Moments) -> Gaussians {
        let k = moments.sizes.len();
        let Some(posterior) = self.prior.as_ref().map(|prior| prior.update(moments)) else {
            let (factors, log_determinants) = self.factors(moments.covariances.clone(), k);
            let offsets = log_determinants.iter().zip(&moments.sizes);
            let offsets = offsets.map(|(log, size)| log + libm::log(size / self.examples)).collect();
            return Gaussians { means: moments.means.clone(), factors, offsets: self.normalise(offsets) };
        };
        let (factors, log_determinants) = self.factors(posterior.covariances.clone(), k);
        self.bound = posterior.bound(&log_determinants);
        let offsets = self.normalise(posterior.offsets(&log_determinants));
        Gaussians { means: posterior.means, factors, offsets }
    }

    /// What makes densities integrate to 1.
    fn normalise(&self, mut offsets: Vec<f64>) -> Vec<f64> {
        offsets.iter_mut().for_each(|offset| *offset -= 0.5 * self.dim as f64 * libm::log(TAU));
        offsets
    }

    /// The factors of covariances, and log|C|^(-1/2) for each of `k` components. What one iteration had to add to the
    /// diagonals, the next ones add from the start: otherwise the objective would go up and down.
    fn factors(&mut self, covariances: Vec<f64>, k: usize) -> (Factors, Vec<f64>) {
        loop {
            let mut covariances = covariances.clone();
            if self.raised > 0.0 {
                add_to_diagonal(&mut covariances, self.covariance, self.dim, self.raised - self.reg_covar);
            }
            if let Some(found) = self.try_factors(&covariances, k) {
                return found;
            }
            let enough = if self.reg_covar > 0.0 { 10.0 * self.reg_covar } else { FIRST_RAISE };
            self.raised = enough.max(10.0 * self.raised);
        }
    }

    fn try_factors(&self, covariances: &[f64], k: usize) -> Option<(Factors, Vec<f64>)> {
        let dim = self.dim;
        match self.covariance {
            Covariance::Full | Covariance::Tied => {
                let (mut triangles, mut logs) = (Vec::new(), Vec::new());
                for covariance in covariances.chunks_exact(dim * dim) {
                    let factor = inverse_factor(covariance, dim)?;
                    logs.push(factor.iter().step_by(dim + 1).map(|value| libm::log(*value)).sum());
                    triangles.push(Triangle::new(&factor, dim));
                }
                logs.resize(k, logs[0]);
                Some((Factors::Matrices(triangles), logs))
            }
            Covariance::Diag | Covariance::Spherical => {
                let usable = |value: &f64| *value > 0.0 && value.is_finite() && value.sqrt().recip().is_finite();
                if !covariances.iter().all(usable) {
                    return None;
                }
                let repeat = k * dim / covariances.len();
                let diagonals: Vec<f64> =
                    covariances.iter().flat_map(|value| vec![value.sqrt().recip(); repeat]).collect();
                let logs = diagonals
                    .chunks_exact(dim)
                    .map(|row| row.iter().map(|value| libm::log(*value)).sum())
                    .collect();
                Some((Factors::Diagonals(diagonals), logs))
            }
        }
    }
}
