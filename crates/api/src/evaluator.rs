//! Evaluation: scores of predicted sets against the truth.

use crate::{Result, Services, Sets};

/// Scores clusterings against the truth.
pub trait Evaluator: Send + Sync {
    /// The metrics that [`evaluate`](Self::evaluate) reports, the main one first.
    fn metrics(&self) -> Vec<Metric>;

    /// One value per metric, in the order of [`metrics`](Self::metrics). The arguments have equally many sets, none
    /// of them empty; their members are names without meaning.
    ///
    /// # Errors
    /// If there is no such value.
    fn evaluate(&self, truth: &Sets, predicted: &Sets, services: &Services<'_>) -> Result<Vec<f64>>;
}

/// A number that an evaluator reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// The name in tables and in `[tune] metric`.
    pub name: String,
    /// Which way is better.
    pub larger_is_better: bool,
}

impl Metric {
    /// A metric of which more is better.
    pub fn larger(name: &str) -> Self {
        Self { name: name.to_owned(), larger_is_better: true }
    }

    /// A metric of which less is better.
    pub fn smaller(name: &str) -> Self {
        Self { name: name.to_owned(), larger_is_better: false }
    }
}
