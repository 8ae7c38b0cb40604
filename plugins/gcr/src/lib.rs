//! Greedy compositional reassignment (GCR): another clusterer finds the groups, and those that lie where the composition
//! of others is predicted are called that composition.
//!
//! With m_j the mean of the examples of preliminary cluster j, g the composition function and compositions η of two to d
//! clusters:
//!
//! ```text
//! b_j = argmin over η that do not contain j of ‖m_j - g(η)‖          d_j = ‖m_j - g(b_j)‖
//! for j in ascending order of d_j:
//!     stop if d_j ≥ τ, or j is a member of an earlier b, or b_j has a member that became a composition
//!     examples of j now belong to b_j
//! ```
//!
//! | file | holds |
//! | --- | --- |
//! | `gcr` | the component and its parameters |
//! | `base` | making the clusterer that finds the groups |
//! | `preliminary` | these groups and their means |
//! | `compositions` | b_j and d_j |
//! | `threshold` | τ, given or found among the d_j |
//! | `greedy` | the loop above |
//! | `exhaustive` | the best of all reassignments instead |
//! | `maps` | how many reassignments these are |
//!
//! What the base needs (the truth, gradients, further columns) is needed; the columns, numbers and found parameters that it
//! returns are kept. A threshold that was found is told.
//!
//! Measurements on the shipped data are in `docs/gcr.md`.
//!
//! # Testing
//!
//! Distances are compared with a plain loop, the exhaustive search with one that tries everything, the number of
//! reassignments with a list of them and with the paper's. That no cluster is both a composition and a member of one is
//! a property test. Bases and composers cross the boundary in all tests of the whole; that they may come from another
//! library is tested by the host (`nesting.rs`).

#![deny(unsafe_code)]

mod base;
mod compositions;
mod exhaustive;
mod gcr;
mod greedy;
mod maps;
mod null;
mod params;
mod preliminary;
mod reassigned;
mod search;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod threshold;

pub use base::Base;
pub use gcr::Gcr;
pub use greedy::OnConflict;
pub use params::{Method, Params, Preset};
pub use threshold::{Auto, Threshold};

compflow_api::export_library!();
