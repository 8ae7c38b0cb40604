//! The distances of all pairs, with every digit: Σ(x-y)² summed up in f64, for what distances are kept of that are
//! close to nothing, where [`products`](crate::products) would leave rounding only. Cost: n·m·p in f64.

use pulp::{Arch, NullaryFnOnce};

/// Sums kept side by side, so that they fit vector registers and do not wait for one another.
const LANES: usize = 8;

/// ‖a - b‖², the same number for (b, a), on every processor. In f64, since differences of huge vectors overflow in f32 when
/// they are squared.
#[inline(always)]
pub fn squared<A: Copy + Into<f64>, B: Copy + Into<f64>>(a: &[A], b: &[B]) -> f64 {
    let (chunks_of_a, rest_of_a) = a.as_chunks::<LANES>();
    let (chunks_of_b, rest_of_b) = b.as_chunks::<LANES>();
    let square = |a: A, b: B| {
        let difference = a.into() - b.into();
        difference * difference
    };
    let mut sums = [0.0; LANES];
    for (a, b) in chunks_of_a.iter().zip(chunks_of_b) {
        for lane in 0..LANES {
            sums[lane] += square(a[lane], b[lane]);
        }
    }
    let rest: f64 = rest_of_a.iter().zip(rest_of_b).map(|(a, b)| square(*a, *b)).sum();
    sums.iter().sum::<f64>() + rest
}

/// a·b, the same number on every processor.
#[inline(always)]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (chunks_of_a, rest_of_a) = a.as_chunks::<LANES>();
    let (chunks_of_b, rest_of_b) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in chunks_of_a.iter().zip(chunks_of_b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = rest_of_a.iter().zip(rest_of_b).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// Points, one coordinate after the other, that others are compared with.
pub struct Axes {
    values: Vec<f32>,
    len: usize,
}

impl Axes {
    /// Of row-major points of `dim` numbers each.
    pub fn new<'a>(points: impl ExactSizeIterator<Item = &'a [f32]>, dim: usize) -> Self {
        let len = points.len();
        let mut values = vec![0.0; len * dim];
        for (at, point) in points.enumerate() {
            point.iter().enumerate().for_each(|(axis, &value)| values[axis * len + at] = value);
        }
        Self { values, len }
    }

    /// Writes minus the distances of some rows, row-major, from all points into `out`, with `stride` numbers from row to
    /// row; of those behind the points none is touched. `rooted` says that distances are not squared.
    pub fn similarities(&self, rows: &[f32], rooted: bool, out: &mut [f32], stride: usize) {
        Arch::new().dispatch(Fill { axes: self, rows, rooted, out, stride });
    }
}

/// A call of [`Axes::similarities`], as a type because a closure would not be compiled for the processor's vectors.
struct Fill<'a> {
    axes: &'a Axes,
    rows: &'a [f32],
    rooted: bool,
    out: &'a mut [f32],
    stride: usize,
}

impl NullaryFnOnce for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Axes { values, len } = self.axes;
        let dim = values.len() / len;
        let mut sums = vec![0.0f64; *len];
        for (row, out) in self.rows.chunks_exact(dim).zip(self.out.chunks_exact_mut(self.stride)) {
            sums.fill(0.0);
            for (&own, others) in row.iter().zip(values.chunks_exact(*len)) {
                for (sum, &other) in sums.iter_mut().zip(others) {
                    let difference = f64::from(own) - f64::from(other);
                    *sum += difference * difference;
                }
            }
            if self.rooted {
                sums.iter_mut().for_each(|sum| *sum = sum.sqrt());
            }
            out.iter_mut().zip(&sums).for_each(|(out, sum)| *out = -sum as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::examples;

    #[test]
    fn all_lengths_are_summed_to_their_end() {
        for dim in [1, 7, 8, 9, 32, 35] {
            let a: Vec<f32> = (0..dim).map(|at| at as f32).collect();
            let b: Vec<f64> = (0..dim).map(|at| 3.0 * at as f64 + 1.0).collect();
            let expected: f64 = (0..dim).map(|at| (2.0 * at as f64 + 1.0).powi(2)).sum();
            assert_eq!((squared(&a, &b), squared(&b, &a)), (expected, expected));
            let expected: f64 = (0..dim).map(|at| (3.0 * at as f64 + 1.0).powi(2)).sum();
            assert_eq!(dot(&b, &b), expected);
        }
    }

    #[test]
    fn similarities_are_minus_distances_to_the_last_digit_of_f32() {
        let (dim, stride) = (3, 40);
        let (x, y) = (examples::uniform(7, dim, 1), examples::uniform(37, dim, 2));
        let axes = Axes::new(y.chunks_exact(dim), dim);
        for rooted in [false, true] {
            let mut out = vec![1.0; 7 * stride];
            axes.similarities(&x, rooted, &mut out, stride);
            for (x, out) in x.chunks_exact(dim).zip(out.chunks_exact(stride)) {
                for (y, found) in y.chunks_exact(dim).zip(out) {
                    let squared: f64 = x.iter().zip(y).map(|(&x, &y)| (f64::from(x) - f64::from(y)).powi(2)).sum();
                    assert_eq!(*found, -(if rooted { squared.sqrt() } else { squared }) as f32);
                }
                assert_eq!(out[37..], [1.0; 3]);
            }
        }
    }
}
