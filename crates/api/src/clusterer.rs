//! Clustering: the task that a clusterer is given and the clustering that it returns.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::arrow::{Column, Table};
use crate::evaluator::find_column;
use crate::{Composer, Embeddings, Error, Partial, Result, Rows, Services, Sets, Space, compose_sets};

/// Finds groups, and which of them are unions of others.
pub trait Clusterer: Send + Sync {
    /// How many bytes [`cluster`](Self::cluster) would allocate for a task of this shape; 0 if it cannot tell. The host refuses work that would take more than the budget.
    ///
    /// # Errors
    /// If it should be able to tell, and is not.
    fn memory(&self, _shape: Shape, _services: &Services<'_>) -> Result<u64> {
        Ok(0)
    }

    /// Clusters. The result depends on the task and the seed only, never on the number of threads.
    ///
    /// # Errors
    /// With a text that says what would do; [`Error::Cancelled`] as soon as the work is no longer wanted.
    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering>;

    /// Whether this instance wants the examples batch by batch, in place of the matrix.
    ///
    /// # Errors
    /// If it cannot say.
    fn streams(&self) -> Result<bool> {
        Ok(false)
    }

    /// Clusters examples that are read batch by batch, for an instance that [`streams`](Self::streams). The result is
    /// that of [`cluster`](Self::cluster) on the same examples.
    ///
    /// # Errors
    /// As for [`cluster`](Self::cluster).
    fn cluster_stream(&self, _task: &StreamTask<'_>, _services: &Services<'_>) -> Result<Clustering> {
        Err(Error::new("cannot read the examples batch by batch"))
    }

    /// What a batch of examples adds up to, for a state that [`cluster_stream`](Self::cluster_stream) gave to
    /// [`Rows::reduce`] of examples that are [elsewhere](Rows::is_elsewhere), perhaps in another process. For those that
    /// declare [`HAS_PARTIAL`](crate::Flags::HAS_PARTIAL).
    ///
    /// Where examples are elsewhere, `cluster_stream` returns no assignments, and lists clusters in the order of their first
    /// examples, those of one singleton first.
    ///
    /// # Errors
    /// As for [`cluster`](Self::cluster).
    fn partial(&self, _state: &[u8], _batch: &Batch<'_>, _services: &Services<'_>) -> Result<Partial> {
        Err(Error::new("cannot cluster examples that are elsewhere"))
    }
}

/// A batch of examples that are [elsewhere](Rows::is_elsewhere), and what is known of them.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The number of the first of them among all.
    pub first: u64,
    /// The examples.
    pub examples: Embeddings<'a>,
    /// How much each counts: those of [`StreamTask::weights`], if there are any.
    pub weights: Option<&'a [f32]>,
    /// The sets that are known beforehand: those of [`StreamTask::seeds`], if there are any.
    pub seeds: Option<&'a Sets>,
}

impl<'a> Batch<'a> {
    /// One of which nothing but the examples is known.
    pub fn new(first: u64, examples: Embeddings<'a>) -> Self {
        Self { first, examples, weights: None, seeds: None }
    }
}

/// How large a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of examples.
    pub rows: usize,
    /// Length of an embedding.
    pub dim: usize,
    /// Largest composition considered, at least 1.
    pub degree: usize,
}

/// What a clusterer is given.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The examples, finite, not normalised, at least one.
    pub embeddings: Embeddings<'a>,
    /// Where distances are taken.
    pub space: Space,
    /// Largest composition considered, at least 1.
    pub degree: usize,
    /// The composition function, if the pipeline has one.
    pub composer: Option<&'a dyn Composer>,
    /// The true sets, for those that declare [`NEEDS_TRUTH`](crate::Flags::NEEDS_TRUTH).
    pub truth: Option<&'a Sets>,
    /// How gladly each example becomes an exemplar, if the data says.
    pub preferences: Option<&'a [f32]>,
    /// How much each example counts, at least 0, if the data says; see [`USES_WEIGHTS`](crate::Flags::USES_WEIGHTS).
    pub weights: Option<&'a [f32]>,
    /// The sets that are known beforehand, empty where an example's is not, for those that declare
    /// [`USES_SEEDS`](crate::Flags::USES_SEEDS): of at most `degree` of the numbers below [`named`](Self::named), each of
    /// which occurs. They are returned as they are, so that singletons with these numbers are those that the user has
    /// named; all others have other numbers.
    pub seeds: Option<&'a Sets>,
    /// The columns that the instance [asked for](crate::Component::columns).
    pub columns: &'a Table,
}

/// What a clusterer is given that reads the examples batch by batch: a [`Task`] with `rows` in place of the matrix.
#[derive(Clone, Copy)]
pub struct StreamTask<'a> {
    /// The examples, finite, not normalised, at least one.
    pub rows: &'a dyn Rows,
    /// Where distances are taken.
    pub space: Space,
    /// Largest composition considered, at least 1.
    pub degree: usize,
    /// The composition function, if the pipeline has one.
    pub composer: Option<&'a dyn Composer>,
    /// The true sets, for those that declare [`NEEDS_TRUTH`](crate::Flags::NEEDS_TRUTH).
    pub truth: Option<&'a Sets>,
    /// How gladly each example becomes an exemplar, if the data says.
    pub preferences: Option<&'a [f32]>,
    /// How much each example counts, at least 0, if the data says; see [`USES_WEIGHTS`](crate::Flags::USES_WEIGHTS).
    pub weights: Option<&'a [f32]>,
    /// The sets that are known beforehand, empty where an example's is not, for those that declare
    /// [`USES_SEEDS`](crate::Flags::USES_SEEDS): of at most `degree` of the numbers below [`named`](Self::named), each of
    /// which occurs. They are returned as they are, so that singletons with these numbers are those that the user has
    /// named; all others have other numbers.
    pub seeds: Option<&'a Sets>,
    /// The columns that the instance [asked for](crate::Component::columns).
    pub columns: &'a Table,
}

impl<'t> StreamTask<'t> {
    /// The same task with its examples, which are in memory.
    pub fn whole(&self, embeddings: Embeddings<'t>) -> Task<'t> {
        let Self { space, degree, composer, truth, preferences, weights, seeds, columns, .. } = *self;
        Task { embeddings, space, degree, composer, truth, preferences, weights, seeds, columns }
    }

    /// The same setting with other examples, of which nothing but their vectors is known.
    pub fn with<'a>(&'a self, embeddings: Embeddings<'a>) -> Task<'a> {
        let Self { space, degree, composer, .. } = *self;
        Task { space, degree, composer, ..Task::new(embeddings) }
    }

    /// How many singletons the user has named: m, if known sets are of the numbers 0 to m-1.
    pub fn named(&self) -> usize {
        named(self.seeds)
    }
}

fn named(seeds: Option<&Sets>) -> usize {
    seeds.and_then(|seeds| seeds.values().iter().max()).map_or(0, |last| *last as usize + 1)
}

impl<'a> Task<'a> {
    /// A task without composer and truth: embeddings as they are, squared Euclidean distance, degree 1.
    pub fn new(embeddings: Embeddings<'a>) -> Self {
        static NO_COLUMNS: Table = Table::new();
        Self {
            embeddings,
            space: Space::default(),
            degree: 1,
            composer: None,
            truth: None,
            preferences: None,
            weights: None,
            seeds: None,
            columns: &NO_COLUMNS,
        }
    }

    /// The task as one whose examples are read batch by batch, from memory.
    pub fn stream(&self) -> StreamTask<'_> {
        let Self { space, degree, composer, truth, preferences, weights, seeds, columns, .. } = *self;
        let rows = &self.embeddings;
        StreamTask { rows, space, degree, composer, truth, preferences, weights, seeds, columns }
    }

    /// How many singletons the user has named: m, if known sets are of the numbers 0 to m-1.
    pub fn named(&self) -> usize {
        named(self.seeds)
    }

    /// A column that the instance asked for.
    ///
    /// # Errors
    /// If it did not, or the data lacks it.
    pub fn column(&self, name: &str) -> Result<&'a Column> {
        find_column(self.columns, name)
    }

    /// How large it is.
    pub fn shape(&self) -> Shape {
        Shape { rows: self.embeddings.len(), dim: self.embeddings.dim(), degree: self.degree }
    }

    /// The examples as points of the space.
    pub fn points(&self) -> Cow<'a, [f32]> {
        self.space.points(self.embeddings)
    }

    /// The composition function.
    ///
    /// # Errors
    /// If the pipeline has none.
    pub fn composer(&self) -> Result<&'a dyn Composer> {
        self.composer.ok_or_else(|| Error::new("needs a composer, and the pipeline has no [composer]"))
    }

    /// Composes `rows` (unnormalised) by sets and brings the result into the space. Singletons need no composer.
    ///
    /// # Errors
    /// Those of [`compose_sets`], and a set of several without a composer.
    pub fn compose_sets(&self, rows: Embeddings<'_>, sets: &Sets, services: &Services<'_>) -> Result<Vec<f32>> {
        struct Nothing;
        impl Composer for Nothing {
            fn compose(
                &self,
                _dim: usize,
                _left: &[f32],
                _right: &[f32],
                _out: &mut [f32],
                _services: &Services<'_>,
            ) -> Result<()> {
                Err(Error::new("composing several needs a composer, and the pipeline has no [composer]"))
            }
        }
        let mut composed = compose_sets(self.composer.unwrap_or(&Nothing), rows, sets, services)?;
        self.space.enter(&mut composed, rows.dim());
        Ok(composed)
    }

    /// Refuses a `k` that the data cannot have.
    ///
    /// # Errors
    /// If there are fewer examples than `k`.
    pub fn require_k(&self, k: usize) -> Result<()> {
        if k <= self.embeddings.len() {
            return Ok(());
        }
        Err(Error::parameter("k", format!("= {k} is more than the {} examples", self.embeddings.len())))
    }
}

/// What a clusterer returns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Clustering {
    /// For every example the set of singleton clusters it belongs to, of at most `degree` members; empty, "none of them",
    /// only with [`ASSIGNS_NONE`](crate::Flags::ASSIGNS_NONE). None for examples that are
    /// [elsewhere](Rows::is_elsewhere).
    pub assignments: Sets,
    /// The clusters, at least those that occur in `assignments` and are not empty: each the set of its members.
    pub clusters: Sets,
    /// For every cluster the rows that are its members' exemplars, in the order of the members; empty if the
    /// method has none.
    pub exemplars: Vec<Vec<u32>>,
    /// For every cluster a point of the space, row-major; empty if the method has none.
    pub centroids: Vec<f32>,
    /// For every example one finite membership per singleton, numbered from 0, row-major; empty if the method is not soft.
    /// Singletons that no example is in count, and there are no more than examples.
    pub memberships: Vec<f32>,
    /// Further columns, kept beside the assignments under their names; not of vectors.
    pub extra: Table,
    /// What unions are composed from, before normalisation, so that those nobody has seen can be composed later. None are
    /// needed if there are exemplars.
    pub singletons: Singletons,
    /// How likely each set is at a point, for methods that assign by that and not by distance alone; empty for the others.
    pub densities: Densities,
    /// Named numbers about the result.
    pub scalars: Vec<(String, f64)>,
    /// Parameters that the method settled by itself, such as a threshold found: path and value as JSON.
    pub resolved: Vec<(String, String)>,
    /// How the method went.
    pub diagnostics: Diagnostics,
}

/// Singleton clusters and their vectors before normalisation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Singletons {
    /// The singletons' numbers.
    pub numbers: Vec<u32>,
    /// A vector for each, row-major.
    pub vectors: Vec<f32>,
}

/// How likely sets are at a point x of the space, so that new examples can be given to them: of every set
///
/// ```text
/// log π + log-density = offset - ½‖F(x - centre)‖²
/// ```
///
/// with a lower triangular F that sets may share. What all sets have in common may be left out of the offsets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Densities {
    /// All sets that an example may be given to, whether or not one was; the empty one is "none of them".
    pub sets: Sets,
    /// A point of the space for each, row-major.
    pub centres: Vec<f32>,
    /// One for each.
    pub offsets: Vec<f64>,
    /// Which of the factors is each set's.
    pub factor_of: Vec<u32>,
    /// The matrices F, each row by row without what is above the diagonal: see [`factor_len`](Self::factor_len).
    pub factors: Vec<f32>,
}

impl Densities {
    /// How many numbers a factor has.
    pub fn factor_len(dim: usize) -> usize {
        dim * (dim + 1) / 2
    }

    /// Whether there are densities, of all these clusters and of nothing that cannot be.
    fn check(&self, clusters: &Sets, dim: usize, degree: usize) -> Result<()> {
        let count = self.sets.len();
        let factors = self.factors.len() / Self::factor_len(dim);
        let numbers = [
            ("centres", self.centres.len(), count * dim),
            ("offsets", self.offsets.len(), count),
            ("rows of factors", self.factor_of.len(), count),
            ("numbers of factors", self.factors.len(), factors * Self::factor_len(dim)),
        ];
        if let Some((what, found, wanted)) = numbers.into_iter().find(|(_, found, wanted)| found != wanted) {
            return Err(Error::new(format!("{found} {what} of densities where there must be {wanted}")));
        }
        if let Some(factor) = self.factor_of.iter().find(|factor| **factor as usize >= factors) {
            return Err(Error::new(format!("a density has the factor {factor}, and there are {factors}")));
        }
        let finite = self.centres.iter().chain(&self.factors).all(|value| value.is_finite());
        if !finite || self.offsets.iter().any(|offset| !offset.is_finite()) {
            return Err(Error::new("a density is not finite"));
        }
        let known: HashSet<&[u32]> = self.sets.iter().collect();
        if known.len() != count {
            return Err(Error::new("a set has two densities"));
        }
        if let Some(set) = known.iter().find(|set| set.len() > degree) {
            let text = format!("the set {set:?} has a density, and more members than the degree, {degree}");
            return Err(Error::new(text));
        }
        match clusters.iter().find(|set| count > 0 && !known.contains(set)) {
            Some(set) => Err(Error::new(format!("the cluster {set:?} has no density, and others have"))),
            None => Ok(()),
        }
    }
}

/// Names of columns that the host writes itself.
const RESERVED: [&str; 9] =
    ["data", "trial", "clusterer", "id", "clusters", "names", "composite", "distance", "memberships"];

/// How a method went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// Iterations done.
    pub iterations: u64,
    /// Whether it stopped because nothing changed any more.
    pub converged: bool,
    /// What it minimised or maximised; NaN if it has no such number.
    pub objective: f64,
    /// The objective after every iteration; may be empty.
    pub trace: Vec<f64>,
}

impl Default for Diagnostics {
    /// A method that does not iterate.
    fn default() -> Self {
        Self { iterations: 0, converged: true, objective: f64::NAN, trace: Vec::new() }
    }
}

impl Clustering {
    /// Ordinary clusters, one label per example; representatives may be added.
    pub fn from_labels(labels: &[u32]) -> Self {
        let distinct: HashSet<u32> = labels.iter().copied().collect();
        let mut distinct: Vec<u32> = distinct.into_iter().collect();
        distinct.sort_unstable();
        Self { assignments: Sets::singletons(labels), clusters: Sets::singletons(&distinct), ..Self::default() }
    }

    /// Records a parameter that the method settled by itself.
    pub fn resolve(&mut self, parameter: &str, value: impl Into<serde_json::Value>) {
        self.resolved.push((parameter.to_owned(), value.into().to_string()));
    }

    /// Whether this is a clustering of the task's examples; done for every clustering that crosses the boundary.
    ///
    /// # Errors
    /// Naming the first thing that is not as the fields' comments say.
    pub fn check(&self, task: &Task<'_>) -> Result<()> {
        self.check_rows(&task.embeddings, task.degree, false)
    }

    /// Whether examples whose sets are known have them; done for every clusterer that declares
    /// [`USES_SEEDS`](crate::Flags::USES_SEEDS).
    ///
    /// # Errors
    /// Naming the first example that has another.
    pub fn check_seeds(&self, seeds: &Sets) -> Result<()> {
        let mut known = seeds.iter().zip(self.assignments.iter()).enumerate();
        match known.find(|(_, (seed, set))| !seed.is_empty() && seed != set) {
            None => Ok(()),
            Some((row, (seed, set))) => Err(Error::new(format!(
                "example {row} is known to belong to {seed:?} and was assigned to {set:?}"
            ))),
        }
    }

    /// Whether this is a clustering of these examples into sets of at most `degree`, or none if that is allowed.
    pub(crate) fn check_rows(&self, examples: &dyn Rows, degree: usize, none_allowed: bool) -> Result<()> {
        let rows = if examples.is_elsewhere() { 0 } else { examples.len() };
        let (clusters, dim) = (self.clusters.len(), examples.dim());
        let require = |holds: bool, text: &dyn Fn() -> String| match holds {
            true => Ok(()),
            false => Err(Error::new(text())),
        };
        require(self.assignments.len() == rows, &|| {
            format!("{} assignments were returned for {rows} examples", self.assignments.len())
        })?;
        let known: HashSet<&[u32]> = self.clusters.iter().collect();
        require(known.len() == clusters, &|| "a cluster is listed twice".to_owned())?;
        require(!known.contains(&[][..]), &|| "a cluster has no members".to_owned())?;
        if let Some(set) = self.clusters.iter().find(|set| set.len() > degree) {
            return Err(Error::new(format!("the cluster {set:?} has more members than the degree, {degree}")));
        }
        let possible = |set: &[u32]| known.contains(set) || (none_allowed && set.is_empty());
        if let Some(row) = self.assignments.iter().position(|set| !possible(set)) {
            let set = &self.assignments[row];
            if set.is_empty() {
                return Err(Error::new(format!(
                    "example {row} is assigned to nothing, which the component does not declare"
                )));
            }
            return Err(Error::new(format!("example {row} is assigned to {set:?}, which is not a cluster")));
        }
        require([0, clusters].contains(&self.exemplars.len()), &|| {
            format!("{} lists of exemplars were returned for {clusters} clusters", self.exemplars.len())
        })?;
        for (set, exemplars) in self.clusters.iter().zip(&self.exemplars) {
            require(set.len() == exemplars.len() && exemplars.iter().all(|&row| (row as usize) < rows), &|| {
                format!("the exemplars {exemplars:?} of cluster {set:?} are not one example per member")
            })?;
            let distinct: HashSet<&u32> = exemplars.iter().collect();
            require(distinct.len() == exemplars.len(), &|| {
                format!("the exemplars {exemplars:?} of cluster {set:?} are not all different")
            })?;
        }
        require([0, clusters * dim].contains(&self.centroids.len()), &|| {
            format!("{} numbers are not {clusters} centroids of length {dim}", self.centroids.len())
        })?;
        if let Some(at) = self.centroids.iter().position(|value| !value.is_finite()) {
            let (set, value) = (&self.clusters[at / dim], self.centroids[at]);
            return Err(Error::new(format!("the centroid of cluster {set:?} has the value {value}")));
        }
        require(self.memberships.len().is_multiple_of(rows), &|| {
            format!("{} memberships are not equally many for {rows} examples", self.memberships.len())
        })?;
        let width = self.memberships.len().checked_div(rows).unwrap_or(0);
        let numbered = self.clusters.values().iter().chain(&self.singletons.numbers);
        let members = numbered.chain(self.densities.sets.values()).max().map_or(0, |most| *most as usize + 1);
        require(self.memberships.is_empty() || members <= width, &|| {
            format!("{width} memberships per example are too few for clusters numbered up to {}", members - 1)
        })?;
        // Which singletons are empty nobody says, but no method can tell more apart than there are examples.
        require(width <= rows.max(members), &|| {
            format!("{width} memberships per example are for more singletons than there are examples, {rows}")
        })?;
        if let Some(at) = self.memberships.iter().position(|value| !value.is_finite()) {
            let (row, value) = (at / width, self.memberships[at]);
            return Err(Error::new(format!("example {row} has the membership {value}")));
        }
        let Singletons { numbers, vectors } = &self.singletons;
        require(vectors.len() == numbers.len() * dim && vectors.iter().all(|value| value.is_finite()), &|| {
            format!("{} numbers are not {} finite singletons of length {dim}", vectors.len(), numbers.len())
        })?;
        let distinct: HashSet<&u32> = numbers.iter().collect();
        require(distinct.len() == numbers.len(), &|| "a singleton's vector is given twice".to_owned())?;
        self.densities.check(&self.clusters, dim, degree)?;
        require_names("scalars", self.scalars.iter().map(|(name, _)| name.as_str()))?;
        require_names("resolved parameters", self.resolved.iter().map(|(name, _)| name.as_str()))?;
        for (name, value) in &self.resolved {
            let json = serde_json::from_str::<serde_json::Value>(value);
            require(json.is_ok(), &|| format!("the resolved parameter `{name}` is not JSON: {value}"))?;
        }
        for (at, (name, column)) in self.extra.iter().enumerate() {
            require(self.extra[..at].iter().all(|(earlier, _)| earlier != name), &|| {
                format!("two further columns are called `{name}`")
            })?;
            require(!matches!(column, Column::Vectors { .. }), &|| {
                format!("the column `{name}` holds vectors, which a further column cannot")
            })?;
            require(!RESERVED.contains(&name.as_str()), &|| {
                format!("a further column cannot be called `{name}`")
            })?;
            require(column.len() == rows, &|| {
                format!("the column `{name}` has {} rows for {rows} examples", column.len())
            })?;
        }
        Ok(())
    }
}

/// Refuses names of which only one could be kept, and those that nobody could read.
fn require_names<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut known = HashSet::new();
    for name in names {
        if name.contains(char::is_control) {
            return Err(Error::new(format!("the name {name:?} among the {what} has control characters")));
        }
        if !known.insert(name) {
            return Err(Error::new(format!("two {what} are called `{name}`")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_make_singletons() {
        let clustering = Clustering::from_labels(&[2, 0, 2]);
        assert_eq!(clustering.assignments, Sets::from_iter([[2], [0], [2]]));
        assert_eq!(clustering.clusters, Sets::from_iter([[0], [2]]));
    }

    #[test]
    fn what_is_no_clustering_of_the_task_is_refused() {
        let task = Task::new(Embeddings::new(&[0.0, 1.0, 2.0], 1));
        let good = Clustering::from_labels(&[0, 1, 0]);
        assert!(good.check(&task).is_ok());
        let refused = |change: &dyn Fn(&mut Clustering)| {
            let mut clustering = good.clone();
            change(&mut clustering);
            clustering.check(&task).unwrap_err().to_string()
        };
        assert_eq!(
            refused(&|c| c.assignments = Sets::singletons(&[0, 1])),
            "2 assignments were returned for 3 examples"
        );
        assert_eq!(
            refused(&|c| c.assignments = Sets::from_iter([vec![0], vec![0, 1], vec![1]])),
            "example 1 is assigned to [0, 1], which is not a cluster"
        );
        assert_eq!(refused(&|c| c.clusters = Sets::singletons(&[0, 1, 1])), "a cluster is listed twice");
        assert_eq!(
            refused(&|c| c.exemplars = vec![vec![0], vec![3]]),
            "the exemplars [3] of cluster [1] are not one example per member"
        );
        assert_eq!(refused(&|c| c.centroids = vec![0.0]), "1 numbers are not 2 centroids of length 1");
        assert_eq!(
            refused(&|c| c.centroids = vec![0.0, f32::NAN]),
            "the centroid of cluster [1] has the value NaN"
        );
        assert_eq!(
            refused(&|c| {
                c.assignments = Sets::from_iter([vec![0], vec![], vec![0]]);
            }),
            "example 1 is assigned to nothing, which the component does not declare"
        );
        assert_eq!(
            refused(&|c| c.clusters = Sets::from_iter([vec![0], vec![1], vec![0, 1]])),
            "the cluster [0, 1] has more members than the degree, 1"
        );
        let densities = |sets: Sets, factor_of: Vec<u32>| Densities {
            centres: vec![0.5; sets.len()],
            offsets: vec![0.0; sets.len()],
            sets,
            factor_of,
            factors: vec![1.0],
        };
        let two = || Sets::singletons(&[0, 1]);
        let mut likely = good.clone();
        likely.densities = densities(Sets::from_iter([vec![0], vec![1], vec![]]), vec![0; 3]);
        assert!(likely.check(&task).is_ok());
        assert_eq!(
            refused(&|c| c.densities = densities(two(), vec![0, 1])),
            "a density has the factor 1, and there are 1"
        );
        assert_eq!(
            refused(&|c| c.densities = densities(Sets::singletons(&[0]), vec![0])),
            "the cluster [1] has no density, and others have"
        );
        assert_eq!(
            refused(&|c| c.densities = Densities { offsets: vec![0.0], ..densities(two(), vec![0, 0]) }),
            "1 offsets of densities where there must be 2"
        );
        assert_eq!(
            refused(&|c| c.densities = Densities { centres: vec![0.0, f32::NAN], ..densities(two(), vec![0, 0]) }),
            "a density is not finite"
        );
        likely.densities = Densities::default();
        likely.memberships = vec![0.5; 9];
        assert!(likely.check(&task).is_ok(), "one singleton is empty");
        assert_eq!(
            refused(&|c| c.memberships = vec![0.0; 12]),
            "4 memberships per example are for more singletons than there are examples, 3"
        );
        assert_eq!(
            refused(&|c| {
                c.memberships = vec![0.0; 6];
                c.densities = densities(Sets::singletons(&[0, 1, 2]), vec![0; 3]);
            }),
            "2 memberships per example are too few for clusters numbered up to 2"
        );
        for value in [f32::NAN, f32::INFINITY] {
            assert_eq!(
                refused(&|c| c.memberships = vec![1.0, 0.0, 0.0, value, 1.0, 0.0]),
                format!("example 1 has the membership {value}")
            );
        }
        let scalar = || ("bic".to_owned(), 1.0);
        assert_eq!(refused(&|c| c.scalars = vec![scalar(), scalar()]), "two scalars are called `bic`");
        let resolved = |name: &str| (name.to_owned(), "1".to_owned());
        assert_eq!(
            refused(&|c| c.resolved = vec![resolved("k"), resolved("tol"), resolved("k")]),
            "two resolved parameters are called `k`"
        );
        assert_eq!(
            refused(&|c| c.resolved = vec![resolved("k\n")]),
            "the name \"k\\n\" among the resolved parameters has control characters"
        );
        let column = || ("margin".to_owned(), Column::Floats(vec![0.0; 3]));
        assert_eq!(refused(&|c| c.extra = vec![column(), column()]), "two further columns are called `margin`");
        assert_eq!(
            refused(&|c| c.extra = vec![("base".to_owned(), Column::Sets(Sets::default()))]),
            "the column `base` has 0 rows for 3 examples"
        );
    }

    #[test]
    fn an_example_whose_set_is_known_and_that_has_another_is_named() {
        let found = Clustering::from_labels(&[0, 1, 0]);
        assert!(found.check_seeds(&Sets::from_iter([vec![0], vec![], vec![0]])).is_ok());
        let error = found.check_seeds(&Sets::from_iter([vec![0], vec![0], vec![]])).unwrap_err();
        assert_eq!(error.to_string(), "example 1 is known to belong to [0] and was assigned to [1]");
        let seeds = Sets::from_iter([vec![], vec![0, 2], vec![1]]);
        let task = Task { seeds: Some(&seeds), ..Task::new(Embeddings::new(&[0.0, 1.0, 2.0], 1)) };
        assert_eq!((task.named(), task.stream().named(), Task { seeds: None, ..task }.named()), (3, 3, 0));
    }

    #[test]
    fn singletons_compose_without_a_composer_and_pairs_do_not() {
        let values = [3.0, 4.0, 1.0, 0.0];
        let rows = Embeddings::new(&values, 2);
        let mut task = Task::new(rows);
        task.space.normalize = crate::Normalize::L2;
        assert_eq!(task.compose_sets(rows, &Sets::from_iter([[0]]), &Services::none()).unwrap(), [0.6, 0.8]);
        let error = task.compose_sets(rows, &Sets::from_iter([[0, 1]]), &Services::none()).unwrap_err();
        assert_eq!(error.to_string(), "composing several needs a composer, and the pipeline has no [composer]");
    }
}
