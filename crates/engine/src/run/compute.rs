//! Computing one cell.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use compflow_api::{
    Clusterer, Composer, Embeddings, Error, Flags, ForeignClusterer, Level, Result, Rows, Services, Shape,
    StreamTask,
};

use super::brief::Brief;
use super::budget::Room;
use super::cache::Cache;
use super::canonical::canonical;
use super::distances::distances;
use super::memory::Sampler;
use super::outcome::Outcome;
use super::row::Row;
use super::score::score;
use super::selection::select;
use crate::data::source::Streamed;
use crate::files::plain;
use crate::plan::cell::Cell;
use crate::plan::recipe::Recipe;
use crate::plan::shared::Shared;
use crate::plan::{Plan, PlannedData};
use crate::plugin::factory::Factory;
use crate::plugin::services::ComponentHost;

/// What helps if a cell needs more memory than there is.
const REMEDY: &str = "see --memory, and the component's parameters";

/// What the cells of a run have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) plan: &'a Plan,
    pub(super) factory: &'a Factory,
    pub(super) cache: &'a Cache,
    pub(super) sampler: &'a Sampler,
    /// For cells that need more memory than their share; there is none if no other cells run.
    pub(super) room: Option<&'a dyn Room>,
    /// Whether to compute again what is kept.
    pub(super) fresh: bool,
    /// Whether a method that did not converge has failed.
    pub(super) strict: bool,
}

/// A cell's outcome, from the cache or computed, with all scores; or why not. Neither if it was cancelled.
pub(super) fn compute(job: &Job<'_>, cell: Cell) -> Row {
    let Job { plan, factory, cache, .. } = *job;
    let observer = &*factory.observer;
    let about = cell.about(plan);
    let (cell, selection) = match select(job, cell) {
        Ok(settled) => settled,
        Err(Error::Cancelled) => return Row::unfinished(cell),
        Err(error) => {
            let text = error.to_string();
            observer.error(&about, &text);
            return Row { error: Some(text), ..Row::unfinished(cell) };
        }
    };
    let key = cell.key(plan);
    let kept = if job.fresh { None } else { cache.load(&key) };
    let mut row = Row { kept: kept.is_some(), selection, ..Row::unfinished(cell) };
    let mut changed = kept.is_none();
    let outcome = match kept {
        Some(outcome) => {
            outcome.repeat_warnings(observer, &about);
            Ok(outcome)
        }
        None => run(job, cell, &about),
    };
    let mut outcome = match outcome {
        Ok(outcome) => outcome,
        Err(Error::Cancelled) => return row,
        Err(error) => {
            // What cells share may be what failed.
            plan.setting.composer.iter().for_each(Shared::discard);
            let text = error.to_string();
            observer.error(&about, &text);
            row.error = Some(text);
            return row;
        }
    };
    let not_converged = outcome.not_converged();
    // A method that has warned of anything has said more than this.
    if let Some(text) = not_converged.as_ref().filter(|_| changed && outcome.warnings.is_empty()) {
        observer.log(Level::Warn, &about, text);
        outcome.warnings.push(text.clone());
    }
    let (added, failed) = score(job, cell, &mut outcome, &about);
    changed |= added;
    // What was computed beside a component that writes to what it is lent is not kept.
    let trusted = !cell.trial(plan).damaged.load(Ordering::Relaxed);
    let stored = match trusted {
        _ if !changed => Ok(()),
        true => cache.store(&key, &outcome).map_err(|error| {
            let why = plain(&error);
            // The result stays in memory and goes into the tables; only a second run has to compute it again.
            observer.log(Level::Warn, &about, &format!("the finished cell cannot be kept: {why}"));
            why
        }),
        false => Err("a component has written to the examples that it is only lent".to_owned()),
    };
    match failed {
        Some(Error::Cancelled) => return row,
        Some(error) => {
            let text = error.to_string();
            observer.error(&about, &text);
            row.error = Some(text);
        }
        None => {}
    }
    if let Some(text) = not_converged.filter(|_| job.strict) {
        // The scores of a failed cell must neither choose a grid point nor enter a mean.
        outcome.scores.clear();
        observer.error(&about, &text);
        row.error = Some(text);
    }
    row.brief = Some(Brief::of(plan, cell, &outcome));
    row.unkept = stored.is_err().then(|| Box::new(outcome));
    // That it failed is told in another way.
    row.lost = stored.err().filter(|_| row.error.is_none());
    row
}

/// What computes a cell before it is scored, and the files that it is from.
pub(super) fn components(job: &Job<'_>, cell: Cell) -> String {
    let full_name = |recipe: &Recipe| job.factory.full_name(recipe.kind, &recipe.name);
    let clusterer = full_name(&cell.setup(job.plan).recipe);
    match &job.plan.setting.composer {
        Some(composer) => format!("{clusterer}, with {}", full_name(&composer.recipe)),
        None => clusterer,
    }
}

/// Clusters a trial.
pub(super) fn run(job: &Job<'_>, cell: Cell, about: &str) -> Result<Outcome> {
    let host = ComponentHost::sealed(job.factory, about).with_progress();
    let outcome = cluster(job, cell, &host, about);
    let warnings = host.into_warnings();
    outcome.map(|outcome| Outcome { warnings, ..outcome })
}

impl Job<'_> {
    /// Lets `work` have the examples of a cell, with everything about them that its clusterer may know. Those that are not
    /// in memory are read batch by batch; `verify` looks whether they are still those of the trial.
    pub(super) fn with_examples<R>(
        &self,
        cell: Cell,
        verify: bool,
        work: impl FnOnce(&StreamTask<'_>) -> Result<R>,
    ) -> Result<R> {
        let (plan, factory, setting) = (self.plan, self.factory, &self.plan.setting);
        let (trial, recipe) = (cell.trial(plan), &cell.setup(plan).recipe);
        let PlannedData { dataset, streamed, .. } = &plan.data[cell.data];
        let composer = setting.composer.as_ref().map(|composer| composer.get(factory)).transpose()?;
        let columns = trial.columns(&recipe.columns).map_err(crate::error::Error::into_component)?;
        let (dim, threads) = (dataset.dim, setting.threads);
        let kept = Embeddings::new(&trial.embeddings, dim);
        let read = streamed.as_ref().map(|source| Streamed { source, factory, trial, dim, threads, verify });
        work(&StreamTask {
            rows: read.as_ref().map_or(&kept as &dyn Rows, |read| read),
            space: setting.space,
            degree: setting.degree,
            composer: composer.as_deref().map(|composer| composer as &dyn Composer),
            truth: trial.truth.as_ref().filter(|_| recipe.flags.contains(Flags::NEEDS_TRUTH)),
            preferences: trial.preferences.as_deref(),
            weights: trial.weights.as_deref(),
            seeds: cell.seeds(plan).map(|seeds| &seeds.sets),
            columns: &columns,
        })
    }

    /// Fails if a file that a component may read has changed: what was computed may be from another content than that which it
    /// is kept under. To be asked when the component has read all it ever will for it.
    pub(super) fn require_inputs(&self, recipe: &Recipe) -> Result<()> {
        let composer = self.plan.setting.composer.iter().map(|composer| &composer.recipe);
        composer.chain([recipe]).try_for_each(|recipe| self.factory.check_inputs(&recipe.inputs))
    }

    /// Fails if somebody has written into the examples: later cells would compute something else from them, and keep it.
    pub(super) fn require_intact(&self, cell: Cell, about: &str) -> Result<()> {
        let trial = cell.trial(self.plan);
        if trial.damaged.load(Ordering::Relaxed) || !trial.is_intact() {
            trial.damaged.store(true, Ordering::Relaxed);
            return Err(Error::new(format!(
                "the examples or their true sets were written to during {about}: a component that ran then changes what \
                 it is only lent; nothing more is computed from them"
            )));
        }
        Ok(())
    }
}

fn cluster(job: &Job<'_>, cell: Cell, host: &ComponentHost<'_>, about: &str) -> Result<Outcome> {
    let (plan, setting) = (job.plan, &job.plan.setting);
    let mut services = Services { host, seed: cell.seed(plan), threads: setting.threads, memory: setting.memory };
    if cell.trial(plan).damaged.load(Ordering::Relaxed) {
        job.require_intact(cell, "an earlier cell")?;
    }
    // Made for every cell, so that one that panicked takes no other cell with it.
    let instance = ForeignClusterer::try_from(cell.setup(plan).recipe.make(job.factory)?)?;
    let dim = plan.data[cell.data].dataset.dim;
    let shape = Shape { rows: cell.trial(plan).size(), dim, degree: setting.degree };
    let bytes = instance.memory(shape, &services)?;
    if let Some(room) = job.room.filter(|_| bytes > services.memory) {
        services.memory = plan.memory();
        services.require_memory(bytes, REMEDY)?;
        room.make(bytes, about)?;
        services.memory = bytes;
    }
    services.require_memory(bytes, REMEDY)?;
    let watch = job.sampler.watch();
    let started = Instant::now();
    let found = job.with_examples(cell, false, |task| match task.rows.in_memory() {
        Some(embeddings) if !cell.setup(plan).streams => instance.cluster(&task.whole(embeddings), &services),
        _ => instance.cluster_stream(task, &services),
    });
    let (seconds, peak_bytes) = (started.elapsed().as_secs_f64(), watch.peak());
    job.require_intact(cell, about)?;
    let mut clustering = canonical(found?, cell.seeds(plan).map_or(0, |seeds| seeds.names.len()));
    if !setting.memberships {
        clustering.memberships = Vec::new();
    }
    let distances = job.with_examples(cell, true, |task| distances(task, &clustering, &services))?;
    job.require_intact(cell, about)?;
    job.require_inputs(&cell.setup(plan).recipe)?;
    // An error while an instance is closed does not discard the outcome.
    if let Err(error) = instance.close() {
        services.log(Level::Warn, format!("while it was being ended: {error}"));
    }
    Ok(Outcome { clustering, distances, seconds, peak_bytes, warnings: Vec::new(), scores: BTreeMap::new() })
}
