//! From examples to the representatives of their clusters.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use compflow_api::{Clustering, Embeddings, Result, Rows, Sets, StreamTask};

/// The distance of every example to the representative of its cluster: its centroid, or its composed exemplars.
pub(super) fn distances(task: &StreamTask<'_>, clustering: &Clustering) -> Result<Vec<f32>> {
    let (dim, clusters) = (task.rows.dim(), &clustering.clusters);
    let representatives = if !clustering.centroids.is_empty() {
        clustering.centroids.clone()
    } else if !clustering.exemplars.is_empty() {
        let (values, sets) = exemplars(task.rows, &clustering.exemplars)?;
        let values = Embeddings::new(&values, dim);
        task.with(values).compose_sets(values, &sets)?
    } else {
        return Ok(Vec::new());
    };
    let clusters: HashMap<&[u32], usize> = clusters.iter().enumerate().map(|(at, set)| (set, at)).collect();
    let mut distances = Vec::with_capacity(task.rows.len());
    task.rows.pass(&mut |batch| {
        let points = task.space.points(batch);
        for point in points.chunks_exact(dim) {
            let cluster = clusters[&clustering.assignments[distances.len()]];
            distances.push(task.space.distance(point, &representatives[cluster * dim..][..dim]) as f32);
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
