//! How stable a clusterer is on the examples of a trial, and how much its clusters say about examples that they were not
//! found in.
//!
//! The examples are cut into two random halves and both are clustered. Each half is then also labelled by the nearest
//! representatives of the other's clusters, and the agreement of the two labellings of all examples is a number between 0,
//! chance, and 1. The same is done with examples spread evenly over the range of every dimension, where nothing is to be
//! found.
//!
//! Examples whose sets are known beforehand are in both halves, so that a setup that cannot keep all of them fails here as it
//! would in the end; what is compared are the others.

use std::sync::Arc;

use compflow_api::{
    Clusterer, Clustering, Code, Embeddings, Error, ForeignClusterer, Result, Services, Sets, Shape, Task, plural,
};
use compflow_kernels::pairs::squared;
use serde::{Deserialize, Serialize};

use super::across::Representatives;
use super::agreement::agreement;
use super::compute::Job;
use super::means::centre;
use super::pool::Pool;
use crate::files::hash_parts;
use crate::observer::{Observer, Silent};
use crate::parallel;
use crate::plan::Plan;
use crate::plan::cell::Cell;
use crate::plan::seed::derive_seed;
use crate::plugin::factory::Factory;
use crate::plugin::services::ComponentHost;

/// How often examples are cut into halves.
const SPLITS: usize = 7;
/// How often evenly spread examples take their place.
const REFERENCES: usize = 2;
/// How many pieces of work the stability of one setup is.
pub(super) const PIECES: usize = SPLITS + REFERENCES;
/// Halves are cut from this many examples, drawn at random, if there are more.
const MOST: usize = 4096;
/// The fewest examples that can be cut into halves of which one says something about the other.
const FEWEST: usize = 4;

/// What came of two halves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Split {
    /// The agreement of the two labellings.
    pub(crate) agreement: f64,
    /// Mean squared distance of examples to the nearest representative that was found in the other half.
    pub(crate) held_out: f64,
    /// Mean squared distance of examples to the nearest representative that was found in their own half.
    pub(crate) within: f64,
    /// Mean squared distance of examples to the mean of the other half.
    pub(crate) spread: f64,
    /// Mean number of clusters found in a half.
    pub(crate) clusters: f64,
}

/// What came of all halves, for one setup of a clusterer on one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stability {
    /// Of the examples.
    pub(crate) splits: Vec<Split>,
    /// Of evenly spread ones.
    pub(crate) references: Vec<Split>,
}

/// What came of measuring: how stable a setup is, or why the clusterer refuses it.
pub(super) type Measured = std::result::Result<Stability, String>;

/// Under what the stability of a cell's setup is kept.
pub(super) fn key(plan: &Plan, cell: Cell) -> String {
    let seeds = if cell.seeds(plan).is_some() { " seeds" } else { "" };
    let numbers = format!("stability {SPLITS} {REFERENCES} {MOST} even{seeds}");
    hash_parts([numbers.as_bytes(), cell.key(plan).as_bytes()].into_iter())
}

/// Measures the stability of a cell's setup; `advance` is told of every split that has been done.
///
/// # Errors
/// What might go better another time: that examples cannot be read, memory, a fault of the clusterer.
pub(super) fn measure(job: &Job<'_>, cell: Cell, about: &str, advance: &(dyn Fn() + Sync)) -> Result<Measured> {
    let (plan, setting) = (job.plan, &job.plan.setting);
    let silent: Arc<dyn Observer> = Silent::shared();
    let factory = &job.factory.watched_by(&silent, &job.factory.cancel);
    let seed = |what: &str, number: usize| derive_seed(cell.seed(plan), &[what, &number.to_string()]);
    job.with_examples(cell, true, |task| {
        let pool = Pool::draw(task, MOST, seed("pool", 0))?;
        let unknown = pool.unknown().len();
        if unknown < FEWEST {
            let without = if unknown < pool.len() { " without a seed" } else { "" };
            let (examples, are) = (plural(unknown, "example"), if unknown == 1 { "is" } else { "are" });
            return Ok(Err(format!("{examples}{without} {are} too few to be cut into halves")));
        }
        let placeholder = [0.0];
        let of = task.with(Embeddings::new(&placeholder, 1));
        let shape = Shape { rows: pool.half(), dim: task.rows.dim(), degree: setting.degree };
        let asked = ForeignClusterer::try_from(cell.setup(plan).recipe.make(factory)?)?;
        let host = ComponentHost::sealed(factory, about);
        let bytes = asked.memory(shape, &Services { host: &host, seed: 0, threads: 1, memory: setting.memory })?;
        // Small pieces of work are better done beside one another than each by several threads, as far as memory goes.
        let fit = setting.memory.checked_div(bytes).map_or(usize::MAX, |fit| fit as usize);
        let workers = setting.threads.min(fit).clamp(1, PIECES);
        let work = Work {
            plan,
            factory,
            cell,
            about,
            of,
            threads: (setting.threads / workers).max(1),
            memory: setting.memory / workers as u64,
        };
        let splits = parallel::map(PIECES, workers, |at| {
            let seed = seed("split", at);
            let [left, right] = match at < SPLITS {
                true => pool.halves(seed),
                false => {
                    let [left, right] = pool.halves(seed);
                    [
                        left.unknown().evenly_spread(derive_seed(seed, &["left"])),
                        right.unknown().evenly_spread(derive_seed(seed, &["right"])),
                    ]
                }
            };
            let split = work.split(&left, &right, seed);
            advance();
            split
        });
        job.require_intact(cell, about)?;
        // Before anything is called final: a component refuses files that have changed as it refuses parameters.
        job.require_inputs(&cell.setup(plan).recipe)?;
        let mut splits = match splits {
            Ok(splits) => splits,
            Err(error) if is_final(&error) => return Ok(Err(error.to_string())),
            Err(error) => return Err(error),
        };
        let references = splits.split_off(SPLITS);
        Ok(Ok(Stability { splits, references }))
    })
}

/// Whether the same parameters would fail on the same examples again.
fn is_final(error: &Error) -> bool {
    let problems = error.problems();
    !problems.is_empty() && problems.iter().all(|problem| matches!(problem.code, Code::Parameter | Code::Data))
}

/// What all halves have in common.
struct Work<'a> {
    plan: &'a Plan,
    factory: &'a Factory,
    cell: Cell,
    about: &'a str,
    /// The setting; its examples do not count.
    of: Task<'a>,
    threads: usize,
    memory: u64,
}

impl Work<'_> {
    fn split(&self, left: &Pool, right: &Pool, seed: u64) -> Result<Split> {
        let (found_left, by_left) = self.cluster(&left.task(&self.of), derive_seed(seed, &["left"]))?;
        let (found_right, by_right) = self.cluster(&right.task(&self.of), derive_seed(seed, &["right"]))?;
        let (unknown_left, unknown_right) = (left.unknown(), right.unknown());
        let (task_left, task_right) = (&unknown_left.task(&self.of), &unknown_right.task(&self.of));
        let (crossed_left, far_left) = by_right.label(task_left);
        let (crossed_right, far_right) = by_left.label(task_right);
        // Of all examples: as the left half has it, and as the right half has it.
        let joined = |first: &Sets, second: &Sets| first.iter().chain(second.iter()).collect::<Sets>();
        let (own_left, own_right) =
            (left.of_unknown(&found_left.assignments), right.of_unknown(&found_right.assignments));
        let agreement = agreement(&joined(&own_left, &crossed_right), &joined(&crossed_left, &own_right));
        let clusters = |clustering: &Clustering| {
            clustering
                .assignments
                .iter()
                .filter(|set| !set.is_empty())
                .collect::<std::collections::HashSet<_>>()
                .len()
        };
        Ok(Split {
            agreement,
            held_out: (far_left + far_right) / 2.0,
            within: (by_left.label(task_left).1 + by_right.label(task_right).1) / 2.0,
            spread: (spread(task_left, task_right) + spread(task_right, task_left)) / 2.0,
            clusters: (clusters(&found_left) + clusters(&found_right)) as f64 / 2.0,
        })
    }

    fn cluster(&self, task: &Task<'_>, seed: u64) -> Result<(Clustering, Representatives)> {
        let setup = self.cell.setup(self.plan);
        let host = ComponentHost::sealed(self.factory, self.about);
        let services = Services { host: &host, seed, threads: self.threads, memory: self.memory };
        let instance = ForeignClusterer::try_from(setup.recipe.make(self.factory)?)?;
        let bytes = instance.memory(task.shape(), &services)?;
        services.require_memory(bytes, "see --memory, and the component's parameters")?;
        let clustering = match setup.streams {
            true => instance.cluster_stream(&task.stream(), &services)?,
            false => instance.cluster(task, &services)?,
        };
        let representatives = Representatives::of(task, &clustering, &services)?;
        Ok((clustering, representatives))
    }
}

/// Mean squared distance of points to the mean of others.
fn spread(task: &Task<'_>, others: &Task<'_>) -> f64 {
    let dim = task.embeddings.dim();
    let mean = centre(&others.points(), task.space, dim);
    let points = task.points();
    points.chunks_exact(dim).map(|point| squared(point, &mean)).sum::<f64>() / task.embeddings.len() as f64
}
