//! Looking into data files before there is a pipeline: what columns they have, and some of their rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use compflow_api::{BatchReader, Code, Description, ForeignLoader, Kind, LoadRequest, Loader, Services};

use super::build::{Builder, Keep};
use super::dataset::Dataset;
use super::request::{Request, UnifiedBatches};
use super::values::{FURTHER, is_text};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::machine::memory_budget;
use crate::observer::Observer;
use crate::pipeline::Named;
use crate::pipeline::keys::SEGMENT_KEYS;
use crate::plugin::Registry;
use crate::plugin::factory::Factory;
use crate::plugin::services::ComponentHost;

/// A file, and who reads it.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The file.
    pub path: &'a Path,
    /// The loader that reads it.
    pub loader: &'a str,
    /// The loader's parameters.
    pub params: &'a serde_json::Value,
    /// What stands between the labels of one text.
    pub split: Option<&'a str>,
    /// How the file is called in messages.
    pub about: &'a str,
}

/// What a column holds, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Lists of numbers: what can be embeddings. The length, if all have the same.
    Vectors(Option<usize>),
    /// Lists of whole numbers: what can be sets, and embeddings too.
    WholeLists(Option<usize>),
    /// Lists of texts: what can be sets.
    Sets,
    /// Integers.
    Integers,
    /// Strings.
    Texts,
    /// Floating-point numbers.
    Floats,
    /// True and false.
    Flags,
    /// Anything else.
    Other,
}

impl Holds {
    /// Whether these can be the sets of examples.
    pub fn can_be_sets(self) -> bool {
        matches!(self, Self::Sets | Self::WholeLists(_) | Self::Integers | Self::Texts)
    }

    /// How long all lists are, if that is known.
    pub fn length(self) -> Option<usize> {
        match self {
            Self::Vectors(length) | Self::WholeLists(length) => length,
            _ => None,
        }
    }
}

/// A column of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnInfo {
    /// As the file calls it.
    pub name: String,
    /// What is in it.
    pub holds: Holds,
}

/// What a file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// How many rows, if that is known without reading them.
    pub rows: Option<u64>,
    /// In the order of the file.
    pub columns: Vec<ColumnInfo>,
}

impl Described {
    /// What a column holds, if there is one of that name.
    pub fn holds(&self, name: &str) -> Option<Holds> {
        self.columns.iter().find(|column| column.name == name).map(|column| column.holds)
    }

    /// The names of all columns, quoted, as messages have them.
    pub fn names(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|column| format!("`{}`", column.name)).collect();
        names.join(", ")
    }

    /// That a column is not there, and which are.
    pub fn lacks(&self, column: &str) -> String {
        let near = compflow_api::nearest(column, self.columns.iter().map(|column| column.name.as_str()));
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        format!("there is no column `{column}`; {near}available: {}", self.names())
    }
}

/// Looks into files with the loaders of some libraries.
#[derive(Debug)]
pub struct Survey {
    pub(crate) factory: Factory,
}

impl Survey {
    /// Paths in parameters are relative to `folder`. What is read may take as much memory as a run may if nobody says how much.
    pub fn new(registry: &Registry, folder: &Path, observer: &Arc<dyn Observer>, cancel: &Cancel) -> Self {
        Self { factory: Factory::new(registry, folder, observer, cancel, memory_budget()) }
    }

    /// The columns of a file, without reading its rows.
    ///
    /// # Errors
    /// If it cannot be read, or its loader cannot say.
    pub fn describe(&self, source: Source<'_>) -> Result<Described> {
        let loader = self.loader(source)?;
        let described = describe(&loader, Some(source.path), source.loader, source.about, &self.factory)?;
        let names = described.names()?;
        // The stream of all columns knows their types before the first row is read.
        let columns: Vec<(String, String)> = names
            .iter()
            .map(|name| match name.as_str() {
                "embedding" | "truth" => (name.clone(), name.clone()),
                _ => (format!("{FURTHER}{name}"), name.clone()),
            })
            .collect();
        let batches = self.load(source, &Request::plain(columns))?;
        let columns = names
            .into_iter()
            .zip(batches.schema().fields())
            .map(|(name, field)| ColumnInfo { name, holds: holds(field.data_type()) })
            .collect();
        Ok(Described { rows: described.rows, columns })
    }

    /// Reads the first rows of files that are like the source, checks every value, and keeps the embeddings if they are asked
    /// for. `columns` are the name that the engine has for a column and the name in the file.
    ///
    /// # Errors
    /// Naming the row that is wrong.
    pub fn read(
        &self,
        source: Source<'_>,
        files: &[PathBuf],
        columns: &[(&str, Named)],
        rows: usize,
    ) -> Result<Dataset> {
        self.read_request(source, files, columns, rows, false)
    }

    /// Reads the sets of a file. Nobody says there that they are unknown, so with a separator what has no text is the empty set, as
    /// it is in CSV.
    ///
    /// # Errors
    /// Naming the row that is wrong.
    pub(crate) fn read_sets(&self, source: Source<'_>, columns: &[(&str, Named)]) -> Result<Dataset> {
        self.read_request(source, &[source.path.to_owned()], columns, usize::MAX, true)
    }

    fn read_request(
        &self,
        source: Source<'_>,
        files: &[PathBuf],
        columns: &[(&str, Named)],
        rows: usize,
        empty: bool,
    ) -> Result<Dataset> {
        let keep = if columns.iter().any(|(name, _)| *name == "embedding") { Keep::Matrix } else { Keep::Nothing };
        let key =
            |name: &str| if SEGMENT_KEYS.contains(&name) { format!("{FURTHER}{name}") } else { name.to_owned() };
        let columns: Vec<(String, Named)> =
            columns.iter().map(|(name, named)| (key(name), named.clone())).collect();
        let has = |name: &&str| columns.iter().any(|(known, _)| *known == key(name));
        let segments = SEGMENT_KEYS.iter().all(has);
        let mut request = Request::new(&columns, source.split, source.about, || {
            let loader = self.loader(source)?;
            Ok(describe(&loader, Some(source.path), source.loader, source.about, &self.factory)?.names()?)
        })?;
        request.empty = empty;
        let mut builder = Builder::new(keep, self.factory.memory);
        builder.segments = segments;
        for path in files {
            let about = path.display().to_string();
            let about = if files.len() == 1 { source.about } else { about.as_str() };
            let left = rows - builder.rows();
            if left == 0 {
                break;
            }
            let batches = self.load(Source { path, about, ..source }, &request)?;
            let batches = UnifiedBatches::new(batches, request.clone(), self.factory.memory);
            let read = builder.read(first_rows(batches, left), &self.factory.cancel);
            read.map_err(|error| error.context(about))?;
        }
        builder.finish().map_err(|error| error.context(source.about))
    }

    /// Opens a file for some columns.
    pub(crate) fn load(&self, source: Source<'_>, request: &Request) -> Result<BatchReader> {
        let loader = self.loader(source)?;
        let columns = request.asked();
        let request = LoadRequest { path: Some(source.path), columns: &columns };
        let host = ComponentHost::new(&self.factory, source.about);
        let stream =
            loader.load(&request, &Services { host: &host, memory: self.factory.memory, ..Services::none() });
        let stream = stream.map_err(|error| missing_column(error, &columns, source.about, |_| None))?;
        Ok(stream.into_batches(self.factory.memory)?)
    }

    fn loader(&self, source: Source<'_>) -> Result<ForeignLoader> {
        let params = source.params.to_string();
        let created = self.factory.create(Kind::Loader, source.loader, &params, source.loader);
        let loader = created.and_then(|created| ForeignLoader::try_from(created.instance));
        loader.map_err(|error| Error::from(error).context(source.about))
    }
}

/// What a source says of itself.
///
/// # Errors
/// If it cannot be read, or its loader cannot say.
pub(crate) fn describe(
    loader: &ForeignLoader,
    file: Option<&Path>,
    name: &str,
    about: &str,
    factory: &Factory,
) -> Result<Description> {
    let host = ComponentHost::new(factory, about);
    let services = Services { host: &host, memory: factory.memory, ..Services::none() };
    let described = loader.describe(&LoadRequest { path: file, columns: &[] }, &services)?;
    described.ok_or_else(|| {
        let text = format!("the loader `{name}` does not say which columns there are: name them one by one");
        Error::data(text).context(about)
    })
}

/// Batches until there are enough rows; the last one is cut.
fn first_rows(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    rows: usize,
) -> impl Iterator<Item = Result<RecordBatch>> {
    let mut left = rows;
    batches.map_while(move |batch| {
        if left == 0 {
            return None;
        }
        Some(batch.map(|batch| {
            let batch = batch.slice(0, batch.num_rows().min(left));
            left -= batch.num_rows();
            batch
        }))
    })
}

/// That a column is missing, in the words of somebody who has named a file and a column and nothing else. `option` is
/// what names another column in the place of the one with this key, if anything does.
pub(crate) fn missing_column(
    error: compflow_api::Error,
    columns: &[(&str, &str)],
    about: &str,
    option: impl Fn(&str) -> Option<String>,
) -> Error {
    let Some(problem) = error.problems().iter().find(|problem| problem.code == Code::Column) else {
        return error.into();
    };
    let key = problem.parameter.as_deref().unwrap_or_default();
    let source = columns.iter().find(|(name, _)| *name == key).map_or("", |(_, source)| source);
    let help = problem.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
    let other = option(key).map_or_else(String::new, |option| format!("; {option} says which it is"));
    Error::request(format!("{about}: there is no column `{source}`{help}{other}"))
}

fn holds(kind: &DataType) -> Holds {
    let member = |item: &DataType| match holds(item) {
        Holds::Integers => Holds::WholeLists(None),
        Holds::Texts => Holds::Sets,
        Holds::Floats => Holds::Vectors(None),
        _ => Holds::Other,
    };
    match kind {
        DataType::FixedSizeList(item, length) => match member(item.data_type()) {
            Holds::Vectors(_) => Holds::Vectors(usize::try_from(*length).ok()),
            Holds::WholeLists(_) => Holds::WholeLists(usize::try_from(*length).ok()),
            other => other,
        },
        DataType::List(item) | DataType::LargeList(item) => member(item.data_type()),
        DataType::RunEndEncoded(_, values) => holds(values.data_type()),
        kind if is_text(kind) => Holds::Texts,
        DataType::Boolean => Holds::Flags,
        kind if kind.is_integer() => Holds::Integers,
        kind if kind.is_floating() => Holds::Floats,
        _ => Holds::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Field;

    #[test]
    fn what_a_column_holds_follows_from_its_type() {
        let item = |kind| Arc::new(Field::new("item", kind, true));
        assert_eq!(holds(&DataType::FixedSizeList(item(DataType::Float16), 64)), Holds::Vectors(Some(64)));
        assert_eq!(holds(&DataType::LargeList(item(DataType::Float64))), Holds::Vectors(None));
        assert_eq!(holds(&DataType::List(item(DataType::Utf8View))), Holds::Sets);
        assert_eq!(holds(&DataType::FixedSizeList(item(DataType::Int8), 3)), Holds::WholeLists(Some(3)));
        assert_eq!(holds(&DataType::List(item(DataType::Boolean))), Holds::Other);
        assert_eq!(holds(&DataType::UInt8), Holds::Integers);
        assert_eq!(
            holds(&DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))),
            Holds::Texts
        );
    }
}
