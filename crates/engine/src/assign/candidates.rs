//! The sets that an example may be given to, and a point of the space for each.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use compflow_api::{Embeddings, Sets};
use compflow_kernels::counting;

use super::assigner::{AssignOptions, Basis};
use super::cell::Cell;
use super::origin::{Examples, Origin};
use crate::error::{Error, Result};
use crate::files::human_bytes;
use crate::results::CellTables;

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
        let (mut positions, mut sums, mut counts) = (HashMap::new(), Vec::new(), Vec::new());
        for (point, set) in points.chunks_exact(dim).zip(assignments.iter()).filter(|(_, set)| !set.is_empty()) {
            let at = *positions.entry(set.to_vec()).or_insert_with(|| {
                sums.resize(sums.len() + dim, 0.0);
                counts.push(0.0);
                counts.len() - 1
            });
            counts[at] += 1.0;
            let sum: &mut [f64] = &mut sums[at * dim..][..dim];
            sum.iter_mut().zip(point).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let rows = sums.chunks_exact(dim).zip(&counts);
        let mut points: Vec<f32> =
            rows.flat_map(|(sum, count)| sum.iter().map(move |sum| (sum / count) as f32)).collect();
        self.origin.space().enter(&mut points, dim);
        let means = Rc::new(Means { assignments, positions, points, dim });
        self.means = Some(means.clone());
        Ok(means)
    }
}

/// Vectors that unions are composed from, before normalisation: those of singletons, or rows of the trial.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) vectors: Vec<f32>,
    /// Where the vector of a singleton is.
    pub(super) of: BTreeMap<u32, u32>,
}

/// Clusters by index, and the point of each.
type Points = Vec<(usize, Vec<f32>)>;

/// The points of some clusters that have one, and what unions are composed from, as far as exemplars say it.
pub(super) fn representatives(
    found: &CellTables,
    training: &mut Training<'_>,
    clusters: &[usize],
    dim: usize,
) -> Result<(Points, Parts, Basis)> {
    let of = |point: &[f32], at: &usize| (*at, point.to_vec());
    if !found.centroids.is_empty() {
        let points = clusters.iter().map(|at| of(&found.centroids[at * dim..][..dim], at)).collect();
        return Ok((points, Parts::default(), Basis::Centroids));
    }
    if !found.exemplars.is_empty() {
        let trial = training.trial()?;
        let (vectors, rows) = exemplar_rows(&found.exemplars, &trial)?;
        let sets: Sets = clusters.iter().map(|&at| positions(&found.exemplars[at], &rows)).collect();
        let composed = training.origin.compose(Embeddings::new(&vectors, dim), &sets)?;
        let points = clusters.iter().zip(composed.chunks_exact(dim)).map(|(at, point)| of(point, at)).collect();
        return Ok((points, Parts { of: singleton_rows(found, &rows), vectors }, Basis::Exemplars));
    }
    let means = training.means()?;
    let points = clusters.iter().filter_map(|at| Some(of(means.of(&found.clusters[*at])?, at))).collect();
    Ok((points, Parts::default(), Basis::Means))
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
        let of = found.singletons.numbers.iter().copied().zip(0..).collect();
        parts = Parts { vectors: found.singletons.vectors.clone(), of };
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
        let members: Sets =
            unseen.iter().map(|set| set.iter().map(|member| parts.of[member]).collect::<Vec<u32>>()).collect();
        let composed = origin.compose(Embeddings::new(&parts.vectors, dim), &members)?;
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
fn unseen(parts: &Parts, degree: usize, dim: usize, memory: u64, known: &HashSet<&[u32]>) -> Result<Sets> {
    let numbers: Vec<u32> = parts.of.keys().copied().collect();
    // A point, a copy of it while it is composed, and a third to compare with.
    let bytes = counting::sets(numbers.len(), 1..=degree)
        .and_then(|count| count.checked_mul(12 * dim as u128 + 100))
        .filter(|bytes| *bytes <= u128::from(memory));
    if bytes.is_none() {
        return Err(Error::request(format!(
            "the sets of up to {degree} of {} singletons take more than the {} of memory; lower --degree, or say --seen-only",
            numbers.len(),
            human_bytes(memory)
        )));
    }
    let named = Sets::all_up_to(numbers.len(), degree);
    let named = named.iter().map(|set| set.iter().map(|&at| numbers[at as usize]).collect::<Vec<u32>>());
    Ok(named.filter(|set| !known.contains(&set[..])).collect())
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

/// Where the exemplar of every singleton is: that of the cluster that it is alone in, or of the first that it is in.
fn singleton_rows(found: &CellTables, rows: &BTreeMap<u32, u32>) -> BTreeMap<u32, u32> {
    let mut of = BTreeMap::new();
    let mut clusters: Vec<(&[u32], &Vec<u32>)> = found.clusters.iter().zip(&found.exemplars).collect();
    clusters.sort_by_key(|(set, _)| set.len());
    for (set, exemplars) in clusters {
        for (member, row) in set.iter().zip(exemplars) {
            if let Some(&at) = rows.get(row) {
                of.entry(*member).or_insert(at);
            }
        }
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_run_lists_is_not_composed_again_and_too_many_are_refused() {
        let parts = Parts { vectors: vec![0.0; 3], of: [(2, 0), (5, 1), (7, 2)].into() };
        let known: HashSet<&[u32]> = [&[2][..], &[2, 7]].into();
        let found = unseen(&parts, 2, 1, 1 << 20, &known).unwrap();
        assert_eq!(found, Sets::from_iter([vec![5], vec![7], vec![2, 5], vec![5, 7]]));
        let text = unseen(&parts, 3, 1000, 1 << 10, &known).unwrap_err().to_string();
        assert!(text.contains("sets of up to 3 of 3 singletons") && text.contains("--seen-only"), "{text}");
    }

    #[test]
    fn exemplars_that_are_no_rows_are_refused_and_those_of_singletons_come_first() {
        let trial = Examples { embeddings: vec![1.0, 2.0, 3.0].into(), dim: 1 };
        assert!(exemplar_rows(&[vec![3]], &trial).is_err());
        let found = CellTables {
            clusters: Sets::from_iter([vec![0, 1], vec![1]]),
            exemplars: vec![vec![2, 0], vec![1]],
            ..CellTables::default()
        };
        let (values, rows) = exemplar_rows(&found.exemplars, &trial).unwrap();
        assert_eq!(values, [1.0, 2.0, 3.0]);
        assert_eq!(singleton_rows(&found, &rows), [(0, 2), (1, 1)].into());
    }
}
