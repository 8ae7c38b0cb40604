//! The sets that an example may be given to, and a point of the space for each.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use compflow_api::{Embeddings, Sets};

use super::assigner::{AssignOptions, Basis};
use super::cell::Cell;
use crate::error::{Error, Result};
use crate::files::human_bytes;
use crate::results::{CellTables, RecordedRun, Results};
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
pub(super) struct Training<'a, 'r> {
    results: &'a Results,
    run: &'a RecordedRun<'r>,
    cell: &'a Cell,
    trial: Option<Rc<Examples>>,
    means: Option<Rc<Means>>,
}

/// Examples of a trial.
pub(super) struct Examples {
    pub(super) embeddings: Vec<f32>,
    pub(super) dim: usize,
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

impl<'a, 'r> Training<'a, 'r> {
    pub(super) fn new(results: &'a Results, run: &'a RecordedRun<'r>, cell: &'a Cell) -> Self {
        Self { results, run, cell, trial: None, means: None }
    }

    /// The trial's examples.
    pub(super) fn trial(&mut self) -> Result<Rc<Examples>> {
        if let Some(trial) = &self.trial {
            return Ok(trial.clone());
        }
        let Cell { data, trial, .. } = self.cell;
        let about = format!("{} needs the data it was computed from", self.cell.about());
        let dataset = self.run.data(data).map_err(|error| error.context(about))?;
        let dim = dataset.dim;
        let found = dataset.trials.into_iter().find(|found| found.number == *trial);
        let found = found.ok_or_else(|| Error::data(format!("data `{data}` has no trial {trial} any more")))?;
        let examples = Rc::new(Examples { embeddings: found.embeddings, dim });
        self.trial = Some(examples.clone());
        Ok(examples)
    }

    /// The means of the clusters' examples.
    pub(super) fn means(&mut self) -> Result<Rc<Means>> {
        if let Some(means) = &self.means {
            return Ok(means.clone());
        }
        let trial = self.trial()?;
        let Cell { data, trial: number, clusterer } = self.cell;
        let found = self.results.assignments(data, *number)?;
        let found = found.into_iter().find(|found| found.clusterer == *clusterer);
        let assignments = found.map(|found| found.sets).unwrap_or_default();
        let dim = trial.dim;
        if assignments.len() != trial.embeddings.len() / dim {
            let text =
                format!("assignments.parquet does not have a row for every example of {}", self.cell.about());
            return Err(Error::request(format!("{text}; run the pipeline again")));
        }
        let points = self.run.space().points(Embeddings::new(&trial.embeddings, dim));
        let (sets, points) = means(&points, &assignments, self.run.space(), dim);
        let positions = sets.iter().map(<[u32]>::to_vec).zip(0..).collect();
        let means = Rc::new(Means { assignments, positions, points, dim });
        self.means = Some(means.clone());
        Ok(means)
    }
}

/// Sets with points, except for densities, which say themselves.
pub(super) fn gather(
    found: &CellTables,
    run: &RecordedRun<'_>,
    training: &mut Training<'_, '_>,
    options: &AssignOptions,
    dim: usize,
) -> Result<Candidates> {
    let about = training.cell.about();
    let degree = options.degree.unwrap_or(run.degree());
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
    let mut parts = Members::default();
    let basis = if !found.centroids.is_empty() {
        seen.iter().for_each(|&at| put(&found.clusters[at], &found.centroids[at * dim..][..dim]));
        Basis::Centroids
    } else if !found.exemplars.is_empty() {
        let trial = training.trial()?;
        let (vectors, rows) = exemplar_rows(&found.exemplars, &trial)?;
        let sets: Sets = seen.iter().map(|&at| positions(&found.exemplars[at], &rows)).collect();
        let composed = run.compose(Embeddings::new(&vectors, dim), &sets)?;
        for (&at, point) in seen.iter().zip(composed.chunks_exact(dim)) {
            put(&found.clusters[at], point);
        }
        let of = exemplars_of(&found.clusters, &found.exemplars);
        let at = |(member, row): (u32, u32)| Some((member, *rows.get(&row)?));
        parts = Members { vectors, of: of.into_iter().filter_map(at).collect() };
        Basis::Exemplars
    } else {
        let means = training.means()?;
        seen.iter().for_each(|&at| {
            if let Some(mean) = means.of(&found.clusters[at]) {
                put(&found.clusters[at], mean);
            }
        });
        Basis::Means
    };
    if !found.singletons.numbers.is_empty() {
        parts = Members::of_singletons(&found.singletons);
    }

    // What it could have had.
    let has_unions = found.clusters.iter().any(|set| set.len() > 1);
    let composes = run.composes(&training.cell.clusterer).unwrap_or(has_unions);
    if !options.seen_only && (options.degree.is_some() || composes) {
        let known: HashSet<&[u32]> = found.clusters.iter().collect();
        let largest = seen.iter().map(|&at| found.clusters[at].len()).max().unwrap_or(0);
        let degree = match (run.has_composer(), options.degree) {
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
        let unseen = unseen(&parts, degree, dim, run.memory(), &known)?;
        let composed = run.compose(Embeddings::new(&parts.vectors, dim), &parts.rows(&unseen))?;
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
        let trial = Examples { embeddings: vec![1.0, 2.0, 3.0], dim: 1 };
        assert!(exemplar_rows(&[vec![3]], &trial).is_err());
        let (values, rows) = exemplar_rows(&[vec![2, 0], vec![2]], &trial).unwrap();
        assert_eq!((values, rows), (vec![1.0, 3.0], [(0, 0), (2, 1)].into()));
    }
}
