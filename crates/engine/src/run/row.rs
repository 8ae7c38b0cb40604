//! What became of cells.

use serde::{Deserialize, Serialize};

use super::brief::Brief;
use super::outcome::Outcome;
use super::selection::Selection;
use crate::plan::Plan;
use crate::plan::cell::Cell;

/// What became of a cell. Whatever it found, a row is small: there may be a million of them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) cell: Cell,
    /// What it came to, if it did.
    pub(crate) brief: Option<Brief>,
    /// All that it found, if that could not be kept; what is kept is read back when it is wanted.
    pub(crate) unkept: Option<Box<Outcome>>,
    /// Why nothing of it is in the folder although it ended: neither what it found nor that it failed could be written.
    pub(crate) lost: Option<String>,
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

    /// Of a cell that nothing is known of yet.
    pub(crate) fn unfinished(cell: Cell) -> Self {
        Self { cell, brief: None, unkept: None, lost: None, selection: None, error: None, kept: false }
    }
}
