//! The data of an earlier run, read again: the tables hold what was found, not what it was found in.

use std::collections::BTreeMap;

use compflow_api::{Kind, Sets, Space};

use crate::cell::{Recipe, evaluate};
use crate::check::Checker;
use crate::dataset::{Dataset, Keep};
use crate::document::{Document, Node};
use crate::environment::{Environment, plain};
use crate::failure::Failure;
use crate::files::{Inputs, display};
use crate::memory;
use crate::pipeline::{self, Pipeline};
use crate::record::RunRecord;
use crate::registry::{Registry, search_path};
use crate::summary::mean;
use crate::terminal::Terminal;

/// A recorded pipeline and the libraries that are here now.
#[derive(Debug)]
pub(crate) struct Again<'r> {
    record: &'r RunRecord,
    environment: Environment,
    pipeline: Pipeline,
}

/// Two clusterings that look at nothing: what any score has to be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trivial {
    /// Every example is a cluster of its own.
    AllAlone,
    /// All examples are one cluster.
    OneCluster,
}

impl Trivial {
    pub(crate) const ALL: [Self; 2] = [Self::AllAlone, Self::OneCluster];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AllAlone => "all alone",
            Self::OneCluster => "one cluster",
        }
    }

    fn sets(self, n: usize) -> Sets {
        let labels: Vec<u32> = match self {
            Self::AllAlone => (0..n as u32).collect(),
            Self::OneCluster => vec![0; n],
        };
        Sets::singletons(&labels)
    }
}

/// Mean scores by metric.
pub(crate) type Means = BTreeMap<String, f64>;

impl<'r> Again<'r> {
    /// Finds the plugins that a recorded run needs.
    ///
    /// # Errors
    /// If a search path is wrong.
    pub(crate) fn new(record: &'r RunRecord, plugins: &[std::path::PathBuf]) -> Result<Self, Failure> {
        let folders = search_path(plugins).map_err(Failure::request)?;
        let document = Document { root: Node::from_json(&record.pipeline), sources: Vec::new() };
        // The pipeline was right when it ran.
        let pipeline = pipeline::read(&document, &record.name, &mut Vec::new());
        let environment = Environment {
            registry: Registry::scan_pinned(&folders, &pipeline.pinned()),
            folder: record.folder.clone(),
            inputs: Inputs::default(),
            terminal: Terminal::new(false),
            memory: memory::budget(),
        };
        Ok(Self { record, environment, pipeline })
    }

    /// Where the run took distances.
    pub(crate) fn space(&self) -> Space {
        self.pipeline.space
    }

    /// Reads a data set as the run did.
    ///
    /// # Errors
    /// If it is gone, has changed, or cannot be read any more: a text for people.
    pub(crate) fn data(&self, name: &str) -> Result<Dataset, String> {
        let data = self.pipeline.data.iter().find(|data| data.name == name);
        let data = data.ok_or_else(|| format!("the recorded pipeline has no data `{name}`"))?;
        if data.path.is_some() && !self.record.folder.is_absolute() {
            return Err("run.json does not say where the data was; run the pipeline again".to_owned());
        }
        let mut problems = Vec::new();
        let mut checker = Checker { environment: &self.environment, problems: &mut problems };
        let source = checker.open(data, self.record.seed);
        // Files that are missing are problems, and leave a source of none.
        let Some(source) = source.filter(|_| problems.is_empty()) else {
            let texts: Vec<String> = problems.into_iter().map(|problem| problem.text).collect();
            return Err(texts.join("; "));
        };
        if data.path.is_none() && !self.has_library_of(&data.loader.component) {
            return Err(format!(
                "the library of the loader `{}` has changed since the run",
                data.loader.component
            ));
        }
        for file in source.files.iter().flatten() {
            let hash = self.environment.inputs.hash(file).map_err(|error| plain(&error))?;
            if self.record.inputs.get(&file.display().to_string()).is_some_and(|recorded| *recorded != hash) {
                return Err(format!("{} has changed since the run", display(file)));
            }
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        source.read(Keep::Matrix, &self.environment, threads)
    }

    /// Whether a loader that makes data up is the one that did.
    fn has_library_of(&self, loader: &str) -> bool {
        let registry = &self.environment.registry;
        let found = registry.find(Kind::Loader, loader).ok().map(|entry| &registry.libraries[entry.library]);
        let hash = found.and_then(|found| found.hash().ok());
        self.record.libraries.iter().any(|library| Some(library.blake3.as_str()) == hash)
    }

    /// The mean scores of the trivial clusterings by metric, with the run's own evaluators.
    ///
    /// # Errors
    /// If an evaluator is gone or fails, or the data has no true sets: a text for people.
    pub(crate) fn trivial(&self, dataset: &Dataset, which: Trivial) -> Result<Means, String> {
        let mut problems = Vec::new();
        let (evaluators, _) = Checker { environment: &self.environment, problems: &mut problems }
            .evaluators(&self.pipeline.evaluators);
        if let Some(problem) = problems.into_iter().next() {
            return Err(problem.text);
        }
        let mut scores: BTreeMap<String, BTreeMap<usize, f64>> = BTreeMap::new();
        for (at, trial) in dataset.trials.iter().enumerate() {
            let truth = trial.truth.as_ref().ok_or("the data has no true sets")?;
            for (metric, value) in self.score(&evaluators, truth, &which.sets(trial.len()), which.name())? {
                scores.entry(metric).or_default().insert(at, value);
            }
        }
        Ok(scores.into_iter().map(|(metric, scores)| (metric, mean(&scores))).collect())
    }

    fn score(
        &self,
        evaluators: &[Recipe],
        truth: &Sets,
        found: &Sets,
        about: &str,
    ) -> Result<Vec<(String, f64)>, String> {
        let mut scores = Vec::new();
        for recipe in evaluators {
            scores.extend(
                evaluate(&self.environment, recipe, truth, found, about).map_err(|error| error.to_string())?,
            );
        }
        Ok(scores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trivial_clusterings_are_trivial() {
        assert_eq!(Trivial::AllAlone.sets(3), Sets::singletons(&[0, 1, 2]));
        assert_eq!(Trivial::OneCluster.sets(3), Sets::singletons(&[0, 0, 0]));
    }
}
