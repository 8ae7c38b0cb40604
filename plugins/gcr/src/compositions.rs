//! How far every cluster is from every composition of others.
//!
//! Compositions are made and compared in batches of a fixed size, which threads share out; cost: k·|K|·p for |K|
//! compositions, beside the composing itself.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use compflow_api::{Distance, Embeddings, Error, Result, Services, Sets, Task};
use compflow_kernels::counting;
use compflow_kernels::pairs::squared;
use compflow_kernels::workers::Workers;
use pulp::{Arch, NullaryFnOnce};

use crate::threshold::Limit;

/// Compositions in a batch.
const BATCH: usize = 1024;
/// Below this many differences, starting threads is not worth it.
const SHARED: usize = 1 << 25;

/// Bytes of a composition that is near enough, in all lists that it comes to be in.
const KEPT: u64 = 24 + 2 * 16 + 24;

/// Of a cluster: a composition of others, and how far it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Near {
    /// Index in [`Compositions::sets`].
    pub(crate) set: usize,
    pub(crate) distance: f64,
}

/// The compositions of clusters that are given by their means.
pub(crate) struct Compositions<'a> {
    task: Task<'a>,
    means: Embeddings<'a>,
    /// The means as points of the space: those that are compared, the first or all.
    points: Vec<f32>,
    /// Every set of one to `degree` clusters, by size, then in order; the first k are no compositions.
    pub(crate) sets: Cow<'a, Sets>,
}

impl<'a> Compositions<'a> {
    /// Compositions of 2 to `task.degree` of the rows of `means`, which are not normalised.
    pub(crate) fn new(task: Task<'a>, means: Embeddings<'a>, services: &Services<'_>) -> Result<Self> {
        let (k, degree) = (means.len(), task.degree);
        let bytes = memory(k, means.dim(), degree, services.threads);
        services.require_memory(bytes, "lower `degree`, or let the base find fewer clusters")?;
        // Whatever the budget: nobody would wait for so many.
        if bytes / 4 > u64::from(u32::MAX) {
            return Err(Error::budget(format!("{k} clusters have too many compositions of up to {degree}")));
        }
        let sets = Cow::Owned(Sets::all_up_to(k, degree));
        Ok(Self { task, means, points: task.space.points(means).into_owned(), sets })
    }

    /// The same sets of as many other clusters, of which only the first `compared` are compared with them.
    pub(crate) fn of<'b>(&'b self, means: Embeddings<'b>, compared: usize) -> Compositions<'b> {
        let mut points = self.task.space.points(means).into_owned();
        points.truncate(compared * means.dim());
        Compositions { task: self.task, means, points, sets: Cow::Borrowed(&self.sets) }
    }

    /// The compositions of fewer clusters, at least two, in place of these.
    pub(crate) fn of_fewer<'b>(&self, means: Embeddings<'b>, services: &Services<'_>) -> Result<Compositions<'b>>
    where
        'a: 'b,
    {
        let degree = self.task.degree.min(means.len() - 1);
        Compositions::new(Task { degree, ..self.task }, means, services)
    }

    /// How many clusters are compared with compositions.
    fn compared(&self) -> usize {
        self.points.len() / self.means.dim()
    }

    /// How many numbers are compared for each of these.
    pub(crate) fn width(&self) -> usize {
        (self.sets.len() - self.means.len()).saturating_mul(self.means.dim())
    }

    /// Of the clusters, not normalised.
    pub(crate) fn means(&self) -> Embeddings<'a> {
        self.means
    }

    /// The nearest composition of every cluster, the first of equally near ones; none if there are no compositions.
    pub(crate) fn nearest(&self, services: &Services<'_>) -> Result<Vec<Option<Near>>> {
        let mut nearest: Vec<Option<Near>> = vec![None; self.compared()];
        let keep = |nearest: &mut Vec<Option<Near>>, cluster: usize, near: Near| {
            if nearest[cluster].is_none_or(|best| near.distance < best.distance) {
                nearest[cluster] = Some(near);
            }
        };
        let batches = self.scan(services, |batch| {
            let mut nearest = vec![None; self.compared()];
            self.measure(batch, services, |cluster, near| keep(&mut nearest, cluster, near))?;
            Ok(nearest)
        })?;
        for (cluster, near) in batches.iter().flat_map(|batch| batch.iter().enumerate()) {
            near.iter().for_each(|near| keep(&mut nearest, cluster, *near));
        }
        Ok(nearest)
    }

    /// Most members of a composition.
    pub(crate) fn degree(&self) -> usize {
        self.task.degree
    }

    /// How distances are taken.
    pub(crate) fn distance(&self) -> Distance {
        self.task.space.distance
    }

    /// For every cluster all others that are near enough, as sets of one.
    pub(crate) fn alike(&self, limit: Limit, services: &Services<'_>) -> Result<Vec<Vec<Near>>> {
        let dim = self.means.dim();
        let alike = |(cluster, point): (usize, &[f32])| {
            services.check_cancelled()?;
            let squares = Arch::new().dispatch(AllPairs { points: &self.points, composed: point, dim });
            let near = squares.iter().enumerate().map(|(set, &squared)| self.near(set, squared));
            Ok(near.filter(|near| near.set != cluster && limit.admits(near.distance)).collect())
        };
        self.points.chunks_exact(dim).enumerate().map(alike).collect()
    }

    /// For every cluster all compositions that are near enough, the nearest first.
    pub(crate) fn within(&self, limit: Limit, services: &Services<'_>) -> Result<Vec<Vec<Near>>> {
        let mut within = vec![Vec::new(); self.means.len()];
        let kept = AtomicU64::new(0);
        let batches = self.scan(services, |batch| {
            let mut found = Vec::new();
            self.measure(batch, services, |cluster, near| {
                if limit.admits(near.distance) {
                    found.push((cluster, near));
                }
            })?;
            // How many there will be is not known before.
            let bytes = KEPT * found.len() as u64;
            let kept = kept.fetch_add(bytes, Ordering::Relaxed) + bytes;
            services.require_memory(kept, "lower `threshold` or `degree`, or let the base find fewer clusters")?;
            Ok(found)
        })?;
        batches.into_iter().flatten().for_each(|(cluster, near)| within[cluster].push(near));
        within.iter_mut().for_each(|near| near.sort_by(|a, b| a.distance.total_cmp(&b.distance)));
        Ok(within)
    }

    /// The results of `work` on the first index of every batch.
    fn scan<T: Send>(
        &self,
        services: &Services<'_>,
        work: impl Fn(usize) -> Result<T> + Sync + Send,
    ) -> Result<Vec<T>> {
        let (first, last) = (self.means.len(), self.sets.len());
        let shared = (last - first).saturating_mul(self.points.len()) >= SHARED;
        let workers = Workers::new(if shared { services.threads } else { 1 })?;
        workers.map((first..last).step_by(BATCH), |batch| {
            services.check_cancelled()?;
            work(batch)
        })
    }

    /// Composes a batch of sets and measures how far every cluster is from those that do not contain it.
    fn measure(&self, first: usize, services: &Services<'_>, mut visit: impl FnMut(usize, Near)) -> Result<()> {
        let dim = self.means.dim();
        let batch: Sets = (first..self.sets.len().min(first + BATCH)).map(|at| &self.sets[at]).collect();
        let composed = self.task.compose_sets(self.means, &batch, services)?;
        let distances = Arch::new().dispatch(AllPairs { points: &self.points, composed: &composed, dim });
        let rows = distances.chunks_exact(self.compared());
        for (at, (set, squares)) in batch.iter().zip(rows).enumerate() {
            for (cluster, &squared) in squares.iter().enumerate() {
                if !set.contains(&(cluster as u32)) {
                    visit(cluster, self.near(first + at, squared));
                }
            }
        }
        Ok(())
    }

    fn near(&self, set: usize, squared: f64) -> Near {
        let distance = match self.task.space.distance {
            Distance::SqEuclidean => squared,
            Distance::Euclidean => squared.sqrt(),
        };
        Near { set, distance }
    }
}

/// ‖point - composed‖² for every composed vector and every point, as a type because a closure would not be compiled for
/// the processor's vectors. Sums are taken in the same order on all processors.
struct AllPairs<'a> {
    points: &'a [f32],
    composed: &'a [f32],
    dim: usize,
}

impl NullaryFnOnce for AllPairs<'_> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn call(self) -> Vec<f64> {
        let Self { points, composed, dim } = self;
        let mut squares = Vec::with_capacity(composed.len() / dim * (points.len() / dim));
        for composed in composed.chunks_exact(dim) {
            for point in points.chunks_exact(dim) {
                squares.push(squared(point, composed));
            }
        }
        squares
    }
}

/// Bytes for `k` clusters: the sets, and of every batch at work the copies that composing makes.
pub(crate) fn memory(k: usize, dim: usize, degree: usize, threads: usize) -> u64 {
    let compositions = counting::sets(k, 2..=degree).and_then(|count| u64::try_from(count).ok());
    let sets = (k as u64).saturating_add(compositions.unwrap_or(u64::MAX)).saturating_mul(8 + 4 * degree as u64);
    let batches = (threads.max(1) * BATCH) as u64;
    sets.saturating_add(batches.saturating_mul(16 * dim as u64 + 8 * k as u64))
        .saturating_add((k as u64).saturating_mul(24 * dim as u64))
}

#[cfg(test)]
mod tests {
    use compflow_api::{Error, Normalize, Space};
    use compflow_kernels::testing::examples;
    use compflow_kernels::testing::watcher::Watcher;

    use super::*;
    use crate::testing;

    #[test]
    fn the_nearest_are_those_of_a_plain_loop() {
        let composer = testing::max();
        for (k, dim, degree, normalize, distance) in [
            (9, 3, 2, Normalize::None, Distance::SqEuclidean),
            (9, 19, 3, Normalize::L2, Distance::Euclidean),
            // More than a batch.
            (60, 8, 2, Normalize::L2, Distance::SqEuclidean),
            (2, 8, 2, Normalize::None, Distance::Euclidean),
        ] {
            let values = examples::uniform(k, dim, 5);
            let means = Embeddings::new(&values, dim);
            let space = Space { normalize, distance };
            let task = Task { degree, space, composer: Some(&composer), ..Task::new(means) };
            let services = Services::none();
            let compositions = Compositions::new(task, means, &services).unwrap();
            let nearest = compositions.nearest(&services).unwrap();
            let limit = Limit { threshold: 0.8, inclusive: false };
            let within = compositions.within(limit, &services).unwrap();
            for cluster in 0..k {
                let mut all: Vec<Near> = (k..compositions.sets.len())
                    .filter(|&set| !compositions.sets[set].contains(&(cluster as u32)))
                    .map(|set| {
                        let one = Sets::from_iter([&compositions.sets[set]]);
                        let composed = task.compose_sets(means, &one, &Services::none()).unwrap();
                        let point = &space.points(means)[cluster * dim..][..dim];
                        Near { set, distance: space.distance(point, &composed) }
                    })
                    .collect();
                all.sort_by(|a, b| a.distance.total_cmp(&b.distance));
                assert_eq!(nearest[cluster].map(|near| near.set), all.first().map(|near| near.set));
                for (found, expected) in within[cluster].iter().zip(&all) {
                    assert!(found.set == expected.set && (found.distance - expected.distance).abs() < 1e-12);
                }
                assert_eq!(within[cluster].len(), all.iter().filter(|near| near.distance < 0.8).count());
            }
        }
    }

    #[test]
    fn of_equally_near_ones_the_first_is_taken() {
        let composer = testing::max();
        let means = Embeddings::new(&[1.0, 1.0, 1.0, 0.0], 1);
        let task = Task { degree: 2, composer: Some(&composer), ..Task::new(means) };
        let compositions = Compositions::new(task, means, &Services::none()).unwrap();
        let nearest = compositions.nearest(&Services::none()).unwrap();
        let sets: Vec<&[u32]> = nearest.iter().map(|near| &compositions.sets[near.unwrap().set]).collect();
        assert_eq!(sets, [&[1, 2][..], &[0, 2], &[0, 1], &[0, 1]]);
    }

    #[test]
    fn work_that_is_no_longer_wanted_stops() {
        let composer = testing::max();
        let values = examples::uniform(60, 3, 6);
        let means = Embeddings::new(&values, 3);
        let task = Task { degree: 2, composer: Some(&composer), ..Task::new(means) };
        let host = Watcher::new(1);
        let services = Services { host: &host, ..Services::none() };
        let compositions = Compositions::new(task, means, &services).unwrap();
        assert!(compositions.nearest(&services).is_ok());
        assert_eq!(services.progress(0, 0), Err(Error::Cancelled));
        assert_eq!(compositions.nearest(&services), Err(Error::Cancelled));
    }
}
