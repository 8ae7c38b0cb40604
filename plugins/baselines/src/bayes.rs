//! The variational mixture of a Dirichlet process: how many of `k` components are used is found from the data.
//!
//! Component weights come from a truncated stick-breaking process with concentration γ₀, means and precisions from
//! Gauss-Wishart distributions with β₀, m₀, ν₀ and W₀⁻¹, here γ₀ = 1/k, β₀ = 1, m₀ = mean of the examples, ν₀ = p and
//! W₀⁻¹ = their covariance. From sizes nⱼ, means x̄ⱼ and covariances Sⱼ of the components follow
//!
//! ```text
//! aⱼ = 1 + nⱼ            bⱼ = γ₀ + Σ_{l>j} nₗ
//! βⱼ = β₀ + nⱼ           mⱼ = (β₀m₀ + nⱼx̄ⱼ) / βⱼ          νⱼ = ν₀ + nⱼ
//! Cⱼ = (W₀⁻¹ + nⱼSⱼ + nⱼβ₀/βⱼ (x̄ⱼ - m₀)(x̄ⱼ - m₀)ᵀ) / νⱼ
//! ```
//!
//! and from those E[log πⱼ] by digamma functions and the bound on the evidence, up to constants, by log-gamma functions.
//! A tied covariance takes the mean of all components' terms.
//!
//! Bishop, "Pattern Recognition and Machine Learning", Springer 2006, chapter 10.2; Blei and Jordan, "Variational
//! inference for Dirichlet process mixtures", Bayesian Analysis 1(1), 2006, doi:10.1214/06-BA104. What is left out of
//! the bound is as in scikit-learn.

use std::f64::consts::LN_2;

use libm::{lgamma, log};

use crate::moments::{Covariance, Moments};

/// β₀.
const MEAN_PRECISION: f64 = 1.0;

/// What is believed before the data are seen. The prior mean is that of the examples, which is 0 in tiles.
pub(crate) struct Prior {
    covariance: Vec<f64>,
    kind: Covariance,
    dim: usize,
}

/// What is believed afterwards.
pub(crate) struct Posterior {
    /// a and b of every component's part of the stick.
    sticks: Vec<(f64, f64)>,
    mean_precisions: Vec<f64>,
    /// νⱼ; all the same if the covariance is tied.
    degrees: Vec<f64>,
    /// mⱼ, row-major.
    pub(crate) means: Vec<f64>,
    /// Cⱼ, of the same kind as the moments' covariances.
    pub(crate) covariances: Vec<f64>,
    dim: usize,
}

impl Prior {
    /// With the covariance of all examples.
    pub(crate) fn new(covariance: Vec<f64>, kind: Covariance, dim: usize) -> Self {
        Self { covariance, kind, dim }
    }

    pub(crate) fn update(&self, moments: &Moments) -> Posterior {
        let (dim, k) = (self.dim, moments.sizes.len());
        let sizes = &moments.sizes;
        let mut behind: f64 = 0.0;
        let mut sticks: Vec<(f64, f64)> = Vec::with_capacity(k);
        for size in sizes.iter().rev() {
            sticks.push((1.0 + size, 1.0 / k as f64 + behind));
            behind += size;
        }
        sticks.reverse();
        let mean_precisions: Vec<f64> = sizes.iter().map(|size| MEAN_PRECISION + size).collect();
        let components = moments.means.chunks_exact(dim).zip(sizes.iter().zip(&mean_precisions));
        let means = components
            .clone()
            .flat_map(|(mean, (size, precision))| mean.iter().map(move |mean| size * mean / precision))
            .collect();

        let mut degrees: Vec<f64> = sizes.iter().map(|size| dim as f64 + size).collect();
        let shrink = |size: f64, precision: f64| size * MEAN_PRECISION / precision;
        let covariances = match self.kind {
            Covariance::Full => {
                let matrices = moments.covariances.chunks_exact(dim * dim).zip(components).zip(&degrees);
                let entry = |at: usize, own: f64, mean: &[f64], size: f64, precision: f64| {
                    self.covariance[at] + size * own + shrink(size, precision) * mean[at / dim] * mean[at % dim]
                };
                matrices
                    .flat_map(|((own, (mean, (&size, &precision))), degrees)| {
                        own.iter()
                            .enumerate()
                            .map(move |(at, &own)| entry(at, own, mean, size, precision) / degrees)
                    })
                    .collect()
            }
            Covariance::Tied => {
                let each = sizes.iter().sum::<f64>() / k as f64;
                degrees.fill(dim as f64 + each);
                let mut matrix: Vec<f64> = self
                    .covariance
                    .iter()
                    .zip(&moments.covariances)
                    .map(|(prior, own)| prior + own * each)
                    .collect();
                for (mean, (&size, &precision)) in components {
                    for (at, value) in matrix.iter_mut().enumerate() {
                        *value += shrink(size, precision) / k as f64 * mean[at / dim] * mean[at % dim];
                    }
                }
                matrix.iter_mut().for_each(|value| *value /= degrees[0]);
                matrix
            }
            Covariance::Diag => {
                let rows = moments.covariances.chunks_exact(dim).zip(components).zip(&degrees);
                rows.flat_map(|((own, (mean, (&size, &precision))), degrees)| {
                    self.covariance.iter().zip(own).zip(mean).map(move |((prior, own), mean)| {
                        (prior + size * own + shrink(size, precision) * mean * mean) / degrees
                    })
                })
                .collect()
            }
            Covariance::Spherical => {
                let numbers = moments.covariances.iter().zip(components).zip(&degrees);
                numbers
                    .map(|((own, (mean, (&size, &precision))), degrees)| {
                        let square = mean.iter().map(|mean| mean * mean).sum::<f64>() / dim as f64;
                        (self.covariance[0] + size * own + shrink(size, precision) * square) / degrees
                    })
                    .collect()
            }
        };
        Posterior { sticks, mean_precisions, degrees, means, covariances, dim }
    }
}

impl Posterior {
    /// What is added to the logarithms of the components' densities at their means, of which `log_determinants` is the
    /// part log|Cⱼ|^(-1/2): E[log πⱼ], and what the uncertainty of mean and precision takes away.
    pub(crate) fn offsets(&self, log_determinants: &[f64]) -> Vec<f64> {
        let p = self.dim as f64;
        let mut before = 0.0;
        let mut offsets = Vec::with_capacity(self.sticks.len());
        for (at, &(a, b)) in self.sticks.iter().enumerate() {
            let (degrees, precision) = (self.degrees[at], self.mean_precisions[at]);
            let log_weight = digamma(a) - digamma(a + b) + before;
            before += digamma(b) - digamma(a + b);
            let log_lambda =
                p * LN_2 + (0..self.dim).map(|axis| digamma(0.5 * (degrees - axis as f64))).sum::<f64>();
            offsets.push(
                log_weight + log_determinants[at] - 0.5 * p * log(degrees) + 0.5 * (log_lambda - p / precision),
            );
        }
        offsets
    }

    /// The bound on the evidence without the entropy of the responsibilities.
    pub(crate) fn bound(&self, log_determinants: &[f64]) -> f64 {
        let p = self.dim as f64;
        let mut bound = 0.0;
        for (at, &(a, b)) in self.sticks.iter().enumerate() {
            let degrees = self.degrees[at];
            let log_determinant = log_determinants[at] - 0.5 * p * log(degrees);
            bound += degrees * log_determinant
                + degrees * p * 0.5 * LN_2
                + (0..self.dim).map(|axis| lgamma(0.5 * (degrees - axis as f64))).sum::<f64>();
            bound += lgamma(a) + lgamma(b) - lgamma(a + b);
            bound -= 0.5 * p * log(self.mean_precisions[at]);
        }
        bound
    }
}
/// The derivative of the logarithm of the gamma function, above 0: by its recurrence up to where the series of its asymptote
/// is exact in double precision.
fn digamma(x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let terms = [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
    let series = terms.iter().rev().fold(0.0, |series, term| (series + term) * square);
    sum + log(x) - 0.5 / x - series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digamma_is_what_it_is_known_to_be() {
        // ψ(1) = -γ, ψ(1/2) = -γ - 2 ln 2, and ψ(x + 1) = ψ(x) + 1/x.
        let euler = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + euler).abs() < 1e-14);
        assert!((digamma(0.5) + euler + 2.0 * LN_2).abs() < 1e-14);
        for x in [0.1, 1.7, 9.9, 10.0, 123.4] {
            assert!((digamma(x + 1.0) - digamma(x) - 1.0 / x).abs() < 1e-13 / x, "{x}");
        }
    }
}
