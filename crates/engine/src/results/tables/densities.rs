//! How likely sets are at a point of the space, for methods that assign by it.

use compflow_api::Densities;
use polars::prelude::*;

use super::batch::Batch;
use super::columns::{join_columns, lists, vectors};
use crate::plan::Plan;
use crate::results::names;
use crate::run::row::Row;

/// The densities of all cells that have some, with how many numbers each of a cell's vectors has.
fn with_densities<'b>(batch: &'b Batch<'_>) -> impl Iterator<Item = (&'b Row, &'b Densities, usize)> + Clone {
    let found = batch.finished().map(|(row, outcome)| (row, &outcome.clustering.densities));
    found.filter(|(_, found)| !found.sets.is_empty()).map(|(row, found)| {
        let dim = found.centres.len() / found.sets.len();
        (row, found, dim)
    })
}

/// How likely sets are at a point of the space: what new examples are assigned by.
pub(super) fn densities(plan: &Plan, batch: &Batch<'_>) -> PolarsResult<DataFrame> {
    let found = with_densities(batch);
    let mut columns = join_columns(plan, found.clone().map(|(row, found, _)| (row, found.sets.len())));
    columns.push(lists("clusters", found.clone().flat_map(|(_, found, _)| found.sets.iter().map(Some))));
    if names::are_there(plan) {
        let finished = batch.finished().filter(|(_, outcome)| !outcome.clustering.densities.sets.is_empty());
        let of_cells: Vec<Option<Vec<String>>> =
            finished.map(|(row, outcome)| names::of_cell(plan, row, &outcome.clustering)).collect();
        columns.push(names::lists(
            of_cells
                .iter()
                .zip(found.clone())
                .flat_map(|(names, (_, found, _))| found.sets.iter().map(move |set| (names.as_deref(), set))),
        ));
    }
    columns.push(vectors("centre", found.clone().flat_map(|(_, found, dim)| found.centres.chunks_exact(dim))));
    let of = || found.clone().map(|(_, found, _)| found);
    let offsets: Vec<f64> = of().flat_map(|found| found.offsets.iter().copied()).collect();
    let factors: Vec<u32> = of().flat_map(|found| found.factor_of.iter().copied()).collect();
    let height = offsets.len();
    columns.push(Column::new("offset".into(), offsets));
    columns.push(Column::new("factor".into(), factors));
    DataFrame::new(height, columns)
}

/// The triangular matrices that the densities refer to.
pub(super) fn factors(plan: &Plan, batch: &Batch<'_>) -> PolarsResult<DataFrame> {
    let found = with_densities(batch).map(|(row, found, dim)| (row, found, Densities::factor_len(dim)));
    let mut columns =
        join_columns(plan, found.clone().map(|(row, found, length)| (row, found.factors.len() / length)));
    let numbers: Vec<u32> =
        found.clone().flat_map(|(_, found, length)| 0..(found.factors.len() / length) as u32).collect();
    let height = numbers.len();
    columns.push(Column::new("factor".into(), numbers));
    columns.push(vectors("values", found.flat_map(|(_, found, length)| found.factors.chunks_exact(length))));
    DataFrame::new(height, columns)
}
