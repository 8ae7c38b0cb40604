//! `run.json`: what was run, on what, with what.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::check::Plan;
use crate::files::write_whole;
use crate::registry::State;
use crate::run::{Row, RunOptions};

/// Everything needed to say what a results folder holds, and to make it again.
#[derive(Debug, Serialize)]
pub(crate) struct RunRecord {
    name: String,
    compflow: &'static str,
    abi_version: u32,
    file: String,
    /// The pipeline with `--set` laid over it.
    pipeline: serde_json::Value,
    /// What tuning chose: clusterer and parameters.
    tuned: BTreeMap<String, serde_json::Value>,
    seed: u64,
    only: Vec<String>,
    strict: bool,
    jobs: usize,
    threads: usize,
    memory_bytes: u64,
    host: HostRecord,
    /// BLAKE3 of every file that results depend on.
    inputs: BTreeMap<String, String>,
    libraries: Vec<LibraryRecord>,
    /// Seconds since 1970.
    started: f64,
    /// `None` while it runs, or if it was killed.
    finished: Option<f64>,
    interrupted: bool,
    cells: usize,
    failed: usize,
}

#[derive(Debug, Serialize)]
struct HostRecord {
    os: &'static str,
    arch: &'static str,
    cores: usize,
}

#[derive(Debug, Serialize)]
struct LibraryRecord {
    path: String,
    name: String,
    version: String,
    blake3: String,
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
            compflow: env!("CARGO_PKG_VERSION"),
            abi_version: compflow_api::abi::ABI_VERSION,
            file: plan.file.display().to_string(),
            pipeline: plan.resolved.clone(),
            tuned: BTreeMap::new(),
            seed: plan.seed,
            only: plan.only.clone(),
            strict: options.strict,
            jobs: options.jobs,
            threads: plan.setting.threads,
            memory_bytes: plan.setting.memory,
            host: HostRecord {
                os: std::env::consts::OS,
                arch: std::env::consts::ARCH,
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
