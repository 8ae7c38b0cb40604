//! Agglomerative clustering as it is defined, for tests to compare with: all pairs of groups are looked at before every
//! merge, and linkages are computed from the examples.

use super::Linkage;

/// The heights of all merges in ascending order, and the cluster of every example when `k` are left.
pub(crate) fn agglomerate(points: &[f32], dim: usize, linkage: Linkage, k: usize) -> (Vec<f64>, Vec<u32>) {
    let points: Vec<Vec<f64>> =
        points.chunks_exact(dim).map(|point| point.iter().map(|&value| f64::from(value)).collect()).collect();
    let mut groups: Vec<Vec<usize>> = (0..points.len()).map(|example| vec![example]).collect();
    let mut labels = vec![0; points.len()];
    let mut heights = Vec::new();
    loop {
        if groups.len() == k {
            for (label, group) in groups.iter().enumerate() {
                group.iter().for_each(|&example| labels[example] = label as u32);
            }
        }
        if groups.len() == 1 {
            return (heights, labels);
        }
        let (mut pair, mut least) = ((0, 0), f64::INFINITY);
        for b in 1..groups.len() {
            for a in 0..b {
                let height = height(&points, &groups[a], &groups[b], linkage);
                if height < least {
                    (pair, least) = ((a, b), height);
                }
            }
        }
        let joined = groups.remove(pair.1);
        groups[pair.0].extend(joined);
        heights.push(least);
    }
}

fn height(points: &[Vec<f64>], a: &[usize], b: &[usize], linkage: Linkage) -> f64 {
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    let pairs = a.iter().flat_map(|&a| b.iter().map(move |&b| distance(&points[a], &points[b])));
    match linkage {
        Linkage::Ward => {
            let mean = |group: &[usize]| -> Vec<f64> {
                let axes = 0..points[0].len();
                axes.map(|axis| group.iter().map(|&at| points[at][axis]).sum::<f64>() / group.len() as f64)
                    .collect()
            };
            let (of_a, of_b) = (a.len() as f64, b.len() as f64);
            (2.0 * of_a * of_b / (of_a + of_b)).sqrt() * distance(&mean(a), &mean(b))
        }
        Linkage::Average => pairs.sum::<f64>() / (a.len() * b.len()) as f64,
        Linkage::Complete => pairs.fold(0.0, f64::max),
        Linkage::Single => pairs.fold(f64::INFINITY, f64::min),
    }
}
