//! The only cell of a plan, computed on the caller's thread and kept nowhere.

use std::sync::Arc;

use compflow_api::Result;

use super::cache::Cache;
use super::compute::{Job, run};
use super::memory::Sampler;
use super::outcome::Outcome;
use super::selection::{Selection, select};
use crate::cancel::Cancel;
use crate::observer::Observer;
use crate::plan::Plan;
use crate::plan::cell::Cell;

/// A cell that was computed.
#[derive(Debug)]
pub(crate) struct Single {
    /// With the option that was selected.
    pub(crate) cell: Cell,
    pub(crate) outcome: Outcome,
    pub(crate) selection: Option<Selection>,
}

/// Computes a cell as a run does, and nothing else: no scores, no tables.
///
/// # Errors
/// Whatever a component says.
pub(crate) fn single(plan: &Plan, cell: Cell, observer: &Arc<dyn Observer>, cancel: &Cancel) -> Result<Single> {
    let factory = plan.factory.watched_by(observer, cancel);
    let (cache, sampler) = (Cache::nowhere(), Sampler::start());
    let job =
        Job { plan, factory: &factory, cache: &cache, sampler: &sampler, room: None, fresh: true, strict: false };
    let (cell, selection) = select(&job, cell)?;
    let outcome = run(&job, cell, &cell.about(plan))?;
    Ok(Single { cell, outcome, selection })
}
