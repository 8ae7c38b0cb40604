//! The distances of all pairs of groups, for linkages that need them: average and complete.
//!
//! The upper triangle row by row, in f64: 4n² bytes. A merge writes the distances of the new group over those of one
//! of its parts: the mean of both weighted by size, or the larger (Lance and Williams 1967).

use compflow_api::{Result, Services};
use pulp::{Arch, NullaryFnOnce};

use super::chain::{Groups, Neighbour};
use compflow_kernels::pairs::squared;
use compflow_kernels::workers::Workers;

/// Numbers read for all distances from which on threads share them.
pub(super) const SHARED: usize = 1 << 24;

/// How the distance from a merged group follows from those of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Update {
    /// Their mean, weighted by size: average linkage.
    Mean,
    /// The larger: complete linkage.
    Largest,
}

/// The groups and their distances.
pub(super) struct Matrix {
    n: usize,
    distances: Vec<f64>,
    sizes: Vec<f64>,
    /// Groups that are left, ascending.
    alive: Vec<u32>,
    update: Update,
}

impl Matrix {
    /// How many bytes it takes.
    pub(super) fn memory(rows: usize, dim: usize) -> u64 {
        let rows = rows as u64;
        let pairs = rows.saturating_mul(rows.saturating_sub(1)) / 2;
        pairs.saturating_mul(8).saturating_add(rows.saturating_mul(8 * dim as u64 + 8 + 4 + 16 + 32))
    }

    /// One group per point.
    pub(super) fn new(
        points: &[f32],
        dim: usize,
        update: Update,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Self> {
        let n = points.len() / dim;
        let rows: Vec<f64> = points.iter().map(|&value| f64::from(value)).collect();
        let mut distances = vec![0.0; n * (n - 1) / 2];
        let (mut pieces, mut rest) = (Vec::with_capacity(n), &mut distances[..]);
        for row in 0..n {
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(n - 1 - row);
            pieces.push((row, piece));
            rest = after;
        }
        let arch = Arch::new();
        workers.map(pieces, |(row, out)| {
            services.check_cancelled()?;
            let (point, others) = rows[row * dim..].split_at(dim);
            arch.dispatch(Row { point, others, out });
            Ok(())
        })?;
        Ok(Self { n, distances, sizes: vec![1.0; n], alive: (0..n as u32).collect(), update })
    }

    fn index(&self, a: usize, b: usize) -> usize {
        let (low, high) = (a.min(b), a.max(b));
        low * (2 * self.n - low - 1) / 2 + (high - low - 1)
    }
}

/// The distances of one point from all that follow it.
struct Row<'a> {
    point: &'a [f64],
    others: &'a [f64],
    out: &'a mut [f64],
}

impl NullaryFnOnce for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (out, other) in self.out.iter_mut().zip(self.others.chunks_exact(self.point.len())) {
            *out = squared(self.point, other).sqrt();
        }
    }
}

impl Groups for Matrix {
    fn nearest(&mut self, group: usize, known: Option<Neighbour>) -> Result<Neighbour> {
        // No group is as far as infinity.
        let mut best = known.unwrap_or(Neighbour { group: usize::MAX, distance: f64::INFINITY });
        for other in self.alive.iter().map(|&other| other as usize).filter(|&other| other != group) {
            let distance = self.distances[self.index(group, other)];
            if distance < best.distance {
                best = Neighbour { group: other, distance };
            }
        }
        Ok(best)
    }

    fn join(&mut self, from: usize, to: usize, _distance: f64) {
        if let Ok(at) = self.alive.binary_search(&(from as u32)) {
            self.alive.remove(at);
        }
        let (a, b) = (self.sizes[from], self.sizes[to]);
        for other in self.alive.iter().map(|&other| other as usize).filter(|&other| other != to) {
            let (of_a, at) = (self.distances[self.index(from, other)], self.index(to, other));
            let of_b = self.distances[at];
            self.distances[at] = match self.update {
                Update::Mean => (a * of_a + b * of_b) / (a + b),
                Update::Largest => of_a.max(of_b),
            };
        }
        self.sizes[to] = a + b;
    }

    fn height(&self, distance: f64) -> f64 {
        distance
    }
}
