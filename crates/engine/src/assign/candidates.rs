//! The sets that an example may be given to, and a point of the space for each.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use compflow_api::{Embeddings, Sets};

use super::assigner::{AssignOptions, Basis};
use super::cell::Cell;
use super::origin::{Examples, Origin};
use crate::error::{Error, Result};
use crate::files::human_bytes;
use crate::results::CellTables;
use crate::run::means::means;
use crate::run::members::{Members, exemplars_of};

/// Sets and their points, row-major.
#[derive(Debug)]
pub(super) struct Candidates {
    pub(super) sets: Sets,
    pub(super) points: Vec<f32>,
    pub(super) basis: Basis,
}

/// The examples that the cell was made from, read again only if they are needed.
pub(super) struct Training<'a> {
    pub(super) origin: &'a dyn Origin,
    pub(super) cell: &'a Cell,
    trial: Option<Rc<Examples>>,
    means: Option<Rc<Means>>,
}

/// The mean of every cluster's examples, as a point of the space.
pub(super) struct Means {
    /// The set of every example.
    pub(super) assignments: Sets,
    positions: HashMap<Vec<u32>, usize>,
    points: Vec<f32>,
    dim: usize,
}

impl Means {
    /// The mean of a set's examples, if it has any.
    pub(super) fn of(&self, set: &[u32]) -> Option<&[f32]> {
        self.positions.get(set).map(|&at| &self.points[at * self.dim..][..self.dim])
    }
}

impl<'a> Training<'a> {
    pub(super) fn new(origin: &'a dyn Origin, cell: &'a Cell) -> Self {
        Self { origin, cell, trial: None, means: None }
    }

    /// The trial's examples.
    pub(super) fn trial(&mut self) -> Result<Rc<Examples>> {
        if let Some(trial) = &self.trial {
            return Ok(trial.clone());
        }
        let examples = Rc::new(self.origin.examples(self.cell)?);
        self.trial = Some(examples.clone());
        Ok(examples)
    }

    /// The means of the clusters' examples.
    pub(super) fn means(&mut self) -> Result<Rc<Means>> {
        if let Some(means) = &self.means {
            return Ok(means.clone());
        }
        let trial = self.trial()?;
        let assignments = self.origin.assignments(self.cell)?;
        let dim = trial.dim;
        if assignments.len() != trial.embeddings.len() / dim {
            let text =
                format!("assignments.parquet does not have a row for every example of {}", self.cell.about());
            return Err(Error::request(format!("{text}; run the pipeline again")));
        }
        let points = self.origin.space().points(Embeddings::new(&trial.embeddings, dim));
        let (sets, points) = means(&points, &assignments, self.origin.space(), dim);
        let positions = sets.iter().map(<[u32]>::to_vec).zip(0..).collect();
        let means = Rc::new(Means { assignments, positions, points, dim });
        self.means = Some(means.clone());
        Ok(means)
    }
}

/// Clusters by index, and the point of each.
type Points = Vec<(usize, Vec<f32>)>;

/// The points of some clusters that have one, and what unions are composed from, as far as exemplars say it.
pub(super) fn representatives(
    found: &CellTables,
    training: &mut Training<'_>,
    clusters: &[usize],
    dim: usize,
) -> Result<(Points, Members, Basis)> {
    let of = |point: &[f32], at: &usize| (*at, point.to_vec());
    if !found.centroids.is_empty() {
        let points = clusters.iter().map(|at| of(&found.centroids[at * dim..][..dim], at)).collect();
        return Ok((points, Members::default(), Basis::Centroids));
    }
    if !found.exemplars.is_empty() {
        let trial = training.trial()?;
        let (vectors, rows) = exemplar_rows(&found.exemplars, &trial)?;
        let sets: Sets = clusters.iter().map(|&at| positions(&found.exemplars[at], &rows)).collect();
        let composed = training.origin.compose(Embeddings::new(&vectors, dim), &sets).map_err(|error| {
            error.help(
                "unions of exemplars are always composed, also with --seen-only; --degree 1 leaves them out, and a method that has \
                 centroids or densities, such as `ckm` or `cgm`, does without for what occurs in the run",
            )
        })?;
        let points = clusters.iter().zip(composed.chunks_exact(dim)).map(|(at, point)| of(point, at)).collect();
        let row = |(member, row): (u32, u32)| Some((member, *rows.get(&row)?));
        let rows = exemplars_of(&found.clusters, &found.exemplars).into_iter().filter_map(row).collect();
        return Ok((points, Members { of: rows, vectors }, Basis::Exemplars));
    }
    let means = training.means()?;
    let points = clusters.iter().filter_map(|at| Some(of(means.of(&found.clusters[*at])?, at))).collect();
    Ok((points, Members::default(), Basis::Means))
}

/// Sets with points, except for densities, which say themselves.
pub(super) fn gather(
    found: &CellTables,
    training: &mut Training<'_>,
    options: &AssignOptions,
    dim: usize,
) -> Result<Candidates> {
    let (origin, about) = (training.origin, training.cell.about());
    let degree = options.degree.unwrap_or(origin.degree());
    // What the run has, each with its own representative.
    let wanted = |at: &usize| {
        let (set, size) = (&found.clusters[*at], found.sizes[*at]);
        (size > 0 || !options.seen_only) && options.degree.is_none_or(|degree| set.len() <= degree)
    };
    let seen: Vec<usize> = (0..found.clusters.len()).filter(wanted).collect();
    let mut points: BTreeMap<(usize, Vec<u32>), Vec<f32>> = BTreeMap::new();
    let mut put = |set: &[u32], point: &[f32]| {
        points.insert((set.len(), set.to_vec()), point.to_vec());
    };
    let (representatives, mut parts, basis) = representatives(found, training, &seen, dim)?;
    representatives.iter().for_each(|(at, point)| put(&found.clusters[*at], point));
    if !found.singletons.numbers.is_empty() {
        parts = Members::of_singletons(&found.singletons);
    }

    // What it could have had.
    let has_unions = found.clusters.iter().any(|set| set.len() > 1);
    let composes = origin.composes(training.cell).unwrap_or(has_unions);
    if !options.seen_only && (options.degree.is_some() || composes) {
        let known: HashSet<&[u32]> = found.clusters.iter().collect();
        let largest = seen.iter().map(|&at| found.clusters[at].len()).max().unwrap_or(0);
        let degree = match (origin.has_composer(), options.degree) {
            (true, _) => degree,
            (false, Some(degree)) if degree > largest.max(1) => {
                let text = format!("the run has no composer, so that nothing says where unions of {degree} are");
                return Err(Error::request(format!("{text}; leave out --degree")));
            }
            (false, _) => 1,
        };
        if parts.of.is_empty() && options.degree.is_some_and(|degree| degree > largest.max(1)) {
            let text = format!("{about} says nothing that unions could be composed from; leave out --degree");
            return Err(Error::request(text));
        }
        let unseen = unseen(&parts, degree, dim, origin.memory(), &known)?;
        let rows = Embeddings::new(&parts.vectors, dim);
        let composed = origin.compose(rows, &parts.rows(&unseen)).map_err(|error| {
            error.help("--seen-only does without, as only sets that occur in the run are considered then")
        })?;
        for (set, point) in unseen.iter().zip(composed.chunks_exact(dim)) {
            put(set, point);
        }
    }
    if points.is_empty() {
        return Err(Error::request(format!("{about} leaves no cluster that an example could be given to")));
    }
    Ok(Candidates {
        sets: points.keys().map(|(_, set)| set).collect(),
        points: points.into_values().flatten().collect(),
        basis,
    })
}

/// All sets of up to `degree` that the run does not list.
fn unseen(parts: &Members, degree: usize, dim: usize, memory: u64, known: &HashSet<&[u32]>) -> Result<Sets> {
    // A point, a copy of it while it is composed, and a third to compare with.
    let bytes = parts
        .count(1..=degree)
        .and_then(|count| count.checked_mul(12 * dim as u128 + 100))
        .filter(|bytes| *bytes <= u128::from(memory));
    if bytes.is_none() {
        return Err(Error::request(format!(
            "the sets of up to {degree} of {} singletons take more than the {} of memory; lower --degree, or say --seen-only",
            parts.of.len(),
            human_bytes(memory)
        )));
    }
    Ok(parts.unseen(1..=degree, known))
}

/// The trial's rows that are exemplars, in ascending order, which no numbering of clusters changes; and where each is.
fn exemplar_rows(exemplars: &[Vec<u32>], trial: &Examples) -> Result<(Vec<f32>, BTreeMap<u32, u32>)> {
    let rows: BTreeSet<u32> = exemplars.iter().flatten().copied().collect();
    let n = trial.embeddings.len() / trial.dim;
    if let Some(row) = rows.iter().find(|row| **row as usize >= n) {
        let text = format!("clusters.parquet has the exemplar {row}, and the trial {n} examples");
        return Err(Error::request(format!("{text}; run the pipeline again")));
    }
    let values = rows.iter().flat_map(|&row| &trial.embeddings[row as usize * trial.dim..][..trial.dim]);
    Ok((values.copied().collect(), rows.iter().copied().zip(0..).collect()))
}

fn positions(rows: &[u32], at: &BTreeMap<u32, u32>) -> Vec<u32> {
    rows.iter().filter_map(|row| at.get(row).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_sets_are_refused() {
        let parts = Members { vectors: vec![0.0; 3], of: [(2, 0), (5, 1), (7, 2)].into() };
        assert_eq!(unseen(&parts, 3, 1000, 1 << 20, &HashSet::new()).unwrap().len(), 7);
        let text = unseen(&parts, 3, 1000, 1 << 10, &HashSet::new()).unwrap_err().to_string();
        assert!(text.contains("sets of up to 3 of 3 singletons") && text.contains("--seen-only"), "{text}");
    }

    #[test]
    fn exemplars_that_are_no_rows_are_refused() {
        let trial = Examples { embeddings: vec![1.0, 2.0, 3.0].into(), dim: 1 };
        assert!(exemplar_rows(&[vec![3]], &trial).is_err());
        let (values, rows) = exemplar_rows(&[vec![2, 0], vec![2]], &trial).unwrap();
        assert_eq!((values, rows), (vec![1.0, 3.0], [(0, 0), (2, 1)].into()));
    }
}
