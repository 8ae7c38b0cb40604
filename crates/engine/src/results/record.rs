//! `run.json`: what was run, on what, with what.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compflow_api::{Metric, Unit};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::{plain, sealed};
use crate::plan::Plan;
use crate::plan::cell::Chosen;
use crate::plan::resources::cores;
use crate::plugin::{Known, State};
use crate::run::generation::{RECORD, Tables, read_record};
use crate::run::heartbeat::now;
use crate::run::manifest::fingerprint;
use crate::run::row::Row;

/// How often a folder is looked at again whose record has changed meanwhile: runs write one a few times a second at most.
const ATTEMPTS: usize = 100;

/// Everything needed to say what a results folder holds, and to make it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    /// BLAKE3 of every file that went along in the results folder, by its name there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept_inputs: BTreeMap<String, String>,
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
    /// What tells it from runs of other pipelines, components and data that share the folder.
    #[serde(default)]
    pub fingerprint: String,
    /// BLAKE3 of every table; none while the run has no tables yet.
    #[serde(default)]
    pub tables: BTreeMap<String, String>,
    /// BLAKE3 of this record with zeros in the place of the checksum.
    #[serde(default, skip_serializing)]
    pub checksum: String,
}

/// A metric, and which way is better.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostRecord {
    /// The operating system.
    pub os: String,
    /// The processor.
    pub arch: String,
    /// How many threads it runs at the same time.
    pub cores: usize,
}

/// A data set that was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DataRecord {
    /// The files it is from; none if it was made up.
    pub files: Vec<String>,
    /// Hash of what was read from them: embeddings, true sets, trials and identifiers.
    pub blake3: String,
}

/// A library that was loaded.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
            State::Known(Known { description, .. }) => Some(LibraryRecord {
                path: file.path.display().to_string(),
                name: description.name.clone(),
                version: description.version.clone(),
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
            kept_inputs: BTreeMap::new(),
            libraries: libraries.collect(),
            started: now(),
            finished: None,
            interrupted: false,
            cells: 0,
            failed: 0,
            fingerprint: fingerprint(plan),
            tables: BTreeMap::new(),
            checksum: String::new(),
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

impl RunRecord {
    /// As it stands in `run.json`, with its checksum.
    ///
    /// # Errors
    /// If a number in it cannot be written.
    pub(crate) fn to_json(&self) -> serde_json::Result<String> {
        Ok(sealed::seal(&serde_json::to_string_pretty(self)?))
    }

    /// Reads the record of a results folder.
    ///
    /// # Errors
    /// If there is none, or it is not what was written.
    pub fn read(folder: &Path) -> Result<Self> {
        Self::from_json(&Self::bytes(folder)?, &folder.join(RECORD))
    }

    fn bytes(folder: &Path) -> Result<Vec<u8>> {
        read_record(folder).map_err(|error| {
            Error::request(format!(
                "{} is no results folder: {RECORD}: {}; `compflow runs` lists those that there are",
                folder.display(),
                plain(&error)
            ))
        })
    }

    /// The record of a results folder and the tables that it tells of, even if a run replaces both at this moment.
    ///
    /// # Errors
    /// If there is no record, or it is not what was written.
    pub(super) fn read_with_tables(folder: &Path) -> Result<(Self, Tables)> {
        let mut bytes = Self::bytes(folder)?;
        for _ in 0..ATTEMPTS {
            let record = Self::from_json(&bytes, &folder.join(RECORD))?;
            let tables = Tables::open_all(folder, &record.tables);
            let now = Self::bytes(folder)?;
            if now == bytes {
                return Ok((record, tables));
            }
            bytes = now;
        }
        Err(Error::run(format!("{} is written anew again and again; try later", folder.display())))
    }

    /// The record in the bytes of the file at `path`.
    ///
    /// # Errors
    /// If they are not what was written.
    pub(crate) fn from_json(bytes: &[u8], path: &Path) -> Result<Self> {
        let no_record = |why: &str| Error::request(format!("{} is no record of a run: {why}", path.display()));
        let record: Self = serde_json::from_slice(bytes).map_err(|error| no_record(&error.to_string()))?;
        match sealed::is_intact(bytes) {
            Some(true) => Ok(record),
            Some(false) => Err(Error::request(format!(
                "{} is not what the run wrote: it was damaged or changed since; run the pipeline again, finished cells are kept",
                path.display()
            ))),
            None => Err(no_record("it has no checksum; run the pipeline again, finished cells are kept")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_record_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let record: RunRecord = serde_json::from_value(serde_json::json!({
            "name": "small", "compflow": "0.1.0", "abi_version": 1, "file": "small.toml", "pipeline": {}, "tuned": {},
            "seed": 1, "only": [], "strict": false, "jobs": 2, "threads": 1, "memory_bytes": 1000,
            "host": { "os": "linux", "arch": "x86_64", "cores": 2 }, "inputs": {}, "libraries": [], "started": 1.5,
            "finished": 2.5, "interrupted": false, "cells": 3, "failed": 0, "tables": { "runs": "ab" },
        }))
        .unwrap();
        let json = record.to_json().unwrap();
        let path = folder.path().join(RECORD);
        std::fs::write(&path, format!("{json}\n")).unwrap();
        assert_eq!(RunRecord::read(folder.path()).unwrap().seed, 1);
        for at in 0..json.len() {
            for bit in 0..8 {
                let mut bytes = json.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                std::fs::write(&path, &bytes).unwrap();
                assert!(RunRecord::read(folder.path()).is_err(), "bit {bit} of byte {at}");
            }
        }
    }
}
