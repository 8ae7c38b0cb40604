//! Scores, what they come to over trials, and how objectives went.

use polars::prelude::*;

use super::batch::Batch;
use super::columns::join_columns;
use crate::plan::Plan;
use crate::results::summary::Summary;

pub(super) fn metrics(plan: &Plan, batch: &Batch<'_>) -> PolarsResult<DataFrame> {
    let scores = || {
        batch.all().flat_map(|(row, _)| {
            let scores = row.brief.iter().flat_map(|brief| &brief.scores);
            plan.metrics.iter().zip(scores).filter_map(move |(metric, score)| Some((row, &metric.name, (*score)?)))
        })
    };
    let mut columns = join_columns(plan, scores().map(|(row, ..)| (row, 1)));
    columns.extend([
        Column::new("metric".into(), scores().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>()),
        Column::new("value".into(), scores().map(|(.., value)| value).collect::<Vec<_>>()),
    ]);
    DataFrame::new(scores().count(), columns)
}

/// The objective after every iteration; a method that has none has no rows.
pub(super) fn traces(plan: &Plan, batch: &Batch<'_>) -> PolarsResult<DataFrame> {
    let traces = batch.finished().map(|(row, found)| (row, &found.clustering.diagnostics.trace));
    let mut columns = join_columns(plan, traces.clone().map(|(row, trace)| (row, trace.len())));
    let iterations: Vec<u32> = traces.clone().flat_map(|(_, trace)| 1..=trace.len() as u32).collect();
    let objectives = traces.flat_map(|(_, trace)| trace).map(|value| Some(*value).filter(|value| !value.is_nan()));
    let height = iterations.len();
    columns.push(Column::new("iteration".into(), iterations));
    columns.push(Column::new("objective".into(), objectives.collect::<Vec<Option<f64>>>()));
    DataFrame::new(height, columns)
}

pub(super) fn summary(entries: &[Summary]) -> PolarsResult<DataFrame> {
    DataFrame::new(
        entries.len(),
        vec![
            Column::new("data".into(), entries.iter().map(|entry| entry.data.as_str()).collect::<Vec<_>>()),
            Column::new(
                "clusterer".into(),
                entries.iter().map(|entry| entry.clusterer.as_str()).collect::<Vec<_>>(),
            ),
            Column::new("metric".into(), entries.iter().map(|entry| entry.metric.as_str()).collect::<Vec<_>>()),
            Column::new("trials".into(), entries.iter().map(|entry| entry.trials as u32).collect::<Vec<_>>()),
            Column::new("mean".into(), entries.iter().map(|entry| entry.mean).collect::<Vec<_>>()),
            Column::new("se".into(), entries.iter().map(|entry| entry.se).collect::<Vec<_>>()),
            Column::new("best".into(), entries.iter().map(|entry| entry.best).collect::<Vec<_>>()),
            Column::new("p_vs_best".into(), entries.iter().map(|entry| entry.p_vs_best).collect::<Vec<_>>()),
        ],
    )
}
