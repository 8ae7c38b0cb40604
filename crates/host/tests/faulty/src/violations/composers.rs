//! Composers that break rules.

use compflow_api::{Component, Composer, Embeddings, Flags, NoParams, Result, Services, Sets, register};

use super::{calls, leak};

fn add(left: &[f32], right: &[f32], more: f32, out: &mut [f32]) {
    out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left + right + more);
}

/// Declares what a composer does with pairs, and what else it does.
macro_rules! composer {
    ($type:ident, |$dim:pat_param, $left:ident, $right:ident, $out:ident| $compose:expr $(, { $($more:tt)* })?) => {
        impl Composer for $type {
            fn compose(
                &self,
                $dim: usize,
                $left: &[f32],
                $right: &[f32],
                $out: &mut [f32],
                _services: &Services<'_>,
            ) -> Result<()> {
                $compose;
                Ok(())
            }

            $($($more)*)?
        }
    };
}

component!(
    composer Careless,
    "careless",
    "leaves the last number of every batch alone, and has the gradients of something else",
    Flags::HAS_GRADIENTS
);

composer!(
    Careless,
    |_, left, right, out| {
        let all = out.len() - 1;
        add(left, right, 0.0, &mut out[..all]);
    },
    {
        fn vjp(
            &self,
            _: usize,
            _: &[f32],
            _: &[f32],
            grad: &[f32],
            left: &mut [f32],
            right: &mut [f32],
            _: &Services<'_>,
        ) -> Result<()> {
            left.copy_from_slice(grad);
            right.fill(0.0);
            Ok(())
        }
    }
);

component!(composer Erratic, "erratic", "another result every time, and memory is lost");

composer!(Erratic, |_, left, right, out| {
    leak();
    add(left, right, calls() as f32, out);
});

component!(composer Brittle, "brittle", "panics on what is unusual");

composer!(Brittle, |dim, left, right, out| {
    assert!(left.len() > dim, "too few");
    assert!(left.chunks(dim).any(|row| row != &left[..dim]), "the same again");
    assert!(left.iter().all(|value| value.abs() < 1e30), "too much");
    add(left, right, 0.0, out);
});

component!(composer Timid, "timid", "no number for what is negative");

composer!(Timid, |_, left, right, out| {
    add(left, right, 0.0, out);
    out.iter_mut().for_each(|value| *value = value.sqrt());
});

component!(composer Angular, "angular", "four numbers at a time, and no more than that");

composer!(Angular, |_, left, right, out| {
    let whole = out.len() / 4 * 4;
    add(&left[..whole], &right[..whole], 0.0, &mut out[..whole]);
});

component!(composer Contrary, "contrary", "the difference, said to be the same in any order", Flags::IS_ASSOCIATIVE);

composer!(Contrary, |_, left, right, out| {
    out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left - right);
});

component!(
    composer Partial,
    "partial",
    "the sum of pairs, and of sets the first member, with the gradients of the sum",
    Flags::HAS_GRADIENTS.and(Flags::COMPOSES_SETS)
);

composer!(Partial, |_, left, right, out| add(left, right, 0.0, out), {
    fn vjp(
        &self,
        _: usize,
        _: &[f32],
        _: &[f32],
        grad: &[f32],
        left: &mut [f32],
        right: &mut [f32],
        _: &Services<'_>,
    ) -> Result<()> {
        left.copy_from_slice(grad);
        right.copy_from_slice(grad);
        Ok(())
    }

    fn composes_sets(&self) -> bool {
        true
    }

    fn sets(&self, rows: Embeddings<'_>, sets: &Sets, out: &mut [f32], _: &Services<'_>) -> Result<()> {
        for (set, out) in sets.iter().zip(out.chunks_exact_mut(rows.dim())) {
            out.copy_from_slice(rows.row(set[0] as usize));
        }
        Ok(())
    }

    fn sets_vjp(
        &self,
        rows: Embeddings<'_>,
        sets: &Sets,
        grad: &[f32],
        grad_rows: &mut [f32],
        _: &Services<'_>,
    ) -> Result<()> {
        let dim = rows.dim();
        grad_rows.fill(0.0);
        for (set, grad) in sets.iter().zip(grad.chunks_exact(dim)) {
            for &row in set {
                let to = &mut grad_rows[row as usize * dim..][..dim];
                to.iter_mut().zip(grad).for_each(|(to, grad)| *to += grad);
            }
        }
        Ok(())
    }
});
