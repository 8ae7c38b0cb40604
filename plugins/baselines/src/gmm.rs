//! `gmm`: a mixture of Gaussians, fitted by expectation and maximisation or by variational inference.
//!
//! | Bishop | here |
//! | --- | --- |
//! | N, D, K | examples ([`Tiles::total`], weighted), dimensions p, `k` |
//! | π_k, μ_k, Σ_k | shares and `means` of [`Gaussians`](crate::gaussians::Gaussians), covariances Cⱼ as factors F |
//! | γ(z_nk), r_nk | `responsibilities` rᵢⱼ |
//! | N_k, x̄_k, S_k | `sizes`, `means`, `covariances` of [`Moments`](crate::moments::Moments) |
//! | α₀, β₀, m₀, ν₀, W₀ | the prior in [`bayes`](crate::bayes) |
//! | ln p(X), L(q) | `bound`, the objective |
//!
//! Maximises the weighted mean log-likelihood of p(x) = Σⱼ πⱼ N(x; μⱼ, Cⱼ) by turns: every component is given responsibility
//! for the examples ([`gaussians`](crate::gaussians)), and from these its share, mean and covariance
//! ([`moments`](crate::moments)). The variant `bayes` has distributions in place of these parameters
//! ([`bayes`](crate::bayes)) and maximises a bound on the evidence. Cost: restarts · iterations · n·k·p² in f64 for full
//! covariances.
//!
//! Dempster, Laird and Rubin, "Maximum likelihood from incomplete data via the EM algorithm", Journal of the Royal
//! Statistical Society B 39(1), 1977, doi:10.1111/j.2517-6161.1977.tb01600.x; Bishop, "Pattern Recognition and Machine
//! Learning", Springer 2006, chapters 9.2 and 10.2. Initial states, regularisation and when to stop are as in
//! scikit-learn, but where that gives up because a covariance is singular, the regularisation is raised.
//!
//! # Weaknesses
//!
//! The likelihood has no maximum: a component on a single example is arbitrarily likely, which only `reg_covar` prevents,
//! and that is a number in squared units of the data. Full covariances have p²/2 numbers each, more than the examples
//! of a small cluster tell; `"tied"` or `"diag"` then do better. Probabilities in many dimensions are next to 0 or 1, so
//! sets of several components are rare: they mean doubt between neighbours, not composition. It stays near the k-means
//! that it starts from. `bayes` counts on `reg_covar` and its prior to leave components empty, which with few examples
//! empties too many.

mod model;

use std::sync::atomic::AtomicU32;

use compflow_api::{
    Clusterer, Clustering, Component, Densities, Diagnostics, Flags, Host, Level, Result, Services, Shape, Task,
    register,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gaussians::{Expectation, MOST_HANDED_ON};
use crate::kmeans::{self, KMeans};
pub use crate::moments::Covariance;
use crate::moments::Estimator;
use crate::soft::{self, Threshold};
use crate::tiles::Tiles;
use compflow_kernels::weights;
use compflow_kernels::workers::Workers;
use model::Model;

/// Below this many products in an iteration, starting threads is not worth it.
const TINY: usize = 1 << 18;

/// Gaussian mixture: every example belongs to every component with some probability, and to the set of those components
/// for which that is above `threshold`.
///
/// If there are none, it belongs to the most probable component; if there are more than the pipeline's degree, to the
/// most probable ones. If the pipeline's space normalises, examples are normalised. Centroids of single components are
/// their means, those of larger sets the means of the examples given to the set. If no example belongs to several, `compflow
/// assign` gives new ones to the most probable component and says how probable it is. A covariance that is singular in spite
/// of `reg_covar` has ten times as much added to its diagonal, as often as needed, with a warning. If the data has
/// weights, an example counts as if it were there so many times, in both variants and for all covariances.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Number of components, or "auto", which selects it for every trial; with `variant = "bayes"` some of them may come
    /// out next to empty.
    #[schemars(range(min = 1), example = 15, extend("x-select" = { "from": 2, "to": 30 }))]
    pub k: usize,
    /// What is fitted.
    #[serde(default)]
    pub variant: Variant,
    /// What covariances look like.
    #[serde(default)]
    pub covariance: Covariance,
    /// Added to the diagonals of covariances.
    #[serde(default = "default_reg_covar")]
    #[schemars(extend("minimum" = 0, "maximum" = 1e100))]
    pub reg_covar: f64,
    /// It stops when the objective, the mean log-likelihood or the bound on the evidence, changes by less.
    #[serde(default = "default_tol")]
    #[schemars(range(min = 0))]
    pub tol: f64,
    /// Iterations per restart at most.
    #[serde(default = "default_max_iter")]
    #[schemars(range(min = 1))]
    pub max_iter: usize,
    /// How often it starts from a new initial state; the best result is kept.
    #[serde(default = "default_restarts")]
    #[schemars(range(min = 1))]
    pub restarts: usize,
    /// Where the first responsibilities come from.
    #[serde(default)]
    pub init: Init,
    /// An example belongs to the components that are more probable than this: a number, or `"1/k"`, as the authors of
    /// compositional clustering have it. 1/(d+1) unless given, with d the pipeline's degree, above which no more than d can
    /// be.
    #[serde(default)]
    pub threshold: Option<Threshold>,
    /// Values for what is not given.
    #[serde(default)]
    pub preset: Option<Preset>,
}

fn default_reg_covar() -> f64 {
    1e-6
}

fn default_tol() -> f64 {
    1e-3
}

fn default_max_iter() -> usize {
    100
}

fn default_restarts() -> usize {
    1
}

/// What is fitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Shares, means and covariances, by maximum likelihood.
    #[default]
    Em,
    /// Distributions of them, by variational inference for a Dirichlet process.
    Bayes,
}

/// Where the first responsibilities come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    /// The clusters that k-means finds.
    #[default]
    Kmeans,
    /// Random numbers.
    Random,
}

/// Values that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// What the authors of compositional clustering compared with at degree 2.
    #[schemars(extend("values" = { "variant": "bayes", "max_iter": 500, "reg_covar": 0.1, "threshold": "1/k" }))]
    AuthorsCode,
}

/// The clusterer `gmm`.
#[derive(Debug, Clone, Copy)]
pub struct Gmm {
    k: usize,
    variant: Variant,
    covariance: Covariance,
    reg_covar: f64,
    tol: f64,
    max_iter: usize,
    restarts: usize,
    init: Init,
    threshold: Option<Threshold>,
}
register!(clusterer Gmm);

impl Component for Gmm {
    const NAME: &'static str = "gmm";
    const SUMMARY: &'static str = "mixture of Gaussians, by EM or variational Bayes";
    const FLAGS: Flags = Flags::USES_WEIGHTS;
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        let Params { k, variant, covariance, reg_covar, tol, max_iter, restarts, init, threshold, preset: _ } =
            params;
        Ok(Self { k, variant, covariance, reg_covar, tol, max_iter, restarts, init, threshold })
    }
}

impl Clusterer for Gmm {
    fn memory(&self, shape: Shape, services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, .. } = shape;
        // The examples and their weights; responsibilities of this restart, of the best and, while they are made, the first ones;
        // those returned.
        let tables = Tiles::memory(rows, dim + 1).saturating_add(Tiles::memory(rows, self.k).saturating_mul(3));
        let returned = rows.saturating_mul(self.k).saturating_mul(size_of::<f32>());
        // Sums of every piece, of which there are at least eight; means, covariances and factors.
        let scatter = self.k.saturating_mul(dim + self.covariance.numbers(dim)).saturating_mul(size_of::<f64>());
        // Densities of this restart and of the best.
        let densities = Densities::factor_len(dim).saturating_mul(self.k).min(MOST_HANDED_ON).saturating_mul(8);
        let start = start(self.k, services)?.memory(shape, services)?;
        let scatter = scatter.saturating_mul(16).saturating_add(densities);
        Ok((tables.saturating_add(returned).saturating_add(scatter) as u64).saturating_add(start))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let (k, n, dim) = (self.k, task.embeddings.len(), task.embeddings.dim());
        task.require_k(k)?;
        let task = &Task { weights: weights::check(task.weights, n)?, ..*task };
        services.require_memory(self.memory(task.shape(), services)?, "lower `k` or the number of examples")?;
        if let Some(text) = task.weights.and_then(weights::warning) {
            services.log(Level::Warn, text);
        }
        let numbers = dim.saturating_add(self.covariance.numbers(dim));
        let threads = if n.saturating_mul(k).saturating_mul(numbers) < TINY { 1 } else { services.threads };
        let workers = Workers::new(threads)?;
        let tiles = Tiles::new(&task.points(), task.weights, dim, k.saturating_mul(numbers));
        let estimator = Estimator::new(&tiles, self.covariance, self.reg_covar);

        let mut best: Option<Run> = None;
        let mut raised = 0.0f64;
        for restart in 0..self.restarts {
            let mut rng = ChaCha8Rng::seed_from_u64(services.seed);
            rng.set_stream(restart as u64);
            let first = self.first(task, &mut rng, services)?;
            let done = restart.saturating_mul(self.max_iter);
            let advance = |iterations: usize| {
                services.progress(done.saturating_add(iterations), self.restarts.saturating_mul(self.max_iter))
            };
            let run = self.run(&estimator, &first, &workers, services, advance)?;
            advance(self.max_iter)?;
            raised = raised.max(run.raised);
            if best.as_ref().is_none_or(|best| run.bound > best.bound) {
                best = Some(run);
            }
        }
        let Some(best) = best else { unreachable!("there is at least one restart") };
        if raised > 0.0 {
            services.log(
                Level::Warn,
                format!(
                    "`reg_covar` = {:e} left a covariance singular and was raised to {raised:e}; fewer components or \
                     a larger value would do",
                    self.reg_covar
                ),
            );
        }
        let diagnostics = Diagnostics {
            iterations: best.trace.len() as u64,
            converged: best.converged,
            objective: best.bound,
            trace: best.trace,
        };
        let memberships = tiles.rows(&best.responsibilities);
        let means = tiles.restore(&best.means);
        let collapse = || {
            let variance = estimator.largest_variance();
            match self.reg_covar > variance {
                true => format!("`reg_covar` = {:e} is above the largest variance, {variance:e}", self.reg_covar),
                false => "fewer components, other restarts or a smaller `reg_covar` may find more".to_owned(),
            }
        };
        let mut found =
            soft::clustering(task, memberships, &means, self.threshold, diagnostics, services, collapse);
        // They say nothing of sets of several components.
        if found.assignments.iter().all(|set| set.len() == 1) {
            found.densities = best.densities;
        }
        // What the variant `bayes` has in place of densities does not integrate to 1.
        if self.variant == Variant::Em {
            let penalty = self.free_parameters(dim) * libm::log(tiles.total());
            let numbers = [("log_likelihood", best.log_likelihood), ("bic", penalty - 2.0 * best.log_likelihood)];
            found.scalars.extend(numbers.map(|(name, value)| (name.to_owned(), value)));
        }
        Ok(found)
    }
}

/// Where one restart ended.
struct Run {
    /// Row-major, in the coordinates of the tiles.
    means: Vec<f64>,
    densities: Densities,
    /// A table like the examples, without their weights.
    responsibilities: Vec<f64>,
    /// What was maximised, after the last iteration and after each.
    bound: f64,
    trace: Vec<f64>,
    converged: bool,
    /// What `reg_covar` was raised to, or 0 if it was enough.
    raised: f64,
    /// Of all examples under the last components; means nothing for the variant `bayes`.
    log_likelihood: f64,
}

impl Gmm {
    /// How many numbers the components have that were found: shares of the examples, which add up to 1, means and
    /// covariances, which are symmetric.
    fn free_parameters(&self, dim: usize) -> f64 {
        let (k, dim) = (self.k as f64, dim as f64);
        let covariances = match self.covariance {
            Covariance::Full => k * dim * (dim + 1.0) / 2.0,
            Covariance::Tied => dim * (dim + 1.0) / 2.0,
            Covariance::Diag => k * dim,
            Covariance::Spherical => k,
        };
        k - 1.0 + k * dim + covariances
    }

    /// The first responsibilities, a row per example.
    fn first(&self, task: &Task<'_>, rng: &mut ChaCha8Rng, services: &Services<'_>) -> Result<Vec<f64>> {
        let (k, n) = (self.k, task.embeddings.len());
        match self.init {
            Init::Kmeans => {
                let host = Quiet(services.host);
                let services = Services { seed: rng.random(), host: &host, ..*services };
                let labels = start(k, &services)?.cluster(task, &services)?.assignments;
                Ok(one_hot(labels.values(), k))
            }
            Init::Random => {
                let mut first: Vec<f64> = (0..n * k).map(|_| rng.random::<f64>() + f64::EPSILON).collect();
                for row in first.chunks_exact_mut(k) {
                    let sum: f64 = row.iter().sum();
                    row.iter_mut().for_each(|value| *value /= sum);
                }
                Ok(first)
            }
        }
    }

    /// From first responsibilities, a row of `k` numbers per example.
    fn run(
        &self,
        estimator: &Estimator<'_>,
        first: &[f64],
        workers: &Workers,
        services: &Services<'_>,
        advance: impl Fn(usize) -> Result<()>,
    ) -> Result<Run> {
        let tiles = estimator.tiles;
        let mut model = Model::new(self.variant, estimator);
        let mut responsibilities = Tiles::table(first, self.k);
        tiles.weigh(&mut responsibilities);
        let given = Expectation::given(tiles, &responsibilities);
        let mut gaussians = model.maximise(&estimator.estimate(&given, &responsibilities, workers, services)?);
        let (mut bound, mut trace, mut converged) = (f64::NEG_INFINITY, Vec::new(), false);
        while trace.len() < self.max_iter && !converged {
            advance(trace.len())?;
            let found = gaussians.expect(tiles, &mut responsibilities, workers, services)?;
            gaussians = model.maximise(&estimator.estimate(&found, &responsibilities, workers, services)?);
            let before = bound;
            bound = match self.variant {
                Variant::Em => found.log_likelihood / tiles.total(),
                Variant::Bayes => found.entropy + model.bound,
            };
            trace.push(bound);
            converged = (bound - before).abs() < self.tol;
        }
        let log_likelihood = gaussians.expect(tiles, &mut responsibilities, workers, services)?.log_likelihood;
        if tiles.are_weighted() {
            gaussians.memberships(tiles, &mut responsibilities, workers, services)?;
        }
        let raised = model.raised;
        let densities = gaussians.handed_on(tiles);
        let means = gaussians.means;
        Ok(Run { means, densities, responsibilities, bound, trace, converged, raised, log_likelihood })
    }
}

fn one_hot(labels: &[u32], k: usize) -> Vec<f64> {
    let mut rows = vec![0.0; labels.len() * k];
    for (row, &label) in rows.chunks_exact_mut(k).zip(labels) {
        row[label as usize] = 1.0;
    }
    rows
}

/// k-means as scikit-learn starts a mixture with: one restart, the rest as usual.
fn start(k: usize, services: &Services<'_>) -> Result<KMeans> {
    KMeans::new(
        kmeans::Params { k, restarts: 1, max_iter: 300, tol: 1e-4, init: kmeans::Init::PlusPlus },
        services,
    )
}

/// The same host without progress: that of the first clusters would be taken for that of the mixture.
struct Quiet<'a>(&'a dyn Host);

impl Host for Quiet<'_> {
    fn log(&self, level: Level, text: &str) {
        self.0.log(level, text);
    }

    fn cancel(&self) -> &AtomicU32 {
        self.0.cancel()
    }
}

#[cfg(test)]
mod tests;
