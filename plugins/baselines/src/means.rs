//! The means of clusters that every example is in one of.

use compflow_api::{Singletons, Task};
use compflow_kernels::weights::weight;

/// The mean of each cluster's points; none has no points. Points of a cluster of which none counts count once.
pub(crate) fn means(
    points: &[f32],
    dim: usize,
    weights: Option<&[f32]>,
    labels: &[u32],
    clusters: usize,
) -> Vec<f32> {
    let mut counts = vec![0.0; clusters];
    labels.iter().enumerate().for_each(|(row, &label)| counts[label as usize] += weight(weights, row));
    let alike: Vec<bool> = counts.iter().map(|count| *count == 0.0).collect();
    let mut sums = vec![0.0; clusters * dim];
    for (row, (point, &label)) in points.chunks_exact(dim).zip(labels).enumerate() {
        let weight = if alike[label as usize] { 1.0 } else { weight(weights, row) };
        counts[label as usize] += f64::from(u8::from(alike[label as usize]));
        let sum = &mut sums[label as usize * dim..][..dim];
        sum.iter_mut().zip(point).for_each(|(sum, &value)| *sum += weight * f64::from(value));
    }
    sums.iter().enumerate().map(|(at, sum)| (sum / counts[at / dim]) as f32).collect()
}

/// What a composer would take of each cluster: the mean of its examples as they are, before they are normalised.
pub(crate) fn singletons(task: &Task<'_>, weights: Option<&[f32]>, labels: &[u32], clusters: usize) -> Singletons {
    let vectors = means(task.embeddings.values(), task.embeddings.dim(), weights, labels, clusters);
    Singletons { numbers: (0..clusters as u32).collect(), vectors }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_weighted_unless_nobody_counts() {
        let points = [1.0, 4.0, 10.0, 20.0];
        assert_eq!(means(&points, 1, None, &[0, 0, 1, 1], 2), [2.5, 15.0]);
        assert_eq!(means(&points, 1, Some(&[2.0, 1.0, 0.0, 0.0]), &[0, 0, 1, 1], 2), [2.0, 15.0]);
    }
}
