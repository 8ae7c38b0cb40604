//! All restarts at once, round by round.
//!
//! In a round every restart that is still running has all examples assigned to the nearest of its centres, all in one
//! pass over the data, and then moves its singletons. What a restart computes does not depend on the others; whether
//! it goes on does.
//!
//! # When a restart is given up
//!
//! A restart's SSD only falls, and from round to round it falls by less and less, though not by a law. After a round,
//! a restart is given up if its SSD would not reach the lowest SSD of any restart so far (finished or not) even if the
//! next [`HORIZON`] rounds each brought as much as the better of its last two rounds did. It is looked at after
//! [`GRACE`] rounds at the earliest.

use std::sync::OnceLock;

use compflow_api::{Error, Partial, Result, Sets};
use compflow_kernels::assign::Totals;
use compflow_kernels::frame::Frame;
use compflow_kernels::known::Gathered;
use compflow_kernels::products::Vectors;
use compflow_kernels::workers::Workers;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::adam::Adam;
use crate::pass::{ASSIGN, COUNT, Pass, label};
use compflow_kernels::lbfgs::{self, Limits};
use compflow_kernels::objective::{Model, Objective};
use compflow_kernels::source::Source;
use compflow_kernels::starts::Starts;
use compflow_kernels::told::Told;

/// Rounds like its best recent one that a restart is trusted to make.
pub(crate) const HORIZON: f64 = 20.0;
/// Rounds before a restart can be given up.
pub(crate) const GRACE: usize = 4;
/// Steps of a descent between two assignments, at most.
const STEPS: usize = 30;
/// A descent ends at a step that brings less than this part of what the steps before it did: the next assignment
/// changes the problem anyway.
const PART: f64 = 0.02;
/// Restarts that run together; it bounds the memory for their sums.
pub(crate) const WINDOW: usize = 128;
/// A decrease by less than this part of the SSD is as good as none: distances are those of f32.
pub(crate) const ROUNDING: f64 = 1e-9;
/// An example that is nearer to its centre than this part of the mean squared distance from the mean lies on it.
const ON_CENTRE: f64 = 1e-9;

/// How singletons are moved.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Method {
    Lbfgs,
    Adam { lr: f64, steps: usize },
}

/// What does not change from restart to restart.
pub(crate) struct Search<'a> {
    pub(crate) source: &'a Source<'a>,
    pub(crate) starts: &'a Starts<'a>,
    /// All compositions.
    pub(crate) sets: &'a Sets,
    /// How much examples count and whose sets are known, and what these add up to.
    pub(crate) told: &'a Told<'a>,
    pub(crate) gathered: &'a Gathered,
    /// The sum of all weights.
    pub(crate) total: f64,
    pub(crate) method: Method,
    /// Restarts that are made, of which so many in an earlier search, and those in whose place swaps come.
    pub(crate) restarts: usize,
    pub(crate) earlier: usize,
    pub(crate) replaced: usize,
    pub(crate) max_iter: usize,
    pub(crate) tol: f64,
    /// Whether restarts are given up early.
    pub(crate) prune: bool,
    /// Whether singletons that are in no example's set start anew.
    pub(crate) reseed: bool,
    pub(crate) workers: &'a Workers,
    pub(crate) seed: u64,
    /// Σ‖x‖² of all points, once it is known.
    pub(crate) scatter: OnceLock<f64>,
}

/// Where a restart is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Converged,
    /// By the number of rounds.
    Ended,
    GivenUp,
}

/// One restart.
pub(crate) struct Run {
    /// Its number.
    pub(crate) stream: usize,
    /// k×p, as the composer takes them.
    pub(crate) singletons: Vec<f32>,
    /// A point of the space for every composition.
    pub(crate) centres: Vec<f32>,
    pub(crate) totals: Totals,
    /// SSD of `singletons` and the assignment to them, in prepared units.
    pub(crate) ssd: f64,
    /// SSD after every assignment.
    pub(crate) trace: Vec<f64>,
    pub(crate) state: State,
    /// Steps that diverged.
    pub(crate) diverged: usize,
    /// Singletons that were started anew.
    pub(crate) reseeded: usize,
    /// The SSD that was judged last and its singletons.
    last: (f64, Vec<f32>),
    adam: Option<Adam>,
}

impl Run {
    fn new(stream: usize, singletons: Vec<f32>, search: &Search<'_>) -> Result<Self> {
        let adam = match search.method {
            Method::Lbfgs => None,
            Method::Adam { lr, .. } => Some(Adam::new(lr, singletons.len())),
        };
        Ok(Self {
            stream,
            centres: search.starts.model.centres(&singletons, search.sets)?,
            totals: Totals::zero(search.sets.len(), search.source.dim()),
            ssd: f64::INFINITY,
            trace: Vec::new(),
            state: State::Running,
            diverged: 0,
            reseeded: 0,
            last: (f64::INFINITY, singletons.clone()),
            singletons,
            adam,
        })
    }

    /// What the SSD may still come down to, by the rule above.
    fn hope(&self) -> f64 {
        let recent = &self.trace[self.trace.len().saturating_sub(3)..];
        let falls = recent.windows(2).map(|pair| pair[0] - pair[1]).fold(0.0, f64::max);
        self.ssd - HORIZON * falls
    }
}

impl Search<'_> {
    /// The restart with the lowest SSD of `best` and `restarts` others, each from its start, the first of equal ones;
    /// and how many were given up.
    ///
    /// # Errors
    /// Those of the composer and of the source, and that the work is no longer wanted.
    pub(crate) fn best_of(
        &self,
        restarts: usize,
        start: impl Fn(usize, &mut ChaCha8Rng) -> Result<Vec<f32>> + Sync + Send,
        mut best: Option<Run>,
    ) -> Result<(Run, usize)> {
        // What begins with a best is not counted as progress.
        let counted = best.is_none();
        let mut given_up = 0;
        for first in (0..restarts).step_by(WINDOW) {
            let before = if counted { self.earlier + first } else { self.restarts };
            let streams = first..restarts.min(first.saturating_add(WINDOW));
            let runs = self.run(streams, before, &start, best.as_ref())?;
            given_up += runs.iter().filter(|run| run.state == State::GivenUp).count();
            for run in runs {
                if best.as_ref().is_none_or(|best| run.ssd < best.ssd) {
                    best = Some(run);
                }
            }
        }
        Ok((best.ok_or_else(|| Error::new("there were no restarts"))?, given_up))
    }

    /// Runs the restarts `streams`, of which `before` were done before; returns them in order.
    fn run(
        &self,
        streams: std::ops::Range<usize>,
        before: usize,
        start: impl Fn(usize, &mut ChaCha8Rng) -> Result<Vec<f32>> + Sync + Send,
        best: Option<&Run>,
    ) -> Result<Vec<Run>> {
        let mut runs = self.workers.map(streams, |stream| {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream(stream as u64);
            Run::new(stream, start(stream, &mut rng)?, self)
        })?;
        let all = runs.len();
        let mut lowest = best.map_or(f64::INFINITY, |best| best.ssd);
        loop {
            let mut running: Vec<&mut Run> = runs.iter_mut().filter(|run| run.state == State::Running).collect();
            if running.is_empty() {
                return Ok(runs);
            }
            let scatter = self.assign(&mut running, all)?;
            self.workers.map(running, |run| self.advance(run, scatter))?;
            lowest = runs.iter().map(|run| run.ssd).fold(lowest, f64::min);
            for run in &mut runs {
                let due = self.prune && run.state == State::Running && run.trace.len() >= GRACE;
                if due && run.hope() > lowest {
                    run.state = State::GivenUp;
                }
            }
            let done = |run: &Run| if run.state == State::Running { run.trace.len() } else { self.max_iter };
            let total = self.restarts.saturating_mul(self.max_iter);
            let done = runs.iter().map(done).fold(before.saturating_mul(self.max_iter), usize::saturating_add);
            self.starts.model.services.progress(done.min(total), total)?;
        }
    }

    /// Assigns all examples for each of `running`, in one pass; returns Σ‖x‖². `all` is how many restarts there were
    /// at the beginning: blocks do not change because some have ended.
    fn assign(&self, running: &mut [&mut Run], all: usize) -> Result<f64> {
        let pass = Pass {
            preparation: self.source.preparation(),
            dim: self.source.dim(),
            centres: running.iter().map(|run| self.source.frame.prepared(&run.centres)).collect(),
            all,
            scatter: self.scatter.get().is_none(),
            heeded: self.told.heeded(),
            degree: self.starts.degree,
        };
        let (centres, services) = (pass.vectors(), self.starts.model.services);
        let found = self.source.reduce(ASSIGN, &pass, |first, batch| {
            pass.assign(&centres, self.told, first, batch, self.workers, services)
        })?;
        let (totals, scatter) = pass.totals(&found);
        for (run, mut totals) in running.iter_mut().zip(totals) {
            if !self.told.known.is_empty() {
                totals.add(&self.gathered.totals);
            }
            run.totals = totals;
        }
        Ok(*self.scatter.get_or_init(|| scatter.unwrap_or(0.0)))
    }

    /// Judges the assignment and moves the singletons, unless the restart is at its end.
    fn advance(&self, run: &mut Run, scatter: f64) -> Result<()> {
        run.ssd = run.totals.inertia(scatter, &self.source.frame.prepared(&run.centres));
        let before = run.trace.last().copied();
        match self.method {
            Method::Lbfgs => {
                if let Some(before) = before {
                    // Assignments are told apart in f32, so near the end an SSD may rise by that little.
                    debug_assert!(run.ssd <= before + 1e-6 * scatter, "the SSD rose from {before} to {}", run.ssd);
                    if run.ssd >= before {
                        run.state = State::Converged;
                        return self.return_to_last(run);
                    }
                }
            }
            Method::Adam { .. } => {
                if run.trace.len() == self.max_iter {
                    let change = before.map_or(0.0, |before| (before - run.ssd).abs());
                    run.state = if change <= self.tol * run.ssd { State::Converged } else { State::Ended };
                    return Ok(());
                }
            }
        }
        run.trace.push(run.ssd);
        run.last = (run.ssd, run.singletons.clone());
        let moved = self.reseed && self.reseed(run, scatter)?;
        if let Method::Lbfgs = self.method {
            let small = before.is_some_and(|before| before - run.ssd <= self.tol.max(ROUNDING) * before);
            if small && !moved {
                run.state = State::Converged;
                return Ok(());
            }
            if run.trace.len() == self.max_iter {
                run.state = State::Ended;
                return Ok(());
            }
        }
        let (objective, from) = (self.objective(run), run.singletons.clone());
        let unit = self.source.frame.restore_squared(1.0);
        let improved = match (self.method, &mut run.adam) {
            (Method::Adam { steps, .. }, Some(adam)) => {
                let rest = run.ssd * unit - objective.value(&run.singletons)?.f;
                for _ in 0..steps {
                    run.diverged += adam.step(&objective, rest, &mut run.singletons)?;
                }
                true
            }
            _ => {
                let limits = Limits { steps: STEPS, least: 0.1 * self.tol * run.ssd * unit, part: PART };
                let done = lbfgs::descend(&objective, &mut run.singletons, limits)?;
                run.diverged += done.diverged;
                done.to < done.from
            }
        };
        if !improved && !moved {
            run.state = State::Converged;
            return Ok(());
        }
        let (centres, diverged) = self.starts.model.settle(&mut run.singletons, &from, self.sets)?;
        run.centres = centres;
        run.diverged += diverged;
        Ok(())
    }

    /// Back to the singletons before the last move.
    fn return_to_last(&self, run: &mut Run) -> Result<()> {
        (run.ssd, run.singletons) = run.last.clone();
        run.centres = self.starts.model.centres(&run.singletons, self.sets)?;
        Ok(())
    }

    /// F for the run's assignment.
    fn objective(&self, run: &Run) -> Objective<'_> {
        let Totals { counts, sums, .. } = &run.totals;
        weighted_objective(self.starts.model, &self.source.frame, self.sets, counts, sums)
    }

    /// Singletons that no example's set has start anew at the example of the sample that is farthest from all centres,
    /// unless it lies on one. That leaves the SSD of the assignment as it is.
    fn reseed(&self, run: &mut Run, scatter: f64) -> Result<bool> {
        let dim = self.source.dim();
        let mut used = vec![false; run.singletons.len() / dim];
        for (set, &count) in self.sets.iter().zip(&run.totals.counts) {
            if count > 0.0 {
                set.iter().for_each(|&member| used[member as usize] = true);
            }
        }
        let least = ON_CENTRE * scatter / self.total;
        let mut moved = false;
        for (dead, _) in used.iter().enumerate().filter(|(_, used)| !**used) {
            let centres = self.starts.model.centres(&run.singletons, self.sets)?;
            let (distance, row) = self.starts.farthest(&centres);
            if distance <= least {
                break;
            }
            run.singletons[dead * dim..][..dim].copy_from_slice(row);
            run.reseeded += 1;
            moved = true;
        }
        Ok(moved)
    }

    /// The composition of every example, by its number among all, batch by batch.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn labels(&self, run: &Run, mut each: impl FnMut(&[u32])) -> Result<()> {
        let (dim, sets) = (self.source.dim(), self.sets.len());
        let centres = Vectors::new(&self.source.frame.prepared(&run.centres), dim);
        let mut before = 0;
        self.source.pass(&mut |batch| {
            let mut labels = label(&centres, sets, batch, dim, self.workers)?;
            self.told.known.within(before, labels.len()).for_each(|(at, label)| labels[at] = label);
            before += labels.len();
            each(&labels);
            Ok(())
        })
    }

    /// How many examples every composition has, and the number of the first of them, negated; of examples that are elsewhere.
    ///
    /// # Errors
    /// Those of the source.
    pub(crate) fn counts(&self, run: &Run) -> Result<Partial> {
        let pass = Pass {
            preparation: self.source.preparation(),
            dim: self.source.dim(),
            centres: vec![self.source.frame.prepared(&run.centres)],
            all: 1,
            scatter: false,
            heeded: self.told.heeded(),
            degree: self.starts.degree,
        };
        self.source.reduce(COUNT, &pass, |first, batch| pass.count(self.told, first, batch, self.workers))
    }
}

/// F of sets with these numbers of examples and these sums of their prepared points; sets without examples have no part.
pub(crate) fn weighted_objective<'a>(
    model: Model<'a>,
    frame: &Frame,
    sets: &Sets,
    numbers: &[f64],
    sums: &[f64],
) -> Objective<'a> {
    let (mut kept, mut counts, mut means) = (Sets::default(), Vec::new(), Vec::new());
    for ((set, &number), sum) in sets.iter().zip(numbers).zip(sums.chunks_exact(model.dim)) {
        if number > 0.0 {
            kept.push(set);
            counts.push(number);
            means.extend(frame.mean(sum, number));
        }
    }
    Objective::new(model, kept, counts, means)
}
