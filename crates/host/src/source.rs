//! Where data comes from: a loader and its files, read once into trials or again and again batch by batch.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use arrow_array::RecordBatch;
use compflow_api::{
    BATCH_ROWS, Batches, Embeddings, Error, ForeignLoader, LoadRequest, Loader, Result, Rows, Services,
};

use crate::dataset::{Builder, Dataset, Keep, Matrix, Trial, key, tidy, trial_numbers};
use crate::environment::{Answers, Environment};
use crate::files::display;
use crate::interrupt;

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
    pub(crate) fn load(
        &self,
        file: Option<&Path>,
        environment: &Environment,
        threads: usize,
    ) -> Result<Batches, String> {
        let [embedding, truth, trial, id, preference] = self.columns.each_ref().map(Option::as_deref);
        let request = LoadRequest { path: file, embedding, truth, trial, id, preference };
        self.request(&request, environment, threads)
    }

    fn request(
        &self,
        request: &LoadRequest<'_>,
        environment: &Environment,
        threads: usize,
    ) -> Result<Batches, String> {
        let answers = Answers::new(environment, &self.name);
        let services = Services { host: &answers, seed: self.seed, threads, memory: environment.memory };
        self.loader.load(request, &services).map_err(|error| error.to_string())
    }

    /// Reads everything, checks every value, and keeps the embeddings or not.
    ///
    /// # Errors
    /// Naming the file, the row and what is wrong with it.
    pub(crate) fn read(&self, keep: Keep, environment: &Environment, threads: usize) -> Result<Dataset, String> {
        let mut builder = Builder::new(keep, environment.memory);
        for file in &self.files {
            let batches = self.load(file.as_deref(), environment, threads)?;
            builder.read(batches).map_err(|text| named(file.as_deref(), &text))?;
        }
        builder.finish().map_err(|text| format!("data `{}`: {text}", self.name))
    }
}

fn named(file: Option<&Path>, text: &str) -> String {
    match file {
        Some(file) => format!("{}: {text}", display(file)),
        None => text.to_owned(),
    }
}

/// A trial whose embeddings were not kept, read again on every pass.
#[derive(Debug)]
pub(crate) struct Streamed<'a> {
    pub(crate) source: &'a DataSource,
    pub(crate) environment: &'a Environment,
    pub(crate) trial: &'a Trial,
    pub(crate) dim: usize,
    pub(crate) threads: usize,
    /// Whether it is looked up that the embeddings are still those of the trial's key: what was computed in earlier passes
    /// is kept under it.
    pub(crate) verify: bool,
}

impl Rows for Streamed<'_> {
    fn len(&self) -> usize {
        self.trial.len()
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn pass(&self, each: &mut dyn FnMut(Embeddings<'_>) -> Result<()>) -> Result<()> {
        // Reading goes on while a batch is worked on.
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Vec<f32>>(2);
            let reader = scope.spawn(move || self.read(&mut |batch| sender.send(batch).is_ok()));
            let mut rows = 0;
            let mut taken = Ok(());
            for batch in receiver {
                rows += batch.len() / self.dim;
                taken = if interrupt::requested() {
                    Err(Error::Cancelled)
                } else {
                    each(Embeddings::new(&batch, self.dim))
                };
                if taken.is_err() {
                    // Leaving the loop drops the receiver, which ends the reader.
                    break;
                }
            }
            let read = reader.join().unwrap_or_else(|_| Err("reading panicked".to_owned()));
            taken?;
            let hasher = read.map_err(Error::Failed)?;
            let same = !self.verify || key(hasher, self.trial.preferences.as_deref()) == self.trial.key;
            if rows != self.len() || !same {
                return Err(Error::new(format!("data `{}` was changed while it was read", self.source.name)));
            }
            Ok(())
        })
    }
}

impl Streamed<'_> {
    /// Hands the trial's rows on in batches, until nobody takes them; returns their hash.
    fn read(&self, take: &mut dyn FnMut(Vec<f32>) -> bool) -> Result<blake3::Hasher, String> {
        let mut hasher = blake3::Hasher::new();
        let full = BATCH_ROWS * self.dim;
        let mut rows = Vec::with_capacity(full);
        let [embedding, _, trial, ..] = self.source.columns.each_ref().map(Option::as_deref);
        for file in &self.source.files {
            let file = file.as_deref();
            let request = LoadRequest { path: file, embedding, trial, ..Default::default() };
            let mut matrix = Matrix { dim: self.dim };
            let mut first_row = 0;
            for batch in self.source.request(&request, self.environment, self.threads)? {
                let batch = batch.map_err(|error| named(file, &tidy(&error.to_string())))?;
                let values = self.select(&batch, &mut matrix, first_row).map_err(|text| named(file, &text))?;
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
    fn select(&self, batch: &RecordBatch, matrix: &mut Matrix, first_row: usize) -> Result<Vec<f32>, String> {
        let column = batch.column_by_name("embedding").ok_or("the loader returned no embeddings")?;
        let values = matrix.values(column, first_row)?;
        let Some(column) = batch.column_by_name("trial") else { return Ok(values.values().to_vec()) };
        let numbers = trial_numbers(column, first_row)?;
        let rows = values.values().chunks_exact(self.dim).zip(numbers);
        Ok(rows.filter(|(_, number)| *number == self.trial.number).flat_map(|(row, _)| row).copied().collect())
    }
}
