//! Data: where it comes from, and what it is once it has been read.

pub(crate) mod dataset;
pub(crate) mod source;

pub use self::dataset::{Dataset, Ids, Trial};
