//! Clusters that no longer need the examples they were found in.

use compflow_api::Singletons;

use super::candidates::{Training, representatives};
use super::cell::Cell;
use super::novel;
use super::origin::Origin;
use crate::error::Result;
use crate::results::CellTables;
use crate::run::members::Members;

/// The same clusters with a point for each, where they were known by examples only, and the distances of the examples. What
/// an assigner makes of them is the same.
///
/// # Errors
/// If composing fails.
pub(crate) fn self_contained(
    origin: &dyn Origin,
    cell: &Cell,
    found: CellTables,
    dim: usize,
) -> Result<(CellTables, Vec<f32>)> {
    let mut training = Training::new(origin, cell);
    let distances = novel::distances(&mut training)?;
    if !found.densities.sets.is_empty() || !found.centroids.is_empty() {
        return Ok((found, distances));
    }
    let every: Vec<usize> = (0..found.clusters.len()).collect();
    let (points, Members { vectors, of }, _) = representatives(&found, &mut training, &every, dim)?;
    let singletons = match found.singletons.numbers.is_empty() {
        false => found.singletons,
        true => Singletons {
            numbers: of.keys().copied().collect(),
            vectors: of.values().flat_map(|&at| &vectors[at as usize * dim..][..dim]).copied().collect(),
        },
    };
    let detached = CellTables {
        clusters: points.iter().map(|(at, _)| &found.clusters[*at]).collect(),
        sizes: points.iter().map(|(at, _)| found.sizes[*at]).collect(),
        centroids: points.into_iter().flat_map(|(_, point)| point).collect(),
        exemplars: Vec::new(),
        singletons,
        densities: found.densities,
    };
    Ok((detached, distances))
}
