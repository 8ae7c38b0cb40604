//! How much there is to do, for those who divide it into parts.

use std::collections::BTreeMap;
use std::path::Path;

use super::cache::Cache;
use super::folder::make;
use super::part::Phase;
use super::recall::recall_ended;
use super::row::Row;
use super::selection::{kept, pieces};
use super::tuning::settle;
use crate::error::Result;
use crate::plan::Plan;
use crate::plan::cell::{Cell, assume_first, test_cells, tuning_cells};

/// So many kept cells of a method on a data set say how long the others take.
const SAMPLE: usize = 32;

/// So many steps, a fraction of a second, are taken to find out how many parts are best.
const STEPS: usize = 1 << 26;

/// What is to be computed in one phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The phase.
    pub phase: Phase,
    /// How many cells it has.
    pub cells: usize,
    /// About how many seconds one takes that is to be computed, going by those that are kept; `None` if there are none.
    pub seconds: Option<f64>,
    /// The numbers of those that are to be computed.
    missing: Vec<usize>,
}

impl Workload {
    /// How many cells are to be computed, as far as that is known before tuning.
    pub fn to_compute(&self) -> usize {
        self.missing.len()
    }

    /// The fewest parts, `most` of them at most, of which none has more than `limit` cells to compute; and how many the fullest
    /// has. A part is every N-th of all cells, and those that are missing may be every N-th, too: then it takes another N. Where
    /// there are too many N to look at all, it is about the fewest.
    pub fn parts(&self, limit: usize, most: usize) -> (usize, usize) {
        let (count, limit) = (self.missing.len(), limit.max(1));
        let most = most.clamp(1, self.cells.max(1));
        let least = count.div_ceil(limit).clamp(1, most);
        // Odd, as what is missing is more often every second or fourth than every third.
        let stride = (most * count / STEPS) | 1;
        let mut best = (1, count);
        for parts in (least..=most).step_by(stride).chain([most]).chain((1..least).rev().step_by(stride)) {
            if best.1 <= limit {
                break;
            }
            // However they lie, so many are in one of the parts.
            if count.div_ceil(parts) >= best.1 {
                continue;
            }
            let mut counts = vec![0; parts];
            self.missing.iter().for_each(|at| counts[at % parts] += 1);
            let fullest = counts.into_iter().max().unwrap_or(0);
            if fullest < best.1 {
                best = (parts, fullest);
            }
        }
        best
    }
}

impl Plan {
    /// What is to be computed in every phase that there is, and leaves a note of the cells in the folder so that it can be
    /// seen how far they are.
    ///
    /// # Errors
    /// If the results folder cannot be used.
    pub fn workloads(&self, out: &Path, strict: bool) -> Result<Vec<Workload>> {
        make(out, &self.name)?;
        let (cache, tuning) = (Cache::peek(out), tuning_cells(self));
        // As parts see it: a point of a grid that failed has ended, too.
        let ended: Vec<Option<Row>> =
            tuning.iter().map(|cell| recall_ended(self, &cache, *cell, strict)).collect();
        let untuned = (0..ended.len()).filter(|at| ended[*at].as_ref().is_none_or(|row| row.brief.is_none()));
        let untuned: Vec<usize> = untuned.collect();
        let rows: Option<Vec<Row>> = ended.into_iter().collect();
        let untuned = if rows.is_some() { Vec::new() } else { untuned };
        let chosen = rows.map(|rows| settle(self, &rows));
        self.tell_others(out, chosen.as_ref())?;
        let tested = test_cells(self, chosen.as_ref().unwrap_or(&assume_first(self)));
        let mut paces = Paces { plan: self, cache: &cache, kept: BTreeMap::new() };
        // How long cells of one phase take is known from the other, too.
        paces.missing(&tuning, true);
        let untested = paces.missing(&tested, chosen.is_some());
        let phases = [(Phase::Tune, tuning, untuned), (Phase::Test, tested, untested)].into_iter();
        Ok(phases
            .filter(|(_, cells, _)| !cells.is_empty())
            .map(|(phase, cells, missing)| Workload {
                phase,
                cells: cells.len(),
                seconds: paces.seconds(&missing.iter().map(|at| cells[*at]).collect::<Vec<Cell>>()),
                missing,
            })
            .collect())
    }
}

/// How long kept cells took, by data and clusterer.
struct Paces<'a> {
    plan: &'a Plan,
    cache: &'a Cache,
    kept: BTreeMap<(usize, usize), Vec<f64>>,
}

impl Paces<'_> {
    /// The numbers of cells that are not kept; notes how long some of the others took. Without knowing what tuning chooses, cells
    /// that it settles count as missing.
    fn missing(&mut self, cells: &[Cell], known: bool) -> Vec<usize> {
        let mut missing = Vec::new();
        for (at, &cell) in cells.iter().enumerate() {
            let found = kept(self.plan, self.cache, cell).filter(|_| known || !cell.settled);
            let key = found.map(|(cell, _)| cell.key(self.plan)).filter(|key| self.cache.has(key));
            let Some(key) = key else {
                missing.push(at);
                continue;
            };
            let paces = self.kept.entry((cell.data, cell.clusterer)).or_default();
            if paces.len() < SAMPLE {
                paces.extend(self.cache.load(&key).map(|outcome| outcome.seconds * pieces(self.plan, cell)));
            }
        }
        missing
    }

    /// The mean over cells of how long others like it took, or others at all.
    fn seconds(&self, cells: &[Cell]) -> Option<f64> {
        let mean = |paces: &[f64]| (!paces.is_empty()).then(|| paces.iter().sum::<f64>() / paces.len() as f64);
        let all: Vec<f64> = self.kept.values().flatten().copied().collect();
        let any = mean(&all)?;
        let like = |cell: &Cell| self.kept.get(&(cell.data, cell.clusterer)).and_then(|paces| mean(paces));
        let total: f64 = cells.iter().map(|cell| like(cell).unwrap_or(any)).sum();
        Some(if cells.is_empty() { any } else { total / cells.len() as f64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(cells: usize, missing: impl Iterator<Item = usize>) -> Workload {
        Workload { phase: Phase::Test, cells, seconds: None, missing: missing.collect() }
    }

    #[test]
    fn no_part_has_more_cells_to_compute_than_allowed() {
        assert_eq!(workload(40, 0..40).parts(3, 1000), (14, 3));
        assert_eq!(workload(9, 0..9).parts(2, 1000), (5, 2));
        // What a part of 4 left, which is all of the last part of any multiple.
        assert_eq!(workload(40, (3..40).step_by(4)).parts(3, 1000), (5, 2));
        assert_eq!(workload(40, (3..40).step_by(4)).parts(10, 1000), (1, 10));
        for (step, limit) in [(2, 1), (4, 1), (10, 2), (16, 3), (64, 1)] {
            let workload = workload(1000, (step - 1..1000).step_by(step));
            let (parts, fullest) = workload.parts(limit, 1000);
            let counts = (0..parts).map(|part| workload.missing.iter().filter(|at| *at % parts == part).count());
            assert_eq!(counts.max(), Some(fullest), "{step} {limit}");
            assert!(fullest <= limit && parts <= 1000, "{step} {limit}: {parts} {fullest}");
        }
        // Within what is allowed, the best there is.
        assert_eq!(workload(9, 0..9).parts(1, 3), (3, 3));
        assert_eq!(workload(40, (3..40).step_by(4)).parts(1, 4), (3, 4));
        assert_eq!(workload(5, 0..0).parts(1, 4), (1, 0));
    }

    #[test]
    fn however_many_parts_there_may_be_the_number_is_found_soon() {
        let mut state = 1_u64;
        let missing: Vec<usize> = (0..200_000)
            .filter(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 63 == 1
            })
            .collect();
        let started = std::time::Instant::now();
        let (parts, fullest) = workload(200_000, missing.iter().copied()).parts(1, 4_000_000);
        assert_eq!((parts, fullest), (200_000, 1));
        let (parts, fullest) = workload(200_000, missing.into_iter()).parts(4, 150_000);
        assert!(parts <= 150_000 && fullest <= 6, "{parts} {fullest}");
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
