//! The similarities of all pairs of examples: S(i, j) = -distance, and on the diagonal the preference.
//!
//! Distances are summed up in f64 and kept in f32. Coordinates are first divided by a power of two that brings them
//! to about 1, which changes no digit and keeps squares of huge and of tiny values inside the range of f32; whatever
//! enters or leaves in the user's units goes through [`Similarities::restore`] and its inverse.

use compflow_api::{Distance, Result, Services, Task};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use compflow_kernels::frame::unit;
use compflow_kernels::pairs::Axes;
use compflow_kernels::workers::Workers;

/// Rows of a matrix of n×n are shared out in about this many blocks, enough to keep many threads busy to the end.
const BLOCKS: usize = 64;
/// Fewest rows per block.
const GRAIN: usize = 8;

/// How many rows of an n×n matrix one thread works on at a time; whatever is summed up over blocks depends on it, so
/// it depends on the size only.
pub(crate) fn block_rows(n: usize) -> usize {
    n.div_ceil(BLOCKS).max(GRAIN)
}

/// An n×n matrix of similarities.
pub(crate) struct Similarities {
    /// Row-major.
    values: Vec<f32>,
    n: usize,
    /// What distances were multiplied with.
    scale: f64,
    /// Of every diagonal entry: the standard normal number that its noise is made of.
    noise: Vec<f32>,
    preference: f64,
}

impl Similarities {
    /// How many bytes the similarities of `n` points of length `dim` take.
    pub(crate) fn memory(n: usize, dim: usize) -> u64 {
        let (n, dim) = (n as u64, dim as u64);
        // The matrix, two copies of the points while it is filled, and the noise of the diagonal.
        n.saturating_mul(n).saturating_mul(4).saturating_add(n.saturating_mul(8 * dim + 4))
    }

    /// Minus the distances in the task's space; 0 on the diagonal.
    pub(crate) fn new(task: &Task<'_>, workers: &Workers, services: &Services<'_>) -> Result<Self> {
        let (n, dim, mut points) = (task.embeddings.len(), task.embeddings.dim(), task.points().into_owned());
        let largest = points.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
        let unit = unit(f64::from(largest));
        points.iter_mut().for_each(|value| *value = (f64::from(*value) * unit) as f32);
        let axes = Axes::new(points.chunks_exact(dim), dim);

        let (rooted, rows) = (task.space.distance == Distance::Euclidean, block_rows(n));
        let mut values = vec![0.0; n * n];
        let blocks = values.chunks_mut(rows * n).zip(points.chunks(rows * dim));
        workers.map(blocks, |(out, points)| {
            services.check_cancelled()?;
            axes.similarities(points, rooted, out, n);
            Ok(())
        })?;
        let scale = if rooted { unit } else { unit * unit };
        Ok(Self { values, n, scale, noise: vec![0.0; n], preference: 0.0 })
    }

    /// How many examples.
    pub(crate) fn len(&self) -> usize {
        self.n
    }

    /// All rows, one after the other.
    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// One row.
    pub(crate) fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.n..][..self.n]
    }

    /// A similarity in the user's units.
    pub(crate) fn restore(&self, similarity: f64) -> f64 {
        similarity / self.scale
    }

    /// A similarity in the units of this matrix. What is beyond f32 even after scaling becomes the largest there is, and
    /// so becomes what is not 0 the smallest; whether that was so stands beside it.
    pub(crate) fn convert(&self, similarity: f64) -> (f64, bool) {
        let (largest, smallest) = (f64::from(f32::MAX) / (8.0 * self.n as f64), f64::from(f32::MIN_POSITIVE));
        let scaled = similarity * self.scale;
        if scaled.abs() > largest {
            (largest.copysign(similarity), true)
        } else if similarity != 0.0 && scaled.abs() < smallest {
            (smallest.copysign(similarity), true)
        } else {
            (scaled, false)
        }
    }

    /// How many pairs of examples that differ are 0 apart all the same; `firsts` are the first of those that are equal.
    /// Asks for a matrix as [`new`](Self::new) made it.
    pub(crate) fn vanished(&self, firsts: Option<&[u32]>) -> usize {
        let zeros: usize = self.values.iter().map(|value| usize::from(*value == 0.0)).sum();
        let mut sizes = vec![1; self.n];
        if let Some(firsts) = firsts {
            sizes.fill(0);
            firsts.iter().for_each(|&first| sizes[first as usize] += 1);
        }
        (zeros - sizes.iter().map(|size| size * size).sum::<usize>()) / 2
    }

    /// The preference, as [`set_preference`](Self::set_preference) was given it.
    pub(crate) fn preference(&self) -> f64 {
        self.preference
    }

    /// The similarity of every two examples, if it is the same for all; of a single example, with itself.
    pub(crate) fn mutual(&self) -> Option<f32> {
        let first = self.values[self.n - 1];
        let differs = |row: usize| {
            let row_values = self.row(row);
            row_values[..row].iter().chain(&row_values[row + 1..]).any(|value| *value != first)
        };
        (!(0..self.n).any(differs)).then_some(first)
    }

    /// The smallest distance of examples that are not equal, and the smallest sum of the distances of all examples from one of them.
    pub(crate) fn extent(&self) -> (f64, f64) {
        let (mut smallest, mut least) = (f32::INFINITY, f64::INFINITY);
        for (index, row) in self.values.chunks_exact(self.n).enumerate() {
            let others = || row[..index].iter().chain(&row[index + 1..]).map(|value| -value);
            // Noise alone puts equal examples this far apart at most.
            let differs = |distance: &f32| *distance > 1000.0 * f32::MIN_POSITIVE;
            smallest = others().filter(differs).fold(smallest, f32::min);
            least = least.min(others().map(f64::from).sum());
        }
        (f64::from(smallest), least)
    }

    /// A percentile of the whole matrix, linear between neighbours, as NumPy has it. Asks for a matrix as
    /// [`new`](Self::new) made it: symmetric, and 0 on the diagonal, the highest value there is.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let n = self.n;
        let mut upper: Vec<f32> = (0..n).flat_map(|row| &self.row(row)[row + 1..]).copied().collect();
        let position = percent / 100.0 * (n * n - 1) as f64;
        let mut at = |rank: usize| match rank / 2 {
            // Every pair stands there twice, and behind all of them the diagonal.
            pair if pair < upper.len() => f64::from(*upper.select_nth_unstable_by(pair, f32::total_cmp).1),
            _ => 0.0,
        };
        let (low, high) = (at(position.floor() as usize), at(position.ceil() as usize));
        low + (high - low) * position.fract()
    }

    /// Makes ties improbable, as scikit-learn does: adds (ε·S + 100·tiny)·N(0, 1) everywhere, with ε and tiny those of
    /// f32, as f64's would be lost in it. Every row has a random stream of its own.
    pub(crate) fn add_noise(&mut self, workers: &Workers, services: &Services<'_>) -> Result<()> {
        let (n, rows) = (self.n, block_rows(self.n));
        let blocks = self.values.chunks_mut(rows * n).zip(self.noise.chunks_mut(rows)).enumerate();
        workers.map(blocks, |(block, (values, noise))| {
            services.check_cancelled()?;
            for (at, (row, own)) in values.chunks_exact_mut(n).zip(noise).enumerate() {
                let index = block * rows + at;
                let mut rng = ChaCha8Rng::seed_from_u64(services.seed);
                rng.set_stream(index as u64);
                for (column, value) in row.iter_mut().enumerate() {
                    let normal: f32 = StandardNormal.sample(&mut rng);
                    if column == index {
                        *own = normal;
                    } else {
                        *value = disturbed(*value, normal);
                    }
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Adds noise made of given numbers, one per entry.
    #[cfg(test)]
    pub(crate) fn add_given_noise(&mut self, normals: &[f32]) {
        self.values.iter_mut().zip(normals).for_each(|(value, &normal)| *value = disturbed(*value, normal));
        self.noise = normals.iter().step_by(self.n + 1).copied().collect();
    }

    /// Puts the preference, in the units of this matrix, on the diagonal, noise included. In these units points are
    /// about 1 long; beyond that noise does not grow with the preference, else it would outweigh similarities.
    pub(crate) fn set_preference(&mut self, preference: f64) {
        self.preference = preference;
        for (index, &normal) in self.noise.iter().enumerate() {
            let (value, noise) = (preference as f32, preference.clamp(-1.0, 1.0) as f32);
            self.values[index * (self.n + 1)] = value + (disturbed(noise, normal) - noise);
        }
    }
}

fn disturbed(value: f32, normal: f32) -> f32 {
    value + (f32::EPSILON * value + 100.0 * f32::MIN_POSITIVE) * normal
}

#[cfg(test)]
mod tests {
    use compflow_api::{Embeddings, Space};

    use super::*;
    use compflow_kernels::testing::examples;

    fn similarities(values: &[f32], dim: usize, distance: Distance) -> Similarities {
        let mut task = Task::new(Embeddings::new(values, dim));
        task.space.distance = distance;
        Similarities::new(&task, &Workers::alone(), &Services::none()).unwrap()
    }

    #[test]
    fn they_are_minus_the_distances_of_the_space() {
        let values = examples::uniform(70, 5, 1);
        for distance in [Distance::SqEuclidean, Distance::Euclidean] {
            let found = similarities(&values, 5, distance);
            let space = Space { distance, ..Space::default() };
            for (row, a) in values.chunks_exact(5).enumerate() {
                for (column, b) in values.chunks_exact(5).enumerate() {
                    let (found, expected) = (f64::from(found.row(row)[column]), -space.distance(a, b));
                    assert!((found - expected).abs() <= 1e-7 * expected.abs());
                }
            }
        }
    }

    #[test]
    fn huge_and_tiny_points_stay_apart() {
        for unit in [1e-30, 1e30] {
            let found = similarities(&[0.0, unit, 3.0 * unit], 1, Distance::SqEuclidean);
            let restored = found.restore(f64::from(found.row(0)[2]));
            assert!((restored / f64::from(unit).powi(2) + 9.0).abs() < 1e-5, "{restored}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_whole_matrix() {
        let found = similarities(&[0.0, 1.0, 3.0], 1, Distance::Euclidean);
        // In units of 4, sorted: -3 -3 -2 -2 -1 -1 0 0 0.
        for (percent, expected) in
            [(0.0, -3.0), (25.0, -2.0), (50.0, -1.0), (68.75, -0.5), (43.75, -1.5), (100.0, 0.0)]
        {
            assert_eq!(found.restore(found.percentile(percent)), expected, "{percent}");
        }
        assert_eq!(similarities(&[7.0], 1, Distance::Euclidean).percentile(50.0), 0.0);
    }

    #[test]
    fn noise_is_of_the_size_of_rounding_and_the_same_for_any_number_of_threads() {
        let values = examples::uniform(100, 3, 2);
        let before = similarities(&values, 3, Distance::SqEuclidean);
        let disturbed = |threads: usize, seed: u64| {
            let mut found = similarities(&values, 3, Distance::SqEuclidean);
            let services = Services { seed, ..Services::none() };
            found.add_noise(&Workers::new(threads).unwrap(), &services).unwrap();
            found.set_preference(-1.0);
            found.values
        };
        let after = disturbed(1, 0);
        assert_eq!(after, disturbed(3, 0));
        assert_ne!(after, disturbed(1, 1));
        for (index, (before, after)) in before.values.iter().zip(&after).enumerate() {
            let before = if index % 101 == 0 { -1.0 } else { *before };
            assert!((before - after).abs() <= 6.0 * f32::EPSILON * before.abs());
        }
    }

    #[test]
    fn equal_distances_are_noticed() {
        assert_eq!(similarities(&[2.0; 6], 2, Distance::SqEuclidean).mutual(), Some(0.0));
        assert_eq!(similarities(&[2.0], 1, Distance::SqEuclidean).mutual(), Some(0.0));
        assert!(similarities(&[0.0, 1.0], 1, Distance::SqEuclidean).mutual().is_some_and(|value| value < 0.0));
        assert_eq!(similarities(&[0.0, 1.0, 2.0], 1, Distance::SqEuclidean).mutual(), None);
    }
}
