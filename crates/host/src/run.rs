//! Runs a plan's cells in parallel, settles grids, and leaves the tables behind.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use compflow_api::{Error, Level};

use crate::cache::Cache;
use crate::cell::{self, Outcome, derive_seed};
use crate::check::{Plan, Variant};
use crate::environment::plain;
use crate::failure::Failure;
use crate::interrupt;
use crate::record::{RunRecord, write_record};
use crate::summary::{Summary, summarize};

/// How long cells may take to notice Ctrl-C before the run ends without them.
const GRACE: Duration = Duration::from_millis(700);

/// One clusterer variant on one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Indices in the plan.
    pub(crate) data: usize,
    pub(crate) trial: usize,
    pub(crate) clusterer: usize,
    pub(crate) variant: usize,
    /// Whether the variant was settled by tuning and goes by the clusterer's plain name.
    pub(crate) settled: bool,
}

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

impl Cell {
    pub(crate) fn variant<'p>(&self, plan: &'p Plan) -> &'p Variant {
        &plan.clusterers[self.clusterer].variants[self.variant]
    }

    /// The name in tables.
    pub(crate) fn label<'p>(&self, plan: &'p Plan) -> &'p str {
        if self.settled { &plan.clusterers[self.clusterer].name } else { &self.variant(plan).label }
    }

    pub(crate) fn seed(&self, plan: &Plan) -> u64 {
        let data = &plan.data[self.data];
        let trial = data.dataset.trials[self.trial].number.to_string();
        derive_seed(plan.seed, &[&data.name, &trial, &plan.clusterers[self.clusterer].name])
    }

    pub(crate) fn key(&self, plan: &Plan) -> String {
        let dataset = &plan.data[self.data].dataset;
        let trial = &dataset.trials[self.trial];
        cell::key(&plan.setting, &self.variant(plan).recipe, trial, dataset.dim, self.seed(plan))
    }

    fn about(&self, plan: &Plan) -> String {
        let data = &plan.data[self.data];
        format!("{} trial {} {}", data.name, data.dataset.trials[self.trial].number, self.label(plan))
    }
}

/// How to run.
#[derive(Debug)]
pub(crate) struct RunOptions {
    pub(crate) out: PathBuf,
    pub(crate) jobs: usize,
    pub(crate) fresh: bool,
    pub(crate) strict: bool,
}

/// Cells of the data for which `wanted` holds.
fn cells(plan: &Plan, wanted: impl Fn(usize, usize, usize) -> Option<bool>) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (data, loaded) in plan.data.iter().enumerate() {
        for (clusterer, planned) in plan.clusterers.iter().enumerate() {
            for variant in 0..planned.variants.len() {
                let Some(settled) = wanted(data, clusterer, variant) else { continue };
                let trials = 0..loaded.dataset.trials.len();
                cells.extend(trials.map(|trial| Cell { data, trial, clusterer, variant, settled }));
            }
        }
    }
    cells
}

/// The cells that settle grids.
pub(crate) fn tuning_cells(plan: &Plan) -> Vec<Cell> {
    let Some(tune) = &plan.tune else { return Vec::new() };
    cells(plan, |data, clusterer, _| {
        (data == tune.data && plan.clusterers[clusterer].variants.len() > 1).then_some(false)
    })
}

/// The cells of the experiment itself, with the variant chosen for every clusterer that was tuned.
pub(crate) fn test_cells(plan: &Plan, chosen: &BTreeMap<usize, usize>) -> Vec<Cell> {
    let tuned = plan.tune.is_some();
    cells(plan, |data, clusterer, variant| {
        let one = plan.clusterers[clusterer].variants.len() == 1;
        match (plan.data[data].tunes, tuned && !one) {
            (true, _) => None,
            (false, false) => Some(false),
            (false, true) => (chosen.get(&clusterer) == Some(&variant)).then_some(true),
        }
    })
}

/// What a run leaves in memory.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) rows: Vec<Row>,
    pub(crate) summary: Vec<Summary>,
    pub(crate) interrupted: bool,
}

/// Runs everything that is not kept from an earlier run, and writes the tables.
///
/// # Errors
/// If the results folder cannot be used, or the tables cannot be written.
pub(crate) fn run(plan: &Arc<Plan>, options: &RunOptions) -> Result<Finished, Failure> {
    let folder = ResultsFolder::open(plan, options)?;
    let cache = Arc::new(Cache::open(&options.out).map_err(|error| unwritable(&options.out, &error))?);
    let mut record = RunRecord::new(plan, options);
    if !options.out.join("run.json").exists() {
        // Marks the folder as ours. An earlier record stays until the tables that it describes are replaced.
        write_record(&options.out, &record).map_err(|error| unwritable(&options.out, &error))?;
    }
    let tuning = tuning_cells(plan);
    let total = tuning.len() + test_cells(plan, &assume_first(plan)).len();
    let bar = plan.environment.terminal.count("cells", total);
    let mut rows = execute(plan, &cache, options, tuning, &bar);
    let mut chosen = BTreeMap::new();
    if !interrupt::requested() {
        chosen = settle(plan, &rows);
        announce(plan, &chosen);
    }
    let tested = execute(plan, &cache, options, test_cells(plan, &chosen), &bar);
    rows.extend(tested);
    if !interrupt::requested() {
        rows.extend(unsettled(plan, &chosen, &rows));
    }
    bar.finish_and_clear();
    plan.environment.terminal.sum_up_warnings();
    let interrupted = interrupt::requested();
    record.finish(plan, &rows, &chosen, interrupted);
    let summary = summarize(plan, &rows);
    crate::tables::write(plan, &rows, &summary, &options.out).map_err(|error| {
        Failure::run(format!("{}: {error}; finished cells are kept, run again to continue", options.out.display()))
    })?;
    write_record(&options.out, &record).map_err(|error| unwritable(&options.out, &error))?;
    drop(folder);
    Ok(Finished { rows, summary, interrupted })
}

fn unwritable(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::run(format!("cannot write to {}: {}", folder.display(), plain(error)))
}

/// To count cells before it is known which variant tuning chooses.
pub(crate) fn assume_first(plan: &Plan) -> BTreeMap<usize, usize> {
    (0..plan.clusterers.len()).map(|clusterer| (clusterer, 0)).collect()
}

/// The results folder, ours alone while this lives.
struct ResultsFolder {
    _lock: File,
}

impl ResultsFolder {
    fn open(plan: &Plan, options: &RunOptions) -> Result<Self, Failure> {
        let folder = &options.out;
        let about = |text: String| Failure::request(format!("{} {text}", folder.display()));
        match std::fs::read(folder.join("run.json")) {
            Ok(bytes) => {
                let earlier: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
                let Some(name) = earlier.get("name").and_then(serde_json::Value::as_str) else {
                    return Err(about(
                        "holds a run.json that is not ours: choose another folder with --out".to_owned(),
                    ));
                };
                if name != plan.name {
                    return Err(about(format!(
                        "holds the results of the pipeline `{name}`, and this is `{}`: choose another folder with --out",
                        plan.name
                    )));
                }
            }
            Err(_) => {
                let others = std::fs::read_dir(folder).into_iter().flatten().flatten();
                // A run that was killed early leaves these behind.
                let ours = |name: &str| name == ".lock" || name == "cells" || name.ends_with(".tmp");
                let foreign = others.map(|entry| entry.file_name()).find(|name| !ours(&name.to_string_lossy()));
                if let Some(name) = foreign {
                    return Err(about(format!(
                        "is no results folder: it holds {}; choose another folder with --out",
                        name.to_string_lossy()
                    )));
                }
            }
        }
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        let lock = File::create(folder.join(".lock")).map_err(|error| unwritable(folder, &error))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(about("is in use by another run of compflow".to_owned()));
            }
            // A file system without locks: better to run unprotected than not at all.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        Ok(Self { _lock: lock })
    }
}

/// Runs cells on `jobs` threads; returns their rows in the order of the cells. Ends soon after Ctrl-C, even if a
/// component does not look at the flag: its thread is left behind.
fn execute(
    plan: &Arc<Plan>,
    cache: &Arc<Cache>,
    options: &RunOptions,
    cells: Vec<Cell>,
    bar: &indicatif::ProgressBar,
) -> Vec<Row> {
    let cells: Arc<[Cell]> = cells.into();
    let next = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = mpsc::channel();
    for _ in 0..options.jobs.clamp(1, cells.len().max(1)) {
        let (plan, cache, cells, next, sender) =
            (plan.clone(), cache.clone(), cells.clone(), next.clone(), sender.clone());
        let (fresh, strict) = (options.fresh, options.strict);
        std::thread::spawn(move || {
            while !interrupt::requested() {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(cell) = cells.get(at) else { break };
                // A fault of our own must not take the cells with it that this thread would have run.
                let row = catch_unwind(AssertUnwindSafe(|| compute(&plan, &cache, *cell, fresh, strict)));
                let row = row.unwrap_or_else(|_| Row {
                    cell: *cell,
                    outcome: None,
                    error: Some("compflow itself panicked; please report this".to_owned()),
                    kept: false,
                });
                if sender.send((at, row)).is_err() {
                    break;
                }
            }
        });
    }
    drop(sender);
    let mut rows: Vec<Row> =
        cells.iter().map(|cell| Row { cell: *cell, outcome: None, error: None, kept: false }).collect();
    let mut deadline = None;
    loop {
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok((at, row)) => {
                rows[at] = row;
                bar.inc(1);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if interrupt::requested() && Instant::now() > *deadline.get_or_insert_with(|| Instant::now() + GRACE) {
            break;
        }
    }
    if interrupt::requested() {
        // What earlier runs have kept is not missing from the tables because this one was stopped.
        for row in rows.iter_mut().filter(|row| row.outcome.is_none() && row.error.is_none()) {
            let trial = &plan.data[row.cell.data].dataset.trials[row.cell.trial];
            row.outcome = cache.load(&row.cell.key(plan)).filter(|kept| kept.is_scored(&plan.setting, trial));
            row.kept = true;
        }
    }
    rows
}

/// A cell's outcome, from the cache or computed, with all scores; or why not. Neither if it was cancelled.
fn compute(plan: &Plan, cache: &Cache, cell: Cell, fresh: bool, strict: bool) -> Row {
    let dataset = &plan.data[cell.data].dataset;
    let trial = &dataset.trials[cell.trial];
    let (key, about) = (cell.key(plan), cell.about(plan));
    let terminal = &plan.environment.terminal;
    let kept = if fresh { None } else { cache.load(&key) };
    let mut row = Row { cell, outcome: None, error: None, kept: kept.is_some() };
    let mut changed = kept.is_none();
    let outcome = match kept {
        Some(outcome) => {
            outcome.repeat_warnings(terminal, &about);
            Ok(outcome)
        }
        None => cell::run(
            &plan.environment,
            &plan.setting,
            &cell.variant(plan).recipe,
            cell::Examples { trial, dim: dataset.dim, streamed: plan.data[cell.data].streamed.as_ref() },
            cell.seed(plan),
            &about,
        ),
    };
    let mut outcome = match outcome {
        Ok(outcome) => outcome,
        Err(Error::Cancelled) => return row,
        Err(Error::Failed(text)) => {
            terminal.error(&about, &text);
            row.error = Some(text);
            return row;
        }
    };
    let wandering = (!outcome.clustering.diagnostics.converged)
        .then(|| format!("did not converge in {} iterations", outcome.clustering.diagnostics.iterations));
    // Many methods say so themselves, and what would help.
    let said = outcome.warnings.iter().any(|warning| warning.contains("did not converge"));
    if let Some(text) = wandering.as_ref().filter(|_| changed && !said) {
        terminal.log(Level::Warn, &about, text);
        outcome.warnings.push(text.clone());
    }
    let (added, failed) = outcome.score(&plan.environment, &plan.setting, trial, &about);
    changed |= added;
    if changed && let Err(error) = cache.store(&key, &outcome) {
        // The result is still in memory and goes into the tables; only a second run has to compute it again.
        terminal.log(Level::Warn, &about, &format!("the finished cell cannot be kept: {}", plain(&error)));
    }
    match failed {
        Some(Error::Cancelled) => return row,
        Some(Error::Failed(text)) => {
            terminal.error(&about, &text);
            row.error = Some(text);
        }
        None => {}
    }
    if let Some(text) = wandering.filter(|_| strict) {
        // Failed means failed: its scores neither choose a grid point nor enter a mean.
        outcome.scores.clear();
        terminal.error(&about, &text);
        row.error = Some(text);
    }
    row.outcome = Some(outcome);
    row
}

/// For every tuned clusterer the variant with the best mean of the tuning metric; the first of equals. Variants that
/// failed on any trial are not chosen.
pub(crate) fn settle(plan: &Plan, rows: &[Row]) -> BTreeMap<usize, usize> {
    let Some(tune) = &plan.tune else { return BTreeMap::new() };
    let mut scores: BTreeMap<(usize, usize), Vec<Option<f64>>> = BTreeMap::new();
    for row in rows {
        let trial = &plan.data[row.cell.data].dataset.trials[row.cell.trial];
        let score = row.outcome.as_ref().filter(|_| row.error.is_none()).and_then(|outcome| {
            outcome
                .scores(&plan.setting, trial)
                .find(|(name, _)| *name == tune.metric.name)
                .map(|(_, value)| *value)
        });
        scores.entry((row.cell.clusterer, row.cell.variant)).or_default().push(score);
    }
    let mut best: BTreeMap<usize, (f64, usize)> = BTreeMap::new();
    for ((clusterer, variant), scores) in scores {
        let Some(scores) = scores.into_iter().collect::<Option<Vec<f64>>>() else { continue };
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        let merit = if tune.metric.larger_is_better { mean } else { -mean };
        if best.get(&clusterer).is_none_or(|(known, _)| merit > *known) {
            best.insert(clusterer, (merit, variant));
        }
    }
    best.into_iter().map(|(clusterer, (_, variant))| (clusterer, variant)).collect()
}

/// Says what tuning chose.
fn announce(plan: &Plan, chosen: &BTreeMap<usize, usize>) {
    for (clusterer, variant) in chosen {
        let planned = &plan.clusterers[*clusterer];
        let choice = planned.variants[*variant].label.strip_prefix(planned.name.as_str()).unwrap_or_default();
        plan.environment.terminal.say(&format!("tuned {}:{choice}", planned.name));
    }
}

/// Rows for the cells of clusterers that tuning could not settle, so that they are missing nowhere.
fn unsettled(plan: &Plan, chosen: &BTreeMap<usize, usize>, rows: &[Row]) -> Vec<Row> {
    if plan.tune.is_none() {
        return Vec::new();
    }
    let first = assume_first(plan);
    let missing = first.into_iter().filter(|(clusterer, _)| {
        plan.clusterers[*clusterer].variants.len() > 1 && !chosen.contains_key(clusterer)
    });
    test_cells(plan, &missing.collect())
        .into_iter()
        .filter(|cell| cell.settled)
        .map(|cell| {
            let why = rows.iter().find(|row| row.cell.clusterer == cell.clusterer && row.error.is_some());
            let why = why.and_then(|row| row.error.as_deref()).unwrap_or("no grid point was scored");
            let error = Some(format!("every grid point failed on some tuning trial: {why}"));
            Row { cell, outcome: None, error, kept: false }
        })
        .collect()
}
