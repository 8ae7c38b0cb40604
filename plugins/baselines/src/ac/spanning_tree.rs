//! The merges of single linkage: the edges of a minimum spanning tree, by Prim's algorithm.
//!
//! The tree grows from the first example by the nearest one outside it; each outside keeps its distance from the tree.
//! Distances are taken when needed and in f64, so memory is n·p. Gower and Ross 1969, doi:10.2307/2346439.

use compflow_api::{Result, Services};
use compflow_kernels::pairs::squared;
use pulp::{Arch, NullaryFnOnce};

use super::dendrogram::Merge;

/// Edges between two reports of progress.
const REPORT: usize = 64;

/// How many bytes [`merges`] takes.
pub(super) fn memory(rows: usize, dim: usize) -> u64 {
    (rows as u64).saturating_mul(8 * dim as u64 + 4 + 16 + 16)
}

/// An example outside the tree.
#[derive(Clone, Copy)]
struct Outside {
    example: u32,
    /// The nearest example inside, and how far it is.
    nearest: u32,
    distance: f64,
}

/// All merges, not sorted.
pub(super) fn merges(points: &[f32], dim: usize, services: &Services<'_>) -> Result<Vec<Merge>> {
    let n = points.len() / dim;
    let (mut latest, mut latest_point) =
        (0, points[..dim].iter().map(|&value| f64::from(value)).collect::<Vec<_>>());
    let mut rows: Vec<f64> = points[dim..].iter().map(|&value| f64::from(value)).collect();
    let far = |example| Outside { example, nearest: 0, distance: f64::INFINITY };
    let mut outside: Vec<Outside> = (1..n as u32).map(far).collect();
    let mut merges = Vec::with_capacity(n - 1);
    let arch = Arch::new();
    while !outside.is_empty() {
        services.check_cancelled()?;
        let step = Step { latest, point: &latest_point, rows: &rows, outside: &mut outside };
        let at = arch.dispatch(step);
        let Outside { example, nearest, distance } = outside.swap_remove(at);
        merges.push(Merge { a: nearest, b: example, height: distance });
        latest = example;
        latest_point.copy_from_slice(&rows[at * dim..][..dim]);
        rows.copy_within(outside.len() * dim.., at * dim);
        rows.truncate(outside.len() * dim);
        if merges.len() % REPORT == 0 {
            services.progress(merges.len(), n - 1)?;
        }
    }
    Ok(merges)
}

/// Updates distances after the tree took in an example, and says which place is nearest now: of several that of the
/// first example.
struct Step<'a> {
    latest: u32,
    point: &'a [f64],
    rows: &'a [f64],
    outside: &'a mut [Outside],
}

impl NullaryFnOnce for Step<'_> {
    type Output = usize;

    #[inline(always)]
    fn call(self) -> usize {
        let (mut best, mut least) = (0, (f64::INFINITY, u32::MAX));
        for (at, (row, outside)) in self.rows.chunks_exact(self.point.len()).zip(self.outside).enumerate() {
            let distance = squared(self.point, row).sqrt();
            if distance < outside.distance {
                (outside.nearest, outside.distance) = (self.latest, distance);
            }
            if (outside.distance, outside.example) < least {
                (best, least) = (at, (outside.distance, outside.example));
            }
        }
        best
    }
}
