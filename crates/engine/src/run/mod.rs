//! Running a plan: cells in parallel, what is kept of them, and tuning.

pub(crate) mod cache;
mod canonical;
mod compute;
mod distances;
pub(crate) mod evaluate;
pub(crate) mod execute;
pub(crate) mod folder;
pub(crate) mod memory;
mod outcome;
mod preview;
pub(crate) mod row;
mod score;
mod tuning;

pub(crate) use self::outcome::Outcome;
pub use self::preview::{Group, Preview};
