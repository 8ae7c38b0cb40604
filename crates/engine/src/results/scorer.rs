//! Scoring sets that are in files.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_cast::cast;
use arrow_schema::DataType;
use compflow_api::{Evaluation, Flags, ForeignEvaluator, Kind, Sets, Table};

use super::labels::Labels;
use crate::cancel::Cancel;
use crate::data::request::Request;
use crate::data::values::FURTHER;
use crate::data::{Dataset, Described, Holds, Source, Survey};
use crate::error::{Error, Result};
use crate::observer::Observer;
use crate::pipeline::Named;
use crate::plan::shared::Shared;
use crate::plan::{PlannedEvaluator, Recipe};
use crate::plugin::Registry;
use crate::plugin::factory::Created;
use crate::run::evaluate::evaluate;

/// Reads sets, and scores them with evaluators.
#[derive(Debug)]
pub struct Scorer {
    survey: Survey,
}

/// Which sets to read.
#[derive(Debug, Clone, Copy)]
pub struct SetsRequest<'a> {
    /// The file.
    pub source: Source<'a>,
    /// Where its sets are.
    pub labels: &'a Labels,
    /// The column of trials.
    pub trial: Option<&'a str>,
    /// The column of identifiers.
    pub id: Option<&'a str>,
}

impl Scorer {
    /// A scorer with the components of these libraries; paths in parameters are relative to `folder`.
    pub fn new(registry: &Registry, folder: &Path, observer: &Arc<dyn Observer>, cancel: &Cancel) -> Self {
        Self { survey: Survey::new(registry, folder, observer, cancel) }
    }

    /// The columns of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn describe(&self, source: Source<'_>) -> Result<Described> {
        self.survey.describe(source)
    }

    /// The columns that hold 0 and 1, or false and true, and nothing else but gaps, in the order of the file. Those of `except` are
    /// not looked at.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn flags(&self, source: Source<'_>, described: &Described, except: &[&str]) -> Result<Vec<String>> {
        let numbers = |holds| matches!(holds, Holds::Flags | Holds::Integers | Holds::Floats);
        let columns = described.columns.iter().filter(|column| numbers(column.holds));
        let mut columns: Vec<(String, String)> = columns
            .filter(|column| !except.contains(&column.name.as_str()))
            .map(|column| (format!("{FURTHER}{}", column.name), column.name.clone()))
            .collect();
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let mut any: HashSet<String> = HashSet::new();
        for batch in self.survey.load(source, &Request::plain(columns.clone()))? {
            if self.survey.factory.cancel.requested() {
                return Err(Error::Interrupted);
            }
            let batch = batch?;
            let mut kept = Vec::new();
            for (key, name) in columns {
                let Some(column) = batch.column_by_name(&key) else { continue };
                let values = cast(column, &DataType::Float64)
                    .map_err(|error| Error::data(error.to_string()).context(source.about))?;
                let mut values = values.as_primitive::<Float64Type>().iter().flatten().peekable();
                if values.peek().is_some() {
                    any.insert(key.clone());
                }
                if values.all(|value| value == 0.0 || value == 1.0) {
                    kept.push((key, name));
                }
            }
            columns = kept;
        }
        Ok(columns.into_iter().filter(|(key, _)| any.contains(key)).map(|(_, name)| name).collect())
    }

    /// Reads sets; they are the truth of the data set.
    ///
    /// # Errors
    /// If the file or a column cannot be read. What the loader says itself names the file.
    pub fn read(&self, request: SetsRequest<'_>) -> Result<Dataset> {
        let mut columns = vec![("truth", request.labels.named())];
        for (name, column) in [("trial", request.trial), ("id", request.id)] {
            columns.extend(column.map(|column| (name, Named::One(column.to_owned()))));
        }
        let source = Source { split: request.labels.split(), ..request.source };
        self.survey.read_sets(source, &columns)
    }

    /// Makes an evaluator without parameters.
    ///
    /// # Errors
    /// If there is none of that name, or it needs parameters.
    pub fn evaluator(&self, name: &str) -> Result<PlannedEvaluator> {
        self.make(name, "{}", &Table::new())
    }

    /// Makes an evaluator that may ask for these columns.
    fn make(&self, name: &str, params: &str, there: &Table) -> Result<PlannedEvaluator> {
        let created = self.survey.factory.create(Kind::Evaluator, name, params, name)?;
        let flags = created.instance.flags()?;
        if flags.contains(Flags::NEEDS_EMBEDDINGS) {
            return Err(Error::request(format!("evaluator `{name}` needs embeddings, and here are only sets")));
        }
        let columns = created.instance.columns()?;
        if let Some(column) = columns.iter().find(|column| there.iter().all(|(known, _)| known != *column)) {
            let text =
                format!("evaluator `{name}` needs the column `{column}` of the data, and here are only sets");
            return Err(Error::request(text));
        }
        let Created { instance, key, inputs } = created;
        let (name, params) = (name.to_owned(), params.to_owned());
        let recipe = Recipe { kind: Kind::Evaluator, name, params, key, flags, columns, inputs };
        let instance = ForeignEvaluator::try_from(instance)?;
        let metrics = instance.try_metrics()?;
        Ok(PlannedEvaluator { shared: Shared::new(recipe, instance, &self.survey.factory), metrics })
    }

    /// Scores sets: metrics and their values.
    ///
    /// # Errors
    /// Whatever the evaluator says, and a score that is not a number.
    pub fn score(
        &self,
        evaluator: &PlannedEvaluator,
        truth: &Sets,
        predicted: &Sets,
    ) -> Result<Vec<(String, f64)>> {
        let evaluation = Evaluation::new(predicted, truth);
        Ok(evaluate(&self.survey.factory, evaluator, &evaluation, evaluator.name())?)
    }

    /// Scores sets with the evaluator of this name and parameters (JSON), which may ask for these columns of the examples.
    ///
    /// # Errors
    /// If there is none of that name, it refuses its parameters, needs more than there is, or whatever else it says.
    pub fn score_by(
        &self,
        (name, params): (&str, &str),
        truth: &Sets,
        predicted: &Sets,
        columns: &Table,
    ) -> Result<Vec<(String, f64)>> {
        let evaluator = self.make(name, params, columns)?;
        let wanted = evaluator.shared.recipe.columns.iter();
        let wanted = wanted.filter_map(|name| columns.iter().find(|(known, _)| known == name)).cloned();
        let evaluation = Evaluation { columns: &wanted.collect(), ..Evaluation::new(predicted, truth) };
        Ok(evaluate(&self.survey.factory, &evaluator, &evaluation, name)?)
    }
}
