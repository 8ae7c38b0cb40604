//! A cell: one clusterer on one trial. What it depends on, and what comes out of it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Instant;

use compflow_api::{
    Clusterer, Clustering, Embeddings, Error, Evaluator, Flags, ForeignClusterer, ForeignComposer,
    ForeignEvaluator, Kind, Result, Rows, Services, Sets, Space, StreamTask, Task,
};
use serde::{Deserialize, Serialize};

use crate::dataset::Trial;
use crate::environment::{Answers, Environment, hash_parts};
use crate::memory::Watch;
use crate::source::{DataSource, Streamed};
use crate::terminal::Terminal;

/// A component with its parameters as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recipe {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) params: String,
    /// See [`Made::key`](crate::environment::Made).
    pub(crate) key: String,
    pub(crate) flags: Flags,
}

/// What is the same for all cells of a run.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) degree: usize,
    pub(crate) space: Space,
    pub(crate) composer: Option<Recipe>,
    pub(crate) evaluators: Vec<Recipe>,
    pub(crate) threads: usize,
    pub(crate) memory: u64,
}

/// What comes out of a cell and is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Numbered canonically.
    pub(crate) clustering: Clustering,
    /// From every example to its cluster's representative; empty if clusters have none.
    pub(crate) distances: Vec<f32>,
    pub(crate) seconds: f64,
    pub(crate) peak_bytes: u64,
    pub(crate) warnings: Vec<String>,
    /// By evaluator key: its scores.
    pub(crate) scores: BTreeMap<String, Vec<(String, f64)>>,
}

/// The key under which a cell's outcome is kept: everything that it depends on, except the evaluators.
pub(crate) fn key(setting: &Setting, clusterer: &Recipe, trial: &Trial, dim: usize, seed: u64) -> String {
    let truth = if clusterer.flags.contains(Flags::NEEDS_TRUTH) { &trial.truth_key } else { "" };
    let composer = setting.composer.as_ref().map_or("", |composer| &composer.key);
    let space = format!("{:?}", setting.space);
    let numbers = [setting.degree as u64, dim as u64, seed].map(u64::to_le_bytes);
    let texts = [&clusterer.key, composer, &space, &trial.key, truth];
    hash_parts(texts.into_iter().map(str::as_bytes).chain(numbers.iter().map(|number| &number[..])))
}

/// The seed of a stream of its own: nothing that runs beside it, before it or in another order changes it.
pub(crate) fn derive_seed(seed: u64, path: &[&str]) -> u64 {
    let seed = seed.to_le_bytes();
    let hash = hash_parts(std::iter::once(&seed[..]).chain(path.iter().map(|part| part.as_bytes())));
    // 63 bits, so that tables can hold it as the signed number that every reader of Parquet knows.
    u64::from_str_radix(&hash[..16], 16).unwrap_or(0) >> 1
}

/// What is clustered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Examples<'a> {
    pub(crate) trial: &'a Trial,
    pub(crate) dim: usize,
    /// To read the embeddings again, if they were not kept.
    pub(crate) streamed: Option<&'a DataSource>,
}

/// Clusters a trial.
///
/// # Errors
/// Whatever the components say.
pub(crate) fn run(
    environment: &Environment,
    setting: &Setting,
    clusterer: &Recipe,
    examples: Examples<'_>,
    seed: u64,
    about: &str,
) -> Result<Outcome> {
    let mut answers = Answers::sealed(environment, about);
    answers.bar = Some(environment.terminal.work(about));
    let outcome = cluster(environment, setting, clusterer, examples, seed, &answers);
    if let Some(bar) = &answers.bar {
        bar.finish_and_clear();
    }
    let warnings = answers.warnings.into_inner().unwrap_or_default();
    outcome.map(|outcome| Outcome { warnings, ..outcome })
}

fn cluster(
    environment: &Environment,
    setting: &Setting,
    clusterer: &Recipe,
    Examples { trial, dim, streamed }: Examples<'_>,
    seed: u64,
    answers: &Answers<'_>,
) -> Result<Outcome> {
    // Instances are made for every cell, so that one that panicked takes no other cell with it.
    let composer = match &setting.composer {
        None => None,
        Some(recipe) => Some(ForeignComposer::try_from(recipe.make(environment)?)?),
    };
    let instance = ForeignClusterer::try_from(clusterer.make(environment)?)?;
    let task = Task {
        embeddings: Embeddings::new(&trial.embeddings, dim),
        space: setting.space,
        degree: setting.degree,
        composer: composer.as_ref().map(|composer| composer as &dyn compflow_api::Composer),
        truth: trial.truth.as_ref().filter(|_| clusterer.flags.contains(Flags::NEEDS_TRUTH)),
        preferences: trial.preferences.as_deref(),
    };
    let services = Services { host: answers, seed, threads: setting.threads, memory: setting.memory };
    let (watch, started) = (Watch::start(), Instant::now());
    let threads = setting.threads;
    let rows = |verify| streamed.map(|source| Streamed { source, environment, trial, dim, threads, verify });
    let (read, verified) = (rows(false), rows(true));
    let found = match &read {
        Some(rows) => instance.cluster_stream(&StreamTask { rows, ..task.stream() }, &services),
        None if instance.streams() => instance.cluster_stream(&task.stream(), &services),
        None => instance.cluster(&task, &services),
    };
    let (seconds, peak_bytes) = (started.elapsed().as_secs_f64(), watch.stop());
    let clustering = canonical(found?);
    let last = match &verified {
        Some(rows) => StreamTask { rows, ..task.stream() },
        None => task.stream(),
    };
    let distances = distances(&last, &clustering)?;
    // What was computed is not lost because the end went wrong.
    for closed in [instance.close(), composer.map_or(Ok(()), ForeignComposer::close)] {
        if let Err(error) = closed {
            services.log(compflow_api::Level::Warn, format!("while it was being ended: {error}"));
        }
    }
    Ok(Outcome { clustering, distances, seconds, peak_bytes, warnings: Vec::new(), scores: BTreeMap::new() })
}

impl Recipe {
    /// Makes an instance.
    pub(crate) fn make(&self, environment: &Environment) -> Result<compflow_api::Instance> {
        let made = environment.make(self.kind, &self.name, &self.params, "")?;
        Ok(made.instance)
    }
}

impl Outcome {
    /// Adds the scores that are still missing; says whether there were any, and what the first evaluator said that
    /// failed. Scores of the others are kept.
    pub(crate) fn score(
        &mut self,
        environment: &Environment,
        setting: &Setting,
        trial: &Trial,
        about: &str,
    ) -> (bool, Option<Error>) {
        let Some(truth) = &trial.truth else { return (false, None) };
        let mut added = false;
        let mut failed = None;
        for recipe in &setting.evaluators {
            let key = score_key(recipe, trial);
            if self.scores.contains_key(&key) {
                continue;
            }
            match evaluate(environment, recipe, truth, &self.clustering.assignments, about) {
                Ok(scores) => {
                    self.scores.insert(key, scores);
                    added = true;
                }
                Err(error) => failed = failed.or(Some(error.context(format!("evaluator `{}`", recipe.name)))),
            }
        }
        (added, failed)
    }

    /// The scores of the run's evaluators, in their order.
    pub(crate) fn scores<'a>(
        &'a self,
        setting: &'a Setting,
        trial: &'a Trial,
    ) -> impl Iterator<Item = &'a (String, f64)> {
        setting.evaluators.iter().filter_map(|recipe| self.scores.get(&score_key(recipe, trial))).flatten()
    }

    /// Whether there are all scores that can be had.
    pub(crate) fn is_scored(&self, setting: &Setting, trial: &Trial) -> bool {
        let scored = |recipe| self.scores.contains_key(&score_key(recipe, trial));
        trial.truth.is_none() || setting.evaluators.iter().all(scored)
    }

    /// Says again what was said when the outcome was computed.
    pub(crate) fn repeat_warnings(&self, terminal: &Terminal, about: &str) {
        for warning in &self.warnings {
            terminal.log(compflow_api::Level::Warn, about, warning);
        }
    }
}

/// Under what an outcome keeps the scores of an evaluator.
fn score_key(recipe: &Recipe, trial: &Trial) -> String {
    format!("{} {}", recipe.key, trial.truth_key)
}

/// Scores sets with one evaluator.
///
/// # Errors
/// Whatever it says, and a score that is not a number.
pub(crate) fn evaluate(
    environment: &Environment,
    recipe: &Recipe,
    truth: &Sets,
    predicted: &Sets,
    about: &str,
) -> Result<Vec<(String, f64)>> {
    let evaluator = ForeignEvaluator::try_from(recipe.make(environment)?)?;
    let answers = Answers::sealed(environment, about);
    let services = Services { host: &answers, memory: environment.memory, ..Services::none() };
    let names = evaluator.try_metrics()?;
    let values = evaluator.evaluate(truth, predicted, &services)?;
    names
        .into_iter()
        .zip(values)
        .map(|(metric, value)| match value.is_finite() {
            true => Ok((metric.name, value)),
            false => Err(Error::new(format!("the score `{}` is {value}", metric.name))),
        })
        .collect()
}

/// Renumbers the singletons: in the order of the first example that belongs to one alone, then those that occur only
/// in larger sets, then the rest, among themselves as the method counts them. Clusters are listed by size of their set,
/// then in order.
fn canonical(mut clustering: Clustering) -> Clustering {
    let mut order: Vec<u32> = Vec::new();
    let alone = clustering.assignments.iter().filter(|set| set.len() == 1);
    let others = clustering.assignments.iter().filter(|set| set.len() > 1);
    let mut seen: HashSet<u32> = HashSet::new();
    for set in alone.chain(others).chain(clustering.clusters.iter()) {
        order.extend(set.iter().filter(|member| seen.insert(**member)));
    }
    let numbers: HashMap<u32, u32> = order.iter().copied().zip(0..).collect();
    let renumber = |sets: &Sets| -> Sets {
        let mut renumbered = Sets::with_capacity(sets.len(), sets.values().len());
        let mut set = Vec::new();
        for members in sets.iter() {
            set.clear();
            set.extend(members.iter().map(|member| numbers[member]));
            renumbered.push(&set);
        }
        renumbered
    };
    clustering.assignments = renumber(&clustering.assignments);

    let dim = clustering.centroids.len().checked_div(clustering.clusters.len()).unwrap_or(0);
    let renumbered = renumber(&clustering.clusters);
    let mut by_set: Vec<usize> = (0..renumbered.len()).collect();
    by_set.sort_by_key(|&at| (renumbered[at].len(), renumbered[at].to_vec()));
    // Exemplars stand in the order of the members, which the new numbers may have changed.
    clustering.exemplars = if clustering.exemplars.is_empty() {
        Vec::new()
    } else {
        by_set
            .iter()
            .map(|&at| {
                let mut pairs: Vec<(u32, u32)> = clustering.clusters[at]
                    .iter()
                    .zip(&clustering.exemplars[at])
                    .map(|(member, exemplar)| (numbers[member], *exemplar))
                    .collect();
                pairs.sort_unstable();
                pairs.into_iter().map(|(_, exemplar)| exemplar).collect()
            })
            .collect()
    };
    clustering.centroids =
        by_set.iter().flat_map(|&at| clustering.centroids[at * dim..][..dim].to_vec()).collect();
    clustering.clusters = by_set.iter().map(|&at| &renumbered[at]).collect();

    let width = clustering.memberships.len().checked_div(clustering.assignments.len()).unwrap_or(0);
    if width > 0 {
        order.extend((0..width as u32).filter(|member| !seen.contains(member)));
        let rows = clustering.memberships.chunks_exact(width);
        clustering.memberships = rows.flat_map(|row| order.iter().map(|member| row[*member as usize])).collect();
    }
    clustering
}

/// The distance of every example to the representative of its cluster: its centroid, or its composed exemplars.
fn distances(task: &StreamTask<'_>, clustering: &Clustering) -> Result<Vec<f32>> {
    let (dim, clusters) = (task.rows.dim(), &clustering.clusters);
    let representatives = if !clustering.centroids.is_empty() {
        clustering.centroids.clone()
    } else if !clustering.exemplars.is_empty() {
        let (values, sets) = exemplars(task.rows, &clustering.exemplars)?;
        let values = Embeddings::new(&values, dim);
        task.with(values).compose_sets(values, &sets)?
    } else {
        return Ok(Vec::new());
    };
    let clusters: HashMap<&[u32], usize> = clusters.iter().enumerate().map(|(at, set)| (set, at)).collect();
    let mut distances = Vec::with_capacity(task.rows.len());
    task.rows.pass(&mut |batch| {
        let points = task.space.points(batch);
        for point in points.chunks_exact(dim) {
            let cluster = clusters[&clustering.assignments[distances.len()]];
            distances.push(task.space.distance(point, &representatives[cluster * dim..][..dim]) as f32);
        }
        Ok(())
    })?;
    Ok(distances)
}

/// The examples that are exemplars, by row, and every cluster's as positions among them: composed in ascending order of
/// rows, which no numbering of clusters changes.
fn exemplars(rows: &dyn Rows, exemplars: &[Vec<u32>]) -> Result<(Vec<f32>, Sets)> {
    let wanted: BTreeSet<u32> = exemplars.iter().flatten().copied().collect();
    let positions: BTreeMap<u32, u32> = wanted.iter().copied().zip(0..).collect();
    let sets = exemplars.iter().map(|rows| rows.iter().map(|row| positions[row]).collect::<Vec<u32>>()).collect();
    let (mut values, mut first) = (Vec::with_capacity(wanted.len() * rows.dim()), 0);
    rows.pass(&mut |batch| {
        let end = first + batch.len() as u32;
        values.extend(wanted.range(first..end).flat_map(|row| &batch[(row - first) as usize]));
        first = end;
        Ok(())
    })?;
    Ok((values, sets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singletons_are_numbered_by_first_appearance_and_everything_follows() {
        let clustering = Clustering {
            assignments: Sets::from_iter([vec![5, 9], vec![9], vec![5], vec![9]]),
            clusters: Sets::from_iter([vec![5], vec![9], vec![5, 9], vec![7]]),
            exemplars: vec![vec![2], vec![1], vec![2, 1], vec![3]],
            centroids: vec![5.0, 9.0, 59.0, 7.0],
            ..Clustering::default()
        };
        let canonical = canonical(clustering);
        assert_eq!(canonical.assignments, Sets::from_iter([vec![0, 1], vec![0], vec![1], vec![0]]));
        assert_eq!(canonical.clusters, Sets::from_iter([vec![0], vec![1], vec![2], vec![0, 1]]));
        assert_eq!(canonical.exemplars, [vec![1], vec![2], vec![3], vec![1, 2]]);
        assert_eq!(canonical.centroids, [9.0, 5.0, 7.0, 59.0]);
    }

    #[test]
    fn any_numbering_gives_the_same_canonical_one() {
        let named = |a, b, c| Clustering::from_labels(&[a, b, a, c, b]);
        assert_eq!(canonical(named(3, 1, 2)).assignments, canonical(named(0, 9, 4)).assignments);
    }

    #[test]
    fn memberships_are_reordered_with_the_singletons() {
        let mut clustering = Clustering::from_labels(&[1, 0]);
        clustering.memberships = vec![0.1, 0.9, 0.8, 0.2];
        assert_eq!(canonical(clustering).memberships, [0.9, 0.1, 0.2, 0.8]);
    }
}
