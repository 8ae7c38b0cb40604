//! What became of cells.

use super::outcome::Outcome;
use crate::plan::cell::Cell;

/// What became of a cell.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) cell: Cell,
    pub(crate) outcome: Option<Outcome>,
    /// Why it failed; both `None` means interrupted.
    pub(crate) error: Option<String>,
    /// Whether the outcome is from an earlier run.
    pub(crate) kept: bool,
}

impl Row {
    /// Of a cell that nothing is known of yet.
    pub(crate) fn unfinished(cell: Cell) -> Self {
        Self { cell, outcome: None, error: None, kept: false }
    }
}
