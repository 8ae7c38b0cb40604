//! How examples are shifted and scaled before distances are taken by products.
//!
//! ‖x-c‖² = ‖x‖² - 2x·c + ‖c‖² loses digits if the data lie far from the origin, and overflows if they are huge. So their
//! mean is subtracted, and they are multiplied by a power of two that brings them below 1, which changes no digit. Examples
//! whose weight is 0 have no say in either, or one of them far away would leave the others no digits.

use serde::{Deserialize, Serialize};

use crate::weights::weight;

/// What was subtracted, and what was multiplied with after that.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Frame {
    mean: Vec<f64>,
    scale: f64,
}

impl Frame {
    /// For data with this mean, of which no value is above `largest`.
    pub fn new(mean: Vec<f64>, largest: f32) -> Self {
        // No value is farther than this from a mean of such values.
        Self { mean, scale: unit(2.0 * f64::from(largest)) }
    }

    /// Brings points, row-major in the coordinates that the data came in, to those in which they are compared.
    pub fn prepare(&self, points: &mut [f32]) {
        for row in points.chunks_exact_mut(self.mean.len()) {
            for (value, mean) in row.iter_mut().zip(&self.mean) {
                *value = ((f64::from(*value) - mean) * self.scale) as f32;
            }
        }
    }

    /// Brings points there that need not be among those that it was made for: what is beyond 10¹⁵ there, far from all of
    /// them, stays at that, so that products remain finite.
    #[inline]
    pub fn enter(&self, points: &mut [f32]) {
        const FAR: f64 = 1e15;
        for row in points.chunks_exact_mut(self.mean.len()) {
            for (value, mean) in row.iter_mut().zip(&self.mean) {
                *value = ((f64::from(*value) - mean) * self.scale).clamp(-FAR, FAR) as f32;
            }
        }
    }

    /// Points, prepared.
    pub fn prepared(&self, points: &[f32]) -> Vec<f32> {
        let mut points = points.to_vec();
        self.prepare(&mut points);
        points
    }

    /// The mean of `count` points from the sum of the prepared ones, in the coordinates that the data came in.
    pub fn mean(&self, sum: &[f64], count: f64) -> impl Iterator<Item = f64> {
        sum.iter().zip(&self.mean).map(move |(sum, mean)| sum / count / self.scale + mean)
    }

    /// A prepared point in the coordinates that the data came in.
    pub fn restore(&self, point: &[f32]) -> impl Iterator<Item = f32> {
        point.iter().zip(&self.mean).map(|(&value, mean)| (f64::from(value) / self.scale + mean) as f32)
    }

    /// A squared distance of prepared points in the units of the data.
    pub fn restore_squared(&self, squared: f64) -> f64 {
        squared / self.scale / self.scale
    }

    /// What the coordinates were multiplied with.
    pub fn scale(&self) -> f64 {
        self.scale
    }
}

/// What numbers up to `reach` are multiplied with so that none is above 1: a power of two, which changes no digit.
pub fn unit(reach: f64) -> f64 {
    if reach > 0.0 { (-reach.log2().ceil()).exp2() } else { 1.0 }
}

/// The sums of all dimensions of those rows that count, each once, and their largest absolute value.
pub fn totals(rows: &[f32], weights: Option<&[f32]>, dim: usize) -> (Vec<f64>, f32) {
    // A largest value per dimension, as one for all would have to be compared with one value after the other.
    let (mut sums, mut largest) = (vec![0.0; dim], vec![0.0f32; dim]);
    for (at, row) in rows.chunks_exact(dim).enumerate() {
        if weight(weights, at) == 0.0 {
            continue;
        }
        for ((sum, largest), &value) in sums.iter_mut().zip(&mut largest).zip(row) {
            *sum += f64::from(value);
            *largest = largest.max(value.abs());
        }
    }
    (sums, largest.into_iter().fold(0.0, f32::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_go_there_and_back() {
        let values = [1.0, 10.0, 2.0, 30.0];
        let (sums, largest) = totals(&values, None, 2);
        assert_eq!((&sums[..], largest), (&[3.0, 40.0][..], 30.0));
        assert_eq!(totals(&values, Some(&[0.5, 0.0]), 2), (vec![1.0, 10.0], 10.0));
        let frame = Frame::new(vec![1.5, 20.0], largest);
        assert_eq!(frame.scale(), 1.0 / 64.0);
        let prepared = frame.prepared(&values);
        assert_eq!(prepared, [-0.5 / 64.0, -10.0 / 64.0, 0.5 / 64.0, 10.0 / 64.0]);
        assert_eq!(frame.restore(&prepared[2..]).collect::<Vec<_>>(), [2.0, 30.0]);
        assert_eq!(frame.mean(&[1.0 / 64.0, 0.0], 2.0).collect::<Vec<_>>(), [2.0, 20.0]);
        assert_eq!(frame.restore_squared(1.0 / 4096.0), 1.0);
    }

    #[test]
    fn what_is_far_stays_finite() {
        let mut further = [2.0, f32::MAX];
        Frame::new(vec![1.5, 20.0], 30.0).enter(&mut further);
        assert_eq!(further, [0.5 / 64.0, 1e15]);
    }

    #[test]
    fn units_are_powers_of_two() {
        for (reach, expected) in [(0.0, 1.0), (1.0, 1.0), (1.1, 0.5), (60.0, 1.0 / 64.0), (1e-3, 512.0)] {
            assert_eq!(unit(reach), expected, "{reach}");
        }
    }
}
