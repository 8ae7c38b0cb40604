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
    Clusterer, Clustering, Component, Diagnostics, Embeddings, Error, Flags, Level, Result, Services, Shape, Task,
    register,
};
use compflow_kernels::points::Points;
use compflow_kernels::preference::{Preference, Rule};
use compflow_kernels::workers::Workers;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approach::{Approach, by_cost};
use crate::exchange::WORK;
use crate::memory::Size;
use crate::messages::Damped;
use crate::order::Sorted;
use crate::run::{Finish, Found, Setting};
use crate::solution::{Examples, Solution, rows_of};

/// Compositional affinity propagation: finds exemplars among the examples, and which examples belong to unions of
/// several of them.
///
/// An example belongs to the composition, of one exemplar or of up to `degree`, that is nearest to it in the pipeline's
/// space; the composer says where a composition lies. The exemplars are those that make the sum of all these
/// similarities (minus distances) highest, of which the preference is each exemplar's own: it is what a further
/// exemplar costs, while compositions are free. As it is paid once per exemplar while the others are summed up over all
/// examples, a number that is right for some examples is too high for more of them; `{ per_example = … }` is not, and
/// `{ median_per_example = … }` is right for other scales as well.
///
/// The objective is that of the clustering that is returned. The trace has it after every iteration of messages and then
/// after every change of exemplars, of the subset if there is one; it has converged if the last of these stopped because
/// nothing was better.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How gladly an example becomes an exemplar: `"auto"`, 0.02 times the median similarity for every example that passes
    /// messages, but no lower than what the examples of an exemplar are away from their sets on average, down to a tenth of
    /// it; `{ median_per_example = 0.02 }`, just that; a similarity; `{ per_example = -0.013 }`, multiplied with the number of
    /// these examples; `{ k = 5 }` for that many singletons; `"median"` or a percentile such as `"p10"` of the similarities of all
    /// examples to each other (those with themselves, 0, included), which gives far more singletons; or `"column"` for what
    /// the data's column `preference` says of each example.
    pub preference: Preference,
    /// How much of a message is kept in an iteration. With a number of singletons as `preference`, it is raised up to
    /// 0.95 where messages oscillate.
    #[schemars(extend("minimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub damping: f64,
    /// What of the messages is damped.
    pub damped: Damped,
    /// Iterations at most. With a number of singletons as `preference`, for each of up to 20 preferences tried.
    #[schemars(range(min = 1))]
    pub max_iter: usize,
    /// It has converged, and stops, after so many iterations in which no example chose another composition.
    #[schemars(range(min = 1))]
    pub convergence_iter: usize,
    /// Whether all `max_iter` iterations are done, converged or not.
    pub fixed_iterations: bool,
    /// What is done after the last message.
    pub finish: Finish,
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
            preference: Preference::Percentile("auto".to_owned()),
            damping: 0.65,
            damped: Damped::Responsibilities,
            max_iter: 200,
            convergence_iter: 15,
            fixed_iterations: false,
            finish: Finish::Exchange,
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
    #[schemars(extend("values" = {
        "damping": 0.65, "damped": "clipped", "finish": "choices", "extension": "nearest-inferred"
    }))]
    Paper,
    /// As in the authors' code.
    #[schemars(extend("values" = {
        "damping": 0.85, "damped": "clipped", "max_iter": 60, "fixed_iterations": true, "finish": "choices",
        "extension": "nearest-member"
    }))]
    AuthorsCode,
}

/// How examples outside of a subset are given a composition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Extension {
    /// The nearest of all compositions of exemplars.
    NearestExemplar,
    /// The nearest composition that an example of the subset has.
    NearestInferred,
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
            damped: params.damped,
            max_iter: params.max_iter,
            convergence_iter: params.convergence_iter,
            fixed_iterations: params.fixed_iterations,
            finish: params.finish,
            work: WORK,
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
        let passing = match self.approach(shape) {
            Approach::Exact => size(rows, rows),
            Approach::Candidates(m) => size(rows, m),
            Approach::Subset(m) => size(m, m).saturating_add(extension_memory(rows, dim)),
        };
        Ok(passing.saturating_add(Sorted::memory(rows, dim)))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let n = task.embeddings.len();
        if task.degree > n {
            services
                .log(Level::Info, format!("compositions have at most {n} members, as there are no more examples"));
        }
        let sorted = Sorted::new(task);
        let task = &sorted.task(task);
        let found = match self.approach(task.shape()) {
            Approach::Exact => self.setting.solve(task, n, services)?,
            Approach::Candidates(m) => {
                if self.candidates.is_none() {
                    let text = format!("cap takes {m} of the {n} examples as `candidates`, as there are many");
                    services.log(Level::Warn, text);
                }
                self.setting.solve(task, m, services)?
            }
            Approach::Subset(m) => self.extend(m, task, services)?,
        };
        Ok(self.clustering(found, &sorted.rows))
    }
}

impl Cap {
    fn approach(&self, shape: Shape) -> Approach {
        let Shape { rows: n, dim, degree } = shape;
        match (self.subset, self.candidates) {
            (Some(m), _) if m < n => Approach::Subset(m),
            (_, Some(m)) if m < n => Approach::Candidates(m),
            (None, None) => {
                let wanted = if let Rule::Clusters(k) = self.setting.rule { k } else { 0 };
                by_cost(n, dim, degree, wanted)
            }
            _ => Approach::Exact,
        }
    }

    /// Clusters `m` examples, and gives every other a composition of their exemplars.
    fn extend(&self, m: usize, task: &Task<'_>, services: &Services<'_>) -> Result<Found> {
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
            Extension::NearestInferred => {
                let mut used = inside.labels.clone();
                used.sort_unstable();
                used.dedup();
                let set = |at: usize| rows_of(&inside.sets[used[at] as usize], &exemplars);
                let mut labels: Vec<u32> =
                    examples.nearest(used.len(), set)?.iter().map(|&(_, at)| used[at as usize]).collect();
                // Whoever chose itself is nearest to itself, rounding aside.
                for ((&row, &at), own) in exemplars.iter().zip(&inside.exemplars).zip(0..) {
                    if inside.labels[at as usize] == own {
                        labels[row as usize] = own;
                    }
                }
                let objective = examples.objective(&exemplars, &inside.sets, &labels)?;
                Solution::new(exemplars, inside.sets, labels, objective)
            }
            Extension::NearestMember => {
                let members = examples.nearest(m, |at| vec![drawn[at]])?;
                let mut labels: Vec<u32> = members.iter().map(|&(_, at)| inside.labels[at as usize]).collect();
                // Even if it is equal to another of the subset.
                drawn.iter().zip(&inside.labels).for_each(|(&row, &label)| labels[row as usize] = label);
                let objective = examples.objective(&exemplars, &inside.sets, &labels)?;
                Solution::new(exemplars, inside.sets, labels, objective)
            }
        };
        Ok(found)
    }

    /// The clustering, with the preference if it was found; `rows` are those of the sorted examples.
    fn clustering(&self, found: Found, rows: &[u32]) -> Clustering {
        let preference = match self.setting.rule {
            Rule::Value(_) | Rule::Column => None,
            Rule::Auto
            | Rule::Percentile(_)
            | Rule::Clusters(_)
            | Rule::PerExample(_)
            | Rule::MedianPerExample(_) => found.preferences.first().copied().filter(|_| found.follows),
        };
        let mut clustering = clustering(found, rows);
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

/// Numbers exemplars and examples by their rows.
fn clustering(found: Found, rows: &[u32]) -> Clustering {
    let Solution { exemplars, sets, labels, objective, .. } = found.solution;
    let mut by_row: Vec<(u32, usize)> =
        exemplars.iter().enumerate().map(|(at, &sorted)| (rows[sorted as usize], at)).collect();
    by_row.sort_unstable();
    let mut numbers = vec![0; exemplars.len()];
    by_row.iter().zip(0..).for_each(|(&(_, at), number)| numbers[at] = number);
    let numbered = |label: u32| {
        let mut set: Vec<u32> = sets[label as usize].iter().map(|&at| numbers[at as usize]).collect();
        set.sort_unstable();
        set
    };
    let mut used: Vec<u32> = (0..exemplars.len() as u32).chain(labels.iter().copied()).collect();
    used.sort_unstable();
    used.dedup();
    let mut clusters: Vec<Vec<u32>> = used.into_iter().map(numbered).collect();
    clusters.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    let mut assigned = vec![0; labels.len()];
    rows.iter().zip(labels).for_each(|(&row, label)| assigned[row as usize] = label);
    Clustering {
        assignments: assigned.into_iter().map(numbered).collect(),
        exemplars: clusters.iter().map(|set| set.iter().map(|&at| by_row[at as usize].0).collect()).collect(),
        clusters: clusters.into_iter().collect(),
        diagnostics: Diagnostics {
            iterations: found.trace.len() as u64,
            converged: found.converged,
            objective,
            trace: found.trace,
        },
        ..Clustering::default()
    }
}
