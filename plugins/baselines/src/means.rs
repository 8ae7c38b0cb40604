//! The means of clusters that every example is in one of.

use compflow_api::{Singletons, Task};

/// The mean of each cluster's points; none has no points.
pub(crate) fn means(points: &[f32], dim: usize, labels: &[u32], clusters: usize) -> Vec<f32> {
    let (mut sums, mut counts) = (vec![0.0; clusters * dim], vec![0u64; clusters]);
    for (point, &label) in points.chunks_exact(dim).zip(labels) {
        counts[label as usize] += 1;
        let sum = &mut sums[label as usize * dim..][..dim];
        sum.iter_mut().zip(point).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    sums.iter().enumerate().map(|(at, sum)| (sum / counts[at / dim] as f64) as f32).collect()
}

/// What a composer would take of each cluster: the mean of its examples as they are, before they are normalised.
pub(crate) fn singletons(task: &Task<'_>, labels: &[u32], clusters: usize) -> Singletons {
    let vectors = means(task.embeddings.values(), task.embeddings.dim(), labels, clusters);
    Singletons { numbers: (0..clusters as u32).collect(), vectors }
}
