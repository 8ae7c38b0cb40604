//! `compflow plan`: the cells of a pipeline, which of them are kept, and the memory they need.

use std::path::Path;

use compflow_api::{Clusterer, ForeignClusterer};

use crate::cache::Cache;
use crate::check::Plan;
use crate::render::{Format, Grid};
use crate::run::{Cell, Row, assume_first, settle, test_cells, tuning_cells};

/// Describes what a run would do.
pub(crate) fn describe(plan: &Plan, out: &Path) -> String {
    let cache = Cache::peek(out);
    let tuning = tuning_cells(plan);
    // What tuning chooses is known if all its cells are kept.
    let rows: Option<Vec<Row>> = tuning
        .iter()
        .map(|cell| {
            let outcome = Some(cache.load(&cell.key(plan))?);
            Some(Row { cell: *cell, outcome, error: None, kept: true })
        })
        .collect();
    let chosen = rows.map(|rows| settle(plan, &rows));
    let tested = test_cells(plan, chosen.as_ref().unwrap_or(&assume_first(plan)));
    let cells: Vec<Cell> = tuning.iter().copied().chain(tested).collect();
    let mut groups: Vec<(Cell, Vec<Cell>)> = Vec::new();
    for cell in &cells {
        match groups.last_mut() {
            Some((group, members)) if (group.data, group.label(plan)) == (cell.data, cell.label(plan)) => {
                members.push(*cell);
            }
            _ => groups.push((*cell, vec![*cell])),
        }
    }
    let mut kept_in_all = 0;
    let rows = groups
        .iter()
        .map(|(group, members)| {
            let dataset = &plan.data[group.data].dataset;
            let n = members.iter().map(|cell| dataset.trials[cell.trial].len()).max().unwrap_or(0);
            let known = |cell: &Cell| !cell.settled || chosen.is_some();
            let kept = members.iter().filter(|cell| known(cell) && cache.has(&cell.key(plan))).count();
            kept_in_all += kept;
            vec![
                plan.data[group.data].name.clone(),
                group.label(plan).to_owned(),
                n.to_string(),
                dataset.dim.to_string(),
                members.len().to_string(),
                if known(group) { kept.to_string() } else { "after tuning".to_owned() },
                memory(plan, group, n),
            ]
        })
        .collect();
    let header = ["data", "clusterer", "n", "dim", "cells", "kept", "memory"].map(str::to_owned).to_vec();
    let grid = Grid { title: String::new(), header, rows, numbers: true };
    let left = cells.len() - kept_in_all;
    format!("{}{} cells, {left} to compute\n", grid.render(Format::Table), cells.len())
}

/// What the clusterer says it would allocate for a cell.
fn memory(plan: &Plan, cell: &Cell, n: usize) -> String {
    let instance = cell.variant(plan).recipe.make(&plan.environment).and_then(ForeignClusterer::try_from);
    let bytes =
        instance.map_or(0, |clusterer| clusterer.memory(n, plan.data[cell.data].dataset.dim, plan.setting.degree));
    match bytes {
        0 => "unknown".to_owned(),
        bytes => indicatif::HumanBytes(bytes).to_string(),
    }
}
