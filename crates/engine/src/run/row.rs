//! What became of cells.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::selection::Selection;
use crate::plan::Plan;
use crate::plan::cell::Cell;

/// What became of a cell.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) cell: Cell,
    pub(crate) outcome: Option<Outcome>,
    /// How its parameters were selected, if they had to be and could.
    pub(crate) selection: Option<Selection>,
    /// Why it failed; both `None` means interrupted.
    pub(crate) error: Option<String>,
    /// Whether the outcome is from an earlier run.
    pub(crate) kept: bool,
}

impl Row {
    /// The parameters with preset and defaults filled in, as JSON; `None` if they were not settled.
    pub(crate) fn params<'p>(&self, plan: &'p Plan) -> Option<&'p str> {
        let settled = self.selection.is_some() || !self.cell.variant(plan).selects();
        settled.then(|| self.cell.setup(plan).params.as_str())
    }

    /// Only what it came to: a thousand of them are small.
    pub(super) fn without_clustering(mut self) -> Self {
        if let Some(outcome) = &mut self.outcome {
            (outcome.clustering, outcome.distances) = Default::default();
        }
        self
    }

    /// Of a cell that nothing is known of yet.
    pub(crate) fn unfinished(cell: Cell) -> Self {
        Self { cell, outcome: None, selection: None, error: None, kept: false }
    }
}
