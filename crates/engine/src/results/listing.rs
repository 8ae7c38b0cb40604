//! All results folders in a folder, each with what a person wants to know before opening one.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::lead::lead;
use super::read::Results;
use super::record::RunRecord;
use super::units::score_text;
use crate::error::{Error, Result};
use crate::files::plain;
use crate::run::folder::is_in_use;
use crate::run::generation::{RECORD, place};
use crate::run::heartbeat::now;

/// How deep results folders may lie below the folder that is looked into.
const DEPTH: usize = 3;

/// A results folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed {
    /// Where it is.
    pub folder: PathBuf,
    /// What became of the run.
    pub state: RunState,
    /// The pipeline's name and file; empty if the record cannot be read.
    pub pipeline: String,
    /// The pipeline file, as it was named.
    pub file: String,
    /// Seconds since it ended, or began if it has not.
    pub age: f64,
    /// How many cells it has, and how many of them failed.
    pub cells: usize,
    /// How many of them failed.
    pub failed: usize,
    /// The method with the best mean of the leading metric, if there are scores.
    pub best: Option<Best>,
}

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// All cells have ended.
    Finished,
    /// It is at work.
    Running,
    /// Somebody stopped it; running it again continues.
    Interrupted,
    /// It began and did not end: running it again continues.
    Unfinished,
    /// Its record or a table is not what was written; running it again mends that.
    Damaged,
}

/// The best method of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    /// The clusterer, or a point of its grids; none that is given the truth.
    pub clusterer: String,
    /// The leading metric.
    pub metric: String,
    /// Its mean over all trials of all data.
    pub mean: f64,
    /// The mean as people read it.
    pub shown: String,
}

/// The results folders in a folder, the latest first.
///
/// # Errors
/// If the folder cannot be read.
pub fn list_runs(folder: &Path) -> Result<Vec<Listed>> {
    let mut found = Vec::new();
    std::fs::read_dir(folder)
        .map_err(|error| Error::request(format!("cannot look into {}: {}", folder.display(), plain(&error))))?;
    look(folder, DEPTH, &mut found);
    found.sort_by(|a, b| a.age.total_cmp(&b.age));
    Ok(found)
}

fn look(folder: &Path, depth: usize, found: &mut Vec<Listed>) {
    if place(folder, RECORD).exists() {
        // Any program may call a file run.json.
        found.extend(listed(folder));
    } else if depth > 0 {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            // A generation that is being written is no run of its own, nor is anything else that is hidden.
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            // A link might lead anywhere, and back here.
            if !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                look(&entry.path(), depth - 1, found);
            }
        }
    }
}

fn listed(folder: &Path) -> Option<Listed> {
    let running = is_in_use(folder);
    let Ok(record) = RunRecord::read(folder) else {
        let modified = std::fs::metadata(place(folder, RECORD)).and_then(|file| file.modified());
        let age = modified.ok().and_then(|time| time.elapsed().ok()).map_or(0.0, |age| age.as_secs_f64());
        let is_ours = folder.join("runs.parquet").exists() || folder.join("cells").is_dir();
        let state = if running { RunState::Running } else { RunState::Damaged };
        let (folder, pipeline, file) = (folder.to_owned(), String::new(), String::new());
        return is_ours.then_some(Listed { folder, state, pipeline, file, age, cells: 0, failed: 0, best: None });
    };
    let results = record.finished.map(|_| Results::open(folder));
    let state = match (&results, record.interrupted) {
        _ if running => RunState::Running,
        (None, _) => RunState::Unfinished,
        (_, true) => RunState::Interrupted,
        // A run without cells has tables that nothing can be read from, and nothing is wrong with them.
        (Some(Err(_)), _) if record.cells > 0 => RunState::Damaged,
        (Some(_), false) => RunState::Finished,
    };
    Some(Listed {
        folder: folder.to_owned(),
        state,
        pipeline: record.name.clone(),
        file: record.file.clone(),
        age: now() - record.finished.unwrap_or(record.started),
        cells: record.cells,
        failed: record.failed,
        best: results.and_then(Result::ok).and_then(|results| best(&results)),
    })
}

fn best(results: &Results) -> Option<Best> {
    let metrics = results.metrics();
    let metric = lead(&metrics)?;
    let data = results.data();
    let scored = results.clusterers().into_iter().filter(|clusterer| !results.is_oracle(clusterer));
    let scored = scored.filter_map(|clusterer| {
        let scores: Vec<f64> =
            data.iter().flat_map(|data| results.scores(data, clusterer, metric).into_values()).collect();
        (!scores.is_empty()).then(|| (clusterer, scores.iter().sum::<f64>() / scores.len() as f64))
    });
    let larger = results.larger_is_better(metric);
    let (clusterer, mean) =
        scored.max_by(|(_, a), (_, b)| if larger { a.total_cmp(b) } else { b.total_cmp(a) })?;
    let shown = score_text(results.unit(metric), mean);
    Some(Best { clusterer: clusterer.to_owned(), metric: metric.to_owned(), mean, shown })
}
