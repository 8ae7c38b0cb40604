//! The directions in which something varies most: leading eigenvectors of a symmetric matrix that is known by what it does to
//! a vector.
//!
//! Only a few are needed, which orthogonal iteration finds in a few lines; a library of linear algebra would be the largest
//! dependency of the page.

/// Pictures are looked at, not measured.
const TOLERANCE: f64 = 1e-5;
const MAX_ITERATIONS: usize = 100;

/// The `count` largest eigenvalues of a matrix of `dim` rows without negative ones, and their vectors, which are of length one,
/// or zero where the matrix is. The largest entry of each is positive, so that the same data gives the same picture.
pub(crate) fn leading(dim: usize, count: usize, apply: impl Fn(&[f64]) -> Vec<f64>) -> Vec<(f64, Vec<f64>)> {
    // Any start will do that is not orthogonal to the axes sought; this one has no pattern, and is always the same.
    let start = |rank: usize| -> Vec<f64> {
        (0..dim)
            .map(|at| ((at + 1) as f64 * (rank + 1) as f64 * 12.989_8).sin() * 43_758.545)
            .map(f64::fract)
            .collect()
    };
    let mut axes: Vec<Vec<f64>> = (0..count.min(dim)).map(|rank| apply(&start(rank))).collect();
    let mut values = vec![0.0; axes.len()];
    for _ in 0..MAX_ITERATIONS {
        orthonormalize(&mut axes);
        let images: Vec<Vec<f64>> = axes.iter().map(|axis| apply(axis)).collect();
        let mut residual = 0.0f64;
        for ((value, axis), image) in values.iter_mut().zip(&axes).zip(&images) {
            *value = dot(axis, image);
            let rest = image.iter().zip(axis).map(|(a, b)| (a - *value * b).powi(2)).sum::<f64>();
            residual = residual.max(rest.sqrt());
        }
        if residual <= TOLERANCE * values.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE) {
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
    values.into_iter().zip(axes).collect()
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    sum_of(a, b, |a, b| a * b)
}

/// The sum over pairs, in several sums at once: one alone would wait for every addition.
pub(crate) fn sum_of<T: Copy>(a: &[T], b: &[T], of: impl Fn(T, T) -> f64) -> f64 {
    let (a_parts, a_rest) = a.as_chunks::<8>();
    let (b_parts, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a_parts.iter().zip(b_parts) {
        sums.iter_mut().zip(a).zip(b).for_each(|((sum, a), b)| *sum += of(*a, *b));
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| of(*a, *b)).sum();
    sums.iter().sum::<f64>() + rest
}

/// Gram and Schmidt; a vector of nothing stays one.
fn orthonormalize(axes: &mut [Vec<f64>]) {
    for at in 0..axes.len() {
        let (before, rest) = axes.split_at_mut(at);
        let Some(axis) = rest.first_mut() else { break };
        let length = dot(axis, axis).sqrt();
        // Twice is enough where once leaves rounding errors.
        for _ in 0..2 {
            for other in before.iter() {
                let along = dot(other, axis);
                axis.iter_mut().zip(other).for_each(|(value, other)| *value -= along * other);
            }
        }
        let norm = dot(axis, axis).sqrt();
        // What is left of a vector that lay among the others is rounding.
        let scale = if norm > 1e-12 * length { 1.0 / norm } else { 0.0 };
        axis.iter_mut().for_each(|value| *value *= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_leave_no_residual() {
        let dim = 6;
        let factor: Vec<f64> = (0..dim * dim).map(|at| ((at * at + 3) % 17) as f64 / 17.0 - 0.4).collect();
        let entry = |i: usize, j: usize| (0..dim).map(|k| factor[i * dim + k] * factor[j * dim + k]).sum::<f64>();
        let apply = |vector: &[f64]| -> Vec<f64> {
            (0..dim).map(|i| (0..dim).map(|j| entry(i, j) * vector[j]).sum()).collect()
        };
        let found = leading(dim, 2, apply);
        assert!(found[0].0 > found[1].0 && dot(&found[0].1, &found[1].1).abs() < 1e-9);
        for (value, axis) in &found {
            for (image, entry) in apply(axis).iter().zip(axis) {
                assert!((image - value * entry).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn a_matrix_of_nothing_has_no_axes() {
        let found = leading(3, 2, |_| vec![0.0; 3]);
        assert!(found.iter().all(|(value, axis)| *value == 0.0 && axis.iter().all(|entry| *entry == 0.0)));
    }
}
