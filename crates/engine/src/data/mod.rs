//! Data: where it comes from, and what it is once it has been read.

pub(crate) mod dataset;
mod seeds;
mod segments;
pub(crate) mod snapshot;
pub(crate) mod source;
pub(crate) mod survey;

pub use self::dataset::{Dataset, Ids, Trial};
pub use self::seeds::Seeds;
pub use self::segments::Segment;
pub use self::survey::{ColumnInfo, Described, Holds, Source, Survey, loader_of};
