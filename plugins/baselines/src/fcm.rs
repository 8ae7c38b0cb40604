//! `fcm`: fuzzy c-means, in which every example belongs to every cluster to some degree.
//!
//! | Bezdek, Ehrlich and Full | here |
//! | --- | --- |
//! | y_k, N, n | examples xᵢ, their number n and dimensions p |
//! | c, v_i | `k`, `centres` cⱼ |
//! | U, u_ik | memberships `u`, uᵢⱼ |
//! | m | `m` |
//! | J_m, ε | the objective, `error` |
//! | partition coefficient F_c | `fpc` |
//!
//! Minimises Jₘ = Σᵢ Σⱼ uᵢⱼᵐ dᵢⱼ² with dᵢⱼ = ‖xᵢ - cⱼ‖ and Σⱼ uᵢⱼ = 1 by turns:
//!
//! ```text
//! cⱼ  = Σᵢ uᵢⱼᵐ xᵢ / Σᵢ uᵢⱼᵐ
//! uᵢⱼ = dᵢⱼ^(-2q) / Σₗ dᵢₗ^(-2q),    q = 1 / (m - 1)
//! ```
//!
//! until ‖u - u'‖ of two successive matrices u is below `error`. With r = min d² / d² the power r^q lies in [0, 1]
//! however large q is (m = 1.2 means q = 5), and as m·q = q + 1,
//!
//! ```text
//! u = r^q / t,    uᵐ = r^q · r / tᵐ,    t = Σ r^q
//! ```
//!
//! needs one power per example and cluster, which is a few products if q is a whole number. Distances are taken from
//! differences, not from products, because what counts at a power of -10 is how near zero they are. Cost: iterations ·
//! n·k·p in f64.
//!
//! Bezdek, Ehrlich and Full, "FCM: the fuzzy c-means clustering algorithm", Computers & Geosciences 10(2-3), 1984,
//! doi:10.1016/0098-3004(84)90020-7. Order of steps, smallest distances and memberships, and when to stop are as in
//! scikit-fuzzy.
//!
//! # Weaknesses
//!
//! If m is too large, centres fall together in the mean of all examples: all memberships equal is a minimum, too, and in
//! many dimensions, where distances are alike, m = 2 leads there (Yu, Cheng and Huang, "Analysis of the weighting exponent
//! in the FCM", IEEE Transactions on Systems, Man, and Cybernetics B 34(1), 2004). If m is near 1 it is k-means with one
//! restart. Memberships say how near an example is to several centres, not whether it is composed of them: a union that
//! lies elsewhere than between its members is a cluster of its own.

mod pass;

use compflow_api::{
    Clusterer, Clustering, Component, Diagnostics, Level, Result, Services, Shape, Task, register,
};
use pulp::Arch;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::soft::{self, Threshold};
use crate::tiles::{ROWS, Tiles};
use compflow_kernels::workers::Workers;
use pass::{LEAST, LEAST_WEIGHT, Pass, Power};

/// Below this many products in an iteration, starting threads is not worth it.
const TINY: usize = 1 << 18;

/// Fuzzy c-means: every example belongs to every cluster to some degree, and to the set of those clusters in which its
/// membership is above `threshold`.
///
/// If there are none, it belongs to the cluster with the largest membership; if there are more than the pipeline's
/// degree, to those with the largest. Distances are Euclidean, whatever the pipeline's distance; if its space
/// normalises, examples are normalised. Centroids of single clusters are the method's centres, those of larger sets
/// the means of the examples given to the set. The fuzzy partition coefficient Σu²/n is logged.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of clusters, or "auto", which selects it for every trial.
    #[schemars(range(min = 1), example = 15, extend("x-select" = { "from": 2, "to": 30 }))]
    pub k: usize,
    /// How fuzzy: near 1, memberships are nearly 0 or 1; the larger, the more alike they are. The more dimensions and
    /// clusters, the nearer to 1 it has to be: else centres fall together in the mean of all examples.
    #[serde(default = "default_m")]
    #[schemars(extend("exclusiveMinimum" = 1))]
    pub m: f64,
    /// An example belongs to the clusters in which its membership is above this: a number, or `"1/k"`, as the authors of
    /// compositional clustering have it. 1/(d+1) unless given, with d the pipeline's degree, above which no more than d can
    /// be.
    #[serde(default)]
    pub threshold: Option<Threshold>,
    /// It stops when memberships change by less: the root of the sum of squared changes.
    #[serde(default = "default_error")]
    #[schemars(range(min = 0))]
    pub error: f64,
    /// Iterations at most.
    #[serde(default = "default_max_iter")]
    #[schemars(range(min = 1))]
    pub max_iter: usize,
    /// Values for what is not given.
    #[serde(default)]
    pub preset: Option<Preset>,
}

/// On 44 sets of 2 to 512 dimensions, with as many clusters as there are true sets, the best of 1.05 to 2 on average: from 1.2
/// on centres begin to fall together where there are many dimensions or clusters, and 2 is worst nearly everywhere.
fn default_m() -> f64 {
    1.15
}

fn default_error() -> f64 {
    0.005
}

fn default_max_iter() -> usize {
    1000
}

/// Values that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// What the authors of compositional clustering compared with at degree 2.
    #[schemars(extend("values" = { "k": 18, "m": 1.2, "threshold": "1/k" }))]
    AuthorsCode,
}

/// The clusterer `fcm`.
#[derive(Debug)]
pub struct Fcm {
    k: usize,
    m: f64,
    threshold: Option<Threshold>,
    error: f64,
    max_iter: usize,
}
register!(clusterer Fcm);

impl Component for Fcm {
    const NAME: &'static str = "fcm";
    const SUMMARY: &'static str = "fuzzy c-means";
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        let Params { k, m, threshold, error, max_iter, preset: _ } = params;
        Ok(Self { k, m, threshold, error, max_iter })
    }
}

impl Clusterer for Fcm {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, .. } = shape;
        // The examples; memberships, their powers and, while they are made, the first ones; those returned.
        let tables = Tiles::memory(rows, dim).saturating_add(Tiles::memory(rows, self.k).saturating_mul(3));
        Ok(tables.saturating_add(rows.saturating_mul(self.k).saturating_mul(size_of::<f32>())) as u64)
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let (k, n, dim) = (self.k, task.embeddings.len(), task.embeddings.dim());
        task.require_k(k)?;
        services.require_memory(self.memory(task.shape(), services)?, "lower `k` or the number of examples")?;
        let threads = if n.saturating_mul(k).saturating_mul(dim) < TINY { 1 } else { services.threads };
        let workers = Workers::new(threads)?;
        let tiles = Tiles::new(&task.points(), None, dim, k.saturating_mul(dim + 1));

        let mut rng = ChaCha8Rng::seed_from_u64(services.seed);
        let first: Vec<f64> = (0..n * k).map(|_| rng.random()).collect();
        let run = self.run(&tiles, &first, &workers, services)?;
        services.log(Level::Info, format!("fuzzy partition coefficient {:.6}", run.fpc));
        let diagnostics = Diagnostics {
            iterations: run.trace.len() as u64,
            converged: run.converged,
            objective: run.trace.last().copied().unwrap_or(f64::NAN),
            trace: run.trace,
        };
        let memberships = tiles.rows(&run.u);
        let collapse = || {
            let (m, largest) = (self.m, tiles.largest());
            format!("`m` = {m} is large, or the examples, up to {largest:e} from their mean, are too near for f64")
        };
        // Weights are no matter here, so they are none in the centroids of unions either.
        let unweighted = Task { weights: None, ..*task };
        let mut found = soft::clustering(
            &unweighted,
            memberships,
            &run.centres,
            self.threshold,
            diagnostics,
            services,
            collapse,
        );
        found.scalars.push(("fuzzy_partition_coefficient".to_owned(), run.fpc));
        Ok(found)
    }
}

/// Where it ended.
struct Run {
    /// Row-major.
    centres: Vec<f64>,
    /// Memberships, a table like the examples.
    u: Vec<f64>,
    /// The fuzzy partition coefficient.
    fpc: f64,
    /// Jₘ of every iteration: of its centres and the memberships that they were found from.
    trace: Vec<f64>,
    converged: bool,
}

impl Fcm {
    /// From first memberships, a row of `k` positive numbers per example, which need not add up to 1.
    fn run(&self, tiles: &Tiles, first: &[f64], workers: &Workers, services: &Services<'_>) -> Result<Run> {
        let (k, dim) = (self.k, tiles.dim());
        let first: Vec<f64> = first
            .chunks_exact(k)
            .flat_map(|row| {
                let sum: f64 = row.iter().map(|value| value.max(LEAST)).sum();
                row.iter().map(move |value| value.max(LEAST) / sum)
            })
            .collect();
        let mut u = Tiles::table(&first, k);
        drop(first);
        let mut powers = vec![0.0; u.len()];
        let mut totals = self.weigh(tiles, &u, &mut powers, workers, services)?;
        let (mut centres, mut trace, mut converged) = (Vec::new(), Vec::new(), false);
        while trace.len() < self.max_iter && !converged {
            services.progress(trace.len(), self.max_iter)?;
            centres = totals.centres(dim);
            totals = self.step(tiles, &centres, &mut u, &mut powers, workers, services)?;
            trace.push(totals.objective);
            converged = totals.change.sqrt() < self.error;
        }
        services.progress(self.max_iter, self.max_iter)?;
        let fpc = u.iter().map(|u| u * u).sum::<f64>() / tiles.len() as f64;
        Ok(Run { centres: tiles.restore(&centres), u, fpc, trace, converged })
    }

    /// The powers of the first memberships, and what they weigh.
    fn weigh(
        &self,
        tiles: &Tiles,
        u: &[f64],
        powers: &mut [f64],
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Totals> {
        let (k, dim, piece) = (self.k, tiles.dim(), tiles.piece_of(self.k));
        let pieces = tiles.pieces().zip(u.chunks(piece).zip(powers.chunks_mut(piece)));
        let partial = workers.map(
            pieces.map(|(tiles, tables)| (tiles.collect::<Vec<_>>(), tables)),
            |(tiles, tables)| {
                let mut totals = Totals::zero(k, dim);
                let tables = tables.0.chunks_exact(k * ROWS).zip(tables.1.chunks_exact_mut(k * ROWS));
                for (tile, (u, powers)) in tiles.into_iter().zip(tables) {
                    services.check_cancelled()?;
                    for (u, powers) in u.chunks_exact(ROWS).zip(powers.chunks_exact_mut(ROWS)) {
                        for (power, u) in powers.iter_mut().zip(u).take(tile.rows) {
                            *power = libm::pow(u.max(LEAST), self.m).max(LEAST_WEIGHT);
                        }
                    }
                    tile.weigh(powers, &mut totals.sums, &mut totals.weights);
                }
                Ok(totals)
            },
        )?;
        Ok(Totals::sum(partial, k, dim))
    }

    /// One iteration: new memberships and their powers from the centres, and what they weigh.
    fn step(
        &self,
        tiles: &Tiles,
        centres: &[f64],
        u: &mut [f64],
        powers: &mut [f64],
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Totals> {
        let (k, dim, piece) = (self.k, tiles.dim(), tiles.piece_of(self.k));
        let (arch, power) = (Arch::new(), Power::new(self.m));
        let pieces = tiles.pieces().zip(u.chunks_mut(piece).zip(powers.chunks_mut(piece)));
        let partial = workers.map(
            pieces.map(|(tiles, tables)| (tiles.collect::<Vec<_>>(), tables)),
            |(tiles, tables)| {
                let mut totals = Totals::zero(k, dim);
                let tables = tables.0.chunks_exact_mut(k * ROWS).zip(tables.1.chunks_exact_mut(k * ROWS));
                for (tile, (u, powers)) in tiles.into_iter().zip(tables) {
                    services.check_cancelled()?;
                    let (objective, change) =
                        arch.dispatch(Pass { tile, centres, u, powers: &mut *powers, power, m: self.m });
                    totals.objective += objective;
                    totals.change += change;
                    tile.weigh(powers, &mut totals.sums, &mut totals.weights);
                }
                Ok(totals)
            },
        )?;
        Ok(Totals::sum(partial, k, dim))
    }
}

/// What examples add up to.
struct Totals {
    /// Σ uᵐx of every cluster, row-major.
    sums: Vec<f64>,
    /// Σ uᵐ of every cluster.
    weights: Vec<f64>,
    /// Σ uᵐd², with the memberships from before.
    objective: f64,
    /// Σ of the squared changes of u.
    change: f64,
}

impl Totals {
    fn zero(k: usize, dim: usize) -> Self {
        Self { sums: vec![0.0; k * dim], weights: vec![0.0; k], objective: 0.0, change: 0.0 }
    }

    fn sum(partial: Vec<Self>, k: usize, dim: usize) -> Self {
        partial.into_iter().fold(Self::zero(k, dim), |mut totals, other| {
            totals.sums.iter_mut().zip(other.sums).for_each(|(sum, other)| *sum += other);
            totals.weights.iter_mut().zip(other.weights).for_each(|(weight, other)| *weight += other);
            totals.objective += other.objective;
            totals.change += other.change;
            totals
        })
    }

    fn centres(&self, dim: usize) -> Vec<f64> {
        let rows = self.sums.chunks_exact(dim).zip(&self.weights);
        rows.flat_map(|(sum, weight)| sum.iter().map(move |sum| sum / weight)).collect()
    }
}

#[cfg(test)]
mod tests;
