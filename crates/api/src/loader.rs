//! Loading: from a file, or from nothing, to a stream of tables.

use std::path::Path;

use crate::arrow::{ArrowSchema, table_schema};
use crate::{Result, Services, Stream, Table};

/// Yields tables of embeddings.
pub trait Loader: Send + Sync {
    /// Opens a stream of all columns that were asked for, and no others, under the names of the request.
    ///
    /// `embedding` is a list or fixed-size list of numbers, or a string of them; `truth` a list of integers or strings, or
    /// one of those itself; `trial` integers; `id` integers or strings; `preference` and `weight` numbers; a name that begins
    /// with `column:` stands for a further column of integers, floats or strings, which may also be one dimension of the
    /// embeddings or whether a label is in the sets. The caller converts and checks the values.
    ///
    /// # Errors
    /// If the source cannot be opened, or lacks a column: [`Error::column`](crate::Error::column).
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Stream>;

    /// What the source holds, without reading all of it; `None` if that takes opening the stream.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    fn describe(&self, _request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Option<Description>> {
        Ok(None)
    }
}

/// What a loader is asked for: a file, and the columns that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadRequest<'a> {
    /// Absolute path, for those that declare [`NEEDS_PATH`](crate::Flags::NEEDS_PATH).
    pub path: Option<&'a Path>,
    /// The name in the stream and the name in the source.
    pub columns: &'a [(&'a str, &'a str)],
}

impl<'a> LoadRequest<'a> {
    /// The source's name of a column, if it is wanted.
    pub fn column(&self, name: &str) -> Option<&'a str> {
        self.columns.iter().find(|(known, _)| *known == name).map(|(_, source)| *source)
    }
}

/// What a source holds.
#[derive(Debug)]
pub struct Description {
    /// How many rows, if that is known without reading them.
    pub rows: Option<u64>,
    /// Length of an embedding, if that is known.
    pub dim: Option<usize>,
    /// All columns of the source, under its own names: a struct.
    pub columns: ArrowSchema,
}

impl Description {
    /// A description of a source with columns like those of `table`, whose rows do not matter.
    ///
    /// # Errors
    /// If the columns are not equally long.
    pub fn of(table: &Table, rows: Option<u64>, dim: Option<usize>) -> Result<Self> {
        Ok(Self { rows, dim, columns: table_schema(table)? })
    }

    /// The names of all columns of the source.
    ///
    /// # Errors
    /// If one is not UTF-8.
    pub fn names(&self) -> Result<Vec<String>> {
        self.columns.field_names()
    }
}
