//! How long the cells that are left will take, by the times of those that have ended: of the same clusterer on the same data,
//! else of the same clusterer, else of all. Kept cells say how long they took when they were computed.

use std::collections::BTreeMap;

use super::row::Row;
use crate::plan::cell::Cell;

/// Cells that are alike.
type Group = (usize, usize, usize);

/// Times of cells, and those that are to come. There may be as many groups as cells, so what they come to is kept, and nobody
/// goes through all of them because a cell has ended.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    groups: BTreeMap<Group, Work>,
    /// What all cells of a clusterer took, and how many are left in those of its groups of which none has ended.
    clusterers: BTreeMap<usize, Work>,
    /// What all cells took.
    took: Times,
    /// How many are left.
    left: usize,
    /// How many of them are of clusterers of which no cell has ended, and about how long the others take.
    unknown: usize,
    known: f64,
}

/// Cells that are left, and times of those that have ended.
#[derive(Debug, Default, Clone, Copy)]
struct Work {
    left: usize,
    took: Times,
}

impl Work {
    /// About how long those that are left take; `None` if none has ended.
    fn seconds(&self) -> Option<f64> {
        Some(self.left as f64 * self.took.mean()?)
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Times {
    seconds: f64,
    cells: usize,
}

impl Times {
    fn add(&mut self, seconds: f64) {
        self.seconds += seconds;
        self.cells += 1;
    }

    fn mean(&self) -> Option<f64> {
        (self.cells > 0).then(|| self.seconds / self.cells as f64)
    }
}

impl Estimate {
    /// These are to come.
    pub(super) fn expect(&mut self, cells: &[Cell]) {
        self.groups.values_mut().chain(self.clusterers.values_mut()).for_each(|work| work.left = 0);
        for group in cells.iter().copied().map(group) {
            let own = self.groups.entry(group).or_default();
            own.left += 1;
            self.clusterers.entry(group.1).or_default().left += usize::from(own.took.cells == 0);
        }
        self.left = cells.len();
        let works = || self.groups.values().chain(self.clusterers.values());
        self.known = works().filter_map(Work::seconds).sum();
        self.unknown = self.clusterers.values().filter(|work| work.took.cells == 0).map(|work| work.left).sum();
    }

    /// A cell has ended, which takes so many times as long as its clustering.
    pub(super) fn ended(&mut self, row: &Row, pieces: f64) {
        let group = group(row.cell);
        let own = self.groups.entry(group).or_default();
        let clusterer = self.clusterers.entry(group.1).or_default();
        let (unknown, known) = part(own, clusterer);
        let first = own.took.cells == 0;
        if own.left > 0 {
            own.left -= 1;
            self.left -= 1;
            clusterer.left -= usize::from(first);
        }
        if let Some(brief) = &row.brief {
            // From now on the group goes by its own times.
            clusterer.left -= if first { own.left } else { 0 };
            for took in [&mut own.took, &mut clusterer.took, &mut self.took] {
                took.add(brief.seconds * pieces);
            }
        }
        let (unknown_now, known_now) = part(own, clusterer);
        self.unknown = self.unknown + unknown_now - unknown;
        self.known += known_now - known;
    }

    /// How many of those expected have not ended.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// About how many seconds so many jobs have still to work, with so many cells after those expected; `None` if no cell has
    /// ended yet.
    pub(super) fn seconds_left(&self, jobs: usize, later: usize) -> Option<f64> {
        let all = self.took.mean()?;
        // What was added and taken away again may have left a little less than nothing.
        let expected = self.known.max(0.0) + self.unknown as f64 * all;
        Some((expected + later as f64 * all) / jobs.max(1) as f64)
    }
}

/// What a group and the rest of its clusterer add to those that nothing is known of, and to the seconds of the others.
fn part(own: &Work, clusterer: &Work) -> (usize, f64) {
    let known = own.seconds().unwrap_or(0.0);
    clusterer.seconds().map_or((clusterer.left, known), |rest| (0, known + rest))
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
