//! Running a plan: cells in parallel, what is kept of them, and tuning.

mod across;
mod agreement;
pub(crate) mod brief;
pub(crate) mod budget;
pub(crate) mod cache;
pub(crate) mod canonical;
mod compute;
mod distances;
mod estimate;
pub(crate) mod evaluate;
pub(crate) mod execute;
pub(crate) mod folder;
pub(crate) mod generation;
pub(crate) mod heartbeat;
pub(crate) mod isolate;
pub(crate) mod manifest;
pub(crate) mod means;
pub(crate) mod members;
pub(crate) mod memory;
mod outcome;
mod part;
mod pool;
mod preview;
mod recall;
pub(crate) mod row;
mod score;
pub(crate) mod selection;
pub(crate) mod single;
mod stability;
mod status;
mod tuning;
pub(crate) mod unseeded;
mod workload;

pub use self::folder::INPUTS;
pub use self::isolate::Isolation;
#[cfg(unix)]
pub use self::isolate::serve;
pub(crate) use self::outcome::Outcome;
pub use self::part::{Part, PartFinished, PartOptions, Phase};
pub use self::preview::{Group, Preview};
pub use self::status::{Others, PhaseStatus, Status};
pub use self::workload::Workload;
