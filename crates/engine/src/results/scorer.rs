//! Scoring sets that are in files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compflow_api::{
    Code, Evaluation, Flags, ForeignEvaluator, ForeignLoader, Kind, LoadRequest, Loader, Services, Sets,
};

use crate::cancel::Cancel;
use crate::data::Dataset;
use crate::data::dataset::{Builder, Keep};
use crate::error::{Error, Result};
use crate::observer::Observer;
use crate::plan::shared::Shared;
use crate::plan::{PlannedEvaluator, Recipe};
use crate::plugin::Registry;
use crate::plugin::factory::Factory;
use crate::plugin::services::ComponentHost;
use crate::run::evaluate::evaluate;

/// Reads sets, and scores them with evaluators.
#[derive(Debug)]
pub struct Scorer {
    factory: Factory,
}

/// That a column is missing, in the words of somebody who has named a file and a column and nothing else.
pub(crate) fn missing_column(error: compflow_api::Error, columns: &[(&str, &str)], about: &str) -> Error {
    let Some(problem) = error.problems().iter().find(|problem| problem.code == Code::Column) else {
        return error.into();
    };
    let named = columns.iter().find(|(name, _)| problem.parameter.as_deref() == Some(*name));
    let source = named.map_or("", |(_, source)| source);
    let help = problem.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
    Error::request(format!("{about}: there is no column `{source}`{help}"))
}

/// Which sets to read.
#[derive(Debug, Clone)]
pub struct SetsRequest<'a> {
    /// The file.
    pub path: &'a Path,
    /// The loader that reads it.
    pub loader: &'a str,
    /// The loader's parameters.
    pub params: serde_json::Value,
    /// The column of sets.
    pub column: &'a str,
    /// The column of trials.
    pub trial: Option<&'a str>,
    /// The column of identifiers.
    pub id: Option<&'a str>,
}

impl Scorer {
    /// A scorer with the components of these libraries; paths in parameters are relative to `folder`.
    pub fn new(registry: &Registry, folder: PathBuf, observer: &Arc<dyn Observer>, cancel: &Cancel) -> Self {
        Self { factory: Factory::new(registry, &folder, observer, cancel, u64::MAX) }
    }

    /// Reads sets; they are the truth of the data set. `about` is how the file is called in messages.
    ///
    /// # Errors
    /// If the file or a column cannot be read. What the loader says itself names the file.
    pub fn read(&self, request: &SetsRequest<'_>, about: &str) -> Result<Dataset> {
        let params = request.params.to_string();
        let created = self.factory.create(Kind::Loader, request.loader, &params, request.loader);
        let loader = created.and_then(|created| ForeignLoader::try_from(created.instance));
        let loader = loader.map_err(|error| Error::from(error).context(about))?;
        let columns = [("truth", Some(request.column)), ("trial", request.trial), ("id", request.id)];
        let columns: Vec<(&str, &str)> =
            columns.into_iter().filter_map(|(name, source)| Some((name, source?))).collect();
        let request = LoadRequest { path: Some(request.path), columns: &columns };
        let host = ComponentHost::new(&self.factory, about);
        let stream = loader.load(&request, &Services { host: &host, ..Services::none() });
        let stream = stream.map_err(|error| missing_column(error, &columns, about))?;
        let batches = stream.into_batches(u64::MAX)?;
        let mut builder = Builder::new(Keep::Nothing, u64::MAX);
        builder.read(batches, &self.factory.cancel).map_err(|error| error.context(about))?;
        builder.finish().map_err(|error| error.context(about))
    }

    /// Makes an evaluator without parameters.
    ///
    /// # Errors
    /// If there is none of that name, or it needs parameters.
    pub fn evaluator(&self, name: &str) -> Result<PlannedEvaluator> {
        let created = self.factory.create(Kind::Evaluator, name, "{}", name)?;
        let flags = created.instance.flags()?;
        if flags.contains(Flags::NEEDS_EMBEDDINGS) {
            return Err(Error::request(format!("evaluator `{name}` needs embeddings, and here are only sets")));
        }
        let columns = created.instance.columns()?;
        if let Some(column) = columns.first() {
            let text =
                format!("evaluator `{name}` needs the column `{column}` of the data, and here are only sets");
            return Err(Error::request(text));
        }
        let recipe = Recipe {
            kind: Kind::Evaluator,
            name: name.to_owned(),
            params: "{}".to_owned(),
            key: created.key,
            flags,
            columns,
        };
        let instance = ForeignEvaluator::try_from(created.instance)?;
        let metrics = instance.try_metrics()?;
        Ok(PlannedEvaluator { shared: Shared::new(recipe, instance), metrics })
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
        Ok(evaluate(&self.factory, evaluator, &evaluation, evaluator.name())?)
    }
}
