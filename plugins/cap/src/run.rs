//! Passing messages until nobody chooses otherwise, and looking for a preference.

use compflow_api::{Error, Level, Result, Services, Sets, Task, plural};
use compflow_kernels::preference::{Rule, Search, TRIALS};
use compflow_kernels::workers::Workers;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::candidates::farthest_first;
use crate::climb::{Climb, End, Further};
use crate::compositions::count_sets;
use crate::exchange::MOST_SETS;
use crate::memory::Size;
use crate::messages::{Damped, Messages};
use crate::similarities::Similarities;
use crate::solution::{Examples, Solution};

/// Noise against ties, as a share of the mean distance: a hundred times the last digit of f32.
const NOISE: f64 = 1e-5;
/// What an exemplar costs at most if nothing is said, as a share of the median distance per example: docs/cap.md has what
/// it was tried on.
pub(crate) const SHARE: f64 = 0.02;
/// One in so many of that is what it costs at least.
const CHEAPEST: f64 = 10.0;
/// How often that is found out, at most.
const ROUNDS: usize = 5;
/// Prices at which as many exemplars are worth it lie so far apart at least, where singletons are many: see docs/cap.md.
const GAP: f64 = 3.0;
/// The price is lowered by that so often, at most,
const RUNGS: i32 = 4;
/// and no further once the number of exemplars is multiplied by this, and by more than at the price before.
const MULTIPLIED: f64 = 2.0;
/// What is said if more singletons could not be looked for.
const UNSEARCHED: &str = "cap did not look for more singletons to the end, as that takes too long, and more may be there; \
                          `preference = { k = … }` gives as many as you say";
/// Below this many similarities, starting threads is not worth it.
const TINY: u64 = 1 << 14;

/// How messages are passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) rule: Rule,
    pub(crate) damping: f64,
    pub(crate) damped: Damped,
    pub(crate) max_iter: usize,
    pub(crate) convergence_iter: usize,
    /// Whether all iterations are done, even if nothing changes any more.
    pub(crate) fixed_iterations: bool,
    /// What is done after the last message.
    pub(crate) finish: Finish,
    /// Multiplications that may be spent on exchanging exemplars, at each price.
    pub(crate) work: u64,
}

/// What is done after the last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// Nothing: every example has the composition that it chose, even if a member of that did not choose itself.
    Choices,
    /// Those that chose themselves are the exemplars, each moves once within its cluster, and every example gets the
    /// nearest composition of them.
    Move,
    /// Then exemplars are taken away, added, moved and exchanged for as long as that raises the objective. With degree 1
    /// only if there shall be another number of them.
    Exchange,
}

/// What was found, and how.
pub(crate) struct Found {
    pub(crate) solution: Solution,
    /// S(k, {k}) of every example, in the user's units.
    pub(crate) preferences: Vec<f64>,
    /// Whether these preferences lead to this solution: not if exemplars were taken away or added for a number of them.
    pub(crate) follows: bool,
    /// Whether the solution was left because nothing changed any more.
    pub(crate) converged: bool,
    /// The objective after every iteration and every change of the solution.
    pub(crate) trace: Vec<f64>,
}

/// Whether lower prices have a number of exemplars that stays.
enum Plateau {
    /// At this preference, in the user's units, and these are the exemplars.
    At(f64, Vec<u32>),
    /// No, or the number stays at the price so far.
    None,
    /// Nobody knows, as looking takes too long.
    Unsearched,
}

/// Where the messages led for one preference.
struct Run {
    /// As examples, ascending.
    exemplars: Vec<u32>,
    /// What each example chose, as examples.
    choices: Sets,
    converged: bool,
    /// Whether there was no exemplar at the end.
    undecided: bool,
    trace: Vec<f64>,
}

/// A solution for some preferences, and how it was found.
struct Attempt {
    run: Run,
    end: End,
    /// In the user's units.
    preferences: Vec<f64>,
    trace: Vec<f64>,
}

impl Attempt {
    /// The distances of all examples from their sets, times the members that a set has on average: what exemplars have
    /// distances from theirs, in the user's units.
    fn spread(&self) -> f64 {
        let Solution { exemplars, sets, labels, objective, .. } = &self.end.solution;
        let own = exemplars.iter().zip(0..).filter(|&(&row, at)| labels[row as usize] == at);
        let paid: f64 = own.map(|(&row, _)| self.preferences[row as usize]).sum();
        let members: usize = labels.iter().map(|&label| sets[label as usize].len()).sum();
        (paid - objective) * members as f64 / labels.len() as f64
    }
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
        let (n, candidates) = (similarities.len(), similarities.columns.len());
        let of_median = |share: f64| {
            let median = similarities.percentile(50.0, services)?;
            // If most examples are equal, the others still cost something.
            let typical = if median < 0.0 { median } else { -similarities.mean_distance() };
            Ok::<_, Error>(share * typical * n as f64)
        };
        let preferences = match self.rule {
            Rule::Auto => vec![of_median(SHARE)?; n],
            Rule::Value(value) => vec![similarities.convert(value); n],
            Rule::PerExample(value) => vec![similarities.convert(value * n as f64); n],
            Rule::Percentile(percent) => vec![similarities.percentile(percent, services)?; n],
            Rule::MedianPerExample(share) => vec![of_median(share)?; n],
            // To be found.
            Rule::Clusters(_) => vec![0.0; n],
            Rule::Column => {
                let given = task.preferences.ok_or_else(|| {
                    Error::parameter("preference", "= \"column\", but the data's `columns` name no `preference`")
                })?;
                given.iter().map(|value| similarities.convert(f64::from(*value))).collect()
            }
        };
        let attempt = |preferences: Vec<f64>, start: Option<Vec<u32>>, progress: (usize, usize)| {
            self.attempt(task, similarities, preferences, start, progress, workers, services)
        };
        let rounds = if self.rule == Rule::Auto { ROUNDS } else { 1 };
        let lowest = preferences[0];
        let mut last = attempt(preferences, None, (0, rounds * self.max_iter))?;
        for round in 1..rounds {
            // What its examples are away from their sets, on average, is more than an exemplar that splits them can gain.
            let solution = &last.end.solution;
            let dearest = -similarities.convert(last.spread() / solution.exemplars.len() as f64);
            let preference = dearest.clamp(lowest, lowest / CHEAPEST);
            let (before, count) = (similarities.convert(last.preferences[0]), solution.exemplars.len());
            if preference <= before * (1.0 - NOISE) {
                break;
            }
            last = attempt(vec![preference; n], None, (round * self.max_iter, rounds * self.max_iter))?;
            if last.end.solution.exemplars.len() == count {
                break;
            }
        }
        let mut unsearched = false;
        if self.rule == Rule::Auto {
            match self.plateau(task, similarities, &last, workers, services)? {
                Plateau::At(preference, exemplars) => {
                    let total = (rounds + 1) * self.max_iter;
                    let preferences = vec![similarities.convert(preference); n];
                    last = attempt(preferences, Some(exemplars), (rounds * self.max_iter, total))?;
                }
                Plateau::None => {}
                Plateau::Unsearched => unsearched = true,
            }
        }
        self.warn(&last.run, &last.end, (n, candidates), services);
        if unsearched {
            services.log(Level::Warn, UNSEARCHED);
        }
        let Attempt { run, end, preferences, trace } = last;
        let wanted = self.wanted();
        let follows = wanted.is_none_or(|k| k == run.exemplars.len()) && similarities.mean_distance() > 0.0;
        Ok(Found { solution: end.solution, preferences, follows, converged: end.settled && !unsearched, trace })
    }

    /// The preference at which the number of exemplars stays though the price falls, if it does not at the price so far.
    /// Where singletons are many, each explains so little that the first price finds some of them only; but once all are
    /// there, a further one gains far less than the last.
    fn plateau(
        &self,
        task: &Task<'_>,
        similarities: &Similarities,
        last: &Attempt,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Plateau> {
        let first = last.preferences[0];
        let (mut exemplars, mut growth) = (last.end.solution.exemplars.clone(), f64::INFINITY);
        let mut unsearched = false;
        for rung in 0..=RUNGS {
            let preference = first / GAP.powi(rung);
            let preferences = vec![preference; similarities.len()];
            let examples = Examples::new(task, &similarities.points, &preferences, workers, services);
            let climb = Climb::new(&examples, &similarities.columns, None, self.work);
            let further = match rung {
                0 => climb.prices(&examples.assign(exemplars.clone())?)?,
                _ => climb.further(exemplars.clone())?,
            };
            let (further, prices) = match further {
                Further::Settled(exemplars, prices) => (exemplars, prices),
                Further::TooMany => break,
                Further::Exhausted => return Ok(Plateau::Unsearched),
            };
            if prices.end >= GAP * prices.start {
                return Ok(match rung {
                    0 => Plateau::None,
                    // In the middle, so that whoever looks again finds as many. Without noise it reaches down to a price of zero,
                    // at which everybody would be an exemplar.
                    _ => Plateau::At(-(prices.start.max(1e-6 * prices.end) * prices.end).sqrt(), further),
                });
            }
            // If somebody gains more than the price, there was work for the candidates only, and not for everybody.
            unsearched = prices.start > -preference * (1.0 + NOISE);
            let times = further.len() as f64 / exemplars.len() as f64;
            if rung > 0 {
                // Where ever more follow, there is no number at which they stay.
                if times >= growth.max(MULTIPLIED) {
                    break;
                }
                growth = times;
            }
            exemplars = further;
        }
        Ok(if unsearched { Plateau::Unsearched } else { Plateau::None })
    }

    /// How many exemplars there shall be.
    fn wanted(&self) -> Option<usize> {
        match self.rule {
            Rule::Clusters(k) => Some(k),
            _ => None,
        }
    }

    /// Passes messages with these preferences, and makes a solution of them, or of the exemplars to `start` with if those
    /// are better.
    #[expect(clippy::too_many_arguments, reason = "the state of a search and that of a call")]
    fn attempt(
        &self,
        task: &Task<'_>,
        similarities: &Similarities,
        mut preferences: Vec<f64>,
        start: Option<Vec<u32>>,
        progress: (usize, usize),
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Attempt> {
        let n = similarities.len();
        let mean_distance = similarities.mean_distance();
        let run = if similarities.columns.len() == 1 || mean_distance == 0.0 {
            // Without differences there is nothing to send, and anybody may be an exemplar.
            let columns = &similarities.columns;
            let exemplars = match self.wanted() {
                Some(k) => columns[..k].to_vec(),
                None => {
                    let best = columns.iter().copied().reduce(|best, row| {
                        if preferences[row as usize] > preferences[best as usize] { row } else { best }
                    });
                    let mut exemplars: Vec<u32> =
                        columns.iter().copied().filter(|&row| preferences[row as usize] > 0.0).collect();
                    exemplars.extend(best.filter(|_| exemplars.is_empty()));
                    exemplars
                }
            };
            let own = |row: u32| if exemplars.binary_search(&row).is_ok() { row } else { exemplars[0] };
            let choices = Sets::singletons(&(0..n as u32).map(own).collect::<Vec<u32>>());
            Run { exemplars, choices, converged: true, undecided: false, trace: Vec::new() }
        } else {
            let mut rng = ChaCha8Rng::seed_from_u64(services.seed);
            rng.set_stream(1);
            let mut noise = || (-NOISE * mean_distance * rng.random::<f64>()) as f32;
            let noise: Vec<f32> = similarities.columns.iter().map(|_| noise()).collect();
            match self.wanted() {
                Some(k) => {
                    let (run, preference) = self.search(k, similarities, &noise, workers, services)?;
                    preferences = vec![preference; n];
                    run
                }
                None => self.run(similarities, &preferences, &noise, self.damping, workers, services, progress)?,
            }
        };
        let alone = similarities.columns[similarities.most_central(&preferences)];
        let preferences: Vec<f64> = preferences.iter().map(|value| similarities.restore(*value)).collect();
        let examples = Examples::new(task, &similarities.points, &preferences, workers, services);
        let mut trace: Vec<f64> = run.trace.iter().map(|net| similarities.restore(*net)).collect();
        let mut end = self.finish(&examples, &run, start, &similarities.columns, alone, &mut trace)?;
        end.settled &= self.wanted().is_none_or(|k| k == end.solution.exemplars.len());
        if self.finish == Finish::Choices {
            // The same, but for rounding.
            trace.pop();
        }
        if trace.last() != Some(&end.solution.objective) {
            trace.push(end.solution.objective);
        }
        Ok(Attempt { run, end, preferences, trace })
    }

    /// From the messages to the solution.
    fn finish(
        &self,
        examples: &Examples<'_>,
        run: &Run,
        start: Option<Vec<u32>>,
        candidates: &[u32],
        alone: u32,
        trace: &mut Vec<f64>,
    ) -> Result<End> {
        let wanted = self.wanted();
        if self.finish == Finish::Choices {
            let solution = examples.chosen(&run.choices)?;
            return Ok(End { solution, settled: run.converged, exhausted: false, unexplored: false });
        }
        let mut solution = examples.refine(run.exemplars.clone())?;
        if let Some(start) = start {
            let other = examples.assign(start)?;
            if other.objective > solution.objective {
                solution = other;
            }
        }
        let asked = self.finish == Finish::Exchange;
        if !asked || examples.degree() == 1 && wanted.is_none_or(|k| k == solution.exemplars.len()) {
            return Ok(End { solution, settled: run.converged, exhausted: false, unexplored: false });
        }
        Climb::new(examples, candidates, wanted, self.work).run(solution, alone, trace)
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
        let mut messages = Messages::new(similarities, &preferences, noise, damping, self.damped);
        let mut trace = Vec::new();
        // A pass begins with the choices that follow from the iterations before it, so the last is there for its look.
        let mut same = 0;
        let mut converged = false;
        let mut exemplars = Vec::new();
        for iteration in 0..=self.max_iter {
            services.progress(done + iteration, total)?;
            let (net, changed) = messages.pass(workers, services)?;
            if iteration == 0 {
                continue;
            }
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
        Ok(Run { exemplars, choices: messages.chosen(), converged, undecided, trace })
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
            // Another number is worse than messages that went on.
            let worth = |run: &Run| (run.exemplars.len().abs_diff(k), !run.converged);
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
    fn warn(&self, run: &Run, end: &End, (n, candidates): (usize, usize), services: &Services<'_>) {
        let warn = |text: String| services.log(Level::Warn, text);
        let found = end.solution.exemplars.len();
        let exchanged = self.finish == Finish::Exchange;
        if !run.converged {
            let text = format!("cap did not converge in {}", plural(self.max_iter, "iteration"));
            let none = if run.undecided { ", and found no exemplar" } else { "" };
            match end.settled {
                // What the messages left was mended.
                true => services
                    .log(Level::Info, format!("{text}{none}; its exemplars were exchanged until none was better")),
                false => warn(format!("{text}{none}; raise `damping` or `max_iter`")),
            }
        }
        if end.exhausted {
            warn(format!(
                "cap stopped exchanging exemplars after 2^{} multiplications, and better ones may be left; lower \
                 `preference`, or cluster a `subset`",
                self.work.max(1).ilog2()
            ));
        } else if exchanged && end.solution.sets.len() > MOST_SETS {
            warn(format!(
                "cap did not exchange its {found} exemplars, as they have more than {MOST_SETS} compositions; lower \
                 `preference`"
            ));
        }
        if end.unexplored {
            services.log(Level::Info, "cap did not try all starts for exchanging exemplars, as there are many");
        }
        let strangers = end.solution.unfaithful();
        if strangers > 0 {
            warn(format!(
                "{strangers} of the {found} exemplars chose another themselves; `finish = \"move\"` takes only those that chose \
                 themselves"
            ));
        }
        if let Rule::Clusters(k) = self.rule {
            if found != k {
                warn(format!("cap found no preference that gives {}, and has {found}", plural(k, "singleton")));
            }
        } else if let Some(text) = self.rule.too_high() {
            warn(text);
        } else if n > 1 && found == n {
            warn("every example is an exemplar of its own; lower `preference`".to_owned());
        } else if candidates > 1 && found == 1 {
            warn("there is one exemplar for all; raise `preference`".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::Normalize;
    use compflow_kernels::testing::composers::Plain;
    use compflow_kernels::testing::planted::Planted;
    use compflow_kernels::testing::watcher::Watcher;

    use super::*;
    use crate::exchange::WORK;

    #[test]
    fn singletons_that_could_not_be_looked_for_are_said_and_are_no_convergence() {
        let planted = Planted::new(Plain::Sum, (24, 2, 24), 1, |_| 0.3, 3);
        let task = planted.task(Normalize::None);
        let found = |rule, work| {
            let host = Watcher::new(usize::MAX);
            let setting = Setting {
                rule,
                damping: 0.65,
                damped: Damped::Responsibilities,
                max_iter: 200,
                convergence_iter: 15,
                fixed_iterations: false,
                finish: Finish::Move,
                work,
            };
            let found = setting.solve(&task, 100, &Services { host: &host, ..Services::none() }).unwrap();
            let said = host.warnings().iter().any(|line| line == UNSEARCHED);
            (found.solution.exemplars.len() == 24, found.converged, said)
        };
        assert_eq!(found(Rule::Auto, WORK), (true, true, false));
        assert_eq!(found(Rule::Auto, 1 << 27), (false, false, true));
        // Whoever says a price has what it finds.
        assert!(!found(Rule::MedianPerExample(SHARE), 1 << 27).2);
    }

    #[test]
    fn what_stopped_early_is_said_by_what_it_means_for_the_answer() {
        let setting = Setting {
            rule: Rule::Value(-1.0),
            damping: 0.65,
            damped: Damped::Responsibilities,
            max_iter: 1,
            convergence_iter: 15,
            fixed_iterations: false,
            finish: Finish::Exchange,
            work: WORK,
        };
        let lines = |converged, settled, exhausted, sets: usize| {
            let host = Watcher::new(usize::MAX);
            let run = Run {
                exemplars: vec![0, 1],
                choices: Sets::default(),
                converged,
                undecided: false,
                trace: Vec::new(),
            };
            let sets: Sets = (0..sets as u32).map(|at| [at]).collect();
            let solution = Solution::new(vec![0, 1], sets, vec![0, 1, 1], 0.0);
            let end = End { solution, settled, exhausted, unexplored: false };
            setting.warn(&run, &end, (3, 3), &Services { host: &host, ..Services::none() });
            host.lines.into_inner().unwrap()
        };
        assert_eq!(lines(true, true, false, 2), []);
        let mended = "cap did not converge in 1 iteration; its exemplars were exchanged until none was better";
        assert_eq!(lines(false, true, false, 2), [(Level::Info, mended.to_owned())]);
        let warned = |lines: Vec<(Level, String)>, texts: &[&str]| {
            assert_eq!(lines.len(), texts.len(), "{lines:?}");
            let holds =
                |((level, line), text): (&(Level, String), &&str)| *level == Level::Warn && line.contains(text);
            assert!(lines.iter().zip(texts).all(holds), "{lines:?}");
        };
        warned(lines(false, false, false, 2), &["did not converge in 1 iteration; raise `damping`"]);
        warned(lines(true, false, true, 2), &["after 2^36 multiplications"]);
        warned(lines(true, false, false, MOST_SETS + 1), &["more than 65536 compositions"]);
    }
}
