//! What is remembered of an outcome that is no longer in memory.

use std::collections::HashSet;

use compflow_api::{Column, Sets, Table};
use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use crate::plan::Plan;
use crate::plan::cell::Cell;

/// An outcome in some hundred bytes, however many examples it is about.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Brief {
    pub(crate) seconds: f64,
    /// About how many numbers the outcome itself has; the same whenever it is computed.
    pub(crate) numbers: usize,
    pub(crate) converged: bool,
    pub(crate) has_exemplars: bool,
    pub(crate) occurring: Occurring,
    /// One for each of the plan's metrics, in their order; none that could not be had.
    pub(crate) scores: Vec<Option<f64>>,
    /// Further columns of the examples, without their values.
    pub(crate) extra: Table,
}

/// What examples were given to.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Occurring {
    /// Singletons that some example belongs to, alone or with others.
    pub(crate) members: u32,
    /// Sets of several singletons.
    pub(crate) unions: u32,
}

impl Occurring {
    pub(crate) fn of(assignments: &Sets) -> Self {
        let sets: HashSet<&[u32]> = assignments.iter().collect();
        let members: HashSet<u32> = sets.iter().flat_map(|set| set.iter().copied()).collect();
        let unions = sets.iter().filter(|set| set.len() > 1).count();
        Self { members: members.len() as u32, unions: unions as u32 }
    }
}

impl Brief {
    pub(super) fn of(plan: &Plan, cell: Cell, outcome: &Outcome) -> Self {
        let Outcome { clustering: found, distances, seconds, .. } = outcome;
        let score = |name: &str| outcome.scores(&plan.setting, cell.trial(plan)).find(|(known, _)| known == name);
        let numbers = [
            found.assignments.len(),
            found.assignments.values().len(),
            found.clusters.values().len(),
            found.centroids.len(),
            found.memberships.len(),
            found.extra.len() * found.assignments.len(),
            found.singletons.vectors.len(),
            found.densities.centres.len(),
            found.densities.factors.len(),
            found.diagnostics.trace.len(),
            distances.len(),
        ];
        Self {
            seconds: *seconds,
            numbers: numbers.into_iter().sum(),
            converged: found.diagnostics.converged,
            has_exemplars: !found.exemplars.is_empty(),
            occurring: Occurring::of(&found.assignments),
            scores: plan.metrics.iter().map(|metric| score(&metric.name).map(|(_, value)| *value)).collect(),
            extra: found.extra.iter().map(|(name, column)| (name.clone(), emptied(column))).collect(),
        }
    }

    /// The score of a metric.
    pub(crate) fn score(&self, plan: &Plan, metric: &str) -> Option<f64> {
        let at = plan.metrics.iter().position(|known| known.name == metric)?;
        *self.scores.get(at)?
    }
}

/// A column of the same kind.
fn emptied(column: &Column) -> Column {
    match column {
        Column::Sets(_) => Column::Sets(Sets::default()),
        Column::Floats(_) => Column::Floats(Vec::new()),
        Column::Integers(_) => Column::Integers(Vec::new()),
        Column::Flags(_) => Column::Flags(Vec::new()),
        Column::Texts(_) => Column::Texts(Vec::new()),
        Column::Vectors { width, .. } => Column::Vectors { width: *width, values: Vec::new() },
    }
}
