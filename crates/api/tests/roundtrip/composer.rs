//! Composed vectors and their gradients, of pairs and of whole sets.

use compflow_api::*;

use crate::component::{Params, make};

component!(TestComposer, "g", Flags::HAS_GRADIENTS);

impl Composer for TestComposer {
    fn dim(&self) -> Option<usize> {
        Some(2)
    }

    fn compose(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        services: &Services<'_>,
    ) -> Result<()> {
        self.0.act()?;
        if self.0.mode == "idle" {
            return Ok(());
        }
        services.check_cancelled()?;
        assert_eq!(dim, 2);
        out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left + 10.0 * right);
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
        self.0.act()?;
        grad_left.copy_from_slice(grad);
        grad_right.iter_mut().zip(grad).for_each(|(out, grad)| *out = 10.0 * grad);
        Ok(())
    }
}

#[test]
fn a_composer_crosses_with_its_gradients() {
    let composer: ForeignComposer = make(&Registration::composer::<TestComposer>(), "fine").unwrap();
    assert_eq!(composer.dim(), Some(2));
    let mut out = [0.0; 2];
    let none = Services::none();
    composer.compose(2, &[1.0, 2.0], &[3.0, 4.0], &mut out, &none).unwrap();
    assert_eq!(out, [31.0, 42.0]);
    let (mut left, mut right) = ([0.0; 2], [0.0; 2]);
    composer.vjp(2, &[0.0; 2], &[0.0; 2], &[1.0, 2.0], &mut left, &mut right, &none).unwrap();
    assert_eq!((left, right), ([1.0, 2.0], [10.0, 20.0]));
    assert!(composer.compose(2, &[1.0, 2.0], &[3.0], &mut out, &none).is_err(), "matrices of different size");
    assert!(composer.compose(2, &[1.0; 3], &[3.0; 3], &mut [0.0; 3], &none).is_err(), "half a row");
    let failing: ForeignComposer = make(&Registration::composer::<TestComposer>(), "fail").unwrap();
    assert_eq!(failing.compose(2, &[1.0; 2], &[1.0; 2], &mut out, &none), Err(Error::new("cannot")));
}

#[test]
fn what_a_composer_does_not_write_is_not_taken_for_a_result() {
    let idle: ForeignComposer = make(&Registration::composer::<TestComposer>(), "idle").unwrap();
    let rows = Embeddings::new(&[1.0, 2.0, 3.0, 4.0], 2);
    let error = compose_sets(&idle, rows, &Sets::from_iter([[0, 1]]), &Services::none()).unwrap_err();
    assert_eq!(error.to_string(), "composing the set [0, 1] gave NaN");
}

/// The mean, which is more than its pairs.
#[derive(Default)]
struct TestMean;

impl Component for TestMean {
    const NAME: &'static str = "m";
    const SUMMARY: &'static str = "for tests";
    const FLAGS: Flags = Flags::COMPOSES_SETS.and(Flags::HAS_GRADIENTS);
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Composer for TestMean {
    fn compose(&self, _: usize, _: &[f32], _: &[f32], _: &mut [f32], _: &Services<'_>) -> Result<()> {
        Err(Error::new("pairs are sets as well"))
    }

    fn composes_sets(&self) -> bool {
        true
    }

    fn sets(&self, rows: Embeddings<'_>, sets: &Sets, out: &mut [f32], _services: &Services<'_>) -> Result<()> {
        for (set, out) in sets.iter().zip(out.chunks_exact_mut(rows.dim())) {
            for (at, out) in out.iter_mut().enumerate() {
                *out = set.iter().map(|row| rows[*row as usize][at]).sum::<f32>() / set.len() as f32;
            }
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
        grad_rows.fill(0.0);
        for (set, grad) in sets.iter().zip(grad.chunks_exact(rows.dim())) {
            for row in set {
                let to = &mut grad_rows[*row as usize * rows.dim()..][..rows.dim()];
                to.iter_mut().zip(grad).for_each(|(to, grad)| *to += grad / set.len() as f32);
            }
        }
        Ok(())
    }
}

#[test]
fn a_composer_may_compose_whole_sets_itself() {
    let component = Registration::composer::<TestMean>().component().unwrap();
    let mean = ForeignComposer::try_from(component.create("{}", &Services::none()).unwrap()).unwrap();
    let rows = Embeddings::new(&[1.0, 2.0, 6.0, 20.0], 1);
    let sets = Sets::from_iter([vec![0, 1, 2], vec![3]]);
    assert_eq!(compose_sets(&mean, rows, &sets, &Services::none()).unwrap(), [3.0, 20.0]);
    let grad = compose_sets_vjp(&mean, rows, &sets, &[3.0, 5.0], &Services::none()).unwrap();
    assert_eq!(grad, [1.0, 1.0, 1.0, 5.0]);
    let outside = Sets::from_iter([vec![4]]);
    assert!(mean.sets(rows, &outside, &mut [0.0], &Services::none()).is_err(), "there is no row 4");
}

#[test]
fn a_composer_without_gradients_says_so() {
    component!(Rough, "rough", Flags::NONE);
    impl Composer for Rough {
        fn compose(&self, _: usize, _: &[f32], _: &[f32], _: &mut [f32], _: &Services<'_>) -> Result<()> {
            self.0.act()
        }
    }
    let rough: ForeignComposer = make(&Registration::composer::<Rough>(), "fine").unwrap();
    let error = rough.vjp(1, &[0.0], &[0.0], &[0.0], &mut [0.0], &mut [0.0], &Services::none()).unwrap_err();
    assert_eq!(error.to_string(), "the composer `rough` has no gradients");
}
