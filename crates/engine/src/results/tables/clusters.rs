//! The clusters of every cell, and the singletons that they are composed from.

use compflow_api::Clustering;
use polars::prelude::*;

use super::batch::Batch;
use super::columns::{join_columns, lists, vectors};
use crate::plan::Plan;
use crate::results::cell::sizes;
use crate::results::names;
use crate::run::row::Row;

/// What was found in every cell that has ended.
fn found<'b>(batch: &'b Batch<'_>) -> impl Iterator<Item = (&'b Row, &'b Clustering)> + Clone {
    batch.finished().map(|(row, outcome)| (row, &outcome.clustering))
}

pub(super) fn clusters(plan: &Plan, batch: &Batch<'_>) -> PolarsResult<DataFrame> {
    let found = found(batch);
    let clusterings = || found.clone().map(|(_, found)| found);
    let mut columns = join_columns(plan, found.clone().map(|(row, found)| (row, found.clusters.len())));
    let sizes: Vec<u32> = clusterings().flat_map(sizes).collect();
    let total = sizes.len();
    columns.push(lists("clusters", clusterings().flat_map(|found| found.clusters.iter().map(Some))));
    if names::are_there(plan) {
        let of_cells: Vec<Option<Vec<String>>> =
            found.clone().map(|(row, found)| names::of_cell(plan, row, found)).collect();
        columns.push(names::lists(
            of_cells
                .iter()
                .zip(clusterings())
                .flat_map(|(names, found)| found.clusters.iter().map(move |set| (names.as_deref(), set))),
        ));
    }
    columns.push(Column::new("size".into(), sizes));
    columns.push(lists(
        "exemplars",
        clusterings()
            .flat_map(|found| (0..found.clusters.len()).map(|at| found.exemplars.get(at).map(Vec::as_slice))),
    ));
    columns.push(centroids(plan, found.clone())?);
    DataFrame::new(total, columns)
}

/// Centroids: a fixed-size list if all data has the same dimension, a list otherwise.
fn centroids<'b>(plan: &Plan, found: impl Iterator<Item = (&'b Row, &'b Clustering)>) -> PolarsResult<Column> {
    let mut builder = ListPrimitiveChunkedBuilder::<Float32Type>::new("centroid".into(), 0, 0, DataType::Float32);
    let mut dims: Vec<usize> = plan.data.iter().map(|data| data.dataset.dim).collect();
    for (row, found) in found {
        let dim = plan.data[row.cell.data].dataset.dim;
        for at in 0..found.clusters.len() {
            builder.append_opt_slice(found.centroids.get(at * dim..(at + 1) * dim));
        }
    }
    let column = builder.finish().into_column();
    dims.dedup();
    match dims[..] {
        [dim] => column.cast(&DataType::Array(Box::new(DataType::Float32), dim)),
        _ => Ok(column),
    }
}

/// What unions are composed from: the vectors of singletons before normalisation.
pub(super) fn singletons(plan: &Plan, batch: &Batch<'_>) -> PolarsResult<DataFrame> {
    let found = found(batch);
    let of = || found.clone().map(|(_, found)| &found.singletons);
    let mut columns = join_columns(plan, found.clone().map(|(row, found)| (row, found.singletons.numbers.len())));
    let numbers: Vec<u32> = of().flat_map(|singletons| singletons.numbers.iter().copied()).collect();
    let each = of().flat_map(|singletons| {
        let dim = singletons.vectors.len().checked_div(singletons.numbers.len()).unwrap_or(0).max(1);
        singletons.vectors.chunks_exact(dim)
    });
    let height = numbers.len();
    let each = vectors("vector", each);
    columns.push(Column::new("singleton".into(), numbers));
    if names::are_there(plan) {
        let of_cells: Vec<(Option<Vec<String>>, &[u32])> = found
            .clone()
            .map(|(row, found)| (names::of_cell(plan, row, found), &found.singletons.numbers[..]))
            .collect();
        columns.push(names::texts(of_cells.iter().flat_map(|(names, numbers)| {
            numbers.iter().map(move |at| names.as_ref()?.get(*at as usize).map(String::as_str))
        })));
    }
    columns.push(each);
    DataFrame::new(height, columns)
}
