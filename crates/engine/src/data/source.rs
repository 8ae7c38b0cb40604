//! Where data comes from: a loader and its files, read once into trials or again and again batch by batch.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use arrow_array::RecordBatch;
use arrow_buffer::ScalarBuffer;
use compflow_api::{BATCH_ROWS, Description, Embeddings, ForeignLoader, LoadRequest, Loader, Rows, Services};

use super::build::{Builder, Keep};
use super::dataset::{Dataset, Trial};
use super::request::{Request, UnifiedBatches};
use super::survey::missing_column;
use super::values::{Width, trial_numbers};
use crate::causes::Cause;
use crate::error::{Error, Result};
use crate::files::{display, human_bytes};
use crate::plugin::factory::Factory;
use crate::plugin::services::ComponentHost;

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
    /// The columns to read.
    pub(crate) request: Request,
    /// Whether the pipeline says where in a recording the examples are.
    pub(crate) segments: bool,
}

impl DataSource {
    /// Tells the observer that the loader is called.
    fn calling(&self, factory: &Factory) -> Box<dyn Send> {
        let component = self.loader.component();
        factory.calling(&format!("data `{}`", self.name), component.kind, component.name)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Whatever the loader says.
    pub(crate) fn load(&self, file: Option<&Path>, factory: &Factory, threads: usize) -> Result<UnifiedBatches> {
        self.load_columns(file, &self.request, factory, threads)
    }

    /// Opens a file for some of the columns.
    fn load_columns(
        &self,
        file: Option<&Path>,
        request: &Request,
        factory: &Factory,
        threads: usize,
    ) -> Result<UnifiedBatches> {
        let columns = request.asked();
        let _calling = self.calling(factory);
        let host = ComponentHost::new(factory, &self.name);
        let services = Services { host: &host, seed: self.seed, threads, memory: factory.memory };
        let stream = self.loader.load(&LoadRequest { path: file, columns: &columns }, &services)?;
        let batches = stream.into_batches(factory.memory)?;
        // Without a column of trials, say, all of them would be one.
        match columns.iter().find(|(name, _)| batches.schema().column_with_name(name).is_none()) {
            Some((name, source)) => {
                let text = format!("the loader returned no column `{name}`, though it was asked for `{source}`");
                Err(named(file, Error::data(text)))
            }
            None => Ok(UnifiedBatches::new(batches, request.clone(), factory.memory)),
        }
    }

    /// Looks whether a file can be read and has the columns, without reading all of it if the loader can.
    ///
    /// # Errors
    /// Whatever the loader says.
    pub(crate) fn probe(&self, file: Option<&Path>, factory: &Factory) -> Result<()> {
        match self.describe(file, factory)? {
            Some(_) => Ok(()),
            None => self.load(file, factory, 1).map(|_| ()),
        }
    }

    /// What the loader says of a file without reading it, if it can.
    fn describe(&self, file: Option<&Path>, factory: &Factory) -> Result<Option<Description>> {
        let columns = self.request.asked();
        let _calling = self.calling(factory);
        let host = ComponentHost::new(factory, &self.name);
        let services = Services { host: &host, seed: self.seed, memory: factory.memory, ..Services::none() };
        Ok(self.loader.describe(&LoadRequest { path: file, columns: &columns }, &services)?)
    }

    /// Looks into all files like that. That a column is missing is said to somebody who has named files and columns on the
    /// command line; `option` is what names another one in the place of the one with this key.
    ///
    /// # Errors
    /// Naming the file.
    pub(crate) fn probe_all(&self, factory: &Factory, option: impl Fn(&str) -> Option<String>) -> Result<()> {
        let columns = self.request.asked();
        for file in &self.files {
            self.probe(file.as_deref(), factory).map_err(|error| match error {
                Error::Component(error) => {
                    let about = file.as_deref().map_or(self.name.clone(), display);
                    missing_column(error, &columns, &about, |name| option(self.request.key_of(name)))
                }
                other => other,
            })?;
        }
        Ok(())
    }

    /// Refuses data that says itself that it is too large, before any of it is read.
    fn require_room(&self, factory: &Factory, memory: u64) -> Result<()> {
        let (mut rows, mut dim) = (0_u64, 0);
        for file in &self.files {
            let described = self.describe(file.as_deref(), factory)?;
            let Some((more, length)) =
                described.and_then(|found| Some((found.rows?, self.request.dim().or(found.dim)?)))
            else {
                return Ok(());
            };
            (rows, dim) = (rows.saturating_add(more), length);
        }
        let bytes = rows.saturating_mul(4).saturating_mul(dim as u64);
        match bytes > memory {
            true => {
                let (bytes, budget) = (human_bytes(bytes), human_bytes(memory));
                Err(Error::fault(
                    Cause::Memory,
                    format!(
                        "{rows} embeddings of {dim} numbers take {bytes}, more than the memory budget of {budget}; \
                         see --memory, or `stream = true` of `ckm`"
                    ),
                ))
            }
            false => Ok(()),
        }
    }

    /// Reads everything, checks every value, and keeps the embeddings, which may take so much `memory`, or not.
    ///
    /// # Errors
    /// Naming the file, the row and what is wrong with it.
    pub(crate) fn read(&self, keep: Keep, factory: &Factory, threads: usize, memory: u64) -> Result<Dataset> {
        if keep == Keep::Matrix {
            self.require_room(factory, memory)?;
        }
        let mut builder = Builder::new(keep, memory);
        builder.segments = self.segments;
        let _calling = self.calling(factory);
        for file in &self.files {
            let batches = self.load(file.as_deref(), factory, threads)?;
            builder.read(batches, &factory.cancel).map_err(|error| named(file.as_deref(), error))?;
        }
        builder.finish().map_err(|error| error.context(format!("data `{}`", self.name)))
    }
}

/// An error about a file, with its name.
pub(crate) fn named(file: Option<&Path>, error: Error) -> Error {
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
            let read = move || self.read(&mut |batch| sender.send(batch).is_ok());
            let reader = std::thread::Builder::new()
                .spawn_scoped(scope, read)
                .map_err(|error| compflow_api::Error::new(format!("no thread can be started: {error}")))?;
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
            let same = !self.verify || self.trial.key_of(hasher) == self.trial.key;
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
        for file in &self.source.files {
            let file = file.as_deref();
            let mut width = Width { dim: self.dim };
            let mut first_row = 0;
            let request = self.source.request.only(&["embedding", "trial"]);
            for batch in self.source.load_columns(file, &request, self.factory, self.threads)? {
                let batch = batch.map_err(|error| named(file, error))?;
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
    fn select(&self, batch: &RecordBatch, width: &mut Width, first_row: usize) -> Result<ScalarBuffer<f32>> {
        let column =
            batch.column_by_name("embedding").ok_or_else(|| Error::data("the loader returned no embeddings"))?;
        let values = width.values(column, first_row)?;
        let Some(column) = batch.column_by_name("trial") else { return Ok(values.values().clone()) };
        let numbers = trial_numbers(column, first_row)?;
        let rows = values.values().chunks_exact(self.dim).zip(numbers);
        Ok(rows.filter(|(_, number)| *number == self.trial.number).flat_map(|(row, _)| row).copied().collect())
    }
}
