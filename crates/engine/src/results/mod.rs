//! What runs leave behind: tables, a record, and reading both back.

mod advice;
mod cell;
mod labels;
mod lead;
mod names;
mod read;
mod record;
mod recorded;
mod rttm;
mod run;
mod scorer;
pub mod statistics;
mod summary;
mod tables;
mod units;
mod verify;

pub(crate) use self::cell::CellTables;
pub use self::labels::Labels;
pub use self::lead::lead;
pub(crate) use self::names::singleton_names;
pub use self::read::{Results, Run, Selected, SelectedValue, Trace, TrialAssignments, distinct, heading};
pub use self::record::{DataRecord, HostRecord, LibraryRecord, MetricRecord, RunRecord};
pub use self::recorded::{Means, RecordedRun, Trivial};
pub use self::rttm::rttm;
pub use self::run::{Finished, RunOptions};
pub use self::scorer::{Scorer, SetsRequest};
pub use self::summary::Summary;
pub use self::units::{score_text, shown};
pub use self::verify::{Verified, verify};
