//! The points about composers.

use compflow_api::{Composer, Embeddings, Error, Flags, ForeignComposer, Result, Sets};

use crate::conformance::examples::Numbers;
use crate::conformance::leak;
use crate::conformance::report::{Verdict, point, require, survived};
use crate::conformance::subject::Subject;

/// Pairs at a time.
const ROWS: usize = 20;

/// Sums may be taken in another order, so results are not compared bit by bit everywhere.
const NEAR: f32 = 1e-4;

/// How many directions gradients are tried in.
const DIRECTIONS: usize = 12;

/// How far differences look to either side.
const STEP: f32 = 1e-2;

fn compose(
    subject: &Subject,
    composer: &ForeignComposer,
    dim: usize,
    left: &[f32],
    right: &[f32],
) -> Result<Vec<f32>> {
    let mut out = vec![0.0; left.len()];
    composer.compose(dim, left, right, &mut out, &subject.watch().services(1, 1))?;
    Ok(out)
}

pub(crate) fn test(subject: &'static Subject) {
    let made = subject.make::<ForeignComposer>();
    let only = made.as_ref().ok().and_then(|composer| composer.dim());
    let flags = made.and_then(|composer| composer.flags()).unwrap_or_default();
    let dim = only.unwrap_or(6);
    let mut numbers = Numbers(3);
    let (left, right) = (numbers.many(ROWS * dim), numbers.many(ROWS * dim));
    let compose =
        |composer: &ForeignComposer, left: &[f32], right: &[f32]| compose(subject, composer, dim, left, right);
    let whole = || -> Result<Vec<f32>> { compose(&subject.make()?, &left, &right) };
    point("composes every row", || finite(dim, &whole()?));
    point("composes negative, large and zero vectors", || {
        let composer = subject.make()?;
        let zero = vec![0.0; ROWS * dim];
        for (left, right) in [
            (numbers.signed(ROWS * dim, 1.0), numbers.signed(ROWS * dim, 1.0)),
            (numbers.signed(ROWS * dim, 1e3), numbers.signed(ROWS * dim, 1e3)),
            (numbers.signed(ROWS * dim, 1.0), zero.clone()),
            (zero.clone(), zero),
        ] {
            finite(dim, &compose(&composer, &left, &right)?)?;
        }
        Ok(Verdict::Pass)
    });
    point("composes matrices of any shape", || shapes(subject, only));
    point("gives the same result with its defaults written out", || {
        same(&whole()?, &compose(&subject.make_with(&subject.written_out())?, &left, &right)?)
    });
    point("gives the same result every time", || same(&whole()?, &whole()?));
    point("gives the same result row by row", || {
        let composer: ForeignComposer = subject.make()?;
        let rows = left.chunks(dim).zip(right.chunks(dim)).map(|(left, right)| compose(&composer, left, right));
        let rows: Vec<f32> = rows.collect::<Result<Vec<_>>>()?.concat();
        near(dim, &rows, &whole()?, "alone", "among others")
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
    if flags.contains(Flags::HAS_GRADIENTS) {
        point("has the gradients of what it composes", || {
            let composer: ForeignComposer = subject.make()?;
            pair_gradients(subject, &composer, dim, &left, &right)?;
            let (left, right) = (numbers.signed(ROWS * dim, 1.0), numbers.signed(ROWS * dim, 1.0));
            pair_gradients(subject, &composer, dim, &left, &right)
        });
    }
    point("composes two whatever their order", || {
        near(dim, &compose(&subject.make()?, &right, &left)?, &whole()?, "g(b, a)", "g(a, b)")
    });
    if flags.contains(Flags::IS_ASSOCIATIVE) {
        point("composes three whatever their grouping", || {
            let composer = subject.make()?;
            let (both, third) = (whole()?, numbers.many(ROWS * dim));
            let inner = compose(&composer, &right, &third)?;
            let (first, last) = (compose(&composer, &both, &third)?, compose(&composer, &left, &inner)?);
            near(dim, &last, &first, "g(a, g(b, c))", "g(g(a, b), c)")
        });
    }
    if flags.contains(Flags::COMPOSES_SETS) {
        sets(subject, dim, flags, &left, &right);
    }
    point("loses no memory", || {
        leak::none(|| {
            let composer: ForeignComposer = subject.make()?;
            compose(&composer, &left[..dim], &right[..dim])?;
            composer.close()
        })
    });
}

/// Few and many rows, short and long ones, wherever in memory they begin: nothing is said of any of these.
fn shapes(subject: &Subject, only: Option<usize>) -> Result<Verdict> {
    let composer: ForeignComposer = subject.make()?;
    let dims = only.map_or_else(|| vec![1, 2, 5, 17, 64], |dim| vec![dim]);
    for (dim, rows) in dims.into_iter().flat_map(|dim| [1, 3, 33].map(|rows| (dim, rows))) {
        let mut numbers = Numbers(11);
        let (left, right) = (numbers.many(rows * dim + 1), numbers.many(rows * dim + 2));
        let composed = compose(subject, &composer, dim, &left[1..], &right[2..])?;
        finite(dim, &composed).map_err(|error| error.context(format!("{rows} rows of {dim} numbers")))?;
    }
    Ok(Verdict::Pass)
}

/// The points about composing whole sets.
fn sets(subject: &'static Subject, dim: usize, flags: Flags, left: &[f32], right: &[f32]) {
    const MEMBERS: usize = 5;
    let values = Numbers(13).many(MEMBERS * dim);
    let compose_sets = |composer: &ForeignComposer, values: &[f32], sets: &Sets| -> Result<Vec<f32>> {
        let mut out = vec![0.0; sets.len() * dim];
        composer.sets(Embeddings::new(values, dim), sets, &mut out, &subject.watch().services(1, 1))?;
        Ok(out)
    };
    point("composes sets of one and two as it does without sets", || {
        let composer: ForeignComposer = subject.make()?;
        require(composer.composes_sets(), || "says that it composes sets, and has no function for it".to_owned())?;
        let both = [left, right].concat();
        let ones: Sets = (0..ROWS as u32).map(|row| [row]).collect();
        near(dim, &compose_sets(&composer, &both, &ones)?, left, "a set of one", "the vector")?;
        let twos: Sets = (0..ROWS as u32).map(|row| [row, row + ROWS as u32]).collect();
        let pairs = compose(subject, &composer, dim, left, right)?;
        near(dim, &compose_sets(&composer, &both, &twos)?, &pairs, "a set of two", "the pair")
    });
    point("composes sets whatever the order of their members", || {
        let composer: ForeignComposer = subject.make()?;
        let sets = Sets::all_up_to(MEMBERS, MEMBERS);
        // The last vector first, and every set with other numbers for the same vectors.
        let backwards: Vec<f32> = values.chunks(dim).rev().flatten().copied().collect();
        let renamed = |set: &[u32]| -> Vec<u32> { set.iter().rev().map(|row| MEMBERS as u32 - 1 - row).collect() };
        let reversed: Sets = sets.iter().map(renamed).collect();
        let (first, second) =
            (compose_sets(&composer, &values, &sets)?, compose_sets(&composer, &backwards, &reversed)?);
        finite(dim, &first)?;
        near(dim, &second, &first, "the vectors in reverse", "the vectors in order")
    });
    if flags.contains(Flags::HAS_GRADIENTS) {
        point("has the gradients of the sets that it composes", || {
            let composer: ForeignComposer = subject.make()?;
            let sets = Sets::all_up_to(MEMBERS, 3);
            gradients(
                &values,
                sets.len() * dim,
                |values| compose_sets(&composer, values, &sets),
                |grad| {
                    let (rows, services) = (Embeddings::new(&values, dim), subject.watch());
                    let mut pulled = vec![0.0; values.len()];
                    composer.sets_vjp(rows, &sets, grad, &mut pulled, &services.services(1, 1))?;
                    Ok(pulled)
                },
            )
        });
    }
}

fn survives<T>(outcome: &Result<T>) -> Result<Verdict> {
    survived(outcome).map(|()| Verdict::Pass)
}

fn same(first: &[f32], second: &[f32]) -> Result<Verdict> {
    let equal = first.iter().zip(second).all(|(a, b)| a.to_bits() == b.to_bits());
    require(equal && first.len() == second.len(), || "the results differ".to_owned())?;
    Ok(Verdict::Pass)
}

/// What was not written is not a number, since that is what the boundary fills results with.
fn finite(dim: usize, composed: &[f32]) -> Result<Verdict> {
    match composed.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(Error::new(format!("value {} of row {} is {}", at % dim, at / dim, composed[at]))),
        None => Ok(Verdict::Pass),
    }
}

/// Whether two results are the same but for rounding.
fn near(dim: usize, found: &[f32], expected: &[f32], this: &str, that: &str) -> Result<Verdict> {
    // NaN is not near anything.
    let agrees = |(a, b): (&f32, &f32)| (a - b).abs() <= NEAR * b.abs().max(1.0);
    match found.iter().zip(expected).position(|pair| !agrees(pair)) {
        Some(at) => {
            let (row, value) = (at / dim, at % dim);
            let (found, expected) = (found[at], expected[at]);
            Err(Error::new(format!("value {value} of row {row} is {found} for {this} and {expected} for {that}")))
        }
        None => Ok(Verdict::Pass),
    }
}

fn pair_gradients(
    subject: &Subject,
    composer: &ForeignComposer,
    dim: usize,
    left: &[f32],
    right: &[f32],
) -> Result<Verdict> {
    let len = left.len();
    gradients(
        &[left, right].concat(),
        len,
        |both| compose(subject, composer, dim, &both[..len], &both[len..]),
        |grad| {
            let (mut to_left, mut to_right) = (vec![0.0; len], vec![0.0; len]);
            let watch = subject.watch();
            composer.vjp(dim, left, right, grad, &mut to_left, &mut to_right, &watch.services(1, 1))?;
            Ok([to_left, to_right].concat())
        },
    )
}

/// Compares a vector-Jacobian product at `at` with differences in random directions. A kink between the two ends of a
/// difference would be no fault, so only half of the directions must agree.
fn gradients(
    at: &[f32],
    results: usize,
    function: impl Fn(&[f32]) -> Result<Vec<f32>>,
    pull_back: impl Fn(&[f32]) -> Result<Vec<f32>>,
) -> Result<Verdict> {
    let mut numbers = Numbers(5);
    let dot = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum() };
    let mut wrong: Vec<String> = Vec::new();
    for direction in 1..=DIRECTIONS {
        let (grad, to) = (numbers.signed(results, 1.0), numbers.signed(at.len(), 1.0));
        let moved = |sign: f32| -> Result<f64> {
            let moved: Vec<f32> = at.iter().zip(&to).map(|(from, to)| from + sign * STEP * to).collect();
            Ok(dot(&function(&moved)?, &grad))
        };
        let expected = (moved(1.0)? - moved(-1.0)?) / (2.0 * f64::from(STEP));
        let found = dot(&pull_back(&grad)?, &to);
        let error = (found - expected).abs() / expected.abs().max(0.2);
        let near = error <= 0.05;
        if !near {
            wrong.push(format!(
                "gradient {found:.3} where differences give {expected:.3} in direction {direction} of {DIRECTIONS}, \
                 relative error {error:.2}"
            ));
        }
    }
    require(wrong.len() <= DIRECTIONS / 2, || wrong.swap_remove(0))?;
    Ok(Verdict::Pass)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_gradient_is_told_in_numbers() {
        let square = |at: &[f32]| Ok(at.iter().map(|value| value * value).collect());
        let at = [0.5, -1.0, 2.0];
        let with = |factor: f32| {
            gradients(&at, 3, square, |grad| {
                Ok(at.iter().zip(grad).map(|(at, grad)| factor * at * grad).collect())
            })
        };
        assert!(with(2.0).is_ok());
        let error = with(4.0).unwrap_err().to_string();
        assert!(error.contains(" in direction 1 of 12, relative error 1.00"), "{error}");
        assert!(with(f32::NAN).unwrap_err().to_string().starts_with("gradient NaN where differences give "));
    }

    #[test]
    fn what_differs_is_named() {
        assert!(near(2, &[1.0, 2.0], &[1.0, 2.0], "a", "b").is_ok());
        let error = near(2, &[1.0, 2.0, 3.0], &[1.0, 2.0, f32::NAN], "a", "b").unwrap_err();
        assert_eq!(error.to_string(), "value 0 of row 1 is 3 for a and NaN for b");
    }
}
