//! What parts tell others about the cells of a plan, so that nobody has to plan again to see how far they are.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::folder::{LARGEST, PARTS, inside};
use super::outcome::{Outcome, score_key};
use super::part::Phase;
use super::stability;
use crate::files::{hash_parts, read_file, sealed, write_file};
use crate::pipeline;
use crate::plan::Plan;
use crate::plan::cell::{Cell, Chosen, assume_first, test_cells, tuning_cells};
use crate::plugin::{State, trust};

/// What the files are called that hold one.
pub(super) const CELLS: &str = "cells";

/// The cells of one phase of a plan. Everybody who plans the same writes the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) phase: Phase,
    /// What the pipeline is called.
    #[serde(default)]
    pub(super) name: String,
    /// The key of the pipeline, which is known without planning.
    pub(super) pipeline: String,
    /// The version of compflow.
    pub(super) compflow: String,
    /// What else results depend on, by name: the content of libraries and data.
    pub(super) libraries: BTreeMap<String, String>,
    pub(super) data: BTreeMap<String, String>,
    /// For every cell the keys that it may be kept under, one for each value that can be selected; the first stands for the
    /// cell itself. None if tuning has not chosen yet.
    pub(super) cells: Vec<Vec<String>>,
    /// For every cell that selects, under what is kept how good each of these values is.
    #[serde(default)]
    pub(super) measured: Vec<Vec<String>>,
    /// For every cell that settles grids, under what it has its scores: without these it has not ended.
    #[serde(default)]
    pub(super) scored: Vec<Vec<String>>,
}

/// What tells plans from one another that share a folder: pipeline, components and data.
pub(crate) fn fingerprint(plan: &Plan) -> String {
    let pipeline = pipeline::key(&plan.resolved, &plan.only);
    let composer = plan.setting.composer.iter().map(|composer| &composer.recipe);
    let clusterers = plan.clusterers.iter().flat_map(|planned| planned.setups()).map(|setup| &setup.recipe);
    let evaluators = plan.setting.evaluators.iter().map(|evaluator| &evaluator.shared.recipe);
    let recipes = composer.chain(clusterers).chain(evaluators).map(|recipe| recipe.key.as_str());
    let data = plan.data.iter().map(|data| data.dataset.content.as_str());
    let parts = [env!("CARGO_PKG_VERSION"), &pipeline].into_iter().chain(recipes).chain(data);
    hash_parts(parts.map(str::as_bytes))[..16].to_owned()
}

impl Manifest {
    /// Of the cells that settle grids, or of the experiment itself; what tuning chose may not be known yet.
    pub(super) fn new(plan: &Plan, phase: Phase, chosen: Option<&Chosen>) -> Self {
        let cells = match phase {
            Phase::Tune => tuning_cells(plan),
            Phase::Test => test_cells(plan, chosen.unwrap_or(&assume_first(plan))),
        };
        let options = |cell: &Cell| {
            let options = if cell.settled && chosen.is_none() { 0 } else { cell.variant(plan).options.len() };
            let cell = *cell;
            (0..options).map(move |option| Cell { option, ..cell })
        };
        let keys = |cell: &Cell| options(cell).map(|cell| cell.key(plan)).collect();
        let measured = |cell: &Cell| match options(cell).len() {
            0 | 1 => Vec::new(),
            _ => options(cell).map(|cell| stability::key(plan, cell)).collect(),
        };
        let scored = |cell: &Cell| {
            let (nothing, trial) = (Outcome::default(), cell.trial(plan));
            nothing.unscored(&plan.setting, trial).map(|evaluator| score_key(evaluator, trial)).collect()
        };
        let libraries = plan.factory.registry.libraries.iter().filter_map(|file| match &file.state {
            State::Known(_) => Some((trust::stem(&file.path)?.to_owned(), file.hash().ok()?.to_owned())),
            _ => None,
        });
        let data = plan.data.iter().map(|data| (data.name.clone(), data.dataset.content.clone()));
        Self {
            phase,
            name: plan.name.clone(),
            pipeline: pipeline::key(&plan.resolved, &plan.only),
            compflow: env!("CARGO_PKG_VERSION").to_owned(),
            libraries: libraries.collect(),
            data: data.collect(),
            measured: cells.iter().map(measured).collect(),
            scored: if phase == Phase::Tune { cells.iter().map(scored).collect() } else { Vec::new() },
            cells: cells.iter().map(keys).collect(),
        }
    }

    /// Writes it beside those of other plans.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(&self, results: &Path, fingerprint: &str) -> io::Result<()> {
        let json = sealed::to_json(self)?;
        let path = path(results, fingerprint, self.phase, CELLS);
        inside(results, PARTS)?;
        write_file(&path, |file| file.write_all(json.as_bytes()))
    }
}

/// What a pipeline is called that has parts in a folder, if there is one.
pub(super) fn name_in(results: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let ending = format!(".{CELLS}.json");
    let entries = std::fs::read_dir(results.join(PARTS)).into_iter().flatten().flatten();
    let mut manifests = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(&ending));
    let name = manifests.find_map(|entry| {
        let Named { name } = sealed::from_json(&read_file(&entry.path(), LARGEST).ok()?)?;
        Some(name)
    });
    name.filter(|name| !name.is_empty())
}

/// The file of a plan's phase that holds something.
pub(super) fn path(results: &Path, fingerprint: &str, phase: Phase, what: &str) -> PathBuf {
    results.join(PARTS).join(format!("{fingerprint}.{phase}.{what}.json"))
}
