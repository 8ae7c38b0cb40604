//! Examples prepared for distances by matrix products.
//!
//! They are [centred and scaled](crate::frame), and their lengths are known. Sums over examples are taken per block and
//! then over blocks.

use compflow_api::{Result, Services};
use ndarray::ArrayView1;

use crate::frame::{Frame, totals};
use crate::weights::count;
use crate::workers::Workers;

/// Blocks hold a multiple of this many rows.
const GRAIN: usize = 1024;
/// Most blocks: enough to keep many threads busy to the end.
const MOST_BLOCKS: usize = 128;
/// Fewest blocks, if there are rows enough.
const FEWEST_BLOCKS: usize = 8;
/// Numbers that all blocks' partial sums together should not exceed: 32 MiB of f64.
const PARTIAL_NUMBERS: usize = 1 << 22;

/// How many rows a block has if each block sums up `partial` numbers. No matter how many threads there are.
pub fn block_rows(rows: usize, partial: usize) -> usize {
    let blocks = (PARTIAL_NUMBERS / partial.max(1)).clamp(FEWEST_BLOCKS, MOST_BLOCKS);
    rows.div_ceil(blocks).next_multiple_of(GRAIN)
}

/// Centred and scaled examples.
pub struct Points {
    /// Row-major.
    values: Vec<f32>,
    dim: usize,
    block_rows: usize,
    /// ‖x‖² of every row.
    norms: Vec<f32>,
    /// Σ‖x‖², weighted.
    scatter: f64,
    frame: Frame,
    /// How much each counts, unless all count once.
    weights: Option<Vec<f32>>,
    /// The mean variance of the dimensions.
    variance: f64,
}

#[expect(clippy::len_without_is_empty, reason = "there is always one")]
impl Points {
    /// Prepares rows of `dim` numbers, for blocks of `block_rows` rows.
    pub fn new(
        values: Vec<f32>,
        dim: usize,
        block_rows: usize,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Self> {
        Self::weighted(values, None, dim, block_rows, workers, services)
    }

    /// The same for rows that count so much; one has to count for something.
    pub fn weighted(
        mut values: Vec<f32>,
        weights: Option<&[f32]>,
        dim: usize,
        block_rows: usize,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Self> {
        let rows = values.len() / dim;
        let firsts = (0..rows).step_by(block_rows);
        let totals = workers.map(firsts.zip(values.chunks(block_rows * dim)), |(first, block)| {
            services.check_cancelled()?;
            Ok(totals(block, weights.map(|weights| &weights[first..]), dim))
        })?;
        let mut mean = vec![0.0; dim];
        for (sums, _) in &totals {
            mean.iter_mut().zip(sums).for_each(|(mean, sum)| *mean += sum);
        }
        mean.iter_mut().for_each(|mean| *mean /= count(weights, rows) as f64);
        let frame = Frame::new(mean, totals.iter().fold(0.0, |largest, total| largest.max(total.1)));

        let mut norms = vec![0.0; rows];
        let blocks = values.chunks_mut(block_rows * dim).zip(norms.chunks_mut(block_rows));
        let scatters = workers.map(blocks, |(block, norms)| {
            services.check_cancelled()?;
            let mut squares = vec![0.0; dim];
            for (row, norm) in block.chunks_exact_mut(dim).zip(norms) {
                frame.enter(row);
                for (value, square) in row.iter().zip(&mut squares) {
                    *square += f64::from(*value) * f64::from(*value);
                }
                let row = ArrayView1::from(&*row);
                *norm = row.dot(&row);
            }
            Ok(squares.iter().sum::<f64>())
        })?;
        let scatter: f64 = scatters.iter().sum();
        let variance = scatter / (rows * dim) as f64;
        let mut points = Self { values, dim, block_rows, norms, scatter, frame, weights: None, variance };
        if let Some(weights) = weights {
            points.weigh(weights);
        }
        Ok(points)
    }

    /// Lets each count so much.
    fn weigh(&mut self, weights: &[f32]) {
        let (mut total, mut sums, mut scatter) = (0.0, vec![0.0; self.dim], 0.0);
        for (row, &weight) in self.values.chunks_exact(self.dim).zip(weights) {
            let weight = f64::from(weight);
            total += weight;
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += weight * f64::from(value);
                scatter += weight * f64::from(value) * f64::from(value);
            }
        }
        let around_mean = scatter - sums.iter().map(|sum| sum * sum).sum::<f64>() / total;
        self.variance = around_mean.max(0.0) / (total * self.dim as f64);
        self.scatter = scatter;
        self.weights = Some(weights.to_vec());
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.norms.len()
    }

    /// How long each is.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Rows per block; the last has fewer.
    pub fn block_rows(&self) -> usize {
        self.block_rows
    }

    /// All points, row-major.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The values of each block, row-major.
    pub fn blocks(&self) -> std::slice::Chunks<'_, f32> {
        self.values.chunks(self.block_rows * self.dim)
    }

    /// ‖x‖² of every point.
    pub fn norms(&self) -> &[f32] {
        &self.norms
    }

    /// Σ‖x‖², weighted.
    pub fn scatter(&self) -> f64 {
        self.scatter
    }

    /// The mean variance of the dimensions.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// How much each point counts, unless all count once.
    pub fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }

    /// One point.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.dim..][..self.dim]
    }

    /// How they were shifted and scaled.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighted(values: &[f32], weights: Option<&[f32]>, dim: usize) -> Points {
        Points::weighted(values.to_vec(), weights, dim, GRAIN, &Workers::alone(), &Services::none()).unwrap()
    }

    fn points(values: &[f32], dim: usize) -> Points {
        weighted(values, None, dim)
    }

    #[test]
    fn they_are_centred_below_one_and_can_be_restored() {
        let found = points(&[1.0, 10.0, 2.0, 30.0], 2);
        assert_eq!(found.row(1), [0.5 / 64.0, 10.0 / 64.0]);
        assert_eq!(found.frame().restore(found.row(1)).collect::<Vec<_>>(), [2.0, 30.0]);
        assert_eq!(found.frame().restore_squared(found.scatter()), 2.0 * (0.25 + 100.0));
        assert_eq!(found.norms()[0], (0.25 + 100.0) / 4096.0);
    }

    #[test]
    fn a_weight_of_two_is_a_point_twice() {
        let weighted = weighted(&[1.0, 10.0, 2.0, 30.0, 7.0, 3.0], Some(&[1.0, 2.0, 0.0]), 2);
        let doubled = points(&[1.0, 10.0, 2.0, 30.0, 2.0, 30.0], 2);
        let variance = |points: &Points| points.frame().restore_squared(points.variance());
        assert!((variance(&weighted) - variance(&doubled)).abs() < 1e-4 * variance(&doubled));
        assert_eq!(weighted.weights(), Some(&[1.0, 2.0, 0.0][..]));
    }

    #[test]
    fn others_keep_their_digits_however_far_a_point_lies_that_does_not_count() {
        let alone = points(&[1.0, 10.0, 2.0, 30.0], 2);
        for far in [1e6, 1e25, -f32::MAX] {
            let found = weighted(&[1.0, 10.0, far, far, 2.0, 30.0], Some(&[1.0, 0.0, 1.0]), 2);
            assert_eq!([found.row(0), found.row(2)], [alone.row(0), alone.row(1)]);
            assert_eq!((found.scatter(), found.variance()), (alone.scatter(), alone.variance()));
            assert!(found.norms().iter().all(|norm| norm.is_finite()), "{:?}", found.norms());
        }
    }

    #[test]
    fn huge_and_tiny_values_keep_their_digits() {
        let huge = points(&[f32::MAX, f32::MIN, 0.0], 1);
        assert!(huge.norms().iter().all(|norm| norm.is_finite()));
        assert_eq!(huge.frame().restore(huge.row(0)).collect::<Vec<_>>(), [f32::MAX]);
        let tiny = points(&[1e-30, 3e-30], 1);
        assert!(tiny.norms()[0] > 0.01);
        assert_eq!(points(&[7.0, 7.0], 1).scatter(), 0.0);
        assert_eq!(points(&[0.0, 0.0], 1).frame().scale(), 1.0);
    }

    #[test]
    fn blocks_are_few_where_their_sums_are_large() {
        assert_eq!(block_rows(1, 1), GRAIN);
        assert_eq!(block_rows(1_000_000, 480), 8 * GRAIN);
        assert_eq!(block_rows(1_000_000, 1 << 30), 123 * GRAIN);
    }
}
