//! A results folder, read back: what was run and its tables.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use compflow_api::Unit;
use polars::prelude::*;

use super::lead::lead;
use super::record::RunRecord;
use super::statistics::Scores;
use super::summary::Summary;
use crate::error::{Error, Result};
use crate::run::generation::Tables;

/// What a run left behind, without its largest tables.
#[derive(Debug)]
pub struct Results {
    /// The folder.
    pub folder: PathBuf,
    /// What was run.
    pub record: RunRecord,
    /// `runs.parquet`.
    pub runs: Vec<Run>,
    /// `summary.parquet`.
    pub summary: Vec<Summary>,
    /// By data set, clusterer and metric, then by trial.
    scores: HashMap<(String, String, String), Scores>,
    pub(super) tables: Tables,
}

/// A row of `runs.parquet`.
#[derive(Debug)]
pub struct Run {
    /// The data set.
    pub data: String,
    /// The trial's number.
    pub trial: u32,
    /// The clusterer, or a point of its grids.
    pub clusterer: String,
    /// How many examples.
    pub n: u32,
    /// How many numbers an embedding has.
    pub dim: u32,
    /// How long it took, if it finished.
    pub seconds: Option<f64>,
    /// Whether it converged, if it finished.
    pub converged: Option<bool>,
    /// What the method made as large or as small as it could, if it says so.
    pub objective: Option<f64>,
    /// How many singletons occur, if it finished.
    pub singletons: Option<u32>,
    /// How many unions occur, if it finished.
    pub compositions: Option<u32>,
    /// Parameters that were selected or settled by the method itself, as a JSON object.
    pub resolved: Option<String>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// The objective of one cell after every iteration, without those that are not finite.
#[derive(Debug)]
pub struct Trace {
    /// The data set.
    pub data: String,
    /// The trial's number.
    pub trial: u32,
    /// The clusterer, or a point of its grids.
    pub clusterer: String,
    /// Iteration and objective.
    pub points: Vec<(u32, f64)>,
}

/// What was selected from in one cell.
#[derive(Debug)]
pub struct Selected {
    /// The data set.
    pub data: String,
    /// The trial's number.
    pub trial: u32,
    /// The clusterer, or a point of its grids.
    pub clusterer: String,
    /// In the order of the pipeline, without those that failed.
    pub candidates: Vec<SelectedValue>,
}

/// A row of `selection.parquet`.
#[derive(Debug)]
pub struct SelectedValue {
    /// The parameters, as a JSON object.
    pub params: String,
    /// The value, if one parameter was selected.
    pub value: Option<f64>,
    /// The agreement of two halves.
    pub stability: f64,
    /// What was chosen by.
    pub worth: f64,
    /// Whether this was chosen.
    pub chosen: bool,
    /// Whether the gap statistic would have chosen this.
    pub gap_chosen: bool,
}

impl Results {
    /// Reads a results folder.
    ///
    /// # Errors
    /// If it is none, or a table is missing or damaged.
    pub fn open(folder: &Path) -> Result<Self> {
        let (record, tables) = RunRecord::read_with_tables(folder)?;
        let runs = Table::open(&tables, "runs")?;
        let metrics = Table::open(&tables, "metrics")?;
        let summary = Table::open(&tables, "summary")?;
        let results = Self {
            folder: folder.to_owned(),
            runs: runs.read(read_runs)?,
            scores: metrics.read(read_scores)?,
            summary: with_units(summary.read(read_summary)?, &record),
            record,
            tables,
        };
        if results.runs.is_empty() {
            return Err(Error::request(format!("{} holds no cells", folder.display())));
        }
        Ok(results)
    }

    /// Whether a data set only settles grids.
    fn tunes(&self, data: &str) -> bool {
        let tables = self.record.pipeline.get("data").and_then(serde_json::Value::as_array);
        tables.into_iter().flatten().any(|table| {
            let text = |key: &str| table.get(key).and_then(serde_json::Value::as_str);
            text("name") == Some(data) && text("role") == Some("tune")
        })
    }

    /// The data of the experiment itself, in the order of the pipeline.
    pub fn data(&self) -> Vec<&str> {
        distinct(self.runs.iter().map(|run| run.data.as_str()))
            .into_iter()
            .filter(|data| !self.tunes(data))
            .collect()
    }

    /// The clusterers of the experiment itself, in the order of the pipeline.
    pub fn clusterers(&self) -> Vec<&str> {
        let tested = self.runs.iter().filter(|run| !self.tunes(&run.data));
        distinct(tested.map(|run| run.clusterer.as_str()))
    }

    /// The metrics, in the order of the evaluators.
    pub fn metrics(&self) -> Vec<&str> {
        distinct(self.summary.iter().map(|entry| entry.metric.as_str()))
    }

    /// The metrics with the [leading](lead) one first, then in the order of the evaluators.
    pub fn metrics_by_lead(&self) -> Vec<&str> {
        let mut metrics = self.metrics();
        let first = lead(&metrics);
        metrics.sort_by_key(|metric| first != Some(*metric));
        metrics
    }

    /// Whether more of a metric is better; so it is for one that the record does not know.
    pub fn larger_is_better(&self, metric: &str) -> bool {
        self.record.metrics.iter().find(|known| known.name == metric).is_none_or(|known| known.larger_is_better)
    }

    /// What a metric counts in.
    pub fn unit(&self, metric: &str) -> Unit {
        unit(&self.record, metric)
    }

    /// Whether a clusterer is given the truth.
    pub fn is_oracle(&self, clusterer: &str) -> bool {
        self.record.oracles.iter().any(|oracle| oracle == clusterer)
    }

    /// An entry of the results table.
    pub fn entry(&self, data: &str, clusterer: &str, metric: &str) -> Option<&Summary> {
        self.summary
            .iter()
            .find(|entry| entry.data == data && entry.clusterer == clusterer && entry.metric == metric)
    }

    /// A clusterer's scores by trial.
    pub fn scores(&self, data: &str, clusterer: &str, metric: &str) -> Scores {
        let key = (data.to_owned(), clusterer.to_owned(), metric.to_owned());
        self.scores.get(&key).cloned().unwrap_or_default()
    }

    /// The rows of one clusterer on one data set.
    pub fn runs_of<'a>(&'a self, data: &'a str, clusterer: &'a str) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().filter(move |run| run.data == data && run.clusterer == clusterer)
    }

    /// Seconds by trial.
    pub fn seconds(&self, data: &str, clusterer: &str) -> Scores {
        self.runs_of(data, clusterer).filter_map(|run| Some((run.trial as usize, run.seconds?))).collect()
    }

    /// The trials of a data set, in their order.
    pub fn trials(&self, data: &str) -> Vec<u32> {
        let mut trials: Vec<u32> = self.runs.iter().filter(|run| run.data == data).map(|run| run.trial).collect();
        trials.sort_unstable();
        trials.dedup();
        trials
    }

    /// How many examples a trial of a data set has; `None` if trials differ.
    pub fn n(&self, data: &str) -> Option<u32> {
        let mut sizes = self.runs.iter().filter(|run| run.data == data).map(|run| run.n);
        let first = sizes.next()?;
        sizes.all(|n| n == first).then_some(first)
    }

    /// What to call a data set: by its size as the paper does, unless that is not what tells it from the others.
    pub fn heading(&self, data: &str) -> String {
        let sizes: Vec<(&str, Option<u32>)> = self.data().into_iter().map(|data| (data, self.n(data))).collect();
        heading(data, &sizes)
    }

    /// The convergence traces of the experiment itself. Runs of earlier versions have none.
    ///
    /// # Errors
    /// If the table is damaged.
    pub fn traces(&self) -> Result<Vec<Trace>> {
        if !self.tables.has("traces") {
            return Ok(Vec::new());
        }
        let mut traces = Table::open(&self.tables, "traces")?.read(read_traces)?;
        traces.retain(|trace| !self.tunes(&trace.data));
        Ok(traces)
    }

    /// What was selected, cell by cell; nothing for runs that selected nothing.
    ///
    /// # Errors
    /// If the table is damaged.
    pub fn selected(&self) -> Result<Vec<Selected>> {
        if !self.tables.has("selection") {
            return Ok(Vec::new());
        }
        let mut selected = Table::open(&self.tables, "selection")?.read(read_selected)?;
        selected.retain(|selected| !self.tunes(&selected.data));
        Ok(selected)
    }
}

/// `n = 150`, or the name where sizes differ within a data set or not between them. `sizes` is of all data sets.
pub fn heading(data: &str, sizes: &[(&str, Option<u32>)]) -> String {
    let n = sizes.iter().find(|(name, _)| *name == data).and_then(|(_, n)| *n);
    match n {
        Some(n) if sizes.iter().filter(|(_, other)| *other == Some(n)).count() == 1 => format!("n = {n}"),
        _ => data.to_owned(),
    }
}

/// Every value once, in the order of first appearance.
pub fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let (mut distinct, mut seen): (Vec<&str>, HashSet<&str>) = Default::default();
    for value in values {
        // Equal values come together, so the last one seen is the likeliest.
        if distinct.last() != Some(&value) && seen.insert(value) {
            distinct.push(value);
        }
    }
    distinct
}

/// A Parquet table and how it is called in messages.
pub(super) struct Table {
    pub(super) path: PathBuf,
    frame: DataFrame,
}

impl Table {
    pub(super) fn open(tables: &Tables, name: &str) -> Result<Self> {
        Self::open_columns(tables, name, &[], &[])
    }

    /// Only some columns, and those of the `optional` ones that there are; none means all.
    pub(super) fn open_columns(tables: &Tables, name: &str, columns: &[&str], optional: &[&str]) -> Result<Self> {
        let (file, path) = tables.open(name)?;
        let mut reader = ParquetReader::new(file);
        let known = reader.schema().map_err(|error| damaged(&path, &error))?;
        let optional = optional.iter().filter(|column| known.contains(column));
        let columns: Vec<String> = columns.iter().chain(optional).map(|&column| column.to_owned()).collect();
        let columns = (!columns.is_empty()).then_some(columns);
        let frame = reader.with_columns(columns).finish().map_err(|error| damaged(&path, &error))?;
        Ok(Self { path, frame })
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&DataFrame) -> PolarsResult<T>) -> Result<T> {
        read(&self.frame).map_err(|error| damaged(&self.path, &error))
    }
}

fn damaged(path: &Path, error: &PolarsError) -> Error {
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    Error::request(format!("{} is not a table of a run: {text}; run the pipeline again", path.display()))
}

fn texts(frame: &DataFrame, name: &str) -> PolarsResult<Vec<String>> {
    Ok(frame.column(name)?.str()?.iter().map(|text| text.unwrap_or_default().to_owned()).collect())
}

/// Texts, and whether they are there.
fn optional(frame: &DataFrame, name: &str) -> PolarsResult<Vec<Option<String>>> {
    Ok(frame.column(name)?.str()?.iter().map(|text| text.map(str::to_owned)).collect())
}

fn whole(frame: &DataFrame, name: &str) -> PolarsResult<Vec<Option<u32>>> {
    Ok(frame.column(name)?.u32()?.iter().collect())
}

fn floats(frame: &DataFrame, name: &str) -> PolarsResult<Vec<Option<f64>>> {
    Ok(frame.column(name)?.f64()?.iter().collect())
}

fn flags(frame: &DataFrame, name: &str) -> PolarsResult<Vec<Option<bool>>> {
    Ok(frame.column(name)?.bool()?.iter().collect())
}

fn read_runs(frame: &DataFrame) -> PolarsResult<Vec<Run>> {
    let (data, trial, clusterer) = (texts(frame, "data")?, whole(frame, "trial")?, texts(frame, "clusterer")?);
    let (n, dim) = (whole(frame, "n")?, whole(frame, "dim")?);
    let (seconds, converged) = (floats(frame, "seconds")?, flags(frame, "converged")?);
    let (objective, singletons) = (floats(frame, "objective")?, whole(frame, "singletons")?);
    let compositions = whole(frame, "compositions")?;
    let (mut errors, mut resolved) = (optional(frame, "error")?, optional(frame, "resolved")?);
    let names = data.into_iter().zip(clusterer);
    Ok(names
        .enumerate()
        .map(|(at, (data, clusterer))| Run {
            data,
            clusterer,
            trial: trial[at].unwrap_or_default(),
            n: n[at].unwrap_or_default(),
            dim: dim[at].unwrap_or_default(),
            seconds: seconds[at],
            converged: converged[at],
            objective: objective[at],
            singletons: singletons[at],
            compositions: compositions[at],
            resolved: resolved[at].take(),
            error: errors[at].take(),
        })
        .collect())
}

fn read_scores(frame: &DataFrame) -> PolarsResult<HashMap<(String, String, String), Scores>> {
    let (data, trial, clusterer) = (texts(frame, "data")?, whole(frame, "trial")?, texts(frame, "clusterer")?);
    let (metric, value) = (texts(frame, "metric")?, floats(frame, "value")?);
    let mut scores: HashMap<_, Scores> = HashMap::new();
    for (at, ((data, clusterer), metric)) in data.into_iter().zip(clusterer).zip(metric).enumerate() {
        if let (Some(trial), Some(value)) = (trial[at], value[at]) {
            scores.entry((data, clusterer, metric)).or_default().insert(trial as usize, value);
        }
    }
    Ok(scores)
}

/// What a metric counts in, if the record of a run says so.
fn unit(record: &RunRecord, metric: &str) -> Unit {
    record.metrics.iter().find(|known| known.name == metric).map_or(Unit::Number, |known| known.unit)
}

/// Adds what metrics count in, which the record says and the table does not.
fn with_units(mut summary: Vec<Summary>, record: &RunRecord) -> Vec<Summary> {
    summary.iter_mut().for_each(|entry| entry.unit = unit(record, &entry.metric));
    summary
}

fn read_summary(frame: &DataFrame) -> PolarsResult<Vec<Summary>> {
    let (data, clusterer, metric) = (texts(frame, "data")?, texts(frame, "clusterer")?, texts(frame, "metric")?);
    let (trials, mean, se) = (whole(frame, "trials")?, floats(frame, "mean")?, floats(frame, "se")?);
    let (best, p_vs_best) = (flags(frame, "best")?, floats(frame, "p_vs_best")?);
    let names = data.into_iter().zip(clusterer).zip(metric);
    Ok(names
        .enumerate()
        .map(|(at, ((data, clusterer), metric))| Summary {
            data,
            clusterer,
            metric,
            unit: Unit::Number,
            trials: trials[at].unwrap_or_default() as usize,
            mean: mean[at].unwrap_or(f64::NAN),
            se: se[at],
            best: best[at].unwrap_or_default(),
            p_vs_best: p_vs_best[at],
        })
        .collect())
}

fn read_traces(frame: &DataFrame) -> PolarsResult<Vec<Trace>> {
    let (data, clusterer) = (frame.column("data")?.str()?, frame.column("clusterer")?.str()?);
    let (trial, iteration) = (frame.column("trial")?.u32()?, frame.column("iteration")?.u32()?);
    let objective = frame.column("objective")?.f64()?;
    let mut traces: Vec<Trace> = Vec::new();
    let rows = data.iter().zip(trial.iter()).zip(clusterer.iter()).zip(iteration.iter()).zip(objective.iter());
    for ((((data, trial), clusterer), iteration), objective) in rows {
        let (Some(data), Some(trial), Some(clusterer), Some(iteration)) = (data, trial, clusterer, iteration)
        else {
            continue;
        };
        let same = |last: &Trace| last.data == data && last.trial == trial && last.clusterer == clusterer;
        if !traces.last().is_some_and(same) {
            let (data, clusterer) = (data.to_owned(), clusterer.to_owned());
            traces.push(Trace { data, trial, clusterer, points: Vec::new() });
        }
        if let (Some(trace), Some(objective)) = (traces.last_mut(), objective.filter(|value| value.is_finite())) {
            trace.points.push((iteration, objective));
        }
    }
    Ok(traces)
}

fn read_selected(frame: &DataFrame) -> PolarsResult<Vec<Selected>> {
    let (data, trial, clusterer) = (texts(frame, "data")?, whole(frame, "trial")?, texts(frame, "clusterer")?);
    let (params, value) = (texts(frame, "params")?, floats(frame, "value")?);
    let (stability, worth) = (floats(frame, "stability")?, floats(frame, "worth")?);
    let (chosen, gap_chosen) = (flags(frame, "chosen")?, flags(frame, "gap_chosen")?);
    let mut selected: Vec<Selected> = Vec::new();
    for (at, ((data, clusterer), params)) in data.into_iter().zip(clusterer).zip(params).enumerate() {
        let (Some(trial), Some(stability), Some(worth)) = (trial[at], stability[at], worth[at]) else { continue };
        let same = |last: &Selected| last.data == data && last.trial == trial && last.clusterer == clusterer;
        if !selected.last().is_some_and(same) {
            selected.push(Selected { data, trial, clusterer, candidates: Vec::new() });
        }
        let (chosen, gap_chosen) = (chosen[at].unwrap_or_default(), gap_chosen[at].unwrap_or_default());
        let candidate = SelectedValue { params, value: value[at], stability, worth, chosen, gap_chosen };
        if let Some(last) = selected.last_mut() {
            last.candidates.push(candidate);
        }
    }
    Ok(selected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_called_by_its_size_where_that_tells_it_from_the_others() {
        let sizes = [("small", Some(150)), ("large", Some(750))];
        assert_eq!(heading("small", &sizes), "n = 150");
        let sizes = [("clean", Some(150)), ("noisy", Some(150)), ("mixed", None)];
        assert_eq!(heading("clean", &sizes), "clean");
        assert_eq!(heading("mixed", &sizes), "mixed");
    }

    #[test]
    fn distinct_keeps_the_order_of_first_appearance() {
        assert_eq!(distinct(["b", "b", "a", "b"].into_iter()), ["b", "a"]);
    }
}
