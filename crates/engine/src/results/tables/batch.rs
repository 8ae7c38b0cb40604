//! Some cells at a time, with all that they found: what is in memory while tables are written.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::parallel;
use crate::plan::Plan;
use crate::plan::resources::cores;
use crate::run::Outcome;
use crate::run::cache::Cache;
use crate::run::row::Row;

/// About how many numbers the cells of a batch have found together. Larger ones would save little time.
const NUMBERS: usize = 1 << 19;
/// What a cell counts for beside what it found.
const CELL: usize = 1 << 8;

/// Rows that follow one another, and what was found in them.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    rows: &'a [Row],
    outcomes: Vec<Option<Cow<'a, Outcome>>>,
}

/// Cuts rows into batches, at least one. Where they are cut depends on nothing but what was found, so that tables are the
/// same whenever and however it was.
pub(super) fn batches(rows: &[Row]) -> Vec<Range<usize>> {
    let (mut batches, mut first, mut numbers) = (Vec::new(), 0, 0);
    for (at, row) in rows.iter().enumerate() {
        numbers += CELL + row.brief.as_ref().map_or(0, |brief| brief.numbers);
        if numbers >= NUMBERS {
            batches.push(first..at + 1);
            (first, numbers) = (at + 1, 0);
        }
    }
    if first < rows.len() || rows.is_empty() {
        batches.push(first..rows.len());
    }
    batches
}

impl<'a> Batch<'a> {
    /// Reads back what was found.
    ///
    /// # Errors
    /// Naming a cell that is no longer kept.
    pub(super) fn load(plan: &Plan, cache: &Cache, rows: &'a [Row]) -> Result<Self> {
        let outcome = |at: usize| {
            let row = &rows[at];
            if let Some(unkept) = &row.unkept {
                return Ok(Some(Cow::Borrowed(&**unkept)));
            }
            let load = |_| cache.load(&row.cell.key(plan)).map(Cow::Owned).ok_or_else(|| gone(plan, row));
            row.brief.as_ref().map(load).transpose()
        };
        Ok(Self { rows, outcomes: parallel::map(rows.len(), cores(), outcome)? })
    }

    /// All rows, and what was found in those that have ended.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'a Row, Option<&Outcome>)> + Clone {
        self.rows.iter().zip(self.outcomes.iter().map(Option::as_deref))
    }

    /// The rows that have ended.
    pub(super) fn finished(&self) -> impl Iterator<Item = (&'a Row, &Outcome)> + Clone {
        self.all().filter_map(|(row, outcome)| Some((row, outcome?)))
    }
}

fn gone(plan: &Plan, row: &Row) -> Error {
    let about = row.cell.about(plan);
    Error::run(format!(
        "{about}: what was kept of it is gone or damaged, before it came into the tables; run again to compute it once more"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::cell::Cell;
    use crate::run::brief::Brief;

    #[test]
    fn large_cells_are_by_themselves_and_no_row_is_left_out() {
        let cell = Cell { data: 0, trial: 0, clusterer: 0, variant: 0, option: 0, settled: false };
        let row =
            |numbers: usize| Row { brief: Some(Brief { numbers, ..Brief::default() }), ..Row::unfinished(cell) };
        let rows = [NUMBERS, 10, 10, 5 * NUMBERS, 10].map(row);
        assert_eq!(batches(&rows), [0..1, 1..4, 4..5]);
        assert_eq!(batches(&[]), vec![Range { start: 0, end: 0 }], "a table without rows still has columns");
        let many: Vec<Row> = (0..100_000).map(|_| row(0)).collect();
        assert_eq!(batches(&many).len(), (100_000 * CELL).div_ceil(NUMBERS));
    }
}
