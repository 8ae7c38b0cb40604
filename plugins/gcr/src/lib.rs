//! Greedy compositional reassignment (GCR): another clusterer finds the groups, and those that lie where the composition
//! of others is predicted are called that composition.
//!
//! With m_j the mean of the examples of preliminary cluster j, g the composition function and compositions η of two to d
//! clusters, the paper's listing (`method = "greedy"`) is
//!
//! ```text
//! b_j = argmin over η that do not contain j of ‖m_j - g(η)‖          d_j = ‖m_j - g(b_j)‖
//! for j in ascending order of d_j:
//!     stop if d_j ≥ τ, or j is a member of an earlier b, or b_j has a member that became a composition
//!     examples of j now belong to b_j
//! ```
//!
//! By default the singletons S are searched for that explain the other clusters best (`search`):
//!
//! ```text
//! F(S) = |S|·τ² + Σ over j ∉ S of min over η ⊆ S with ‖m_j - g(η)‖ < τ of ‖m_j - g(η)‖²
//! ```
//!
//! where η may also be one cluster, of which j is then a part that the base has split off.
//!
//! | the paper | here |
//! | --- | --- |
//! | m_{j}, k | `Preliminary::means`, `Preliminary::k` |
//! | c_i | `Preliminary::labels` |
//! | 𝒦 and d | `Compositions::sets`, `degree` |
//! | m_η = g({m_j}) | `Task::compose_sets`, in `Compositions::measure` |
//! | b_j, d_j | `Near::set`, `Near::distance`, from `Compositions::nearest` |
//! | τ | `Limit::threshold`, the parameter `threshold` |
//! | 𝒮, 𝒯 | `is_member` and `chosen` of `greedy::reassign` |
//! | c'_i | `Reassigned::result` |
//! | Ẽ and its map, in the appendix | `chosen` of `exhaustive::Search` |
//!
//! The listing has d_j = ‖m_{j} - m_{c_j}‖, which is a slip for b_j, and lets b_j range over all of 𝒦, where j would explain
//! itself.
//!
//! | file | holds |
//! | --- | --- |
//! | `gcr` | the component |
//! | `params` | its parameters |
//! | `base` | making the clusterer that finds the groups |
//! | `known` | what groups become of which some examples have known sets |
//! | `preliminary` | these groups and their means |
//! | `compositions` | b_j and d_j |
//! | `threshold` | τ, given or found among the d_j |
//! | `null` | whether clusters without unions would come as near |
//! | `parts` | which clusters are one to the null |
//! | `search` | the singletons that explain the others best |
//! | `greedy` | the listing |
//! | `exhaustive` | the best of all reassignments |
//! | `maps` | how many reassignments these are |
//! | `reassigned` | what was decided, as a result |
//!
//! What the base needs (the truth, gradients, further columns) is needed; the columns, numbers and found parameters that it
//! returns are kept. A threshold that was found is told.
//!
//! Distances are taken in f64 by differences, in a kernel of its own: `compflow_kernels::assign` finds the nearest of
//! all centres in f32 by products, and here every cluster has other centres that it may not have, the clusters are few,
//! and a union that fits exactly must come out as 0.
//!
//! # Weaknesses
//!
//! - It is as good as its base: a group that the base mixed from two, or never found, stays so. Only splits are mended.
//! - A singleton that never occurs alone has no group, so its unions have no explanation but a wrong one.
//! - Means of few examples are noisy, and composing them adds their noise up, more so the larger the union.
//! - The search ends where no single step helps, which need not be the best; over the shipped sets another start changed
//!   nothing.
//! - `threshold = "auto"` asks whether there are unions at all, not which: where there are some, one of the clusters that
//!   are none may still be taken for one. The null errs in about 6 % of the cases for means from a normal distribution, also if
//!   the base split some; and with few clusters (below eight or so) or in two or three dimensions it may not see unions that
//!   are there.
//! - A given threshold is a distance in one space with one embedding; nothing carries it over to another.
//!
//! Measurements are in `docs/gcr.md`.
//!
//! # Testing
//!
//! Distances are compared with a plain loop, the search with all of its steps, the exhaustive search with one that tries
//! everything, the number of reassignments with a list of them and with the paper's. That no cluster is both a
//! composition and a member of one is a property test; that numbers of rows and clusters change nothing, and that
//! clusters without unions get none but as rarely as the test promises, are tested on many seeds. Bases and composers
//! cross the boundary in all tests of the whole; that they may come from another library is tested by the host
//! (`nesting.rs`).

#![deny(unsafe_code)]

mod base;
mod compositions;
mod exhaustive;
mod gcr;
mod greedy;
mod known;
mod maps;
mod null;
mod params;
mod parts;
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
