//! The points about composers.

use compflow_api::{Composer, Error, Flags, ForeignComposer, Result};

use crate::conformance::examples::Numbers;
use crate::conformance::leak;
use crate::conformance::report::{Verdict, point, require, survived};
use crate::conformance::subject::Subject;

/// Pairs at a time.
const ROWS: usize = 20;

pub(crate) fn test(subject: &'static Subject) {
    let dim = subject.make::<ForeignComposer>().ok().and_then(|composer| composer.dim()).unwrap_or(6);
    let mut numbers = Numbers(3);
    let (left, right) = (numbers.many(ROWS * dim), numbers.many(ROWS * dim));
    let compose = |composer: &ForeignComposer, left: &[f32], right: &[f32]| -> Result<Vec<f32>> {
        // What is left of this was not written.
        let mut out = vec![f32::NAN; left.len()];
        composer.compose(dim, left, right, &mut out)?;
        Ok(out)
    };
    let whole = || -> Result<Vec<f32>> { compose(&subject.make()?, &left, &right) };
    point("composes every row", || {
        let composed = whole()?;
        let first = composed.iter().position(|value| !value.is_finite());
        require(first.is_none(), || {
            let at = first.unwrap_or(0);
            format!("value {} of row {} is {}", at % dim, at / dim, composed[at])
        })?;
        Ok(Verdict::Pass)
    });
    point("gives the same result with its defaults written out", || {
        same(&whole()?, &compose(&subject.make_with(&subject.written_out())?, &left, &right)?)
    });
    point("gives the same result every time", || same(&whole()?, &whole()?));
    point("gives the same result row by row", || {
        let composer: ForeignComposer = subject.make()?;
        let rows = left.chunks(dim).zip(right.chunks(dim)).map(|(left, right)| compose(&composer, left, right));
        let rows: Vec<f32> = rows.collect::<Result<Vec<_>>>()?.concat();
        // Sums may be taken in another order for other numbers of rows.
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * a.abs().max(1.0);
        require(whole()?.iter().zip(&rows).all(near), || "a row's result depends on the other rows".to_owned())?;
        Ok(Verdict::Pass)
    });
    point("gives the same result to several threads at once", || {
        let (composer, first) = (subject.make::<ForeignComposer>()?, whole()?);
        std::thread::scope(|scope| {
            for thread in [(); 4].map(|()| scope.spawn(|| compose(&composer, &left, &right))) {
                same(&first, &thread.join().map_err(|_| Error::new("a thread of the test panicked"))??)?;
            }
            Ok(Verdict::Pass)
        })
    });
    point("survives no rows", || survives(&compose(&subject.make()?, &[], &[])));
    point("survives a single row", || survives(&compose(&subject.make()?, &left[..dim], &right[..dim])));
    point("survives the same row many times", || {
        let many = left[..dim].repeat(ROWS);
        survives(&compose(&subject.make()?, &many, &many))
    });
    point("survives huge values", || {
        let huge: Vec<f32> = left.iter().map(|value| value * 3e38).collect();
        survives(&compose(&subject.make()?, &huge, &huge))
    });
    if subject.component.flags().contains(Flags::HAS_GRADIENTS) {
        point("has the gradients of what it composes", || gradients(&subject.make()?, dim, &left, &right));
    }
    point("loses no memory", || {
        leak::none(|| {
            let composer: ForeignComposer = subject.make()?;
            compose(&composer, &left[..dim], &right[..dim])?;
            composer.close()
        })
    });
}

fn survives<T>(outcome: &Result<T>) -> Result<Verdict> {
    survived(outcome).map(|()| Verdict::Pass)
}

fn same(first: &[f32], second: &[f32]) -> Result<Verdict> {
    let equal = first.iter().zip(second).all(|(a, b)| a.to_bits() == b.to_bits());
    require(equal && first.len() == second.len(), || "the results differ".to_owned())?;
    Ok(Verdict::Pass)
}

/// Compares the vector-Jacobian product with differences in random directions. A kink between the two ends of a
/// difference would be no fault, so only half of the directions must agree.
fn gradients(composer: &ForeignComposer, dim: usize, left: &[f32], right: &[f32]) -> Result<Verdict> {
    const DIRECTIONS: usize = 12;
    const STEP: f32 = 1e-2;
    let mut numbers = Numbers(5);
    let mut signed = |count: usize| -> Vec<f32> { (0..count).map(|_| numbers.next() * 2.0 - 1.0).collect() };
    let dot = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum() };
    let mut wrong = 0;
    for _ in 0..DIRECTIONS {
        let grad = signed(left.len());
        let (mut grad_left, mut grad_right) = (vec![f32::NAN; left.len()], vec![f32::NAN; left.len()]);
        composer.vjp(dim, left, right, &grad, &mut grad_left, &mut grad_right)?;
        let (to_left, to_right) = (signed(left.len()), signed(left.len()));
        let at = |sign: f32| -> Result<f64> {
            let moved = |from: &[f32], to: &[f32]| -> Vec<f32> {
                from.iter().zip(to).map(|(from, to)| from + sign * STEP * to).collect()
            };
            let mut out = vec![0.0; left.len()];
            composer.compose(dim, &moved(left, &to_left), &moved(right, &to_right), &mut out)?;
            Ok(dot(&out, &grad))
        };
        let expected = (at(1.0)? - at(-1.0)?) / (2.0 * f64::from(STEP));
        let found = dot(&grad_left, &to_left) + dot(&grad_right, &to_right);
        // NaN is not near anything.
        let near = (found - expected).abs() <= 0.05 * expected.abs().max(0.2);
        wrong += usize::from(!near);
    }
    require(wrong <= DIRECTIONS / 2, || format!("`vjp` is wrong in {wrong} of {DIRECTIONS} directions"))?;
    Ok(Verdict::Pass)
}
