//! What comes out of a cell.

use std::collections::BTreeMap;

use compflow_api::{Clustering, Level, plural};
use serde::{Deserialize, Serialize};

use super::unseeded::Unseeded;
use crate::data::Trial;
use crate::observer::Observer;
use crate::plan::PlannedEvaluator;
use crate::plan::recipe::{Recipe, Setting};

/// What comes out of a cell and is kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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

impl Outcome {
    /// The scores of the run's evaluators, in their order.
    pub(crate) fn scores<'a>(
        &'a self,
        setting: &'a Setting,
        trial: &'a Trial,
    ) -> impl Iterator<Item = &'a (String, f64)> {
        setting.evaluators.iter().filter_map(|evaluator| self.scores.get(&score_key(evaluator, trial))).flatten()
    }

    /// The evaluators whose scores can be had and are missing.
    pub(super) fn unscored<'a>(
        &self,
        setting: &'a Setting,
        trial: &Trial,
    ) -> impl Iterator<Item = &'a PlannedEvaluator> {
        let all_known = Unseeded::of(trial).is_some_and(|others| others.is_empty());
        let can_compare = trial.truth.is_some() && !all_known;
        setting
            .evaluators
            .iter()
            .filter(move |evaluator| can_compare || !evaluator.needs_truth())
            .filter(|evaluator| !self.scores.contains_key(&score_key(evaluator, trial)))
    }

    /// Whether there are all scores that can be had.
    pub(crate) fn is_scored(&self, setting: &Setting, trial: &Trial) -> bool {
        self.unscored(setting, trial).next().is_none()
    }

    /// What to say of it if it did not converge.
    pub(super) fn not_converged(&self) -> Option<String> {
        let diagnostics = &self.clustering.diagnostics;
        (!diagnostics.converged)
            .then(|| format!("did not converge in {}", plural(diagnostics.iterations as usize, "iteration")))
    }

    /// Logs again what was warned of when the outcome was computed.
    pub(crate) fn repeat_warnings(&self, observer: &dyn Observer, about: &str) {
        for warning in &self.warnings {
            observer.log(Level::Warn, about, warning);
        }
    }
}

/// Under what an outcome keeps the scores of an evaluator.
pub(super) fn score_key(evaluator: &PlannedEvaluator, trial: &Trial) -> String {
    let Recipe { key, columns, .. } = &evaluator.shared.recipe;
    let columns: String = columns.iter().filter_map(|name| trial.column_key(name)).collect();
    let seeds = if evaluator.needs_truth() { &trial.seeds_key } else { "" };
    format!("{key} {} {seeds}{columns}", trial.truth_key)
}
