//! The plane in which a trial's points vary most.

use super::axes::{dot, leading};

/// Points in the plane of the first two principal components.
#[derive(Debug)]
pub(crate) struct Projection {
    pub(crate) points: Vec<[f64; 2]>,
    /// How much of the variance the plane holds, between 0 and 1.
    pub(crate) share: f64,
}

/// More examples than this tell no more about the covariance, and so many numbers are as many as are worth the wait.
const ENOUGH: usize = 2000;
const NUMBERS: usize = 1_000_000;

/// Projects row-major points of length `dim`.
pub(crate) fn project(points: &[f32], dim: usize) -> Projection {
    let n = points.len() / dim;
    // Rows come in no order, so every k-th is a fair sample.
    let step = n.div_ceil(ENOUGH.min((NUMBERS / dim.max(1)).max(100))).max(1);
    let sample = || points.chunks_exact(dim).step_by(step);
    let count = sample().count().max(1) as f64;
    let mut mean = vec![0.0; dim];
    for row in sample() {
        mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value) / count);
    }
    let centred = |row: &[f32]| -> Vec<f64> {
        row.iter().zip(&mean).map(|(value, mean)| f64::from(*value) - mean).collect()
    };
    let rows: Vec<Vec<f64>> = sample().map(centred).collect();
    let axes = leading(dim, 2, |vector| {
        let mut image = vec![0.0; dim];
        for row in &rows {
            let along = dot(row, vector) / count;
            image.iter_mut().zip(row).for_each(|(sum, value)| *sum += along * value);
        }
        image
    });
    let total: f64 = rows.iter().map(|row| dot(row, row)).sum::<f64>() / count;
    let kept: f64 = axes.iter().map(|(value, _)| value).sum();
    let along = |row: &[f64], axis: usize| axes.get(axis).map_or(0.0, |(_, axis)| dot(row, axis));
    Projection {
        points: points
            .chunks_exact(dim)
            .map(|row| {
                let row = centred(row);
                [along(&row, 0), along(&row, 1)]
            })
            .collect(),
        share: if total > 0.0 { (kept / total).min(1.0) } else { 0.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axes_of_a_long_cloud_are_found() {
        // Varies by 3 along (1, 1, 0), by 1 along (1, -1, 0), not along the third axis.
        let points: Vec<f32> = (0..400)
            .flat_map(|at| {
                let (a, b) = (3.0 * (at as f32 * 0.7).sin(), (at as f32 * 1.3).cos());
                [a + b + 5.0, a - b, 2.0]
            })
            .collect();
        let found = project(&points, 3);
        assert!((found.share - 1.0).abs() < 1e-9, "{}", found.share);
        let spread = |axis: usize| {
            let values: Vec<f64> = found.points.iter().map(|point| point[axis]).collect();
            let mean = values.iter().sum::<f64>() / 400.0;
            assert!(mean.abs() < 1e-5);
            (values.iter().map(|value| value * value).sum::<f64>() / 400.0).sqrt()
        };
        assert!((spread(0) - 3.0).abs() < 0.05, "{}", spread(0));
        assert!((spread(1) - 1.0).abs() < 0.05, "{}", spread(1));
    }

    #[test]
    fn data_without_a_plane_is_drawn_all_the_same() {
        let one = project(&[1.0, 2.0, 3.0], 1);
        assert_eq!(one.points.len(), 3);
        assert!(one.points.iter().flatten().all(|value| value.is_finite()));
        let same = project(&[1.0; 8], 2);
        assert_eq!(same.share, 0.0);
        assert!(same.points.iter().flatten().all(|value| *value == 0.0));
    }
}
