//! Passing messages until nobody chooses otherwise, and looking for a preference.

use compflow_api::{Error, Level, Result, Services, Task};
use compflow_kernels::preference::{Rule, Search, TRIALS};
use compflow_kernels::workers::Workers;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::candidates::farthest_first;
use crate::compositions::count_sets;
use crate::memory::Size;
use crate::messages::Messages;
use crate::similarities::Similarities;
use crate::solution::{Examples, Solution};

/// Noise against ties, as a share of the mean distance: a hundred times the last digit of f32.
const NOISE: f64 = 1e-5;
/// Below this many similarities, starting threads is not worth it.
const TINY: u64 = 1 << 14;

/// How messages are passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) rule: Rule,
    pub(crate) damping: f64,
    pub(crate) max_iter: usize,
    pub(crate) convergence_iter: usize,
    /// Whether all iterations are done, even if nothing changes any more.
    pub(crate) fixed_iterations: bool,
    /// Whether exemplars are changed afterwards.
    pub(crate) exchange: bool,
}

/// What was found, and how.
pub(crate) struct Found {
    pub(crate) solution: Solution,
    /// S(k, {k}) of every example, in the user's units.
    pub(crate) preferences: Vec<f64>,
    pub(crate) converged: bool,
    pub(crate) trace: Vec<f64>,
}

/// Where the messages led for one preference.
struct Run {
    /// As examples, ascending.
    exemplars: Vec<u32>,
    converged: bool,
    /// Whether there was no exemplar at the end.
    undecided: bool,
    trace: Vec<f64>,
}

impl Setting {
    /// Clusters all examples of a task; only `candidates` of them may become exemplars.
    pub(crate) fn solve(&self, task: &Task<'_>, candidates: usize, services: &Services<'_>) -> Result<Found> {
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        if let Rule::Clusters(k) = self.rule
            && k > candidates
        {
            let whom = if candidates < n { "candidates" } else { "examples" };
            return Err(Error::parameter("preference.k", format!("= {k} is more than the {candidates} {whom}")));
        }
        let degree = task.degree.min(candidates);
        let kept = Size { rows: n, candidates, dim, degree }.plan(services)?;
        let work = count_sets(candidates, degree).saturating_mul(n as u64);
        let workers = Workers::new(if work < TINY { 1 } else { services.threads })?;
        let columns = match candidates < n {
            true => farthest_first(task, candidates, &workers, services)?,
            false => (0..n as u32).collect(),
        };
        // Until all similarities are known, nobody can say how much work there is.
        services.progress(0, 0)?;
        let similarities = Similarities::new(task, columns, degree, kept, &workers, services)?;
        workers.enter(|| self.pass_messages(task, &similarities, &workers, services))
    }

    fn pass_messages(
        &self,
        task: &Task<'_>,
        similarities: &Similarities,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Found> {
        let n = similarities.len();
        let mean_distance = similarities.mean_distance();
        let mut preferences = match self.rule {
            Rule::Value(value) => vec![similarities.convert(value); n],
            Rule::PerExample(value) => vec![similarities.convert(value * n as f64); n],
            Rule::Percentile(percent) => vec![similarities.percentile(percent); n],
            Rule::Clusters(_) => Vec::new(),
            Rule::Column => {
                let given = task.preferences.ok_or_else(|| {
                    Error::parameter("preference", "= \"column\", but the data's `columns` name no `preference`")
                })?;
                given.iter().map(|value| similarities.convert(f64::from(*value))).collect()
            }
        };
        let run = if similarities.columns.len() == 1 || mean_distance == 0.0 {
            // Without differences there is nothing to send. For a number of clusters, whichever of the two that are
            // possible is nearer: 1, or one per candidate.
            let columns = &similarities.columns;
            if let Rule::Clusters(k) = self.rule {
                preferences = vec![if 2 * k > columns.len() + 1 { f64::from(f32::EPSILON) } else { 0.0 }; n];
            }
            let best = columns.iter().copied().reduce(|best, row| {
                if preferences[row as usize] > preferences[best as usize] { row } else { best }
            });
            let mut exemplars: Vec<u32> =
                columns.iter().copied().filter(|&row| preferences[row as usize] > 0.0).collect();
            exemplars.extend(best.filter(|_| exemplars.is_empty()));
            Run { exemplars, converged: true, undecided: false, trace: Vec::new() }
        } else {
            let mut rng = ChaCha8Rng::seed_from_u64(services.seed);
            rng.set_stream(1);
            let mut noise = || (-NOISE * mean_distance * rng.random::<f64>()) as f32;
            let noise: Vec<f32> = similarities.columns.iter().map(|_| noise()).collect();
            match self.rule {
                Rule::Clusters(k) => {
                    let (run, preference) = self.search(k, similarities, &noise, workers, services)?;
                    preferences = vec![preference; n];
                    run
                }
                _ => self.run(
                    similarities,
                    &preferences,
                    &noise,
                    self.damping,
                    workers,
                    services,
                    (0, self.max_iter),
                )?,
            }
        };
        let preferences: Vec<f64> = preferences.iter().map(|value| similarities.restore(*value)).collect();
        let examples = Examples::new(task, &similarities.points, &preferences, workers, services);
        let mut solution = examples.refine(run.exemplars.clone())?;
        if self.exchange && task.degree > 1 {
            let so_many = matches!(self.rule, Rule::Clusters(_));
            solution = examples.change(solution, &similarities.columns, so_many)?;
        }
        self.warn(&run, solution.exemplars.len(), (n, similarities.columns.len()), services);
        let trace = run.trace.iter().map(|net| similarities.restore(*net)).collect();
        Ok(Found { solution, preferences, converged: run.converged, trace })
    }

    /// Passes messages until the choices stay; `done` of `total` iterations have been reported before.
    #[expect(clippy::too_many_arguments, reason = "the state of a search and that of a call")]
    fn run(
        &self,
        similarities: &Similarities,
        preferences: &[f64],
        noise: &[f32],
        damping: f64,
        workers: &Workers,
        services: &Services<'_>,
        (done, total): (usize, usize),
    ) -> Result<Run> {
        // Whatever costs more than the distances of all from one is not worth a second exemplar; numbers far beyond that
        // would only use up the digits of messages.
        let lowest = -4.0 * similarities.extent().1;
        let preferences: Vec<f32> = preferences.iter().map(|value| value.max(lowest) as f32).collect();
        let mut messages = Messages::new(similarities, &preferences, noise, damping);
        let mut trace = Vec::new();
        // The iterations that had the present choices, the last included.
        let mut same = 0;
        let mut converged = false;
        let mut exemplars = Vec::new();
        for iteration in 0..self.max_iter {
            services.progress(done + iteration, total)?;
            let (net, changed) = messages.pass(workers, services)?;
            trace.push(net);
            same = if changed == 0 { same + 1 } else { 1 };
            exemplars = messages.exemplars();
            converged = same >= self.convergence_iter && !exemplars.is_empty();
            if converged && !self.fixed_iterations {
                break;
            }
        }
        services.progress(done + self.max_iter, total)?;
        let undecided = exemplars.is_empty();
        if undecided {
            let evidence = messages.evidence();
            let best =
                (0..evidence.len()).fold(0, |best, at| if evidence[at] > evidence[best] { at } else { best });
            exemplars.push(similarities.columns[best]);
        }
        Ok(Run { exemplars, converged, undecided, trace })
    }

    /// Looks for a preference that gives `k` exemplars; of those tried, the one that comes nearest is kept.
    fn search(
        &self,
        k: usize,
        similarities: &Similarities,
        noise: &[f32],
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<(Run, f64)> {
        let (smallest, least) = similarities.extent();
        let mut search = Search::new(k, smallest, least, self.damping);
        let mut best: Option<(Run, f64)> = None;
        for trial in 0..TRIALS {
            let (preference, damping) = (search.preference(), search.damping());
            let progress = (trial * self.max_iter, TRIALS * self.max_iter);
            let preferences = vec![preference; similarities.len()];
            let run = self.run(similarities, &preferences, noise, damping, workers, services, progress)?;
            let (found, converged) = (run.exemplars.len(), run.converged);
            let worth = |run: &Run| (!run.converged, run.exemplars.len().abs_diff(k));
            if best.as_ref().is_none_or(|(best, _)| worth(&run) < worth(best)) {
                best = Some((run, preference));
            }
            if !search.learn(found, converged) {
                break;
            }
        }
        let (run, preference) = best.expect("at least one preference is tried");
        services.log(
            Level::Info,
            format!(
                "cap has {} singletons at a preference of {}",
                run.exemplars.len(),
                similarities.restore(preference)
            ),
        );
        Ok((run, preference))
    }

    /// Says what about a result may not be as wanted.
    fn warn(&self, run: &Run, found: usize, (n, candidates): (usize, usize), services: &Services<'_>) {
        let warn = |text: String| services.log(Level::Warn, text);
        if run.undecided {
            warn(format!(
                "cap did not converge in {} iterations, and found no exemplar; raise `damping` or `max_iter`",
                self.max_iter
            ));
        } else if !run.converged {
            warn(format!("cap did not converge in {} iterations; raise `damping` or `max_iter`", self.max_iter));
        }
        if let Rule::Clusters(k) = self.rule {
            if found != k {
                warn(format!("cap found no preference that gives {k} singletons, and has {found}"));
            }
        } else if n > 1 && found == n {
            warn("every example is an exemplar of its own; lower `preference`".to_owned());
        } else if candidates > 1 && found == 1 {
            warn("there is one exemplar for all; raise `preference`".to_owned());
        }
    }
}
