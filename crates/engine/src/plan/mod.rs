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
use std::time::Duration;

use compflow_api::{Flags, Metric};
use serde::{Deserialize, Serialize};

use self::check::Checked;

pub use self::recipe::Recipe;
use self::recipe::Setting;
pub use self::resources::Resources;
pub use self::shared::PlannedEvaluator;
use crate::cancel::Cancel;
use crate::data::Dataset;
use crate::data::source::DataSource;
use crate::error::{Error, Result};
use crate::files::Inputs;
use crate::observer::Observer;
use crate::pipeline::{Pipeline, STDIN, Variables};
use crate::plugin::Registry;
use crate::plugin::factory::Factory;

/// More cells than this in one run are more likely a slip than a wish.
const MOST_CELLS: usize = 10_000_000;

/// Everything that a run needs; nothing in it can turn out to be wrong because of the pipeline file.
#[derive(Debug)]
pub struct Plan {
    pub(crate) factory: Factory,
    pub(crate) file: PathBuf,
    /// The file and what was laid over it, as JSON.
    pub(crate) resolved: serde_json::Value,
    /// What stood for something else in paths; data that came from standard input is kept as long as this.
    pub(crate) variables: Variables,
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
    /// Whether cells run in processes of their own; `None` if the pipeline does not say.
    pub(crate) isolate: Option<bool>,
    /// How long a cell may take.
    pub(crate) timeout: Option<Duration>,
    /// How many cells run at the same time.
    pub(crate) jobs: usize,
}

/// What a cell may use.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Shares {
    /// How many cells run at the same time.
    pub(crate) jobs: usize,
    pub(crate) threads: usize,
    pub(crate) memory: u64,
}

impl Shares {
    /// How much memory all cells have together.
    pub(crate) fn together(self) -> u64 {
        self.memory.saturating_mul(self.jobs as u64)
    }

    /// What is left of them if something else takes so many bytes.
    pub(crate) fn beside(self, bytes: u64) -> Self {
        Self { memory: self.together().saturating_sub(bytes) / self.jobs.max(1) as u64, ..self }
    }
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
        // Whoever wants all of it in one process gets that.
        let registry = match self.contents.isolate {
            Some(false) => &registry.clone().rehearsed(None),
            _ => registry,
        };
        let factory = Factory::new(registry, &self.folder, observer, cancel, resources.memory());
        let mut checked = check::check(self, &factory)?;
        registry.rest();
        let data = load::load(self, &factory, &mut checked, resources.threads())?;
        let mut plan = self.planned(factory, checked, data);
        plan.check_size()?;
        plan.divide(resources);
        Ok(Arc::new(plan))
    }

    /// The plan of another process, with the data that it has read and the shares of a cell.
    ///
    /// # Errors
    /// All problems at once.
    pub(crate) fn plan_again(
        &self,
        registry: &Registry,
        (datasets, inputs): (Vec<Dataset>, Inputs),
        shares: Shares,
        observer: &Arc<dyn Observer>,
        cancel: &Cancel,
    ) -> Result<Arc<Plan>> {
        let factory = Factory::new(registry, &self.folder, observer, cancel, shares.memory);
        let factory = Factory { inputs, ..factory };
        let mut checked = check::check(self, &factory)?;
        if !checked.problems.is_empty() {
            return Err(Error::problems(checked.problems, &self.document.sources));
        }
        let data = load::handed_on(self, &mut checked, datasets);
        let mut plan = self.planned(factory, checked, data);
        plan.share(shares);
        Ok(Arc::new(plan))
    }

    /// A plan in which cells have no shares yet.
    fn planned(&self, factory: Factory, checked: Checked, data: Vec<PlannedData>) -> Plan {
        let tune = self.contents.tune.as_ref().zip(checked.metric).and_then(|(tune, metric)| {
            let data = data.iter().position(|data| data.name == tune.data.0)?;
            Some(PlannedTune { data, metric })
        });
        Plan {
            file: self.file.clone(),
            variables: self.variables.clone(),
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
                memory: factory.memory,
            },
            data,
            clusterers: checked.clusterers,
            metrics: checked.metrics,
            tune,
            isolate: self.contents.isolate,
            timeout: self.contents.timeout,
            jobs: 1,
            factory,
        }
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

    /// The file and what was laid over it, for another process, which has another standard input.
    pub(crate) fn resolved_elsewhere(&self) -> serde_json::Value {
        let mut resolved = self.resolved.clone();
        let file = self.variables.stdin().map(|file| file.display().to_string());
        let tables = resolved.get_mut("data").and_then(serde_json::Value::as_array_mut);
        for table in tables.into_iter().flatten().filter(|table| table["path"] == STDIN) {
            table["path"] = file.clone().into();
        }
        resolved
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

    /// Refuses more cells than anybody has computed.
    fn check_size(&self) -> Result<()> {
        let trials: usize = self.data.iter().map(|data| data.dataset.trials.len()).sum();
        let variants: usize = self.clusterers.iter().map(|clusterer| clusterer.variants.len()).sum();
        match trials.saturating_mul(variants) {
            cells if cells > MOST_CELLS => Err(Error::request(format!(
                "{trials} trials and {variants} methods are {cells} cells, more than {MOST_CELLS}: split them into several runs"
            ))),
            _ => Ok(()),
        }
    }

    /// Gives every cell its share. Cells share what the data has left; more jobs than cells would only make the shares smaller.
    fn divide(&mut self, resources: &Resources) {
        let tested = cell::test_cells(self, &cell::assume_first(self)).len();
        let cells = cell::tuning_cells(self).len().max(tested);
        let jobs = resources.jobs().clamp(1, cells.max(1));
        let left = resources.memory().saturating_sub(self.data_bytes());
        self.share(Shares { jobs, threads: resources.threads_of_a_cell(jobs), memory: left / jobs as u64 });
    }

    /// How much memory the data takes, with the files that components have read.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.data.iter().map(|data| data.dataset.bytes).fold(self.factory.inputs.bytes(), u64::saturating_add)
    }

    /// How much memory all cells may use together.
    pub(crate) fn memory(&self) -> u64 {
        self.shares().together()
    }

    fn share(&mut self, Shares { jobs, threads, memory }: Shares) {
        self.jobs = jobs;
        (self.setting.threads, self.setting.memory) = (threads, memory);
        self.factory.memory = memory;
    }

    /// What a cell may use.
    pub(crate) fn shares(&self) -> Shares {
        Shares { jobs: self.jobs, threads: self.setting.threads, memory: self.setting.memory }
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
