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
use crate::null::Null;
use crate::preliminary::Preliminary;
use crate::threshold::{Auto, Limit, Threshold};
use crate::{exhaustive, maps, null, search, threshold};

/// The space of the authors' code.
const AUTHORS_SPACE: Space = Space { normalize: Normalize::L2, distance: Distance::SqEuclidean };

/// Greedy compositional reassignment: another clusterer finds clusters, and those that lie where the composition of
/// others is predicted are called that composition.
///
/// Every set that the base assigns examples to is a preliminary cluster, so the base may itself return sets of several.
/// The composer is given the means of their examples, not normalised; distances are taken in the pipeline's space. A
/// cluster nearer than `threshold` to a composition of two to `degree` others may become that composition, and one much
/// nearer than that to another cluster may become part of it; no cluster is both a composition and a member of one.
/// `method` says which of these reassignments are made: by default those that together cost least.
///
/// The column `base` keeps what the base found. If these are single clusters, they have the numbers that they have in
/// the result, and those that were reassigned the numbers after them; larger sets are kept as they are. Examples that the
/// base assigns to none stay there. The base's own columns, numbers and found parameters are kept beside these, and what
/// it needs of the data is needed. Centroids are the means and their compositions. The objective, of which the trace has
/// the value before and after each reassignment, is the sum over examples of the distance from their cluster's mean to
/// what it became, or of the threshold if it stayed alone. Iterations and convergence are those of the base. If the base
/// finds fewer than three clusters, its clustering is the result.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// The clusterer that finds the preliminary clusters: any but this one.
    #[schemars(example = serde_json::json!({ "use": "ac", "params": { "k": 15 } }))]
    pub base: Base,
    /// A cluster nearer than this to a composition of others may be that composition: a distance in the pipeline's
    /// space, or `"auto"`, which finds it among the distances of the clusters, and finds no unions if clusters without any
    /// would come as near.
    pub threshold: Threshold,
    /// Most members of a composition: the pipeline's degree unless given, and at most that.
    #[schemars(range(min = 1))]
    pub degree: Option<usize>,
    /// How the clusters to be reassigned are chosen: `"search"` unless given, and `"greedy"` if `on_conflict` is given.
    pub method: Option<Method>,
    /// Two clusters nearer to each other than this part of the threshold may be one that the base has split; 0 leaves all
    /// apart. For `method = "search"`; a part of Euclidean distances, whatever the pipeline's distance.
    #[schemars(range(min = 0, max = 1))]
    pub merge: f64,
    /// What happens when the next cluster would be both a composition and a member of one, with `method = "greedy"`:
    /// `"skip"` unless given.
    pub on_conflict: Option<OnConflict>,
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
            method: None,
            merge: 0.7,
            on_conflict: None,
            max_maps: 1_000_000_000,
            preset: None,
        }
    }
}

/// How the clusters to be reassigned are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Those that together cost least, by a search over which clusters are singletons.
    #[default]
    Search,
    /// The paper's listing: one after the other, the one nearest to a composition first.
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
    #[schemars(extend("values" = {
        "base": { "use": "ac", "params": { "k": 17 } }, "threshold": 0.4, "on_conflict": "stop"
    }))]
    Paper,
    /// As the authors' code does: base and distances in the space of squared distances between normalised vectors
    /// whatever the pipeline's, and a distance equal to the threshold is near enough.
    #[schemars(extend("values" = {
        "base": { "use": "ac", "params": { "k": 17 } }, "threshold": 0.4, "on_conflict": "stop"
    }))]
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
    method: Method,
    merge: f64,
    on_conflict: OnConflict,
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
        let merge = params.merge;
        if !(0.0..=1.0).contains(&merge) {
            return Err(Error::parameter("merge", format!("must be a number from 0 to 1, found {merge}")));
        }
        let unless_given = if params.on_conflict.is_some() { Method::Greedy } else { Method::default() };
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
            method: params.method.unwrap_or(unless_given),
            merge,
            on_conflict: params.on_conflict.unwrap_or_default(),
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
        let possible = self.possible(degree, k, services);
        let means = Embeddings::new(&clusters.means, dim);
        let compositions = Compositions::new(Task { space, degree: possible, ..*task }, means, services)?;
        let reassigned = self.reassign(&compositions, &clusters, services)?;
        services.log(Level::Info, reassigned.summary());
        let mut result = result(task, &clusters, &compositions.sets, &reassigned, found, services)?;
        if let Threshold::Auto(Auto::Auto) = self.threshold {
            result.resolve("threshold", reassigned.threshold);
        }
        Ok(result)
    }
}

/// What was decided about the preliminary clusters.
struct Reassigned {
    /// For every cluster the composition that it becomes: one of one cluster if it is part of that.
    chosen: Vec<Option<Near>>,
    threshold: f64,
    /// How far the nearest composition is that was too far.
    beyond: Option<f64>,
    /// If it was looked at: how the clusters compare with clusters without unions.
    null: Option<Null>,
}

impl Reassigned {
    /// How many clusters became part of another one, and the compositions that others became.
    fn merged_and_composed(&self) -> (usize, impl Iterator<Item = &Near>) {
        let k = self.chosen.len();
        let merged = self.chosen.iter().flatten().filter(|near| near.set < k).count();
        (merged, self.chosen.iter().flatten().filter(move |near| near.set >= k))
    }

    /// What was decided, in words.
    fn summary(&self) -> String {
        let (merged, composed) = self.merged_and_composed();
        let (k, composed) = (self.chosen.len(), composed.count());
        match self.null {
            Some(null) if !null.rejected() => format!(
                "no cluster is taken for a composition: of {} times {k} clusters without unions, with the same mean and \
                 covariance, {} came as near to compositions; a number for `threshold` would decide otherwise",
                null.draws, null.as_well
            ),
            _ => {
                let parts = if merged > 0 { format!(", {merged} are parts of others") } else { String::new() };
                format!("{composed} of {k} clusters are compositions{parts}, at a threshold of {}", self.threshold)
            }
        }
    }

    /// Numbers about what was decided, and how far those were from the threshold that came closest to it.
    fn scalars(&self) -> Vec<(String, f64)> {
        let (merged, composed) = self.merged_and_composed();
        let distances: Vec<f64> = composed.map(|near| near.distance).collect();
        let numbers = [
            ("preliminary_clusters", Some(self.chosen.len() as f64)),
            ("compositions", Some(distances.len() as f64)),
            ("merged_clusters", Some(merged as f64)),
            ("farthest_composition", distances.into_iter().max_by(f64::total_cmp)),
            ("nearest_beyond_threshold", self.beyond),
            ("chance_without_unions", self.null.map(|null| null.chance())),
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
        let (threshold, null) = self.threshold(compositions, &nearest, services)?;
        let limit = Limit { threshold, inclusive: self.inclusive };
        let chosen = match self.method {
            Method::Search => {
                let squared = |distance: f64| match compositions.distance() {
                    Distance::SqEuclidean => distance,
                    Distance::Euclidean => distance * distance,
                };
                let candidates = self.candidates(compositions, limit, squared, services)?;
                search::reassign(&candidates, members, squared(threshold), services)?
            }
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
        Ok(Reassigned { chosen, threshold, beyond, null })
    }

    /// The threshold that is given, or the one that is found; 0 if clusters without unions would come as near.
    fn threshold(
        &self,
        compositions: &Compositions<'_>,
        nearest: &[Option<Near>],
        services: &Services<'_>,
    ) -> Result<(f64, Option<Null>)> {
        if let Threshold::Value(value) = self.threshold {
            return Ok((value, None));
        }
        let distances: Vec<f64> = nearest.iter().flatten().map(|near| near.distance).collect();
        let parted = threshold::auto(&distances, compositions.distance());
        if parted == 0.0 {
            return Ok((0.0, None));
        }
        let null = null::compare(compositions, nearest, parted, services)?;
        Ok((if null.rejected() { parted } else { 0.0 }, Some(null)))
    }

    /// For every cluster what it may become and at what cost, the cheapest first.
    fn candidates(
        &self,
        compositions: &Compositions<'_>,
        limit: Limit,
        squared: impl Fn(f64) -> f64,
        services: &Services<'_>,
    ) -> Result<Vec<Vec<(f64, Near)>>> {
        let part = match compositions.distance() {
            Distance::SqEuclidean => self.merge * self.merge,
            Distance::Euclidean => self.merge,
        };
        let merging = Limit { threshold: part * limit.threshold, inclusive: false };
        // Where nothing can be composed, nothing can be told of what is split either.
        let alike = match compositions.degree() {
            1 => vec![Vec::new(); compositions.means().len()],
            _ => compositions.alike(merging, services)?,
        };
        let within = compositions.within(limit, services)?;
        let both = within.into_iter().zip(alike).map(|(within, alike)| {
            let composed = within.into_iter().map(|near| (squared(near.distance), near));
            let merged = alike.into_iter().map(|near| (squared(near.distance / part), near));
            let mut candidates: Vec<(f64, Near)> = composed.chain(merged).collect();
            candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
            candidates
        });
        Ok(both.collect())
    }

    /// Most members that a composition can have if there are k clusters.
    fn possible(&self, degree: usize, k: usize, services: &Services<'_>) -> usize {
        let (base, most) = (self.base.component().name, k.saturating_sub(1));
        if degree <= 1 {
            return degree;
        }
        if k < 3 {
            let text = format!(
                "the base `{base}` found {k} clusters, and a composition takes one to be composed of two others: its \
                 clustering is the result; let it find more"
            );
            services.log(Level::Warn, text);
            return 1;
        }
        if degree > most {
            let text = format!(
                "the base `{base}` found {k} clusters, so compositions have at most {most} members, not {degree}"
            );
            services.log(Level::Warn, text);
        }
        degree.min(most)
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

/// Numbers the clusters that are left, and then the others, in the order of their first examples, which is also the
/// host's: so the numbers in the column `base` are those of the result.
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
    let (mut alone, others): (Vec<usize>, Vec<usize>) = (0..k).partition(|&cluster| chosen[cluster].is_none());
    // The preliminary clusters that each of these consists of, itself the first.
    let parts = |cluster: usize| {
        let merged =
            others.iter().copied().filter(move |&other| chosen[other].is_some_and(|near| near.set == cluster));
        std::iter::once(cluster).chain(merged)
    };
    alone.sort_by_cached_key(|&cluster| parts(cluster).min());
    let mut numbers = vec![0; k];
    alone.iter().chain(&others).zip(0..).for_each(|(&cluster, number)| numbers[cluster] = number);
    let set = |cluster: usize| -> Vec<u32> {
        match chosen[cluster] {
            None => vec![numbers[cluster]],
            Some(near) => {
                let mut members: Vec<u32> =
                    sets[near.set].iter().map(|&member| numbers[member as usize]).collect();
                members.sort_unstable();
                members
            }
        }
    };
    let becomes: Vec<Vec<u32>> = (0..k).map(set).collect();
    let mut occurring = becomes.clone();
    occurring.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    occurring.dedup();
    let occurring = Sets::from_iter(occurring);
    let means: Vec<f32> = alone.iter().flat_map(|&cluster| clusters.mean(parts(cluster), dim)).collect();
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
