//! What a run would do.

use std::path::Path;

use compflow_api::{Clusterer, ForeignClusterer, Services, Shape};

use super::cache::Cache;
use super::recall::recall;
use super::row::Row;
use super::selection::{halves_to_cluster, kept};
use super::tuning::settle;
use crate::plan::Plan;
use crate::plan::cell::{Cell, assume_first, test_cells, tuning_cells};

/// The cells of a plan, which of them are kept, and the memory they need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// In the order in which they would run.
    pub groups: Vec<Group>,
}

/// The cells of one clusterer, or point of its grids, on one data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The data set.
    pub data: String,
    /// The clusterer as it is called in tables.
    pub clusterer: String,
    /// The number of examples in the largest trial.
    pub n: usize,
    /// How many numbers an embedding has.
    pub dim: usize,
    /// How many cells.
    pub cells: usize,
    /// How many of them are kept; `None` if that is known only after tuning.
    pub kept: Option<usize>,
    /// How many values are selected from in every cell; 1 if nothing is selected.
    pub selects: usize,
    /// How many clusterings of halves it takes to select, besides what is kept of them.
    pub halves: usize,
    /// How many bytes the clusterer says it would allocate for a cell; `None` if it does not say.
    pub memory: Option<u64>,
}

impl Preview {
    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.groups.iter().map(|group| group.cells).sum()
    }

    /// How many halves of the examples would be clustered to select values.
    pub fn halves(&self) -> usize {
        self.groups.iter().map(|group| group.halves).sum()
    }

    /// How many cells would be computed.
    pub fn to_compute(&self) -> usize {
        self.groups.iter().map(|group| group.cells - group.kept.unwrap_or(0)).sum()
    }
}

impl Plan {
    /// What a run into a folder would do.
    pub fn preview(&self, out: &Path) -> Preview {
        // A component that is made on the way may go elsewhere.
        let cache = Cache::peek(&std::path::absolute(out).unwrap_or_else(|_| out.to_owned()));
        let tuning = tuning_cells(self);
        // What tuning chooses is known if all its cells are kept.
        let rows: Option<Vec<Row>> = tuning.iter().map(|cell| recall(self, &cache, *cell, false)).collect();
        let chosen = rows.map(|rows| settle(self, &rows));
        let tested = test_cells(self, chosen.as_ref().unwrap_or(&assume_first(self)));
        let mut groups: Vec<Vec<Cell>> = Vec::new();
        for cell in tuning.into_iter().chain(tested) {
            let same = |members: &&mut Vec<Cell>| {
                (members[0].data, members[0].label(self)) == (cell.data, cell.label(self))
            };
            match groups.last_mut().filter(same) {
                Some(members) => members.push(cell),
                None => groups.push(vec![cell]),
            }
        }
        let group = |members: &Vec<Cell>| {
            let first = members[0];
            let data = &self.data[first.data];
            let n = members.iter().map(|cell| cell.trial(self).size()).max().unwrap_or(0);
            let known = !first.settled || chosen.is_some();
            let is_kept =
                |cell: &Cell| kept(self, &cache, *cell).is_some_and(|(cell, _)| cache.has(&cell.key(self)));
            let kept = || members.iter().filter(|cell| is_kept(cell)).count();
            Group {
                data: data.name.clone(),
                clusterer: first.label(self).to_owned(),
                n,
                dim: data.dataset.dim,
                cells: members.len(),
                kept: known.then(kept),
                selects: first.variant(self).options.len(),
                halves: members.iter().map(|cell| halves_to_cluster(self, &cache, *cell)).sum(),
                memory: (0..first.variant(self).options.len())
                    .filter_map(|option| self.memory_of(Cell { option, ..first }, n))
                    .max(),
            }
        };
        Preview { groups: groups.iter().map(group).collect() }
    }

    fn memory_of(&self, cell: Cell, n: usize) -> Option<u64> {
        let recipe = &cell.setup(self).recipe;
        let _calling = self.factory.calling("planning", recipe.kind, &recipe.name);
        let instance = recipe.make(&self.factory).and_then(ForeignClusterer::try_from);
        let dim = self.data[cell.data].dataset.dim;
        let shape = Shape { rows: n, dim, degree: self.setting.degree };
        let services = Services { threads: self.setting.threads, memory: self.setting.memory, ..Services::none() };
        let bytes = instance.and_then(|clusterer| clusterer.memory(shape, &services)).unwrap_or(0);
        (bytes > 0).then_some(bytes)
    }
}
