//! `kmeans`: Lloyd's algorithm from several initial states, the best of which is kept.
//!
//! | Lloyd | here |
//! | --- | --- |
//! | samples x | rows of [`Points`], wᵢ times each |
//! | quanta q, their number ν | `centres`, `k` |
//! | the set Q of samples that are given to q | [`Totals`] of a centre |
//! | noise power N | `inertia`, the objective |
//!
//! Minimises Σᵢ wᵢ minⱼ ‖xᵢ - cⱼ‖² over k centres by turns: every example takes its nearest centre ([`assign`]), every
//! centre moves to the mean of its examples. Distances are always squared Euclidean, in the normalised space if the
//! pipeline normalises. Cost: restarts · iterations · n·k·p.
//!
//! Lloyd, "Least squares quantization in PCM", IEEE Transactions on Information Theory 28(2), 1982,
//! doi:10.1109/TIT.1982.1056489. When to stop and what becomes of empty clusters is as in scikit-learn.
//!
//! # Weaknesses
//!
//! Clusters are taken for spheres of one size: what is long is cut, and a large cluster gives its rim to a small one. It
//! stays in the first minimum it comes to, hence the restarts; with many clusters most of them miss one. One far example
//! draws a centre to itself. `k` has to be known, and a union is a cluster like any other.

use std::sync::atomic::{AtomicUsize, Ordering};

use compflow_api::{
    Clusterer, Clustering, Component, Diagnostics, Flags, Level, Normalize, Result, Services, Sets, Shape,
    Singletons, Task, plural, register,
};
use rand::SeedableRng;
use rand::seq::index::{sample, sample_weighted};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::means::singletons;
use compflow_kernels::assign::{Totals, assign};
use compflow_kernels::equals::distinct;
use compflow_kernels::pairs::squared;
use compflow_kernels::plusplus;
use compflow_kernels::points::{Points, block_rows};
use compflow_kernels::weights;
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
/// returned. If the data has weights, an example counts as if it were there so many times.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of clusters, or "auto", which selects it for every trial.
    #[schemars(range(min = 1), example = 15, extend("x-select" = { "from": 2, "to": 30 }))]
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
    const FLAGS: Flags = Flags::USES_WEIGHTS;
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }
}

impl Clusterer for KMeans {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, .. } = shape;
        let k = self.0.k;
        let blocks = rows.div_ceil(block_rows(rows, k.saturating_mul(dim)));
        // Of an example: the prepared copy, its norm and weight, labels of this restart and the best, and the returned
        // set.
        let mut numbers = rows.saturating_mul(dim + 2 + 2 + 4);
        if self.0.init == Init::PlusPlus {
            numbers = numbers.saturating_add(rows.saturating_mul(1 + plusplus::trials(k)));
        }
        // Partial sums are twice as wide as everything else.
        let partial = k.saturating_mul(dim + 1).saturating_mul(2 * (blocks + 1));
        Ok((numbers.saturating_add(partial) as u64).saturating_mul(4))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let Params { k, restarts, max_iter, .. } = self.0;
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        task.require_k(k)?;
        let task = &Task { weights: weights::check(task.weights, n)?, ..*task };
        services.require_memory(self.memory(task.shape(), services)?, "lower `k` or the number of examples")?;

        let products = n.saturating_mul(k).saturating_mul(dim);
        let threads = if products.saturating_mul(restarts) < TINY { 1 } else { services.threads };
        let by_restart = products < SMALL && restarts > 1;
        let (over_restarts, over_rows) = match by_restart {
            true => (Workers::new(threads.min(restarts))?, Workers::alone()),
            false => (Workers::alone(), Workers::new(threads)?),
        };
        let block_rows = block_rows(n, k.saturating_mul(dim));
        let values = task.points().into_owned();
        let points = Points::weighted(values, task.weights, dim, block_rows, &over_rows, services)?;

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
                Init::Random => draw_rows(task.weights, n, k, &mut rng)
                    .iter()
                    .flat_map(|&row| points.row(row))
                    .copied()
                    .collect(),
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
        let mut labels = vec![u32::MAX; points.len()];
        let (mut trace, mut converged) = (Vec::new(), false);
        for _ in 0..self.0.max_iter {
            advance()?;
            let mut totals = assign(points, &centres, &mut labels, workers, services)?;
            let moved = fill_empty(points, &centres, &mut labels, &mut totals);
            let means = totals.means(&centres);
            let shift = squared(&means, &centres);
            centres = means;
            let inertia = totals.inertia(points.scatter(), &centres);
            trace.push(inertia);
            if totals.changed == 0 && !moved {
                // The same labels gave the same centres as in the iteration before: they fit one another.
                return Ok(Run { centres, labels, inertia, trace, converged: true });
            }
            converged = shift <= self.0.tol * points.variance();
            if converged {
                break;
            }
        }
        let inertia =
            assign(points, &centres, &mut labels, workers, services)?.inertia(points.scatter(), &centres);
        Ok(Run { centres, labels, inertia, trace, converged })
    }
}

/// Any `k` rows, of those that count if they are enough: drawn one after the other, as often as they count.
fn draw_rows(weights: Option<&[f32]>, n: usize, k: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let weighted = weights.filter(|_| weights::count(weights, n) >= k);
    let drawn = weighted.map(|weights| sample_weighted(rng, n, |row| weights[row], k));
    match drawn {
        Some(Ok(rows)) => rows.into_vec(),
        // Weights have been checked.
        Some(Err(_)) | None => sample(rng, n, k).into_vec(),
    }
}

/// Gives every centre without points that count the one that is farthest from its own, and says whether it gave any.
/// Points on their centre and the only point of a centre are left where they are, as are those that do not count.
fn fill_empty(points: &Points, centres: &[f32], labels: &mut [u32], totals: &mut Totals) -> bool {
    let empty: Vec<usize> = (0..totals.counts.len()).filter(|&centre| totals.counts[centre] == 0.0).collect();
    if empty.is_empty() {
        return false;
    }
    let dim = points.dim();
    let distance = |row: usize| -> f64 { squared(points.row(row), &centres[labels[row] as usize * dim..][..dim]) };
    let mut farthest: Vec<(f64, usize)> = (0..points.len()).map(|row| (distance(row), row)).collect();
    let weight = |row: usize| weights::weight(points.weights(), row);
    farthest.retain(|(distance, row)| *distance > 0.0 && weight(*row) > 0.0);
    farthest.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut moved = false;
    let mut empty = empty.into_iter().peekable();
    for (_, row) in farthest {
        let Some(&to) = empty.peek() else { break };
        let (from, weight) = (labels[row] as usize, weight(row));
        // Sums of weights are rounded.
        if totals.counts[from] - weight > 1e-12 * totals.counts[from] {
            for (axis, &value) in points.row(row).iter().enumerate() {
                totals.sums[from * dim + axis] -= weight * f64::from(value);
                totals.sums[to * dim + axis] = weight * f64::from(value);
            }
            totals.counts[from] -= weight;
            totals.counts[to] = weight;
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
            centroids.extend(points.frame().restore(point));
        }
        if (clusters as usize) < k {
            let reason = match distinct(&task.points(), dim) < k {
                true => "fewer examples than `k` are distinct",
                false if weights::count(task.weights, task.embeddings.len()) < k => {
                    "fewer examples than `k` have a weight above 0"
                }
                false => {
                    "a few values are so large that 32 bits do not tell the rest apart: leave them out or rescale"
                }
            };
            services.log(
                Level::Warn,
                format!(
                    "kmeans found {} for `k` = {k}; the others are empty, as {reason}",
                    plural(clusters as usize, "cluster")
                ),
            );
        }
        self.labels.iter_mut().for_each(|label| *label = names[*label as usize]);
        Clustering {
            assignments: Sets::singletons(&self.labels),
            clusters: Sets::all_up_to(clusters as usize, 1),
            singletons: match task.space.normalize {
                Normalize::None => Singletons { numbers: (0..clusters).collect(), vectors: centroids.clone() },
                Normalize::L2 => singletons(task, task.weights, &self.labels, clusters as usize),
            },
            centroids,
            diagnostics: Diagnostics {
                iterations: self.trace.len() as u64,
                converged: self.converged,
                objective: points.frame().restore_squared(self.inertia),
                trace: self.trace.iter().map(|&inertia| points.frame().restore_squared(inertia)).collect(),
            },
            ..Clustering::default()
        }
    }
}

#[cfg(test)]
mod tests;
