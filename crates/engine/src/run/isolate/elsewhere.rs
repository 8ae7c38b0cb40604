//! Systems without what worker processes need: cells are computed in this one, which [`Workers::wanted`] has said.

use super::Workers;
use crate::plan::cell::Cell;
use crate::run::budget::Place;
use crate::run::execute::{Shared, attempt};
use crate::run::row::Row;

/// Computes cells itself.
#[derive(Debug)]
pub(in crate::run) struct Hand;

impl Hand {
    pub(in crate::run) fn new(_workers: &Workers) -> Self {
        Self
    }

    /// What becomes of a cell.
    pub(in crate::run) fn compute(&mut self, shared: &Shared, cell: Cell, place: &Place<'_>) -> Row {
        attempt(shared, cell, place)
    }
}
