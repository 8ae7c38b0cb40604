//! The examples, batch by batch, as points prepared for distances by products.
//!
//! Whether they are read anew in every pass or kept in memory, they are prepared by the same arithmetic and come in the
//! same batches and blocks, so everything that is summed up over them is the same to the last bit.
//!
//! A first pass finds their mean and their size; every point is brought into the space and then into the [`Frame`] that
//! these make. The same pass takes a sample, which is all that starts are chosen from.

use crate::elsewhere::{self, LOOK};
use crate::frame::{Frame, totals};
use crate::weights::{count, weight};
use crate::workers::Workers;
use compflow_api::{BATCH_ROWS, Batch, Embeddings, Fold, Partial, Result, Rows, Services, Space};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

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

impl Sample {
    /// Those of which `is_kept` says so.
    #[must_use]
    pub fn keeping(&self, is_kept: impl Fn(usize) -> bool) -> Self {
        let dim = self.rows.len() / self.numbers.len().max(1);
        let kept: Vec<usize> = (0..self.numbers.len()).filter(|&at| is_kept(at)).collect();
        let rows = |all: &[f32]| kept.iter().flat_map(|&at| &all[at * dim..][..dim]).copied().collect();
        Self {
            numbers: kept.iter().map(|&at| self.numbers[at]).collect(),
            weights: self.weights.as_ref().map(|weights| kept.iter().map(|&at| weights[at]).collect()),
            rows: rows(&self.rows),
            points: rows(&self.points),
        }
    }
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

    /// The same for examples with weights: mean, size and sample are of those that count.
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
        let look = Look { space, weighted: weights.is_some(), numbers: drawn(n, weights, sample, services.seed) };
        let here = |first: usize, batch: Embeddings<'_>| {
            let weights = weights.map(|weights| &weights[first..]);
            look.partial(first, batch, weights, workers, services)
        };
        let Partial { mut sums, largest, rows: sample } = elsewhere::reduce(rows, LOOK, &look, here)?;
        sums.iter_mut().for_each(|sum| *sum /= count(weights, n) as f64);
        let frame = Frame::new(sums, largest.first().copied().unwrap_or(0.0) as f32);
        let numbers = look.numbers;
        let mut points = sample.clone();
        space.enter(&mut points, dim);
        frame.enter(&mut points);

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
            prepare(self.space, &self.frame, &mut buffer, dim, self.workers, self.services)?;
            each(&buffer)
        })
    }

    /// What all points add up to: what `partial` says of every batch, here, or elsewhere for that state.
    ///
    /// # Errors
    /// Those of the rows and of `partial`.
    pub fn reduce(
        &self,
        tag: u8,
        state: &impl Serialize,
        mut partial: impl FnMut(usize, &[f32]) -> Result<Partial>,
    ) -> Result<Partial> {
        if self.is_elsewhere() {
            return self.rows.reduce(&elsewhere::encode(tag, state)?);
        }
        let (mut fold, mut first, mut batches, dim) = (Fold::new(), 0, 0, self.dim());
        self.pass(&mut |batch| {
            fold.push(batches, partial(first, batch)?)?;
            first += batch.len() / dim;
            batches += 1;
            Ok(())
        })?;
        fold.finish(batches)
    }

    /// Whether they cannot be read here.
    pub fn is_elsewhere(&self) -> bool {
        self.rows.is_elsewhere()
    }

    /// How points are prepared, for somebody who has the examples.
    pub fn preparation(&self) -> Preparation {
        Preparation { space: self.space, frame: self.frame.clone() }
    }
}

/// How examples become points that are compared.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Preparation {
    space: Space,
    frame: Frame,
}

impl Preparation {
    /// Into this space, and then into the frame of all points.
    pub fn new(space: Space, frame: Frame) -> Self {
        Self { space, frame }
    }

    /// Prepares some points.
    pub fn prepare(&self, points: &mut [f32], dim: usize) {
        self.space.enter(points, dim);
        self.frame.enter(points);
    }

    /// A batch of points, prepared.
    ///
    /// # Errors
    /// If the work is no longer wanted.
    pub fn prepared(&self, batch: Embeddings<'_>, workers: &Workers, services: &Services<'_>) -> Result<Vec<f32>> {
        let mut points = batch.values().to_vec();
        prepare(self.space, &self.frame, &mut points, batch.dim(), workers, services)?;
        Ok(points)
    }
}

fn prepare(
    space: Space,
    frame: &Frame,
    points: &mut [f32],
    dim: usize,
    workers: &Workers,
    services: &Services<'_>,
) -> Result<()> {
    workers.map(points.chunks_mut(BLOCK * dim), |block| {
        services.check_cancelled()?;
        space.enter(block, dim);
        frame.enter(block);
        Ok(())
    })?;
    Ok(())
}

/// The examples of a sample, ascending: at most so many, of those that count.
fn drawn(n: usize, weights: Option<&[f32]>, sample: usize, seed: u64) -> Vec<usize> {
    let counting: Option<Vec<usize>> = weights.map(|_| (0..n).filter(|&row| weight(weights, row) > 0.0).collect());
    let count = counting.as_ref().map_or(n, Vec::len);
    if sample >= count {
        return counting.unwrap_or_else(|| (0..n).collect());
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::MAX);
    let drawn = rand::seq::index::sample(&mut rng, count, sample);
    let mut numbers: Vec<usize> =
        drawn.iter().map(|at| counting.as_ref().map_or(at, |counting| counting[at])).collect();
    numbers.sort_unstable();
    numbers
}

/// What the first pass is to find: the mean, the size, and a sample.
#[derive(Debug, Serialize, Deserialize)]
pub struct Look {
    space: Space,
    /// Whether examples that do not count are left out of mean and size.
    weighted: bool,
    /// The sample's, ascending.
    numbers: Vec<usize>,
}

impl Look {
    /// Of a batch: the sum of every dimension, the largest absolute value, and the examples of the sample.
    ///
    /// # Errors
    /// If the work is no longer wanted.
    pub fn partial_of(&self, batch: &Batch<'_>, workers: &Workers, services: &Services<'_>) -> Result<Partial> {
        let weights = batch.weights.filter(|_| self.weighted);
        self.partial(batch.first as usize, batch.examples, weights, workers, services)
    }

    fn partial(
        &self,
        first: usize,
        batch: Embeddings<'_>,
        weights: Option<&[f32]>,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Partial> {
        let (dim, end) = (batch.dim(), first + batch.len());
        let from = self.numbers.partition_point(|row| *row < first);
        let drawn = self.numbers[from..].iter().take_while(|row| **row < end);
        let rows = drawn.flat_map(|row| batch.row(row - first)).copied().collect();
        let blocks = (0..).step_by(BLOCK).zip(batch.values().chunks(BLOCK * dim));
        let blocks = workers.map(blocks, |(at, block)| {
            services.check_cancelled()?;
            let weights = weights.map(|weights| &weights[at..]);
            Ok(totals(&self.space.points(Embeddings::new(block, dim)), weights, dim))
        })?;
        let (mut sums, mut largest) = (vec![0.0; dim], 0.0f32);
        for (block, most) in blocks {
            sums.iter_mut().zip(block).for_each(|(sum, block)| *sum += block);
            largest = largest.max(most);
        }
        Ok(Partial { sums, largest: vec![f64::from(largest)], rows })
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
    fn others_keep_their_digits_however_far_an_example_lies_that_does_not_count() {
        let dim = 2;
        let values = examples::uniform(BATCH_ROWS + 5000, dim, 1);
        let services = Services::none();
        let (workers, space) = (Workers::alone(), Space::default());
        let matrix = Embeddings::new(&values, dim);
        let (alone, _) = Source::new(&matrix, space, true, 100, &workers, &services).unwrap();
        for far in [1e6, 1e25] {
            // Behind all others, so that blocks are the same.
            let mut all = values.clone();
            all.extend([far; 6]);
            let mut weights = vec![1.0; values.len() / dim];
            weights.extend([0.0; 3]);
            let matrix = Embeddings::new(&all, dim);
            let (source, sample) =
                Source::weighted(&matrix, Some(&weights), space, true, 100, &workers, &services).unwrap();
            let points = collect(&source);
            assert!(points[..values.len()] == collect(&alone)[..], "{far}");
            assert!(points.iter().all(|value| value.abs() <= 1e15));
            assert!(sample.numbers.iter().all(|&row| row < values.len() / dim));

            // Where the examples are elsewhere, the same is found of a batch.
            let look = Look { space, weighted: true, numbers: vec![0, BATCH_ROWS] };
            let first = BATCH_ROWS;
            let mut batch = Batch::new(first as u64, Embeddings::new(&all[first * dim..], dim));
            batch.weights = Some(&weights[first..]);
            let found = look.partial_of(&batch, &workers, &services).unwrap();
            assert!(found.largest[0] <= 1.0, "{far}: {:?}", found.largest);
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
