//! Squared Euclidean distance in f64.

/// Sums kept side by side, so that they fit vector registers.
const LANES: usize = 8;

/// ‖a - b‖², the same number for (b, a), on every processor.
#[inline(always)]
pub(super) fn squared(a: &[f64], b: &[f64]) -> f64 {
    let (chunks_of_a, rest_of_a) = a.as_chunks::<LANES>();
    let (chunks_of_b, rest_of_b) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in chunks_of_a.iter().zip(chunks_of_b) {
        for lane in 0..LANES {
            let difference = a[lane] - b[lane];
            sums[lane] += difference * difference;
        }
    }
    let rest: f64 = rest_of_a.iter().zip(rest_of_b).map(|(a, b)| (a - b) * (a - b)).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths_are_summed_to_their_end() {
        for dim in [1, 7, 8, 9, 32, 35] {
            let a: Vec<f64> = (0..dim).map(|at| at as f64).collect();
            let b: Vec<f64> = (0..dim).map(|at| 3.0 * at as f64 + 1.0).collect();
            let expected: f64 = (0..dim).map(|at| (2.0 * at as f64 + 1.0).powi(2)).sum();
            assert_eq!((squared(&a, &b), squared(&b, &a)), (expected, expected));
        }
    }
}
