//! The plane in which a trial's points vary most.
//!
//! Only two eigenvectors of a p × p covariance matrix are needed, which orthogonal iteration finds in a few lines; a
//! library of linear algebra would be the largest dependency of the page.

/// Points in the plane of the first two principal components.
#[derive(Debug)]
pub(crate) struct Projection {
    pub(crate) points: Vec<[f64; 2]>,
    /// How much of the variance the plane holds, between 0 and 1.
    pub(crate) share: f64,
}

/// More examples than this tell no more about the covariance.
const ENOUGH: usize = 4000;
const MAX_ITERATIONS: usize = 1000;

/// Projects row-major points of length `dim`.
pub(crate) fn project(points: &[f32], dim: usize) -> Projection {
    let n = points.len() / dim;
    let row = |at: usize| &points[at * dim..][..dim];
    // Rows come in no order, so every k-th is a fair sample.
    let step = n.div_ceil(ENOUGH).max(1);
    let sample: Vec<usize> = (0..n).step_by(step).collect();
    let count = sample.len() as f64;
    let mut mean = vec![0.0; dim];
    for &at in &sample {
        mean.iter_mut().zip(row(at)).for_each(|(sum, value)| *sum += f64::from(*value) / count);
    }
    let mut covariance = vec![0.0; dim * dim];
    let mut centred = vec![0.0; dim];
    for &at in &sample {
        centred.iter_mut().zip(row(at)).zip(&mean).for_each(|((to, value), mean)| *to = f64::from(*value) - mean);
        for (i, left) in centred.iter().enumerate() {
            let entries = &mut covariance[i * dim..][..dim];
            entries.iter_mut().zip(&centred).for_each(|(entry, right)| *entry += left * right / count);
        }
    }
    let (axes, values) = top_two(&covariance, dim);
    let total: f64 = (0..dim).map(|at| covariance[at * dim + at]).sum();
    let along = |axis: &[f64], at: usize| -> f64 {
        row(at).iter().zip(&mean).zip(axis).map(|((value, mean), axis)| (f64::from(*value) - mean) * axis).sum()
    };
    Projection {
        points: (0..n).map(|at| [along(&axes[0], at), along(&axes[1], at)]).collect(),
        share: if total > 0.0 { values.iter().sum::<f64>() / total } else { 0.0 },
    }
}

/// The two largest eigenvalues of a symmetric matrix without negative ones, and their vectors. The largest entry of
/// each vector is positive, so that the same data gives the same picture.
fn top_two(matrix: &[f64], dim: usize) -> ([Vec<f64>; 2], [f64; 2]) {
    let multiply = |vector: &[f64]| -> Vec<f64> {
        matrix.chunks_exact(dim).map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum()).collect()
    };
    // Started from the columns of the largest variances, which are not orthogonal to the axes sought.
    let mut order: Vec<usize> = (0..dim).collect();
    order.sort_by(|&a, &b| matrix[b * dim + b].total_cmp(&matrix[a * dim + a]));
    let start = |rank: usize| -> Vec<f64> {
        let column = order[rank.min(dim - 1)];
        (0..dim).map(|at| matrix[at * dim + column] + if at == column { 1e-12 } else { 0.0 }).collect()
    };
    let mut axes = [start(0), start(1)];
    let mut values = [0.0; 2];
    for _ in 0..MAX_ITERATIONS {
        orthonormalize(&mut axes);
        let images = [multiply(&axes[0]), multiply(&axes[1])];
        let mut residual = 0.0f64;
        for (which, image) in images.iter().enumerate() {
            values[which] = dot(&axes[which], image);
            let rest = image.iter().zip(&axes[which]).map(|(a, b)| (a - values[which] * b).powi(2)).sum::<f64>();
            residual = residual.max(rest.sqrt());
        }
        if residual <= 1e-9 * values[0].max(f64::MIN_POSITIVE) {
            break;
        }
        axes = images;
    }
    orthonormalize(&mut axes);
    for axis in &mut axes {
        let largest = axis.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
        if largest < 0.0 {
            axis.iter_mut().for_each(|value| *value = -*value);
        }
    }
    (axes, values)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Gram and Schmidt; a vector of nothing stays one.
fn orthonormalize([first, second]: &mut [Vec<f64>; 2]) {
    let normalize = |vector: &mut [f64]| {
        let norm = dot(vector, vector).sqrt();
        if norm > 0.0 {
            vector.iter_mut().for_each(|value| *value /= norm);
        }
    };
    normalize(first);
    // Twice is enough where once leaves rounding errors.
    for _ in 0..2 {
        let along = dot(first, second);
        second.iter_mut().zip(first.iter()).for_each(|(value, first)| *value -= along * first);
    }
    normalize(second);
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
    fn eigenvectors_leave_no_residual() {
        let dim = 6;
        let factor: Vec<f64> = (0..dim * dim).map(|at| ((at * at + 3) % 17) as f64 / 17.0 - 0.4).collect();
        let entry = |i: usize, j: usize| (0..dim).map(|k| factor[i * dim + k] * factor[j * dim + k]).sum::<f64>();
        let matrix: Vec<f64> = (0..dim * dim).map(|at| entry(at / dim, at % dim)).collect();
        let (axes, values) = top_two(&matrix, dim);
        assert!(values[0] > values[1] && dot(&axes[0], &axes[1]).abs() < 1e-9);
        for (axis, value) in axes.iter().zip(values) {
            for (row, entry) in matrix.chunks_exact(dim).zip(axis) {
                assert!((dot(row, axis) - value * entry).abs() < 1e-6);
            }
        }
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
