//! The nearest centre of every example, and what the examples of each centre add up to.
//!
//! argmin_j ‖x-c_j‖² = argmin_j ‖c_j‖² - 2x·c_j: a [product](crate::products) and a comparison per pair. Both run along
//! centres, in loops that are compiled for several generations of processors, of which the one at hand is chosen at run
//! time. Cost: n·k·p in f32 and n·p additions in f64.

use std::ops::Range;

use compflow_api::{Result, Services};
use pulp::{Arch, Simd, WithSimd};

use crate::points::Points;
use crate::products::{LANES, Pair, ROWS, Vectors, multiply};
use crate::workers::Workers;

/// Rows compared with some vectors before the next are looked at: both stay in the cache.
const AT_ONCE: usize = 64;
/// Vectors that are compared with one group of rows before the next group is.
const TOGETHER: usize = 16;
/// Rows between two looks at whether the work is still wanted.
const CHUNK: usize = 4096;

/// What the examples add up to, by the centre they were given to.
pub struct Totals {
    /// Σx of each centre's examples, row-major, weighted.
    pub sums: Vec<f64>,
    /// How many there are: the sum of their weights.
    pub counts: Vec<f64>,
    /// How many have another label than before.
    pub changed: u64,
}

impl Totals {
    /// Of no examples.
    pub fn zero(k: usize, dim: usize) -> Self {
        Self { sums: vec![0.0; k * dim], counts: vec![0.0; k], changed: 0 }
    }

    /// Adds rows that are given to these centres, and labels them so.
    #[inline(always)]
    fn count(&mut self, rows: &[f32], weights: Option<&[f32]>, labels: &mut [u32], nearest: &[u32]) {
        let dim = self.sums.len() / self.counts.len();
        let rows = rows.chunks_exact(dim).zip(labels).zip(nearest);
        match weights {
            None => rows.for_each(|((row, label), &nearest)| self.give(row, 1.0, label, nearest)),
            Some(weights) => rows.zip(weights).for_each(|(((row, label), &nearest), &weight)| {
                self.give(row, f64::from(weight), label, nearest);
            }),
        }
    }

    /// Adds one of them.
    #[inline(always)]
    fn give(&mut self, row: &[f32], weight: f64, label: &mut u32, nearest: u32) {
        self.changed += u64::from(*label != nearest);
        *label = nearest;
        self.counts[nearest as usize] += weight;
        let sum = &mut self.sums[nearest as usize * row.len()..][..row.len()];
        sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += weight * f64::from(value));
    }

    /// Adds a row that belongs to this centre.
    pub fn add_row(&mut self, row: &[f32], weight: f64, centre: u32) {
        self.give(row, weight, &mut { centre }, centre);
    }

    /// Adds what other examples add up to.
    pub fn add(&mut self, other: &Self) {
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, other)| *sum += other);
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, other)| *count += other);
        self.changed += other.changed;
    }

    /// The mean of each centre's examples; a centre without any that count stays where it is.
    pub fn means(&self, centres: &[f32]) -> Vec<f32> {
        let dim = centres.len() / self.counts.len();
        let mut means = centres.to_vec();
        for ((mean, sum), &count) in means.chunks_exact_mut(dim).zip(self.sums.chunks_exact(dim)).zip(&self.counts)
        {
            if count > 0.0 {
                mean.iter_mut().zip(sum).for_each(|(mean, sum)| *mean = (sum / count) as f32);
            }
        }
        means
    }

    /// The sum of squared distances of all examples from the centres they were given to: no second look at them is
    /// needed, as Σ‖x-c‖² = Σ‖x‖² - 2Σ c·s + Σ N‖c‖² with s the sums and N the counts. `scatter` is Σ‖x‖².
    pub fn inertia(&self, scatter: f64, centres: &[f32]) -> f64 {
        let dim = centres.len() / self.counts.len();
        let mut inertia = scatter;
        for ((centre, sum), &count) in centres.chunks_exact(dim).zip(self.sums.chunks_exact(dim)).zip(&self.counts)
        {
            for (&c, s) in centre.iter().zip(sum) {
                inertia += f64::from(c) * (count * f64::from(c) - 2.0 * s);
            }
        }
        // What should be nothing may come out below it.
        inertia.max(0.0)
    }
}

/// Labels every point with its nearest centre, the first of equally near ones.
pub fn assign(
    points: &Points,
    centres: &[f32],
    labels: &mut [u32],
    workers: &Workers,
    services: &Services<'_>,
) -> Result<Totals> {
    let (dim, k) = (points.dim(), centres.len() / points.dim());
    let vectors = Vectors::new(centres, dim);
    let blocks = points.blocks().zip(labels.chunks_mut(points.block_rows())).enumerate();
    let partial = workers.map(blocks, |(block, (rows, labels))| {
        let mut totals = Totals::zero(k, dim);
        let mut first = block * points.block_rows();
        for (chunk, labels) in rows.chunks(CHUNK * dim).zip(labels.chunks_mut(CHUNK)) {
            services.check_cancelled()?;
            let weights = points.weights().map(|weights| &weights[first..][..labels.len()]);
            assign_rows(chunk, weights, &vectors, labels, &mut totals);
            first += labels.len();
        }
        Ok(totals)
    })?;
    let mut totals = Totals::zero(k, dim);
    partial.iter().for_each(|partial| totals.add(partial));
    Ok(totals)
}

/// Labels every row with its nearest centre, the first of equally near ones, and adds it, `weights` times if there are
/// any, to that centre's totals.
/// Scores are taken in f32: rows and centres far from the origin, or huge, should be shifted and scaled before.
pub fn assign_rows(
    rows: &[f32],
    weights: Option<&[f32]>,
    centres: &Vectors,
    labels: &mut [u32],
    totals: &mut Totals,
) {
    Arch::new().dispatch(Pass { chunk: rows, weights, labels, centres, totals });
}

/// The work on one chunk, as a type because a closure would not be compiled for the processor's vectors.
struct Pass<'a> {
    chunk: &'a [f32],
    weights: Option<&'a [f32]>,
    labels: &'a mut [u32],
    centres: &'a Vectors,
    totals: &'a mut Totals,
}

impl WithSimd for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let dim = self.totals.sums.len() / self.totals.counts.len();
        let chunks = self.chunk.chunks(AT_ONCE * dim).zip(self.labels.chunks_mut(AT_ONCE));
        for (at, (rows, labels)) in chunks.enumerate() {
            let nearest = find_nearest(simd, rows, self.centres, dim);
            let weights = self.weights.map(|weights| &weights[at * AT_ONCE..][..labels.len()]);
            self.totals.count(rows, weights, labels, &nearest[..labels.len()]);
        }
    }
}

/// Centres that a row is compared with at a time.
const BOTH: usize = 2 * LANES;

/// The best scores so far of one row, ‖c‖² - 2x·c, and whose they are: lane by lane of a pair of vectors.
#[derive(Clone, Copy)]
struct Best {
    scores: [f32; BOTH],
    centres: [u32; BOTH],
}

impl Best {
    const NONE: Self = Self { scores: [f32::INFINITY; BOTH], centres: [0; BOTH] };

    /// The centre with the best score, the first of equally good ones.
    #[inline(always)]
    fn centre(&self) -> u32 {
        let (scores, centres) = better_half::<BOTH, 8>(self.scores, self.centres);
        let (scores, centres) = better_half::<8, 4>(scores, centres);
        let (scores, centres) = better_half::<4, 2>(scores, centres);
        let (_, [centre]) = better_half::<2, 1>(scores, centres);
        centre
    }
}

/// The nearest centre of each of at most [`AT_ONCE`] rows.
#[inline(always)]
fn find_nearest<S: Simd>(simd: S, rows: &[f32], centres: &Vectors, dim: usize) -> [u32; AT_ONCE] {
    let mut best = [Best::NONE; AT_ONCE];
    for first in (0..centres.len()).step_by(TOGETHER) {
        let vectors = first..centres.len().min(first + TOGETHER);
        let groups = rows.chunks_exact(ROWS * dim);
        let alone = groups.remainder();
        let (of_groups, of_alone) = best.split_at_mut(groups.len() * ROWS);
        for (group, best) in groups.zip(of_groups.as_chunks_mut::<ROWS>().0) {
            compare(simd, group, centres, vectors.clone(), best);
        }
        for (row, best) in alone.chunks_exact(dim).zip(of_alone.as_chunks_mut::<1>().0) {
            compare(simd, row, centres, vectors.clone(), best);
        }
    }
    let mut nearest = [0; AT_ONCE];
    for (nearest, best) in nearest.iter_mut().zip(&best) {
        *nearest = best.centre();
    }
    nearest
}

/// Compares `N` rows with some vectors. What is best is held until all are seen: stored after every comparison, it would
/// be stored under a mask, which takes many times as long.
#[inline(always)]
fn compare<S: Simd, const N: usize>(
    simd: S,
    rows: &[f32],
    centres: &Vectors,
    vectors: Range<usize>,
    best: &mut [Best; N],
) {
    const IN_VECTOR: [u32; LANES] = [0, 1, 2, 3, 4, 5, 6, 7];
    let dim = rows.len() / N;
    let rows: [&[f32]; N] = std::array::from_fn(|row| &rows[row * dim..][..dim]);
    let (parts, minus_two) = (Pair::parts::<S>(), simd.splat_f32s(-2.0));
    for part in 0..parts {
        let mut scores = [[minus_two; 2]; N];
        let mut found = [[simd.splat_u32s(0); 2]; N];
        for row in 0..N {
            for at in 0..2 {
                scores[row][at] = S::as_simd_f32s(&best[row].scores).0[at * parts + part];
                found[row][at] = S::as_simd_u32s(&best[row].centres).0[at * parts + part];
            }
        }
        for first in vectors.clone().step_by(2) {
            let pair = centres.pair(first);
            let products = multiply::<S, N>(simd, dim, |row, axis| rows[row][axis], &pair, part);
            let norms = pair.norms::<S>(part);
            for at in 0..2 {
                let before = simd.splat_u32s((pair.numbers[at] * LANES) as u32);
                let centre = simd.add_u32s(before, S::as_simd_u32s(&IN_VECTOR).0[part]);
                for row in 0..N {
                    let score = simd.mul_add_f32s(minus_two, products[row][at], norms[at]);
                    let nearer = simd.less_than_f32s(score, scores[row][at]);
                    scores[row][at] = simd.select_f32s(nearer, score, scores[row][at]);
                    found[row][at] = simd.select_u32s(nearer, centre, found[row][at]);
                }
            }
        }
        for row in 0..N {
            for at in 0..2 {
                S::as_mut_simd_f32s(&mut best[row].scores).0[at * parts + part] = scores[row][at];
                S::as_mut_simd_u32s(&mut best[row].centres).0[at * parts + part] = found[row][at];
            }
        }
    }
}

/// The better of the lanes `n` and `n + HALF`, and of equally good ones the first centre. Arrays are passed by value
/// so that they stay in vector registers, and conditions are joined without jumps, which would be mispredicted.
#[inline(always)]
fn better_half<const WHOLE: usize, const HALF: usize>(
    scores: [f32; WHOLE],
    centres: [u32; WHOLE],
) -> ([f32; HALF], [u32; HALF]) {
    let (mut half_scores, mut half_centres) = ([0.0; HALF], [0; HALF]);
    for lane in 0..HALF {
        let (a, b) = (scores[lane], scores[lane + HALF]);
        let (of_a, of_b) = (centres[lane], centres[lane + HALF]);
        let second = (b < a) | ((b == a) & (of_b < of_a));
        half_scores[lane] = if second { b } else { a };
        half_centres[lane] = if second { of_b } else { of_a };
    }
    (half_scores, half_centres)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::block_rows;
    use crate::testing::{examples, naive};

    /// Prepared points with as many blocks as they allow.
    fn prepare(values: &[f32], dim: usize) -> Points {
        weighted(values, None, dim)
    }

    fn weighted(values: &[f32], weights: Option<&[f32]>, dim: usize) -> Points {
        let block_rows = block_rows(values.len() / dim, 1);
        Points::weighted(values.to_vec(), weights, dim, block_rows, &Workers::alone(), &Services::none()).unwrap()
    }

    fn wide(values: &[f32]) -> Vec<f64> {
        values.iter().map(|&value| f64::from(value)).collect()
    }

    #[test]
    fn labels_and_totals_are_those_of_plain_loops() {
        for (n, dim, k) in [(1, 1, 1), (10, 3, 4), (1025, 7, 5), (3000, 32, 15), (2500, 2, 300)] {
            let points = prepare(&examples::uniform(n, dim, 1), dim);
            let centres: Vec<f32> = (0..k).flat_map(|at| points.row(at * n / k).to_vec()).collect();
            let mut labels = vec![0; n];
            let totals = assign(&points, &centres, &mut labels, &Workers::alone(), &Services::none()).unwrap();

            let rows: Vec<f64> = points.blocks().flat_map(wide).collect();
            let (expected, inertia) = naive::nearest(&rows, &wide(&centres), dim);
            assert_eq!(labels, expected);
            assert_eq!(totals.changed, labels.iter().filter(|label| **label != 0).count() as u64);
            assert_eq!(totals.counts.iter().sum::<f64>(), n as f64);
            assert!(
                (totals.inertia(points.scatter(), &centres) - inertia).abs() <= 1e-12 * points.scatter().max(1.0)
            );
            let means = naive::means(&rows, &labels, &wide(&centres), dim);
            for (found, expected) in totals.means(&centres).iter().zip(means) {
                assert!((f64::from(*found) - expected).abs() < 1e-7);
            }
        }
    }

    #[test]
    fn totals_of_weighted_points_are_those_of_repeated_ones() {
        let (n, dim) = (1500, 3);
        let values = examples::uniform(n, dim, 4);
        let weights: Vec<f32> = (0..n).map(|row| (row % 4) as f32).collect();
        let repeated: Vec<f32> = (0..n).flat_map(|row| values[row * dim..][..dim].repeat(row % 4)).collect();
        let (weighted, repeated) = (weighted(&values, Some(&weights), dim), prepare(&repeated, dim));
        let centres = &values[..5 * dim];
        let totals = |points: &Points| {
            let (mut labels, centres) = (vec![0; points.len()], points.frame().prepared(centres));
            let totals = assign(points, &centres, &mut labels, &Workers::alone(), &Services::none()).unwrap();
            let inertia = points.frame().restore_squared(totals.inertia(points.scatter(), &centres));
            let means = totals.means(&centres);
            let means: Vec<f32> = means.chunks_exact(dim).flat_map(|mean| points.frame().restore(mean)).collect();
            (totals.counts, means, inertia)
        };
        let (found, expected) = (totals(&weighted), totals(&repeated));
        assert_eq!(found.0, expected.0);
        assert!(found.1.iter().zip(&expected.1).all(|(found, expected)| (found - expected).abs() < 1e-6));
        assert!((found.2 - expected.2).abs() < 1e-5 * expected.2);
    }

    #[test]
    fn ties_go_to_the_first_centre() {
        let points = prepare(&[-1.0, 1.0], 1);
        let mut labels = [7, 7];
        let totals = assign(&points, &[0.5, 0.5, 0.5], &mut labels, &Workers::alone(), &Services::none()).unwrap();
        assert_eq!((labels, totals.counts), ([0, 0], vec![2.0, 0.0, 0.0]));
    }
}
