//! `cap`: compositional affinity propagation, which chooses examples as exemplars and lets others belong to unions.
//!
//! Maximises Σᵢ S(i, cᵢ) over choices of a composition cᵢ, a set of at most d examples, for every example, where
//! S(i, c) is minus the distance of i from the composed vector g(c), S(k, {k}) the preference, and every member of a
//! composition that is used chooses itself. Messages decide who is an exemplar (`messages` has the equations), and
//! then every example gets the nearest composition of exemplars (`solution`). Cost per iteration: one look at all
//! n·|C| similarities.

#[cfg(test)]
mod tests;

use compflow_api::{
    Clusterer, Clustering, Component, Diagnostics, Embeddings, Error, Flags, Level, Result, Services, Sets, Shape,
    Task, register,
};
use compflow_kernels::points::Points;
use compflow_kernels::preference::{Preference, Rule};
use compflow_kernels::workers::Workers;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compositions::count_sets;
use crate::memory::Size;
use crate::run::{Found, Setting};
use crate::solution::{Examples, Solution};

/// So many similarities are compared if nothing is said: 1,587 examples with pairs, 330 with triples.
const EXACT: u64 = 2_000_000_000;
/// How many candidates there are if there are more similarities than that: it measures better than a subset, see
/// docs/cap.md.
const CANDIDATES: usize = 150;

/// Compositional affinity propagation: finds exemplars among the examples, and which examples belong to unions of
/// several of them.
///
/// An example belongs to the composition, of one exemplar or of up to `degree`, that is nearest to it in the pipeline's
/// space; the composer says where a composition lies. The exemplars are those that make the sum of all these
/// similarities (minus distances) highest, of which the preference is each exemplar's own: it is what a further
/// exemplar costs, while compositions are free. As it is paid once per exemplar while the others are summed up over all
/// examples, a number that is right for some examples is too high for more of them; `{ per_example = … }` is not.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How gladly an example becomes an exemplar: a similarity, `"median"` or a percentile such as `"p10"` of the
    /// similarities of all examples to each other (those with themselves, 0, included), `{ k = 5 }` to search for what
    /// gives that many singletons, `{ per_example = -0.013 }`, which is multiplied with the number of examples that pass
    /// messages, or `"column"` for what the data's column `preference` says of each example.
    pub preference: Preference,
    /// How much of a message is kept in an iteration. With a number of singletons as `preference`, it is raised up to
    /// 0.95 where messages oscillate.
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub damping: f64,
    /// Iterations at most. With a number of singletons as `preference`, for each of up to 20 preferences tried.
    #[schemars(range(min = 1))]
    pub max_iter: usize,
    /// It has converged, and stops, after so many iterations in which no example chose another composition.
    #[schemars(range(min = 1))]
    pub convergence_iter: usize,
    /// Whether all `max_iter` iterations are done, converged or not.
    pub fixed_iterations: bool,
    /// Whether exemplars are taken away, added, moved and exchanged after the last message, for as long as that raises the
    /// objective; otherwise each only moves once within its cluster. Never with degree 1.
    pub exchange: bool,
    /// Clusters so many examples, drawn at random, and then gives every example a composition of their exemplars.
    #[schemars(range(min = 1))]
    pub subset: Option<usize>,
    /// How the examples outside of `subset` are given a composition.
    pub extension: Extension,
    /// Lets all examples pass messages, but only to so many of them: any one, and then always the one that is farthest
    /// from those before. There are no more exemplars than that; at the end they move to others that serve better.
    #[schemars(range(min = 1))]
    pub candidates: Option<usize>,
    /// Values for what is not given.
    pub preset: Option<Preset>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            preference: Preference::default(),
            damping: 0.65,
            max_iter: 200,
            convergence_iter: 15,
            fixed_iterations: false,
            exchange: true,
            subset: None,
            extension: Extension::NearestExemplar,
            candidates: None,
            preset: None,
        }
    }
}

/// Values of the paper, and of the code behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// As in the paper.
    #[schemars(extend("values" = { "damping": 0.65, "extension": "nearest-exemplar", "exchange": false }))]
    Paper,
    /// As in the authors' code.
    #[schemars(extend("values" = {
        "damping": 0.85, "max_iter": 60, "fixed_iterations": true, "extension": "nearest-member", "exchange": false
    }))]
    AuthorsCode,
}

/// How examples outside of a subset are given a composition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extension {
    /// The nearest composition of exemplars.
    NearestExemplar,
    /// The composition of the nearest example of the subset.
    NearestMember,
}

/// The clusterer `cap`.
#[derive(Debug)]
pub struct Cap {
    setting: Setting,
    extension: Extension,
    subset: Option<usize>,
    candidates: Option<usize>,
    /// Of the host that made it.
    budget: u64,
}
register!(clusterer Cap);

/// Who passes messages, and who may become an exemplar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Approach {
    Exact,
    Subset(usize),
    Candidates(usize),
}

impl Component for Cap {
    const NAME: &'static str = "cap";
    const SUMMARY: &'static str = "compositional affinity propagation: exemplars, and unions of exemplars";
    const FLAGS: Flags = Flags::NEEDS_COMPOSER;
    type Params = Params;

    fn new(params: Params, services: &Services<'_>) -> Result<Self> {
        if params.subset.is_some() && params.candidates.is_some() {
            return Err(Error::parameter("subset", "and `candidates` exclude each other, found both"));
        }
        let setting = Setting {
            rule: params.preference.rule()?,
            damping: params.damping,
            max_iter: params.max_iter,
            convergence_iter: params.convergence_iter,
            fixed_iterations: params.fixed_iterations,
            exchange: params.exchange,
        };
        let Params { extension, subset, candidates, .. } = params;
        Ok(Self { setting, extension, subset, candidates, budget: services.memory })
    }
}

impl Clusterer for Cap {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, degree } = shape;
        let size = |rows, candidates| {
            let size = Size { rows, candidates, dim, degree };
            size.memory(size.kept(self.budget))
        };
        Ok(match self.approach(rows, degree) {
            Approach::Exact => size(rows, rows),
            Approach::Candidates(m) => size(rows, m),
            Approach::Subset(m) => size(m, m).saturating_add(extension_memory(rows, dim)),
        })
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let n = task.embeddings.len();
        if task.degree > n {
            services
                .log(Level::Info, format!("compositions have at most {n} members, as there are no more examples"));
        }
        match self.approach(n, task.degree) {
            Approach::Exact => Ok(self.clustering(self.setting.solve(task, n, services)?)),
            Approach::Candidates(m) => {
                if self.candidates.is_none() {
                    let text = format!("cap takes {m} of the {n} examples as `candidates`, as there are many");
                    services.log(Level::Warn, text);
                }
                Ok(self.clustering(self.setting.solve(task, m, services)?))
            }
            Approach::Subset(m) => self.extend(m, task, services),
        }
    }
}

impl Cap {
    fn approach(&self, n: usize, degree: usize) -> Approach {
        match (self.subset, self.candidates) {
            (Some(m), _) if m < n => Approach::Subset(m),
            (_, Some(m)) if m < n => Approach::Candidates(m),
            (None, None) if count_sets(n, degree).saturating_mul(n as u64) > EXACT => {
                let enough = match self.setting.rule {
                    Rule::Clusters(k) => k.saturating_mul(2).max(CANDIDATES),
                    _ => CANDIDATES,
                };
                Approach::Candidates(enough.min(n))
            }
            _ => Approach::Exact,
        }
    }

    /// Clusters `m` examples, and gives every other a composition of their exemplars.
    fn extend(&self, m: usize, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        let mut rng = ChaCha8Rng::seed_from_u64(services.seed);
        rng.set_stream(2);
        let mut drawn: Vec<u32> = rand::seq::index::sample(&mut rng, n, m).iter().map(|row| row as u32).collect();
        drawn.sort_unstable();
        let values: Vec<f32> = drawn.iter().flat_map(|&row| task.embeddings.row(row as usize)).copied().collect();
        let preferences: Option<Vec<f32>> =
            task.preferences.map(|given| drawn.iter().map(|&row| given[row as usize]).collect());
        let embeddings = Embeddings::new(&values, dim);
        let of_subset = Task { embeddings, truth: None, preferences: preferences.as_deref(), ..*task };
        let mut found = self.setting.solve(&of_subset, m, services)?;

        services.require_memory(extension_memory(n, dim), "cluster fewer examples")?;
        let workers = Workers::new(services.threads)?;
        let points = Points::new(task.points().into_owned(), dim, n, &workers, services)?;
        let mut preferences = vec![0.0; n];
        for (&row, preference) in drawn.iter().zip(&found.preferences) {
            preferences[row as usize] = *preference;
        }
        let examples = Examples::new(task, &points, &preferences, &workers, services);
        let inside = found.solution;
        let exemplars: Vec<u32> = inside.exemplars.iter().map(|&at| drawn[at as usize]).collect();
        found.solution = match self.extension {
            Extension::NearestExemplar => examples.assign(exemplars)?,
            Extension::NearestMember => {
                let members = examples.nearest(m, |at| vec![drawn[at]])?;
                let mut labels: Vec<u32> = members.iter().map(|&(_, at)| inside.labels[at as usize]).collect();
                // Even if it is equal to another of the subset.
                drawn.iter().zip(&inside.labels).for_each(|(&row, &label)| labels[row as usize] = label);
                let objective = examples.objective(&exemplars, &inside.sets, &labels)?;
                Solution::new(exemplars, inside.sets, labels, objective)
            }
        };
        Ok(self.clustering(found))
    }

    /// The clustering, with the preference if it was found.
    fn clustering(&self, found: Found) -> Clustering {
        let preference = match self.setting.rule {
            Rule::Value(_) | Rule::Column => None,
            Rule::Percentile(_) | Rule::Clusters(_) | Rule::PerExample(_) => found.preferences.first().copied(),
        };
        let mut clustering = clustering(found);
        if let Some(preference) = preference {
            clustering.resolve("preference", preference);
        }
        clustering
    }
}

/// How many bytes it takes to give `n` examples the compositions of a subset.
fn extension_memory(n: usize, dim: usize) -> u64 {
    (n as u64).saturating_mul(8 * dim as u64 + 24)
}

fn clustering(found: Found) -> Clustering {
    let Solution { exemplars, sets, labels, objective, .. } = found.solution;
    let mut used: Vec<u32> = (0..exemplars.len() as u32).chain(labels.iter().copied()).collect();
    used.sort_unstable();
    used.dedup();
    let clusters: Sets = used.iter().map(|&set| &sets[set as usize]).collect();
    let rows = |set: &[u32]| set.iter().map(|&at| exemplars[at as usize]).collect();
    Clustering {
        assignments: labels.iter().map(|&set| &sets[set as usize]).collect(),
        exemplars: clusters.iter().map(rows).collect(),
        clusters,
        diagnostics: Diagnostics {
            iterations: found.trace.len() as u64,
            converged: found.converged,
            objective,
            trace: found.trace,
        },
        ..Clustering::default()
    }
}
