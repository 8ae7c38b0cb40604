//! `run.json`: what was run, on what, with what.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use compflow_api::Metric;
use serde::{Deserialize, Serialize};

use crate::check::Plan;
use crate::files::write_whole;
use crate::registry::State;
use crate::run::{Row, RunOptions};

/// Everything needed to say what a results folder holds, and to make it again.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    pub(crate) name: String,
    pub(crate) compflow: String,
    pub(crate) abi_version: u32,
    pub(crate) file: String,
    /// The absolute folder that paths in the pipeline are relative to.
    #[serde(default)]
    pub(crate) folder: PathBuf,
    /// The pipeline with `--set` laid over it.
    pub(crate) pipeline: serde_json::Value,
    /// What the evaluators reported, in their order.
    #[serde(default)]
    pub(crate) metrics: Vec<MetricRecord>,
    /// The clusterers that are given the truth.
    #[serde(default)]
    pub(crate) oracles: Vec<String>,
    /// What tuning chose: clusterer and parameters.
    pub(crate) tuned: BTreeMap<String, serde_json::Value>,
    pub(crate) seed: u64,
    pub(crate) only: Vec<String>,
    pub(crate) strict: bool,
    pub(crate) jobs: usize,
    pub(crate) threads: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) host: HostRecord,
    /// BLAKE3 of every file that results depend on.
    pub(crate) inputs: BTreeMap<String, String>,
    pub(crate) libraries: Vec<LibraryRecord>,
    /// Seconds since 1970.
    pub(crate) started: f64,
    /// `None` while it runs, or if it was killed.
    pub(crate) finished: Option<f64>,
    pub(crate) interrupted: bool,
    pub(crate) cells: usize,
    pub(crate) failed: usize,
}

/// A metric, and which way is better.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MetricRecord {
    pub(crate) name: String,
    pub(crate) larger_is_better: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostRecord {
    pub(crate) os: String,
    pub(crate) arch: String,
    pub(crate) cores: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LibraryRecord {
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) blake3: String,
}

impl From<&Metric> for MetricRecord {
    fn from(metric: &Metric) -> Self {
        Self { name: metric.name.clone(), larger_is_better: metric.larger_is_better }
    }
}

impl RunRecord {
    pub(crate) fn new(plan: &Plan, options: &RunOptions) -> Self {
        let libraries = plan.environment.registry.libraries.iter().filter_map(|found| match &found.state {
            State::Loaded(library) => Some(LibraryRecord {
                path: found.path.display().to_string(),
                name: library.name.clone(),
                version: library.version.clone(),
                blake3: found.hash().unwrap_or_default().to_owned(),
            }),
            _ => None,
        });
        Self {
            name: plan.name.clone(),
            compflow: env!("CARGO_PKG_VERSION").to_owned(),
            abi_version: compflow_api::abi::ABI_VERSION,
            file: plan.file.display().to_string(),
            folder: plan.environment.folder.clone(),
            pipeline: plan.resolved.clone(),
            metrics: plan.metrics.iter().map(MetricRecord::from).collect(),
            oracles: plan
                .clusterers
                .iter()
                .filter(|planned| planned.knows_truth())
                .map(|planned| planned.name.clone())
                .collect(),
            tuned: BTreeMap::new(),
            seed: plan.seed,
            only: plan.only.clone(),
            strict: options.strict,
            jobs: options.jobs,
            threads: plan.setting.threads,
            memory_bytes: plan.setting.memory,
            host: HostRecord {
                os: std::env::consts::OS.to_owned(),
                arch: std::env::consts::ARCH.to_owned(),
                cores: std::thread::available_parallelism().map_or(1, usize::from),
            },
            inputs: BTreeMap::new(),
            libraries: libraries.collect(),
            started: now(),
            finished: None,
            interrupted: false,
            cells: 0,
            failed: 0,
        }
    }

    pub(crate) fn finish(
        &mut self,
        plan: &Plan,
        rows: &[Row],
        chosen: &BTreeMap<usize, usize>,
        interrupted: bool,
    ) {
        for (clusterer, variant) in chosen {
            let planned = &plan.clusterers[*clusterer];
            let params = serde_json::from_str(&planned.variants[*variant].params).unwrap_or_default();
            self.tuned.insert(planned.name.clone(), params);
        }
        let inputs = plan.environment.inputs.all();
        self.inputs = inputs.into_iter().map(|(path, hash)| (path.display().to_string(), hash)).collect();
        self.finished = Some(now());
        self.interrupted = interrupted;
        self.cells = rows.len();
        self.failed = rows.iter().filter(|row| row.error.is_some()).count();
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

/// Writes `run.json`.
///
/// # Errors
/// If the folder cannot be written to.
pub(crate) fn write_record(folder: &Path, record: &RunRecord) -> io::Result<()> {
    let json = serde_json::to_string_pretty(record)?;
    write_whole(&folder.join("run.json"), true, |file| writeln!(file, "{json}"))
}
