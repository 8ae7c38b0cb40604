//! Reading the examples of a shard.

use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch};
use compflow_api::{BATCH_ROWS, Batch, Embeddings, ForeignLoader, Kind, Sets};

use super::job::Job;
use super::layout::{Piece, Shard};
use super::told::known_of;
use crate::data::label_sets::wrong_kind;
use crate::data::request::Request;
use crate::data::source::DataSource;
use crate::data::survey::describe;
use crate::data::values::{Width, is_text, weights_of};
use crate::error::{Error, Result};
use crate::pipeline::Named;
use crate::plugin::factory::Factory;

/// The loader that reads some rows of a file without the others; of what others read, the rows before are left out.
const RANGES: &str = "parquet";

/// Rows of a file.
pub(super) struct Found {
    pub(super) batch: RecordBatch,
    /// The number of the first of them in the file.
    pub(super) row: usize,
    /// Its number among all examples.
    pub(super) number: u64,
}

impl Found {
    /// The column that the engine calls so.
    pub(super) fn column(&self, name: &str) -> Result<&ArrayRef> {
        let missing = || Error::data(format!("the loader returned no column `{name}`"));
        self.batch.column_by_name(name).ok_or_else(missing)
    }

    /// The first `count` of them, and the others.
    fn split(&self, count: usize) -> (Self, Self) {
        let Self { batch, row, number } = self;
        let count = count.min(batch.num_rows());
        let (first, rest) = (batch.slice(0, count), batch.slice(count, batch.num_rows() - count));
        let later = Self { batch: rest, row: row + count, number: number + count as u64 };
        (Self { batch: first, row: *row, number: *number }, later)
    }
}

/// A batch of examples, and what is told of them.
#[derive(Default)]
pub(super) struct Read {
    first: u64,
    values: Vec<f32>,
    weights: Option<Vec<f32>>,
    known: Option<Sets>,
}

impl Read {
    /// As a clusterer is given it.
    pub(super) fn batch(&self, dim: usize) -> Batch<'_> {
        let (weights, seeds) = (self.weights.as_deref(), self.known.as_ref());
        Batch { weights, seeds, ..Batch::new(self.first, Embeddings::new(&self.values, dim)) }
    }
}

/// Memory of batches that were worked on, for those to come, of this shard and of later ones: what is new takes the system longer
/// than copying.
#[derive(Debug, Default)]
pub(super) struct Spare(Mutex<Vec<Vec<f32>>>);

impl Spare {
    /// The most that is kept, in numbers: 64 MB, so that somebody without work does not hold much.
    const MOST: usize = 16 << 20;

    fn take(&self, capacity: usize) -> Vec<f32> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        values.clear();
        values.reserve_exact(capacity);
        values
    }

    fn give(&self, values: Vec<f32>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.iter().map(Vec::capacity).sum::<usize>() + values.capacity() <= Self::MOST {
            kept.push(values);
        }
    }
}

/// Reads shards of a job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) job: &'a Job,
    pub(super) factory: &'a Factory,
    pub(super) spare: &'a Spare,
    pub(super) threads: usize,
}

impl Reader<'_> {
    /// Hands all examples of a shard to `each` in batches of [`BATCH_ROWS`]; known sets are of these names. Reading goes on while
    /// a batch is worked on.
    ///
    /// # Errors
    /// What `each` returned, or why they cannot be read, with the name of the file.
    pub(super) fn batches(
        &self,
        shard: &Shard,
        dim: usize,
        names: &[String],
        mut each: impl FnMut(&Read) -> Result<()>,
    ) -> Result<()> {
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Read>(1);
            let reader = scope.spawn(move || {
                let begun = |first: u64| {
                    let values = self.spare.take(BATCH_ROWS.min(shard.rows() as usize) * dim);
                    Read { first, values, ..Read::default() }
                };
                let (mut read, mut width) = (begun(shard.first), Width { dim });
                self.each_piece(shard, &["embedding", "weight", "seed"], &mut |found| {
                    let mut left = found;
                    while left.batch.num_rows() > 0 {
                        let (now, later) = left.split(BATCH_ROWS - read.values.len() / dim);
                        read.values.extend_from_slice(width.values(now.column("embedding")?, now.row)?.values());
                        if self.job.weight.is_some() {
                            let weights = weights_of(now.column("weight")?, now.row)?;
                            read.weights.get_or_insert_default().extend(weights);
                        }
                        if self.job.known.is_some() {
                            let sets = known_of(now.column("seed")?, now.row, names)?;
                            let known = read.known.get_or_insert_default();
                            sets.iter().for_each(|set| known.push(set));
                        }
                        left = later;
                        if read.values.len() == BATCH_ROWS * dim {
                            let next = begun(read.first + BATCH_ROWS as u64);
                            // Nobody listens any more if this fails, and that is why.
                            sender.send(std::mem::replace(&mut read, next)).map_err(|_| Error::Interrupted)?;
                        }
                    }
                    Ok(())
                })?;
                if read.values.is_empty() {
                    self.spare.give(read.values);
                } else {
                    sender.send(read).map_err(|_| Error::Interrupted)?;
                }
                Ok::<(), Error>(())
            });
            let mut taken = Ok(());
            for batch in receiver {
                taken = if self.factory.cancel.requested() { Err(Error::Interrupted) } else { each(&batch) };
                if taken.is_err() {
                    // Leaving the loop drops the receiver, which ends the reader.
                    break;
                }
                self.spare.give(batch.values);
            }
            let read = reader.join().unwrap_or_else(|_| Err(Error::data("reading panicked")));
            taken.and(read)
        })
    }

    /// Hands the rows of a shard to `each` as they come, with these columns as far as the job has them.
    ///
    /// # Errors
    /// As for [`batches`](Self::batches).
    pub(super) fn each_piece(
        &self,
        shard: &Shard,
        columns: &[&str],
        each: &mut dyn FnMut(Found) -> Result<()>,
    ) -> Result<()> {
        let mut number = shard.first;
        for piece in &shard.pieces {
            piece.require_unchanged()?;
            let mut taken = 0;
            let read = self.read(piece, columns, &mut |row, batch| {
                let found = Found { batch, row, number: number + taken };
                taken += found.batch.num_rows() as u64;
                each(found)
            });
            read.map_err(|error| match error {
                Error::Interrupted => Error::Interrupted,
                other => Error::data(format!("{}: {other}", piece.about())),
            })?;
            piece.require_unchanged()?;
            if taken != piece.rows {
                return Err(Error::data(format!("{}: {taken} rows were read", piece.about())));
            }
            number += piece.rows;
        }
        Ok(())
    }

    /// How many rows a file has, and how long its embeddings are, by reading it: only the first rows if `rows` is known.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn count(&self, path: &Path, about: &str, rows: Option<u64>) -> Result<(u64, usize)> {
        let source = self.source(path, &["embedding"], &self.job.loader.params, about)?;
        let (mut counted, mut width) = (0, Width::default());
        for batch in source.load(Some(path), self.factory, self.threads)? {
            let batch = batch?;
            if self.factory.cancel.requested() {
                return Err(Error::Interrupted);
            }
            if width.dim == 0 && batch.num_rows() > 0 {
                let found = Found { batch: batch.slice(0, 1), row: 0, number: 0 };
                width.values(found.column("embedding")?, 0)?;
                if let Some(rows) = rows {
                    return Ok((rows, width.dim));
                }
            }
            counted += batch.num_rows() as u64;
        }
        Ok((counted, width.dim))
    }

    /// What identifiers of a file are, if the job has a column of them; only its type is looked at.
    ///
    /// # Errors
    /// If they can be none.
    pub(super) fn kind_of_id(&self, path: &Path, about: &str) -> Result<Option<&'static str>> {
        if self.job.id.is_none() {
            return Ok(None);
        }
        let source = self.source(path, &["id"], &self.job.loader.params, about)?;
        match source.load(Some(path), self.factory, self.threads)?.kind("id") {
            Some(kind) if kind.is_integer() => Ok(Some("whole numbers")),
            Some(kind) if is_text(&kind) => Ok(Some("text")),
            Some(kind) => Err(Error::data(format!("{about}: {}", wrong_kind("id", &kind)))),
            None => Ok(None),
        }
    }

    /// A loader and the columns that are wanted of a file, as far as the job has them; `about` is the file, for messages.
    ///
    /// # Errors
    /// If a pattern stands for no column.
    pub(super) fn source(
        &self,
        path: &Path,
        columns: &[&str],
        params: &serde_json::Value,
        about: &str,
    ) -> Result<DataSource> {
        let Job { loader: used, embedding, id, weight, known, split, .. } = self.job;
        let created = self.factory.create(Kind::Loader, &used.name, &params.to_string(), "shard")?;
        let loader = ForeignLoader::try_from(created.instance)?;
        let one = |name: &Option<String>| name.clone().map(Named::One);
        let all = [
            ("embedding", Some(Named::from_option(embedding))),
            ("id", one(id)),
            ("weight", one(weight)),
            ("seed", one(known)),
        ];
        let wanted = all.into_iter().filter(|(name, _)| columns.contains(name));
        let wanted: Vec<(String, Named)> =
            wanted.filter_map(|(name, named)| Some((name.to_owned(), named?))).collect();
        let request = Request::new(&wanted, split.as_deref(), about, || {
            Ok(describe(&loader, Some(path), &used.name, "shard", self.factory)?.names()?)
        })?;
        Ok(DataSource { name: "shard".to_owned(), loader, seed: 0, files: Vec::new(), request, segments: false })
    }

    /// Hands the rows of a piece to `each`, with the number of the first in the file.
    fn read(
        &self,
        piece: &Piece,
        columns: &[&str],
        each: &mut dyn FnMut(usize, RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let mut params = self.job.loader.params.clone();
        let chosen = ["where", "rows"].iter().any(|name| params.get(name).is_some());
        let ranged = self.job.loader.name == RANGES && !chosen;
        if ranged && let Some(params) = params.as_object_mut() {
            params.insert("rows".to_owned(), serde_json::json!({ "first": piece.first, "count": piece.rows }));
        }
        let source = self.source(&piece.path, columns, &params, &piece.about())?;
        let first = piece.first as usize;
        let (mut row, mut skip, mut left) =
            if ranged { (first, 0, piece.rows as usize) } else { (0, first, piece.rows as usize) };
        for batch in source.load(Some(&piece.path), self.factory, self.threads)? {
            let batch: RecordBatch = batch?;
            let from = skip.min(batch.num_rows());
            let count = (batch.num_rows() - from).min(left);
            if count > 0 {
                each(row + from, batch.slice(from, count))?;
            }
            (row, skip, left) = (row + batch.num_rows(), skip - from, left - count);
            if left == 0 {
                break;
            }
        }
        Ok(())
    }
}
