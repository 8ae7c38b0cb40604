//! What runs leave behind: tables, a record, and reading both back.

mod labels;
mod lead;
mod read;
mod record;
mod recorded;
mod run;
mod scorer;
pub mod statistics;
mod summary;
mod tables;
mod units;

pub use self::labels::Labels;
pub use self::lead::lead;
pub use self::read::{Results, Run, Trace, TrialAssignments, distinct, heading};
pub use self::record::{DataRecord, HostRecord, LibraryRecord, MetricRecord, RunRecord};
pub use self::recorded::{Means, RecordedRun, Trivial};
pub use self::run::{Finished, RunOptions};
pub use self::scorer::{Scorer, SetsRequest};
pub use self::summary::Summary;
pub use self::units::{score_text, shown};
