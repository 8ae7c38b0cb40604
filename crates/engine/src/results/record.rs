//! `run.json`: what was run, on what, with what.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use compflow_api::{Metric, Unit};
use serde::{Deserialize, Serialize};

use crate::files::write_whole;
use crate::plan::Plan;
use crate::plan::cell::Chosen;
use crate::plan::resources::cores;
use crate::plugin::State;
use crate::run::heartbeat::now;
use crate::run::row::Row;

/// Everything needed to say what a results folder holds, and to make it again.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// The pipeline's name.
    pub name: String,
    /// The version of compflow.
    pub compflow: String,
    /// The version of the plugin interface.
    pub abi_version: u32,
    /// The pipeline file, as it was named.
    pub file: String,
    /// The absolute folder that paths in the pipeline are relative to.
    #[serde(default)]
    pub folder: PathBuf,
    /// The pipeline with `--set` laid over it.
    pub pipeline: serde_json::Value,
    /// What the evaluators reported, in their order.
    #[serde(default)]
    pub metrics: Vec<MetricRecord>,
    /// The clusterers that are given the truth, as they are called in tables.
    #[serde(default)]
    pub oracles: Vec<String>,
    /// What tuning chose: clusterer and parameters.
    pub tuned: BTreeMap<String, serde_json::Value>,
    /// The source of all randomness.
    pub seed: u64,
    /// The clusterers and data that were wanted; empty means all.
    pub only: Vec<String>,
    /// Whether a method that did not converge counted as failed.
    pub strict: bool,
    /// How many cells ran at the same time.
    pub jobs: usize,
    /// How many threads a cell could use.
    pub threads: usize,
    /// How many bytes a cell could use.
    pub memory_bytes: u64,
    /// The machine.
    pub host: HostRecord,
    /// The data, by name.
    #[serde(default)]
    pub data: BTreeMap<String, DataRecord>,
    /// BLAKE3 of every other file that results depend on.
    pub inputs: BTreeMap<String, String>,
    /// Every library that was loaded.
    pub libraries: Vec<LibraryRecord>,
    /// Seconds since 1970.
    pub started: f64,
    /// `None` while it runs, or if it was killed.
    pub finished: Option<f64>,
    /// Whether somebody stopped it.
    pub interrupted: bool,
    /// How many cells it has.
    pub cells: usize,
    /// How many of them failed.
    pub failed: usize,
}

/// A metric, and which way is better.
#[derive(Debug, Serialize, Deserialize)]
pub struct MetricRecord {
    /// Its name.
    pub name: String,
    /// Whether more of it is better.
    pub larger_is_better: bool,
    /// What it counts in.
    #[serde(default = "share")]
    pub unit: Unit,
    /// The smallest and the largest value there can be; `None` if there is no bound.
    #[serde(default)]
    pub range: (Option<f64>, Option<f64>),
}

/// A machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostRecord {
    /// The operating system.
    pub os: String,
    /// The processor.
    pub arch: String,
    /// How many threads it runs at the same time.
    pub cores: usize,
}

/// A data set that was read.
#[derive(Debug, Serialize, Deserialize)]
pub struct DataRecord {
    /// The files it is from; none if it was made up.
    pub files: Vec<String>,
    /// Hash of what was read from them: embeddings, true sets, trials and identifiers.
    pub blake3: String,
}

/// A library that was loaded.
#[derive(Debug, Serialize, Deserialize)]
pub struct LibraryRecord {
    /// The file.
    pub path: String,
    /// What it calls itself.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// Hash of the file's content.
    pub blake3: String,
}

/// Before units were recorded, all were shares.
fn share() -> Unit {
    Unit::Share
}

impl From<&Metric> for MetricRecord {
    fn from(metric: &Metric) -> Self {
        let bound = |value: f64| Some(value).filter(|value| value.is_finite());
        Self {
            name: metric.name.clone(),
            larger_is_better: metric.larger_is_better,
            unit: metric.unit,
            range: (bound(metric.range.0), bound(metric.range.1)),
        }
    }
}

impl RunRecord {
    /// Of a run that starts now.
    pub(crate) fn new(plan: &Plan, strict: bool) -> Self {
        let libraries = plan.factory.registry.libraries.iter().filter_map(|file| match &file.state {
            State::Loaded(library) => Some(LibraryRecord {
                path: file.path.display().to_string(),
                name: library.name.clone(),
                version: library.version.clone(),
                blake3: file.hash().unwrap_or_default().to_owned(),
            }),
            _ => None,
        });
        Self {
            name: plan.name.clone(),
            compflow: env!("CARGO_PKG_VERSION").to_owned(),
            abi_version: compflow_api::abi::ABI_VERSION,
            file: plan.file.display().to_string(),
            folder: plan.factory.folder.clone(),
            pipeline: plan.resolved.clone(),
            metrics: plan.metrics.iter().map(MetricRecord::from).collect(),
            oracles: plan.oracles(),
            tuned: BTreeMap::new(),
            seed: plan.seed,
            only: plan.only.clone(),
            strict,
            jobs: plan.jobs,
            threads: plan.setting.threads,
            memory_bytes: plan.setting.memory,
            host: HostRecord {
                os: std::env::consts::OS.to_owned(),
                arch: std::env::consts::ARCH.to_owned(),
                cores: cores(),
            },
            data: plan
                .data
                .iter()
                .map(|data| {
                    let files = data.files.iter().map(|file| file.display().to_string()).collect();
                    (data.name.clone(), DataRecord { files, blake3: data.dataset.content.clone() })
                })
                .collect(),
            inputs: BTreeMap::new(),
            libraries: libraries.collect(),
            started: now(),
            finished: None,
            interrupted: false,
            cells: 0,
            failed: 0,
        }
    }

    /// Adds what became of it.
    pub(crate) fn finish(&mut self, plan: &Plan, rows: &[Row], chosen: &Chosen, interrupted: bool) {
        for (clusterer, variant) in chosen {
            let planned = &plan.clusterers[*clusterer];
            let params = serde_json::from_str(&planned.variants[*variant].params).unwrap_or_default();
            self.tuned.insert(planned.name.clone(), params);
        }
        let inputs = plan.factory.inputs.all();
        self.inputs = inputs.into_iter().map(|(path, hash)| (path.display().to_string(), hash)).collect();
        self.finished = Some(now());
        self.interrupted = interrupted;
        self.cells = rows.len();
        self.failed = rows.iter().filter(|row| row.error.is_some()).count();
    }
}

/// Writes `run.json`.
///
/// # Errors
/// If the folder cannot be written to.
pub(crate) fn write_record(folder: &Path, record: &RunRecord) -> io::Result<()> {
    let json = serde_json::to_string_pretty(record)?;
    write_whole(&folder.join("run.json"), true, |file| writeln!(file, "{json}"))
}
