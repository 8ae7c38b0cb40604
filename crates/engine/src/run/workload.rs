//! How much there is to do, for those who divide it into parts.

use std::collections::BTreeMap;
use std::path::Path;

use super::cache::Cache;
use super::folder::make;
use super::part::Phase;
use super::recall::recall;
use super::row::Row;
use super::selection::{kept, pieces};
use super::tuning::settle;
use crate::error::Result;
use crate::plan::Plan;
use crate::plan::cell::{Cell, assume_first, test_cells, tuning_cells};

/// So many kept cells of a method on a data set say how long the others take.
const SAMPLE: usize = 32;

/// What is to be computed in one phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// The phase.
    pub phase: Phase,
    /// How many cells it has.
    pub cells: usize,
    /// How many of them are not kept, as far as that is known before tuning.
    pub to_compute: usize,
    /// About how many seconds such a cell takes, going by those that are kept; `None` if there are none.
    pub seconds: Option<f64>,
}

impl Plan {
    /// What is to be computed in every phase that there is, and leaves a note of the cells in the folder so that it can be
    /// seen how far they are.
    ///
    /// # Errors
    /// If the results folder cannot be used.
    pub fn workloads(&self, out: &Path) -> Result<Vec<Workload>> {
        make(out, &self.name)?;
        let (cache, tuning) = (Cache::peek(out), tuning_cells(self));
        let rows: Option<Vec<Row>> = tuning.iter().map(|cell| recall(self, &cache, *cell, false)).collect();
        let chosen = rows.map(|rows| settle(self, &rows));
        self.tell_others(out, chosen.as_ref())?;
        let tested = test_cells(self, chosen.as_ref().unwrap_or(&assume_first(self)));
        let mut paces = Paces { plan: self, cache: &cache, kept: BTreeMap::new() };
        let phases = [(Phase::Tune, tuning), (Phase::Test, tested)].into_iter();
        let phases: Vec<(Phase, usize, Vec<Cell>)> = phases
            .filter(|(_, cells)| !cells.is_empty())
            .map(|(phase, cells)| {
                let known = phase == Phase::Tune || chosen.is_some();
                (phase, cells.len(), paces.missing(cells, known))
            })
            .collect();
        Ok(phases
            .into_iter()
            .map(|(phase, cells, missing)| Workload {
                phase,
                cells,
                to_compute: missing.len(),
                seconds: paces.seconds(&missing),
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
    /// The cells that are not kept; notes how long some of the others took. Without knowing what tuning chooses, cells that
    /// it settles count as missing.
    fn missing(&mut self, cells: Vec<Cell>, known: bool) -> Vec<Cell> {
        let mut missing = Vec::new();
        for cell in cells {
            let found = kept(self.plan, self.cache, cell).filter(|_| known || !cell.settled);
            let key = found.map(|(cell, _)| cell.key(self.plan)).filter(|key| self.cache.has(key));
            let Some(key) = key else {
                missing.push(cell);
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
