//! Examples that are read batch by batch.

use crate::{Embeddings, Result, abi};

/// How many rows every batch has, except the last. What is summed up by batches is the same wherever they come from.
pub const BATCH_ROWS: usize = abi::BATCH_ROWS as usize;

/// Examples that are read batch by batch, as often as needed, so that they need not fit into memory.
pub trait Rows: Sync {
    /// How many.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How long each is.
    fn dim(&self) -> usize;

    /// All of them, if they are in memory.
    fn in_memory(&self) -> Option<Embeddings<'_>> {
        None
    }

    /// Hands all of them to `each`, in order, in batches of [`BATCH_ROWS`]. While a pass is under way, another may be
    /// refused.
    ///
    /// # Errors
    /// What `each` returned, which ends the pass; or why they cannot be read.
    fn pass(&self, each: &mut dyn FnMut(Embeddings<'_>) -> Result<()>) -> Result<()>;
}

/// Those in memory.
impl Rows for Embeddings<'_> {
    fn len(&self) -> usize {
        Embeddings::len(self)
    }

    fn dim(&self) -> usize {
        Embeddings::dim(self)
    }

    fn in_memory(&self) -> Option<Embeddings<'_>> {
        Some(*self)
    }

    fn pass(&self, each: &mut dyn FnMut(Embeddings<'_>) -> Result<()>) -> Result<()> {
        let dim = Embeddings::dim(self);
        self.values().chunks(BATCH_ROWS * dim).try_for_each(|batch| each(Embeddings::new(batch, dim)))
    }
}
