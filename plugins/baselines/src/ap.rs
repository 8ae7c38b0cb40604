//! `ap`: affinity propagation, which chooses examples as exemplars by passing messages between all pairs.
//!
//! | Frey and Dueck | here |
//! | --- | --- |
//! | s(i, k) | [`Similarities`], minus the distance |
//! | s(k, k), the preference | `preference` |
//! | r(i, k), a(i, k) | the messages of [`Messages`] |
//! | λ | `damping` |
//! | net similarity | the objective |
//!
//! Maximises Σᵢ S(i, c(i)) over choices c of an exemplar for every example, where S(i, j) is minus the distance,
//! S(k, k) the preference, and an exemplar chooses itself. An example sends to a candidate the responsibility r(i, k),
//! how well it would suit compared with all others, and gets back the availability a(i, k), how many others think so
//! too; `messages` has the equations. Exemplars are those with r(k, k) + a(k, k) > 0. Cost per iteration: n², in one
//! pass over two n×n matrices of f32.
//!
//! Frey & Dueck, "Clustering by Passing Messages Between Data Points", Science 315, 2007,
//! doi:10.1126/science.1136800. Noise against ties, when to stop and what is done with the exemplars at the end is as
//! in scikit-learn, with four exceptions. That all are exemplars is no end if one for all would be better. Messages
//! that do not settle are passed anew with a higher damping, half as far from 1, up to 0.95; if that does not help, scikit-learn has the state after the last iteration, which may be the worst
//! of all and without any exemplar; here it is the best by net similarity of that, of the states before ([`seen`]) and of
//! a single cluster. Equal examples stay together ([`duplicates`]). The noise is
//! that of f32.
//!
//! # Weaknesses
//!
//! The preference is paid once per exemplar while similarities are summed up over all examples, so a number that is right
//! for 150 examples finds far too many clusters in 1500: `{ per_example = … }` is what stays right. Its default, the median,
//! finds many small clusters. Messages may oscillate, above all with few clusters. Exemplars are examples: where
//! clusters are wide and their middle is empty, none is a good one. Memory and time grow with n².

mod duplicates;
mod messages;
#[cfg(test)]
mod reference;
mod refine;
mod search;
mod seen;
#[cfg(test)]
mod tests;

use compflow_api::{
    Clusterer, Clustering, Component, Diagnostics, Error, Level, Result, Services, Sets, Shape, Task, plural,
    register,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::similarities::Similarities;
use compflow_kernels::equals::first_equals;
use compflow_kernels::preference::{Preference, Rule, SEARCH_DAMPING};
use compflow_kernels::workers::Workers;
use messages::Messages;
use refine::{Clusters, choose, first_highest, refine};
use seen::Seen;

/// Below this many pairs, starting threads is not worth it.
const TINY: usize = 1 << 15;

/// Affinity propagation: finds exemplars among the examples by passing messages between all pairs; how many depends
/// on the preference.
///
/// The similarity of two examples is minus their distance in the pipeline's space. An example becomes an exemplar if
/// that raises the sum of all similarities to exemplars, of which the preference is each exemplar's own. As it is paid
/// once per exemplar while the others are summed up over all examples, a number that is right for some examples is
/// too high for more of them. A seeded noise of the size of rounding errors breaks ties. Equal examples end in the same
/// cluster, unless a preference above 0 makes each of them its own.
///
/// The result has an exemplar per cluster. Its objective is the net similarity, preferences included; the trace has the
/// net similarity of the choices at each iteration, which may still name examples that are no exemplars. Messages may
/// oscillate: then they are passed again with more damping. If they never settle, the best exemplars of the late iterations
/// are used and the result is marked as not converged. Memory: 8 bytes per pair of examples.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How gladly an example becomes an exemplar: a similarity, `"median"` or a percentile such as `"p10"` of all
    /// similarities (those of examples with themselves, 0, included), `{ k = 5 }` to search for what gives that many
    /// clusters, `{ per_example = -0.01 }`, which is multiplied with the number of examples, or
    /// `{ median_per_example = 0.02 }`, which is multiplied with that and with the median similarity.
    pub preference: Preference,
    /// How much of a message is kept in an iteration. Without a `preset` it is raised up to 0.95 where messages oscillate.
    #[schemars(extend("minimum" = 0.5, "exclusiveMaximum" = 1.0))]
    pub damping: f64,
    /// Iterations at most, for each damping; with a number of clusters as `preference`, for each of up to 20 preferences
    /// tried.
    #[schemars(range(min = 1))]
    pub max_iter: usize,
    /// It stops after so many iterations without a change of exemplars.
    #[schemars(range(min = 1))]
    pub convergence_iter: usize,
    /// Values for what is not given.
    pub preset: Option<Preset>,
}

impl Default for Params {
    fn default() -> Self {
        let preference = Preference::default();
        Self { preference, damping: 0.5, max_iter: 200, convergence_iter: 15, preset: None }
    }
}

/// Values of the paper on compositional clustering, and of the code behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// As in the paper.
    #[schemars(extend("values" = { "damping": 0.65 }))]
    Paper,
    /// As in the authors' code.
    #[schemars(extend("values" = { "damping": 0.85, "max_iter": 300 }))]
    AuthorsCode,
}

/// The clusterer `ap`.
#[derive(Debug)]
pub struct Ap {
    rule: Rule,
    damping: f64,
    /// Whether it is raised where messages oscillate.
    raised: bool,
    max_iter: usize,
    convergence_iter: usize,
}
register!(clusterer Ap);

impl Component for Ap {
    const NAME: &'static str = "ap";
    const SUMMARY: &'static str = "affinity propagation: exemplars found by passing messages between all pairs";
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        let Params { preference, damping, max_iter, convergence_iter, preset } = params;
        let rule = preference.rule()?;
        if rule == Rule::Column {
            let text = "= \"column\" is for `cap`; with degree 1 it is affinity propagation";
            return Err(Error::parameter("preference", text));
        }
        if rule == Rule::Auto {
            return Err(Error::parameter("preference", "= \"auto\" is for `cap`; \"median\" would do"));
        }
        // A preset is what others did, and they did not raise it; for a number of clusters it has to be.
        let raised = preset.is_none();
        Ok(Self { rule, damping, raised, max_iter, convergence_iter })
    }
}

impl Clusterer for Ap {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, .. } = shape;
        let damping = match self.rule {
            Rule::Clusters(_) => self.damping.max(SEARCH_DAMPING),
            _ => *self.dampings().last().unwrap_or(&self.damping),
        };
        let messages = Messages::memory(rows, damping, self.max_iter);
        Ok(Similarities::memory(rows, dim).saturating_add(messages).saturating_add(Seen::memory(rows)))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        if let Some(text) = self.rule.too_high() {
            services.log(Level::Warn, text);
        }
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        if let Rule::Clusters(k) = self.rule
            && k > n
        {
            return Err(Error::parameter(
                "preference.k",
                format!("= {k} is more than the {}", plural(n, "example")),
            ));
        }
        services.require_memory(
            self.memory(task.shape(), services)?,
            "cluster fewer examples: memory grows with their number squared",
        )?;
        let workers = Workers::new(if n.saturating_mul(n) < TINY { 1 } else { services.threads })?;
        let mut similarities = Similarities::new(task, &workers, services)?;
        let firsts = first_equals(&task.points(), dim);
        let firsts = firsts.as_deref();
        let vanished = similarities.vanished(firsts);
        if vanished > 0 {
            let text =
                "pairs of examples that differ are 0 apart in 32 bits, so small is that beside the largest value";
            services.log(Level::Warn, format!("{vanished} {text}"));
        }
        let preference = self.preference(&similarities, services);
        if let Some(mutual) = similarities.mutual().map(f64::from) {
            // For a number of clusters, whichever of the two that are possible is nearer: 1, or one per example.
            let above = f64::from(f32::EPSILON);
            let value = preference.unwrap_or_else(|k| if 2 * k > n + 1 { above } else { mutual });
            similarities.set_preference(value);
            let mut run = equally_similar(n, value > mutual);
            if let Err(k) = preference
                && k != run.clusters.exemplars.len()
            {
                run.miss(k, [1, n], services);
            }
            return Ok(self.clustering(run, &similarities));
        }
        similarities.add_noise(&workers, services)?;
        let run = match preference {
            Ok(preference) => {
                similarities.set_preference(preference);
                self.settle(&similarities, firsts, &workers, services)?
            }
            Err(k) => self.search(k, &mut similarities, firsts, &workers, services)?,
        };
        if !run.converged && !run.missed {
            let highest = self.dampings().last().copied().filter(|&highest| highest > self.damping);
            let remedy = highest.map_or("raise `damping` or `max_iter`".to_owned(), |highest| {
                format!("raise `max_iter`, as more `damping` did not help, up to {highest}")
            });
            let iterations = plural(self.max_iter, "iteration");
            services.log(
                Level::Warn,
                match run.undecided {
                    true => {
                        format!("ap found no exemplar in {iterations} and took the best; {remedy}")
                    }
                    false => format!("ap did not converge in {iterations}; {remedy}"),
                },
            );
        }
        Ok(self.clustering(run, &similarities))
    }
}

/// Where the messages led for one preference.
struct Run {
    clusters: Clusters,
    converged: bool,
    /// Whether there was no exemplar at the end.
    undecided: bool,
    /// Whether there is another number of clusters than asked for.
    missed: bool,
    trace: Vec<f64>,
}

/// The state in which the messages ended.
struct End {
    /// Those above 0 after the last iteration.
    exemplars: Vec<u32>,
    /// Who is nearest to being one.
    likeliest: u32,
    /// The exemplars of iterations before.
    seen: Seen,
    converged: bool,
    trace: Vec<f64>,
}

/// Without differences in similarity there is nothing to send: each example is a cluster, or all together are one.
fn equally_similar(n: usize, apart: bool) -> Run {
    let own: Vec<u32> = (0..n as u32).collect();
    let clusters = match apart {
        true => Clusters { labels: own.clone(), exemplars: own },
        false => Clusters { labels: vec![0; n], exemplars: vec![0] },
    };
    Run { clusters, converged: true, undecided: false, missed: false, trace: Vec::new() }
}

/// Whether one exemplar for all would be better than each for itself.
fn is_better_alone(
    messages: &Messages<'_>,
    similarities: &Similarities,
    workers: &Workers,
    services: &Services<'_>,
) -> Result<bool> {
    let likeliest = first_highest(messages.beliefs()) as u32;
    let alone = choose(similarities, vec![likeliest], workers, services)?.net_similarity(similarities);
    Ok(alone > similarities.preference() * similarities.len() as f64)
}

impl Ap {
    /// The clustering, with the preference if it was found.
    fn clustering(&self, run: Run, similarities: &Similarities) -> Clustering {
        let mut clustering = run.into_clustering(similarities);
        if !matches!(self.rule, Rule::Value(_)) {
            clustering.resolve("preference", similarities.restore(similarities.preference()));
        }
        clustering
    }

    /// The preference in the units of the similarities, or the number of clusters that one has to be found for.
    fn preference(&self, similarities: &Similarities, services: &Services<'_>) -> std::result::Result<f64, usize> {
        let convert = |value: f64| {
            let (converted, clamped) = similarities.convert(value);
            if clamped {
                let most = similarities.restore(converted);
                let text = format!("`preference` = {value:e} is beyond 32 bits beside these examples");
                services.log(Level::Warn, format!("{text}, and counts as {most:e}"));
            }
            converted
        };
        match self.rule {
            Rule::Value(value) => Ok(convert(value)),
            Rule::PerExample(value) => Ok(convert(value * similarities.len() as f64)),
            Rule::Percentile(percent) => Ok(similarities.percentile(percent)),
            Rule::MedianPerExample(share) => Ok(share * similarities.percentile(50.0) * similarities.len() as f64),
            Rule::Clusters(k) => Err(k),
            Rule::Column | Rule::Auto => unreachable!("refused when it was made"),
        }
    }

    /// The dampings that are tried one after the other, until messages settle.
    fn dampings(&self) -> Vec<f64> {
        let higher = |&damping: &f64| {
            (self.raised && damping < SEARCH_DAMPING).then(|| f64::midpoint(damping, 1.0).min(SEARCH_DAMPING))
        };
        std::iter::successors(Some(self.damping), higher).collect()
    }

    /// Passes messages with ever more damping until they settle on something that is as good as all before.
    fn settle(
        &self,
        similarities: &Similarities,
        firsts: Option<&[u32]>,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Run> {
        let dampings = self.dampings();
        let mut best: Option<Run> = None;
        for (at, &damping) in dampings.iter().enumerate() {
            let progress = (at * self.max_iter, dampings.len() * self.max_iter);
            let run = self.run(similarities, firsts, damping, workers, services, progress)?;
            let net = |run: &Run| run.clusters.net_similarity(similarities);
            // Much damping makes messages so slow that they seem to have settled where they have hardly begun.
            if best.as_ref().is_some_and(|best| net(best) > net(&run)) {
                continue;
            }
            let converged = run.converged;
            best = Some(run);
            if converged {
                if at > 0 {
                    let text = format!("ap settled at a damping of {damping}, and not at {}", dampings[at - 1]);
                    services.log(Level::Info, text);
                }
                break;
            }
        }
        Ok(best.expect("at least one damping is tried"))
    }

    /// Passes messages until the exemplars stay, and makes clusters of them; `firsts` are the first of examples that
    /// are equal, and `done` of `total` iterations have been reported before.
    fn run(
        &self,
        similarities: &Similarities,
        firsts: Option<&[u32]>,
        damping: f64,
        workers: &Workers,
        services: &Services<'_>,
        (done, total): (usize, usize),
    ) -> Result<Run> {
        let end = self.pass(similarities, damping, workers, services, (done, total))?;
        services.progress(done + self.max_iter, total)?;
        let undecided = end.exemplars.is_empty();
        let exemplars = if undecided { vec![end.likeliest] } else { end.exemplars };
        let mut clusters = refine(similarities, exemplars, workers, services)?;
        if !end.converged {
            let mut seen = end.seen;
            seen.add(&[end.likeliest]);
            if let Some(best) = seen.best(similarities, workers, services)? {
                let other = refine(similarities, best, workers, services)?;
                if other.net_similarity(similarities) > clusters.net_similarity(similarities) {
                    clusters = other;
                }
            }
        }
        if let Some(firsts) = firsts
            && similarities.preference() <= 0.0
        {
            clusters = duplicates::join(clusters, firsts);
        }
        Ok(Run { clusters, converged: end.converged, undecided, missed: false, trace: end.trace })
    }

    /// Passes messages until the exemplars stay.
    fn pass(
        &self,
        similarities: &Similarities,
        damping: f64,
        workers: &Workers,
        services: &Services<'_>,
        (done, total): (usize, usize),
    ) -> Result<End> {
        let mut messages = Messages::new(similarities, damping);
        let (mut exemplars, mut trace, mut seen) = (Vec::new(), Vec::new(), Seen::new(similarities.len()));
        // The iterations that had the present exemplars, the last included.
        let mut same = 0;
        let mut converged = false;
        for iteration in 0..self.max_iter {
            services.progress(done + iteration, total)?;
            trace.push(messages.pass(workers, services)?);
            let beliefs = messages.beliefs().enumerate();
            let next: Vec<u32> = beliefs.filter(|(_, belief)| *belief > 0.0).map(|(row, _)| row as u32).collect();
            same = if next == exemplars { same + 1 } else { 1 };
            if same == 1 {
                seen.add(&exemplars);
            }
            exemplars = next;
            if iteration >= self.convergence_iter && same >= self.convergence_iter && !exemplars.is_empty() {
                // The more examples there are, the longer all are exemplars before messages tell them apart.
                converged = exemplars.len() < similarities.len()
                    || !is_better_alone(&messages, similarities, workers, services)?;
                if converged {
                    break;
                }
            }
        }
        let likeliest = first_highest(messages.beliefs()) as u32;
        Ok(End { exemplars, likeliest, seen, converged, trace })
    }
}

impl Run {
    fn into_clustering(self, similarities: &Similarities) -> Clustering {
        let Clusters { labels, exemplars } = &self.clusters;
        Clustering {
            assignments: Sets::singletons(labels),
            clusters: Sets::all_up_to(exemplars.len(), 1),
            exemplars: exemplars.iter().map(|&row| vec![row]).collect(),
            diagnostics: Diagnostics {
                iterations: self.trace.len() as u64,
                converged: self.converged,
                objective: similarities.restore(self.clusters.net_similarity(similarities)),
                trace: self.trace.iter().map(|&net| similarities.restore(net)).collect(),
            },
            ..Clustering::default()
        }
    }
}
