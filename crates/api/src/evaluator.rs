//! Evaluation: scores of predicted sets, against the truth or against the data.

use serde::{Deserialize, Serialize};

use crate::arrow::{Column, Table};
use crate::{Error, Result, Rows, Services, Sets, Space, abi};

/// Scores clusterings.
pub trait Evaluator: Send + Sync {
    /// The metrics that [`evaluate`](Self::evaluate) reports, the main one first.
    fn metrics(&self) -> Vec<Metric>;

    /// One value per metric, in the order of [`metrics`](Self::metrics).
    ///
    /// # Errors
    /// If there is no such value.
    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>>;
}

/// What an evaluator is given. Members of sets are names without meaning; the empty set is "none of them".
#[derive(Clone, Copy)]
pub struct Evaluation<'a> {
    /// The set of every example.
    pub predicted: &'a Sets,
    /// The true set of every example, if the data says; see [`NEEDS_TRUTH`](crate::Flags::NEEDS_TRUTH).
    pub truth: Option<&'a Sets>,
    /// The examples, finite, not normalised, if there are any; see [`NEEDS_EMBEDDINGS`](crate::Flags::NEEDS_EMBEDDINGS).
    pub rows: Option<&'a dyn Rows>,
    /// Where distances are taken.
    pub space: Space,
    /// Largest composition considered, at least 1.
    pub degree: usize,
    /// The clusters, each the set of its members, if more is known than the sets.
    pub clusters: Option<&'a Sets>,
    /// For every cluster a point of the space, row-major, if the method has one.
    pub centroids: Option<&'a [f32]>,
    /// The columns that the instance [asked for](crate::Component::columns).
    pub columns: &'a Table,
}

impl<'a> Evaluation<'a> {
    /// Predicted against true sets, and nothing else.
    pub fn new(predicted: &'a Sets, truth: &'a Sets) -> Self {
        static NO_COLUMNS: Table = Table::new();
        Self {
            predicted,
            truth: Some(truth),
            rows: None,
            space: Space::default(),
            degree: 1,
            clusters: None,
            centroids: None,
            columns: &NO_COLUMNS,
        }
    }

    /// The true sets.
    ///
    /// # Errors
    /// If the data has none.
    pub fn truth(&self) -> Result<&'a Sets> {
        self.truth.ok_or_else(|| Error::data("needs true sets, and the data has none"))
    }

    /// The examples.
    ///
    /// # Errors
    /// If there are none.
    pub fn rows(&self) -> Result<&'a dyn Rows> {
        self.rows.ok_or_else(|| Error::data("needs embeddings, and there are none"))
    }

    /// A column that the instance asked for.
    ///
    /// # Errors
    /// If it did not, or the data lacks it.
    pub fn column(&self, name: &str) -> Result<&'a Column> {
        find_column(self.columns, name)
    }
}

/// A further column.
pub(crate) fn find_column<'a>(columns: &'a Table, name: &str) -> Result<&'a Column> {
    let found = columns.iter().find(|(known, _)| known == name).map(|(_, column)| column);
    found.ok_or_else(|| Error::data(format!("the data has no further column `{name}`")))
}

/// What a metric counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u32)]
pub enum Unit {
    /// A plain number.
    #[default]
    Number = abi::UNIT_NUMBER,
    /// A part of 1, shown in per cent.
    Share = abi::UNIT_SHARE,
    /// How many.
    Count = abi::UNIT_COUNT,
    /// A distance of the space, or a sum of them.
    Distance = abi::UNIT_DISTANCE,
}

impl Unit {
    /// The unit with this number on the boundary.
    pub(crate) fn from_raw(raw: u32) -> Self {
        [Self::Share, Self::Count, Self::Distance].into_iter().find(|unit| *unit as u32 == raw).unwrap_or_default()
    }
}

/// A number that an evaluator reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The name in tables and in `[tune] metric`.
    pub name: String,
    /// Which way is better.
    pub larger_is_better: bool,
    /// What it counts in.
    pub unit: Unit,
    /// The smallest and the largest value there can be.
    pub range: (f64, f64),
}

impl Metric {
    fn new(name: &str, larger_is_better: bool, unit: Unit, range: (f64, f64)) -> Self {
        Self { name: name.to_owned(), larger_is_better, unit, range }
    }

    /// A part of 1 of which more is better, as most scores are: shown in per cent.
    pub fn share(name: &str) -> Self {
        Self::new(name, true, Unit::Share, (0.0, 1.0))
    }

    /// A number of things of which fewer is better.
    pub fn count(name: &str) -> Self {
        Self::new(name, false, Unit::Count, (0.0, f64::INFINITY))
    }

    /// A distance, or a sum of them, of which less is better.
    pub fn distance(name: &str) -> Self {
        Self::new(name, false, Unit::Distance, (0.0, f64::INFINITY))
    }

    /// A plain number of which more is better.
    pub fn number(name: &str) -> Self {
        Self::new(name, true, Unit::Number, (f64::NEG_INFINITY, f64::INFINITY))
    }

    /// The same, of which less is better.
    #[must_use]
    pub fn smaller_is_better(mut self) -> Self {
        self.larger_is_better = false;
        self
    }

    /// The same, of which more is better.
    #[must_use]
    pub fn larger_is_better(mut self) -> Self {
        self.larger_is_better = true;
        self
    }

    /// The same between other bounds.
    #[must_use]
    pub fn between(mut self, least: f64, most: f64) -> Self {
        self.range = (least, most);
        self
    }
}
