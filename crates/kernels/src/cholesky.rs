//! The factor by which differences are multiplied to become Mahalanobis distances.
//!
//! With a covariance C = L·Lᵀ and F = L⁻¹, (x-μ)ᵀC⁻¹(x-μ) = ‖F(x-μ)‖², and log|C|^(-1/2) = Σ log Fᵢᵢ. Both matrices
//! are lower triangular. Cost: p³/3 each.

/// L⁻¹ of a row-major covariance, or nothing if that is not positive definite.
pub fn inverse_factor(covariance: &[f64], dim: usize) -> Option<Vec<f64>> {
    let mut lower = vec![0.0; dim * dim];
    for row in 0..dim {
        for column in 0..=row {
            let (a, b) = (&lower[row * dim..][..column], &lower[column * dim..][..column]);
            let rest = covariance[row * dim + column] - a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            if row > column {
                lower[row * dim + column] = rest / lower[column * dim + column];
            } else if rest > 0.0 && rest.is_finite() {
                lower[row * dim + row] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    let mut inverse = vec![0.0; dim * dim];
    for row in 0..dim {
        let (done, rest) = inverse.split_at_mut(row * dim);
        let current = &mut rest[..dim];
        // Row by row: F = D⁻¹(I - (L - D)F), and rows above are known.
        current[row] = 1.0;
        for (above, &factor) in done.chunks_exact(dim).zip(&lower[row * dim..][..row]) {
            current.iter_mut().zip(above).for_each(|(value, above)| *value -= factor * above);
        }
        let pivot = lower[row * dim + row];
        current.iter_mut().for_each(|value| *value /= pivot);
    }
    inverse.iter().all(|value| value.is_finite()).then_some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::examples;

    #[test]
    fn the_factor_turns_the_covariance_into_the_identity() {
        for dim in [1, 2, 5, 32] {
            let values = examples::uniform(3 * dim, dim, 1);
            let mut covariance = vec![0.0; dim * dim];
            for row in values.chunks_exact(dim) {
                for (at, sum) in covariance.iter_mut().enumerate() {
                    *sum += f64::from(row[at / dim]) * f64::from(row[at % dim]);
                }
            }
            let factor = inverse_factor(&covariance, dim).unwrap();
            for (i, j) in (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j))) {
                let product: f64 = (0..dim * dim)
                    .map(|at| factor[i * dim + at / dim] * covariance[at] * factor[j * dim + at % dim])
                    .sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-10, "{i} {j}: {product}");
                assert!(j <= i || factor[i * dim + j] == 0.0);
            }
        }
    }

    #[test]
    fn what_is_not_positive_definite_has_none() {
        assert_eq!(inverse_factor(&[0.0], 1), None);
        assert_eq!(inverse_factor(&[1.0, 2.0, 2.0, 1.0], 2), None);
        assert_eq!(inverse_factor(&[f64::NAN], 1), None);
        assert_eq!(inverse_factor(&[4.0], 1), Some(vec![0.5]));
    }
}
