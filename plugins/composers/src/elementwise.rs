//! Composition of each element by itself: what `max` and `sum` have in common.
//!
//! Each is a function of two numbers with its derivatives, an [`Element`]; here it becomes a composer of vectors. Plain
//! loops over equally long slices, which the compiler turns into vector instructions.

use compflow_api::{Component, Composer, Flags, Result, Services};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// A function of two numbers; implemented by the parameters of its composer.
pub trait Element: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// [`Component::NAME`].
    const NAME: &'static str;
    /// [`Component::SUMMARY`].
    const SUMMARY: &'static str;

    /// g(left, right). Associative and symmetric, but for rounding.
    fn compose(&self, left: f32, right: f32) -> f32;

    /// ∂g/∂left and ∂g/∂right.
    fn partials(&self, left: f32, right: f32) -> (f32, f32);
}

/// The composer that applies a function to each element.
#[derive(Debug, Clone, Copy, Default)]
pub struct Elementwise<E>(pub E);

impl<E: Element> Component for Elementwise<E> {
    const NAME: &'static str = E::NAME;
    const SUMMARY: &'static str = E::SUMMARY;
    const FLAGS: Flags = Flags::HAS_GRADIENTS.and(Flags::IS_ASSOCIATIVE);
    type Params = E;

    fn new(params: E, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }
}

impl<E: Element> Composer for Elementwise<E> {
    fn compose(
        &self,
        _dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        for ((out, &left), &right) in out.iter_mut().zip(left).zip(right) {
            *out = self.0.compose(left, right);
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
        let inputs = left.iter().zip(right).zip(grad);
        let outputs = grad_left.iter_mut().zip(grad_right);
        for (((&left, &right), &grad), (grad_left, grad_right)) in inputs.zip(outputs) {
            let (by_left, by_right) = self.0.partials(left, right);
            *grad_left = grad * by_left;
            *grad_right = grad * by_right;
        }
        Ok(())
    }

    fn is_associative(&self) -> bool {
        true
    }
}
