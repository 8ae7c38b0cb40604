//! Compositional k-means: k singletons, and every composition of them is a centre too.
//!
//! ```text
//! SSD(m, c) = Σᵢ ‖xᵢ - m_{cᵢ}‖²,    m_η = g(m_{j} : j in η)
//! (a) cᵢ = argmin over η in 𝒦 of ‖xᵢ - m_η‖        (b) the singletons m_{1}..m_{k} descend, and all m_η with them
//! ```
//!
//! | the paper, algorithm 3 | here |
//! | --- | --- |
//! | 𝒳, n | `Source`, read in passes |
//! | k, 𝒦 and d | `k`, `Search::sets`, the pipeline's `degree` |
//! | m_{1}..m_{k} | `Run::singletons` |
//! | m_η = g({m_j}) | `Model::centres`, kept as `Run::centres` |
//! | c_i, step (a) | `Search::assign`; named once, at the end, by `Search::labels` |
//! | SSD | `Run::ssd`, from the counts and sums of every η (`Totals::inertia`) |
//! | ∂SSD/∂m_{j} | `Objective::gradient`, which needs these counts and sums only |
//! | ε, step (b) | `lbfgs::descend`, whose steps find their own length; ε is `lr` of `adam` |
//! | the random initialisation | `Starts::plusplus`, `Starts::random` |
//! | several initialisations | `Search::best_of`, `Swaps::improve` |
//!
//! Not in the paper: sets c_i that are known beforehand stay what they are in step (a) (`compflow_kernels::known`).
//!
//! | module | holds |
//! | --- | --- |
//! | `ckm` | the clusterer: parameters, and from a task to a clustering |
//! | `restarts` | the alternation of all restarts at once, and when one is given up |
//! | `pass` | what a batch of examples adds up to, wherever it is |
//! | `swaps` | newcomers that take the place of a singleton |
//! | `adam` | descent between two assignments as the authors do it; otherwise it is [`compflow_kernels::lbfgs`] |
//!
//! # Weaknesses
//!
//! - `k` is given, and nothing here says whether it is right: a `k` that is too large splits a singleton, and one that is too
//!   small gives some example sets to the wrong unions.
//! - SSD takes every set for a sphere of the same width and holds g for exact. Where sets are long in some directions, or
//!   g is only nearly right, `cgm` labels better, from the same start.
//! - Unions are free. Where they are rare, a lower SSD may explain one singleton as the union of two others, and split a
//!   fourth with the one that this leaves over; the likelihood of `cgm` tells the two apart.
//! - All 𝒦 are compared with, so degree 3 costs about k/3 times what degree 2 does.
//! - An outlier pulls with the square of its distance, and may be given a singleton for itself. Where tails are heavy and
//!   examples few, the lowest SSD may well be such a solution.
//! - Where there are no unions at all, a composition may lie nearer to an example than its own singleton does: ask for
//!   degree 1.
//! - If hardly any singleton occurs alone, what is seen are unions only, and wrong singletons may explain many of them: of
//!   planted sums and bilinear compositions of two of 6 or 8 without any singleton alone, none was found. One that is
//!   missing among others is (`swaps`).
//! - With `mean` as g, other singletons may compose to the same centres, so that only the SSD is determined.
//! - What swaps look at is the sample: a singleton of fewer than about one in `sample` examples is not found by them.
//!
//! # Testing
//!
//! Gradients are compared with central differences in f64 for every composer, assignment and descent with plain loops,
//! degree 1 with Lloyd's algorithm, the final SSD with that of a plain Adam, streams with matrices, restarts with and
//! without giving up, swaps with restarts alone, and weights with repeated rows. `docs/ckm.md` has measurements.

#![deny(unsafe_code)]

mod adam;
mod ckm;
mod params;
mod pass;
mod restarts;
mod swaps;
#[cfg(test)]
mod tests;

pub use ckm::Ckm;
pub use params::{Init, Optimizer, Params, Preset, Start};

compflow_api::export_library!();
