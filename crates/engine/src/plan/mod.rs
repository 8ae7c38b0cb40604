//! The plan of a run: every component made once, all data read, every problem found.

pub(crate) mod cell;
mod check;
pub(crate) mod checker;
pub(crate) mod compose;
mod effective;
mod fitting;
mod load;
pub(crate) mod recipe;
pub(crate) mod resources;
pub(crate) mod seed;
pub(crate) mod shared;

use std::path::PathBuf;
use std::sync::Arc;

use compflow_api::{Flags, Metric};

pub use self::recipe::Recipe;
use self::recipe::Setting;
pub use self::resources::Resources;
pub use self::shared::PlannedEvaluator;
use crate::cancel::Cancel;
use crate::data::Dataset;
use crate::data::source::DataSource;
use crate::error::Result;
use crate::observer::Observer;
use crate::pipeline::{Pipeline, Variables};
use crate::plugin::Registry;
use crate::plugin::factory::Factory;

/// Everything that a run needs; nothing in it can turn out to be wrong because of the pipeline file.
#[derive(Debug)]
pub struct Plan {
    pub(crate) factory: Factory,
    pub(crate) file: PathBuf,
    /// The file and what was laid over it, as JSON.
    pub(crate) resolved: serde_json::Value,
    /// Kept as long as data may be read again that came from standard input.
    pub(crate) _variables: Variables,
    pub(crate) name: String,
    pub(crate) seed: u64,
    /// What the user wanted of it; empty means all.
    pub(crate) only: Vec<String>,
    pub(crate) setting: Setting,
    pub(crate) data: Vec<PlannedData>,
    pub(crate) clusterers: Vec<PlannedClusterer>,
    /// Of all evaluators, in their order.
    pub(crate) metrics: Vec<Metric>,
    pub(crate) tune: Option<PlannedTune>,
    /// How many cells run at the same time.
    pub(crate) jobs: usize,
}

impl Pipeline {
    /// Makes every component once and reads all data.
    ///
    /// # Errors
    /// All problems at once, those of the file included.
    pub fn plan(
        &self,
        registry: &Registry,
        resources: &Resources,
        observer: &Arc<dyn Observer>,
        cancel: &Cancel,
    ) -> Result<Arc<Plan>> {
        let memory = resources.memory();
        let factory = Factory::new(registry, &self.folder, observer, cancel, memory);
        let mut checked = check::check(self, &factory)?;
        let data = load::load(self, &factory, &mut checked, resources.threads())?;
        let tune = self.contents.tune.as_ref().zip(checked.metric).and_then(|(tune, metric)| {
            let data = data.iter().position(|data| data.name == tune.data.0)?;
            Some(PlannedTune { data, metric })
        });
        let mut plan = Plan {
            file: self.file.clone(),
            _variables: self.variables.clone(),
            resolved: self.document.root.to_json(&mut Vec::new()),
            name: self.contents.name.clone(),
            seed: self.contents.seed,
            only: self.only.clone(),
            setting: Setting {
                degree: self.contents.degree,
                space: self.contents.space,
                composer: checked.composer,
                evaluators: checked.evaluators,
                memberships: self.contents.memberships,
                threads: 1,
                memory,
            },
            data,
            clusterers: checked.clusterers,
            metrics: checked.metrics,
            tune,
            jobs: 1,
            factory,
        };
        plan.divide(resources);
        Ok(Arc::new(plan))
    }
}

impl Plan {
    /// The metrics of all evaluators, in their order.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// The pipeline's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The clusterers that are given the truth, as they are called in tables: by their own name, or as a point of their
    /// grids.
    pub(crate) fn oracles(&self) -> Vec<String> {
        let mut oracles = Vec::new();
        for planned in self.clusterers.iter().filter(|planned| planned.knows_truth()) {
            oracles.push(planned.name.clone());
            oracles.extend(planned.variants.iter().map(|variant| variant.label.clone()));
        }
        oracles.dedup();
        oracles
    }

    /// Whether a data set only settles grids.
    pub fn tunes(&self, data: &str) -> bool {
        self.data.iter().any(|known| known.tunes && known.name == data)
    }

    /// Whether the true sets of a data set are known.
    pub fn has_truth(&self, data: &str) -> bool {
        let mut trials =
            self.data.iter().filter(|known| known.name == data).flat_map(|known| &known.dataset.trials);
        trials.any(|trial| trial.truth.is_some())
    }

    /// The data of the experiment itself: names, and the number of examples that all trials have.
    pub fn sizes(&self) -> Vec<(&str, Option<u32>)> {
        let size = |data: &PlannedData| {
            let mut sizes = data.dataset.trials.iter().map(|trial| trial.size() as u32);
            let first = sizes.next();
            first.filter(|first| sizes.all(|size| size == *first))
        };
        self.data.iter().filter(|data| !data.tunes).map(|data| (data.name.as_str(), size(data))).collect()
    }

    /// Gives every cell its share. Cells share what the data has left; more jobs than cells would only make the shares smaller.
    fn divide(&mut self, resources: &Resources) {
        let tested = cell::test_cells(self, &cell::assume_first(self)).len();
        let cells = cell::tuning_cells(self).len().max(tested);
        self.jobs = resources.jobs().clamp(1, cells.max(1));
        self.setting.threads = resources.threads_of_a_cell(self.jobs);
        let numbers: usize =
            self.data.iter().flat_map(|data| &data.dataset.trials).map(|trial| trial.embeddings.len()).sum();
        let left = resources.memory().saturating_sub(4 * numbers as u64);
        self.setting.memory = left / self.jobs as u64;
        self.factory.memory = self.setting.memory;
    }
}

/// A `[[data]]` table and what it holds.
#[derive(Debug)]
pub(crate) struct PlannedData {
    pub(crate) name: String,
    /// Whether it only settles grids.
    pub(crate) tunes: bool,
    pub(crate) dataset: Dataset,
    /// The files it is from.
    pub(crate) files: Vec<PathBuf>,
    /// To read the embeddings again, if they were not kept.
    pub(crate) streamed: Option<DataSource>,
}

/// A `[[clusterer]]` table and the points of its grids.
#[derive(Debug)]
pub(crate) struct PlannedClusterer {
    pub(crate) name: String,
    pub(crate) variants: Vec<Variant>,
}

impl PlannedClusterer {
    /// Whether it is given the true sets.
    pub(crate) fn knows_truth(&self) -> bool {
        self.setups().any(|setup| setup.recipe.flags.contains(Flags::NEEDS_TRUTH))
    }

    /// All that it may turn out to be.
    pub(crate) fn setups(&self) -> impl Iterator<Item = &Setup> {
        self.variants.iter().flat_map(|variant| &variant.options)
    }
}

/// A point of a clusterer's grids.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The name and the choices made from grids.
    pub(crate) label: String,
    /// The choices made from grids: dotted name and value.
    pub(crate) choices: Vec<(String, String)>,
    /// The parameters as JSON: preset and defaults filled in, or with the selections as they are written.
    pub(crate) params: String,
    /// One, or what is selected from for every trial.
    pub(crate) options: Vec<Setup>,
}

impl Variant {
    /// Whether something is selected for every trial.
    pub(crate) fn selects(&self) -> bool {
        self.options.len() > 1
    }
}

/// A clusterer with all parameters chosen.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The choices made from selections: dotted name and value as JSON.
    pub(crate) choices: Vec<(String, String)>,
    pub(crate) recipe: Recipe,
    /// The parameters with preset and defaults filled in, as JSON.
    pub(crate) params: String,
    /// Whether it reads the examples batch by batch.
    pub(crate) streams: bool,
}

/// `[tune]`, resolved.
#[derive(Debug)]
pub(crate) struct PlannedTune {
    /// Index in [`Plan::data`].
    pub(crate) data: usize,
    pub(crate) metric: Metric,
}
