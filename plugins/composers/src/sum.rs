//! `sum`: embeddings add up.
//!
//! g(a, b) = a + b. Associative, so the composition of a set is the sum of its members in any order, up to rounding.

use compflow_api::register;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::elementwise::{Element, Elementwise};

/// The sum: g(a, b) = a + b, and of a set the sum of all its members.
///
/// In a space that normalises, the sum of two vectors of equal length points where their mean does.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

/// The composer `sum`.
pub type Sum = Elementwise<Params>;
register!(composer Sum);

impl Element for Params {
    const NAME: &'static str = "sum";
    const SUMMARY: &'static str = "the sum of both";

    fn compose(&self, left: f32, right: f32) -> f32 {
        left + right
    }

    fn partials(&self, _left: f32, _right: f32) -> (f32, f32) {
        (1.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Embeddings, Services, Sets, compose_sets};

    use super::*;
    use crate::gradients;

    #[test]
    fn of_a_set_it_is_the_sum_of_all() {
        let rows = Embeddings::new(&[1.0, 0.0, 0.5, 2.0, 3.0, -1.0], 2);
        assert_eq!(
            compose_sets(&Sum::default(), rows, &Sets::from_iter([[0, 1, 2]]), &Services::none()).unwrap(),
            [4.5, 1.0]
        );
    }

    #[test]
    fn gradients_are_those_of_central_differences() {
        gradients::check(&Sum::default(), 5, |left, right| left.iter().zip(right).map(|(l, r)| l + r).collect());
    }
}
