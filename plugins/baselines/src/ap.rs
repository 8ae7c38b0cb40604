//! `ap`: affinity propagation, which chooses examples as exemplars by passing messages between all pairs.
//!
//! Maximises Σᵢ S(i, c(i)) over choices c of an exemplar for every example, where S(i, j) is minus the distance,
//! S(k, k) the preference, and an exemplar chooses itself. An example sends to a candidate the responsibility r(i, k),
//! how well it would suit compared with all others, and gets back the availability a(i, k), how many others think so
//! too; `messages` has the equations. Exemplars are those with r(k, k) + a(k, k) > 0. Cost per iteration: n², in one
//! pass over two n×n matrices of f32.
//!
//! Frey & Dueck, "Clustering by Passing Messages Between Data Points", Science 315, 2007,
//! doi:10.1126/science.1136800. Noise against ties, when to stop and what is done with the exemplars at the end is as
//! in scikit-learn. Where that gives up (no exemplar after the last iteration), the example with the largest
//! r(k, k) + a(k, k) becomes the only one.

mod messages;
#[cfg(test)]
mod reference;
mod refine;

use compflow_api::{
    Clusterer, Clustering, Component, Diagnostics, Error, Level, Result, Services, Sets, Task, register,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::similarities::Similarities;
use compflow_kernels::preference::{Preference, Rule, SEARCH_DAMPING, Search, TRIALS};
use compflow_kernels::workers::Workers;
use messages::Messages;
use refine::{Clusters, first_highest, refine};

/// Below this many pairs, starting threads is not worth it.
const TINY: usize = 1 << 15;

/// Affinity propagation: finds exemplars among the examples by passing messages between all pairs; how many depends
/// on the preference.
///
/// The similarity of two examples is minus their distance in the pipeline's space. An example becomes an exemplar if
/// that raises the sum of all similarities to exemplars, of which the preference is each exemplar's own. As it is paid
/// once per exemplar while the others are summed up over all examples, a number that is right for some examples is
/// too high for more of them. A seeded noise of the size of rounding errors breaks ties.
///
/// The result has an exemplar per cluster. Its objective is the net similarity, preferences included; the trace has the
/// net similarity of the choices at each iteration, which may still name examples that are no exemplars. Messages may
/// oscillate: then the state after the last iteration is used and the result is marked as not converged; a higher
/// `damping` helps. Memory: 8 bytes per pair of examples.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How gladly an example becomes an exemplar: a similarity, `"median"` or a percentile such as `"p10"` of all
    /// similarities (those of examples with themselves, 0, included), `{ k = 5 }` to search for what gives that many clusters, or
    /// `{ per_example = -0.01 }`, which is multiplied with the number of examples.
    pub preference: Preference,
    /// How much of a message is kept in an iteration. With a number of clusters as `preference`, it is raised up to
    /// 0.95 where messages oscillate.
    #[schemars(extend("minimum" = 0.5, "exclusiveMaximum" = 1.0))]
    pub damping: f64,
    /// Iterations at most. With a number of clusters as `preference`, for each of up to 20 preferences tried.
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
    max_iter: usize,
    convergence_iter: usize,
}
register!(clusterer Ap);

impl Component for Ap {
    const NAME: &'static str = "ap";
    const SUMMARY: &'static str = "affinity propagation: exemplars found by passing messages between all pairs";
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        let Params { preference, damping, max_iter, convergence_iter, preset: _ } = params;
        Ok(Self { rule: preference.rule()?, damping, max_iter, convergence_iter })
    }
}

impl Clusterer for Ap {
    fn memory(&self, rows: usize, dim: usize, _degree: usize) -> u64 {
        let damping = match self.rule {
            Rule::Clusters(_) => self.damping.max(SEARCH_DAMPING),
            _ => self.damping,
        };
        let messages = Messages::memory(rows, damping, self.max_iter);
        Similarities::memory(rows, dim).saturating_add(messages)
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        if let Rule::Clusters(k) = self.rule
            && k > n
        {
            return Err(Error::new(format!("`preference.k` = {k} is more than the {n} examples")));
        }
        services.require_memory(
            self.memory(n, dim, task.degree),
            "cluster fewer examples: memory grows with their number squared",
        )?;
        let workers = Workers::new(if n.saturating_mul(n) < TINY { 1 } else { services.threads })?;
        let mut similarities = Similarities::new(task, &workers, services)?;
        let preference = self.preference(&similarities);
        if let Some(mutual) = similarities.mutual().map(f64::from) {
            // For a number of clusters, whichever of the two that are possible is nearer: 1, or one per example.
            let above = f64::from(f32::EPSILON);
            let preference = preference.unwrap_or_else(|k| if 2 * k > n + 1 { above } else { mutual });
            similarities.set_preference(preference);
            let run = equally_similar(n, preference > mutual);
            self.warn_of_count(&run, services);
            return Ok(run.into_clustering(&similarities));
        }
        similarities.add_noise(&workers, services)?;
        let run = match preference {
            Ok(preference) => {
                similarities.set_preference(preference);
                self.run(&similarities, self.damping, &workers, services, (0, self.max_iter))?
            }
            Err(k) => self.search(k, &mut similarities, &workers, services)?,
        };
        if !run.converged {
            let remedy = "raise `damping` or `max_iter`";
            services.log(
                Level::Warn,
                match run.undecided {
                    true => {
                        format!("ap found no exemplar in {} iterations and took the best; {remedy}", self.max_iter)
                    }
                    false => format!("ap did not converge in {} iterations; {remedy}", self.max_iter),
                },
            );
        }
        self.warn_of_count(&run, services);
        Ok(run.into_clustering(&similarities))
    }
}

/// Where the messages led for one preference.
struct Run {
    clusters: Clusters,
    converged: bool,
    /// Whether there was no exemplar at the end.
    undecided: bool,
    trace: Vec<f64>,
}

/// Without differences in similarity there is nothing to send: each example is a cluster, or all together are one.
fn equally_similar(n: usize, apart: bool) -> Run {
    let own: Vec<u32> = (0..n as u32).collect();
    let clusters = match apart {
        true => Clusters { labels: own.clone(), exemplars: own },
        false => Clusters { labels: vec![0; n], exemplars: vec![0] },
    };
    Run { clusters, converged: true, undecided: false, trace: Vec::new() }
}

impl Ap {
    /// The preference in the units of the similarities, or the number of clusters that one has to be found for.
    fn preference(&self, similarities: &Similarities) -> std::result::Result<f64, usize> {
        match self.rule {
            Rule::Value(value) => Ok(similarities.convert(value)),
            Rule::Percentile(percent) => Ok(similarities.percentile(percent)),
            Rule::PerExample(value) => Ok(similarities.convert(value * similarities.len() as f64)),
            Rule::Clusters(k) => Err(k),
        }
    }

    /// Passes messages until the exemplars stay; `done` of `total` iterations have been reported before.
    fn run(
        &self,
        similarities: &Similarities,
        damping: f64,
        workers: &Workers,
        services: &Services<'_>,
        (done, total): (usize, usize),
    ) -> Result<Run> {
        let mut messages = Messages::new(similarities, damping);
        let (mut exemplars, mut trace) = (Vec::new(), Vec::new());
        // The iterations that had the present exemplars, the last included.
        let mut same = 0;
        let mut converged = false;
        for iteration in 0..self.max_iter {
            services.progress(done + iteration, total)?;
            trace.push(messages.pass(workers, services)?);
            let beliefs = messages.beliefs().enumerate();
            let next: Vec<u32> = beliefs.filter(|(_, belief)| *belief > 0.0).map(|(row, _)| row as u32).collect();
            same = if next == exemplars { same + 1 } else { 1 };
            exemplars = next;
            if iteration >= self.convergence_iter && same >= self.convergence_iter && !exemplars.is_empty() {
                converged = true;
                break;
            }
        }
        services.progress(done + self.max_iter, total)?;
        let undecided = exemplars.is_empty();
        if undecided {
            exemplars.push(first_highest(messages.beliefs()) as u32);
        }
        drop(messages);
        let clusters = refine(similarities, exemplars, workers, services)?;
        Ok(Run { clusters, converged, undecided, trace })
    }

    /// Looks for a preference that gives `k` clusters; of those tried, the one that comes nearest is kept.
    fn search(
        &self,
        k: usize,
        similarities: &mut Similarities,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Run> {
        let (smallest, least) = similarities.extent();
        let mut search = Search::new(k, smallest, least, self.damping);
        let mut best: Option<(Run, f64)> = None;
        for trial in 0..TRIALS {
            let preference = search.preference();
            similarities.set_preference(preference);
            let progress = (trial * self.max_iter, TRIALS * self.max_iter);
            let run = self.run(similarities, search.damping(), workers, services, progress)?;
            let (found, converged) = (run.clusters.exemplars.len(), run.converged);
            let worth = |run: &Run| (!run.converged, run.clusters.exemplars.len().abs_diff(k));
            if best.as_ref().is_none_or(|(best, _)| worth(&run) < worth(best)) {
                best = Some((run, preference));
            }
            if !search.learn(found, converged) {
                break;
            }
        }
        let (run, preference) = best.expect("at least one preference is tried");
        similarities.set_preference(preference);
        let found = run.clusters.exemplars.len();
        services.log(
            Level::Info,
            format!("ap has {found} clusters at a preference of {}", similarities.restore(preference)),
        );
        Ok(run)
    }

    fn warn_of_count(&self, run: &Run, services: &Services<'_>) {
        let found = run.clusters.exemplars.len();
        if let Rule::Clusters(k) = self.rule
            && found != k
        {
            services.log(Level::Warn, format!("ap found no preference that gives {k} clusters, and has {found}"));
        }
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

#[cfg(test)]
mod tests {
    use compflow_api::{Distance, Embeddings, ForeignClusterer, Registration};

    use super::*;
    use compflow_kernels::preference::Target;
    use compflow_kernels::testing::watcher::Watcher;
    use compflow_kernels::testing::{examples, propagation};

    fn ap(params: Params) -> Ap {
        Ap::new(params, &Services::none()).unwrap()
    }

    fn with_preference(preference: Preference) -> Params {
        Params { preference, ..Params::default() }
    }

    fn cluster(values: &[f32], dim: usize, params: Params, services: &Services<'_>) -> Result<Clustering> {
        let task = Task::new(Embeddings::new(values, dim));
        let clustering = ap(params).cluster(&task, services)?;
        clustering.check(&task)?;
        Ok(clustering)
    }

    fn found(values: &[f32], dim: usize, params: Params) -> Clustering {
        cluster(values, dim, params, &Services::none()).unwrap()
    }

    #[test]
    fn messages_are_those_of_plain_loops() {
        for (n, damping, seed) in [(5, 0.5, 1), (23, 0.65, 2), (40, 0.9, 3)] {
            let values = examples::uniform(n, 3, seed);
            let task = Task::new(Embeddings::new(&values, 3));
            let (workers, services) = (Workers::alone(), Services::none());
            let mut similarities = Similarities::new(&task, &workers, &services).unwrap();
            similarities.add_noise(&workers, &services).unwrap();
            similarities.set_preference(-0.3);
            let wide: Vec<f64> = similarities.values().iter().map(|&value| f64::from(value)).collect();
            let mut messages = Messages::new(&similarities, damping);
            for iterations in 1..=30 {
                messages.pass(&workers, &services).unwrap();
                let expected = propagation::pass(&wide, n, damping, iterations);
                for (found, expected) in messages.responsibilities().iter().zip(&expected.responsibilities) {
                    assert!((f64::from(*found) - expected).abs() < 2e-5, "{iterations}: {found} {expected}");
                }
                for (k, belief) in messages.beliefs().enumerate() {
                    let own = k * (n + 1);
                    let expected = expected.availabilities[own] + expected.responsibilities[own];
                    assert!((belief - expected).abs() < 2e-5, "{iterations}: {belief} {expected}");
                }
            }
        }
    }

    #[test]
    fn groups_far_apart_are_found() {
        let (values, truth) = examples::blobs(9, 30, 3, 1);
        for distance in [Distance::SqEuclidean, Distance::Euclidean] {
            let mut task = Task::new(Embeddings::new(&values, 3));
            task.space.distance = distance;
            let params = Params { damping: 0.7, ..with_preference(Preference::Value(-40.0)) };
            let found = ap(params).cluster(&task, &Services::none()).unwrap();
            assert_eq!(examples::partition(found.assignments.values()), examples::partition(&truth));
            assert!(found.diagnostics.converged);
        }
    }

    #[test]
    fn the_objective_is_the_net_similarity_and_exemplars_are_in_their_clusters() {
        let values = examples::uniform(200, 4, 2);
        for distance in [Distance::SqEuclidean, Distance::Euclidean] {
            let mut task = Task::new(Embeddings::new(&values, 4));
            task.space.distance = distance;
            let found = ap(with_preference(Preference::Value(-3.0))).cluster(&task, &Services::none()).unwrap();
            let labels = found.assignments.values();
            let mut net = -3.0 * found.clusters.len() as f64;
            for (row, &label) in labels.iter().enumerate() {
                let exemplar = found.exemplars[label as usize][0] as usize;
                net -= task.space.distance(task.embeddings.row(row), task.embeddings.row(exemplar));
            }
            assert!((found.diagnostics.objective - net).abs() < 1e-5 * net.abs());
            for (label, exemplar) in found.exemplars.iter().enumerate() {
                assert_eq!(labels[exemplar[0] as usize], label as u32);
            }
            assert!(found.exemplars.is_sorted());
            assert_eq!(found.diagnostics.trace.len() as u64, found.diagnostics.iterations);
            // Refinement may only add to what the last choices had.
            assert!(net >= found.diagnostics.trace.last().unwrap() - 1e-5 * net.abs());
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let values = examples::uniform(701, 5, 3);
        let at = |threads: usize| {
            cluster(&values, 5, Params::default(), &Services { threads, ..Services::none() }).unwrap()
        };
        let alone = at(1);
        assert_eq!(at(2), alone);
        assert_eq!(at(3), alone);
    }

    #[test]
    fn the_order_of_examples_does_not_matter() {
        let (n, dim) = (300, 3);
        let values = examples::uniform(n, dim, 4);
        // 7 has no divisor in common with 300.
        let moved = |row: usize| row * 7 % n;
        let mut permuted = vec![0.0; n * dim];
        for row in 0..n {
            permuted[moved(row) * dim..][..dim].copy_from_slice(&values[row * dim..][..dim]);
        }
        let (before, after) = (found(&values, dim, Params::default()), found(&permuted, dim, Params::default()));
        let back: Vec<u32> = (0..n).map(|row| after.assignments.values()[moved(row)]).collect();
        assert_eq!(examples::partition(before.assignments.values()), examples::partition(&back));
    }

    #[test]
    fn a_number_of_clusters_is_reached() {
        let values = examples::uniform(250, 2, 5);
        for k in [1, 2, 5, 12, 40] {
            let found = found(&values, 2, with_preference(Preference::Target(Target { k })));
            assert_eq!(found.clusters.len(), k);
        }
        let (values, truth) = examples::blobs(5, 30, 2, 1);
        let target = || with_preference(Preference::Target(Target { k: 5 }));
        let clusters = |values: &[f32]| examples::partition(found(values, 2, target()).assignments.values());
        assert_eq!(clusters(&values), examples::partition(&truth));
        // Equal examples are as far apart as their noise, which must not mislead the search.
        assert_eq!(
            clusters(&[&values[..], &values].concat()),
            examples::partition(&[&truth[..], &truth].concat())
        );
    }

    #[test]
    fn presets_give_way_to_what_is_given() {
        let component = Registration::clusterer::<Ap>().component().unwrap();
        let from = |params: &str| {
            let params: Params = serde_json::from_str(&component.effective(params)).unwrap();
            (params.damping, params.max_iter, params.convergence_iter)
        };
        assert_eq!(from("{}"), (0.5, 200, 15));
        assert_eq!(from(r#"{"preset": "paper"}"#), (0.65, 200, 15));
        assert_eq!(from(r#"{"preset": "authors-code"}"#), (0.85, 300, 15));
        assert_eq!(from(r#"{"preset": "authors-code", "damping": 0.7}"#), (0.7, 300, 15));
    }

    #[test]
    fn what_did_not_converge_is_usable_and_says_so() {
        let host = Watcher::new(usize::MAX);
        let services = Services { host: &host, ..Services::none() };
        let values = examples::uniform(100, 2, 6);
        // Too few iterations for anybody to become an exemplar.
        let params = Params { preference: Preference::Value(-1000.0), max_iter: 1, ..Params::default() };
        let one = cluster(&values, 2, params, &services).unwrap();
        assert_eq!((one.clusters.len(), one.diagnostics.converged, one.diagnostics.iterations), (1, false, 1));
        // Enough for exemplars, not for their staying.
        let params = Params { max_iter: 12, ..Params::default() };
        let several = cluster(&values, 2, params, &services).unwrap();
        assert!(several.clusters.len() > 1 && !several.diagnostics.converged);
        assert_eq!(
            host.warnings(),
            [
                "ap found no exemplar in 1 iterations and took the best; raise `damping` or `max_iter`",
                "ap did not converge in 12 iterations; raise `damping` or `max_iter`",
            ]
        );
    }

    #[test]
    fn equal_similarities_give_one_cluster_or_one_each() {
        let count = |values: &[f32], preference| found(values, 1, with_preference(preference)).clusters.len();
        assert_eq!(count(&[3.0], Preference::default()), 1);
        assert_eq!(count(&[3.0; 6], Preference::default()), 1);
        assert_eq!(count(&[3.0; 6], Preference::Value(0.5)), 6);
        assert_eq!(count(&[0.0, 1.0], Preference::default()), 2);
        assert_eq!(count(&[0.0, 1.0], Preference::Value(-2.0)), 1);
        assert_eq!(count(&[0.0, 1.0], Preference::Target(Target { k: 1 })), 1);
        assert_eq!(count(&[0.0, 1.0], Preference::Target(Target { k: 2 })), 2);

        let host = Watcher::new(usize::MAX);
        let services = Services { host: &host, ..Services::none() };
        let target = with_preference(Preference::Target(Target { k: 2 }));
        assert_eq!(cluster(&[3.0; 6], 1, target, &services).unwrap().clusters.len(), 1);
        assert_eq!(host.warnings(), ["ap found no preference that gives 2 clusters, and has 1"]);
    }

    #[test]
    fn huge_values_do_not_overflow() {
        let (values, truth) = examples::blobs(4, 20, 2, 7);
        let huge: Vec<f32> = values.iter().map(|value| value * 1e35).collect();
        let found = found(&huge, 2, with_preference(Preference::Target(Target { k: 4 })));
        assert_eq!(examples::partition(found.assignments.values()), examples::partition(&truth));
        assert!(found.diagnostics.objective.is_finite());
    }

    #[test]
    fn work_that_is_no_longer_wanted_stops() {
        let values = examples::uniform(600, 3, 8);
        for (threads, patience) in [(1, 1), (2, 3)] {
            let host = Watcher::new(patience);
            let services = Services { host: &host, threads, ..Services::none() };
            let params = Params { max_iter: 1_000_000, convergence_iter: 1_000_000, ..Params::default() };
            assert_eq!(cluster(&values, 3, params, &services).unwrap_err(), Error::Cancelled);
            assert_eq!(host.reports.lock().unwrap().len(), patience);
        }
    }

    #[test]
    fn too_little_memory_is_refused_with_a_remedy() {
        let services = Services { memory: 10_000, ..Services::none() };
        let refused = cluster(&[1.0; 400], 4, Params::default(), &services).unwrap_err().to_string();
        assert!(refused.ends_with("cluster fewer examples: memory grows with their number squared"), "{refused}");
    }

    #[test]
    fn works_across_the_boundary() {
        let component = Registration::clusterer::<Ap>().component().unwrap();
        let create = |params: &str| component.create(params, &Services::none());
        let ap = ForeignClusterer::try_from(create(r#"{"preference": "p10"}"#).unwrap()).unwrap();
        let values = examples::uniform(150, 3, 9);
        let task = Task::new(Embeddings::new(&values, 3));
        let direct = found(&values, 3, with_preference(Preference::Percentile("p10".to_owned())));
        assert_eq!(ap.cluster(&task, &Services::none()).unwrap(), direct);
        assert!((8 * 3000 * 3000..9 * 3000 * 3000).contains(&ap.memory(3000, 32, 1)));

        let refused = |params: &str| create(params).unwrap_err().to_string();
        assert_eq!(
            refused(r#"{"damping": 1.0}"#),
            "`damping` must be a number at least 0.5 and below 1.0, found 1.0"
        );
        assert_eq!(refused(r#"{"max_iter": 0}"#), "`max_iter` must be a whole number at least 1, found 0");
        assert_eq!(
            refused(r#"{"preference": {"k": 0}}"#),
            "`preference.k` must be a whole number at least 1, found 0"
        );
        assert!(refused(r#"{"preference": "low"}"#).starts_with("`preference` must be a finite number, "));
        assert!(refused(r#"{"preset": "mine"}"#).contains(r#"`preset` must be "paper" or "authors-code""#));
        let many = ForeignClusterer::try_from(create(r#"{"preference": {"k": 151}}"#).unwrap()).unwrap();
        assert_eq!(
            many.cluster(&task, &Services::none()).unwrap_err().to_string(),
            "`preference.k` = 151 is more than the 150 examples"
        );
    }
}
