//! Ward's groups as means and sizes, with a search for the nearest in two precisions.
//!
//! The squared height 2|A||B|/(|A|+|B|)·‖μ_A-μ_B‖² is taken in f64, but only for the few groups that a bound in f32
//! lets through. Let s be the squared distance of two means in f32, d the exact one, u = 2⁻²⁴ and w = |B|/(|A|+|B|) ≤ 1.
//! Rounding the means changes their distance by at most u(‖μ_A‖+‖μ_B‖) ≤ u(2‖μ_A‖+d), summing p squares changes s by a
//! factor within 1 ± (p+2)u, and weighting it by one within 1 ± 3u, so with δ = (p+8)u
//!
//! ```text
//! √w·d  ≥  √(ws)·(1-δ) - 2u‖μ_A‖
//! ```
//!
//! and a group is farther than the best known squared height h if ws > ((√(h/2|A|) + 2u‖μ_A‖) / (1-δ))². What is found
//! does not depend on the rounding, nor on how the groups are shared out to threads.
//!
//! Means in f32 are centred and scaled, which keeps them small and their squares finite, and lie in tiles: [`LANES`] groups, one
//! row of numbers per dimension. Groups keep their order; those that merged into others are taken out when they are
//! an eighth of all.

use compflow_api::Result;
use pulp::{Arch, NullaryFnOnce};

use super::chain::{Groups, Neighbour};
use compflow_kernels::pairs::squared;
use compflow_kernels::workers::Workers;

/// Groups compared at a time.
const LANES: usize = 32;
/// Numbers in one search from which on threads share it.
pub(super) const SHARED: usize = 1 << 20;
/// Numbers that a thread searches at a time.
const BLOCK: usize = 1 << 18;
/// Half the distance of 1 from the next number in f32.
const UNIT: f64 = 1.0 / (1 << 24) as f64;

/// The groups.
pub(super) struct Centroids<'a> {
    dim: usize,
    /// By group: the mean.
    means: Vec<f64>,
    /// By group: how many examples; 0 for one that merged into another.
    sizes: Vec<f64>,
    /// What is subtracted before rounding to f32, and what is multiplied with then.
    origin: Vec<f64>,
    scale: f64,
    tiles: Tiles,
    /// Tiles that a thread searches at a time.
    block: usize,
    arch: Arch,
    workers: &'a Workers,
}

/// What is searched in f32.
struct Tiles {
    values: Vec<f32>,
    /// |B| by place; NaN, which no bound lets through, where there is no group any more.
    sizes: Vec<f32>,
    /// The group by place, ascending.
    groups: Vec<u32>,
    /// The place of every group.
    places: Vec<u32>,
    dead: usize,
}

impl<'a> Centroids<'a> {
    /// How many bytes they take.
    pub(super) fn memory(rows: usize, dim: usize) -> u64 {
        let padded = rows.next_multiple_of(LANES) as u64;
        padded.saturating_mul(12 * dim as u64 + 8 + 4 + 4 + 4 + 16)
    }

    /// One group per point.
    pub(super) fn new(points: &[f32], dim: usize, workers: &'a Workers) -> Self {
        let n = points.len() / dim;
        let means: Vec<f64> = points.iter().map(|&value| f64::from(value)).collect();
        let mut origin = vec![0.0; dim];
        for mean in means.chunks_exact(dim) {
            origin.iter_mut().zip(mean).for_each(|(origin, value)| *origin += value / n as f64);
        }
        let norms = means.chunks_exact(dim).map(|mean| squared(mean, &origin));
        let radius = norms.fold(0.0, f64::max).sqrt();
        // A power of two changes no digit.
        let scale = if radius > 0.0 { (-radius.log2().ceil()).exp2() } else { 1.0 };
        let padded = n.next_multiple_of(LANES);
        let tiles = Tiles {
            values: vec![0.0; padded * dim],
            sizes: (0..padded).map(|place| if place < n { 1.0 } else { f32::NAN }).collect(),
            groups: (0..n as u32).collect(),
            places: (0..n as u32).collect(),
            dead: 0,
        };
        let sizes = vec![1.0; n];
        let block = (BLOCK / (LANES * dim)).max(1);
        let mut all = Self { dim, means, sizes, origin, scale, tiles, block, arch: Arch::new(), workers };
        (0..n).for_each(|group| all.round(group));
        all
    }

    fn mean(&self, group: usize) -> &[f64] {
        &self.means[group * self.dim..][..self.dim]
    }

    /// Brings a group's mean and size into its tile.
    fn round(&mut self, group: usize) {
        let place = self.tiles.places[group] as usize;
        self.tiles.sizes[place] = self.sizes[group] as f32;
        let tile = &mut self.tiles.values[place / LANES * LANES * self.dim..][..LANES * self.dim];
        let mean = &self.means[group * self.dim..][..self.dim];
        for ((row, value), origin) in tile.as_chunks_mut::<LANES>().0.iter_mut().zip(mean).zip(&self.origin) {
            row[place % LANES] = ((value - origin) * self.scale) as f32;
        }
    }
}

impl Tiles {
    /// Takes out the places of groups that merged into others.
    fn compact(&mut self, dim: usize) {
        let mut kept = 0;
        for place in 0..self.groups.len() {
            if self.sizes[place].is_nan() {
                continue;
            }
            let group = self.groups[place];
            self.groups[kept] = group;
            self.places[group as usize] = kept as u32;
            self.sizes[kept] = self.sizes[place];
            let (from, to) = (place / LANES * LANES * dim, kept / LANES * LANES * dim);
            for axis in 0..dim {
                self.values[to + axis * LANES + kept % LANES] = self.values[from + axis * LANES + place % LANES];
            }
            kept += 1;
        }
        let padded = kept.next_multiple_of(LANES);
        self.groups.truncate(kept);
        self.sizes.truncate(padded);
        self.sizes[kept..].fill(f32::NAN);
        self.values.truncate(padded * dim);
        self.dead = 0;
    }
}

impl Groups for Centroids<'_> {
    fn nearest(&mut self, group: usize, known: Option<Neighbour>) -> Result<Neighbour> {
        // No group is as far as infinity.
        let known = known.unwrap_or(Neighbour { group: usize::MAX, distance: f64::INFINITY });
        let place = self.tiles.places[group] as usize;
        let tile = &self.tiles.values[place / LANES * LANES * self.dim..];
        let point: Vec<f32> = (0..self.dim).map(|axis| tile[axis * LANES + place % LANES]).collect();
        let all = &*self;
        let search = |first, best| all.arch.dispatch(Search { centroids: all, group, point: &point, first, best });
        let firsts = (0..all.tiles.sizes.len() / LANES).step_by(all.block);
        if all.tiles.values.len() < SHARED {
            return Ok(firsts.fold(known, |best, first| search(first, best)));
        }
        let found = all.workers.map(firsts, |first| Ok(search(first, known)))?;
        Ok(found.into_iter().fold(known, |best, found| if found.distance < best.distance { found } else { best }))
    }

    fn join(&mut self, from: usize, to: usize, _distance: f64) {
        let (a, b) = (self.sizes[from], self.sizes[to]);
        let (head, tail) = self.means.split_at_mut(to * self.dim);
        for (to, from) in tail[..self.dim].iter_mut().zip(&head[from * self.dim..]) {
            *to = (a * from + b * *to) / (a + b);
        }
        (self.sizes[from], self.sizes[to]) = (0.0, a + b);
        self.round(to);
        self.tiles.sizes[self.tiles.places[from] as usize] = f32::NAN;
        self.tiles.dead += 1;
        if self.tiles.dead > self.tiles.groups.len() / 8 {
            self.tiles.compact(self.dim);
        }
    }

    fn height(&self, distance: f64) -> f64 {
        distance.sqrt()
    }
}

/// The search in one block, as a type because a closure would not be compiled for the processor's vectors.
struct Search<'a> {
    centroids: &'a Centroids<'a>,
    group: usize,
    /// The group's mean in f32.
    point: &'a [f32],
    first: usize,
    best: Neighbour,
}

impl NullaryFnOnce for Search<'_> {
    type Output = Neighbour;

    #[inline(always)]
    fn call(self) -> Neighbour {
        let Self { centroids: all, group, point, first, mut best } = self;
        let dim = all.dim;
        let (mean, size) = (all.mean(group), all.sizes[group]);
        let norm = point.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt();
        let slack = 2.0 * UNIT * norm * (1.0 + 4.0 * UNIT);
        let bound = |distance: f64| {
            let least = (distance / (2.0 * size)).sqrt() * all.scale;
            let most = (least + slack) / (1.0 - (dim + 8) as f64 * UNIT);
            // Rounding to f32 may not lower it, and squares that are too small for their digits must pass.
            (most * most * (1.0 + 4.0 * UNIT)) as f32 + f32::MIN_POSITIVE
        };
        let mut most = bound(best.distance);
        let sizes = all.tiles.sizes.as_chunks::<LANES>().0.iter().enumerate().skip(first).take(all.block);
        for (tile, sizes) in sizes {
            // Nothing is nearer, and of equal points every one would pass the bound.
            if best.distance == 0.0 {
                break;
            }
            let values = all.tiles.values[tile * LANES * dim..][..LANES * dim].as_chunks::<LANES>().0;
            let weighted = weighted_distances(point, values, size as f32, sizes);
            if !weighted.iter().fold(false, |any, &distance| any | (distance <= most)) {
                continue;
            }
            for (lane, &distance) in weighted.iter().enumerate() {
                if distance <= most {
                    let other = all.tiles.groups[tile * LANES + lane] as usize;
                    let of_other = all.sizes[other];
                    let weight = 2.0 * (size * of_other) / (size + of_other);
                    let distance = weight * squared(mean, all.mean(other));
                    if distance < best.distance && other != group {
                        best = Neighbour { group: other, distance };
                        most = bound(distance);
                    }
                }
            }
        }
        best
    }
}

/// |B|/(|A|+|B|)·‖μ_A-μ_B‖² of one group with those of a tile.
#[inline(always)]
fn weighted_distances(point: &[f32], tile: &[[f32; LANES]], size: f32, sizes: &[f32; LANES]) -> [f32; LANES] {
    let mut sums = [0.0; LANES];
    for (&value, others) in point.iter().zip(tile) {
        for lane in 0..LANES {
            let difference = value - others[lane];
            sums[lane] += difference * difference;
        }
    }
    for lane in 0..LANES {
        sums[lane] *= sizes[lane] / (size + sizes[lane]);
    }
    sums
}
