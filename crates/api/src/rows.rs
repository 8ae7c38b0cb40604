//! Examples that are read batch by batch.

use crate::{Embeddings, Error, Partial, Result, abi};

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

    /// Whether they cannot be read here: then [`pass`](Self::pass) fails, and [`reduce`](Self::reduce) takes its place. Only
    /// a clusterer with [`HAS_PARTIAL`](crate::Flags::HAS_PARTIAL) is given such examples.
    fn is_elsewhere(&self) -> bool {
        false
    }

    /// What all of them add up to: what [`Clusterer::partial`](crate::Clusterer::partial) says of every batch for this state,
    /// wherever it is called, put together by a [`Fold`](crate::Fold).
    ///
    /// # Errors
    /// Why they cannot be read, or what `partial` returned.
    fn reduce(&self, _state: &[u8]) -> Result<Partial> {
        Err(Error::new("the examples are here, to be read in passes"))
    }
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
