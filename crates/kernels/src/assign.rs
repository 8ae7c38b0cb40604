//! The nearest centre of every example, and what the examples of each centre add up to.
//!
//! argmin_j ‖x-c_j‖² = argmin_j ‖c_j‖² - 2x·c_j: a product and a comparison per pair. Both run along centres, in
//! loops that are compiled for several generations of processors, of which the one at hand is chosen at run time.
//! Products and sums are taken in the same order on all of them, and rounded once for both, which is the same on every
//! processor and fast on those with vectors. Cost: n·k·p in f32 and n·p additions in f64.

use compflow_api::{Result, Services};
use pulp::{Arch, NullaryFnOnce};

use crate::points::Points;
use crate::workers::Workers;

/// Centres compared at a time: two vectors of eight numbers.
const LANES: usize = 16;
/// Rows multiplied at a time, so that a tile of centres is read once for all of them.
const GROUP: usize = 4;
/// Rows compared with one tile before the next is looked at: both stay in the cache.
const ROWS: usize = 64;
/// Rows between two looks at whether the work is still wanted.
const CHUNK: usize = 4096;

/// What the examples add up to, by the centre they were given to.
pub struct Totals {
    /// Σx of each centre's examples, row-major.
    pub sums: Vec<f64>,
    /// How many there are.
    pub counts: Vec<u64>,
    /// How many have another label than before.
    pub changed: u64,
}

impl Totals {
    /// Of no examples.
    pub fn zero(k: usize, dim: usize) -> Self {
        Self { sums: vec![0.0; k * dim], counts: vec![0; k], changed: 0 }
    }

    /// Adds rows that are given to these centres, and labels them so.
    #[inline(always)]
    fn count(&mut self, rows: &[f32], labels: &mut [u32], nearest: &[u32]) {
        let dim = self.sums.len() / self.counts.len();
        for ((row, label), &nearest) in rows.chunks_exact(dim).zip(labels).zip(nearest) {
            self.changed += u64::from(*label != nearest);
            *label = nearest;
            self.counts[nearest as usize] += 1;
            let sum = &mut self.sums[nearest as usize * dim..][..dim];
            sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        }
    }

    /// Adds what other examples add up to.
    pub fn add(&mut self, other: &Self) {
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, other)| *sum += other);
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, other)| *count += other);
        self.changed += other.changed;
    }

    /// The mean of each centre's examples; a centre without any stays where it is.
    pub fn means(&self, centres: &[f32]) -> Vec<f32> {
        let dim = centres.len() / self.counts.len();
        let mut means = centres.to_vec();
        for ((mean, sum), &count) in means.chunks_exact_mut(dim).zip(self.sums.chunks_exact(dim)).zip(&self.counts)
        {
            if count > 0 {
                mean.iter_mut().zip(sum).for_each(|(mean, sum)| *mean = (sum / count as f64) as f32);
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
                inertia += f64::from(c) * (count as f64 * f64::from(c) - 2.0 * s);
            }
        }
        // What should be nothing may come out below it.
        inertia.max(0.0)
    }
}

/// Centres in the order in which they are compared with examples.
pub struct Tiles {
    /// Tile after tile of `LANES` centres, the last filled up, and in a tile one row of `LANES` numbers per dimension.
    values: Vec<f32>,
    /// ‖c‖² of every centre; infinite where there is none.
    norms: Vec<f32>,
}

impl Tiles {
    /// Of centres of `dim` numbers each, row-major.
    pub fn new(centres: &[f32], dim: usize) -> Self {
        let padded = (centres.len() / dim).next_multiple_of(LANES);
        let mut tiles = Self { values: vec![0.0; padded * dim], norms: vec![f32::INFINITY; padded] };
        for (at, centre) in centres.chunks_exact(dim).enumerate() {
            let tile = &mut tiles.values[at / LANES * LANES * dim..][..LANES * dim];
            for (row, &value) in tile.chunks_exact_mut(LANES).zip(centre) {
                row[at % LANES] = value;
            }
            tiles.norms[at] = centre.iter().map(|value| value * value).sum();
        }
        tiles
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
    let tiles = Tiles::new(centres, dim);
    let blocks = points.blocks().zip(labels.chunks_mut(points.block_rows()));
    let partial = workers.map(blocks, |(block, labels)| {
        let mut totals = Totals::zero(k, dim);
        for (chunk, labels) in block.chunks(CHUNK * dim).zip(labels.chunks_mut(CHUNK)) {
            services.check_cancelled()?;
            assign_rows(chunk, &tiles, labels, &mut totals);
        }
        Ok(totals)
    })?;
    let mut totals = Totals::zero(k, dim);
    partial.iter().for_each(|partial| totals.add(partial));
    Ok(totals)
}

/// Labels every row with its nearest centre, the first of equally near ones, and adds it to that centre's totals.
/// Scores are taken in f32: rows and centres far from the origin, or huge, should be shifted and scaled before.
pub fn assign_rows(rows: &[f32], tiles: &Tiles, labels: &mut [u32], totals: &mut Totals) {
    Arch::new().dispatch(Pass { chunk: rows, labels, tiles, totals });
}

/// The work on one chunk, as a type because a closure would not be compiled for the processor's vectors.
struct Pass<'a> {
    chunk: &'a [f32],
    labels: &'a mut [u32],
    tiles: &'a Tiles,
    totals: &'a mut Totals,
}

impl NullaryFnOnce for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let dim = self.totals.sums.len() / self.totals.counts.len();
        for (rows, labels) in self.chunk.chunks(ROWS * dim).zip(self.labels.chunks_mut(ROWS)) {
            let nearest = find_nearest(rows, self.tiles, dim);
            self.totals.count(rows, labels, &nearest[..labels.len()]);
        }
    }
}

/// The nearest centre of each of at most [`ROWS`] rows.
#[inline(always)]
fn find_nearest(rows: &[f32], tiles: &Tiles, dim: usize) -> [u32; ROWS] {
    // By row and lane: the best score so far, and whose it is.
    let (mut best, mut found) = ([[f32::INFINITY; LANES]; ROWS], [[0; LANES]; ROWS]);
    for (tile, norms) in tiles.norms.as_chunks::<LANES>().0.iter().enumerate() {
        let values = &tiles.values[tile * LANES * dim..][..LANES * dim];
        let mut groups = rows.chunks_exact(GROUP * dim);
        let mut at = 0;
        for group in &mut groups {
            let products = multiply::<GROUP>(group, values, dim);
            for (row, products) in products.iter().enumerate() {
                keep_better(&mut best[at + row], &mut found[at + row], norms, products, tile);
            }
            at += GROUP;
        }
        for (row, values_of_row) in groups.remainder().chunks_exact(dim).enumerate() {
            let [products] = multiply::<1>(values_of_row, values, dim);
            keep_better(&mut best[at + row], &mut found[at + row], norms, &products, tile);
        }
    }
    let mut nearest = [0; ROWS];
    for ((nearest, &best), &found) in nearest.iter_mut().zip(&best).zip(&found) {
        let (best, found) = better_half::<LANES, 8>(best, found);
        let (best, found) = better_half::<8, 4>(best, found);
        let (best, found) = better_half::<4, 2>(best, found);
        let (_, [centre]) = better_half::<2, 1>(best, found);
        *nearest = centre;
    }
    nearest
}

/// The better of the lanes `n` and `n + HALF`, and of equally good ones the first centre. Arrays are passed by value
/// so that they stay in vector registers, and conditions are joined without jumps, which would be mispredicted.
#[inline(always)]
fn better_half<const WHOLE: usize, const HALF: usize>(
    best: [f32; WHOLE],
    found: [u32; WHOLE],
) -> ([f32; HALF], [u32; HALF]) {
    let (mut half_best, mut half_found) = ([0.0; HALF], [0; HALF]);
    for lane in 0..HALF {
        let (a, b) = (best[lane], best[lane + HALF]);
        let (of_a, of_b) = (found[lane], found[lane + HALF]);
        let second = (b < a) | ((b == a) & (of_b < of_a));
        half_best[lane] = if second { b } else { a };
        half_found[lane] = if second { of_b } else { of_a };
    }
    (half_best, half_found)
}

/// The products x·c of some rows with a tile's centres. The order of additions is the same for any number of rows.
#[inline(always)]
fn multiply<const N: usize>(rows: &[f32], tile: &[f32], dim: usize) -> [[f32; LANES]; N] {
    let rows: [&[f32]; N] = std::array::from_fn(|row| &rows[row * dim..][..dim]);
    let mut products = [[0.0; LANES]; N];
    for (axis, centres) in tile.as_chunks::<LANES>().0.iter().enumerate().take(dim) {
        for (row, products) in rows.iter().zip(&mut products) {
            let value = row[axis];
            for lane in 0..LANES {
                products[lane] = value.mul_add(centres[lane], products[lane]);
            }
        }
    }
    products
}

/// Puts a tile's scores in place of those that they are better than.
#[inline(always)]
fn keep_better(
    best: &mut [f32; LANES],
    found: &mut [u32; LANES],
    norms: &[f32; LANES],
    products: &[f32; LANES],
    tile: usize,
) {
    let (mut new_best, mut new_found) = (*best, *found);
    for lane in 0..LANES {
        let score = norms[lane] - 2.0 * products[lane];
        let nearer = score < new_best[lane];
        new_best[lane] = if nearer { score } else { new_best[lane] };
        new_found[lane] = if nearer { (tile * LANES + lane) as u32 } else { new_found[lane] };
    }
    (*best, *found) = (new_best, new_found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::block_rows;
    use crate::testing::{examples, naive};

    /// Prepared points with as many blocks as they allow.
    fn prepare(values: &[f32], dim: usize) -> Points {
        let block_rows = block_rows(values.len() / dim, 1);
        Points::new(values.to_vec(), dim, block_rows, &Workers::alone(), &Services::none()).unwrap()
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
            assert_eq!(totals.counts.iter().sum::<u64>(), n as u64);
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
    fn ties_go_to_the_first_centre() {
        let points = prepare(&[-1.0, 1.0], 1);
        let mut labels = [7, 7];
        let totals = assign(&points, &[0.5, 0.5, 0.5], &mut labels, &Workers::alone(), &Services::none()).unwrap();
        assert_eq!((labels, totals.counts), ([0, 0], vec![2, 0, 0]));
    }
}
