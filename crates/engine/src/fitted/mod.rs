//! One clusterer on one trial, its result in memory: the same plan and the same cell as in a run, and nothing written.
//!
//! [`Plan::fit`] computes; what comes of it, [`Fitted`], does not need the data any more. It can be asked for an
//! [`Assigner`], become bytes and come back from them, and be put into the cells of a results folder, where a run of
//! the same pipeline finds it and writes the tables.

mod kept;
mod origin;
mod selected;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use compflow_api::{Clustering, Singletons};

use self::kept::Kept;
use self::origin::{InMemory, Remembered};
pub use self::selected::SelectedOption;
use crate::assign::{AssignOptions, Assigner, Cell, self_contained};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::observer::Observer;
use crate::pipeline::Pipeline;
use crate::plan::Plan;
use crate::plan::cell::{assume_first, test_cells};
use crate::plan::resources::memory_budget;
use crate::plugin::Registry;
use crate::plugin::factory::Factory;
use crate::results::{CellTables, singleton_names};
use crate::run::cache::Cache;
use crate::run::folder::unwritable;
use crate::run::single::{Single, single};

/// What a clusterer found in one trial.
#[derive(Debug)]
pub struct Fitted {
    kept: Kept,
    /// What was selected from; empty if nothing was, and of one that comes back from bytes.
    selected: Vec<SelectedOption>,
}

impl Plan {
    /// Computes the only cell of the plan. Scores are not taken, and nothing is written.
    ///
    /// # Errors
    /// If the plan has more cells than one, or the cell fails.
    pub fn fit(&self, observer: &Arc<dyn Observer>, cancel: &Cancel) -> Result<Fitted> {
        let cells = test_cells(self, &assume_first(self));
        let (&[cell], None) = (&cells[..], &self.tune) else {
            let text = format!("one clusterer is fitted to one trial, and the pipeline has {} cells", cells.len());
            return Err(Error::request(text));
        };
        let Single { cell, outcome, selection } = single(self, cell, observer, cancel)?;
        let (trial, data) = (cell.trial(self), &self.data[cell.data]);
        let place = Cell { data: data.name.clone(), trial: trial.number, clusterer: cell.label(self).to_owned() };
        let shape = (trial.size(), data.dataset.dim);
        let origin = InMemory { plan: self, cell, outcome: &outcome };
        let (found, distances) = self_contained(&origin, &place, CellTables::of(&outcome.clustering), shape.1)?;
        let names = cell.seeds(self).map(|seeds| singleton_names(&seeds.names, &outcome.clustering));
        Ok(Fitted {
            selected: selected::options(self, cell, selection.as_ref()),
            kept: Kept {
                key: cell.key(self),
                composes: origin.composes_unions(),
                params: cell.setup(self).params.clone(),
                names: names.unwrap_or_default(),
                place,
                shape,
                outcome,
                found,
                distances,
            },
        })
    }
}

/// What an assigner needs besides what was found: the pipeline it was found with, and the components that are here now.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The pipeline.
    pub pipeline: &'a Pipeline,
    /// The components.
    pub registry: &'a Registry,
    /// Is told what happens.
    pub observer: &'a Arc<dyn Observer>,
    /// Stops it.
    pub cancel: &'a Cancel,
}

impl Fitted {
    /// What was found, numbered canonically.
    pub fn clustering(&self) -> &Clustering {
        &self.kept.outcome.clustering
    }

    /// What unions are composed from, before normalisation, exemplars included; of a method that composes nothing the
    /// centroids of clusters that are no unions.
    pub fn singletons(&self) -> Cow<'_, Singletons> {
        let CellTables { singletons, clusters, centroids, .. } = &self.kept.found;
        if !singletons.numbers.is_empty() || centroids.is_empty() {
            return Cow::Borrowed(singletons);
        }
        let mut found = Singletons::default();
        for (set, point) in clusters.iter().zip(centroids.chunks_exact(self.kept.shape.1)) {
            if let &[number] = set {
                found.numbers.push(number);
                found.vectors.extend_from_slice(point);
            }
        }
        Cow::Owned(found)
    }

    /// From every example to its cluster's representative; empty if clusters have none.
    pub fn distances(&self) -> &[f32] {
        &self.kept.outcome.distances
    }

    /// How long the clusterer took.
    pub fn seconds(&self) -> f64 {
        self.kept.outcome.seconds
    }

    /// What the clusterer warned of.
    pub fn warnings(&self) -> &[String] {
        &self.kept.outcome.warnings
    }

    /// The parameters with preset and defaults filled in, as JSON.
    pub fn params(&self) -> &str {
        &self.kept.params
    }

    /// The names of all singletons by number, if some were named beforehand and the clusterer kept to it; else empty.
    pub fn names(&self) -> &[String] {
        &self.kept.names
    }

    /// How many examples there were, and how many numbers each had.
    pub fn shape(&self) -> (usize, usize) {
        self.kept.shape
    }

    /// What was selected from.
    pub fn selected(&self) -> &[SelectedOption] {
        &self.selected
    }

    /// Gives new examples to the clusters, as [`Assigner::open`] does with a run on the disk.
    ///
    /// # Errors
    /// If the options ask for what there is not, or composing fails.
    pub fn assigner(&self, setting: &Setting<'_>, options: &AssignOptions) -> Result<Assigner> {
        let Setting { pipeline, registry, observer, cancel } = setting;
        let factory = Factory::new(registry, &pipeline.folder, observer, cancel, memory_budget());
        let origin = Remembered { kept: &self.kept, pipeline, factory };
        Assigner::new(&origin, &self.kept.place, &self.kept.found, self.kept.shape, options)
    }

    /// Puts the result into the cells of the results folder `out`, so that a run of `plan` finds it.
    ///
    /// # Errors
    /// If the plan has no such cell, because its data or anything else differs, or the folder cannot be written to.
    pub fn keep(&self, plan: &Plan, out: &Path) -> Result<()> {
        let cells = test_cells(plan, &assume_first(plan));
        if !cells.iter().any(|cell| cell.key(plan) == self.kept.key) {
            return Err(Error::request("these are not the examples, weights and seeds that were clustered"));
        }
        let stored = Cache::open(out, &plan.factory.observer)
            .and_then(|cache| cache.store(&self.kept.key, &self.kept.outcome));
        stored.map_err(|error| unwritable(out, &error))
    }

    /// Everything, to be kept elsewhere.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.kept.to_bytes()
    }

    /// What [`to_bytes`](Self::to_bytes) made bytes of.
    ///
    /// # Errors
    /// If these are not such bytes, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Ok(Self { kept: Kept::from_bytes(bytes)?, selected: Vec::new() })
    }
}
