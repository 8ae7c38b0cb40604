//! Examples prepared for distances by matrix products.
//!
//! ‖x-c‖² = ‖x‖² - 2x·c + ‖c‖² turns all distances into one matrix product, at the price of cancellation if the data
//! lie far from the origin and of overflow if they are huge. So they are centred, and divided by a power of two that
//! brings them below 1, which changes no digit. Sums over examples are taken per block and then over blocks.

use compflow_api::{Result, Services};
use ndarray::ArrayView1;

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
    /// Σ‖x‖², which is the sum of squared distances from the mean.
    scatter: f64,
    /// What was subtracted.
    mean: Vec<f64>,
    /// What was multiplied with after that.
    scale: f64,
}

#[expect(clippy::len_without_is_empty, reason = "there is always one")]
impl Points {
    /// Prepares rows of `dim` numbers, for blocks of `block_rows` rows.
    pub fn new(
        mut values: Vec<f32>,
        dim: usize,
        block_rows: usize,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Self> {
        let rows = values.len() / dim;
        let totals = workers.map(values.chunks(block_rows * dim), |block| {
            services.check_cancelled()?;
            Ok(totals(block, dim))
        })?;
        let mut mean = vec![0.0; dim];
        for (sums, _) in &totals {
            mean.iter_mut().zip(sums).for_each(|(mean, sum)| *mean += sum);
        }
        mean.iter_mut().for_each(|mean| *mean /= rows as f64);
        let scale = scale(totals.iter().fold(0.0, |largest, total| largest.max(total.1)));

        let mut norms = vec![0.0; rows];
        let blocks = values.chunks_mut(block_rows * dim).zip(norms.chunks_mut(block_rows));
        let scatters = workers.map(blocks, |(block, norms)| {
            services.check_cancelled()?;
            let mut squares = vec![0.0; dim];
            for (row, norm) in block.chunks_exact_mut(dim).zip(norms) {
                for ((value, mean), square) in row.iter_mut().zip(&mean).zip(&mut squares) {
                    *value = ((f64::from(*value) - mean) * scale) as f32;
                    *square += f64::from(*value) * f64::from(*value);
                }
                let row = ArrayView1::from(&*row);
                *norm = row.dot(&row);
            }
            Ok(squares.iter().sum::<f64>())
        })?;
        Ok(Self { values, dim, block_rows, norms, scatter: scatters.iter().sum(), mean, scale })
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

    /// Σ‖x‖².
    pub fn scatter(&self) -> f64 {
        self.scatter
    }

    /// One point.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.dim..][..self.dim]
    }

    /// Brings further points, row-major in the coordinates that the data came in, to those of the examples. What is
    /// beyond 10¹⁵ there, far from all of them, stays at that, so that products remain finite.
    pub fn enter(&self, rows: &mut [f32]) {
        const FAR: f64 = 1e15;
        for row in rows.chunks_exact_mut(self.dim) {
            for (value, mean) in row.iter_mut().zip(&self.mean) {
                *value = ((f64::from(*value) - mean) * self.scale).clamp(-FAR, FAR) as f32;
            }
        }
    }

    /// A point in the coordinates that the data came in.
    pub fn restore<'a>(&'a self, point: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        point.iter().zip(&self.mean).map(|(&value, mean)| (f64::from(value) / self.scale + mean) as f32)
    }

    /// What the coordinates were multiplied with.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// A squared distance in the units that the data came in.
    pub fn restore_squared(&self, distance: f64) -> f64 {
        distance / self.scale / self.scale
    }
}

/// The sums of all dimensions of some rows, and their largest absolute value.
pub fn totals(rows: &[f32], dim: usize) -> (Vec<f64>, f32) {
    // A largest value per dimension, as one for all would have to be compared with one value after the other.
    let (mut sums, mut largest) = (vec![0.0; dim], vec![0.0f32; dim]);
    for row in rows.chunks_exact(dim) {
        for ((sum, largest), &value) in sums.iter_mut().zip(&mut largest).zip(row) {
            *sum += f64::from(value);
            *largest = largest.max(value.abs());
        }
    }
    (sums, largest.into_iter().fold(0.0, f32::max))
}

/// What values up to `largest` are multiplied with, once their mean was taken from them, so that none is above 1: a power
/// of two, which changes no digit.
pub fn scale(largest: f32) -> f64 {
    // No value is farther than this from a mean of such values.
    let reach = 2.0 * f64::from(largest);
    if reach > 0.0 { (-reach.log2().ceil()).exp2() } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[f32], dim: usize) -> Points {
        Points::new(values.to_vec(), dim, GRAIN, &Workers::alone(), &Services::none()).unwrap()
    }

    #[test]
    fn they_are_centred_below_one_and_can_be_restored() {
        let found = points(&[1.0, 10.0, 2.0, 30.0], 2);
        assert_eq!(found.mean, [1.5, 20.0]);
        assert_eq!(found.scale, 1.0 / 64.0);
        assert_eq!(found.row(1), [0.5 / 64.0, 10.0 / 64.0]);
        assert_eq!(found.restore(found.row(1)).collect::<Vec<_>>(), [2.0, 30.0]);
        assert_eq!(found.restore_squared(found.scatter()), 2.0 * (0.25 + 100.0));
        let mut further = [2.0, 30.0, 1.5, f32::MAX];
        found.enter(&mut further);
        assert_eq!((&further[..2], &further[2..]), (found.row(1), &[0.0, 1e15][..]));
        assert_eq!(found.norms()[0], (0.25 + 100.0) / 4096.0);
    }

    #[test]
    fn huge_and_tiny_values_keep_their_digits() {
        let huge = points(&[f32::MAX, f32::MIN, 0.0], 1);
        assert!(huge.norms().iter().all(|norm| norm.is_finite()));
        assert_eq!(huge.restore(huge.row(0)).collect::<Vec<_>>(), [f32::MAX]);
        let tiny = points(&[1e-30, 3e-30], 1);
        assert!(tiny.norms()[0] > 0.01);
        assert_eq!(points(&[7.0, 7.0], 1).scatter(), 0.0);
        assert_eq!(points(&[0.0, 0.0], 1).scale, 1.0);
    }

    #[test]
    fn blocks_are_few_where_their_sums_are_large() {
        assert_eq!(block_rows(1, 1), GRAIN);
        assert_eq!(block_rows(1_000_000, 480), 8 * GRAIN);
        assert_eq!(block_rows(1_000_000, 1 << 30), 123 * GRAIN);
    }
}
