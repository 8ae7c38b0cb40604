//! The sets that an example may be given to, and a point of the space for each.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use compflow_api::{Clustering, Embeddings, Sets};
use compflow_kernels::counting;

use super::assigner::{AssignOptions, Basis};
use super::cell::Cell;
use crate::error::{Error, Result};
use crate::files::human_bytes;
use crate::results::{CellTables, RecordedRun, Results};

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
        self.run.space().enter(&mut points, dim);
        let means = Rc::new(Means { assignments, positions, points, dim });
        self.means = Some(means.clone());
        Ok(means)
    }
}

/// Vectors that unions are composed from, before normalisation: those of singletons, or rows of the trial.
#[derive(Default)]
struct Parts {
    vectors: Vec<f32>,
    /// Where the vector of a singleton is.
    of: BTreeMap<u32, u32>,
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
    let mut parts = Parts::default();
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
        parts = Parts { vectors, of: singleton_rows(found, &rows) };
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
        let of = found.singletons.numbers.iter().copied().zip(0..).collect();
        parts = Parts { vectors: found.singletons.vectors.clone(), of };
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
        let members: Sets =
            unseen.iter().map(|set| set.iter().map(|member| parts.of[member]).collect::<Vec<u32>>()).collect();
        let composed = run.compose(Embeddings::new(&parts.vectors, dim), &members)?;
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

/// Sets with points of clusters that have centroids and vectors of their singletons: their own, and all others of up to
/// `degree`, composed.
pub(super) fn of_clustering(
    clustering: &Clustering,
    degree: usize,
    dim: usize,
    memory: u64,
    compose: impl FnOnce(Embeddings<'_>, &Sets) -> Result<Vec<f32>>,
) -> Result<Candidates> {
    let Clustering { clusters, centroids, singletons, .. } = clustering;
    let mut points: BTreeMap<(usize, Vec<u32>), Vec<f32>> = BTreeMap::new();
    for (set, centroid) in clusters.iter().zip(centroids.chunks_exact(dim)) {
        points.insert((set.len(), set.to_vec()), centroid.to_vec());
    }
    let of = singletons.numbers.iter().copied().zip(0..).collect();
    let parts = Parts { vectors: singletons.vectors.clone(), of };
    let unseen = unseen(&parts, degree, dim, memory, &clusters.iter().collect())?;
    let members: Sets =
        unseen.iter().map(|set| set.iter().map(|member| parts.of[member]).collect::<Vec<u32>>()).collect();
    let composed = compose(Embeddings::new(&parts.vectors, dim), &members)?;
    for (set, point) in unseen.iter().zip(composed.chunks_exact(dim)) {
        points.insert((set.len(), set.to_vec()), point.to_vec());
    }
    if points.is_empty() {
        return Err(Error::request("there is no cluster that an example could be given to"));
    }
    Ok(Candidates {
        sets: points.keys().map(|(_, set)| set).collect(),
        points: points.into_values().flatten().collect(),
        basis: Basis::Centroids,
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
        let trial = Examples { embeddings: vec![1.0, 2.0, 3.0], dim: 1 };
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
