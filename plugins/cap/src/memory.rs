//! How much memory the messages take, and of how many examples the similarities are kept.

use compflow_api::{Result, Services};

use crate::compositions::{LANES, count, count_sets};
use crate::row::Row;
use crate::similarities::{BATCH, block_rows, width};
use compflow_kernels::products::Vectors;

/// Threads whose scratch space is counted in; more of them take little more.
const THREADS: u64 = 16;

/// The size of a problem: how many examples pass messages, and to how many candidates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) candidates: usize,
    pub(crate) dim: usize,
    pub(crate) degree: usize,
}

impl Size {
    /// How many bytes the similarities of one example to all compositions take, those that segments are filled up with
    /// included.
    fn row_bytes(&self) -> u64 {
        count(self.candidates, self.degree).0.saturating_mul(4 * LANES as u64)
    }

    /// How many bytes it takes if the similarities of `kept` examples are kept: unless those are all, the composed vectors
    /// are kept as well.
    pub(crate) fn memory(&self, kept: usize) -> u64 {
        let (vectors, segments) = count(self.candidates, self.degree);
        let (n, dim, wide) = (self.rows as u64, self.dim as u64, width(self.candidates) as u64);
        let at_once = if kept == self.rows { 1 } else { block_rows(self.rows) as u64 };
        [
            // The examples as they are clustered, in the space, and prepared for products.
            12 * n * dim,
            // Similarities to candidates, responsibilities and availabilities.
            n.saturating_mul(12 * wide),
            // Sums of every block.
            n.div_ceil(block_rows(self.rows) as u64) * 8 * wide,
            // Segments, and all sets for the assignment at the end.
            segments.saturating_mul(4 * self.degree as u64),
            count_sets(self.candidates, self.degree).saturating_mul(4 * (self.degree as u64 + 1)),
            Row::memory(wide, segments).saturating_mul(THREADS * at_once),
            self.row_bytes().saturating_mul(kept as u64),
            if kept == self.rows { 0 } else { Vectors::memory(vectors, self.dim) },
            // Tiles while they are composed.
            Vectors::memory(vectors.min(256 * BATCH as u64), self.dim).saturating_mul(2),
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// Of how many examples the similarities are kept: of all if they fit, or of as many whole blocks as fit.
    pub(crate) fn kept(&self, budget: u64) -> usize {
        if self.memory(self.rows) <= budget {
            return self.rows;
        }
        let block = block_rows(self.rows);
        let blocks = budget.saturating_sub(self.memory(0)) / self.row_bytes().max(1) / block as u64;
        (blocks as usize * block).min((self.rows - 1) / block * block)
    }

    /// Of how many examples the similarities are kept.
    ///
    /// # Errors
    /// If even the composed vectors do not fit.
    pub(crate) fn plan(&self, services: &Services<'_>) -> Result<usize> {
        let kept = self.kept(services.memory);
        services.require_memory(
            self.memory(kept),
            "cluster a `subset`, or let only some `candidates` become exemplars",
        )?;
        Ok(kept)
    }
}
