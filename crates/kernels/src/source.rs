//! The examples, batch by batch, as points prepared for distances by products.
//!
//! Whether they are read anew in every pass or kept in memory, they are prepared by the same arithmetic and come in the
//! same batches and blocks, so everything that is summed up over them is the same to the last bit.
//!
//! A first pass finds their mean and their size; every point is brought into the space and then into the [`Frame`] that
//! these make. The same pass takes a sample, which is all that starts are chosen from.

use crate::frame::{Frame, totals};
use crate::weights::weight;
use crate::workers::Workers;
use compflow_api::{BATCH_ROWS, Embeddings, Result, Rows, Services, Space};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Rows that are prepared at a time.
const BLOCK: usize = 4096;

/// Examples drawn without replacement, in the order of the data.
pub struct Sample {
    /// Which they are.
    pub numbers: Vec<usize>,
    /// How much each counts, unless all count once.
    pub weights: Option<Vec<f32>>,
    /// As they came, row-major.
    pub rows: Vec<f32>,
    /// As points of the space, prepared.
    pub points: Vec<f32>,
}

/// The examples, for as many passes as are needed.
pub struct Source<'a> {
    rows: &'a dyn Rows,
    space: Space,
    /// How points of the space are shifted and scaled.
    pub frame: Frame,
    /// All points, prepared, if they are kept.
    kept: Option<Vec<f32>>,
    workers: &'a Workers,
    services: &'a Services<'a>,
}

#[expect(clippy::len_without_is_empty, reason = "there is always one")]
impl<'a> Source<'a> {
    /// Looks at all examples once, or twice if they are to be kept; takes a sample of at most `sample` of them.
    ///
    /// # Errors
    /// Those of the rows, and that the work is no longer wanted.
    pub fn new(
        rows: &'a dyn Rows,
        space: Space,
        keep: bool,
        sample: usize,
        workers: &'a Workers,
        services: &'a Services<'a>,
    ) -> Result<(Self, Sample)> {
        Self::weighted(rows, None, space, keep, sample, workers, services)
    }

    /// The same for examples with weights: the sample is of those that count.
    ///
    /// # Errors
    /// Those of the rows, and that the work is no longer wanted.
    pub fn weighted(
        rows: &'a dyn Rows,
        weights: Option<&[f32]>,
        space: Space,
        keep: bool,
        sample: usize,
        workers: &'a Workers,
        services: &'a Services<'a>,
    ) -> Result<(Self, Sample)> {
        let (n, dim) = (rows.len(), rows.dim());
        let mut numbers: Vec<usize> = (0..n).filter(|&row| weight(weights, row) > 0.0).collect();
        if sample < numbers.len() {
            let mut rng = ChaCha8Rng::seed_from_u64(services.seed);
            rng.set_stream(u64::MAX);
            let drawn = rand::seq::index::sample(&mut rng, numbers.len(), sample);
            numbers = drawn.iter().map(|at| numbers[at]).collect();
            numbers.sort_unstable();
        }
        let mut sample = Vec::with_capacity(numbers.len() * dim);
        let (mut drawn, mut first) = (numbers.iter().copied().peekable(), 0);
        let (mut mean, mut largest) = (vec![0.0; dim], 0.0f32);
        rows.pass(&mut |batch| {
            while let Some(row) = drawn.next_if(|&row| row < first + batch.len()) {
                sample.extend_from_slice(batch.row(row - first));
            }
            first += batch.len();
            let blocks = workers.map(batch.values().chunks(BLOCK * dim), |block| {
                services.check_cancelled()?;
                let points = space.points(Embeddings::new(block, dim));
                Ok(totals(&points, dim))
            })?;
            for (sums, most) in blocks {
                mean.iter_mut().zip(sums).for_each(|(mean, sum)| *mean += sum);
                largest = largest.max(most);
            }
            Ok(())
        })?;
        mean.iter_mut().for_each(|mean| *mean /= n as f64);
        let frame = Frame::new(mean, largest);
        let mut points = sample.clone();
        space.enter(&mut points, dim);
        frame.prepare(&mut points);

        let mut source = Self { rows, space, frame, kept: None, workers, services };
        if keep {
            let mut kept = Vec::with_capacity(n * dim);
            source.pass(&mut |batch| {
                kept.extend_from_slice(batch);
                Ok(())
            })?;
            source.kept = Some(kept);
        }
        let weights = weights.map(|weights| numbers.iter().map(|&row| weights[row]).collect());
        Ok((source, Sample { numbers, weights, rows: sample, points }))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// How long each is.
    pub fn dim(&self) -> usize {
        self.rows.dim()
    }

    /// Calls `each` with all points, prepared, in order: every batch but the last has [`BATCH_ROWS`].
    ///
    /// # Errors
    /// Those of the rows and of `each`.
    pub fn pass(&self, each: &mut dyn FnMut(&[f32]) -> Result<()>) -> Result<()> {
        let dim = self.dim();
        if let Some(kept) = &self.kept {
            return kept.chunks(BATCH_ROWS * dim).try_for_each(each);
        }
        let mut buffer = Vec::new();
        self.rows.pass(&mut |batch| {
            buffer.clear();
            buffer.extend_from_slice(batch.values());
            self.workers.map(buffer.chunks_mut(BLOCK * dim), |block| {
                self.services.check_cancelled()?;
                self.space.enter(block, dim);
                self.frame.prepare(block);
                Ok(())
            })?;
            each(&buffer)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::examples;
    use compflow_api::Normalize;

    use super::*;

    fn collect(source: &Source<'_>) -> Vec<f32> {
        let mut points = Vec::new();
        source
            .pass(&mut |batch| {
                points.extend_from_slice(batch);
                Ok(())
            })
            .unwrap();
        points
    }

    #[test]
    fn kept_or_read_anew_the_points_are_the_same() {
        let dim = 3;
        let values = examples::uniform(BATCH_ROWS + 5000, dim, 1);
        let matrix = Embeddings::new(&values, dim);
        for normalize in [Normalize::None, Normalize::L2] {
            let space = Space { normalize, ..Space::default() };
            let (workers, services) = (Workers::alone(), Services::none());
            let source = |keep: bool, workers| Source::new(&matrix, space, keep, 100, workers, &services).unwrap();
            let (kept, sample) = source(true, &workers);
            let threads = Workers::new(3).unwrap();
            let (read, again) = source(false, &threads);
            assert_eq!(collect(&kept), collect(&read));
            assert_eq!(sample.rows, again.rows);
            assert_eq!(sample.rows.len(), 100 * dim);
            assert!(collect(&kept).iter().all(|value| value.abs() <= 1.0));
        }
    }

    #[test]
    fn the_sample_is_of_examples_that_count() {
        let values: Vec<f32> = (0..200).map(|row| row as f32).collect();
        let weights: Vec<f32> = (0..200).map(|row| (row % 4) as f32).collect();
        let matrix = Embeddings::new(&values, 1);
        let (workers, services) = (Workers::alone(), Services::none());
        for (wanted, expected) in [(50, 50), (1000, 150)] {
            let made =
                Source::weighted(&matrix, Some(&weights), Space::default(), true, wanted, &workers, &services);
            let (source, sample) = made.unwrap();
            assert_eq!((sample.numbers.len(), source.len()), (expected, 200));
            let found: Vec<f32> = sample.numbers.iter().map(|&row| values[row]).collect();
            assert_eq!(sample.rows, found);
            let found: Vec<f32> = sample.numbers.iter().map(|&row| weights[row]).collect();
            assert!(found.iter().all(|weight| *weight > 0.0) && sample.weights == Some(found));
        }
    }

    #[test]
    fn points_are_centred() {
        let matrix = Embeddings::new(&[1.0, 10.0, 2.0, 30.0], 2);
        let (workers, services) = (Workers::alone(), Services::none());
        let (source, sample) = Source::new(&matrix, Space::default(), true, 9, &workers, &services).unwrap();
        assert_eq!(collect(&source), [-0.5 / 64.0, -10.0 / 64.0, 0.5 / 64.0, 10.0 / 64.0]);
        assert_eq!(sample.rows, [1.0, 10.0, 2.0, 30.0]);
        assert_eq!(sample.points, collect(&source));
    }
}
