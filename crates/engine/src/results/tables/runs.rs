//! A row for every cell: how it went.

use compflow_api::Clustering;
use polars::prelude::*;

use super::batch::Batch;
use super::columns::join_columns;
use crate::plan::Plan;
use crate::run::Outcome;
use crate::run::row::Row;

pub(super) fn runs(plan: &Plan, batch: &Batch<'_>) -> PolarsResult<DataFrame> {
    let rows = || batch.all().map(|(row, _)| row);
    let outcomes = || batch.all().map(|(_, outcome)| outcome);
    let mut columns = join_columns(plan, rows().map(|row| (row, 1)));
    let diagnostics = || outcomes().map(|outcome| outcome.map(|outcome| &outcome.clustering.diagnostics));
    let occurring = || rows().map(|row| row.brief.as_ref().map(|brief| brief.occurring));
    let dataset = |row: &Row| &plan.data[row.cell.data].dataset;
    let status = |row: &Row| match (&row.brief, &row.error) {
        (_, Some(_)) => "failed",
        (Some(_), None) => "ok",
        (None, None) => "interrupted",
    };
    columns.extend([
        Column::new("params".into(), rows().map(|row| row.params(plan)).collect::<Vec<_>>()),
        Column::new("n".into(), rows().map(|row| row.cell.trial(plan).size() as u32).collect::<Vec<_>>()),
        Column::new("dim".into(), rows().map(|row| dataset(row).dim as u32).collect::<Vec<_>>()),
        Column::new("seed".into(), rows().map(|row| row.cell.seed(plan) as i64).collect::<Vec<_>>()),
        Column::new("seconds".into(), outcomes().map(|outcome| Some(outcome?.seconds)).collect::<Vec<_>>()),
        Column::new("peak_bytes".into(), outcomes().map(|outcome| Some(outcome?.peak_bytes)).collect::<Vec<_>>()),
        Column::new("iterations".into(), diagnostics().map(|found| Some(found?.iterations)).collect::<Vec<_>>()),
        Column::new("converged".into(), diagnostics().map(|found| Some(found?.converged)).collect::<Vec<_>>()),
        Column::new(
            "objective".into(),
            diagnostics()
                .map(|found| found.map(|found| found.objective).filter(|value| !value.is_nan()))
                .collect::<Vec<_>>(),
        ),
        Column::new("singletons".into(), occurring().map(|found| Some(found?.members)).collect::<Vec<_>>()),
        Column::new("compositions".into(), occurring().map(|found| Some(found?.unions)).collect::<Vec<_>>()),
        Column::new("scalars".into(), outcomes().map(|outcome| scalars(&outcome?.clustering)).collect::<Vec<_>>()),
        Column::new(
            "resolved".into(),
            batch.all().map(|(row, outcome)| resolved(plan, row, outcome)).collect::<Vec<_>>(),
        ),
        Column::new("status".into(), rows().map(status).collect::<Vec<_>>()),
        Column::new("error".into(), rows().map(|row| row.error.as_deref()).collect::<Vec<_>>()),
    ]);
    DataFrame::new(rows().count(), columns)
}

/// Named numbers as a JSON object; `None` if there are none. One that is not finite has no form in JSON and is null.
fn scalars(clustering: &Clustering) -> Option<String> {
    let object: serde_json::Map<_, _> =
        clustering.scalars.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
    (!object.is_empty()).then(|| serde_json::Value::Object(object).to_string())
}

/// Parameters that were selected or that the method settled by itself, as a JSON object; `None` if there are none.
fn resolved(plan: &Plan, row: &Row, outcome: Option<&Outcome>) -> Option<String> {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_default();
    let selected = row.selection.iter().flat_map(|_| &row.cell.setup(plan).choices);
    let found = outcome.iter().flat_map(|outcome| &outcome.clustering.resolved);
    let object: serde_json::Map<_, _> =
        selected.chain(found).map(|(name, text)| (name.clone(), value(text))).collect();
    (!object.is_empty()).then(|| serde_json::Value::Object(object).to_string())
}
