//! What comes out of a cell.

use std::collections::BTreeMap;

use compflow_api::{Clustering, Error, Level};
use serde::{Deserialize, Serialize};

use super::evaluate::evaluate;
use crate::data::Trial;
use crate::observer::Observer;
use crate::plan::recipe::{Recipe, Setting};
use crate::plugin::factory::Factory;

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

impl Outcome {
    /// Adds the scores that are still missing; says whether there were any, and what the first evaluator said that
    /// failed. Scores of the others are kept.
    pub(crate) fn score(
        &mut self,
        factory: &Factory,
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
            match evaluate(factory, recipe, truth, &self.clustering.assignments, about) {
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

    /// Logs again what was warned of when the outcome was computed.
    pub(crate) fn repeat_warnings(&self, observer: &dyn Observer, about: &str) {
        for warning in &self.warnings {
            observer.log(Level::Warn, about, warning);
        }
    }
}

/// Under what an outcome keeps the scores of an evaluator.
fn score_key(recipe: &Recipe, trial: &Trial) -> String {
    format!("{} {}", recipe.key, trial.truth_key)
}
