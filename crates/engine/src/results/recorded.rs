//! The data of an earlier run, read again: the tables hold what was found, not what it was found in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compflow_api::{Embeddings, Evaluation, Flags, ForeignComposer, Kind, Level, Rows, Sets, Space};

use super::record::RunRecord;
use super::statistics::mean;
use crate::cancel::Cancel;
use crate::data::Dataset;
use crate::data::build::Keep;
use crate::data::source::DataSource;
use crate::data::values::MEDIA;
use crate::error::{Error, Result};
use crate::files::display;
use crate::observer::Observer;
use crate::pipeline::{Named, Pins, Pipeline, Variables};
use crate::plan::checker::Checker;
use crate::plan::compose::compose_sets;
use crate::plan::resources::{cores, memory_budget};
use crate::plan::shared::Shared;
use crate::plugin::Registry;
use crate::plugin::factory::Factory;
use crate::run::evaluate::evaluate;
use crate::run::unseeded::{Compared, Unseeded};

/// A recorded pipeline and the libraries that are here now.
#[derive(Debug)]
pub struct RecordedRun<'r> {
    record: &'r RunRecord,
    factory: Factory,
    pipeline: Pipeline,
}

/// Two clusterings that look at nothing: what any score has to be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trivial {
    /// Every example is a cluster of its own.
    AllAlone,
    /// All examples are one cluster.
    OneCluster,
}

impl Trivial {
    /// Both.
    pub const ALL: [Self; 2] = [Self::AllAlone, Self::OneCluster];

    /// What it is called.
    pub fn name(self) -> &'static str {
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
pub type Means = BTreeMap<String, f64>;

impl<'r> RecordedRun<'r> {
    /// Finds the components of a recorded run in libraries.
    pub fn new(
        record: &'r RunRecord,
        libraries: impl FnOnce(&Pins) -> Registry,
        variables: Variables,
        observer: &Arc<dyn Observer>,
        cancel: &Cancel,
    ) -> Self {
        let pipeline = Pipeline::recorded(&record.pipeline, &record.name, &record.folder, variables);
        let registry = libraries(&pipeline.pins());
        let factory = Factory::new(&registry, &record.folder, observer, cancel, memory_budget());
        Self { record, factory, pipeline }
    }

    /// Where the run took distances.
    pub fn space(&self) -> Space {
        self.pipeline.contents.space
    }

    /// Reads a data set as the run did.
    ///
    /// # Errors
    /// If it is gone, has changed, or cannot be read any more.
    pub fn data(&self, name: &str) -> Result<Dataset> {
        let data = self.pipeline.contents.data.iter().find(|data| data.name == name);
        let data = data.ok_or_else(|| Error::data(format!("the recorded pipeline has no data `{name}`")))?;
        if data.path.is_some() && !self.record.folder.is_absolute() {
            return Err(Error::data("run.json does not say where the data was; run the pipeline again"));
        }
        let mut problems = Vec::new();
        let mut checker =
            Checker { factory: &self.factory, variables: &self.pipeline.variables, problems: &mut problems };
        // What evaluators want to see once more.
        let evaluators = checker.evaluators(&self.pipeline.contents.evaluators);
        let wanted = evaluators.iter().flat_map(|evaluator| &evaluator.shared.recipe.columns);
        let further: BTreeSet<&str> = wanted.map(String::as_str).filter(|name| *name != "id").collect();
        // Pictures and sounds, if the source has paths of them: of both, or of one.
        let media = [&MEDIA[..], &MEDIA[..1], &MEDIA[1..]].into_iter().filter_map(|names| {
            let with = further.iter().chain(names).copied().collect();
            checker.open(data, self.record.seed, &with)
        });
        let media: Vec<DataSource> = media.collect();
        checker.problems.clear();
        let source = checker.open(data, self.record.seed, &further);
        // Files that are missing are problems, and leave a source of none.
        let Some(source) = source.filter(|_| problems.is_empty()) else {
            let texts: Vec<String> = problems.into_iter().map(|problem| problem.text).collect();
            return Err(Error::data(texts.join("; ")));
        };
        let read = |source: &DataSource| source.read(Keep::Matrix, &self.factory, cores(), self.factory.memory);
        // A column of that name may hold something else.
        let dataset = media.iter().find_map(|source| read(source).ok()).map_or_else(|| read(&source), Ok)?;
        match self.record.data.get(name) {
            Some(recorded) if recorded.blake3 != dataset.content => {
                let files: Vec<String> = source.files.iter().flatten().map(|file| display(file)).collect();
                let what = if files.is_empty() { format!("data `{name}`") } else { files.join(", ") };
                Err(Error::data(format!("{what} has changed since the run")))
            }
            _ => Ok(dataset),
        }
    }

    /// The largest composition that the run considered.
    pub(crate) fn degree(&self) -> usize {
        self.pipeline.contents.degree
    }

    /// Whether the run says where unions lie.
    pub(crate) fn has_composer(&self) -> bool {
        self.pipeline.contents.composer.is_some()
    }

    /// Makes components as the run did.
    pub(crate) fn factory(&self) -> &Factory {
        &self.factory
    }

    /// Bytes that may be used.
    pub(crate) fn memory(&self) -> u64 {
        self.factory.memory
    }

    /// Tells the observer.
    pub(crate) fn log(&self, level: Level, about: &str, text: &str) {
        self.factory.observer.log(level, about, text);
    }

    /// What the source of a data set calls its embeddings, and its identifiers if it has some.
    fn column(&self, data: &str, key: &str) -> Option<&Named> {
        let data = self.pipeline.contents.data.iter().find(|known| known.name == data)?;
        data.columns.as_ref()?.get(key).map(|(named, _)| named)
    }

    /// What the source of a data set calls its embeddings.
    pub fn embedding_column(&self, data: &str) -> Named {
        self.column(data, "embedding").cloned().unwrap_or_else(|| Named::One("embedding".to_owned()))
    }

    /// What the source of a data set calls its identifiers, if it has some.
    pub fn id_column(&self, data: &str) -> Option<&str> {
        match self.column(data, "id")? {
            Named::One(name) => Some(name),
            Named::Several(_) => None,
        }
    }

    /// Whether a clusterer composes unions, by the component that is here now; `None` if it is gone. `label` is what tables call
    /// it, which may be a point of its grids.
    pub(crate) fn composes(&self, label: &str) -> Option<bool> {
        let is_point_of =
            |name: &str| label.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        let named = self.pipeline.contents.clusterers.iter().filter(|clusterer| is_point_of(&clusterer.name));
        let clusterer = named.max_by_key(|clusterer| clusterer.name.len())?;
        let entry = self.factory.registry.find(Kind::Clusterer, &clusterer.component.component).ok()?;
        let flags = entry.component.flags();
        Some(flags.contains(Flags::NEEDS_COMPOSER) || flags.contains(Flags::NEEDS_GRADIENTS))
    }

    /// Composes vectors (unnormalised) by sets of them, as the run's clusterers did, into points of the space. Sets of one need
    /// no composer.
    ///
    /// # Errors
    /// If the composer is gone or has changed, or what it says.
    pub(crate) fn compose(&self, rows: Embeddings<'_>, sets: &Sets) -> Result<Vec<f32>> {
        let shared = match sets.iter().any(|set| set.len() > 1) {
            true => self.composer()?,
            false => None,
        };
        compose_sets(shared.as_ref(), &self.factory, self.space(), rows, sets)
    }

    /// The run's composer, if what it reads is what it was.
    fn composer(&self) -> Result<Option<Shared<ForeignComposer>>> {
        let Some(used) = &self.pipeline.contents.composer else { return Ok(None) };
        let mut problems = Vec::new();
        let composer =
            Checker { factory: &self.factory, variables: &self.pipeline.variables, problems: &mut problems }
                .composer(used);
        if let Some(problem) = problems.into_iter().next() {
            let help = problem.help.map_or_else(String::new, |help| format!("; {help}"));
            let text = format!("the run's composer is needed for unions: {}{help}", problem.text);
            return Err(Error::fault(problem.cause, text));
        }
        for (path, hash) in self.factory.inputs.all() {
            let recorded = self.record.inputs.get(&path.display().to_string());
            let same = match recorded {
                Some(recorded) => *recorded == hash,
                // A file that was moved is the same file.
                None => self.record.inputs.values().any(|recorded| *recorded == hash),
            };
            if !same {
                return Err(Error::data(format!(
                    "{} has changed since the run, and unions would lie elsewhere than they did; put the file back, or run the \
                     pipeline again",
                    display(&path)
                )));
            }
        }
        if let Ok(entry) = self.factory.registry.find(Kind::Composer, &used.component) {
            let library = &self.factory.registry.libraries[entry.library];
            let known = |hash: &str| self.record.libraries.iter().any(|recorded| recorded.blake3 == hash);
            if !library.hash().is_ok_and(known) {
                let text = "is not the library that the run used; unions may lie elsewhere than they did";
                self.log(Level::Warn, &display(&library.path), text);
            }
        }
        Ok(composer)
    }

    /// The mean scores of the trivial clusterings by metric, with the run's own evaluators.
    ///
    /// # Errors
    /// If an evaluator is gone or fails, or the data has no true sets.
    pub fn trivial(&self, dataset: &Dataset, which: Trivial) -> Result<Means> {
        let mut problems = Vec::new();
        let evaluators =
            Checker { factory: &self.factory, variables: &self.pipeline.variables, problems: &mut problems }
                .evaluators(&self.pipeline.contents.evaluators);
        if let Some(problem) = problems.into_iter().next() {
            return Err(Error::request(problem.text));
        }
        let mut scores: BTreeMap<String, BTreeMap<usize, f64>> = BTreeMap::new();
        for (at, trial) in dataset.trials.iter().enumerate() {
            let found = which.sets(trial.size());
            let rows = Embeddings::new(&trial.embeddings, dataset.dim);
            for evaluator in &evaluators {
                let recipe = &evaluator.shared.recipe;
                if evaluator.needs_truth() && trial.truth.is_none() {
                    return Err(Error::data("the data has no true sets"));
                }
                let columns = trial.columns(&recipe.columns)?;
                let others = Unseeded::of(trial).filter(|_| evaluator.needs_truth());
                if others.as_ref().is_some_and(Unseeded::is_empty) {
                    continue;
                }
                let truth = trial.truth.as_ref();
                let compared = others.as_ref().map(|others| others.compared(&found, truth, &columns));
                let (predicted, truth, columns) = match &compared {
                    Some(Compared { predicted, truth, columns }) => (predicted, truth.as_ref(), columns),
                    None => (&found, truth, &columns),
                };
                let unseeded = others.as_ref().map(|others| others.examples(&rows));
                let rows = unseeded.as_ref().map_or(&rows as &dyn Rows, |unseeded| unseeded as &dyn Rows);
                // Nothing but the sets is known of a clustering that was not computed.
                let evaluation = Evaluation {
                    predicted,
                    truth,
                    rows: recipe.flags.contains(Flags::NEEDS_EMBEDDINGS).then_some(rows),
                    space: self.space(),
                    degree: self.pipeline.contents.degree,
                    clusters: None,
                    centroids: None,
                    columns,
                };
                for (metric, value) in evaluate(&self.factory, evaluator, &evaluation, which.name())? {
                    scores.entry(metric).or_default().insert(at, value);
                }
            }
        }
        Ok(scores.into_iter().map(|(metric, scores)| (metric, mean(&scores))).collect())
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
