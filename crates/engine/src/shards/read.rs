//! Reading the examples of a shard.

use std::sync::mpsc::sync_channel;

use arrow_array::{ArrayRef, RecordBatch};
use compflow_api::{BATCH_ROWS, ForeignLoader, Kind};

use super::job::Job;
use super::layout::{Piece, Shard};
use crate::assign::table::{identifiers, row_numbers};
use crate::data::request::Request;
use crate::data::source::DataSource;
use crate::data::survey::describe;
use crate::data::values::Width;
use crate::error::{Error, Result};
use crate::pipeline::Named;
use crate::plugin::factory::Factory;

/// The loader that reads some rows of a file without the others; of what others read, the rows before are left out.
const RANGES: &str = "parquet";

/// Rows of a shard, and their identifiers if they are wanted.
pub(super) struct Rows {
    pub(super) values: Vec<f32>,
    pub(super) ids: Option<ArrayRef>,
}

/// Reads shards of a job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) job: &'a Job,
    pub(super) factory: &'a Factory,
    pub(super) dim: usize,
    pub(super) threads: usize,
}

impl Reader<'_> {
    /// Hands all examples of a shard to `each` in batches of [`BATCH_ROWS`]. Reading goes on while a batch is worked on.
    ///
    /// # Errors
    /// What `each` returned, or why they cannot be read, with the name of the file.
    pub(super) fn batches(&self, shard: &Shard, mut each: impl FnMut(Vec<f32>) -> Result<()>) -> Result<()> {
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<Vec<f32>>(2);
            let reader = scope.spawn(move || {
                let full = BATCH_ROWS * self.dim;
                let mut rows: Vec<f32> = Vec::with_capacity(full);
                self.each_piece(shard, false, &mut |found| {
                    let mut left = &found.values[..];
                    while !left.is_empty() {
                        let (now, later) = left.split_at(left.len().min(full - rows.len()));
                        rows.extend_from_slice(now);
                        left = later;
                        if rows.len() == full {
                            let whole = std::mem::replace(&mut rows, Vec::with_capacity(full));
                            // Nobody listens any more if this fails, and that is why.
                            sender.send(whole).map_err(|_| Error::Interrupted)?;
                        }
                    }
                    Ok(())
                })?;
                if !rows.is_empty() {
                    sender.send(rows).map_err(|_| Error::Interrupted)?;
                }
                Ok::<(), Error>(())
            });
            let mut taken = Ok(());
            for batch in receiver {
                taken = if self.factory.cancel.requested() { Err(Error::Interrupted) } else { each(batch) };
                if taken.is_err() {
                    // Leaving the loop drops the receiver, which ends the reader.
                    break;
                }
            }
            let read = reader.join().unwrap_or_else(|_| Err(Error::data("reading panicked")));
            taken.and(read)
        })
    }

    /// Hands all examples of a shard to `each` as they come.
    ///
    /// # Errors
    /// As for [`batches`](Self::batches).
    pub(super) fn each_piece(
        &self,
        shard: &Shard,
        with_ids: bool,
        each: &mut dyn FnMut(Rows) -> Result<()>,
    ) -> Result<()> {
        let mut first = shard.first;
        for piece in &shard.pieces {
            piece.require_unchanged()?;
            let mut taken = 0;
            self.read(piece, with_ids, first, &mut |rows| {
                taken += (rows.values.len() / self.dim) as u64;
                each(rows)
            })
            .map_err(|error| match error {
                Error::Interrupted => Error::Interrupted,
                other => Error::data(format!("{}: {other}", piece.about())),
            })?;
            piece.require_unchanged()?;
            if taken != piece.rows {
                return Err(Error::data(format!("{}: {taken} rows were read", piece.about())));
            }
            first += piece.rows;
        }
        Ok(())
    }

    fn read(
        &self,
        piece: &Piece,
        with_ids: bool,
        first: u64,
        each: &mut dyn FnMut(Rows) -> Result<()>,
    ) -> Result<()> {
        let ranged = self.job.loader.name == RANGES;
        let mut params = self.job.loader.params.clone();
        if ranged && let Some(params) = params.as_object_mut() {
            params.insert("rows".to_owned(), serde_json::json!({ "first": piece.first, "count": piece.rows }));
        }
        let created = self.factory.create(Kind::Loader, &self.job.loader.name, &params.to_string(), "shard")?;
        let id = self.job.id.as_ref().filter(|_| with_ids);
        let loader = ForeignLoader::try_from(created.instance)?;
        let mut columns = vec![("embedding".to_owned(), Named::from_option(&self.job.embedding))];
        columns.extend(id.map(|id| ("id".to_owned(), Named::One(id.clone()))));
        let request = Request::new(&columns, None, &piece.about(), || {
            Ok(describe(&loader, Some(&piece.path), &self.job.loader.name, "shard", self.factory)?.names()?)
        })?;
        let source =
            DataSource { name: "shard".to_owned(), loader, seed: 0, files: Vec::new(), request, segments: false };
        let (mut width, mut skip, mut left) = (Width { dim: self.dim }, piece.first as usize, piece.rows as usize);
        if ranged {
            skip = 0;
        }
        let (mut row, mut number) = (if ranged { piece.first as usize } else { 0 }, first);
        for batch in source.load(Some(&piece.path), self.factory, self.threads)? {
            let batch: RecordBatch = batch?;
            let from = skip.min(batch.num_rows());
            skip -= from;
            let count = (batch.num_rows() - from).min(left);
            let wanted = batch.slice(from, count);
            let first_row = row + from;
            row += batch.num_rows();
            left -= count;
            if count == 0 {
                if left == 0 {
                    break;
                }
                continue;
            }
            let column = wanted.column_by_name("embedding");
            let column = column.ok_or_else(|| Error::data("the loader returned no embeddings"))?;
            let values = width.values(column, first_row)?.values().to_vec();
            let ids = match (with_ids, wanted.column_by_name("id")) {
                (false, _) => None,
                (true, Some(column)) => Some(identifiers(column, first_row)?),
                (true, None) => Some(row_numbers(number, count)),
            };
            number += count as u64;
            each(Rows { values, ids })?;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }
}
