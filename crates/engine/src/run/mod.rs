//! Running a plan: cells in parallel, what is kept of them, and tuning.

mod across;
mod agreement;
pub(crate) mod cache;
mod canonical;
mod compute;
mod distances;
pub(crate) mod evaluate;
pub(crate) mod execute;
pub(crate) mod folder;
pub(crate) mod means;
pub(crate) mod memory;
mod outcome;
pub(crate) mod parts;
mod pool;
mod preview;
pub(crate) mod row;
mod score;
pub(crate) mod selection;
mod stability;
mod tuning;
pub(crate) mod unseeded;

pub(crate) use self::outcome::Outcome;
pub use self::preview::{Group, Preview};
