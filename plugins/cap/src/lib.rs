//! Compositional affinity propagation.
//!
//! | module | holds |
//! | --- | --- |
//! | `cap` | the clusterer: parameters, and the two ways to many examples |
//! | `run` | iterations until nobody chooses otherwise, and the search for a preference |
//! | `messages` | one iteration |
//! | `row` | the maxima that one example needs in it |
//! | `compositions` | which compositions there are, in the order they are read |
//! | `similarities` | how near examples and compositions are |
//! | `candidates` | who may become an exemplar |
//! | `solution` | from exemplars to a feasible clustering |
//! | `exchange` | other exemplars that serve better |
//! | `memory` | whether similarities are kept or computed anew |

#![deny(unsafe_code)]

mod candidates;
mod cap;
mod compositions;
mod exchange;
mod memory;
mod messages;
mod row;
mod run;
mod similarities;
mod solution;

pub use cap::{Cap, Extension, Params, Preset};
pub use compflow_kernels::preference::{PerExample, Preference, Target};

compflow_api::export_library!();
