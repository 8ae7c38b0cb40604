//! `max`: what is seen in one or the other is seen in both.
//!
//! g(a, b)ⱼ = max(aⱼ, bⱼ). Associative and idempotent, so a set's composition does not depend on the order of its
//! members. The gradient is a subgradient: it goes to the larger, and in halves to both where they are equal, which
//! keeps g's symmetry and is the limit of central differences.

use compflow_api::register;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::elementwise::{Element, Elementwise};

/// The larger of both, element by element: g(a, b)ⱼ = max(aⱼ, bⱼ).
///
/// The gradient goes to the larger of the two; where they are equal, half of it to each.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

/// The composer `max`.
pub type Max = Elementwise<Params>;
register!(composer Max);

impl Element for Params {
    const NAME: &'static str = "max";
    const SUMMARY: &'static str = "the larger of both, element by element";

    fn compose(&self, left: f32, right: f32) -> f32 {
        left.max(right)
    }

    fn partials(&self, left: f32, right: f32) -> (f32, f32) {
        let to_left = if left > right {
            1.0
        } else if left < right {
            0.0
        } else {
            0.5
        };
        (to_left, 1.0 - to_left)
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Composer, Embeddings, ForeignComposer, Registration, Services, Sets, compose_sets};

    use super::*;
    use crate::gradients;

    #[test]
    fn takes_the_larger_element() {
        let mut out = [0.0; 4];
        Max::default()
            .compose(2, &[1.0, -2.0, 0.0, 5.0], &[0.5, -1.0, 0.0, f32::MIN], &mut out, &Services::none())
            .unwrap();
        assert_eq!(out, [1.0, -1.0, 0.0, 5.0]);
    }

    #[test]
    fn gradients_are_those_of_central_differences() {
        gradients::check(&Max::default(), 5, |left, right| {
            left.iter().zip(right).map(|(l, r)| l.max(*r)).collect()
        });
    }

    #[test]
    fn a_tie_splits_the_gradient() {
        let (mut left, mut right) = ([0.0; 3], [0.0; 3]);
        Max::default()
            .vjp(3, &[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0], &[4.0, 4.0, 4.0], &mut left, &mut right, &Services::none())
            .unwrap();
        assert_eq!((left, right), ([2.0, 0.0, 4.0], [2.0, 4.0, 0.0]));
    }

    #[test]
    fn works_across_the_boundary() {
        let component = Registration::composer::<Max>().component().unwrap();
        let max = ForeignComposer::try_from(component.create("{}", &Services::none()).unwrap()).unwrap();
        assert_eq!(max.dim(), None);
        let rows = [1.0, 0.0, 0.0, 2.0, 3.0, -1.0];
        let rows = Embeddings::new(&rows, 2);
        assert_eq!(
            compose_sets(&max, rows, &Sets::from_iter([[0, 1, 2]]), &Services::none()).unwrap(),
            [3.0, 2.0]
        );
        let (mut left, mut right) = ([9.0; 2], [9.0; 2]);
        max.vjp(2, rows.row(0), rows.row(1), &[1.0, 1.0], &mut left, &mut right, &Services::none()).unwrap();
        assert_eq!((left, right), ([1.0, 0.0], [0.0, 1.0]));
        let refused = component.create(r#"{"axis": 1}"#, &Services::none()).unwrap_err();
        assert_eq!(refused.to_string(), "`axis` is not a parameter; there are none");
    }
}
