//! Composition functions: where does the union of two things lie, given where the two lie?
//!
//! | name | g(a, b) |
//! | --- | --- |
//! | `max` | the larger of both, element by element |
//! | `sum` | a + b |
//! | `mean` | (a + b) / 2, and of a set the mean of its members |
//! | `bilinear` | W₁a + W₁b + W₂(a∘b) with learned weights |
//!
//! All are symmetric and differentiable, and work on batches of pairs. Sets of three and more are composed
//! from pairs by [`compflow_api::compose_sets`], whatever their members' numbers; `max` and `sum` declare that they are
//! associative, which makes that cheap, and `mean` composes sets by itself.
//!
//! # Testing
//!
//! Every gradient is compared with central differences of an implementation in f64 that the tests bring themselves,
//! and every composer is used across the library's boundary.

#![deny(unsafe_code)]

mod bilinear;
mod elementwise;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod gradients;
mod max;
mod mean;
mod sum;
mod weights;

pub use bilinear::Bilinear;
pub use max::Max;
pub use mean::Mean;
pub use sum::Sum;

compflow_api::export_library!();
