//! Where data comes from: a loader and its files, read once into trials or again and again batch by batch.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use arrow_array::RecordBatch;
use compflow_api::{BATCH_ROWS, Batches, Embeddings, ForeignLoader, LoadRequest, Loader, Rows, Services};

use super::dataset::{Builder, Dataset, Keep, Trial, Width, content_key, trial_numbers};
use crate::error::{Error, Result};
use crate::files::display;
use crate::plugin::factory::Factory;
use crate::plugin::services::ComponentHost;
use crate::plugin::texts::without_error_kinds;

/// A loader that is made, and its files.
#[derive(Debug)]
pub(crate) struct DataSource {
    /// What the pipeline calls the data.
    pub(crate) name: String,
    pub(crate) loader: ForeignLoader,
    /// For loaders that make data up.
    pub(crate) seed: u64,
    /// One for each file; `None` for a loader that reads none.
    pub(crate) files: Vec<Option<PathBuf>>,
    /// The source's names of the columns, in the order of [`LoadRequest`].
    pub(crate) columns: [Option<String>; 5],
}

impl DataSource {
    /// Opens a file.
    ///
    /// # Errors
    /// Whatever the loader says.
    pub(crate) fn load(&self, file: Option<&Path>, factory: &Factory, threads: usize) -> Result<Batches> {
        let [embedding, truth, trial, id, preference] = self.columns.each_ref().map(Option::as_deref);
        let request = LoadRequest { path: file, embedding, truth, trial, id, preference };
        self.request(&request, factory, threads)
    }

    fn request(&self, request: &LoadRequest<'_>, factory: &Factory, threads: usize) -> Result<Batches> {
        let host = ComponentHost::new(factory, &self.name);
        let services = Services { host: &host, seed: self.seed, threads, memory: factory.memory };
        Ok(self.loader.load(request, &services)?)
    }

    /// Reads everything, checks every value, and keeps the embeddings or not.
    ///
    /// # Errors
    /// Naming the file, the row and what is wrong with it.
    pub(crate) fn read(&self, keep: Keep, factory: &Factory, threads: usize) -> Result<Dataset> {
        let mut builder = Builder::new(keep, factory.memory);
        for file in &self.files {
            let batches = self.load(file.as_deref(), factory, threads)?;
            builder.read(batches, &factory.cancel).map_err(|error| named(file.as_deref(), error))?;
        }
        builder.finish().map_err(|error| error.context(format!("data `{}`", self.name)))
    }
}

fn named(file: Option<&Path>, error: Error) -> Error {
    match file {
        Some(file) => error.context(display(file)),
        None => error,
    }
}

/// A trial whose embeddings were not kept, read again on every pass.
#[derive(Debug)]
pub(crate) struct Streamed<'a> {
    pub(crate) source: &'a DataSource,
    pub(crate) factory: &'a Factory,
    pub(crate) trial: &'a Trial,
    pub(crate) dim: usize,
    pub(crate) threads: usize,
    /// Whether it is looked up that the embeddings are still those of the trial's key: what was computed in earlier passes
    /// is kept under it.
    pub(crate) verify: bool,
}

impl Rows for Streamed<'_> {
    fn len(&self) -> usize {
        self.trial.size()
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn pass(&self, each: &mut dyn FnMut(Embeddings<'_>) -> compflow_api::Result<()>) -> compflow_api::Result<()> {
        // Reading goes on while a batch is worked on.
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Vec<f32>>(2);
            let reader = scope.spawn(move || self.read(&mut |batch| sender.send(batch).is_ok()));
            let mut rows = 0;
            let mut taken = Ok(());
            for batch in receiver {
                rows += batch.len() / self.dim;
                taken = if self.factory.cancel.requested() {
                    Err(compflow_api::Error::Cancelled)
                } else {
                    each(Embeddings::new(&batch, self.dim))
                };
                if taken.is_err() {
                    // Leaving the loop drops the receiver, which ends the reader.
                    break;
                }
            }
            let read = reader.join().unwrap_or_else(|_| Err(Error::data("reading panicked")));
            taken?;
            let hasher = read.map_err(Error::into_component)?;
            let same = !self.verify || content_key(hasher, self.trial.preferences.as_deref()) == self.trial.key;
            if rows != self.len() || !same {
                let text = format!("data `{}` was changed while it was read", self.source.name);
                return Err(compflow_api::Error::new(text));
            }
            Ok(())
        })
    }
}

impl Streamed<'_> {
    /// Hands the trial's rows on in batches, until nobody takes them; returns their hash.
    fn read(&self, take: &mut dyn FnMut(Vec<f32>) -> bool) -> Result<blake3::Hasher> {
        let mut hasher = blake3::Hasher::new();
        let full = BATCH_ROWS * self.dim;
        let mut rows = Vec::with_capacity(full);
        let [embedding, _, trial, ..] = self.source.columns.each_ref().map(Option::as_deref);
        for file in &self.source.files {
            let file = file.as_deref();
            let request = LoadRequest { path: file, embedding, trial, ..Default::default() };
            let mut width = Width { dim: self.dim };
            let mut first_row = 0;
            for batch in self.source.request(&request, self.factory, self.threads)? {
                let batch =
                    batch.map_err(|error| named(file, Error::data(without_error_kinds(&error.to_string()))))?;
                let values = self.select(&batch, &mut width, first_row).map_err(|error| named(file, error))?;
                first_row += batch.num_rows();
                if self.verify {
                    hasher.update(bytemuck::cast_slice(&values));
                }
                let mut left = &values[..];
                while !left.is_empty() {
                    let (now, later) = left.split_at(left.len().min(full - rows.len()));
                    rows.extend_from_slice(now);
                    left = later;
                    if rows.len() == full && !take(std::mem::replace(&mut rows, Vec::with_capacity(full))) {
                        return Ok(hasher);
                    }
                }
            }
        }
        if !rows.is_empty() {
            take(rows);
        }
        Ok(hasher)
    }

    /// The rows of a batch that belong to the trial.
    fn select(&self, batch: &RecordBatch, width: &mut Width, first_row: usize) -> Result<Vec<f32>> {
        let column =
            batch.column_by_name("embedding").ok_or_else(|| Error::data("the loader returned no embeddings"))?;
        let values = width.values(column, first_row)?;
        let Some(column) = batch.column_by_name("trial") else { return Ok(values.values().to_vec()) };
        let numbers = trial_numbers(column, first_row)?;
        let rows = values.values().chunks_exact(self.dim).zip(numbers);
        Ok(rows.filter(|(_, number)| *number == self.trial.number).flat_map(|(row, _)| row).copied().collect())
    }
}
