//! Compares a composer's gradients with central differences. Only for tests.

use compflow_api::{Composer, Services};

/// Pairs per check: enough for a gradient that lands in another row to show.
const ROWS: usize = 7;
/// The reference is in f64, so this step leaves about ten correct digits.
const STEP: f64 = 1e-5;

/// Numbers in [-1, 1), the same for the same `salt`, none of them equal.
pub(crate) fn numbers(len: usize, salt: u64) -> Vec<f32> {
    let mut state = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Checks compose and vjp of a batch against `g`, the same function of one pair in f64.
pub(crate) fn check(composer: &dyn Composer, dim: usize, g: impl Fn(&[f64], &[f64]) -> Vec<f64>) {
    let len = ROWS * dim;
    let [left, right, grad] = [1, 2, 3].map(|salt| numbers(len, salt));
    let (mut out, mut grad_left, mut grad_right) = (vec![9.0; len], vec![9.0; len], vec![9.0; len]);
    composer.compose(dim, &left, &right, &mut out, &Services::none()).unwrap();
    composer.vjp(dim, &left, &right, &grad, &mut grad_left, &mut grad_right, &Services::none()).unwrap();
    let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
    for row in 0..ROWS {
        let at = row * dim..(row + 1) * dim;
        let (a, b, grad) = (wide(&left[at.clone()]), wide(&right[at.clone()]), wide(&grad[at.clone()]));
        for (found, expected) in out[at.clone()].iter().zip(g(&a, &b)) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "row {row}: {found} instead of {expected}");
        }
        let along = |a: &[f64], b: &[f64]| g(a, b).iter().zip(&grad).map(|(g, grad)| g * grad).sum::<f64>();
        for element in 0..dim {
            let moved = |values: &[f64], by: f64| {
                let mut values = values.to_vec();
                values[element] += by;
                values
            };
            let by_left = (along(&moved(&a, STEP), &b) - along(&moved(&a, -STEP), &b)) / (2.0 * STEP);
            let by_right = (along(&a, &moved(&b, STEP)) - along(&a, &moved(&b, -STEP))) / (2.0 * STEP);
            for (found, expected) in [(&grad_left, by_left), (&grad_right, by_right)] {
                let found = f64::from(found[at.start + element]);
                assert!((found - expected).abs() < 1e-5, "row {row}: {found} instead of {expected}");
            }
        }
    }
}
