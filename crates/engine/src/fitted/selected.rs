//! What was selected from, as `selection.parquet` has it.

use serde::Serialize;

use crate::plan::Plan;
use crate::plan::cell::Cell;
use crate::run::selection::{Candidate, Selection};

/// A value that could have been selected.
#[derive(Debug, Clone, Serialize)]
pub struct SelectedOption {
    /// The parameters selected.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// What it came to; `None` if it could not be measured.
    #[serde(flatten)]
    pub(crate) measured: Option<Candidate>,
    /// Whether it was chosen.
    pub chosen: bool,
    /// Whether the gap statistic would have chosen it.
    pub gap_chosen: bool,
    /// Why it was left out.
    pub error: Option<String>,
}

/// All options of a cell, in their order.
pub(super) fn options(plan: &Plan, cell: Cell, selection: Option<&Selection>) -> Vec<SelectedOption> {
    let Some(selection) = selection else { return Vec::new() };
    let setups = cell.variant(plan).options.iter();
    let value = |text: &String| serde_json::from_str(text).unwrap_or(serde_json::Value::Null);
    setups
        .zip(&selection.candidates)
        .enumerate()
        .map(|(at, (setup, candidate))| SelectedOption {
            params: setup.choices.iter().map(|(name, text)| (name.clone(), value(text))).collect(),
            measured: candidate.as_ref().ok().copied(),
            chosen: at == selection.chosen,
            gap_chosen: at == selection.by_gap,
            error: candidate.as_ref().err().cloned(),
        })
        .collect()
}
