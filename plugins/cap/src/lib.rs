//! Compositional affinity propagation.
//!
//! | module | holds |
//! | --- | --- |
//! | `cap` | the clusterer: parameters, and the two ways to many examples |
//! | `run` | iterations until nobody chooses otherwise, and the search for a preference |
//! | `messages` | one iteration |
//! | `row` | the maxima that one example needs in it |
//! | `compositions` | which compositions there are, in the order they are read |
//! | `similarities`, `products` | how near examples and compositions are |
//! | `approach`, `candidates` | who may become an exemplar |
//! | `solution` | from exemplars to a feasible clustering |
//! | `exchange` | what another exemplar, one less or one more gains |
//! | `climb` | exemplars changed until nothing is better, or there are as many as wanted |
//! | `order` | examples sorted, so that nothing depends on their rows |
//! | `memory` | whether similarities are kept or computed anew |

#![deny(unsafe_code)]

mod approach;
mod candidates;
mod cap;
mod climb;
mod compositions;
mod exchange;
mod memory;
mod messages;
mod order;
mod products;
mod row;
mod run;
mod similarities;
mod solution;

pub use cap::{Cap, Extension, Params, Preset};
pub use compflow_kernels::preference::{MedianPerExample, PerExample, Preference, Target};
pub use messages::Damped;
pub use run::Finish;

compflow_api::export_library!();
