//! One cell of a run, ready to take new examples.

use std::collections::HashSet;

use compflow_api::{Embeddings, Level, Sets, Space};

use super::candidates::{Candidates, Training, gather};
use super::cell::Cell;
use super::likeliest::{Likeliest, restricted};
use super::nearest::Nearest;
use super::novel;
use super::origin::{Origin, Recorded};
use crate::error::{Error, Result};
use crate::results::{CellTables, RecordedRun, Results};

/// In place of the number of a set: there is none.
pub(super) const NOTHING: u32 = u32::MAX;

/// What may be chosen about assigning.
#[derive(Debug, Clone, Copy, Default)]
pub struct AssignOptions {
    /// The largest union considered; that of the run if not given.
    pub degree: Option<usize>,
    /// Whether only sets that occur in the run are considered.
    pub seen_only: bool,
    /// Beyond the distance within which this share of the run's own examples is from their clusters, examples are left
    /// unassigned.
    pub novel: Option<f64>,
}

/// What examples are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The run's centroids, and compositions of its singletons.
    Centroids,
    /// The run's exemplars and their compositions.
    Exemplars,
    /// The means of the run's examples.
    Means,
    /// The run's densities.
    Densities,
}

/// Gives examples to the clusters of a cell. It has no state: examples may come in any order, in batches of any size, from any
/// number of threads or on any number of machines, and are given to the same clusters.
pub struct Assigner {
    cell: Cell,
    space: Space,
    dim: usize,
    sets: Sets,
    points: Vec<f32>,
    basis: Basis,
    way: Way,
    /// Examples beyond this distance are left unassigned.
    limit: Option<f64>,
    /// What the user calls the singletons, by their numbers.
    names: Option<Vec<String>>,
}

/// What decides.
enum Way {
    Nearest(Nearest),
    Likeliest(Likeliest),
}

/// What was found for one example: numbers of sets, or [`NOTHING`]; NaN where there is no number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    pub(super) set: u32,
    pub(super) runner_up: u32,
    pub(super) distance: f64,
    pub(super) runner_up_distance: f64,
    pub(super) margin: f64,
    pub(super) posterior: f64,
    /// The logarithm of the density at the example, up to what all sets have in common.
    pub(super) log_density: f64,
}

/// What became of some examples, in their order.
pub struct Assigned<'a> {
    assigner: &'a Assigner,
    pub(super) choices: Vec<Choice>,
}

impl Assigner {
    /// Reads a cell and everything that is needed of what it was made from: the composer if unions are composed, the data if
    /// clusters are known by examples only.
    ///
    /// # Errors
    /// If a table is damaged, something that is needed is gone or has changed, or the options ask for what there is not.
    pub fn open(results: &Results, run: &RecordedRun<'_>, cell: &Cell, options: &AssignOptions) -> Result<Self> {
        if options.degree == Some(0) {
            return Err(Error::request("--degree is at least 1"));
        }
        let mut rows = results.runs_of(&cell.data, &cell.clusterer);
        let row = rows.find(|row| row.trial == cell.trial);
        let row = row.ok_or_else(|| Error::request(format!("there is no {}", cell.about())))?;
        let (n, dim) = (row.n as usize, row.dim as usize);
        if dim == 0 {
            return Err(Error::request("runs.parquet has examples of no dimensions; run the pipeline again"));
        }
        let found = results.cell_tables(&cell.data, cell.trial, &cell.clusterer, dim)?;
        let mut assigner = Self::new(&Recorded { results, run }, cell, &found, (n, dim), options)?;
        let count = assigner.sets.values().iter().max().map_or(0, |last| *last as usize + 1);
        assigner.names = results.cell_names(&cell.data, cell.trial, &cell.clusterer, count)?;
        Ok(assigner)
    }

    /// From what a cell of so many examples of so many dimensions has found, and what that was made from.
    ///
    /// # Errors
    /// If the options ask for what there is not, or composing fails.
    pub(crate) fn new(
        origin: &dyn Origin,
        cell: &Cell,
        found: &CellTables,
        (n, dim): (usize, usize),
        options: &AssignOptions,
    ) -> Result<Self> {
        let mut training = Training::new(origin, cell);
        let space = origin.space();
        let most = found.densities.sets.iter().map(<[u32]>::len).max().unwrap_or(0);
        // A mixture of single components has nothing against unions, which are then compared by their points.
        let beyond = options.degree.filter(|degree| *degree > most);
        let (candidates, way) = if most == 0 || most == 1 && beyond.is_some() {
            let candidates = gather(found, &mut training, options, dim)?;
            let way = Way::Nearest(Nearest::new(&candidates.points, dim));
            (candidates, way)
        } else {
            if let Some(degree) = beyond {
                return Err(Error::request(format!(
                    "{} knows how likely sets of up to {most} are, and nothing of sets of {degree}; lower --degree, or run the \
                     pipeline with `degree = {degree}`",
                    cell.about()
                )));
            }
            let occurs = found.clusters.iter().zip(&found.sizes).filter(|(_, size)| **size > 0);
            let occurs: HashSet<&[u32]> = occurs.map(|(set, _)| set).collect();
            let keep = |set: &[u32]| {
                options.degree.is_none_or(|degree| set.len() <= degree)
                    && (!options.seen_only || set.is_empty() || occurs.contains(set))
            };
            let densities = restricted(&found.densities, keep, dim);
            if densities.sets.is_empty() {
                let text = format!("{} leaves no cluster that an example could be given to", cell.about());
                return Err(Error::request(text));
            }
            let way = Way::Likeliest(Likeliest::new(&densities, dim)?);
            (Candidates { sets: densities.sets, points: densities.centres, basis: Basis::Densities }, way)
        };
        let limit = options.novel.map(|share| novel::limit(&mut training, share)).transpose()?;
        let assigned: usize = found.sizes.iter().map(|&size| size as usize).sum();
        let none_can_be = candidates.sets.iter().any(<[u32]>::is_empty) || limit.is_some();
        if assigned < n && !none_can_be {
            let text = format!(
                "{} of the run's {n} examples belong to nothing, and every new one is given a cluster; --novel leaves out those \
                 that are far from all",
                n - assigned
            );
            origin.log(Level::Warn, &cell.about(), &text);
        }
        let Candidates { sets, points, basis } = candidates;
        Ok(Self { cell: cell.clone(), space, dim, sets, points, basis, way, limit, names: None })
    }

    /// With what the user calls the singletons, by their numbers.
    pub(crate) fn named(self, names: Option<Vec<String>>) -> Self {
        Self { names, ..self }
    }

    /// What the user calls the singletons, by their numbers.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// The cell.
    pub fn cell(&self) -> &Cell {
        &self.cell
    }

    /// How many numbers an embedding has.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The sets that examples may be given to.
    pub fn sets(&self) -> &Sets {
        &self.sets
    }

    /// What examples are compared with.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// The distance beyond which examples are left unassigned.
    pub fn limit(&self) -> Option<f64> {
        self.limit
    }

    /// The distance of every example from the point of every one of the [`sets`](Self::sets), row by row; NaN for "none of
    /// them", which has no point. Examples are as for [`assign`](Self::assign).
    ///
    /// # Errors
    /// If they are of another length.
    pub fn transform(&self, examples: Embeddings<'_>) -> Result<Vec<f32>> {
        self.require_dim(examples)?;
        let points = self.space.points(examples);
        let distance = |example: &[f32], set: &[u32], point: &[f32]| match set.is_empty() {
            true => f32::NAN,
            false => self.space.distance(example, point) as f32,
        };
        let mut distances = Vec::with_capacity(examples.len() * self.sets.len());
        for example in points.chunks_exact(self.dim) {
            let all = self.sets.iter().zip(self.points.chunks_exact(self.dim));
            distances.extend(all.map(|(set, point)| distance(example, set, point)));
        }
        Ok(distances)
    }

    fn require_dim(&self, examples: Embeddings<'_>) -> Result<()> {
        if examples.dim() == self.dim {
            return Ok(());
        }
        Err(Error::data(format!(
            "the embeddings have {} numbers, and those of the run have {}",
            examples.dim(),
            self.dim
        )))
    }

    /// Assigns examples: finite, not normalised, of [`dim`](Self::dim) numbers each.
    ///
    /// # Errors
    /// If they are of another length.
    pub fn assign(&self, examples: Embeddings<'_>) -> Result<Assigned<'_>> {
        self.require_dim(examples)?;
        let points = self.space.points(examples);
        let mut choices = Vec::with_capacity(examples.len());
        match &self.way {
            Way::Nearest(nearest) => nearest.choose(&points, &self.points, self.space, &mut choices),
            Way::Likeliest(likeliest) => likeliest.choose(&points, &self.points, self.space, &mut choices)?,
        }
        if let Some(limit) = self.limit {
            choices.iter_mut().for_each(|choice| choice.leave_beyond(limit));
        }
        Ok(Assigned { assigner: self, choices })
    }
}

impl Choice {
    /// Takes the cluster away from an example that is too far from it: the cluster is then the runner-up, and the margin how much
    /// too far it is.
    fn leave_beyond(&mut self, limit: f64) {
        // As the run's own distances are kept.
        if f64::from(self.distance as f32) > limit {
            *self = Self {
                set: NOTHING,
                runner_up: self.set,
                distance: f64::NAN,
                runner_up_distance: self.distance,
                margin: self.distance - limit,
                posterior: f64::NAN,
                log_density: self.log_density,
            };
        }
    }
}

impl<'a> Assigned<'a> {
    /// How many examples.
    pub fn len(&self) -> usize {
        self.choices.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }

    /// The set of an example; empty if it belongs to nothing.
    pub fn set(&self, example: usize) -> &'a [u32] {
        self.named(self.choices[example].set).unwrap_or_default()
    }

    /// Whether singletons have names.
    pub(super) fn are_named(&self) -> bool {
        self.assigner.names.is_some()
    }

    /// What the user calls the members of a set, if there is one and there are names.
    pub(super) fn names(&self, set: Option<&'a [u32]>) -> Option<impl Iterator<Item = &'a str>> {
        let names = self.assigner.names()?;
        Some(set?.iter().filter_map(|at| names.get(*at as usize)).map(String::as_str))
    }

    /// The set that would have been next; for an example that belongs to nothing the one that it would have had.
    pub fn runner_up(&self, example: usize) -> Option<&'a [u32]> {
        self.named(self.choices[example].runner_up)
    }

    /// The distance of an example from its set's point; NaN if it belongs to nothing.
    pub fn distance(&self, example: usize) -> f64 {
        self.choices[example].distance
    }

    /// The distance of an example from its runner-up's point; NaN if there is none.
    pub fn runner_up_distance(&self, example: usize) -> f64 {
        self.choices[example].runner_up_distance
    }

    /// By how much the set won: a difference of distances, of log-densities, or how far beyond the limit the example is. NaN
    /// if there was nothing to win against.
    pub fn margin(&self, example: usize) -> f64 {
        self.choices[example].margin
    }

    /// How likely the set is; NaN if the method has no densities.
    pub fn posterior(&self, example: usize) -> f64 {
        self.choices[example].posterior
    }

    /// How well an example is described: the logarithm of its density, up to a constant, or minus the distance to the nearest
    /// set's point if the method has no densities.
    pub fn score(&self, example: usize) -> f64 {
        let choice = &self.choices[example];
        let nearest = if choice.set == NOTHING { choice.runner_up_distance } else { choice.distance };
        if choice.log_density.is_nan() { -nearest } else { choice.log_density }
    }

    fn named(&self, number: u32) -> Option<&'a [u32]> {
        (number != NOTHING).then(|| &self.assigner.sets[number as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limit_keeps_its_cluster_as_the_runner_up() {
        let choice = Choice {
            set: 3,
            runner_up: 4,
            distance: 2.5,
            runner_up_distance: 3.0,
            margin: 0.5,
            posterior: 0.9,
            log_density: -1.0,
        };
        let mut near = choice;
        near.leave_beyond(2.5);
        assert_eq!((near.set, near.distance), (3, 2.5));
        let mut far = choice;
        far.leave_beyond(2.0);
        assert_eq!((far.set, far.runner_up, far.runner_up_distance, far.margin), (NOTHING, 3, 2.5, 0.5));
        assert!(far.distance.is_nan() && far.posterior.is_nan());
    }
}
