//! `mean`: in the middle of all.
//!
//! g(c) = 1/|c| Σ_{j in c} m_j. No function of pairs gives that, as a pair does not say how many members an operand stands
//! for; so this composer takes sets as a whole. With it, `ckm` is overlapping k-means (OKM, Cleuziou 2008).

use compflow_api::{Component, Composer, Embeddings, Flags, Result, Services, Sets, register};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The arithmetic mean: g(a, b) = (a + b) / 2, and of a set the mean of all its members.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

/// The composer `mean`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mean;
register!(composer Mean);

impl Component for Mean {
    const NAME: &'static str = "mean";
    const SUMMARY: &'static str = "the arithmetic mean of all";
    const FLAGS: Flags = Flags::HAS_GRADIENTS.and(Flags::COMPOSES_SETS);
    type Params = Params;

    fn new(_params: Params, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Composer for Mean {
    fn compose(
        &self,
        _dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        for ((out, left), right) in out.iter_mut().zip(left).zip(right) {
            *out = 0.5 * left + 0.5 * right;
        }
        Ok(())
    }

    fn vjp(
        &self,
        _dim: usize,
        _left: &[f32],
        _right: &[f32],
        grad: &[f32],
        grad_left: &mut [f32],
        grad_right: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        for ((grad, left), right) in grad.iter().zip(grad_left).zip(grad_right) {
            (*left, *right) = (0.5 * grad, 0.5 * grad);
        }
        Ok(())
    }

    fn composes_sets(&self) -> bool {
        true
    }

    fn sets(&self, rows: Embeddings<'_>, sets: &Sets, out: &mut [f32], _services: &Services<'_>) -> Result<()> {
        let mut sums = vec![0.0f64; rows.dim()];
        for (set, out) in sets.iter().zip(out.chunks_exact_mut(rows.dim())) {
            sums.fill(0.0);
            for &member in set {
                let row = rows.row(member as usize);
                sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
            }
            out.iter_mut().zip(&sums).for_each(|(out, sum)| *out = (sum / set.len() as f64) as f32);
        }
        Ok(())
    }

    fn sets_vjp(
        &self,
        rows: Embeddings<'_>,
        sets: &Sets,
        grad: &[f32],
        grad_rows: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        let dim = rows.dim();
        grad_rows.fill(0.0);
        for (set, grad) in sets.iter().zip(grad.chunks_exact(dim)) {
            let part = 1.0 / set.len() as f32;
            for &member in set {
                let row = &mut grad_rows[member as usize * dim..][..dim];
                row.iter_mut().zip(grad).for_each(|(sum, grad)| *sum += part * grad);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{compose_sets, compose_sets_vjp};

    use super::*;
    use crate::gradients;

    #[test]
    fn of_a_pair_it_is_the_midpoint_and_does_not_overflow() {
        let mut out = [0.0; 2];
        Mean.compose(2, &[1.0, f32::MAX], &[2.0, f32::MAX], &mut out, &Services::none()).unwrap();
        assert_eq!(out, [1.5, f32::MAX]);
    }

    #[test]
    fn of_a_set_it_is_the_mean_of_all() {
        let rows = Embeddings::new(&[3.0, 6.0, 18.0, f32::MAX], 1);
        let sets = Sets::from_iter([vec![0, 1, 2], vec![1, 2], vec![2], vec![3]]);
        let composed = compose_sets(&Mean, rows, &sets, &Services::none()).unwrap();
        assert_eq!(composed, [9.0, 12.0, 18.0, f32::MAX]);
        let grad = compose_sets_vjp(&Mean, rows, &sets, &[3.0, 2.0, 5.0, 0.0], &Services::none()).unwrap();
        assert_eq!(grad, [1.0, 2.0, 7.0, 0.0]);
    }

    #[test]
    fn gradients_are_those_of_central_differences() {
        gradients::check(&Mean, 5, |left, right| left.iter().zip(right).map(|(l, r)| (l + r) / 2.0).collect());
    }
}
