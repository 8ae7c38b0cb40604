//! The six tables of a run, as Polars dataframes written to Parquet.

use std::collections::HashMap;
use std::path::Path;

use polars::prelude::*;

use crate::check::Plan;
use crate::dataset::Ids;
use crate::environment::plain;
use crate::files::Staged;
use crate::run::Row;
use crate::summary::Summary;

/// Writes all tables. Each appears whole or not at all, and none before all are written.
///
/// # Errors
/// Naming the table that could not be written.
pub(crate) fn write(plan: &Plan, rows: &[Row], entries: &[Summary], folder: &Path) -> Result<(), String> {
    let tables: [(&str, PolarsResult<DataFrame>); 6] = [
        ("runs", runs(plan, rows)),
        ("metrics", metrics(plan, rows)),
        ("summary", summary(entries)),
        ("assignments", assignments(plan, rows)),
        ("clusters", clusters(plan, rows)),
        ("traces", traces(plan, rows)),
    ];
    let mut staged = Vec::new();
    for (name, table) in tables {
        let mut table = table.map_err(|error| format!("the table {name}: {error}"))?;
        let written = Staged::write(&folder.join(format!("{name}.parquet")), true, |file| {
            ParquetWriter::new(file).finish(&mut table).map(|_| ()).map_err(std::io::Error::other)
        });
        staged.push((name, written.map_err(|error| unwritable(name, &error))?));
    }
    staged.into_iter().try_for_each(|(name, staged)| staged.commit().map_err(|error| unwritable(name, &error)))
}

fn unwritable(name: &str, error: &std::io::Error) -> String {
    format!("{name}.parquet cannot be written: {}", plain(error))
}

/// `data`, `trial` and `clusterer`, which join the tables; every row of `rows` as often as `times` says.
fn join_columns<'a>(plan: &'a Plan, rows: impl Iterator<Item = (&'a Row, usize)>) -> Vec<Column> {
    let (mut data, mut trial, mut clusterer) = (Vec::new(), Vec::new(), Vec::new());
    for (row, times) in rows {
        let loaded = &plan.data[row.cell.data];
        data.extend(std::iter::repeat_n(loaded.name.as_str(), times));
        trial.extend(std::iter::repeat_n(loaded.dataset.trials[row.cell.trial].number, times));
        clusterer.extend(std::iter::repeat_n(row.cell.label(plan), times));
    }
    vec![
        Column::new("data".into(), data),
        Column::new("trial".into(), trial),
        Column::new("clusterer".into(), clusterer),
    ]
}

fn runs(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let mut columns = join_columns(plan, rows.iter().map(|row| (row, 1)));
    let outcomes = || rows.iter().map(|row| row.outcome.as_ref());
    let diagnostics = || outcomes().map(|outcome| outcome.map(|outcome| &outcome.clustering.diagnostics));
    let counted = |several: bool| -> Vec<Option<u32>> {
        outcomes()
            .map(|outcome| {
                let clustering = &outcome?.clustering;
                Some(clustering.clusters.iter().filter(|set| (set.len() > 1) == several).count() as u32)
            })
            .collect()
    };
    let dataset = |row: &Row| &plan.data[row.cell.data].dataset;
    let status = |row: &Row| match (&row.outcome, &row.error) {
        (_, Some(_)) => "failed",
        (Some(_), None) => "ok",
        (None, None) => "interrupted",
    };
    columns.extend([
        Column::new(
            "params".into(),
            rows.iter().map(|row| row.cell.variant(plan).params.as_str()).collect::<Vec<_>>(),
        ),
        Column::new(
            "n".into(),
            rows.iter().map(|row| dataset(row).trials[row.cell.trial].len() as u32).collect::<Vec<_>>(),
        ),
        Column::new("dim".into(), rows.iter().map(|row| dataset(row).dim as u32).collect::<Vec<_>>()),
        Column::new("seed".into(), rows.iter().map(|row| row.cell.seed(plan) as i64).collect::<Vec<_>>()),
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
        Column::new("singletons".into(), counted(false)),
        Column::new("compositions".into(), counted(true)),
        Column::new("status".into(), rows.iter().map(status).collect::<Vec<_>>()),
        Column::new("error".into(), rows.iter().map(|row| row.error.as_deref()).collect::<Vec<_>>()),
    ]);
    DataFrame::new(rows.len(), columns)
}

fn metrics(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let scores: Vec<Vec<(String, f64)>> = rows
        .iter()
        .map(|row| {
            let trial = &plan.data[row.cell.data].dataset.trials[row.cell.trial];
            let outcome = row.outcome.iter();
            outcome.flat_map(|outcome| outcome.scores(&plan.setting, trial).cloned()).collect()
        })
        .collect();
    let mut columns = join_columns(plan, rows.iter().zip(&scores).map(|(row, scores)| (row, scores.len())));
    let flat = || scores.iter().flatten();
    columns.extend([
        Column::new("metric".into(), flat().map(|(name, _)| name.as_str()).collect::<Vec<_>>()),
        Column::new("value".into(), flat().map(|(_, value)| *value).collect::<Vec<_>>()),
    ]);
    DataFrame::new(flat().count(), columns)
}

/// The objective after every iteration; a method that has none has no rows.
fn traces(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let trace =
        |row: &Row| row.outcome.as_ref().map_or_else(Vec::new, |found| found.clustering.diagnostics.trace.clone());
    let traces: Vec<Vec<f64>> = rows.iter().map(trace).collect();
    let mut columns = join_columns(plan, rows.iter().zip(&traces).map(|(row, trace)| (row, trace.len())));
    let iterations: Vec<u32> = traces.iter().flat_map(|trace| 1..=trace.len() as u32).collect();
    let objectives = traces.iter().flatten().map(|value| Some(*value).filter(|value| !value.is_nan()));
    let height = iterations.len();
    columns.push(Column::new("iteration".into(), iterations));
    columns.push(Column::new("objective".into(), objectives.collect::<Vec<Option<f64>>>()));
    DataFrame::new(height, columns)
}

fn summary(entries: &[Summary]) -> PolarsResult<DataFrame> {
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

/// A column of lists of numbers.
fn lists<'a>(name: &str, sets: impl Iterator<Item = Option<&'a [u32]>>) -> Column {
    let mut builder = ListPrimitiveChunkedBuilder::<UInt32Type>::new(name.into(), 0, 0, DataType::UInt32);
    sets.for_each(|set| builder.append_opt_slice(set));
    builder.finish().into_column()
}

fn assignments(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let finished: Vec<&Row> = rows.iter().filter(|row| row.outcome.is_some()).collect();
    let outcomes = || finished.iter().filter_map(|row| row.outcome.as_ref());
    let sets = || outcomes().flat_map(|outcome| outcome.clustering.assignments.iter());
    let trial = |row: &Row| &plan.data[row.cell.data].dataset.trials[row.cell.trial];
    let times = |row: &Row| row.outcome.as_ref().map_or(0, |outcome| outcome.clustering.assignments.len());
    let mut columns = join_columns(plan, finished.iter().map(|row| (*row, times(row))));
    columns.push(ids(finished.iter().map(|row| &trial(row).ids)));
    columns.push(lists("clusters", sets().map(Some)));
    columns.push(Column::new("composite".into(), sets().map(|set| set.len() > 1).collect::<Vec<_>>()));
    let distances: Vec<Option<f32>> = outcomes()
        .flat_map(|outcome| (0..outcome.clustering.assignments.len()).map(|at| outcome.distances.get(at).copied()))
        .collect();
    columns.push(Column::new("distance".into(), distances));
    let mut extra: Vec<&str> =
        outcomes().flat_map(|outcome| &outcome.clustering.extra).map(|(name, _)| name.as_str()).collect();
    extra.sort_unstable();
    extra.dedup();
    for name in extra {
        let column = outcomes().flat_map(|outcome| {
            let found = outcome.clustering.extra.iter().find(|(known, _)| known == name);
            (0..outcome.clustering.assignments.len()).map(move |at| found.map(|(_, sets)| &sets[at]))
        });
        columns.push(lists(name, column));
    }
    DataFrame::new(sets().count(), columns)
}

/// Identifiers: numbers if all data has numbers, texts otherwise.
fn ids<'a>(ids: impl Iterator<Item = &'a Ids> + Clone) -> Column {
    if ids.clone().all(|ids| matches!(ids, Ids::Numbers(_))) {
        let numbers = ids.flat_map(|ids| if let Ids::Numbers(ids) = ids { &ids[..] } else { &[] });
        return Column::new("id".into(), numbers.copied().collect::<Vec<_>>());
    }
    let texts = ids.flat_map(|ids| match ids {
        Ids::Numbers(ids) => ids.iter().map(ToString::to_string).collect(),
        Ids::Texts(ids) => ids.clone(),
    });
    Column::new("id".into(), texts.collect::<Vec<_>>())
}

fn clusters(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let finished: Vec<&Row> = rows.iter().filter(|row| row.outcome.is_some()).collect();
    let clusterings = || finished.iter().filter_map(|row| Some(&row.outcome.as_ref()?.clustering));
    let mut columns = join_columns(
        plan,
        finished
            .iter()
            .map(|row| (*row, row.outcome.as_ref().map_or(0, |outcome| outcome.clustering.clusters.len()))),
    );
    let mut sizes: Vec<u32> = Vec::new();
    for clustering in clusterings() {
        let mut counts: HashMap<&[u32], u32> = HashMap::new();
        clustering.assignments.iter().for_each(|set| *counts.entry(set).or_default() += 1);
        sizes.extend(clustering.clusters.iter().map(|set| counts.get(set).copied().unwrap_or(0)));
    }
    let total = sizes.len();
    columns.push(lists("clusters", clusterings().flat_map(|found| found.clusters.iter().map(Some))));
    columns.push(Column::new("size".into(), sizes));
    columns.push(lists(
        "exemplars",
        clusterings()
            .flat_map(|found| (0..found.clusters.len()).map(|at| found.exemplars.get(at).map(Vec::as_slice))),
    ));
    columns.push(centroids(plan, &finished)?);
    DataFrame::new(total, columns)
}

/// Centroids: a fixed-size list if all data has the same dimension, a list otherwise.
fn centroids(plan: &Plan, finished: &[&Row]) -> PolarsResult<Column> {
    let mut builder = ListPrimitiveChunkedBuilder::<Float32Type>::new("centroid".into(), 0, 0, DataType::Float32);
    let mut dims: Vec<usize> = plan.data.iter().map(|data| data.dataset.dim).collect();
    for row in finished {
        let dim = plan.data[row.cell.data].dataset.dim;
        let Some(outcome) = &row.outcome else { continue };
        for at in 0..outcome.clustering.clusters.len() {
            builder.append_opt_slice(outcome.clustering.centroids.get(at * dim..(at + 1) * dim));
        }
    }
    let column = builder.finish().into_column();
    dims.dedup();
    match dims[..] {
        [dim] => column.cast(&DataType::Array(Box::new(DataType::Float32), dim)),
        _ => Ok(column),
    }
}
