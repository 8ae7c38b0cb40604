//! Reading labelled data: whatever a pipeline can read.

use std::path::{Path, PathBuf};

use compflow_api::{Code, Flags, ForeignLoader, Kind};

use crate::causes::Cause;
use crate::data::Dataset;
use crate::data::build::Keep;
use crate::data::request::Request;
use crate::data::source::DataSource;
use crate::data::survey::describe;
use crate::data::{ENDINGS, data_files, loader_of};
use crate::error::{Error, Result};
use crate::files::display;
use crate::pipeline::Named;
use crate::plugin::factory::Factory;

/// Labelled data, as the command line names it.
#[derive(Debug, Clone)]
pub struct FitData {
    /// A file, or a pattern; the files of a pattern are read as if they were one. For a loader that reads none, what the data is
    /// called.
    pub path: String,
    /// The loader; by the ending of the file if not given.
    pub loader: Option<String>,
    /// The loader's parameters; its defaults if not given.
    pub params: Option<serde_json::Value>,
    /// The source's names of `embedding`, `truth`, `trial` and `weight`.
    pub columns: FitColumns,
}

/// The source's names of columns.
#[derive(Debug, Clone)]
pub struct FitColumns {
    /// Embeddings.
    pub embedding: String,
    /// The sets of labels.
    pub truth: String,
    /// Trials; `None` if it is not said.
    pub trial: Trials,
    /// How much each example counts; all the same if not given.
    pub weight: Option<String>,
    /// What stands between the labels of one text.
    pub split: Option<String>,
}

/// Where trials are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trials {
    /// In this column.
    Column(String),
    /// In the column `trial`, if there is one.
    IfThere,
    /// Nowhere: everything is one.
    No,
}

/// The column of trials that is looked for.
const TRIAL: &str = "trial";

/// Reads a data set; also says whether it has trials.
///
/// # Errors
/// Naming the file and the column or row that is at fault.
pub(super) fn read(data: &FitData, factory: &Factory, threads: usize) -> Result<(Dataset, bool)> {
    let reads_files = |name: &String| {
        let entry = factory.registry.find(Kind::Loader, name);
        entry.map_or(true, |entry| entry.component.flags().contains(Flags::NEEDS_PATH))
    };
    let files = match &data.loader {
        Some(loader) if !reads_files(loader) => Vec::new(),
        _ => data_files(Path::new(&data.path), data.loader.as_deref(), &factory.cancel).map_err(Error::request)?,
    };
    let loader = match &data.loader {
        Some(loader) => loader.clone(),
        None => {
            let found = files.first().and_then(|file| loader_of(file));
            let text = format!("{}: expected a {ENDINGS} file; --loader names another", data.path);
            found.ok_or_else(|| Error::request(text))?.to_owned()
        }
    };
    let params = data.params.clone().unwrap_or_else(|| match loader.as_str() {
        "npy" => serde_json::json!({ "labels": beside(&files) }),
        _ => serde_json::json!({}),
    });
    let created = factory.create(Kind::Loader, &loader, &params.to_string(), &loader);
    let made = created.and_then(|created| ForeignLoader::try_from(created.instance));
    let made = made.map_err(|error| Error::from(error).context(&data.path))?;
    let mut columns = vec![
        ("embedding".to_owned(), Named::from_option(&data.columns.embedding)),
        ("truth".to_owned(), Named::from_option(&data.columns.truth)),
    ];
    match &data.columns.trial {
        Trials::Column(name) => columns.push((TRIAL.to_owned(), Named::One(name.clone()))),
        Trials::IfThere => columns.push((TRIAL.to_owned(), Named::One(TRIAL.to_owned()))),
        Trials::No => {}
    }
    columns.extend(data.columns.weight.iter().map(|name| ("weight".to_owned(), Named::One(name.clone()))));
    let first = files.first().map(PathBuf::as_path);
    let request = Request::new(&columns, data.columns.split.as_deref(), &data.path, || {
        Ok(describe(&made, first, &loader, &data.path, factory)?.names()?)
    })?;
    let mut source = DataSource {
        name: data.path.clone(),
        loader: made,
        seed: 0,
        files: if files.is_empty() { vec![None] } else { files.into_iter().map(Some).collect() },
        request,
        segments: false,
    };
    if data.columns.trial == Trials::IfThere {
        let lacks_trials = |file: &Option<PathBuf>| match source.probe(file.as_deref(), factory) {
            Err(Error::Component(error)) => error
                .problems()
                .iter()
                .any(|problem| problem.code == Code::Column && problem.parameter.as_deref() == Some(TRIAL)),
            _ => false,
        };
        if source.files.iter().any(lacks_trials) {
            source.request.remove(TRIAL);
        }
    }
    let has_trials = source.request.has(TRIAL);
    source.probe_all(factory, |key| Some(format!("--columns {key}=NAME")))?;
    let dataset = source.read(Keep::Matrix, factory, threads, factory.memory).map_err(|error| match error {
        Error::Data(problem) if problem.cause == Cause::LabelMissing => Error::Data(problem)
            .help("leave out examples without labels, and give those that are of nothing an empty list"),
        Error::Data(problem) if problem.cause == Cause::TrialNumber => Error::Data(problem)
            .help("give every trial a whole number; --columns trial= takes all examples for one trial"),
        other => other,
    })?;
    Ok((dataset, has_trials))
}

/// Where the labels of an npy file are if nobody says: beside it.
fn beside(files: &[PathBuf]) -> String {
    let folder = files.first().and_then(|file| file.parent()).map(display).unwrap_or_default();
    Path::new(&folder).join("{stem}-labels.npy").display().to_string()
}
