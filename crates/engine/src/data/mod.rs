//! Data: where it comes from, and what it is once it has been read.

pub(crate) mod build;
pub(crate) mod dataset;
mod files;
mod held;
pub(crate) mod label_sets;
pub(crate) mod request;
pub(crate) mod seeds;
mod segments;
pub(crate) mod snapshot;
pub(crate) mod source;
pub(crate) mod survey;
pub(crate) mod values;

pub use self::dataset::{Dataset, Ids, Trial};
pub use self::files::{ENDINGS, data_files, loader_of, named_files};
pub use self::label_sets::SEPARATORS;
pub use self::seeds::Seeds;
pub use self::segments::Segment;
pub use self::survey::{ColumnInfo, Described, Holds, Source, Survey};
pub use self::values::MEDIA;
