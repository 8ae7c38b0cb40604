//! What a cell was made from, as far as assigning asks for it.

use arrow_buffer::ScalarBuffer;
use compflow_api::{Embeddings, Level, Sets, Space};

use super::cell::Cell;
use crate::error::{Error, Result};
use crate::results::{RecordedRun, Results};

/// Where a cell is from: a run that was recorded, or one that is still in memory.
pub(crate) trait Origin {
    /// Where distances were taken.
    fn space(&self) -> Space;

    /// The largest composition that was considered.
    fn degree(&self) -> usize;

    /// Whether something says where unions lie.
    fn has_composer(&self) -> bool;

    /// Whether the cell's clusterer composes unions; `None` if nobody knows any more.
    fn composes(&self, cell: &Cell) -> Option<bool>;

    /// Composes vectors (unnormalised) by sets of them, as the clusterer did, into points of the space.
    fn compose(&self, rows: Embeddings<'_>, sets: &Sets) -> Result<Vec<f32>>;

    /// Bytes that may be used.
    fn memory(&self) -> u64;

    /// Tells the observer.
    fn log(&self, level: Level, about: &str, text: &str);

    /// The examples of the cell's trial.
    fn examples(&self, cell: &Cell) -> Result<Examples>;

    /// The sets of the examples.
    fn assignments(&self, cell: &Cell) -> Result<Sets>;

    /// The distances of the examples from their clusters; empty if clusters have no representatives.
    fn distances(&self, cell: &Cell) -> Result<Vec<f32>>;
}

/// Examples of a trial.
pub(crate) struct Examples {
    pub(crate) embeddings: ScalarBuffer<f32>,
    pub(crate) dim: usize,
}

/// A run that was recorded, and its tables.
pub(super) struct Recorded<'a, 'r> {
    pub(super) results: &'a Results,
    pub(super) run: &'a RecordedRun<'r>,
}

impl Origin for Recorded<'_, '_> {
    fn space(&self) -> Space {
        self.run.space()
    }

    fn degree(&self) -> usize {
        self.run.degree()
    }

    fn has_composer(&self) -> bool {
        self.run.has_composer()
    }

    fn composes(&self, cell: &Cell) -> Option<bool> {
        self.run.composes(&cell.clusterer)
    }

    fn compose(&self, rows: Embeddings<'_>, sets: &Sets) -> Result<Vec<f32>> {
        self.run.compose(rows, sets)
    }

    fn memory(&self) -> u64 {
        self.run.memory()
    }

    fn log(&self, level: Level, about: &str, text: &str) {
        self.run.log(level, about, text);
    }

    fn examples(&self, cell: &Cell) -> Result<Examples> {
        let Cell { data, trial, .. } = cell;
        let about = format!("{} needs the data it was computed from", cell.about());
        let dataset = self.run.data(data).map_err(|error| {
            let help = "put the data back as it was, or take a method that has centroids or densities, such as `ckm` or `cgm`, \
                        which need no data";
            error.context(about).help(help)
        })?;
        let dim = dataset.dim;
        let found = dataset.trials.into_iter().find(|found| found.number == *trial);
        let found = found.ok_or_else(|| Error::data(format!("data `{data}` has no trial {trial} any more")))?;
        Ok(Examples { embeddings: found.embeddings, dim })
    }

    fn assignments(&self, cell: &Cell) -> Result<Sets> {
        let found = self.results.assignments(&cell.data, cell.trial)?;
        let found = found.into_iter().find(|found| found.clusterer == cell.clusterer);
        Ok(found.map(|found| found.sets).unwrap_or_default())
    }

    fn distances(&self, cell: &Cell) -> Result<Vec<f32>> {
        self.results.cell_distances(&cell.data, cell.trial, &cell.clusterer)
    }
}
