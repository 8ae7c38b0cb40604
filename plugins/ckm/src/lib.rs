//! Compositional k-means: k singletons, and every composition of them is a centre too.
//!
//! | module | holds |
//! | --- | --- |
//! | `ckm` | the clusterer: parameters, and from a task to a clustering |
//! | `restarts` | the alternation of all restarts at once, and when one is given up |
//! | `swaps` | newcomers that take the place of a singleton |
//! | `adam` | descent between two assignments as the authors do it; otherwise it is [`compflow_kernels::lbfgs`] |
//!
//! # Testing
//!
//! Gradients are compared with central differences in f64 for every composer, assignment and descent with plain loops,
//! degree 1 with Lloyd's algorithm, the final SSD with that of a plain Adam, streams with matrices, and restarts with
//! and without giving up. `docs/ckm.md` has measurements.

#![deny(unsafe_code)]

mod adam;
mod ckm;
mod params;
mod restarts;
mod swaps;
#[cfg(test)]
mod tests;

pub use ckm::Ckm;
pub use params::{ClustererParams, Init, Optimizer, Params, Preset, Start};

compflow_api::export_library!();
