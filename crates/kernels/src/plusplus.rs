//! Initial centres by greedy k-means++.
//!
//! The first centre is any example. Each further one is the best of 2+⌊ln k⌋ examples drawn with a probability
//! proportional to their squared distance from the nearest centre so far: the one after which these distances sum up
//! to the least. Examples with weights are drawn, and their distances summed up, as if they were there so many times.
//! Cost: n·p·k·ln k.
//!
//! Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007, pages 1027-1035,
//! doi:10.5555/1283383.1283494; the trials are those of its section 7 and of scikit-learn.

use compflow_api::{Result, Services};
use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};
use rand::{Rng, RngExt};

use crate::points::Points;
use crate::weights::weight;
use crate::workers::Workers;

/// Rows multiplied at a time.
const ROWS: usize = 1024;

/// Examples tried for each of `k` centres.
pub fn trials(k: usize) -> usize {
    2 + libm::log(k as f64) as usize
}

/// `k` centres, row-major.
pub fn seed(
    points: &Points,
    k: usize,
    rng: &mut impl Rng,
    workers: &Workers,
    services: &Services<'_>,
) -> Result<Vec<f32>> {
    let mut seeding = Seeding::new(points, trials(k), workers, services);
    let mut centres = Vec::with_capacity(k * points.dim());
    let first = [match points.weights() {
        None => rng.random_range(0..points.len()),
        Some(weights) => draw(weights, rng),
    }];
    centres.extend_from_slice(points.row(seeding.take_best(&first)?));
    let mut drawn = vec![0; trials(k)];
    for _ in 1..k {
        drawn.fill_with(|| seeding.draw(rng));
        centres.extend_from_slice(points.row(seeding.take_best(&drawn)?));
    }
    Ok(centres)
}

/// Draws with a probability proportional to the weights; if all are 0, or one is infinite, any.
pub fn draw(weights: &[f32], rng: &mut impl Rng) -> usize {
    let total = weights.iter().map(|&weight| f64::from(weight)).sum();
    draw_from_blocks(weights.len(), |row| f64::from(weights[row]), weights.len(), &[total], rng)
}

/// [`draw`] from `n` weights with the sums of each `block` of them known, so that only one block is looked at.
fn draw_from_blocks(
    n: usize,
    weight: impl Fn(usize) -> f64,
    block: usize,
    sums: &[f64],
    rng: &mut impl Rng,
) -> usize {
    let total: f64 = sums.iter().sum();
    if total <= 0.0 || !total.is_finite() {
        return rng.random_range(0..n);
    }
    let mut left = rng.random::<f64>() * total;
    for (at, &sum) in sums.iter().enumerate() {
        if left >= sum {
            left -= sum;
            continue;
        }
        let rows = at * block..n.min((at + 1) * block);
        for row in rows.clone() {
            if left < weight(row) {
                return row;
            }
            left -= weight(row);
        }
        // Rounding used up the block: the last of it that could have been drawn.
        return rows.rev().find(|&row| weight(row) > 0.0).unwrap_or(0);
    }
    (0..n).rev().find(|&row| weight(row) > 0.0).unwrap_or(0)
}

/// The squared distance of every point from the nearest of the centres taken so far.
struct Seeding<'a> {
    points: &'a Points,
    workers: &'a Workers,
    services: &'a Services<'a>,
    /// Infinite before the first centre is taken.
    closest: Vec<f32>,
    /// Σ `closest` of each block, weighted.
    potentials: Vec<f64>,
    /// What `closest` would be with each of the examples tried: a row per point, a column per trial.
    tried: Vec<f32>,
}

impl<'a> Seeding<'a> {
    fn new(points: &'a Points, trials: usize, workers: &'a Workers, services: &'a Services<'a>) -> Self {
        let closest = vec![f32::INFINITY; points.len()];
        Self {
            points,
            workers,
            services,
            closest,
            potentials: Vec::new(),
            tried: vec![0.0; trials * points.len()],
        }
    }

    /// Draws a row with a probability proportional to `closest`, and to its weight.
    fn draw(&self, rng: &mut impl Rng) -> usize {
        let weight = |row: usize| weight(self.points.weights(), row) * f64::from(self.closest[row]);
        draw_from_blocks(self.points.len(), weight, self.points.block_rows(), &self.potentials, rng)
    }

    /// Takes the best of these rows as a centre; returns which.
    fn take_best(&mut self, rows: &[usize]) -> Result<usize> {
        let (points, dim, trials) = (self.points, self.points.dim(), rows.len());
        let centres: Vec<f32> = rows.iter().flat_map(|&row| points.row(row)).copied().collect();
        let centres = ArrayView2::from_shape((trials, dim), &centres)?;
        let norms: Vec<f32> = rows.iter().map(|&row| points.norms()[row]).collect();
        let per_block = points.block_rows();
        let firsts = (0..points.len()).step_by(per_block);
        let blocks = firsts
            .zip(points.blocks())
            .zip(points.norms().chunks(per_block))
            .zip(self.closest.chunks(per_block))
            .zip(self.tried.chunks_mut(per_block * trials));
        let services = self.services;
        let potentials = self.workers.map(blocks, |((((mut first, block), block_norms), closest), tried)| {
            let mut potentials = vec![0.0; trials];
            let chunks = block.chunks(ROWS * dim).zip(block_norms.chunks(ROWS)).zip(closest.chunks(ROWS));
            for (((chunk, chunk_norms), closest), tried) in chunks.zip(tried.chunks_mut(ROWS * trials)) {
                services.check_cancelled()?;
                let rows = chunk_norms.len();
                let chunk = ArrayView2::from_shape((rows, dim), chunk)?;
                let mut products = ArrayViewMut2::from_shape((rows, trials), &mut *tried)?;
                general_mat_mul(-2.0, &chunk, &centres.t(), 0.0, &mut products);
                let examples = tried.chunks_exact_mut(trials).zip(chunk_norms).zip(closest);
                for (row, ((tried, norm), closest)) in (first..).zip(examples) {
                    let weight = weight(points.weights(), row);
                    for ((tried, centre_norm), potential) in tried.iter_mut().zip(&norms).zip(&mut potentials) {
                        *tried = (*tried + (norm + centre_norm)).max(0.0).min(*closest);
                        *potential += weight * f64::from(*tried);
                    }
                }
                first += rows;
            }
            Ok(potentials)
        })?;
        let potential = |trial: usize| potentials.iter().map(|block| block[trial]).sum::<f64>();
        let best = (0..trials).min_by(|&a, &b| potential(a).total_cmp(&potential(b))).unwrap_or(0);
        for (closest, tried) in self.closest.iter_mut().zip(self.tried.chunks_exact(trials)) {
            *closest = tried[best];
        }
        self.potentials = potentials.iter().map(|block| block[best]).collect();
        Ok(rows[best])
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::testing::examples;

    fn prepare(values: &[f32], dim: usize) -> Points {
        Points::new(values.to_vec(), dim, 1024, &Workers::alone(), &Services::none()).unwrap()
    }

    fn squared(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
    }

    #[test]
    fn the_best_of_the_rows_tried_is_taken() {
        let points = prepare(&examples::uniform(3000, 5, 2), 5);
        let (workers, services) = (Workers::alone(), Services::none());
        let mut seeding = Seeding::new(&points, 3, &workers, &services);
        let mut taken = vec![seeding.take_best(&[17]).unwrap()];
        for tried in [[3, 1400, 2999], [5, 5, 9], [100, 17, 3]] {
            let potential = |row: usize| {
                let centres = || taken.iter().chain(std::iter::once(&row));
                let nearest = |at: usize| {
                    centres().map(|&centre| squared(points.row(at), points.row(centre))).fold(f64::MAX, f64::min)
                };
                (0..3000).map(nearest).sum::<f64>()
            };
            let expected = tried.into_iter().min_by(|&a, &b| potential(a).total_cmp(&potential(b))).unwrap();
            let least = potential(expected);
            taken.push(seeding.take_best(&tried).unwrap());
            assert_eq!(*taken.last().unwrap(), expected);
            let found: f64 = seeding.potentials.iter().sum();
            assert!((found - least).abs() < 1e-5 * least, "{found} instead of {least}");
        }
    }

    #[test]
    fn rows_are_drawn_in_proportion_to_their_distance() {
        let points = prepare(&[0.0, 1.0, 0.0, 3.0], 1);
        let (workers, services) = (Workers::alone(), Services::none());
        let mut seeding = Seeding::new(&points, 1, &workers, &services);
        seeding.take_best(&[0]).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut drawn = [0; 4];
        for _ in 0..10_000 {
            drawn[seeding.draw(&mut rng)] += 1;
        }
        // Squared distances 1 and 9; the standard deviation of the first count is 30.
        assert_eq!((drawn[0], drawn[2]), (0, 0));
        assert!((850..1150).contains(&drawn[1]), "{drawn:?}");
    }

    #[test]
    fn rows_are_drawn_as_often_as_they_count() {
        let (workers, services) = (Workers::alone(), Services::none());
        let weighted = |weights| {
            Points::weighted(vec![0.0, 1.0, 1.0, 3.0], Some(weights), 1, 1024, &workers, &services).unwrap()
        };
        let points = weighted(&[1.0, 8.0, 0.0, 2.0]);
        let mut seeding = Seeding::new(&points, 1, &workers, &services);
        seeding.take_best(&[0]).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut drawn = [0; 4];
        (0..13_000).for_each(|_| drawn[seeding.draw(&mut rng)] += 1);
        // Squared distances 1 and 9, eight and two times; the standard deviation of a count is 55.
        assert_eq!((drawn[0], drawn[2]), (0, 0));
        assert!((3700..4300).contains(&drawn[1]), "{drawn:?}");
        // Nor is the first centre one that does not count.
        let points = weighted(&[0.0, 0.0, 0.0, 5.0]);
        let centres = seed(&points, 1, &mut rng, &workers, &services).unwrap();
        assert_eq!(centres, points.row(3));
    }

    #[test]
    fn weights_are_probabilities() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut drawn = [0; 3];
        (0..10_000).for_each(|_| drawn[draw(&[0.0, 1.0, 9.0], &mut rng)] += 1);
        assert!(drawn[0] == 0 && (850..1150).contains(&drawn[1]), "{drawn:?}");
        for weights in [[0.0; 4], [f32::INFINITY; 4]] {
            assert!((0..100).map(|_| draw(&weights, &mut rng)).any(|at| at == 3));
        }
    }

    #[test]
    fn fewer_distinct_points_than_centres_are_no_obstacle() {
        let points = prepare(&[2.0; 12], 3);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let centres = seed(&points, 4, &mut rng, &Workers::alone(), &Services::none()).unwrap();
        assert_eq!(centres, [0.0; 12]);
    }

    #[test]
    fn separated_groups_get_a_centre_each() {
        let (values, truth) = examples::blobs(20, 60, 4, 3);
        let points = prepare(&values, 4);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let centres = seed(&points, 20, &mut rng, &Workers::alone(), &Services::none()).unwrap();
        let group = |centre: &[f32]| truth[(0..points.len()).position(|row| points.row(row) == centre).unwrap()];
        let mut groups: Vec<u32> = centres.chunks_exact(4).map(group).collect();
        groups.sort_unstable();
        assert_eq!(groups, (0..20).collect::<Vec<_>>());
    }
}
