//! The means of a clustering's sets: the plane that shows them apart, and how clearly examples belong to theirs.
//!
//! They are the means of the examples, whatever a method itself takes for a cluster's place, so that methods can be compared.

use std::collections::BTreeMap;

use compflow_api::{Distance, Sets, Space};

use super::axes::{dot, leading, sum_of};

/// Directions of means are looked for among so many.
const SPAN: usize = 12;
/// Margins that take more multiplications than this are not worth the wait.
const MOST_WORK: usize = 300_000_000;

/// The means of the sets that occur, without the empty one.
pub(crate) struct Centres<'a> {
    points: &'a [f32],
    dim: usize,
    /// The number of the set of every example, if it belongs to one.
    of: Vec<Option<usize>>,
    counts: Vec<f64>,
    means: Vec<Vec<f64>>,
}

impl<'a> Centres<'a> {
    /// Of row-major points of length `dim`, and a set for each.
    pub(crate) fn new(points: &'a [f32], dim: usize, sets: &Sets) -> Self {
        let mut numbers: BTreeMap<&[u32], usize> = BTreeMap::new();
        let mut of = Vec::with_capacity(sets.len());
        for set in sets.iter() {
            let next = numbers.len();
            of.push((!set.is_empty()).then(|| *numbers.entry(set).or_insert(next)));
        }
        let mut counts = vec![0.0; numbers.len()];
        let mut means = vec![vec![0.0; dim]; numbers.len()];
        for (row, set) in points.chunks_exact(dim).zip(&of) {
            if let Some(set) = *set {
                counts[set] += 1.0;
                means[set].iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
            }
        }
        for (mean, count) in means.iter_mut().zip(&counts) {
            mean.iter_mut().for_each(|sum| *sum /= count);
        }
        Self { points, dim, of, counts, means }
    }

    /// Some examples in the plane in which the means differ most, measured by how much examples of one set differ: Fisher's
    /// discriminants, looked for among the directions in which means differ at all. Where two means leave one direction only,
    /// the other is `instead`. None if there are no two means.
    pub(crate) fn discriminants(&self, examples: &[usize], instead: &[[f64; 2]]) -> Option<Vec<[f64; 2]>> {
        let total: f64 = self.counts.iter().sum();
        if self.means.len() < 2 {
            return None;
        }
        let mut middle = vec![0.0; self.dim];
        for (mean, count) in self.means.iter().zip(&self.counts) {
            middle.iter_mut().zip(mean).for_each(|(sum, value)| *sum += value * count / total);
        }
        let apart: Vec<Vec<f64>> =
            self.means.iter().map(|mean| mean.iter().zip(&middle).map(|(a, b)| a - b).collect()).collect();
        let span = (self.means.len() - 1).min(self.dim).min(SPAN);
        let basis = self.basis(&apart, span);
        let within_basis = |row: &[f64]| -> Vec<f64> { basis.iter().map(|axis| dot(row, axis)).collect() };
        let places: Vec<Vec<f64>> = apart.iter().map(|apart| within_basis(apart)).collect();
        let rows: Vec<Vec<f64>> = examples
            .iter()
            .map(|example| {
                let row = self.points[example * self.dim..][..self.dim].iter();
                let row: Vec<f64> = row.zip(&middle).map(|(value, mean)| f64::from(*value) - mean).collect();
                within_basis(&row)
            })
            .collect();
        let mut within = vec![0.0; span * span];
        for (row, example) in rows.iter().zip(examples) {
            let Some(set) = self.of[*example] else { continue };
            let off: Vec<f64> = row.iter().zip(&places[set]).map(|(a, b)| a - b).collect();
            for i in 0..span {
                for j in 0..=i {
                    within[i * span + j] += off[i] * off[j] / total;
                }
            }
        }
        let factor = cholesky(within, span);
        let whitened: Vec<Vec<f64>> = places.iter().map(|place| solve(&factor, span, place)).collect();
        let found = leading(span, 2, |vector| {
            let mut image = vec![0.0; span];
            for (place, count) in whitened.iter().zip(&self.counts) {
                let along = dot(place, vector) * count / total;
                image.iter_mut().zip(place).for_each(|(sum, value)| *sum += along * value);
            }
            image
        });
        let first = &found.first()?.1;
        let project = |(example, row): (&usize, &Vec<f64>)| {
            let row = solve(&factor, span, row);
            let second = match found.get(1) {
                Some((_, axis)) => dot(&row, axis),
                None => instead.get(*example).map_or(0.0, |point| point[1]),
            };
            [dot(&row, first), second]
        };
        Some(examples.iter().zip(&rows).map(project).collect())
    }

    /// The directions in which means differ most, from how far they are `apart` from their middle. They are eigenvectors of the
    /// means' covariance, and found by those of the products of means, which are few where a mean has many numbers.
    fn basis(&self, apart: &[Vec<f64>], span: usize) -> Vec<Vec<f64>> {
        let weighted: Vec<Vec<f64>> = apart
            .iter()
            .zip(&self.counts)
            .map(|(apart, count)| apart.iter().map(|value| value * count.sqrt()).collect())
            .collect();
        let products: Vec<Vec<f64>> =
            weighted.iter().map(|a| weighted.iter().map(|b| dot(a, b)).collect()).collect();
        let found = leading(weighted.len(), span, |vector| products.iter().map(|row| dot(row, vector)).collect());
        let axis = |(_, shares): (f64, Vec<f64>)| {
            let mut axis = vec![0.0; self.dim];
            for (mean, share) in weighted.iter().zip(shares) {
                axis.iter_mut().zip(mean).for_each(|(sum, value)| *sum += share * value);
            }
            let length = dot(&axis, &axis).sqrt();
            axis.iter_mut().for_each(|value| *value /= length.max(f64::MIN_POSITIVE));
            axis
        };
        found.into_iter().map(axis).collect()
    }

    /// By how much the nearest other mean is farther than an example's own, for some examples: negative if it is nearer, NaN
    /// for those without a set. None if there are no two means, or too many.
    pub(crate) fn margins(&self, rows: &[usize], space: Space) -> Option<Vec<f64>> {
        if self.means.len() < 2 || rows.len() * self.means.len() * self.dim > MOST_WORK {
            return None;
        }
        let means: Vec<Vec<f32>> =
            self.means.iter().map(|mean| mean.iter().map(|value| *value as f32).collect()).collect();
        let margin = |row: &usize| {
            let Some(own) = self.of[*row] else { return f64::NAN };
            let point = &self.points[row * self.dim..][..self.dim];
            let squared = |mean: &Vec<f32>| sum_of(point, mean, |a, b| f64::from(a - b).powi(2));
            let others = means.iter().enumerate().filter(|(set, _)| *set != own).map(|(_, mean)| squared(mean));
            let [other, own] =
                [others.fold(f64::INFINITY, f64::min), squared(&means[own])].map(|squared| match space.distance {
                    Distance::SqEuclidean => squared,
                    Distance::Euclidean => squared.sqrt(),
                });
            other - own
        };
        Some(rows.iter().map(margin).collect())
    }
}

/// The lower factor of a symmetric matrix, of which the lower half is given; what is singular is lifted a little.
fn cholesky(mut matrix: Vec<f64>, size: usize) -> Vec<f64> {
    let trace: f64 = (0..size).map(|at| matrix[at * size + at]).sum();
    let lift = (1e-3 * trace / size as f64).max(1e-12);
    for at in 0..size {
        matrix[at * size + at] += lift;
    }
    for i in 0..size {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| matrix[i * size + k] * matrix[j * size + k]).sum();
            let rest = matrix[i * size + j] - known;
            matrix[i * size + j] = if i == j { rest.max(1e-300).sqrt() } else { rest / matrix[j * size + j] };
        }
    }
    matrix
}

/// Solves for a lower factor.
fn solve(factor: &[f64], size: usize, vector: &[f64]) -> Vec<f64> {
    let mut solved = vec![0.0; size];
    for i in 0..size {
        let known: f64 = (0..i).map(|k| factor[i * size + k] * solved[k]).sum();
        solved[i] = (vector[i] - known) / factor[i * size + i];
    }
    solved
}

#[cfg(test)]
mod tests {
    use compflow_api::Normalize;

    use super::*;

    /// Three sets that differ a little along the first two axes, in a cloud that is long in the third.
    fn cloud() -> (Vec<f32>, Sets) {
        let labels: Vec<u32> = (0..90).map(|at| at % 3).collect();
        let points = labels.iter().enumerate().flat_map(|(at, label)| {
            let wave = |step: f32| (at as f32 * step).sin();
            let [x, y] = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]][*label as usize];
            [x + 0.05 * wave(1.3), y + 0.05 * wave(2.1), 20.0 * wave(0.7)]
        });
        (points.collect(), Sets::singletons(&labels))
    }

    #[test]
    fn the_plane_shows_sets_apart_that_principal_components_do_not() {
        let (points, sets) = cloud();
        let all: Vec<usize> = (0..90).collect();
        let placed = Centres::new(&points, 3, &sets).discriminants(&all, &[]).unwrap();
        let distance = |a: usize, b: usize| {
            let [dx, dy] = [0, 1].map(|axis: usize| placed[a][axis] - placed[b][axis]);
            dx.hypot(dy)
        };
        // Examples 0, 3, 6, … are of one set, and 1, 4, 7, … of another.
        let within = (1..30).map(|at| distance(0, 3 * at)).fold(0.0, f64::max);
        let between = (0..30).map(|at| distance(0, 3 * at + 1)).fold(f64::INFINITY, f64::min);
        assert!(between > 2.0 * within, "{between} {within}");
    }

    #[test]
    fn two_sets_have_one_direction_and_one_has_none() {
        let points = [0.0, 1.0, 0.1, 2.0, 5.0, 1.0, 5.1, 2.0];
        let sets = Sets::singletons(&[0, 0, 1, 1]);
        let placed = Centres::new(&points, 2, &sets).discriminants(&[0, 1, 2, 3], &[[0.0, 7.0]; 4]).unwrap();
        assert!(placed.iter().all(|point| point[1] == 7.0 && point[0].is_finite()), "{placed:?}");
        assert!(Centres::new(&points, 2, &Sets::singletons(&[0; 4])).discriminants(&[], &[]).is_none());
    }

    #[test]
    fn the_margin_is_to_the_nearest_other_mean() {
        let points = [0.0, 2.0, 10.0, 4.5];
        let sets = Sets::from_iter([vec![0], vec![0], vec![1], vec![]]);
        let space = Space { normalize: Normalize::None, distance: Distance::Euclidean };
        let margins = Centres::new(&points, 1, &sets).margins(&[0, 2, 3], space).unwrap();
        assert_eq!(margins[..2], [9.0, 9.0]);
        assert!(margins[2].is_nan());
    }
}
