//! How long the cells that are left will take, by the times of those that have ended: of the same clusterer on the same data,
//! else of the same clusterer, else of all. Kept cells say how long they took when they were computed.

use std::collections::BTreeMap;

use super::row::Row;
use crate::plan::cell::Cell;

/// Cells that are alike.
type Group = (usize, usize, usize);

/// Times of cells, and those that are to come.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    left: BTreeMap<Group, usize>,
    took: BTreeMap<Group, Times>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Times {
    seconds: f64,
    cells: usize,
}

impl Times {
    fn mean<'t>(times: impl Iterator<Item = &'t Times>) -> Option<f64> {
        let (seconds, cells) = times.fold((0.0, 0), |(sum, count), one| (sum + one.seconds, count + one.cells));
        (cells > 0).then(|| seconds / cells as f64)
    }
}

impl Estimate {
    /// These are to come.
    pub(super) fn expect(&mut self, cells: &[Cell]) {
        self.left.clear();
        cells.iter().for_each(|cell| *self.left.entry(group(*cell)).or_default() += 1);
    }

    /// A cell has ended, which takes so many times as long as its clustering.
    pub(super) fn ended(&mut self, row: &Row, pieces: f64) {
        let group = group(row.cell);
        if let Some(left) = self.left.get_mut(&group) {
            *left = left.saturating_sub(1);
        }
        if let Some(brief) = &row.brief {
            let times = self.took.entry(group).or_default();
            times.seconds += brief.seconds * pieces;
            times.cells += 1;
        }
    }

    /// How many of those expected have not ended.
    pub(super) fn left(&self) -> usize {
        self.left.values().sum()
    }

    /// About how many seconds so many jobs have still to work, with so many cells after those expected; `None` if no cell has
    /// ended yet.
    pub(super) fn seconds_left(&self, jobs: usize, later: usize) -> Option<f64> {
        let all = Times::mean(self.took.values())?;
        let expected = self.left.iter().map(|((data, clusterer, variant), &count)| {
            let own = self.took.get(&(*data, *clusterer, *variant));
            let alike = self.took.iter().filter(|((_, of, _), _)| of == clusterer).map(|(_, times)| times);
            count as f64 * Times::mean(own.into_iter()).or_else(|| Times::mean(alike)).unwrap_or(all)
        });
        Some((expected.sum::<f64>() + later as f64 * all) / jobs.max(1) as f64)
    }
}

fn group(cell: Cell) -> Group {
    (cell.data, cell.clusterer, cell.variant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::brief::Brief;

    fn cell(data: usize, clusterer: usize, trial: usize) -> Cell {
        Cell { data, trial, clusterer, variant: 0, option: 0, settled: false }
    }

    fn ended(estimate: &mut Estimate, cell: Cell, seconds: f64) {
        let brief = Some(Brief { seconds, ..Brief::default() });
        estimate.ended(&Row { brief, ..Row::unfinished(cell) }, 1.0);
    }

    #[test]
    fn cells_take_as_long_as_those_like_them() {
        let mut estimate = Estimate::default();
        let cells: Vec<Cell> = (0..2)
            .flat_map(|data| (0..2).flat_map(move |one| (0..3).map(move |trial| cell(data, one, trial))))
            .collect();
        estimate.expect(&cells);
        assert_eq!(estimate.seconds_left(1, 0), None);
        ended(&mut estimate, cell(0, 0, 0), 2.0);
        // Eleven are left, and nothing is known of the others.
        assert_eq!(estimate.seconds_left(1, 0), Some(22.0));
        ended(&mut estimate, cell(0, 1, 0), 10.0);
        ended(&mut estimate, cell(1, 1, 0), 20.0);
        // Two and three of the first by 2; of the second two by 10 and two by 20; after them one as the mean of all.
        assert_eq!(estimate.seconds_left(2, 3), Some((10.0 + 20.0 + 40.0 + 3.0 * 32.0 / 3.0) / 2.0));
        // One that failed takes no time.
        estimate.ended(&Row { error: Some("no".to_owned()), ..Row::unfinished(cell(1, 1, 1)) }, 1.0);
        assert_eq!(estimate.seconds_left(1, 0), Some(50.0));
    }
}
