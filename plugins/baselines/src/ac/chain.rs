//! The merges of a linkage, by the nearest-neighbour chain: from some group to its nearest, from that to its nearest,
//! until two are nearest to each other; these merge, and the chain goes on from what is left of it.
//!
//! A chain can be kept after a merge because no linkage here lets a merged group be nearer than its parts were. Each
//! of at most 3n steps looks at all groups once. Müllner 2011, figure 4, after Murtagh 1983.
//!
//! Groups bear the number of one of their examples, of two that merge the larger one; chains begin at the smallest
//! number, and of equally near groups the predecessor in the chain is taken, else the smallest number, as in SciPy.

use compflow_api::{Result, Services};

use super::dendrogram::Merge;

/// Merges between two reports of progress.
const REPORT: usize = 64;

/// A group and how far it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Neighbour {
    pub(super) group: usize,
    pub(super) distance: f64,
}

/// The groups of one linkage.
pub(super) trait Groups {
    /// The nearest group to `group`: the first of those nearer than `known`, or `known`.
    fn nearest(&mut self, group: usize, known: Option<Neighbour>) -> Result<Neighbour>;

    /// Makes one group of two, which bears the number `to`.
    fn join(&mut self, from: usize, to: usize, distance: f64);

    /// What [`Neighbour::distance`] is as a height.
    fn height(&self, distance: f64) -> f64;
}

/// All merges of `n` examples, not sorted.
pub(super) fn merges(n: usize, groups: &mut impl Groups, services: &Services<'_>) -> Result<Vec<Merge>> {
    let mut merges = Vec::with_capacity(n - 1);
    let mut alive = vec![true; n];
    let mut first = 0;
    // Each with its distance from the one before.
    let mut chain: Vec<Neighbour> = Vec::new();
    while merges.len() + 1 < n {
        services.check_cancelled()?;
        let Some(&last) = chain.last() else {
            while !alive[first] {
                first += 1;
            }
            chain.push(Neighbour { group: first, distance: f64::INFINITY });
            continue;
        };
        let before = chain.len().checked_sub(2).map(|at| Neighbour { group: chain[at].group, ..last });
        let nearest = groups.nearest(last.group, before)?;
        if before.is_none_or(|before| before.group != nearest.group) {
            chain.push(nearest);
            continue;
        }
        chain.truncate(chain.len() - 2);
        let (from, to) = (last.group.min(nearest.group), last.group.max(nearest.group));
        groups.join(from, to, nearest.distance);
        alive[from] = false;
        merges.push(Merge { a: from as u32, b: to as u32, height: groups.height(nearest.distance) });
        if merges.len() % REPORT == 0 {
            services.progress(merges.len(), n - 1)?;
        }
    }
    Ok(merges)
}
