//! `gcr`: the component.

use compflow_api::{
    Clusterer, Clustering, Column, Component, Diagnostics, Distance, Embeddings, Error, Flags, ForeignClusterer,
    Level, Normalize, Result, Services, Sets, Shape, Singletons, Space, Table, Task, register,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::Base;
use crate::compositions::{Compositions, Near};
use crate::greedy::{self, OnConflict};
use crate::preliminary::Preliminary;
use crate::threshold::{Auto, Limit, Threshold};
use crate::{exhaustive, maps, threshold};

/// The space of the authors' code.
const AUTHORS_SPACE: Space = Space { normalize: Normalize::L2, distance: Distance::SqEuclidean };
/// Greedy compositional reassignment: another clusterer finds clusters, and those that lie where the composition of
/// others is predicted are called that composition.
///
/// Every set that the base assigns examples to is a preliminary cluster, so the base may itself return sets of several.
/// The composer is given the means of their examples, not normalised; distances are taken in the pipeline's space. Each
/// cluster's nearest composition of two to `degree` others is found, and in the order of these distances every cluster
/// nearer than `threshold` becomes its nearest composition, as long as no cluster is both a composition and a member of
/// one.
///
/// The column `base` keeps what the base found. If these are single clusters, they have the numbers that they have in
/// the result, and those that became compositions the numbers after them; larger sets are kept as they are. Examples
/// that the base assigns to none stay there. The base's own columns, numbers and found parameters are kept beside these,
/// and what it needs of the data is needed. Centroids are the means and their compositions. The objective, of which the trace has the value before and after each
/// reassignment, is the sum over examples of the distance from their cluster's mean to the composition it became, or of
/// the threshold if it became none. Iterations and convergence are those of the base.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// The clusterer that finds the preliminary clusters: any but this one.
    #[schemars(example = serde_json::json!({ "use": "ac", "params": { "k": 15 } }))]
    pub base: Base,
    /// A cluster nearer than this to a composition of others is called that composition: a distance in the pipeline's
    /// space, or `"auto"`, which finds it among the distances of the clusters.
    pub threshold: Threshold,
    /// Most members of a composition: the pipeline's degree unless given, and at most that. Less than there are preliminary clusters.
    #[schemars(range(min = 1))]
    pub degree: Option<usize>,
    /// What happens when the next cluster would be both a composition and a member of one.
    pub on_conflict: OnConflict,
    /// How the clusters to be reassigned are chosen.
    pub method: Method,
    /// The most reassignments that `method = "exhaustive"` chooses from.
    #[schemars(range(min = 1))]
    pub max_maps: u64,
    /// Values for what is not given.
    pub preset: Option<Preset>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            base: Base::default(),
            threshold: Threshold::Auto(Auto::Auto),
            degree: None,
            on_conflict: OnConflict::default(),
            method: Method::default(),
            max_maps: 1_000_000_000,
            preset: None,
        }
    }
}

/// How the clusters to be reassigned are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// One after the other, the one nearest to a composition first.
    #[default]
    Greedy,
    /// The reassignment with the lowest objective of all in which no two clusters become the same composition; for few
    /// clusters only.
    Exhaustive,
}

/// Parameters of published experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// What the paper says, with the values that were found for degree 2.
    #[schemars(extend("values" = { "base": { "use": "ac", "params": { "k": 17 } }, "threshold": 0.4 }))]
    Paper,
    /// As the authors' code does: base and distances in the space of squared distances between normalised vectors
    /// whatever the pipeline's, and a distance equal to the threshold is near enough.
    #[schemars(extend("values" = { "base": { "use": "ac", "params": { "k": 17 } }, "threshold": 0.4 }))]
    AuthorsCode,
}

/// The clusterer `gcr`.
#[derive(Debug)]
pub struct Gcr {
    base: ForeignClusterer,
    /// What the base needs and has.
    base_flags: Flags,
    /// The further columns that the base wants.
    base_columns: Vec<String>,
    threshold: Threshold,
    /// Whether a distance equal to the threshold is near enough.
    inclusive: bool,
    /// Instead of the pipeline's.
    space: Option<Space>,
    /// Instead of the pipeline's.
    degree: Option<usize>,
    on_conflict: OnConflict,
    method: Method,
    max_maps: u64,
}
register!(clusterer Gcr);

impl Component for Gcr {
    const NAME: &'static str = "gcr";
    const SUMMARY: &'static str = "greedy compositional reassignment of another clusterer's clusters";
    const FLAGS: Flags = Flags::NEEDS_COMPOSER;
    type Params = Params;

    fn new(params: Params, services: &Services<'_>) -> Result<Self> {
        let threshold = params.threshold;
        if let Threshold::Value(value) = threshold
            && !(value.is_finite() && value >= 0.0)
        {
            let text = format!("must be a finite number at least 0 or \"auto\", found {value}");
            return Err(Error::parameter("threshold", text));
        }
        let authors = params.preset == Some(Preset::AuthorsCode);
        let base = params.base.create(services)?;
        Ok(Self {
            base_flags: base.flags()?,
            base_columns: base.columns()?,
            base,
            threshold,
            inclusive: authors,
            space: authors.then_some(AUTHORS_SPACE),
            degree: params.degree,
            on_conflict: params.on_conflict,
            method: params.method,
            max_maps: params.max_maps,
        })
    }

    fn flags(&self) -> Flags {
        Self::FLAGS.and(self.base_flags)
    }

    fn columns(&self) -> Vec<String> {
        self.base_columns.clone()
    }
}

impl Clusterer for Gcr {
    fn memory(&self, shape: Shape, services: &Services<'_>) -> Result<u64> {
        let Shape { rows, degree, .. } = shape;
        // How many clusters the base will find is not known: compositions are counted when it is. Of an example: what
        // the base returns, its label, and its two sets.
        let own = (rows as u64).saturating_mul(12 + 8 + 20 + 4 * self.degree.unwrap_or(degree) as u64);
        Ok(self.base.memory(shape, services)?.saturating_add(own))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let degree = self.degree.unwrap_or(task.degree);
        if degree > task.degree {
            let text = format!("= {degree} is more than the pipeline's, {}", task.degree);
            return Err(Error::parameter("degree", text));
        }
        if degree > 1 {
            task.composer()?;
        }
        let dim = task.embeddings.dim();
        let space = self.space.unwrap_or(task.space);
        let base = self.base.component().name;
        let found = self
            .base
            .cluster(&Task { space, ..*task }, services)
            .map_err(|error| error.context(format!("`gcr` got no clusters from its base `{base}`")))?;
        let clusters = Preliminary::new(task.embeddings, &found.assignments);
        let k = clusters.k();
        if k < 3 {
            return Err(Error::data(format!(
                "`gcr` needs at least 3 clusters, one to be composed of two others; its base `{base}` found {k}"
            )));
        }
        if degree > k - 1 {
            let most = k - 1;
            let text = format!("must be at most {most}, as the base `{base}` found {k} clusters, found {degree}");
            return Err(Error::parameter("degree", text));
        }

        let means = Embeddings::new(&clusters.means, dim);
        let compositions = Compositions::new(Task { space, degree, ..*task }, means, services)?;
        let reassigned = self.reassign(&compositions, &clusters, services)?;
        let composed = reassigned.composed();
        let text =
            format!("{composed} of {k} clusters are compositions, at a threshold of {}", reassigned.threshold);
        services.log(Level::Info, text);
        let mut result = result(task, &clusters, &compositions.sets, &reassigned, found, services)?;
        if let Threshold::Auto(Auto::Auto) = self.threshold {
            result.resolve("threshold", reassigned.threshold);
        }
        Ok(result)
    }
}

/// What was decided about the preliminary clusters.
struct Reassigned {
    /// For every cluster the composition that it becomes.
    chosen: Vec<Option<Near>>,
    threshold: f64,
    /// How far the nearest composition is that was too far.
    beyond: Option<f64>,
}

impl Reassigned {
    /// How many clusters became compositions.
    fn composed(&self) -> usize {
        self.chosen.iter().flatten().count()
    }

    /// Numbers about what was decided, and how far those were from the threshold that came closest to it.
    fn scalars(&self) -> Vec<(String, f64)> {
        let farthest = self.chosen.iter().flatten().map(|near| near.distance).max_by(f64::total_cmp);
        let numbers = [
            ("preliminary_clusters", Some(self.chosen.len() as f64)),
            ("compositions", Some(self.composed() as f64)),
            ("farthest_composition", farthest),
            ("nearest_beyond_threshold", self.beyond),
        ];
        numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// The objective before and after each reassignment, the nearest first.
    fn trace(&self, sizes: &[usize]) -> Vec<f64> {
        let mut chosen: Vec<(f64, f64)> = self
            .chosen
            .iter()
            .zip(sizes)
            .filter_map(|(near, &size)| Some((near.as_ref()?.distance, size as f64)))
            .collect();
        chosen.sort_by(|a, b| a.0.total_cmp(&b.0));
        let alone = sizes.iter().sum::<usize>() as f64 * self.threshold;
        let gains = chosen.iter().scan(alone, |objective, (distance, size)| {
            *objective -= size * (self.threshold - distance);
            Some(*objective)
        });
        std::iter::once(alone).chain(gains).collect()
    }
}

impl Gcr {
    fn reassign(
        &self,
        compositions: &Compositions<'_>,
        clusters: &Preliminary,
        services: &Services<'_>,
    ) -> Result<Reassigned> {
        let (k, members) = (clusters.k(), |set: usize| &compositions.sets[set]);
        if self.method == Method::Exhaustive {
            self.require_few_maps(k, compositions.degree())?;
        }
        let nearest = compositions.nearest(services)?;
        let threshold = match self.threshold {
            Threshold::Value(value) => value,
            Threshold::Auto(Auto::Auto) => {
                let distances: Vec<f64> = nearest.iter().flatten().map(|near| near.distance).collect();
                threshold::auto(&distances, compositions.distance())
            }
        };
        let limit = Limit { threshold, inclusive: self.inclusive };
        let chosen = match self.method {
            Method::Greedy => greedy::reassign(&nearest, members, limit, self.on_conflict),
            Method::Exhaustive => {
                let candidates = compositions.within(limit, services)?;
                let gain =
                    |cluster: usize, near: &Near| clusters.sizes[cluster] as f64 * (threshold - near.distance);
                exhaustive::reassign(&candidates, members, gain, services)?
            }
        };
        let distances = nearest.iter().flatten().map(|near| near.distance);
        let beyond = distances.filter(|&distance| !limit.admits(distance)).min_by(f64::total_cmp);
        Ok(Reassigned { chosen, threshold, beyond })
    }

    fn require_few_maps(&self, k: usize, degree: usize) -> Result<()> {
        let maps = maps::maps(k, degree);
        if maps.is_some_and(|maps| maps <= u128::from(self.max_maps)) {
            return Ok(());
        }
        let maps = maps.map_or_else(|| format!("more than {}", u128::MAX), |maps| maps.to_string());
        let text = format!(
            "= \"exhaustive\" would choose from {maps} reassignments of {k} clusters with `degree` = {degree}, over the \
             {} of `max_maps`; set it to \"greedy\", or let the base find fewer clusters",
            self.max_maps
        );
        Err(Error::parameter("method", text))
    }
}

/// Numbers the clusters that are left, and then the composed ones, in the order of their first examples, which is also
/// the host's: so the numbers in the column `base` are those of the result.
fn result(
    task: &Task<'_>,
    clusters: &Preliminary,
    sets: &Sets,
    reassigned: &Reassigned,
    base: Clustering,
    services: &Services<'_>,
) -> Result<Clustering> {
    let (k, dim, chosen) = (clusters.k(), task.embeddings.dim(), &reassigned.chosen);
    let trace = reassigned.trace(&clusters.sizes);
    let (alone, composed): (Vec<usize>, Vec<usize>) = (0..k).partition(|&cluster| chosen[cluster].is_none());
    let mut numbers = vec![0; k];
    alone.iter().chain(&composed).zip(0..).for_each(|(&cluster, number)| numbers[cluster] = number);
    let set = |cluster: usize| -> Vec<u32> {
        match chosen[cluster] {
            None => vec![numbers[cluster]],
            Some(near) => sets[near.set].iter().map(|&member| numbers[member as usize]).collect(),
        }
    };
    let becomes: Vec<Vec<u32>> = (0..k).map(set).collect();
    let mut occurring = becomes.clone();
    occurring.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    occurring.dedup();
    let occurring = Sets::from_iter(occurring);
    // Members keep their order among themselves, so sets are folded as they were.
    let means: Vec<f32> =
        alone.iter().flat_map(|&cluster| &clusters.means[cluster * dim..][..dim]).copied().collect();
    let centroids = task.compose_sets(Embeddings::new(&means, dim), &occurring, services)?;
    let single = base.assignments.iter().all(|set| set.len() <= 1);
    let column: Sets = match single {
        true => clusters.labels.iter().map(|label| Vec::from_iter(label.map(|at| numbers[at as usize]))).collect(),
        false => base.assignments,
    };
    let none = Vec::new();
    let mut scalars = reassigned.scalars();
    scalars.extend(base.scalars.into_iter().map(|(name, value)| (format!("base_{name}"), value)));
    let resolved = base.resolved.into_iter().map(|(path, value)| (format!("base.params.{path}"), value));
    Ok(Clustering {
        assignments: clusters
            .labels
            .iter()
            .map(|label| label.map_or(&none, |label| &becomes[label as usize]))
            .collect(),
        clusters: occurring,
        centroids,
        extra: with_columns_of_the_base(("base".to_owned(), Column::Sets(column)), base.extra),
        singletons: Singletons { numbers: (0..alone.len() as u32).collect(), vectors: means },
        scalars,
        resolved: resolved.collect(),
        diagnostics: Diagnostics {
            objective: trace.last().copied().unwrap_or(f64::NAN),
            trace,
            iterations: base.diagnostics.iterations,
            converged: base.diagnostics.converged,
        },
        ..Clustering::default()
    })
}

/// Our column and those of the base, which give way if they have its name.
fn with_columns_of_the_base(own: (String, Column), of_base: Table) -> Table {
    let mut columns = vec![own];
    let mut taken: Vec<String> = of_base.iter().map(|(name, _)| name.clone()).collect();
    for (mut name, column) in of_base {
        if name == columns[0].0 {
            while taken.contains(&name) {
                name.insert_str(0, "base_");
            }
            taken.push(name.clone());
        }
        columns.push((name, column));
    }
    columns
}
