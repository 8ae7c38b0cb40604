//! The mean of every cluster's examples: where a cluster is if its method does not say.

use std::collections::BTreeMap;

use compflow_api::{Sets, Space};

/// The sets that occur and are not empty, and for each the mean of its points, brought into the space.
pub(crate) fn means(points: &[f32], assignments: &Sets, space: Space, dim: usize) -> (Sets, Vec<f32>) {
    let mut sums: BTreeMap<&[u32], (f64, Vec<f64>)> = BTreeMap::new();
    for (set, point) in assignments.iter().zip(points.chunks_exact(dim)).filter(|(set, _)| !set.is_empty()) {
        let (count, sum) = sums.entry(set).or_insert_with(|| (0.0, vec![0.0; dim]));
        *count += 1.0;
        sum.iter_mut().zip(point).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let mut means: Vec<f32> =
        sums.values().flat_map(|(count, sum)| sum.iter().map(move |value| (value / count) as f32)).collect();
    space.enter(&mut means, dim);
    (sums.into_keys().collect(), means)
}

/// The mean of all points, brought into the space.
pub(crate) fn centre(points: &[f32], space: Space, dim: usize) -> Vec<f32> {
    let mut sums = vec![0.0; dim];
    for point in points.chunks_exact(dim) {
        sums.iter_mut().zip(point).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let count = (points.len() / dim) as f64;
    let mut centre: Vec<f32> = sums.iter().map(|sum| (sum / count) as f32).collect();
    space.enter(&mut centre, dim);
    centre
}

#[cfg(test)]
mod tests {
    use compflow_api::Normalize;

    use super::*;

    #[test]
    fn means_are_points_of_the_space_and_nothing_has_none() {
        let assignments = Sets::from_iter([vec![3], vec![], vec![1, 3], vec![3]]);
        let points = [1.0, 0.0, 9.0, 9.0, 0.6, 0.8, 0.0, 1.0];
        let space = Space { normalize: Normalize::L2, ..Space::default() };
        let (sets, found) = means(&points, &assignments, space, 2);
        assert_eq!(sets, Sets::from_iter([vec![1, 3], vec![3]]));
        let half = 0.5f32.sqrt();
        let expected = [0.6, 0.8, half, half];
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6), "{found:?}");
    }
}
