//! Loading: from a file, or from nothing, to a stream of record batches.

use std::path::Path;

use arrow_array::RecordBatchReader;

use crate::{Result, Services};

/// A stream of tables, produced as they are asked for.
pub type Batches = Box<dyn RecordBatchReader + Send>;

/// Yields tables of embeddings.
pub trait Loader: Send + Sync {
    /// Opens a stream of the wanted columns, and no others, renamed to `embedding`, `truth`, `trial`, `id` and
    /// `preference`.
    ///
    /// `embedding` is a list or fixed-size list of f16, f32 or f64; `truth` a list of integers or strings, or one of
    /// those itself; `trial` integers; `id` integers or strings; `preference` numbers. The caller converts and checks the values.
    ///
    /// # Errors
    /// If the source cannot be opened or lacks a column; the text says which columns there are.
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Batches>;
}

/// What a loader is asked for: a file, and the source's names of the columns that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadRequest<'a> {
    /// Absolute path, for those that declare [`NEEDS_PATH`](crate::Flags::NEEDS_PATH).
    pub path: Option<&'a Path>,
    /// The column of embeddings.
    pub embedding: Option<&'a str>,
    /// The column of true sets.
    pub truth: Option<&'a str>,
    /// The column of trial numbers.
    pub trial: Option<&'a str>,
    /// The column of identifiers.
    pub id: Option<&'a str>,
    /// The column of preferences: how gladly each example becomes an exemplar.
    pub preference: Option<&'a str>,
}

impl<'a> LoadRequest<'a> {
    /// The wanted columns: the name in the stream and the name in the source.
    pub fn columns(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let columns = [self.embedding, self.truth, self.trial, self.id, self.preference];
        ["embedding", "truth", "trial", "id", "preference"]
            .into_iter()
            .zip(columns)
            .filter_map(|(name, source)| Some((name, source?)))
    }
}
