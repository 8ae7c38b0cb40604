//! What was selected from.

use polars::prelude::*;

use super::batch::Batch;
use super::columns::join_columns;
use crate::plan::Plan;
use crate::run::row::Row;
use crate::run::selection::{Candidate, Selection};

/// What was selected from, value by value; no rows if nothing was.
pub(super) fn selection(plan: &Plan, batch: &Batch<'_>) -> PolarsResult<DataFrame> {
    let selected: Vec<(&Row, &Selection)> =
        batch.all().filter_map(|(row, _)| Some((row, row.selection.as_ref()?))).collect();
    let mut columns =
        join_columns(plan, selected.iter().map(|(row, selection)| (*row, selection.candidates.len())));
    // An option at a time: its number, what it is, and what it came to.
    let options = || {
        selected.iter().flat_map(|(row, selection)| {
            let setups = &row.cell.variant(plan).options;
            selection
                .candidates
                .iter()
                .zip(setups)
                .enumerate()
                .map(|(at, (candidate, setup))| (at, *selection, &setup.choices, candidate))
        })
    };
    let number = |name: &str, value: fn(&Candidate) -> f64| {
        let values = options().map(|(_, _, _, candidate)| candidate.as_ref().ok().map(value));
        Column::new(name.into(), values.collect::<Vec<Option<f64>>>())
    };
    let only = |choices: &[(String, String)]| match choices {
        [(_, value)] => value.parse::<f64>().ok(),
        _ => None,
    };
    let json = |choices: &[(String, String)]| {
        let value = |text: &str| serde_json::from_str(text).unwrap_or(serde_json::Value::Null);
        let object: serde_json::Map<_, _> =
            choices.iter().map(|(name, text)| (name.clone(), value(text))).collect();
        serde_json::Value::Object(object).to_string()
    };
    columns.extend([
        Column::new("params".into(), options().map(|(_, _, choices, _)| json(choices)).collect::<Vec<_>>()),
        Column::new("value".into(), options().map(|(_, _, choices, _)| only(choices)).collect::<Vec<_>>()),
        number("stability", |candidate| candidate.stability),
        number("stability_se", |candidate| candidate.stability_se),
        number("information", |candidate| candidate.information),
        number("null_stability", |candidate| candidate.null_stability),
        number("null_information", |candidate| candidate.null_information),
        number("worth", |candidate| candidate.worth),
        number("gap", |candidate| candidate.gap),
        number("gap_se", |candidate| candidate.gap_se),
        number("clusters", |candidate| candidate.clusters),
        Column::new("chosen".into(), options().map(|(at, of, _, _)| at == of.chosen).collect::<Vec<_>>()),
        Column::new("gap_chosen".into(), options().map(|(at, of, _, _)| at == of.by_gap).collect::<Vec<_>>()),
        Column::new(
            "error".into(),
            options()
                .map(|(_, _, _, candidate)| candidate.as_ref().err().cloned())
                .collect::<Vec<Option<String>>>(),
        ),
    ]);
    DataFrame::new(options().count(), columns)
}
