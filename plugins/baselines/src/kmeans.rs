//! `kmeans`: Lloyd's algorithm from several initial states, the best of which is kept.
//!
//! Minimises Σᵢ minⱼ ‖xᵢ - cⱼ‖² over k centres by turns: every example takes its nearest centre ([`assign`]), every
//! centre moves to the mean of its examples. Distances are always squared Euclidean, in the normalised space if the
//! pipeline normalises. Cost: restarts · iterations · n·k·p.
//!
//! Lloyd, "Least squares quantization in PCM", IEEE Transactions on Information Theory 28(2), 1982,
//! doi:10.1109/TIT.1982.1056489. When to stop and what becomes of empty clusters is as in scikit-learn.

use std::sync::atomic::{AtomicUsize, Ordering};

use compflow_api::{Clusterer, Clustering, Component, Diagnostics, Level, Result, Services, Sets, Task, register};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use compflow_kernels::assign::{Totals, assign};
use compflow_kernels::equals::distinct;
use compflow_kernels::plusplus;
use compflow_kernels::points::{Points, block_rows};
use compflow_kernels::workers::Workers;

/// Below this many products x·c per assignment, threads share out restarts instead of examples.
const SMALL: usize = 1 << 22;
/// Below this many products in an iteration of all restarts together, starting threads is not worth it.
const TINY: usize = 1 << 18;
/// Restarts shared out at a time; it bounds how many results wait for their comparison.
const WINDOW: usize = 64;

/// k-means: Lloyd's algorithm, restarted several times; the result with the smallest sum of squared distances is kept.
///
/// Distances are squared Euclidean, whatever the pipeline's distance; if its space normalises, examples are
/// normalised and centroids are means of normalised examples. A cluster that loses all its examples restarts at the
/// example that is farthest from its centre. If there are fewer distinct examples than `k`, fewer clusters are
/// returned.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of clusters.
    #[schemars(range(min = 1), example = 15)]
    pub k: usize,
    /// How often it starts from new initial centres.
    #[serde(default = "default_restarts")]
    #[schemars(range(min = 1))]
    pub restarts: usize,
    /// Iterations per restart at most.
    #[serde(default = "default_max_iter")]
    #[schemars(range(min = 1))]
    pub max_iter: usize,
    /// It stops when the centres move by less: the sum of their squared moves, divided by the mean variance of the
    /// dimensions. 0 goes on until no example changes its cluster.
    #[serde(default = "default_tol")]
    #[schemars(range(min = 0))]
    pub tol: f64,
    /// Where the initial centres come from.
    #[serde(default)]
    pub init: Init,
}

fn default_restarts() -> usize {
    10
}

fn default_max_iter() -> usize {
    300
}

fn default_tol() -> f64 {
    1e-4
}

/// Where the initial centres come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Init {
    /// Examples far from one another, by greedy k-means++.
    #[default]
    #[serde(rename = "k-means++")]
    PlusPlus,
    /// Any `k` examples.
    #[serde(rename = "random")]
    Random,
}

/// The clusterer `kmeans`.
#[derive(Debug)]
pub struct KMeans(Params);
register!(clusterer KMeans);

impl Component for KMeans {
    const NAME: &'static str = "kmeans";
    const SUMMARY: &'static str = "k-means: Lloyd's algorithm with k-means++ seeding";
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }
}

impl Clusterer for KMeans {
    fn memory(&self, rows: usize, dim: usize, _degree: usize) -> u64 {
        let k = self.0.k;
        let blocks = rows.div_ceil(block_rows(rows, k.saturating_mul(dim)));
        // Of an example: the prepared copy, its norm, labels of this restart and the best, and the returned set.
        let mut numbers = rows.saturating_mul(dim + 1 + 2 + 4);
        if self.0.init == Init::PlusPlus {
            numbers = numbers.saturating_add(rows.saturating_mul(1 + plusplus::trials(k)));
        }
        // Partial sums are twice as wide as everything else.
        let partial = k.saturating_mul(dim + 1).saturating_mul(2 * (blocks + 1));
        (numbers.saturating_add(partial) as u64).saturating_mul(4)
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let Params { k, restarts, max_iter, .. } = self.0;
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        task.require_k(k)?;
        services.require_memory(self.memory(n, dim, task.degree), "lower `k` or the number of examples")?;

        let products = n.saturating_mul(k).saturating_mul(dim);
        let threads = if products.saturating_mul(restarts) < TINY { 1 } else { services.threads };
        let by_restart = products < SMALL && restarts > 1;
        let (over_restarts, over_rows) = match by_restart {
            true => (Workers::new(threads.min(restarts))?, Workers::alone()),
            false => (Workers::alone(), Workers::new(threads)?),
        };
        let block_rows = block_rows(n, k.saturating_mul(dim));
        let points = Points::new(task.points().into_owned(), dim, block_rows, &over_rows, services)?;

        let (done, total) = (AtomicUsize::new(0), restarts.saturating_mul(max_iter));
        let advance = |iterations: usize| {
            let before = done.fetch_add(iterations, Ordering::Relaxed);
            services.progress(before.saturating_add(iterations), total)
        };
        let restart = |stream: usize| {
            let mut rng = ChaCha8Rng::seed_from_u64(services.seed);
            rng.set_stream(stream as u64);
            let centres = match self.0.init {
                Init::PlusPlus => plusplus::seed(&points, k, &mut rng, &over_rows, services)?,
                Init::Random => {
                    let rows = rand::seq::index::sample(&mut rng, n, k);
                    rows.iter().flat_map(|row| points.row(row)).copied().collect()
                }
            };
            let run = self.lloyd(&points, centres, &over_rows, services, || advance(1))?;
            advance(max_iter - run.trace.len())?;
            Ok(run)
        };
        let mut best = restart(0)?;
        for first in (1..restarts).step_by(WINDOW) {
            for run in over_restarts.map(first..restarts.min(first.saturating_add(WINDOW)), restart)? {
                if run.inertia < best.inertia {
                    best = run;
                }
            }
        }
        Ok(best.into_clustering(task, &points, services))
    }
}

/// Where one restart ended.
struct Run {
    centres: Vec<f32>,
    /// The nearest centre of every point.
    labels: Vec<u32>,
    /// The sum of squared distances from it.
    inertia: f64,
    /// The same after every iteration.
    trace: Vec<f64>,
    converged: bool,
}

impl KMeans {
    fn lloyd(
        &self,
        points: &Points,
        mut centres: Vec<f32>,
        workers: &Workers,
        services: &Services<'_>,
        advance: impl Fn() -> Result<()>,
    ) -> Result<Run> {
        let variance = points.scatter() / (points.len() * points.dim()) as f64;
        let mut labels = vec![u32::MAX; points.len()];
        let (mut trace, mut converged) = (Vec::new(), false);
        for _ in 0..self.0.max_iter {
            advance()?;
            let mut totals = assign(points, &centres, &mut labels, workers, services)?;
            let moved = fill_empty(points, &centres, &mut labels, &mut totals);
            let means = totals.means(&centres);
            let shift: f64 =
                means.iter().zip(&centres).map(|(&to, &from)| (f64::from(to) - f64::from(from)).powi(2)).sum();
            centres = means;
            let inertia = totals.inertia(points.scatter(), &centres);
            trace.push(inertia);
            if totals.changed == 0 && !moved {
                // The same labels gave the same centres as in the iteration before: they fit one another.
                return Ok(Run { centres, labels, inertia, trace, converged: true });
            }
            converged = shift <= self.0.tol * variance;
            if converged {
                break;
            }
        }
        let inertia =
            assign(points, &centres, &mut labels, workers, services)?.inertia(points.scatter(), &centres);
        Ok(Run { centres, labels, inertia, trace, converged })
    }
}

/// Gives every centre without points the one that is farthest from its own, and says whether it gave any. Points on
/// their centre and the only point of a centre are left where they are.
fn fill_empty(points: &Points, centres: &[f32], labels: &mut [u32], totals: &mut Totals) -> bool {
    let empty: Vec<usize> = (0..totals.counts.len()).filter(|&centre| totals.counts[centre] == 0).collect();
    if empty.is_empty() {
        return false;
    }
    let dim = points.dim();
    let distance = |row: usize| -> f64 {
        let centre = &centres[labels[row] as usize * dim..][..dim];
        points.row(row).iter().zip(centre).map(|(&x, &c)| (f64::from(x) - f64::from(c)).powi(2)).sum()
    };
    let mut farthest: Vec<(f64, usize)> = (0..points.len()).map(|row| (distance(row), row)).collect();
    farthest.retain(|(distance, _)| *distance > 0.0);
    farthest.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut moved = false;
    let mut empty = empty.into_iter().peekable();
    for (_, row) in farthest {
        let Some(&to) = empty.peek() else { break };
        let from = labels[row] as usize;
        if totals.counts[from] > 1 {
            for (axis, &value) in points.row(row).iter().enumerate() {
                totals.sums[from * dim + axis] -= f64::from(value);
                totals.sums[to * dim + axis] = f64::from(value);
            }
            totals.counts[from] -= 1;
            totals.counts[to] = 1;
            labels[row] = to as u32;
            moved = true;
            empty.next();
        }
    }
    moved
}

impl Run {
    /// Keeps the centres in use, numbered without gaps, in the coordinates that the data came in.
    fn into_clustering(mut self, task: &Task<'_>, points: &Points, services: &Services<'_>) -> Clustering {
        let dim = points.dim();
        let k = self.centres.len() / dim;
        let mut used = vec![false; k];
        self.labels.iter().for_each(|&label| used[label as usize] = true);
        let (mut names, mut centroids) = (vec![0; k], Vec::new());
        let mut clusters = 0;
        for (centre, point) in self.centres.chunks_exact(dim).enumerate().filter(|(centre, _)| used[*centre]) {
            names[centre] = clusters;
            clusters += 1;
            centroids.extend(points.restore(point));
        }
        if (clusters as usize) < k {
            let reason = match distinct(&task.points(), dim) < k {
                true => "fewer examples than `k` are distinct",
                false => {
                    "a few values are so large that 32 bits do not tell the rest apart: leave them out or rescale"
                }
            };
            services.log(
                Level::Warn,
                format!("kmeans found {clusters} clusters for `k` = {k}; the others are empty, as {reason}"),
            );
        }
        self.labels.iter_mut().for_each(|label| *label = names[*label as usize]);
        Clustering {
            assignments: Sets::singletons(&self.labels),
            clusters: Sets::all_up_to(clusters as usize, 1),
            centroids,
            diagnostics: Diagnostics {
                iterations: self.trace.len() as u64,
                converged: self.converged,
                objective: points.restore_squared(self.inertia),
                trace: self.trace.iter().map(|&inertia| points.restore_squared(inertia)).collect(),
            },
            ..Clustering::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Embeddings, Error, ForeignClusterer, Normalize, Registration};

    use super::*;
    use crate::fixtures::{Fixtures, deviation};
    use crate::{naive, parity};
    use compflow_kernels::testing::examples;
    use compflow_kernels::testing::watcher::Watcher;

    fn params(k: usize) -> Params {
        Params { k, restarts: 4, max_iter: 100, tol: 0.0, init: Init::PlusPlus }
    }

    fn cluster(values: &[f32], dim: usize, params: Params, services: &Services<'_>) -> Result<Clustering> {
        let task = Task::new(Embeddings::new(values, dim));
        let clustering = KMeans(params).cluster(&task, services)?;
        clustering.check(&task)?;
        Ok(clustering)
    }

    fn found(values: &[f32], dim: usize, params: Params) -> Clustering {
        cluster(values, dim, params, &Services::none()).unwrap()
    }

    fn prepare(values: &[f32], dim: usize) -> Points {
        Points::new(values.to_vec(), dim, 1024, &Workers::alone(), &Services::none()).unwrap()
    }

    fn lloyd(points: &Points, centres: Vec<f32>) -> Run {
        let k = centres.len() / points.dim();
        KMeans(params(k)).lloyd(points, centres, &Workers::alone(), &Services::none(), || Ok(())).unwrap()
    }

    #[test]
    fn equals_plain_loops_from_the_same_centres() {
        for (n, dim, k, seed) in [(200, 2, 3, 1), (1500, 8, 10, 2), (3000, 16, 20, 3), (500, 3, 40, 4)] {
            let points = prepare(&examples::uniform(n, dim, seed), dim);
            let centres: Vec<f32> = (0..k).flat_map(|at| points.row(at * n / k).to_vec()).collect();
            let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
            let rows: Vec<f64> = points.blocks().flat_map(wide).collect();
            let (labels, inertia, iterations) = naive::lloyd(&rows, wide(&centres), dim);

            let run = lloyd(&points, centres);
            assert_eq!(run.labels, labels, "seed {seed}");
            assert_eq!(run.trace.len() as u64, iterations, "seed {seed}");
            assert!((run.inertia - inertia).abs() < 1e-9 * inertia, "{} {inertia}", run.inertia);
            assert!(run.converged);
        }
    }

    #[test]
    fn equals_scikit_learn_from_the_same_centres() {
        let (data, expected) = (Fixtures::new(), Fixtures::kmeans());
        let (mut cases, mut largest) = (0, 0.0f64);
        for case in expected.with_ending("/numbers") {
            let (values, dim) = data.points(case.rsplitn(3, '_').nth(2).unwrap());
            let numbers = |name: &str| expected.numbers(&format!("{case}/{name}")).1;
            let [tol, max_iter, iterations, inertia] = numbers("numbers")[..] else { panic!("{case}") };
            let points = prepare(&values, dim);
            let centres: Vec<f32> =
                numbers("start").iter().flat_map(|row| points.row(*row as usize).to_vec()).collect();
            let k = centres.len() / dim;
            let kmeans = KMeans(Params { tol, max_iter: max_iter as usize, ..params(k) });
            let run = kmeans.lloyd(&points, centres, &Workers::alone(), &Services::none(), || Ok(())).unwrap();
            let labels: Vec<u32> = numbers("labels").iter().map(|label| *label as u32).collect();
            assert_eq!(run.labels, labels, "{case}");
            assert_eq!(run.trace.len(), iterations as usize, "{case}");
            largest = largest.max(deviation(&[points.restore_squared(run.inertia)], &[inertia], 1e-6));
            let restored: Vec<f64> =
                run.centres.chunks_exact(dim).flat_map(|centre| points.restore(centre)).map(f64::from).collect();
            largest = largest.max(deviation(&restored, &numbers("centres"), 1e-2));
            cases += 1;
        }
        assert!(cases > 50 && largest < 1e-4, "{cases} {largest:e}");
        parity::check("`kmeans`", largest);
    }

    #[test]
    fn inertia_never_rises() {
        for (seed, tol) in [(1, 0.0), (2, 0.0), (3, 1e-2)] {
            let values = examples::uniform(2000, 5, seed);
            let diagnostics = found(&values, 5, Params { tol, init: Init::Random, ..params(30) }).diagnostics;
            assert!(diagnostics.trace.is_sorted_by(|a, b| *b <= a * (1.0 + 1e-12)), "{:?}", diagnostics.trace);
            assert!(diagnostics.objective <= *diagnostics.trace.last().unwrap());
            assert_eq!(diagnostics.iterations, diagnostics.trace.len() as u64);
        }
    }

    #[test]
    fn labels_are_the_nearest_centroids_even_when_stopped_early() {
        let values = examples::uniform(3000, 4, 5);
        for (max_iter, tol) in [(1, 0.0), (3, 0.0), (100, 1e-2)] {
            let clustering = found(&values, 4, Params { max_iter, tol, ..params(7) });
            assert_eq!(clustering.diagnostics.converged, tol > 0.0);
            let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
            let (labels, inertia) = naive::nearest(&wide(&values), &wide(&clustering.centroids), 4);
            assert_eq!(clustering.assignments.values(), labels);
            assert!((clustering.diagnostics.objective - inertia).abs() < 1e-5 * inertia);
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        // Restarts shared out, and examples shared out.
        for (n, dim, k) in [(2000, 8, 20), (40_000, 16, 12)] {
            assert_eq!(n * dim * k < SMALL, n == 2000);
            let values = examples::uniform(n, dim, 6);
            let params = Params { restarts: 3, max_iter: 15, ..params(k) };
            let run = |threads| cluster(&values, dim, params, &Services { threads, ..Services::none() }).unwrap();
            let alone = run(1);
            assert_eq!(run(1), alone);
            assert_eq!(run(2), alone);
            assert_eq!(run(3), alone);
        }
    }

    #[test]
    fn another_seed_is_another_run() {
        let values = examples::uniform(1000, 4, 7);
        let params = Params { restarts: 1, max_iter: 3, ..params(20) };
        let run = |seed| cluster(&values, 4, params, &Services { seed, ..Services::none() }).unwrap();
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn separated_groups_are_recovered_in_any_order_of_the_rows() {
        let (values, truth) = examples::blobs(9, 50, 3, 8);
        let labels = found(&values, 3, params(9)).assignments.values().to_vec();
        assert_eq!(examples::partition(&labels), examples::partition(&truth));

        let backwards: Vec<f32> = values.chunks_exact(3).rev().flatten().copied().collect();
        let mut turned = found(&backwards, 3, params(9)).assignments.values().to_vec();
        turned.reverse();
        assert_eq!(examples::partition(&turned), examples::partition(&truth));
    }

    #[test]
    fn data_far_from_the_origin_are_told_apart() {
        let (values, truth) = examples::blobs(4, 30, 2, 9);
        let far: Vec<f32> = values.iter().map(|value| value + 30_000.0).collect();
        let labels = found(&far, 2, params(4)).assignments.values().to_vec();
        assert_eq!(examples::partition(&labels), examples::partition(&truth));
    }

    #[test]
    fn one_cluster_is_the_mean() {
        let clustering = found(&[1.0, 2.0, 3.0, 6.0], 2, params(1));
        assert_eq!(clustering.centroids, [2.0, 4.0]);
        assert_eq!(clustering.assignments.values(), [0, 0]);
        assert_eq!(clustering.diagnostics.objective, 10.0);
        assert!(clustering.diagnostics.converged);
    }

    #[test]
    fn as_many_clusters_as_examples_leave_no_distance() {
        let values = examples::uniform(50, 3, 10);
        for init in [Init::PlusPlus, Init::Random] {
            let clustering = found(&values, 3, Params { init, ..params(50) });
            assert_eq!(clustering.clusters.len(), 50);
            assert!(clustering.diagnostics.objective < 1e-12);
        }
    }

    #[test]
    fn a_space_that_normalises_is_clustered_by_direction() {
        let values = [1.0, 0.1, 50.0, 4.0, 0.1, 1.0, 2.0, 60.0];
        let mut task = Task::new(Embeddings::new(&values, 2));
        task.space.normalize = Normalize::L2;
        let clustering = KMeans(params(2)).cluster(&task, &Services::none()).unwrap();
        assert_eq!(examples::partition(clustering.assignments.values()), [0, 0, 1, 1]);
        assert!(clustering.centroids.iter().all(|value| *value < 1.0));
    }

    #[test]
    fn fewer_distinct_examples_than_clusters_give_fewer_clusters_and_a_warning() {
        let values: Vec<f32> = (0..300).map(|at| [0.1, -7.3, 2.2][at % 3]).collect();
        for init in [Init::PlusPlus, Init::Random] {
            let host = Watcher::new(usize::MAX);
            let services = Services { host: &host, ..Services::none() };
            let clustering = cluster(&values, 1, Params { init, ..params(5) }, &services).unwrap();
            let expected: Vec<u32> = (0..300).map(|at| at % 3).collect();
            assert_eq!(examples::partition(clustering.assignments.values()), expected);
            assert_eq!(clustering.clusters.len(), 3);
            assert!(clustering.diagnostics.objective < 1e-9 && clustering.diagnostics.converged);
            let lines = host.lines.into_inner().unwrap();
            assert_eq!(lines.len(), 1);
            assert_eq!(lines[0].0, Level::Warn);
            assert!(lines[0].1.starts_with("kmeans found 3 clusters for `k` = 5; "), "{}", lines[0].1);
        }
        let equal = found(&[3.0; 8], 2, params(2));
        assert_eq!((equal.clusters.len(), &equal.centroids[..]), (1, &[3.0, 3.0][..]));
    }

    #[test]
    fn an_outlier_that_hides_the_rest_is_named_as_the_reason() {
        let (mut values, _) = examples::blobs(4, 20, 2, 1);
        values.extend([1e9, 1e9]);
        let host = Watcher::new(usize::MAX);
        let services = Services { host: &host, ..Services::none() };
        let clustering = cluster(&values, 2, params(5), &services).unwrap();
        assert!(clustering.clusters.len() < 5);
        let warnings = host.warnings();
        assert!(warnings[0].contains("32 bits do not tell the rest apart"), "{warnings:?}");
    }

    #[test]
    fn an_empty_cluster_moves_to_the_farthest_example() {
        // Both centres on the left: the second gets nothing, and the example on the right is the farthest.
        let points = prepare(&[0.0, 1.0, 2.0, 20.0], 1);
        let left = points.row(0)[0];
        let mut labels = vec![u32::MAX; 4];
        let centres = [left, left];
        let (workers, services) = (Workers::alone(), Services::none());
        let mut totals = assign(&points, &centres, &mut labels, &workers, &services).unwrap();
        assert_eq!(totals.counts, [4, 0]);
        assert!(fill_empty(&points, &centres, &mut labels, &mut totals));
        assert_eq!((totals.counts.clone(), &labels[..]), (vec![3, 1], &[0, 0, 0, 1][..]));
        assert_eq!(totals.means(&centres), [points.row(1)[0], points.row(3)[0]]);
        assert!(!fill_empty(&points, &centres, &mut labels, &mut totals));
        assert_eq!(lloyd(&points, centres.to_vec()).labels, [0, 0, 0, 1]);
    }

    #[test]
    fn more_clusters_than_examples_are_refused() {
        let refused = cluster(&[1.0, 2.0], 1, params(3), &Services::none()).unwrap_err();
        assert_eq!(refused.to_string(), "`k` = 3 is more than the 2 examples");
    }

    #[test]
    fn too_little_memory_is_refused_with_a_remedy() {
        let services = Services { memory: 1000, ..Services::none() };
        let refused = cluster(&[1.0; 4000], 4, params(3), &services).unwrap_err();
        assert!(refused.to_string().ends_with("lower `k` or the number of examples"), "{refused}");
    }

    #[test]
    fn work_that_is_no_longer_wanted_stops() {
        let values = examples::uniform(5000, 8, 11);
        for (threads, patience) in [(1, 1), (1, 3), (2, 3)] {
            let host = Watcher::new(patience);
            let services = Services { host: &host, threads, ..Services::none() };
            let params = Params { max_iter: 1_000_000, ..params(50) };
            assert_eq!(cluster(&values, 8, params, &services).unwrap_err(), Error::Cancelled);
            assert!(host.reports.lock().unwrap().len() <= patience + threads);
        }
    }

    #[test]
    fn progress_ends_at_the_total() {
        let host = Watcher::new(usize::MAX);
        let services = Services { host: &host, threads: 2, ..Services::none() };
        cluster(&examples::uniform(2000, 8, 12), 8, params(20), &services).unwrap();
        let reports = host.reports.into_inner().unwrap();
        assert!(reports.iter().all(|(done, total)| done <= total && *total == 400));
        assert!(reports.contains(&(400, 400)));
    }

    #[test]
    fn works_across_the_boundary() {
        let component = Registration::clusterer::<KMeans>().component().unwrap();
        let create = |params: &str| component.create(params, &Services::none());
        let kmeans = create(r#"{"k": 9, "restarts": 4, "max_iter": 100, "tol": 0}"#).unwrap();
        let kmeans = ForeignClusterer::try_from(kmeans).unwrap();
        let (values, _) = examples::blobs(9, 50, 3, 8);
        let task = Task::new(Embeddings::new(&values, 3));
        assert_eq!(kmeans.cluster(&task, &Services::none()).unwrap(), found(&values, 3, params(9)));
        assert!(kmeans.memory(450, 3, 1) > 450 * 3 * 4);

        let refused = |params: &str| create(params).unwrap_err().to_string();
        assert_eq!(refused("{}"), "`k` is missing");
        assert_eq!(refused(r#"{"k": 0}"#), "`k` must be a whole number at least 1, found 0");
        assert_eq!(
            refused(r#"{"k": 2, "init": "kmeans"}"#),
            r#"`init` must be "k-means++" or "random", found "kmeans""#
        );
        assert_eq!(refused(r#"{"k": 2, "tol": -1}"#), "`tol` must be a number at least 0, found -1");
    }
}
