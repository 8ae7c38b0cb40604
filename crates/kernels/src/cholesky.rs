//! The factor by which differences are multiplied to become Mahalanobis distances.
//!
//! With a covariance C = L·Lᵀ and F = L⁻¹, (x-μ)ᵀC⁻¹(x-μ) = ‖F(x-μ)‖², and log|C|^(-1/2) = Σ log Fᵢᵢ. Both matrices
//! are lower triangular, and what is above the diagonal is never looked at. Cost: p³/6 products for L, for F and for FᵀF each.

use pulp::{Arch, NullaryFnOnce};

use crate::pairs::dot;

/// Rows that are added up before the sum is written.
const TOGETHER: usize = 4;

/// L⁻¹ of a row-major covariance, or nothing if that is not positive definite.
pub fn inverse_factor(covariance: &[f64], dim: usize) -> Option<Vec<f64>> {
    Arch::new().dispatch(Inverse { covariance, dim })
}

/// FᵀF of a lower triangular F, row-major: C⁻¹.
pub fn gram(factor: &[f64], dim: usize) -> Vec<f64> {
    Arch::new().dispatch(Gram { factor, dim })
}

/// A call of [`inverse_factor`], as a type because a closure would not be compiled for the processor's vectors.
struct Inverse<'a> {
    covariance: &'a [f64],
    dim: usize,
}

impl NullaryFnOnce for Inverse<'_> {
    type Output = Option<Vec<f64>>;

    #[inline(always)]
    fn call(self) -> Option<Vec<f64>> {
        let Self { covariance, dim } = self;
        let mut lower = vec![0.0; dim * dim];
        for row in 0..dim {
            let (above, own) = lower.split_at_mut(row * dim);
            let own = &mut own[..dim];
            for (column, of_column) in above.chunks_exact(dim).enumerate() {
                let rest = covariance[row * dim + column] - dot(&own[..column], &of_column[..column]);
                own[column] = rest / of_column[column];
            }
            let rest = covariance[row * dim + row] - dot(&own[..row], &own[..row]);
            if !(rest > 0.0 && rest.is_finite()) {
                return None;
            }
            own[row] = rest.sqrt();
        }
        let mut inverse = vec![0.0; dim * dim];
        for row in 0..dim {
            let (done, rest) = inverse.split_at_mut(row * dim);
            let current = &mut rest[..=row];
            // Row by row: F = D⁻¹(I - (L - D)F), and rows above are known.
            current[row] = 1.0;
            for (at, (above, &factor)) in done.chunks_exact(dim).zip(&lower[row * dim..][..row]).enumerate() {
                current.iter_mut().zip(&above[..=at]).for_each(|(value, above)| *value -= factor * above);
            }
            let pivot = lower[row * dim + row];
            current.iter_mut().for_each(|value| *value /= pivot);
        }
        inverse.iter().all(|value| value.is_finite()).then_some(inverse)
    }
}

/// A call of [`gram`].
struct Gram<'a> {
    factor: &'a [f64],
    dim: usize,
}

impl NullaryFnOnce for Gram<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn call(self) -> Vec<f64> {
        let Self { factor, dim } = self;
        let mut product = vec![0.0; dim * dim];
        let whole = dim - dim % TOGETHER;
        for (block, rows) in factor[..whole * dim].chunks_exact(TOGETHER * dim).enumerate() {
            let ((a, b), (c, d)) = (rows[..2 * dim].split_at(dim), rows[2 * dim..].split_at(dim));
            // Rows are zero behind their diagonal.
            for (i, out) in product.chunks_exact_mut(dim).take(TOGETHER * (block + 1)).enumerate() {
                let factors = [a[i], b[i], c[i], d[i]];
                let of_rows = a.iter().zip(b).zip(c).zip(d);
                for (out, (((a, b), c), d)) in out[..=i].iter_mut().zip(of_rows) {
                    *out = *out + factors[0] * a + factors[1] * b + factors[2] * c + factors[3] * d;
                }
            }
        }
        for row in factor[whole * dim..].chunks_exact(dim) {
            for (i, out) in product.chunks_exact_mut(dim).enumerate() {
                out[..=i].iter_mut().zip(row).for_each(|(out, value)| *out += row[i] * value);
            }
        }
        for i in 0..dim {
            for j in 0..i {
                product[j * dim + i] = product[i * dim + j];
            }
        }
        product
    }
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
            let precision = gram(&factor, dim);
            for (i, j) in (0..dim).flat_map(|i| (0..dim).map(move |j| (i, j))) {
                let product: f64 = (0..dim).map(|at| precision[i * dim + at] * covariance[at * dim + j]).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-10, "{i} {j}: {product}");
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
