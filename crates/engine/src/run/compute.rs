//! Computing one cell.

use std::collections::BTreeMap;
use std::time::Instant;

use compflow_api::{
    Clusterer, Embeddings, Error, Flags, ForeignClusterer, ForeignComposer, Level, Result, Services, StreamTask,
    Task,
};

use super::cache::Cache;
use super::canonical::canonical;
use super::distances::distances;
use super::memory::Watch;
use super::outcome::Outcome;
use super::row::Row;
use crate::data::source::Streamed;
use crate::files::plain;
use crate::plan::cell::Cell;
use crate::plan::{Plan, PlannedData};
use crate::plugin::factory::Factory;
use crate::plugin::services::ComponentHost;
use crate::plugin::texts::warned_of_no_convergence;

/// What the cells of a run have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) plan: &'a Plan,
    pub(super) factory: &'a Factory,
    pub(super) cache: &'a Cache,
    /// Whether to compute again what is kept.
    pub(super) fresh: bool,
    /// Whether a method that did not converge has failed.
    pub(super) strict: bool,
}

/// A cell's outcome, from the cache or computed, with all scores; or why not. Neither if it was cancelled.
pub(super) fn compute(job: &Job<'_>, cell: Cell) -> Row {
    let Job { plan, factory, cache, .. } = *job;
    let observer = &*factory.observer;
    let (key, about) = (cell.key(plan), cell.about(plan));
    let kept = if job.fresh { None } else { cache.load(&key) };
    let mut row = Row { kept: kept.is_some(), ..Row::unfinished(cell) };
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
        Err(Error::Failed(text)) => {
            observer.error(&about, &text);
            row.error = Some(text);
            return row;
        }
    };
    let not_converged = (!outcome.clustering.diagnostics.converged)
        .then(|| format!("did not converge in {} iterations", outcome.clustering.diagnostics.iterations));
    if let Some(text) = not_converged.as_ref().filter(|_| changed && !warned_of_no_convergence(&outcome.warnings))
    {
        observer.log(Level::Warn, &about, text);
        outcome.warnings.push(text.clone());
    }
    let (added, failed) = outcome.score(factory, &plan.setting, cell.trial(plan), &about);
    changed |= added;
    if changed && let Err(error) = cache.store(&key, &outcome) {
        // The result is still in memory and goes into the tables; only a second run has to compute it again.
        observer.log(Level::Warn, &about, &format!("the finished cell cannot be kept: {}", plain(&error)));
    }
    match failed {
        Some(Error::Cancelled) => return row,
        Some(Error::Failed(text)) => {
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
    row.outcome = Some(outcome);
    row
}

/// Clusters a trial.
fn run(job: &Job<'_>, cell: Cell, about: &str) -> Result<Outcome> {
    let host = ComponentHost::sealed(job.factory, about).with_progress();
    let outcome = cluster(job, cell, &host);
    let warnings = host.into_warnings();
    outcome.map(|outcome| Outcome { warnings, ..outcome })
}

fn cluster(job: &Job<'_>, cell: Cell, host: &ComponentHost<'_>) -> Result<Outcome> {
    let (plan, factory, setting) = (job.plan, job.factory, &job.plan.setting);
    let (trial, clusterer) = (cell.trial(plan), &cell.variant(plan).recipe);
    let PlannedData { dataset, streamed, .. } = &plan.data[cell.data];
    let dim = dataset.dim;
    // Instances are made for every cell, so that one that panicked takes no other cell with it.
    let composer = match &setting.composer {
        None => None,
        Some(recipe) => Some(ForeignComposer::try_from(recipe.make(factory)?)?),
    };
    let instance = ForeignClusterer::try_from(clusterer.make(factory)?)?;
    let task = Task {
        embeddings: Embeddings::new(&trial.embeddings, dim),
        space: setting.space,
        degree: setting.degree,
        composer: composer.as_ref().map(|composer| composer as &dyn compflow_api::Composer),
        truth: trial.truth.as_ref().filter(|_| clusterer.flags.contains(Flags::NEEDS_TRUTH)),
        preferences: trial.preferences.as_deref(),
    };
    let services = Services { host, seed: cell.seed(plan), threads: setting.threads, memory: setting.memory };
    let (watch, started) = (Watch::start(), Instant::now());
    let threads = setting.threads;
    let rows = |verify| streamed.as_ref().map(|source| Streamed { source, factory, trial, dim, threads, verify });
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
    // An error while an instance is closed does not discard the outcome.
    for closed in [instance.close(), composer.map_or(Ok(()), ForeignComposer::close)] {
        if let Err(error) = closed {
            services.log(Level::Warn, format!("while it was being ended: {error}"));
        }
    }
    Ok(Outcome { clustering, distances, seconds, peak_bytes, warnings: Vec::new(), scores: BTreeMap::new() })
}
