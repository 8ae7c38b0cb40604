//! The nearest and the second nearest of some points.
//!
//! All are compared by products in f32; which of the two is nearer, and how far both are, is then found with every digit, as
//! a run does.

use compflow_api::{Distance, Space};
use compflow_kernels::frame::{totals, unit};
use compflow_kernels::pairs::squared;
use compflow_kernels::products::{Fill, LANES, Rows, Vectors};
use pulp::Arch;

use super::assigner::{Choice, NOTHING};

/// Rows that are compared with all points before the next are.
const AT_ONCE: usize = 64;
/// Where what is far from all points is held, so that products remain finite.
const FAR: f32 = 1e15;

/// Points, prepared for comparison: shifted by their mean and scaled below 1, as are examples. Both are shifted by the same
/// numbers of 32 bits, so no digit of their differences is lost.
pub(super) struct Nearest {
    mean: Vec<f32>,
    scale: f32,
    vectors: Vectors,
    count: usize,
    dim: usize,
}

impl Nearest {
    /// Of row-major points, at least one.
    pub(super) fn new(points: &[f32], dim: usize) -> Self {
        let count = points.len() / dim;
        let (sums, largest) = totals(points, None, dim);
        let mean: Vec<f32> = sums.iter().map(|sum| (sum / count as f64) as f32).collect();
        // Scales beyond what 32 bits hold are held there.
        let scale = unit(2.0 * f64::from(largest)).clamp(1e-37, 1e37) as f32;
        let mut prepared = Vec::with_capacity(points.len());
        prepare(points, &mean, scale, &mut prepared);
        Self { vectors: Vectors::new(&prepared, dim), mean, scale, count, dim }
    }

    /// What becomes of examples that are points of the space.
    pub(super) fn choose(&self, examples: &[f32], points: &[f32], space: Space, out: &mut Vec<Choice>) {
        let stride = self.vectors.len() * LANES;
        let mut similarities = vec![0.0; AT_ONCE * stride];
        let (mut prepared, mut norms) = (Vec::with_capacity(AT_ONCE * self.dim), Vec::with_capacity(AT_ONCE));
        let origin = vec![0.0f32; self.dim];
        for chunk in examples.chunks(AT_ONCE * self.dim) {
            prepared.clear();
            prepare(chunk, &self.mean, self.scale, &mut prepared);
            norms.clear();
            // Only that no distance falls below 0 hangs on them, as all of an example's have the same.
            norms.extend(prepared.chunks_exact(self.dim).map(|row| squared(row, &origin) as f32));
            let rows = Rows { values: &prepared, norms: &norms, dim: self.dim, rooted: false };
            Arch::new().dispatch(Fill { rows, vectors: &self.vectors, out: &mut similarities, stride });
            for (example, row) in chunk.chunks_exact(self.dim).zip(similarities.chunks_exact(stride)) {
                let (first, second) = two_largest(&row[..self.count]);
                let distance = |at: usize| far(example, &points[at * self.dim..][..self.dim], space.distance);
                let mut best = (first, distance(first));
                let mut next = second.map(|second| (second, distance(second)));
                // The first of equally near ones is taken.
                if let Some(other) = next.filter(|other| (other.1, other.0) < (best.1, best.0)) {
                    next = Some(best);
                    best = other;
                }
                let (runner_up, farther) = next.map_or((NOTHING, f64::NAN), |(at, far)| (at as u32, far));
                out.push(Choice {
                    set: best.0 as u32,
                    runner_up,
                    distance: best.1,
                    runner_up_distance: farther,
                    margin: farther - best.1,
                    posterior: f64::NAN,
                    log_density: f64::NAN,
                });
            }
        }
    }
}

/// Shifts and scales rows.
fn prepare(rows: &[f32], mean: &[f32], scale: f32, out: &mut Vec<f32>) {
    for row in rows.chunks_exact(mean.len()) {
        out.extend(row.iter().zip(mean).map(|(value, mean)| ((value - mean) * scale).clamp(-FAR, FAR)));
    }
}

/// [`Space::distance`], with sums that do not wait for one another.
fn far(a: &[f32], b: &[f32], distance: Distance) -> f64 {
    let squared = squared(a, b);
    match distance {
        Distance::SqEuclidean => squared,
        Distance::Euclidean => squared.sqrt(),
    }
}

/// Where the largest value is and the second largest; of equal ones the first.
fn two_largest(values: &[f32]) -> (usize, Option<usize>) {
    let (mut best, mut next) = ((0, f32::NEG_INFINITY), (0, f32::NEG_INFINITY));
    for (at, &value) in values.iter().enumerate() {
        if value > best.1 {
            next = best;
            best = (at, value);
        } else if value > next.1 {
            next = (at, value);
        }
    }
    // Values may all be alike, or so small that nothing is above them.
    let other = if next.1 > f32::NEG_INFINITY { next.0 } else { usize::from(best.0 == 0) };
    (best.0, Some(other).filter(|_| values.len() > 1))
}

#[cfg(test)]
mod tests {
    use compflow_kernels::testing::examples;

    use super::*;

    #[test]
    fn they_are_those_that_a_plain_loop_finds() {
        for (n, count, dim) in [(1, 1, 1), (70, 2, 3), (130, 19, 32), (65, 40, 5)] {
            let (x, points) = (examples::uniform(n, dim, 1), examples::uniform(count, dim, 2));
            let space = Space::default();
            let mut found = Vec::new();
            Nearest::new(&points, dim).choose(&x, &points, space, &mut found);
            assert_eq!(found.len(), n);
            for (example, choice) in x.chunks_exact(dim).zip(&found) {
                let mut all: Vec<(f64, usize)> = points
                    .chunks_exact(dim)
                    .enumerate()
                    .map(|(at, point)| (space.distance(example, point), at))
                    .collect();
                all.sort_by(|a, b| a.partial_cmp(b).unwrap());
                assert_eq!((choice.distance, choice.set), (all[0].0, all[0].1 as u32));
                match all.get(1) {
                    Some(next) => {
                        assert_eq!((choice.runner_up_distance, choice.runner_up), (next.0, next.1 as u32))
                    }
                    None => assert!(choice.runner_up == NOTHING && choice.margin.is_nan()),
                }
            }
        }
    }

    #[test]
    fn the_first_of_equal_points_is_taken_and_the_next_is_the_runner_up() {
        let mut found = Vec::new();
        let points = [2.0, 1.0, 1.0];
        Nearest::new(&points, 1).choose(&[1.5, 0.0], &points, Space::default(), &mut found);
        assert_eq!((found[0].set, found[0].runner_up, found[0].margin), (0, 1, 0.0));
        assert_eq!((found[1].set, found[1].runner_up, found[1].margin), (1, 2, 0.0));
        assert_eq!(two_largest(&[f32::NEG_INFINITY; 3]), (0, Some(1)));
    }

    #[test]
    fn what_is_far_from_everything_is_still_compared() {
        let mut found = Vec::new();
        let points = [0.0, 0.0, 1.0, 0.0];
        Nearest::new(&points, 2).choose(&[1e30, 0.0, f32::MAX, f32::MAX], &points, Space::default(), &mut found);
        assert!(found.iter().all(|choice| choice.distance.is_finite()));
    }
}
