//! `mean`: halfway between the two.
//!
//! g(a, b) = (a + b) / 2. A composer sees pairs only and cannot know how many members an operand stands for, so sets
//! of three and more are means of means: {a, b, c} becomes a/4 + b/4 + c/2, not (a + b + c)/3.

use compflow_api::register;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::elementwise::{Element, Elementwise};

/// The point halfway between the two: g(a, b) = (a + b) / 2.
///
/// Larger sets are folded from pairs in ascending order, which gives later members more weight: {a, b, c} becomes
/// a/4 + b/4 + c/2. The arithmetic mean of three and more is no function of pairs; where only the direction matters,
/// that is in a space that normalises, `sum` gives it.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

/// The composer `mean`.
pub type Mean = Elementwise<Params>;
register!(composer Mean);

impl Element for Params {
    const NAME: &'static str = "mean";
    const SUMMARY: &'static str = "the point halfway between both";
    const ASSOCIATIVE: bool = false;

    fn compose(&self, left: f32, right: f32) -> f32 {
        0.5 * left + 0.5 * right
    }

    fn partials(&self, _left: f32, _right: f32) -> (f32, f32) {
        (0.5, 0.5)
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Composer, Embeddings, Services, Sets, compose_sets};

    use super::*;
    use crate::gradients;

    #[test]
    fn of_a_pair_it_is_the_midpoint_and_does_not_overflow() {
        let mut out = [0.0; 2];
        Mean::default().compose(2, &[1.0, f32::MAX], &[2.0, f32::MAX], &mut out, &Services::none()).unwrap();
        assert_eq!(out, [1.5, f32::MAX]);
    }

    #[test]
    fn of_three_it_is_the_fold_that_the_documentation_says() {
        let rows = Embeddings::new(&[4.0, 8.0, 16.0], 1);
        let composed =
            compose_sets(&Mean::default(), rows, &Sets::from_iter([[0, 1, 2]]), &Services::none()).unwrap();
        assert_eq!(composed, [4.0 / 4.0 + 8.0 / 4.0 + 16.0 / 2.0]);
    }

    #[test]
    fn gradients_are_those_of_central_differences() {
        gradients::check(&Mean::default(), 5, |left, right| {
            left.iter().zip(right).map(|(l, r)| (l + r) / 2.0).collect()
        });
    }
}
