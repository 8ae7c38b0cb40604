//! Solving a symmetric positive definite system for many right-hand sides, by Cholesky factors.
//!
//! A = L·Lᵀ is computed block by block, so that nearly all of the n³/3 multiplications are matrix products.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayViewMut2, s};

/// Rows and columns that are factored by hand before the rest is a product.
const BLOCK: usize = 64;

/// Turns `a` into its factor (lower triangle) and `b` into the solution of a·x = b; `None` if `a` is not positive definite.
pub(super) fn solve(mut a: Array2<f64>, mut b: Array2<f64>) -> Option<Array2<f64>> {
    let n = a.nrows();
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        factor(a.slice_mut(s![start.., start..end]))?;
        let panel = a.slice(s![end.., start..end]).to_owned();
        // Only the lower triangle is needed, so each block of columns starts at its own diagonal.
        for from in (end..n).step_by(BLOCK) {
            let to = (from + BLOCK).min(n);
            let (left, right) = (panel.slice(s![from - end.., ..]), panel.slice(s![from - end..to - end, ..]));
            general_mat_mul(-1.0, &left, &right.t(), 1.0, &mut a.slice_mut(s![from.., from..to]));
        }
    }
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        for row in start..end {
            let (above, mut rest) = b.view_mut().split_at(ndarray::Axis(0), row);
            let mut row_of_b = rest.row_mut(0);
            for earlier in start..row {
                row_of_b.scaled_add(-a[[row, earlier]], &above.row(earlier));
            }
            row_of_b /= a[[row, row]];
        }
        let (solved, mut rest) = b.view_mut().split_at(ndarray::Axis(0), end);
        general_mat_mul(-1.0, &a.slice(s![end.., start..end]), &solved.slice(s![start.., ..]), 1.0, &mut rest);
    }
    for start in (0..n).step_by(BLOCK).rev() {
        let end = (start + BLOCK).min(n);
        let (mut rest, solved) = b.view_mut().split_at(ndarray::Axis(0), end);
        let mut block = rest.slice_mut(s![start.., ..]);
        general_mat_mul(-1.0, &a.slice(s![end.., start..end]).t(), &solved, 1.0, &mut block);
        for row in (start..end).rev() {
            let (mut before, after) = block.view_mut().split_at(ndarray::Axis(0), row - start + 1);
            let mut row_of_b = before.row_mut(row - start);
            for later in row + 1..end {
                row_of_b.scaled_add(-a[[later, row]], &after.row(later - row - 1));
            }
            row_of_b /= a[[row, row]];
        }
    }
    b.iter().all(|value| value.is_finite()).then_some(b)
}

/// Factors the first rows of a block of columns, and brings those below to match.
fn factor(mut block: ArrayViewMut2<'_, f64>) -> Option<()> {
    let width = block.ncols();
    for row in 0..block.nrows() {
        for column in 0..=row.min(width - 1) {
            let known = s![column, ..column];
            let rest = block[[row, column]] - block.slice(s![row, ..column]).dot(&block.slice(known));
            block[[row, column]] = match row == column {
                true if rest > 0.0 && rest.is_finite() => rest.sqrt(),
                true => return None,
                false => rest / block[[column, column]],
            };
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solution_solves_whether_or_not_blocks_fill() {
        for n in [1, 5, 64, 65, 150] {
            let root = Array2::from_shape_fn((n, n + 3), |(i, j)| ((i * 37 + j * 91 + i * j) % 17) as f64 - 8.0);
            let a = root.dot(&root.t()) + Array2::<f64>::eye(n);
            let b = Array2::from_shape_fn((n, 2), |(i, j)| (i + 3 * j) as f64);
            let x = solve(a.clone(), b.clone()).unwrap();
            for (found, expected) in a.dot(&x).iter().zip(&b) {
                assert!((found - expected).abs() < 1e-7 * (n * n) as f64, "{n}: {found} {expected}");
            }
        }
    }

    #[test]
    fn what_is_not_positive_definite_has_no_solution() {
        let a = Array2::from_shape_vec((2, 2), vec![1.0, 2.0, 2.0, 1.0]).unwrap();
        assert_eq!(solve(a, Array2::ones((2, 1))), None);
    }
}
