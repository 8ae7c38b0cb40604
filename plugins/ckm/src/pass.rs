//! A pass over the examples: for several restarts at once, or to count what belongs to what in the end. What a batch adds up
//! to is the same wherever the batch is.

use compflow_api::{BATCH_ROWS, Partial, Result, Services};
use compflow_kernels::assign::{Totals, assign_rows};
use compflow_kernels::products::Vectors;
use compflow_kernels::source::Preparation;
use compflow_kernels::told::{Heeded, Told};
use compflow_kernels::workers::Workers;
use serde::{Deserialize, Serialize};

/// The tags of the two.
pub(crate) const ASSIGN: u8 = 1;
pub(crate) const COUNT: u8 = 2;

/// Restarts that take turns with a piece of the data while it is in the cache.
const TOGETHER: usize = 8;
/// Rows in such a piece.
const CHUNK: usize = 1024;
/// Rows of a block are summed up before blocks are.
pub(crate) const BLOCK: usize = 4096;
/// Numbers that the sums of all blocks of a batch together should not exceed: 64 MiB of f64.
const PARTIAL_NUMBERS: usize = 1 << 23;

/// What a pass needs to know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pass {
    pub(crate) preparation: Preparation,
    pub(crate) dim: usize,
    /// Of every restart, all compositions, prepared.
    pub(crate) centres: Vec<Vec<f32>>,
    /// How many restarts there were at the beginning: blocks do not change because some have ended.
    pub(crate) all: usize,
    /// Whether Σ‖x‖² is asked for.
    pub(crate) scatter: bool,
    /// What of weights and known sets it goes by, and of how many singletons these are at most.
    pub(crate) heeded: Heeded,
    pub(crate) degree: usize,
}

impl Pass {
    /// How many compositions there are.
    fn sets(&self) -> usize {
        self.centres.first().map_or(0, |centres| centres.len() / self.dim)
    }

    /// The centres, ready to be compared with.
    pub(crate) fn vectors(&self) -> Vec<Vectors> {
        self.centres.iter().map(|centres| Vectors::new(centres, self.dim)).collect()
    }

    /// Assigns a batch of prepared points for every restart, but for those whose sets are known: of each the numbers and the
    /// sums of all compositions; behind them Σ‖x‖² of all, if it is asked for.
    pub(crate) fn assign(
        &self,
        centres: &[Vectors],
        told: &Told<'_>,
        first: usize,
        batch: &[f32],
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Partial> {
        let (dim, sets) = (self.dim, self.sets());
        let block_rows = BATCH_ROWS / blocks(self.all.saturating_mul(sets).saturating_mul(dim + 1));
        let blocks: Vec<(usize, &[f32])> =
            (first..).step_by(block_rows).zip(batch.chunks(block_rows * dim)).collect();
        let pieces =
            blocks.iter().flat_map(|block| centres.chunks(TOGETHER).map(move |centres| (*block, centres)));
        let partial = workers.map(pieces, |((first, block), centres)| {
            services.check_cancelled()?;
            let mut partial: Vec<Totals> = centres.iter().map(|_| Totals::zero(sets, dim)).collect();
            let mut labels = [0; CHUNK];
            for (first, rows) in (first..).step_by(CHUNK).zip(block.chunks(CHUNK * dim)) {
                let labels = &mut labels[..rows.len() / dim];
                let weights = told.others(first, labels.len());
                for (centres, partial) in centres.iter().zip(&mut partial) {
                    assign_rows(rows, weights, centres, labels, partial);
                }
            }
            Ok(partial)
        })?;
        let mut totals: Vec<Totals> = centres.iter().map(|_| Totals::zero(sets, dim)).collect();
        for block in partial.chunks(centres.len().div_ceil(TOGETHER)) {
            totals.iter_mut().zip(block.iter().flatten()).for_each(|(total, partial)| total.add(partial));
        }
        let mut sums = Vec::with_capacity(totals.len() * sets * (dim + 1) + 1);
        for Totals { counts, sums: own, .. } in totals {
            sums.extend(counts);
            sums.extend(own);
        }
        if self.scatter {
            let squares = workers.map(&blocks, |(first, block)| {
                let rows = (*first..).zip(block.chunks_exact(dim));
                let square =
                    |row: &[f32]| row.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>();
                Ok(rows.map(|(at, row)| told.weight(at) * square(row)).sum::<f64>())
            })?;
            sums.push(squares.iter().sum());
        }
        Ok(Partial { sums, ..Partial::default() })
    }

    /// What came of all batches: the totals of every restart, and Σ‖x‖² if it was asked for.
    pub(crate) fn totals(&self, found: &Partial) -> (Vec<Totals>, Option<f64>) {
        let (sets, width) = (self.sets(), self.sets() * (self.dim + 1));
        let each = found.sums.chunks_exact(width).take(self.centres.len());
        let totals = each.map(|numbers| {
            let (counts, sums) = numbers.split_at(sets);
            Totals { sums: sums.to_vec(), counts: counts.to_vec(), changed: 0 }
        });
        (totals.collect(), self.scatter.then(|| found.sums.last().copied().unwrap_or(0.0)))
    }

    /// Counts a batch of prepared points by their known sets, or the composition of the first restart that is nearest: how
    /// many each has, and in place of the greatest number of any the least, negated.
    pub(crate) fn count(
        &self,
        told: &Told<'_>,
        first: usize,
        batch: &[f32],
        workers: &Workers,
    ) -> Result<Partial> {
        let (sets, centres) = (self.sets(), self.centres.first().map_or(&[][..], |centres| centres));
        let mut labels = label(&Vectors::new(centres, self.dim), sets, batch, self.dim, workers)?;
        told.known.within(first, labels.len()).for_each(|(at, label)| labels[at] = label);
        let (mut sums, mut largest) = (vec![0.0; sets], vec![f64::NEG_INFINITY; sets]);
        for (row, label) in (first..).zip(labels) {
            sums[label as usize] += 1.0;
            let least = &mut largest[label as usize];
            *least = least.max(-(row as f64));
        }
        Ok(Partial { sums, largest, ..Partial::default() })
    }
}

/// The nearest of some centres for every prepared point.
pub(crate) fn label(
    centres: &Vectors,
    sets: usize,
    batch: &[f32],
    dim: usize,
    workers: &Workers,
) -> Result<Vec<u32>> {
    let mut labels = vec![0; batch.len() / dim];
    workers.map(batch.chunks(BLOCK * dim).zip(labels.chunks_mut(BLOCK)), |(rows, labels)| {
        assign_rows(rows, None, centres, labels, &mut Totals::zero(sets, dim));
        Ok(())
    })?;
    Ok(labels)
}

/// How many blocks a batch is cut into if each block sums up `numbers` numbers. No matter how many threads there are.
fn blocks(numbers: usize) -> usize {
    let most = (PARTIAL_NUMBERS / numbers.max(1)).clamp(1, BATCH_ROWS / BLOCK);
    // The largest power of two, so that batches divide evenly.
    1 << most.ilog2()
}

/// How many numbers all blocks of a batch sum up together, if each sums up `numbers`.
pub(crate) fn partial_numbers(numbers: usize) -> usize {
    blocks(numbers).saturating_mul(numbers)
}
