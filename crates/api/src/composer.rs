//! Composition: pairs by a composer, sets from pairs.

mod levels;

use crate::{Embeddings, Error, Result, Services, Sets};
use levels::Levels;

/// Sets composed at a time, so that the copies this needs stay in the cache.
const BATCH: usize = 1024;

/// Predicts where the union of two things lies, for many pairs at once.
///
/// All slices are matrices of rows of `dim` numbers, row-major, with equally many rows.
pub trait Composer: Send + Sync {
    /// The only dimension it works for, if it is not made for all.
    fn dim(&self) -> Option<usize> {
        None
    }

    /// `out[i] = g(left[i], right[i])`; every number of `out` is written. g(a, b) = g(b, a), as a set has no order.
    ///
    /// # Errors
    /// If the dimension is not its own, or it cannot compose.
    fn compose(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        services: &Services<'_>,
    ) -> Result<()>;

    /// Vector-Jacobian product: overwrites `grad_left[i]` and `grad_right[i]` with `grad[i]` pulled back through g at
    /// `(left[i], right[i])`. Implemented by those that declare [`HAS_GRADIENTS`](crate::Flags::HAS_GRADIENTS).
    ///
    /// # Errors
    /// If it is not differentiable, or the dimension is not its own.
    #[expect(clippy::too_many_arguments, reason = "two operands, and a gradient for each")]
    fn vjp(
        &self,
        _dim: usize,
        _left: &[f32],
        _right: &[f32],
        _grad: &[f32],
        _grad_left: &mut [f32],
        _grad_right: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        Err(Error::new("the composer has no gradients"))
    }

    /// Whether neither order nor grouping matters, but for rounding. A component of which that is so declares
    /// [`IS_ASSOCIATIVE`](crate::Flags::IS_ASSOCIATIVE) as well; its sets cost least.
    fn is_associative(&self) -> bool {
        false
    }

    /// Whether it composes whole sets itself, by [`sets`](Self::sets). A component that does declares
    /// [`COMPOSES_SETS`](crate::Flags::COMPOSES_SETS) as well.
    fn composes_sets(&self) -> bool {
        false
    }

    /// `out[i]` is the composition of the set `sets[i]` of `rows`: for a composer that is more than its pairs, such as the
    /// mean. No set is empty.
    ///
    /// # Errors
    /// As for [`compose`](Self::compose).
    fn sets(&self, _rows: Embeddings<'_>, _sets: &Sets, _out: &mut [f32], _services: &Services<'_>) -> Result<()> {
        Err(Error::new("the composer does not compose whole sets"))
    }

    /// Overwrites `grad_rows` with `grad` (a row per set) pulled back through [`sets`](Self::sets).
    ///
    /// # Errors
    /// As for [`vjp`](Self::vjp).
    fn sets_vjp(
        &self,
        _rows: Embeddings<'_>,
        _sets: &Sets,
        _grad: &[f32],
        _grad_rows: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        Err(Error::new("the composer has no gradients of whole sets"))
    }

    /// Itself, if it is a component's instance and can be handed on to another component.
    #[doc(hidden)]
    fn as_foreign(&self) -> Option<&crate::ForeignComposer> {
        None
    }
}

/// Composes rows by sets: `out[i] = G(sets[i])`, where the composition of one is its row, of two `g(rows[a], rows[b])`,
/// and of more the mean over which member comes last, as a pair knows nothing of a third and most g are not associative:
///
/// ```text
/// G(c) = 1/|c| Σ_{l in c} g(G(c∖l), rows[l])
/// ```
///
/// So nothing depends on how rows are numbered. Of an associative composer all terms are equal and one is computed; a
/// composer that composes whole sets itself does it as it does.
///
/// ```
/// # use compflow_api::{Composer, Embeddings, Result, Services, Sets, compose_sets};
/// # struct Max;
/// # impl Composer for Max {
/// #     fn compose(&self, _: usize, left: &[f32], right: &[f32], out: &mut [f32], _: &Services<'_>) -> Result<()> {
/// #         out.iter_mut().zip(left.iter().zip(right)).for_each(|(o, (l, r))| *o = l.max(*r));
/// #         Ok(())
/// #     }
/// # }
/// let rows = Embeddings::new(&[1.0, 0.0, 0.0, 2.0], 2);
/// let composed = compose_sets(&Max, rows, &Sets::all_up_to(2, 2), &Services::none()).unwrap();
/// assert_eq!(composed, [1.0, 0.0, 0.0, 2.0, 1.0, 2.0]);
/// ```
///
/// # Errors
/// Those of the composer, and a result that is not finite; the text names the set.
///
/// # Panics
/// If a set is empty or names a row that there is not.
pub fn compose_sets(
    composer: &dyn Composer,
    rows: Embeddings<'_>,
    sets: &Sets,
    services: &Services<'_>,
) -> Result<Vec<f32>> {
    // A number that is not written is noticed below.
    let mut composed = vec![f32::NAN; sets.len() * rows.dim()];
    if composer.composes_sets() {
        composer.sets(rows, sets, &mut composed, services)?;
    } else {
        let sets: Vec<&[u32]> = sets.iter().collect();
        for (batch, out) in sets.chunks(BATCH).zip(composed.chunks_mut(BATCH * rows.dim())) {
            Levels::compose(composer, rows, batch, services)?.collect(rows, batch, out);
        }
    }
    for (set, row) in sets.iter().zip(composed.chunks_exact(rows.dim())) {
        if let Some(value) = row.iter().find(|value| !value.is_finite()) {
            return Err(Error::new(format!("composing the set {set:?} gave {value}")));
        }
    }
    Ok(composed)
}

/// Pulls gradients with respect to [`compose_sets`]' result back to its rows: one gradient per row, zero for rows
/// in no set.
///
/// # Errors
/// Those of the composer, among them that it is not differentiable.
pub fn compose_sets_vjp(
    composer: &dyn Composer,
    rows: Embeddings<'_>,
    sets: &Sets,
    grad: &[f32],
    services: &Services<'_>,
) -> Result<Vec<f32>> {
    let dim = rows.dim();
    if grad.len() != sets.len() * dim {
        return Err(Error::new(format!(
            "{} numbers are not {} gradients of length {dim}",
            grad.len(),
            sets.len()
        )));
    }
    let mut grad_rows = vec![0.0; rows.values().len()];
    if composer.composes_sets() {
        composer.sets_vjp(rows, sets, grad, &mut grad_rows, services)?;
        return Ok(grad_rows);
    }
    let sets: Vec<&[u32]> = sets.iter().collect();
    for (batch, grad) in sets.chunks(BATCH).zip(grad.chunks(BATCH * dim)) {
        let levels = Levels::compose(composer, rows, batch, services)?;
        levels.pull_back(composer, batch, grad, &mut grad_rows, services)?;
    }
    Ok(grad_rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symmetric and not associative, so that another grouping shows: g(a, b) = ab + a + b + 1; or a + b,
    /// which is.
    struct Crooked {
        associative: bool,
    }

    const CROOKED: Crooked = Crooked { associative: false };

    impl Composer for Crooked {
        fn compose(
            &self,
            _dim: usize,
            left: &[f32],
            right: &[f32],
            out: &mut [f32],
            _services: &Services<'_>,
        ) -> Result<()> {
            for ((out, left), right) in out.iter_mut().zip(left).zip(right) {
                *out = if self.associative { left + right } else { left * right + (left + right) + 1.0 };
            }
            Ok(())
        }

        fn vjp(
            &self,
            _dim: usize,
            left: &[f32],
            right: &[f32],
            grad: &[f32],
            grad_left: &mut [f32],
            grad_right: &mut [f32],
            _services: &Services<'_>,
        ) -> Result<()> {
            for at in 0..grad.len() {
                let (by_left, by_right) =
                    if self.associative { (1.0, 1.0) } else { (right[at] + 1.0, left[at] + 1.0) };
                grad_left[at] = by_left * grad[at];
                grad_right[at] = by_right * grad[at];
            }
            Ok(())
        }

        fn is_associative(&self) -> bool {
            self.associative
        }
    }

    fn g(a: f64, b: f64) -> f64 {
        a * b + a + b + 1.0
    }

    /// The definition, member by member.
    fn composed(values: &[f64]) -> f64 {
        match *values {
            [one] => one,
            [a, b] => g(a, b),
            _ => {
                let without = |at: usize| [&values[..at], &values[at + 1..]].concat();
                let terms = (0..values.len()).map(|at| g(composed(&without(at)), values[at]));
                terms.sum::<f64>() / values.len() as f64
            }
        }
    }

    #[test]
    fn of_three_and_more_it_is_the_mean_over_which_comes_last() {
        let rows = Embeddings::new(&[1.0, 2.0, 3.0, 5.0], 1);
        let sets = Sets::from_iter([vec![2], vec![2, 0], vec![1, 2, 0], vec![0, 1, 2, 3], vec![2, 0]]);
        let found = compose_sets(&CROOKED, rows, &sets, &Services::none()).unwrap();
        assert_eq!(found[..2], [3.0, 8.0]);
        assert_eq!(found[4], 8.0);
        for (found, expected) in
            found[2..4].iter().zip([composed(&[1.0, 2.0, 3.0]), composed(&[1.0, 2.0, 3.0, 5.0])])
        {
            assert!((f64::from(*found) - expected).abs() < 1e-5 * expected, "{found} {expected}");
        }
    }

    #[test]
    fn numbering_makes_no_difference() {
        let values: Vec<f32> = (0..7).map(|at| 0.3 * ((at * 5) % 7) as f32).collect();
        let reversed: Vec<f32> = values.iter().rev().copied().collect();
        let sets = Sets::all_up_to(7, 4);
        let mirrored: Sets =
            sets.iter().map(|set| set.iter().map(|member| 6 - member).collect::<Vec<u32>>()).collect();
        let found = compose_sets(&CROOKED, Embeddings::new(&values, 1), &sets, &Services::none()).unwrap();
        let again = compose_sets(&CROOKED, Embeddings::new(&reversed, 1), &mirrored, &Services::none()).unwrap();
        assert_eq!(found, again);
    }

    #[test]
    fn an_associative_composer_composes_each_member_once() {
        let rows = Embeddings::new(&[1.0, 2.0, 4.0, 8.0], 1);
        let sum = Crooked { associative: true };
        let sets = Sets::from_iter([vec![0, 1, 2, 3], vec![1, 3], vec![0, 2, 3]]);
        assert_eq!(compose_sets(&sum, rows, &sets, &Services::none()).unwrap(), [15.0, 10.0, 13.0]);
        let grad = compose_sets_vjp(&sum, rows, &sets, &[1.0, 10.0, 100.0], &Services::none()).unwrap();
        assert_eq!(grad, [101.0, 11.0, 101.0, 111.0]);
    }

    #[test]
    fn more_sets_than_a_batch_compose_the_same() {
        let values: Vec<f32> = (0..24).map(|at| at as f32 / 24.0).collect();
        let rows = Embeddings::new(&values, 1);
        let sets = Sets::all_up_to(24, 3);
        assert!(sets.len() > BATCH);
        let composed = compose_sets(&CROOKED, rows, &sets, &Services::none()).unwrap();
        for (set, value) in sets.iter().zip(&composed) {
            let alone = compose_sets(&CROOKED, rows, &Sets::from_iter([set]), &Services::none()).unwrap();
            assert_eq!(*value, alone[0], "{set:?}");
        }
        let grad: Vec<f32> = (0..sets.len()).map(|at| (at % 7) as f32).collect();
        let mut sum = vec![0.0; 24];
        for (set, grad) in sets.iter().zip(&grad) {
            let alone =
                compose_sets_vjp(&CROOKED, rows, &Sets::from_iter([set]), &[*grad], &Services::none()).unwrap();
            sum.iter_mut().zip(&alone).for_each(|(sum, g)| *sum += g);
        }
        let whole = compose_sets_vjp(&CROOKED, rows, &sets, &grad, &Services::none()).unwrap();
        for (a, b) in whole.iter().zip(&sum) {
            assert!((a - b).abs() <= 1e-4 * b.abs().max(1.0), "{a} {b}");
        }
    }

    #[test]
    fn the_gradient_is_that_of_central_differences() {
        let values = [0.4f64, -0.7, 1.1, 0.2, 9.0];
        let narrow = values.map(|value| value as f32);
        for set in [vec![1, 3], vec![0, 1, 2], vec![0, 1, 2, 3]] {
            let rows = Embeddings::new(&narrow, 1);
            let found =
                compose_sets_vjp(&CROOKED, rows, &Sets::from_iter([&set]), &[2.0], &Services::none()).unwrap();
            for (at, found) in found.iter().enumerate() {
                let moved = |by: f64| {
                    let member = |&row: &u32| values[row as usize] + if row as usize == at { by } else { 0.0 };
                    composed(&set.iter().map(member).collect::<Vec<f64>>())
                };
                let expected = 2.0 * (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((f64::from(*found) - expected).abs() < 1e-4, "{set:?} {at}: {found} {expected}");
            }
        }
    }

    #[test]
    fn a_result_that_is_not_finite_names_the_set() {
        let rows = Embeddings::new(&[2.0, f32::MAX], 1);
        let error =
            compose_sets(&CROOKED, rows, &Sets::from_iter([vec![0], vec![0, 1]]), &Services::none()).unwrap_err();
        assert_eq!(error.to_string(), "composing the set [0, 1] gave inf");
    }
}
