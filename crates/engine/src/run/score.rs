//! Scoring the outcome of a cell.

use compflow_api::{Error, Evaluation, Flags, Result, Rows, Services, StreamTask};

use super::compute::Job;
use super::distances::representatives;
use super::evaluate::evaluate;
use super::outcome::{Outcome, score_key};
use super::unseeded::{Compared, Unseeded};
use crate::plan::PlannedEvaluator;
use crate::plan::cell::Cell;
use crate::plugin::services::ComponentHost;

/// Adds the scores that are still missing; says whether there were any, and what the first evaluator said that failed.
/// Scores of the others are kept.
pub(super) fn score(job: &Job<'_>, cell: Cell, outcome: &mut Outcome, about: &str) -> (bool, Option<Error>) {
    let (mut added, mut failed) = (false, None);
    let (setting, trial) = (&job.plan.setting, cell.trial(job.plan));
    let missing: Vec<&PlannedEvaluator> = outcome.unscored(setting, trial).collect();
    let mut points = None;
    for evaluator in missing {
        match score_with(job, cell, evaluator, outcome, &mut points, about) {
            Ok(scores) => {
                outcome.scores.insert(score_key(evaluator, trial), scores);
                added = true;
            }
            Err(error) => failed = failed.or(Some(error.context(format!("evaluator `{}`", evaluator.name())))),
        }
    }
    (added, failed)
}

/// `points` are the representatives of the clusters once somebody has wanted them.
fn score_with(
    job: &Job<'_>,
    cell: Cell,
    evaluator: &PlannedEvaluator,
    outcome: &Outcome,
    points: &mut Option<Option<Vec<f32>>>,
    about: &str,
) -> Result<Vec<(String, f64)>> {
    let (setting, trial, recipe) = (&job.plan.setting, cell.trial(job.plan), &evaluator.shared.recipe);
    let columns = trial.columns(&recipe.columns).map_err(crate::error::Error::into_component)?;
    let clustering = &outcome.clustering;
    let others = Unseeded::of(trial).filter(|_| evaluator.needs_truth());
    let truth = trial.truth.as_ref();
    let compared = others.as_ref().map(|others| others.compared(&clustering.assignments, truth, &columns));
    let (predicted, truth, columns) = match &compared {
        Some(Compared { predicted, truth, columns }) => (predicted, truth.as_ref(), columns),
        None => (&clustering.assignments, truth, &columns),
    };
    let evaluation = Evaluation {
        predicted,
        truth,
        rows: None,
        space: setting.space,
        degree: setting.degree,
        clusters: Some(&clustering.clusters),
        centroids: None,
        columns,
    };
    let scores = if recipe.flags.contains(Flags::NEEDS_EMBEDDINGS) {
        job.with_examples(cell, false, |task: &StreamTask<'_>| {
            if points.is_none() {
                let host = ComponentHost::sealed(job.factory, about);
                let services = Services { host: &host, memory: setting.memory, ..Services::none() };
                *points = Some(representatives(task, clustering, &services)?);
            }
            let centroids = points.as_ref().and_then(Option::as_deref);
            let unseeded = others.as_ref().map(|others| others.examples(task.rows));
            let rows = unseeded.as_ref().map_or(task.rows, |unseeded| unseeded as &dyn Rows);
            let evaluation = Evaluation { rows: Some(rows), centroids, ..evaluation };
            evaluate(job.factory, evaluator, &evaluation, about)
        })?
    } else {
        evaluate(job.factory, evaluator, &evaluation, about)?
    };
    job.require_intact(cell, about)?;
    match recipe.flags.contains(Flags::NEEDS_EMBEDDINGS) {
        true => job.require_inputs(recipe)?,
        // Nothing was composed for it.
        false => job.factory.check_inputs(&recipe.inputs)?,
    }
    Ok(scores)
}
