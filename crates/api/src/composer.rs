//! Composition: pairs by a composer, sets by folding pairs.

use crate::{Embeddings, Error, Result, Services, Sets};

/// Sets composed at a time, so that the copies a fold needs stay in the cache.
const BATCH: usize = 1024;

/// Predicts where the union of two things lies, for many pairs at once.
///
/// All slices are matrices of rows of `dim` numbers, row-major, with equally many rows.
pub trait Composer: Send + Sync {
    /// The only dimension it works for, if it is not made for all.
    fn dim(&self) -> Option<usize> {
        None
    }

    /// `out[i] = g(left[i], right[i])`; every number of `out` is written.
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

/// One step of the fold of a batch of sets: those that have a `t`-th member, and the pairs composed for them.
struct Step {
    /// Positions in the batch.
    active: Vec<usize>,
    left: Vec<f32>,
    right: Vec<f32>,
}

/// Folds `sets` (none empty) from the left in ascending order into `folded`; returns the steps.
fn fold(
    composer: &dyn Composer,
    rows: Embeddings<'_>,
    sets: &[&[u32]],
    folded: &mut [f32],
    services: &Services<'_>,
) -> Result<Vec<Step>> {
    let dim = rows.dim();
    for (set, out) in sets.iter().zip(folded.chunks_exact_mut(dim)) {
        out.copy_from_slice(rows.row(set[0] as usize));
    }
    let longest = sets.iter().map(|set| set.len()).max().unwrap_or(0);
    let mut steps = Vec::new();
    for member in 1..longest {
        let active: Vec<usize> = (0..sets.len()).filter(|&at| sets[at].len() > member).collect();
        let left = gather(active.iter().map(|&at| &folded[at * dim..][..dim]), dim);
        let right = gather(active.iter().map(|&at| rows.row(sets[at][member] as usize)), dim);
        let mut out = vec![0.0; left.len()];
        composer.compose(dim, &left, &right, &mut out, services)?;
        for (&at, row) in active.iter().zip(out.chunks_exact(dim)) {
            folded[at * dim..][..dim].copy_from_slice(row);
        }
        steps.push(Step { active, left, right });
    }
    Ok(steps)
}

fn gather<'a>(rows: impl ExactSizeIterator<Item = &'a [f32]>, dim: usize) -> Vec<f32> {
    let mut gathered = Vec::with_capacity(rows.len() * dim);
    rows.for_each(|row| gathered.extend_from_slice(row));
    gathered
}

/// Composes rows by sets: `out[i] = g(…g(g(rows[a], rows[b]), rows[c])…)` for the set `{a < b < c < …}`, or as the
/// composer does it that composes whole sets itself.
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
            fold(composer, rows, batch, out, services)?;
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
    let mut add = |row: u32, grad: &[f32]| {
        grad_rows[row as usize * dim..][..dim].iter_mut().zip(grad).for_each(|(sum, g)| *sum += g);
    };
    let sets: Vec<&[u32]> = sets.iter().collect();
    for (batch, grad) in sets.chunks(BATCH).zip(grad.chunks(BATCH * dim)) {
        let mut folded = vec![0.0; grad.len()];
        let steps = fold(composer, rows, batch, &mut folded, services)?;
        let mut grad = grad.to_vec();
        for (member, step) in steps.iter().enumerate().map(|(at, step)| (at + 1, step)).rev() {
            let out = gather(step.active.iter().map(|&at| &grad[at * dim..][..dim]), dim);
            let (mut left, mut right) = (vec![0.0; out.len()], vec![0.0; out.len()]);
            composer.vjp(dim, &step.left, &step.right, &out, &mut left, &mut right, services)?;
            for ((&at, left), right) in step.active.iter().zip(left.chunks_exact(dim)).zip(right.chunks_exact(dim))
            {
                grad[at * dim..][..dim].copy_from_slice(left);
                add(batch[at][member], right);
            }
        }
        for (set, grad) in batch.iter().zip(grad.chunks_exact(dim)) {
            add(set[0], grad);
        }
    }
    Ok(grad_rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neither associative nor commutative, so that a fold in another order shows: g(a, b) = a·a + 3b.
    struct Crooked;

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
                *out = left * left + 3.0 * right;
            }
            Ok(())
        }

        fn vjp(
            &self,
            _dim: usize,
            left: &[f32],
            _right: &[f32],
            grad: &[f32],
            grad_left: &mut [f32],
            grad_right: &mut [f32],
            _services: &Services<'_>,
        ) -> Result<()> {
            for at in 0..grad.len() {
                grad_left[at] = 2.0 * left[at] * grad[at];
                grad_right[at] = 3.0 * grad[at];
            }
            Ok(())
        }
    }

    #[test]
    fn sets_are_folded_from_the_left_in_ascending_order() {
        let rows = Embeddings::new(&[1.0, 2.0, 3.0], 1);
        let sets = Sets::from_iter([vec![2], vec![2, 0], vec![1, 2, 0]]);
        assert_eq!(compose_sets(&Crooked, rows, &sets, &Services::none()).unwrap(), [3.0, 10.0, 58.0]);
    }

    #[test]
    fn more_sets_than_a_batch_compose_the_same() {
        let values: Vec<f32> = (0..60).map(|at| at as f32 / 60.0).collect();
        let rows = Embeddings::new(&values, 1);
        let sets = Sets::all_up_to(60, 2);
        assert!(sets.len() > BATCH);
        let composed = compose_sets(&Crooked, rows, &sets, &Services::none()).unwrap();
        for (set, value) in sets.iter().zip(&composed) {
            let alone = compose_sets(&Crooked, rows, &Sets::from_iter([set]), &Services::none()).unwrap();
            assert_eq!(*value, alone[0], "{set:?}");
        }
        let grad: Vec<f32> = (0..sets.len()).map(|at| (at % 7) as f32).collect();
        let mut sum = vec![0.0; 60];
        for (set, grad) in sets.iter().zip(&grad) {
            let alone =
                compose_sets_vjp(&Crooked, rows, &Sets::from_iter([set]), &[*grad], &Services::none()).unwrap();
            sum.iter_mut().zip(&alone).for_each(|(sum, g)| *sum += g);
        }
        let whole = compose_sets_vjp(&Crooked, rows, &sets, &grad, &Services::none()).unwrap();
        for (a, b) in whole.iter().zip(&sum) {
            assert!((a - b).abs() <= 1e-4 * b.abs().max(1.0), "{a} {b}");
        }
    }

    #[test]
    fn the_gradient_of_a_fold_is_the_chain_rule() {
        // f = ((a² + 3b)² + 3c): df/da = 2(a² + 3b)·2a, df/db = 2(a² + 3b)·3, df/dc = 3.
        let rows = Embeddings::new(&[1.0, 2.0, 5.0, 9.0], 1);
        let grad =
            compose_sets_vjp(&Crooked, rows, &Sets::from_iter([[0, 1, 2]]), &[1.0], &Services::none()).unwrap();
        assert_eq!(grad, [28.0, 42.0, 3.0, 0.0]);
    }

    #[test]
    fn a_result_that_is_not_finite_names_the_set() {
        let rows = Embeddings::new(&[1.0, f32::MAX], 1);
        let error =
            compose_sets(&Crooked, rows, &Sets::from_iter([vec![0], vec![0, 1]]), &Services::none()).unwrap_err();
        assert_eq!(error.to_string(), "composing the set [0, 1] gave inf");
    }
}
