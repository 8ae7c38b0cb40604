//! `ckm`: compositional k-means.
//!
//! Minimises SSD = Σᵢ ‖xᵢ - m_{cᵢ}‖² over k singletons m_j and one set cᵢ of at most d singletons for every example,
//! where the centre of a set is the composition of its members. By turns, every example takes its nearest centre, and
//! the singletons descend; for a fixed assignment the SSD depends on the data only through the number and the mean of
//! every set's examples, so the descent costs nothing in n ([`compflow_kernels::objective`]). Cost: rounds · restarts ·
//! n·|K|·p with |K| = Σ_{j≤d} (k over j) compositions.
//!
//! The paper's algorithm 3 with another optimiser; see `restarts` for what is done when.

use std::sync::OnceLock;

use compflow_api::{
    BATCH_ROWS, Batch, Clusterer, Clustering, Component, Diagnostics, Error, Flags, Level, Partial, Result,
    Services, Sets, Shape, Singletons, StreamTask, Task, plural, register,
};
use compflow_kernels::counting;
use compflow_kernels::elsewhere::{self, GATHER, LOOK};
use compflow_kernels::known::{self, Gathering};
use compflow_kernels::weights;
use compflow_kernels::workers::Workers;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::params::{Init, Optimizer, Params, Start};
use crate::pass::{ASSIGN, COUNT, Pass, partial_numbers};
use crate::restarts::{Method, ROUNDING, Run, Search, State, WINDOW};
use compflow_kernels::lonely;
use compflow_kernels::objective::{Model, composer_of};
use compflow_kernels::source::{Look, Source};
use compflow_kernels::starts::Starts;
use compflow_kernels::told::Told;

use crate::swaps::{Swaps, restarts_before};

/// Below this many products in a round of all restarts together, starting threads is not worth it.
const TINY: usize = 1 << 18;

/// Times that it starts again near the best, at most.
const GENERATIONS: u64 = 10;
/// Up to so many examples the best is disturbed. With more, single ones weigh too little: from 1500 on, the SSD was
/// lower by less than a millionth.
const FEW: usize = 2048;
/// How often in a generation, at most.
const KICKS: usize = 32;
/// How strongly: in every dimension by this part of an example's mean distance from its centre.
const KICK: f64 = 0.6;

/// The clusterer `ckm`.
pub struct Ckm {
    pub(crate) params: Params,
    /// Finds the first singletons, if `init` says so.
    pub(crate) initial: Option<Box<dyn Clusterer>>,
}
register!(clusterer Ckm);

impl Component for Ckm {
    const NAME: &'static str = "ckm";
    const SUMMARY: &'static str = "compositional k-means: singletons whose compositions are centres too";
    const FLAGS: Flags =
        Flags::NEEDS_GRADIENTS.and(Flags::USES_WEIGHTS).and(Flags::USES_SEEDS).and(Flags::HAS_PARTIAL);
    type Params = Params;

    fn new(params: Params, services: &Services<'_>) -> Result<Self> {
        params.check()?;
        let initial: Option<Box<dyn Clusterer>> = match &params.init {
            Init::Start(_) => None,
            Init::Clusterer(clusterer) => Some(Box::new(clusterer.create_start("init", services)?)),
        };
        Ok(Self { params, initial })
    }
}

impl Clusterer for Ckm {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, degree } = shape;
        let Params { k, restarts, sample, stream, .. } = self.params;
        let sets = counting::compositions(k, degree).unwrap_or(usize::MAX);
        // The points or a batch of them; a label, a weight and the returned set of every example.
        let kept = if stream { BATCH_ROWS.min(rows) } else { rows };
        let data = kept.saturating_mul(dim).saturating_add(rows.saturating_mul(3 + degree.min(k)));
        let sample = sample.min(rows).saturating_mul(2 * dim);
        // What swaps know of every example of the sample.
        let sample = sample.saturating_add(self.params.sample.min(rows).saturating_mul(4 + 2 * degree.min(k)));
        // Of a restart: sums before and now, twice as wide as everything else; centres as they are, prepared, in tiles.
        let run = sets.saturating_mul(dim + 1).saturating_mul(restarts.min(WINDOW));
        let numbers = data.saturating_add(sample).saturating_add(run.saturating_mul(7));
        let numbers = numbers.saturating_add(partial_numbers(run).saturating_mul(2));
        // The sums of a batch, and of batches put together so far: one for every time that their number can be halved.
        let batches = rows.div_ceil(BATCH_ROWS).max(1).ilog2() as usize + 2;
        let numbers = numbers.saturating_add(run.saturating_mul(2 * batches));
        Ok((numbers as u64).saturating_mul(4))
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
        let (workers, first) = (Workers::new(services.threads)?, batch.first as usize);
        workers.enter(|| match tag {
            LOOK => elsewhere::decode::<Look>(rest)?.partial_of(batch, &workers, services),
            GATHER => elsewhere::decode::<Gathering>(rest)?.partial_of(batch),
            ASSIGN | COUNT => {
                let pass: Pass = elsewhere::decode(rest)?;
                let told = Told::of_batch(batch, pass.heeded, || Sets::all_up_to(self.params.k, pass.degree))?;
                let points = pass.preparation.prepared(batch.examples, &workers, services)?;
                match tag {
                    ASSIGN => pass.assign(&pass.vectors(), &told, first, &points, &workers, services),
                    _ => pass.count(&told, first, &points, &workers),
                }
            }
            tag => Err(Error::new(format!("{tag} is no pass of ckm"))),
        })
    }
}

impl Ckm {
    /// Clusters; the examples are kept in memory, or read anew in every pass.
    fn run(&self, task: &StreamTask<'_>, keep: bool, services: &Services<'_>) -> Result<Clustering> {
        let Params { k, restarts, max_iter, tol, .. } = self.params;
        let (n, dim, degree) = (task.rows.len(), task.rows.dim(), task.degree.min(k));
        weights::check(task.weights, n)?;
        let counted = weights::count(task.weights, n);
        if k > counted {
            let which = if counted < n { " whose weight is not 0" } else { "" };
            return Err(Error::parameter(
                "k",
                format!("= {k} is more than the {}{which}", plural(counted, "example")),
            ));
        }
        known::require_room(task.named(), k)?;
        let count = counting::compositions(k, degree)?;
        // Of examples that are elsewhere only the sample is here.
        let rows = if task.rows.is_elsewhere() { n.min(self.params.sample) } else { n };
        services.require_memory(
            self.memory(Shape { rows, dim, degree }, services)?,
            "lower `k`, the degree or `restarts`, or set `stream`",
        )?;
        let composer = composer_of(task.composer, degree)?;
        services.log(Level::Info, format!("{count} compositions of up to {degree}"));

        let products = n.saturating_mul(count).saturating_mul(dim).saturating_mul(restarts);
        let workers = Workers::new(if products < TINY { 1 } else { services.threads })?;
        let (source, sample) =
            Source::weighted(task.rows, task.weights, task.space, keep, self.params.sample, &workers, services)?;
        let model = Model { composer, space: task.space, dim, services };
        let starts = Starts { model, frame: &source.frame, sample: &sample, k, degree };
        let method = match self.params.optimizer {
            Optimizer::Lbfgs => Method::Lbfgs,
            Optimizer::Adam => {
                Method::Adam { lr: self.params.lr.unwrap_or(0.2), steps: self.params.steps.unwrap_or(1) }
            }
        };
        let refine = self.params.refine && self.params.optimizer == Optimizer::Lbfgs && restarts > 1;
        let sets = Sets::all_up_to(k, degree);
        let told = Told::new(n, task.weights, task.seeds, &sets)?;
        let gathered = known::gather(task.rows, &told, &starts, &sets)?;
        let made = if refine { restarts_before(restarts, k) } else { restarts };
        // If something is known, half of the restarts do not know it: their best is one more start.
        let unknowing = if told.known.is_empty() { 0 } else { made.div_ceil(2) };
        let knowing = match unknowing {
            0 => made,
            // Where all begin at what is known of them, every restart is the same.
            _ if gathered.named() == k && gathered.is_settled() => 2,
            _ => made - unknowing + 1,
        };
        let nothing = Told::new(n, task.weights, None, &sets)?;
        let of_nothing = known::gather(task.rows, &nothing, &starts, &sets)?;
        let total = task.weights.map_or(n as f64, |weights| weights.iter().copied().map(f64::from).sum());
        let search = |told, gathered, earlier| Search {
            source: &source,
            starts: &starts,
            sets: &sets,
            told,
            gathered,
            total,
            method,
            restarts: unknowing + knowing,
            earlier,
            replaced: restarts,
            max_iter,
            tol,
            prune: self.params.prune && self.params.optimizer == Optimizer::Lbfgs,
            reseed: self.params.reseed && self.params.optimizer == Optimizer::Lbfgs,
            workers: &workers,
            seed: services.seed,
            scatter: OnceLock::new(),
        };
        let drawn = |named: Vec<f32>, rng: &mut ChaCha8Rng| match &self.params.init {
            Init::Start(Start::Random) => Ok(starts.random(named, rng)),
            _ => starts.plusplus(named, rng),
        };
        let free = search(&nothing, &of_nothing, 0);
        let search = search(&told, &gathered, unknowing);
        let best = workers.enter(|| {
            let found = match unknowing {
                0 => None,
                _ => {
                    let (found, _) = free.best_of(unknowing, |_, rng| drawn(Vec::new(), rng), None)?;
                    Some(gathered.order(&found.singletons, &starts, &sets)?)
                }
            };
            let start = |stream: usize, rng: &mut ChaCha8Rng| {
                if let Some(found) = found.as_ref().filter(|_| stream + 1 == knowing) {
                    return Ok(found.clone());
                }
                let named = gathered.begin(&starts, &sets, rng)?;
                match &self.initial {
                    Some(initial) if stream == 0 => starts.found_by(&**initial, task, named, rng, services),
                    _ => drawn(named, rng),
                }
            };
            let (best, given_up) = search.best_of(knowing, start, None)?;
            let text =
                format!("restart {} of {knowing} has the lowest SSD; {given_up} were given up early", best.stream);
            services.log(Level::Info, text);
            // Where restarts do, the lowest SSD of all is none that one should look for: if unions are rare, it explains a
            // singleton as the union of others and splits another.
            let best = if made < restarts { self.swap(&search, best)? } else { best };
            if refine { self.refine(&search, best) } else { Ok::<_, Error>(best) }
        })?;
        if best.diverged > 0 {
            let text =
                format!("{} diverging steps of the restart that won were taken back and shortened", best.diverged);
            services.log(Level::Warn, text);
        }
        if let Some(text) = lonely::warning(&sample.points, dim) {
            services.log(Level::Warn, text);
        }
        self.clustering(&search, &best, services)
    }

    /// Lets newcomers take the place of singletons, as the sample says, and goes on from there with all examples.
    fn swap(&self, search: &Search<'_>, best: Run) -> Result<Run> {
        if search.gathered.named() == self.params.k {
            return Ok(best);
        }
        let swapped = Swaps::new(search).improve(best.singletons.clone())?;
        let text = format!("{} of {} newcomers took the place of a singleton", swapped.taken, swapped.proposed);
        search.starts.model.services.log(Level::Info, text);
        if swapped.taken == 0 {
            return Ok(best);
        }
        Ok(search.best_of(1, |_, _| Ok(swapped.singletons.clone()), Some(best))?.0)
    }

    /// Starts again near the best restart for as long as that lowers the SSD: with all singletons disturbed, if there are
    /// so few examples that single ones on a border make a local minimum.
    fn refine(&self, search: &Search<'_>, mut best: Run) -> Result<Run> {
        let Search { starts, source, seed, .. } = search;
        let kicks = KICKS.min(self.params.restarts - 1);
        if source.len() > FEW || kicks == 0 {
            return Ok(best);
        }
        for generation in 0..GENERATIONS {
            let mut rng = ChaCha8Rng::seed_from_u64(*seed);
            rng.set_stream(u64::MAX - 1 - generation);
            let size = (source.frame.restore_squared(best.ssd) / (search.total * source.dim() as f64)).sqrt();
            let near: Vec<Vec<f32>> =
                (0..kicks).map(|_| starts.kick(&best.singletons, KICK * size, &mut rng)).collect();
            let before = best.ssd;
            (best, _) = search.best_of(near.len(), |at, _| Ok(near[at].clone()), Some(best))?;
            if before - best.ssd <= ROUNDING * before {
                break;
            }
        }
        Ok(best)
    }

    /// The sets in use, their singletons numbered without gaps.
    fn clustering(&self, search: &Search<'_>, run: &Run, services: &Services<'_>) -> Result<Clustering> {
        let (n, dim, k) = (search.source.len(), search.source.dim(), self.params.k);
        let mut counts = vec![0usize; search.sets.len()];
        let mut labels: Vec<u32> = Vec::new();
        // The order in which clusters are listed: of examples that are elsewhere by the first of them, so that the order
        // says what the assignments would.
        let mut order: Vec<usize> = (0..search.sets.len()).collect();
        if search.source.is_elsewhere() {
            let found = search.counts(run)?;
            counts.iter_mut().zip(&found.sums).for_each(|(count, sum)| *count = *sum as usize);
            order.sort_by(|&a, &b| {
                let alone = |at: usize| search.sets[at].len() > 1;
                alone(a).cmp(&alone(b)).then(found.largest[b].total_cmp(&found.largest[a]))
            });
        } else {
            labels.reserve(n);
            search.labels(run, |batch| {
                batch.iter().for_each(|&label| counts[label as usize] += 1);
                labels.extend_from_slice(batch);
            })?;
        }
        // Those that the user has named have their numbers.
        let mut singletons = search.gathered.named() as u32;
        let mut names: Vec<Option<u32>> = (0..k as u32).map(|at| Some(at).filter(|at| *at < singletons)).collect();
        for member in search.sets.iter().zip(&counts).filter(|(_, count)| **count > 0).flat_map(|(set, _)| set) {
            names[*member as usize].get_or_insert_with(|| {
                singletons += 1;
                singletons - 1
            });
        }
        if (singletons as usize) < k {
            services.log(
                Level::Warn,
                format!(
                    "ckm found {} for `k` = {k}; no example needs the others, as is so when fewer examples than `k` are \
                     distinct",
                    plural(singletons as usize, "singleton")
                ),
            );
        }
        let renamed = |set: &[u32]| set.iter().filter_map(|&member| names[member as usize]).collect::<Vec<u32>>();
        let (mut clusters, mut centroids) = (Sets::default(), Vec::new());
        for at in order.into_iter().filter(|&at| counts[at] > 0) {
            clusters.push(&renamed(&search.sets[at]));
            centroids.extend_from_slice(&run.centres[at * dim..][..dim]);
        }
        let mut named: Vec<(u32, &[f32])> = names
            .iter()
            .zip(run.singletons.chunks_exact(dim))
            .filter_map(|(name, vector)| Some(((*name)?, vector)))
            .collect();
        named.sort_unstable_by_key(|(name, _)| *name);
        let singletons = Singletons {
            numbers: named.iter().map(|(name, _)| *name).collect(),
            vectors: named.iter().flat_map(|(_, vector)| *vector).copied().collect(),
        };
        let sets: Vec<Vec<u32>> = search.sets.iter().map(renamed).collect();
        let members = labels.iter().map(|&label| sets[label as usize].len()).sum();
        let mut assignments = Sets::with_capacity(labels.len(), members);
        labels.iter().for_each(|&label| assignments.push(&sets[label as usize]));
        let frame = &search.source.frame;
        Ok(Clustering {
            assignments,
            clusters,
            centroids,
            singletons,
            diagnostics: Diagnostics {
                iterations: run.trace.len() as u64,
                converged: run.state == State::Converged,
                objective: frame.restore_squared(run.ssd),
                trace: run.trace.iter().map(|&ssd| frame.restore_squared(ssd)).collect(),
            },
            ..Clustering::default()
        })
    }
}
