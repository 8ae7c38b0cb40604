//! Looking into data files before there is a pipeline: what columns they have, and some of their rows.

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use compflow_api::{BatchReader, Code, ForeignLoader, Kind, LoadRequest, Loader, Services};

use super::dataset::{Builder, Dataset, FURTHER, Keep};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::observer::Observer;
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
    /// How the file is called in messages.
    pub about: &'a str,
}

/// What a column holds, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Lists of floating-point numbers: what can be embeddings. The length, if all have the same.
    Vectors(Option<usize>),
    /// Lists of integers or strings: what can be sets.
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
}

/// Looks into files with the loaders of some libraries.
#[derive(Debug)]
pub struct Survey {
    pub(crate) factory: Factory,
}

impl Survey {
    /// Paths in parameters are relative to `folder`.
    pub fn new(registry: &Registry, folder: &Path, observer: &Arc<dyn Observer>, cancel: &Cancel) -> Self {
        Self { factory: Factory::new(registry, folder, observer, cancel, u64::MAX) }
    }

    /// The columns of a file, without reading its rows.
    ///
    /// # Errors
    /// If it cannot be read, or its loader cannot say.
    pub fn describe(&self, source: Source<'_>) -> Result<Described> {
        let loader = self.loader(source)?;
        let host = ComponentHost::new(&self.factory, source.about);
        let services = Services { host: &host, ..Services::none() };
        let described = loader.describe(&LoadRequest { path: Some(source.path), columns: &[] }, &services)?;
        let described = described.ok_or_else(|| {
            let text = format!("the loader `{}` does not say which columns there are", source.loader);
            Error::data(text).context(source.about)
        })?;
        let names = described.names()?;
        // The stream of all columns knows their types before the first row is read.
        let columns: Vec<(String, String)> = names
            .iter()
            .map(|name| match name.as_str() {
                "embedding" | "truth" => (name.clone(), name.clone()),
                _ => (format!("{FURTHER}{name}"), name.clone()),
            })
            .collect();
        let batches = self.open(source, &columns)?;
        let columns = names
            .into_iter()
            .zip(batches.schema().fields())
            .map(|(name, field)| ColumnInfo { name, holds: holds(field.data_type()) })
            .collect();
        Ok(Described { rows: described.rows, columns })
    }

    /// Reads the first rows, checks every value, and keeps the embeddings if they are asked for. `columns` are the name that
    /// the engine has for a column and the name in the file.
    ///
    /// # Errors
    /// Naming the row that is wrong.
    pub fn read(&self, source: Source<'_>, columns: &[(&str, &str)], rows: usize) -> Result<Dataset> {
        let keep = if columns.iter().any(|(name, _)| *name == "embedding") { Keep::Matrix } else { Keep::Nothing };
        let columns: Vec<(String, String)> =
            columns.iter().map(|(name, column)| ((*name).to_owned(), (*column).to_owned())).collect();
        let batches = first_rows(self.open(source, &columns)?, rows);
        self.build(keep, batches, source.about)
    }

    /// Trials from batches.
    pub(crate) fn build(
        &self,
        keep: Keep,
        batches: impl IntoIterator<Item = Result<RecordBatch>>,
        about: &str,
    ) -> Result<Dataset> {
        let mut builder = Builder::new(keep, u64::MAX);
        builder.read(batches, &self.factory.cancel).map_err(|error| error.context(about))?;
        builder.finish().map_err(|error| error.context(about))
    }

    /// Opens a file for some columns: the name in the stream and the name in the file.
    pub(crate) fn open(&self, source: Source<'_>, columns: &[(String, String)]) -> Result<BatchReader> {
        let loader = self.loader(source)?;
        let columns: Vec<(&str, &str)> =
            columns.iter().map(|(name, column)| (name.as_str(), column.as_str())).collect();
        let request = LoadRequest { path: Some(source.path), columns: &columns };
        let host = ComponentHost::new(&self.factory, source.about);
        let stream = loader.load(&request, &Services { host: &host, ..Services::none() });
        let stream = stream.map_err(|error| missing_column(error, &columns, source.about, |_| None))?;
        Ok(stream.into_batches(u64::MAX)?)
    }

    fn loader(&self, source: Source<'_>) -> Result<ForeignLoader> {
        let params = source.params.to_string();
        let created = self.factory.create(Kind::Loader, source.loader, &params, source.loader);
        let loader = created.and_then(|created| ForeignLoader::try_from(created.instance));
        loader.map_err(|error| Error::from(error).context(source.about))
    }
}

/// Batches until there are enough rows; the last one is cut.
fn first_rows(batches: BatchReader, rows: usize) -> impl Iterator<Item = Result<RecordBatch>> {
    let mut left = rows;
    batches.map_while(move |batch| {
        if left == 0 {
            return None;
        }
        Some(batch.map_err(Error::from).map(|batch| {
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
        Holds::Integers | Holds::Texts => Holds::Sets,
        Holds::Floats => Holds::Vectors(None),
        _ => Holds::Other,
    };
    match kind {
        DataType::FixedSizeList(item, length) => match member(item.data_type()) {
            Holds::Vectors(_) => Holds::Vectors(usize::try_from(*length).ok()),
            other => other,
        },
        DataType::List(item) | DataType::LargeList(item) => member(item.data_type()),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Holds::Texts,
        DataType::Dictionary(_, values) => match holds(values) {
            Holds::Texts => Holds::Texts,
            _ => Holds::Other,
        },
        DataType::Boolean => Holds::Flags,
        kind if kind.is_integer() => Holds::Integers,
        kind if kind.is_floating() => Holds::Floats,
        _ => Holds::Other,
    }
}

/// The loader of this project that reads a file of such a name.
pub fn loader_of(path: &Path) -> Option<&'static str> {
    match path.extension().and_then(|extension| extension.to_str())? {
        "parquet" | "pq" => Some("parquet"),
        "arrow" | "arrows" | "ipc" | "feather" => Some("arrow"),
        "npy" => Some("npy"),
        _ => None,
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
        assert_eq!(holds(&DataType::List(item(DataType::Boolean))), Holds::Other);
        assert_eq!(holds(&DataType::UInt8), Holds::Integers);
        assert_eq!(
            holds(&DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))),
            Holds::Texts
        );
    }

    #[test]
    fn a_name_says_which_loader_reads_a_file() {
        assert_eq!(loader_of(Path::new("a/b.pq")), Some("parquet"));
        assert_eq!(loader_of(Path::new("a/b.feather")), Some("arrow"));
        assert_eq!(loader_of(Path::new("a.parquet/b")), None);
    }
}
