//! What columns tell of examples beside their embeddings: weights, and sets that are known beforehand.
//!
//! The driver reads these columns of all files once, as the clusterer asks for them before the first pass and as names have to
//! be numbered; whoever has a shard reads them with its rows. So all of them speak of the same numbers.

use arrow_array::ArrayRef;
use compflow_api::Sets;

use super::layout::Layout;
use super::read::Reader;
use crate::data::Seeds;
use crate::data::seeds::SeedRows;
use crate::data::values::weights_of;
use crate::error::{Error, Result};

/// What is told of all examples.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) weights: Option<Vec<f32>>,
    /// Nothing if no set is known.
    pub(super) seeds: Option<Seeds>,
}

impl Told {
    /// Reads the columns that the job names.
    ///
    /// # Errors
    /// Naming the file and the row at fault.
    pub(super) fn read(reader: Reader<'_>, layout: &Layout) -> Result<Self> {
        let job = reader.job;
        let mut weights: Option<Vec<f32>> = job.weight.is_some().then(Vec::new);
        let mut known: Option<SeedRows> = job.known.is_some().then(SeedRows::default);
        if weights.is_none() && known.is_none() {
            return Ok(Self::default());
        }
        for shard in &layout.shards {
            reader.each_piece(shard, &["weight", "seed"], &mut |found| {
                if reader.factory.cancel.requested() {
                    return Err(Error::Interrupted);
                }
                if let Some(weights) = &mut weights {
                    weights.extend(weights_of(found.column("weight")?, found.row)?);
                }
                if let Some(known) = &mut known {
                    known.append(found.column("seed")?, found.row, found.number as usize)?;
                }
                Ok(())
            })?;
        }
        known.as_ref().map_or(Ok(()), SeedRows::require_plain)?;
        let known = known.map(|known| known.number(|_| Ok(()))).transpose()?.flatten();
        let seeds = known.map(|known| known.of_all(layout.rows as usize));
        Ok(Self { weights, seeds })
    }
}

/// The known sets of some rows, of which the first is `first_row` of its file: of the numbers that names have.
///
/// # Errors
/// Naming the row at fault.
pub(super) fn known_of(column: &ArrayRef, first_row: usize, names: &[String]) -> Result<Sets> {
    let mut rows = SeedRows::default();
    rows.append(column, first_row, 0)?;
    let Some(known) = rows.number(|_| Ok(()))? else { return Ok((0..column.len()).map(|_| &[][..]).collect()) };
    let sets = known.of_all(column.len()).renumbered(names);
    sets.ok_or_else(|| Error::data("seeds have names that were not there when they were numbered"))
}
