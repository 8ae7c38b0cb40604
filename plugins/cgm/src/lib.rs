//! The compositional Gaussian mixture.
//!
//! Compositional k-means is a mixture of equal spheres without any doubt about g. Saying so, and then relaxing it, gives a
//! model with shapes, residuals and frequencies:
//!
//! ```text
//! c_i ~ π                                over the sets of at most d singletons, and "none of them"
//! u_c = g(m_c) + e_c,  e_c ~ N(0, τ²Σ)   for unions: g is nearly right;  e_c = 0 for singletons
//! x_i ~ N(u_c, Σ)                        Σ shared by all sets;  N(x̄, κΣ₁) for none of them
//! ```
//!
//! In a space that normalises, x and g(m_c) are the normalised vectors. Σ₁ is the Σ of the first round, and κ such that all
//! data are as wide.
//!
//! # Derivation
//!
//! Let r_ic be the probability with which the example i counts for the set c (0 or 1 if assignments are hard),
//! N_c = Σ_i r_ic, x̄_c = Σ_i r_ic x_i / N_c and W = Σ_ic r_ic (x_i - x̄_c)(x_i - x̄_c)ᵀ. The expected log-likelihood of all x
//! given e is quadratic in every e_c, so these can be integrated out, and what remains depends on the data only through
//! N, x̄ and W:
//!
//! ```text
//! Q = Σ_c N_c log π_c - Σ_ic r_ic log r_ic                                           mixture.rs, bound
//!     - ½ n log|2πΣ| - ½ tr Σ⁻¹A - ½ p Σ_{c union} log(1 + N_c τ²)
//! A = W + Σ_c w_c (x̄_c - g_c)(x̄_c - g_c)ᵀ                                            mixture.rs, around
//! w_c = N_c / (1 + N_c τ²) for unions, N_c for singletons                             residual.rs, pull
//! ```
//!
//! Q and what priors add are raised by turns, and never fall:
//!
//! ```text
//! r_ic ∝ π_c N(x_i; u_c, Σ) exp(-½ p τ²/(1 + N_c τ²)), or 1 for the largest           statistics.rs, densities.rs
//! u_c  = g_c + N_cτ²/(1 + N_cτ²) (x̄_c - g_c)                                          residual.rs, part
//! Σ    = (A + ν s I) / (n + ν)                                                        covariance.rs
//! τ²   = argmax of the terms of unions and a prior that doubts residuals              residual.rs, estimate
//! m    = argmin Σ_c w_c ‖g(m_c) - x̄_c‖²_Σ, by gradients through g                     mixture.rs, descend
//! π    = the share of all sets of a size, equal among these                           mixture.rs, weigh
//! ```
//!
//! With spheres, τ = 0, equal π and hard assignments this is compositional k-means. Because W = Σ x xᵀ - Σ_c N_c x̄_c x̄_cᵀ and
//! the first term is the same in all rounds, a round costs one assignment, as there.
//!
//! | here | in the formulas |
//! | --- | --- |
//! | `Mixture::{singletons, composed, centres}` | m, g, u |
//! | `Mixture::{covariance, tau2, log_weights}` | Σ, τ², log π |
//! | `Mixture::slack` | ½ p τ²/(1 + N τ²) |
//! | `Statistics::{counts, sums, entropy}` | N, N x̄, -Σ r log r |
//! | `Setting::{scatter, examples}` | Σ x xᵀ, n |
//! | `Prior::{strength, variance}` | ν, s |
//!
//! | module | holds |
//! | --- | --- |
//! | `cgm` | the clusterer: from a task to a clustering |
//! | `params` | its parameters |
//! | `statistics` | what examples add up to under a mixture |
//! | `densities` | log-densities |
//! | `ending` | the last pass: labels, and how sure they are |
//! | `mixture` | the mixture, and how it is fitted |
//! | `covariance`, `residual` | its parts |
//!
//! # Weaknesses
//!
//! - All sets have one shape. Where unions are much wider than singletons, examples between them are labelled too gladly
//!   as singletons; a scale for every size was tried, helped on one domain and hurt on the other.
//! - It improves on the singletons it begins with and does not look for others: where `ckm` misses one in every start, so does
//!   `cgm`.
//! - Soft assignments need clusters that are normal: where they are not, the likeliest mixture is not the best labelling,
//!   however it is found (it is the same from the true labels). So hard ones are the default.
//! - The likelihood compares mixtures of the same data and composer. It prefers too many singletons where clusters are not
//!   normal; do not choose `k` by it alone.
//! - The covariance takes p² numbers and p³ operations a round: for p in the thousands, reduce dimensions first, or take diagonal ones.
//! - `log_likelihood` is that of the examples at the estimated centres, less what these centres' uncertainty costs; `bic`
//!   makes the same estimate of how many numbers there are. Both are for comparison on the same data.
//!
//! # Testing
//!
//! The bound, statistics and posteriors are compared with a twin of plain loops in f64, gradients in any metric with central
//! differences (in `compflow_kernels`), every update with its neighbours, streams with matrices, weights with repeated
//! rows, and the constrained mixture with `ckm`. That the bound does not fall is asserted in every debug build and for whole
//! runs in the tests. `docs/cgm.md` has measurements.

#![deny(unsafe_code)]

mod cgm;
mod covariance;
mod densities;
mod ending;
mod mixture;
mod params;
mod residual;
mod statistics;
#[cfg(test)]
mod tests;

pub use cgm::Cgm;
pub use params::{Assignment, Auto, Kind, Params, Residual, Shrinkage, Weights};

compflow_api::export_library!();
