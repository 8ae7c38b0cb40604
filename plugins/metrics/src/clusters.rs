//! The clusters that examples are in, each with a centre in the space: what `silhouette` and `ssd` measure from.
//!
//! Every distinct predicted set is a cluster, unions included; the empty set is none. A cluster's centre is the point that
//! the method gave for it or, if it gave none, the mean of its examples in the space. Examples are read batch by batch,
//! in one pass more if there are means to be taken, and everything is summed up in f64.

use compflow_api::{Embeddings, Error, Evaluation, Result, Services, Sets};
use compflow_kernels::pairs::squared;
use rustc_hash::FxHashMap;

use crate::contingency::Distinct;

/// The clusters of all examples.
pub(crate) struct Clusters {
    /// Of every example its cluster; none if it is in none.
    labels: Vec<Option<u32>>,
    /// How many examples each has, never 0.
    sizes: Vec<u64>,
    /// Of every cluster, row-major.
    centres: Vec<f64>,
    dim: usize,
}

impl Clusters {
    /// Looks up the centres, or takes the means.
    ///
    /// # Errors
    /// If there are no embeddings, they cannot be read, or memory does not suffice.
    pub(crate) fn new(evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Self> {
        let rows = evaluation.rows()?;
        if rows.len() != evaluation.predicted.len() {
            let sets = evaluation.predicted.len();
            return Err(Error::data(format!("{sets} sets are not those of {} examples", rows.len())));
        }
        let (distinct, of_rows) = Distinct::new(evaluation.predicted);
        let mut numbers = Vec::with_capacity(distinct.len());
        let (mut sets, mut sizes) = (Vec::new(), Vec::new());
        for (&set, &size) in distinct.sets.iter().zip(&distinct.counts) {
            numbers.push((!set.is_empty()).then_some(sets.len() as u32));
            if !set.is_empty() {
                sets.push(set);
                sizes.push(size);
            }
        }
        let labels = of_rows.into_iter().map(|number| numbers[number as usize]).collect();
        let dim = rows.dim();
        let bytes = (size_of::<f64>() * dim).saturating_mul(sets.len());
        services.require_memory(bytes as u64, "it grows with the number of clusters")?;
        let mut clusters = Self { labels, sizes, centres: Vec::new(), dim };
        clusters.centres = match given(evaluation, &sets, dim) {
            Some(centres) => centres,
            None => clusters.means(evaluation, services)?,
        };
        Ok(clusters)
    }

    fn means(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let mut means = vec![0.0; self.len() * self.dim];
        self.each(evaluation, services, |cluster, point| {
            let sum = &mut means[cluster * self.dim..][..self.dim];
            sum.iter_mut().zip(point).for_each(|(sum, &value)| *sum += f64::from(value));
        })?;
        for (mean, &size) in means.chunks_exact_mut(self.dim).zip(&self.sizes) {
            mean.iter_mut().for_each(|value| *value /= size as f64);
        }
        Ok(means)
    }

    /// How many clusters.
    pub(crate) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// How many examples a cluster has.
    pub(crate) fn size(&self, cluster: usize) -> u64 {
        self.sizes[cluster]
    }

    /// How many examples are in a cluster at all.
    pub(crate) fn examples(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// The squared distance of a point from a cluster's centre.
    pub(crate) fn squared(&self, cluster: usize, point: &[f32]) -> f64 {
        squared(&self.centres[cluster * self.dim..][..self.dim], point)
    }

    /// Calls `visit` with the cluster and the point of every example that is in one, in order.
    ///
    /// # Errors
    /// If the examples cannot be read, or the work is cancelled.
    pub(crate) fn each(
        &self,
        evaluation: &Evaluation<'_>,
        services: &Services<'_>,
        mut visit: impl FnMut(usize, &[f32]),
    ) -> Result<()> {
        let mut labels = self.labels.iter();
        evaluation.rows()?.pass(&mut |batch: Embeddings<'_>| {
            services.check_cancelled()?;
            let points = evaluation.space.points(batch);
            for (point, label) in points.chunks_exact(self.dim).zip(labels.by_ref()) {
                label.iter().for_each(|&cluster| visit(cluster as usize, point));
            }
            Ok(())
        })
    }
}

/// The method's own point of every one of these sets, if it has one for all.
fn given(evaluation: &Evaluation<'_>, sets: &[&[u32]], dim: usize) -> Option<Vec<f64>> {
    let (clusters, centroids): (&Sets, &[f32]) = (evaluation.clusters?, evaluation.centroids?);
    if centroids.len() != clusters.len() * dim {
        return None;
    }
    let known: FxHashMap<&[u32], &[f32]> = clusters.iter().zip(centroids.chunks_exact(dim)).collect();
    let mut centres = Vec::with_capacity(sets.len() * dim);
    for set in sets {
        centres.extend(known.get(set)?.iter().map(|&value| f64::from(value)));
    }
    Some(centres)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use compflow_api::{BATCH_ROWS, Normalize, Rows, Space};
    use proptest::prelude::*;

    use super::*;

    /// Examples on a coarse grid, so that some are equal, and their sets.
    pub(crate) fn examples(dim: usize) -> impl Strategy<Value = (Vec<f32>, Sets)> {
        let set = prop::collection::btree_set(0..3u32, 0..=2).prop_map(Vec::from_iter);
        let point = prop::collection::vec((-4..=4i8).prop_map(|value| f32::from(value) / 2.0), dim);
        prop::collection::vec((point, set), 1..30).prop_map(|rows| {
            let (points, sets): (Vec<Vec<f32>>, Vec<Vec<u32>>) = rows.into_iter().unzip();
            (points.concat(), Sets::from_iter(sets))
        })
    }

    /// Without a truth.
    pub(crate) fn evaluation<'a>(rows: &'a dyn Rows, predicted: &'a Sets, space: Space) -> Evaluation<'a> {
        Evaluation { truth: None, rows: Some(rows), space, ..Evaluation::new(predicted, predicted) }
    }

    /// Of every example its point, if it is in a cluster, and the members of its cluster; and the centres by their sets.
    pub(crate) type Naive = (Vec<Option<(Vec<f64>, Vec<u32>)>>, BTreeMap<Vec<u32>, Vec<f64>>);

    /// Points and means, as they are defined.
    pub(crate) fn naive(values: &[f32], dim: usize, predicted: &Sets, space: Space) -> Naive {
        let points: Vec<Vec<f64>> = values
            .chunks_exact(dim)
            .map(|row| {
                let norm = row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
                let by = if space.normalize == Normalize::L2 && norm > 0.0 { norm } else { 1.0 };
                row.iter().map(|&value| f64::from((f64::from(value) / by) as f32)).collect()
            })
            .collect();
        let mut centres = BTreeMap::new();
        for set in predicted.iter().filter(|set| !set.is_empty()) {
            let members: Vec<usize> = (0..points.len()).filter(|&row| predicted[row] == *set).collect();
            let mean = |at: usize| members.iter().map(|&row| points[row][at]).sum::<f64>() / members.len() as f64;
            centres.insert(set.to_vec(), (0..dim).map(mean).collect());
        }
        let of = |(row, point): (usize, Vec<f64>)| {
            (!predicted[row].is_empty()).then(|| (point, predicted[row].to_vec()))
        };
        (points.into_iter().enumerate().map(of).collect(), centres)
    }

    #[test]
    fn the_methods_own_centres_are_taken_if_it_has_all() {
        let predicted = Sets::from_iter([vec![1], vec![0, 1], vec![], vec![1]]);
        let rows = Embeddings::new(&[1.0, 5.0, 9.0, 3.0], 1);
        let clusters = Sets::from_iter([vec![0], vec![0, 1], vec![1]]);
        let mut evaluation = evaluation(&rows, &predicted, Space::default());
        let centres = |evaluation: &Evaluation<'_>| Clusters::new(evaluation, &Services::none()).unwrap().centres;
        assert_eq!(centres(&evaluation), [2.0, 5.0]);
        evaluation.clusters = Some(&clusters);
        assert_eq!(centres(&evaluation), [2.0, 5.0]);
        evaluation.centroids = Some(&[7.0, 8.0, 6.0]);
        assert_eq!(centres(&evaluation), [6.0, 8.0]);
        // Sets that came from elsewhere.
        let others = Sets::from_iter([vec![0], vec![0, 1], vec![2]]);
        evaluation.clusters = Some(&others);
        assert_eq!(centres(&evaluation), [2.0, 5.0]);
    }

    #[test]
    fn batches_are_read_on() {
        let n = BATCH_ROWS + 3;
        let values: Vec<f32> = (0..2 * n).map(|at| (at % 7) as f32).collect();
        let labels: Vec<u32> = (0..n).map(|row| (row % 3) as u32).collect();
        let (rows, predicted) = (Embeddings::new(&values, 2), Sets::singletons(&labels));
        let evaluation = evaluation(&rows, &predicted, Space::default());
        let clusters = Clusters::new(&evaluation, &Services::none()).unwrap();
        let mut seen = Vec::new();
        clusters.each(&evaluation, &Services::none(), |cluster, point| seen.push((cluster, point[1]))).unwrap();
        let expected: Vec<(usize, f32)> = (0..n).map(|row| (row % 3, values[2 * row + 1])).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_is_missing_or_too_much_is_said() {
        let predicted = Sets::singletons(&[0, 1]);
        let refused = |evaluation: &Evaluation<'_>, memory| {
            let services = Services { memory, ..Services::none() };
            Clusters::new(evaluation, &services).err().unwrap().to_string()
        };
        let without = Evaluation { truth: None, ..Evaluation::new(&predicted, &predicted) };
        assert_eq!(refused(&without, u64::MAX), "needs embeddings, and there are none");
        let rows = Embeddings::new(&[1.0, 2.0, 3.0], 1);
        let other = evaluation(&rows, &predicted, Space::default());
        assert_eq!(refused(&other, u64::MAX), "2 sets are not those of 3 examples");
        let rows = Embeddings::new(&[1.0, 2.0], 1);
        let large = evaluation(&rows, &predicted, Space::default());
        assert!(refused(&large, 15).ends_with("it grows with the number of clusters"));
    }
}
