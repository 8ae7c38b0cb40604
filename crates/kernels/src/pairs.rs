//! The distances of all pairs, with every digit: Σ(x-y)² summed up in f64, for what distances are kept of that are
//! close to nothing, where [`products`](crate::products) would leave rounding only. Cost: n·m·p in f64.

use pulp::{Arch, NullaryFnOnce};

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
