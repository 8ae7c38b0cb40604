//! `gcr`: the component.

use compflow_api::{
    Clusterer, Clustering, Component, Distance, Embeddings, Error, Flags, ForeignClusterer, Level, Normalize,
    Result, Services, Shape, Space, Task, plural, register,
};
use compflow_kernels::weights;

use crate::compositions::{Compositions, Near};
use crate::greedy::{self, OnConflict};
use crate::null::Null;
use crate::params::{Method, Params, Preset};
use crate::preliminary::Preliminary;
use crate::reassigned::Reassigned;
use crate::threshold::{Auto, Limit, Threshold};
use crate::{exhaustive, known, maps, null, parts, search, threshold};

/// The space of the authors' code.
const AUTHORS_SPACE: Space = Space { normalize: Normalize::L2, distance: Distance::SqEuclidean };

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
    const FLAGS: Flags = Flags::NEEDS_COMPOSER.and(Flags::USES_SEEDS);
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
        // A base that ignores them has found clusters of examples that all count once.
        let weights = task.weights.filter(|_| self.base_flags.contains(Flags::USES_WEIGHTS));
        let weights = weights::check(weights, task.embeddings.len())?;
        let mut clusters = Preliminary::new(task.embeddings, weights, &found.assignments, task.seeds);
        known::find_names(&mut clusters, &Task { space, ..*task }, services)?;
        let k = clusters.k();
        let possible = self.possible(degree, k, services);
        let means = Embeddings::new(&clusters.means, dim);
        let compositions = Compositions::new(Task { space, degree: possible, ..*task }, means, services)?;
        let reassigned = self.reassign(&compositions, &clusters, services)?;
        services.log(Level::Info, reassigned.summary());
        let mut result = reassigned.result(task, &clusters, &compositions.sets, found, services)?;
        if let Threshold::Auto(Auto::Auto) = self.threshold {
            result.resolve("threshold", reassigned.threshold);
        }
        Ok(result)
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
        let (threshold, null) = self.threshold(compositions, clusters, &nearest, services)?;
        let limit = Limit { threshold, inclusive: self.inclusive };
        let possible = |limit: Limit| -> Result<Vec<Vec<Near>>> {
            let mut within = compositions.within(limit, services)?;
            for (cluster, list) in within.iter_mut().enumerate() {
                list.retain(|near| clusters.may_become(cluster, members(near.set)));
            }
            Ok(within)
        };
        let chosen = match self.method {
            Method::Search => {
                let squared = |distance: f64| match compositions.distance() {
                    Distance::SqEuclidean => distance,
                    Distance::Euclidean => distance * distance,
                };
                let mut candidates = self.candidates(compositions, limit, squared, services)?;
                for (cluster, list) in candidates.iter_mut().enumerate() {
                    list.retain(|(_, near)| clusters.may_become(cluster, members(near.set)));
                }
                search::reassign(&candidates, members, squared(threshold), services)?
            }
            Method::Greedy if clusters.known.iter().all(Option::is_none) => {
                greedy::reassign(&nearest, members, limit, self.on_conflict)
            }
            Method::Greedy => {
                let nearest = |list: Vec<Near>| list.into_iter().min_by(|a, b| a.distance.total_cmp(&b.distance));
                let nearest: Vec<Option<Near>> = possible(limit)?.into_iter().map(nearest).collect();
                greedy::reassign(&nearest, members, limit, self.on_conflict)
            }
            Method::Exhaustive => {
                let candidates = possible(limit)?;
                let gain = |cluster: usize, near: &Near| clusters.sizes[cluster] * (threshold - near.distance);
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
        clusters: &Preliminary,
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
        let null = self.null(compositions, clusters, nearest, parted, services)?;
        Ok((if null.is_some_and(|null| null.rejected()) { parted } else { 0.0 }, null))
    }

    /// How the clusters compare with clusters without unions; none if there are too few to be compared. The parts of a
    /// cluster that the base has split lie near each other, and so near compositions of which the other is a member: as this
    /// says nothing of unions, they are one here.
    fn null(
        &self,
        compositions: &Compositions<'_>,
        clusters: &Preliminary,
        nearest: &[Option<Near>],
        threshold: f64,
        services: &Services<'_>,
    ) -> Result<Option<Null>> {
        let mut alike = compositions.alike(self.merging(compositions, threshold), services)?;
        for (cluster, list) in alike.iter_mut().enumerate() {
            list.retain(|near| clusters.known[cluster].is_none() || clusters.known[near.set].is_none());
        }
        let groups = parts::joined(&alike);
        if groups.len() < 3 {
            return Ok(None);
        }
        if groups.len() == clusters.k() {
            return null::compare(compositions, nearest, threshold, services).map(Some);
        }
        let dim = compositions.means().dim();
        let means: Vec<f32> = groups.iter().flat_map(|group| clusters.mean(group.iter().copied(), dim)).collect();
        let joined = compositions.of_fewer(Embeddings::new(&means, dim), services)?;
        null::compare(&joined, &joined.nearest(services)?, threshold, services).map(Some)
    }

    /// How near two clusters are that may be one.
    fn merging(&self, compositions: &Compositions<'_>, threshold: f64) -> Limit {
        Limit { threshold: self.part(compositions.distance()) * threshold, inclusive: false }
    }

    /// `merge` as a part of such distances.
    fn part(&self, kind: Distance) -> f64 {
        match kind {
            Distance::SqEuclidean => self.merge * self.merge,
            Distance::Euclidean => self.merge,
        }
    }

    /// For every cluster what it may become and at what cost, the cheapest first.
    fn candidates(
        &self,
        compositions: &Compositions<'_>,
        limit: Limit,
        squared: impl Fn(f64) -> f64,
        services: &Services<'_>,
    ) -> Result<Vec<Vec<(f64, Near)>>> {
        let part = self.part(compositions.distance());
        let merging = self.merging(compositions, limit.threshold);
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
                "the base `{base}` found {}, and a composition takes one to be composed of two others: its clustering is the \
                 result; let it find more",
                plural(k, "cluster")
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
