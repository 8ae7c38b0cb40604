//! From examples to the representatives of their clusters.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use compflow_api::{Clustering, Embeddings, Result, Rows, Services, Sets, StreamTask};

/// A point of the space for every cluster: its centroid, or its composed exemplars; `None` if clusters have neither.
pub(super) fn representatives(
    task: &StreamTask<'_>,
    clustering: &Clustering,
    services: &Services<'_>,
) -> Result<Option<Vec<f32>>> {
    if !clustering.centroids.is_empty() {
        return Ok(Some(clustering.centroids.clone()));
    }
    if clustering.exemplars.is_empty() {
        return Ok(None);
    }
    let (values, sets) = exemplars(task.rows, &clustering.exemplars)?;
    let values = Embeddings::new(&values, task.rows.dim());
    task.with(values).compose_sets(values, &sets, services).map(Some)
}

/// The distance of every example to the representative of its cluster; NaN for one that belongs to none. Empty if
/// clusters have no representatives.
pub(super) fn distances(
    task: &StreamTask<'_>,
    clustering: &Clustering,
    services: &Services<'_>,
) -> Result<Vec<f32>> {
    let Some(representatives) = representatives(task, clustering, services)? else {
        // Nothing is measured, but the pass looks whether the examples are still those that were clustered.
        task.rows.pass(&mut |_| Ok(()))?;
        return Ok(Vec::new());
    };
    let (dim, clusters) = (task.rows.dim(), clustering.clusters.iter().enumerate());
    let clusters: HashMap<&[u32], usize> = clusters.map(|(at, set)| (set, at)).collect();
    let mut distances = Vec::with_capacity(task.rows.len());
    task.rows.pass(&mut |batch| {
        let points = task.space.points(batch);
        for point in points.chunks_exact(dim) {
            let cluster = clusters.get(&clustering.assignments[distances.len()]);
            distances.push(cluster.map_or(f32::NAN, |&cluster| {
                task.space.distance(point, &representatives[cluster * dim..][..dim]) as f32
            }));
        }
        Ok(())
    })?;
    Ok(distances)
}

/// The examples that are exemplars, by row, and every cluster's as positions among them: composed in ascending order of
/// rows, which no numbering of clusters changes.
fn exemplars(rows: &dyn Rows, exemplars: &[Vec<u32>]) -> Result<(Vec<f32>, Sets)> {
    let wanted: BTreeSet<u32> = exemplars.iter().flatten().copied().collect();
    let positions: BTreeMap<u32, u32> = wanted.iter().copied().zip(0..).collect();
    let sets = exemplars.iter().map(|rows| rows.iter().map(|row| positions[row]).collect::<Vec<u32>>()).collect();
    let (mut values, mut first) = (Vec::with_capacity(wanted.len() * rows.dim()), 0);
    rows.pass(&mut |batch| {
        let end = first + batch.len() as u32;
        values.extend(wanted.range(first..end).flat_map(|row| &batch[(row - first) as usize]));
        first = end;
        Ok(())
    })?;
    Ok((values, sets))
}
