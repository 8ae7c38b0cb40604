//! `cgm`: the compositional Gaussian mixture, from a task to a clustering.

use compflow_api::{
    BATCH_ROWS, Batch, Clusterer, Clustering, Column, Component, Diagnostics, Error, Flags, Level, Partial,
    Result, Services, Sets, Shape, Singletons, StreamTask, Task, plural, register,
};
use compflow_kernels::counting;
use compflow_kernels::elsewhere::{self, GATHER, LOOK};
use compflow_kernels::known::{self, Gathering};
use compflow_kernels::lonely::{far, lonely};
use compflow_kernels::nested::Once;
use compflow_kernels::objective::{Model, composer_of};
use compflow_kernels::source::{Look, Preparation, Source};
use compflow_kernels::starts::Starts;
use compflow_kernels::told::Told;
use compflow_kernels::weights;
use compflow_kernels::workers::Workers;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::densities::Densities;
use crate::ending::{Ending, Judged, LAST, LastPass};
use crate::mixture::{Mixture, Setting};
use crate::params::{Assignment, Kind, Params};
use crate::statistics::{About, Data, Judge, Pass, SCATTER, STATISTICS, ScatterPass, Statistics, rows_together};

/// Below this many products in a round, starting threads is not worth it.
const TINY: usize = 1 << 18;
/// A bound that falls by less than this part of it only shows that assignments are told apart in f32.
const ROUNDING: f64 = 1e-6;

/// The clusterer `cgm`.
pub struct Cgm {
    params: Params,
    /// Finds the first singletons.
    initial: Box<dyn Clusterer>,
}
register!(clusterer Cgm);

impl Component for Cgm {
    const NAME: &'static str = "cgm";
    const SUMMARY: &'static str =
        "compositional Gaussian mixture: singletons, unions around their compositions, one shape";
    const FLAGS: Flags = Flags::NEEDS_GRADIENTS
        .and(Flags::ASSIGNS_NONE)
        .and(Flags::USES_WEIGHTS)
        .and(Flags::USES_SEEDS)
        .and(Flags::HAS_PARTIAL);
    type Params = Params;

    fn new(params: Params, services: &Services<'_>) -> Result<Self> {
        params.check()?;
        let initial = Box::new(params.init().create_start("init", services)?);
        Ok(Self { params, initial })
    }
}

impl Clusterer for Cgm {
    fn memory(&self, shape: Shape, services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, degree } = shape;
        let Params { k, sample, stream, .. } = self.params;
        let sets = counting::compositions(k, degree).unwrap_or(usize::MAX);
        // The points or a batch of them; of every example a weight, a set, a posterior and memberships.
        let kept = if stream { BATCH_ROWS.min(rows) } else { rows };
        let data = kept.saturating_mul(dim).saturating_add(rows.saturating_mul(5 + degree.min(k) + k));
        let sample = sample.min(rows);
        // Centres, means and sums of all blocks, in f64; a few matrices of p×p.
        let model = sets.saturating_mul(dim).saturating_mul(2 * 24).saturating_add(16 * dim * dim);
        let numbers = data.saturating_add(sample.saturating_mul(2 * dim)).saturating_add(model);
        let densities =
            services.threads.max(1).saturating_mul(rows_together(sets)).saturating_mul(sets.saturating_mul(6));
        let numbers = numbers.saturating_add(densities);
        let start = match rows > sample {
            true => self.memory(Shape { rows: sample, ..shape }, services)?,
            false => self.initial.memory(shape, services)?,
        };
        Ok((numbers as u64).saturating_mul(4).saturating_add(start))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        self.run(&task.stream(), true, services)
    }

    fn streams(&self) -> Result<bool> {
        Ok(self.params.stream)
    }

    fn cluster_stream(&self, task: &StreamTask<'_>, services: &Services<'_>) -> Result<Clustering> {
        self.run(task, false, services)
    }

    fn partial(&self, state: &[u8], batch: &Batch<'_>, services: &Services<'_>) -> Result<Partial> {
        let (tag, rest) = elsewhere::split(state)?;
        let workers = Workers::new(services.threads)?;
        let (first, examples, dim) = (batch.first as usize, batch.examples, batch.examples.dim());
        let told = |heeded, degree| Told::of_batch(batch, heeded, || Sets::all_up_to(self.params.k, degree));
        let prepared = |preparation: &Preparation| preparation.prepared(examples, &workers, services);
        let nothing = Told::default();
        let about = About { dim, told: &nothing, workers: &workers, services };
        workers.enter(|| match tag {
            LOOK => elsewhere::decode::<Look>(rest)?.partial_of(batch, &workers, services),
            GATHER => elsewhere::decode::<Gathering>(rest)?.partial_of(batch),
            SCATTER => {
                let pass: ScatterPass = elsewhere::decode(rest)?;
                let told = told(pass.heeded, 1)?;
                About { told: &told, ..about }.scatter(first, &prepared(&pass.preparation)?)
            }
            STATISTICS => {
                let pass: Pass = elsewhere::decode(rest)?;
                let judge = Judge::new(&pass.mixture, pass.assignment, dim)?;
                let told = told(pass.heeded, pass.degree)?;
                About { told: &told, ..about }.statistics(&judge, first, &prepared(&pass.preparation)?)
            }
            LAST => {
                let pass: LastPass = elsewhere::decode(rest)?;
                let told = told(pass.heeded, pass.degree)?;
                pass.partial(&About { told: &told, ..about }, first, &prepared(&pass.preparation)?)
            }
            tag => Err(Error::new(format!("{tag} is no pass of cgm"))),
        })
    }
}

/// How the fit went.
struct Fit {
    mixture: Mixture,
    found: Statistics,
    trace: Vec<f64>,
    converged: bool,
}

impl Fit {
    /// What the last round raised the bound to.
    fn bound(&self) -> f64 {
        self.trace[self.trace.len() - 1]
    }
}

/// The size of a set, and what its examples add up to, bit by bit.
type Group = (usize, Vec<u64>);

/// All groups that have examples, whatever their numbers.
fn groups(found: &Statistics, sets: &Sets) -> Vec<Group> {
    let sums = found.sums.chunks_exact(found.sums.len() / sets.len());
    let mut groups: Vec<Group> = (sets.iter().zip(&found.counts).zip(sums))
        .filter(|((_, count), _)| **count > 0.0)
        .map(|((set, count), sums)| {
            (set.len(), std::iter::once(count).chain(sums).map(|value| value.to_bits()).collect())
        })
        .collect();
    groups.sort_unstable();
    groups
}

/// The seeds of the starts: the first is the seed itself, so that one start is what the initial clusterer finds alone.
fn seeds(seed: u64) -> impl Iterator<Item = u64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    std::iter::once(seed).chain(std::iter::repeat_with(move || rng.next_u64()))
}

impl Cgm {
    /// One that begins with what `initial` finds.
    pub fn beginning_with(params: Params, initial: Box<dyn Clusterer>) -> Self {
        Self { params, initial }
    }

    /// Clusters; the examples are kept in memory, or read anew in every pass.
    fn run(&self, task: &StreamTask<'_>, keep: bool, services: &Services<'_>) -> Result<Clustering> {
        let Params { k, sample, .. } = self.params;
        let (n, dim, degree) = (task.rows.len(), task.rows.dim(), task.degree.min(k));
        let weights = weights::check(task.weights, n)?;
        let counted = weights::count(weights, n);
        if k > counted {
            return Err(Error::parameter("k", format!("= {k} is more than the {}", plural(counted, "example"))));
        }
        known::require_room(task.named(), k)?;
        // Of more examples, the fit to the sample says it.
        if let Some(text) = weights.filter(|_| n <= sample).and_then(weights::warning) {
            services.log(Level::Warn, text);
        }
        let count = counting::compositions(k, degree)?;
        // Of examples that are elsewhere only the sample is here.
        let rows = if task.rows.is_elsewhere() { n.min(sample) } else { n };
        let need = self.memory(Shape { rows, dim, degree }, services)?;
        services.require_memory(need, "lower `k` or the degree, or set `stream`")?;
        let composer = composer_of(task.composer, degree)?;
        let products = n.saturating_mul(count).saturating_mul(dim);
        let workers = Workers::new(if products < TINY { 1 } else { services.threads })?;
        let (source, sample) = Source::weighted(task.rows, weights, task.space, keep, sample, &workers, services)?;
        let model = Model { composer, space: task.space, dim, services };
        let starts = Starts { model, frame: &source.frame, sample: &sample, k, degree };
        let mut rng = ChaCha8Rng::seed_from_u64(services.seed);
        let sets = Sets::all_up_to(k, degree);
        let told = Told::new(n, weights, task.seeds, &sets)?;
        let gathered = known::gather(task.rows, &told, &starts, &sets)?;
        let named = gathered.begin(&starts, &sets, &mut rng)?;
        // What lies far from everything would be worth a singleton to the initial clusterer, and draws those that are there to itself
        // in the first round: both are done without it.
        let mut apart = Vec::new();
        if self.params.outliers && n <= self.params.sample {
            let known = |at: usize| task.seeds.is_some_and(|seeds| !seeds[sample.numbers[at]].is_empty());
            let lonely = lonely(&sample.points, sample.weights.as_deref(), dim, services)?;
            apart = (0..lonely.len()).filter(|&at| lonely[at] && !known(at)).collect();
            apart = if lonely.len() - apart.len() < k { Vec::new() } else { apart };
        }
        let company = sample.keeping(|at| apart.binary_search(&at).is_err());
        let starts = Starts { sample: &company, ..starts };
        let host = Once::new(services.host);
        let mut begin = |clusterer: &dyn Clusterer, seed: u64| {
            let services = Services { seed, host: &host, ..*services };
            starts.found_by(clusterer, task, named.clone(), &mut rng, &services)
        };
        let mut beginnings = Vec::new();
        if n > self.params.sample {
            // Which start is the best is settled by the sample, so that all examples are fitted once.
            beginnings.push(begin(self, services.seed)?);
        } else {
            for seed in seeds(services.seed).take(self.params.starts) {
                let found = begin(&*self.initial, seed)?;
                if beginnings.last() == Some(&found) {
                    // It does not depend on the seed.
                    break;
                }
                beginnings.push(found);
            }
        }
        let about = About { dim, told: &told, workers: &workers, services };
        let data = Data { source: &source, gathered: &gathered, degree, about };
        workers.enter(|| {
            let (scatter, mean, examples) = data.scatter()?;
            let setting = Setting {
                model,
                frame: &source.frame,
                sets: &sets,
                params: &self.params,
                scatter,
                mean,
                examples,
            };
            let (mut best, mut begun): (Option<Fit>, Vec<Vec<Group>>) = (None, Vec::new());
            let count = beginnings.len();
            for (at, singletons) in beginnings.into_iter().enumerate() {
                let mixture = setting.start(singletons)?;
                // Nothing is known of how wide clusters are, so the first assignment is to the nearest.
                let mut found = data.statistics(&mixture, Assignment::Hard)?;
                let groups = groups(&found, &sets);
                if begun.contains(&groups) {
                    // The same groups under other numbers lead to the same mixture.
                    continue;
                }
                begun.push(groups);
                // The few examples of a rare union have no others near them either, but lie where it is composed.
                let is_far = match apart.is_empty() {
                    true => Vec::new(),
                    false => far(&mixture.distances(&sample.points), sample.weights.as_deref()),
                };
                let outliers = apart.iter().filter(|&&at| is_far[at]);
                let outliers = outliers.map(|&at| (sample.numbers[at], &sample.points[at * dim..][..dim]));
                data.set_aside(&mut found, &mixture, outliers)?;
                let fit = self.fit(&setting, &data, mixture, found, (at, count))?;
                if best.as_ref().is_none_or(|best| fit.bound() > best.bound()) {
                    best = Some(fit);
                }
            }
            let best = best.ok_or_else(|| Error::new("there were no starts"))?;
            self.clustering(&setting, &data, &best)
        })
    }

    /// Rounds of assigning and fitting until the bound rises no more, for one of so many starts.
    fn fit(
        &self,
        setting: &Setting<'_>,
        data: &Data<'_>,
        mut mixture: Mixture,
        mut found: Statistics,
        (start, starts): (usize, usize),
    ) -> Result<Fit> {
        let Params { max_iter, tol, .. } = self.params;
        let progress = |done: usize| data.about.services.progress(start * max_iter + done, starts * max_iter);
        let mut trace = vec![setting.fit(&mut mixture, &found)?];
        if self.params.outliers && max_iter > 1 {
            // The first round had to give a set to every outlier: how wide clusters are is settled without them.
            mixture.prior = None;
        }
        let mut converged = false;
        while trace.len() < max_iter && !converged {
            progress(trace.len())?;
            found = data.statistics(&mixture, self.params.assignment)?;
            let (before, bound) = (trace[trace.len() - 1], setting.fit(&mut mixture, &found)?);
            // The second round is the first that counts outliers and posteriors, by another bound than the first.
            let comparable =
                trace.len() > 1 || !(self.params.outliers || self.params.assignment == Assignment::Soft);
            debug_assert!(
                !comparable || bound >= before - ROUNDING * (before.abs() + setting.examples),
                "the bound fell from {before} to {bound}"
            );
            converged = comparable && bound - before <= tol * setting.examples;
            trace.push(bound);
        }
        progress(max_iter)?;
        Ok(Fit { mixture, found, trace, converged })
    }

    /// Labels all examples, and says how sure that is.
    fn clustering(&self, setting: &Setting<'_>, data: &Data<'_>, fit: &Fit) -> Result<Clustering> {
        let (dim, k) = (data.source.dim(), self.params.k);
        let densities = Densities::new(&fit.mixture, dim)?;
        let ending = Ending { densities: &densities, sets: setting.sets, k };
        let (mut labels, mut posteriors, mut memberships) = (Vec::new(), Vec::new(), Vec::new());
        let pass = LastPass {
            preparation: data.source.preparation(),
            mixture: fit.mixture.clone(),
            k,
            degree: data.degree,
            heeded: data.about.told.heeded(),
        };
        let found = data.source.reduce(LAST, &pass, |first, batch| {
            let judged = ending.judge(&data.about, first, batch)?;
            let partial = ending.counted(first, &judged);
            for Judged { sets, probabilities, members, .. } in judged {
                labels.extend(sets);
                posteriors.extend(probabilities);
                memberships.extend(members);
            }
            Ok(partial)
        })?;
        let counts = &found.sums[1..];
        // In the units of the data.
        let log_likelihood = found.sums[0] + setting.examples * dim as f64 * libm::log(data.source.frame.scale());
        let parameters = setting.parameters(&fit.mixture, &fit.found);
        self.warn(setting, data, fit);

        // Clusters are listed in their order; those of examples that are elsewhere by the first of them, so that the order
        // says what the assignments would.
        let mut order: Vec<usize> = (0..setting.sets.len()).filter(|&at| counts[at] > 0.0).collect();
        if data.source.is_elsewhere() {
            order.sort_by(|&a, &b| {
                let union = |at: usize| setting.sets[at].len() > 1;
                union(a).cmp(&union(b)).then(found.largest[b].total_cmp(&found.largest[a]))
            });
        }
        let (mut clusters, mut centroids) = (Sets::default(), Vec::new());
        for at in order {
            clusters.push(&setting.sets[at]);
            let centre = &fit.mixture.centres[at * dim..][..dim];
            centroids.extend(data.source.frame.mean(centre, 1.0).map(|value| value as f32));
        }
        let mut assignments = Sets::with_capacity(labels.len(), labels.len());
        for &label in &labels {
            assignments.push(if label < setting.sets.len() { &setting.sets[label] } else { &[] });
        }
        let shrinkage = fit.mixture.prior.map_or(0.0, |prior| prior.shrinkage(fit.found.total()));
        let mut clustering = Clustering {
            assignments,
            clusters,
            centroids,
            memberships,
            extra: vec![("posterior".to_owned(), Column::Floats(posteriors))],
            singletons: Singletons { numbers: (0..k as u32).collect(), vectors: fit.mixture.singletons.clone() },
            densities: densities.handed_on(&fit.mixture, setting.sets, &data.source.frame),
            scalars: vec![
                ("log_likelihood".to_owned(), log_likelihood),
                ("bic".to_owned(), parameters * libm::log(setting.examples.max(1.0)) - 2.0 * log_likelihood),
                ("miss".to_owned(), setting.miss(&fit.mixture, &fit.found)),
                ("outliers".to_owned(), counts[setting.sets.len()] / setting.examples),
            ],
            diagnostics: Diagnostics {
                iterations: fit.trace.len() as u64,
                converged: fit.converged,
                objective: fit.bound(),
                trace: fit.trace.clone(),
            },
            ..Clustering::default()
        };
        clustering.resolve("shrinkage", shrinkage);
        clustering.resolve("residual", fit.mixture.tau2);
        Ok(clustering)
    }

    fn warn(&self, setting: &Setting<'_>, data: &Data<'_>, fit: &Fit) {
        let services = data.about.services;
        if fit.mixture.diverged > 0 {
            let text = format!("{} diverging steps were taken back and shortened", fit.mixture.diverged);
            services.log(Level::Warn, text);
        }
        let (n, dim) = (data.source.len(), data.source.dim());
        if n <= dim && self.params.covariance == Kind::Tied {
            let part = fit.mixture.prior.map_or(0.0, |prior| prior.shrinkage(fit.found.total()));
            let text = format!(
                "little is said by {} of a covariance in {dim} dimensions: it was drawn towards a sphere by {:.0} %; fewer \
                 dimensions, or `covariance = \"diagonal\"`, would be faster",
                plural(n, "example"),
                100.0 * part
            );
            services.log(Level::Warn, text);
        }
        if fit.mixture.prior.is_some_and(|prior| prior.is_floored) {
            services.log(
                Level::Warn,
                "the examples of a set are all equal, or nearly; their variance was held at a millionth of that of all \
                 examples",
            );
        }
        let miss = setting.miss(&fit.mixture, &fit.found);
        if miss > 1.0 {
            services.log(
                Level::Warn,
                format!(
                    "unions lie {miss:.1} times as far from where the composer says as examples lie from their sets: is it the \
                     right one? `compflow fit-composer` learns one"
                ),
            );
        }
    }
}
