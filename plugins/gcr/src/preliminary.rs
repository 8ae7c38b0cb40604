//! What the base found, as clusters that may turn out to be compositions.

use std::collections::HashMap;

use compflow_api::{Embeddings, Sets};
use compflow_kernels::weights::weight;

use crate::known::{Group, groups};

/// The distinct sets of a base's assignments, each a cluster of its own, and those that are [known](crate::known), numbered
/// in the order of their first examples. The empty set is no cluster.
#[derive(Debug, PartialEq)]
pub(crate) struct Preliminary {
    /// Of every example; none if it is in no cluster.
    pub(crate) labels: Vec<Option<u32>>,
    /// How many examples each cluster has, by their weights, never 0: where none counts, each counts once.
    pub(crate) sizes: Vec<f64>,
    /// The mean of each cluster's examples as they are: what a composer takes. Row-major.
    pub(crate) means: Vec<f32>,
    /// The set that each cluster is known to be.
    pub(crate) known: Vec<Option<Vec<u32>>>,
}

impl Preliminary {
    pub(crate) fn new(
        embeddings: Embeddings<'_>,
        weights: Option<&[f32]>,
        assignments: &Sets,
        seeds: Option<&Sets>,
    ) -> Self {
        let dim = embeddings.dim();
        let mut numbers: HashMap<Group<'_>, u32> = HashMap::new();
        let (mut labels, mut sizes, mut known) = (Vec::with_capacity(assignments.len()), Vec::new(), Vec::new());
        for (row, group) in groups(assignments, weights, seeds).into_iter().enumerate() {
            let label = group.map(|group| {
                *numbers.entry(group).or_insert_with(|| {
                    sizes.push(0.0);
                    known.push(match group {
                        Group::Found(_) => None,
                        Group::Known(set) => Some(set.to_vec()),
                    });
                    known.len() as u32 - 1
                })
            });
            label.into_iter().for_each(|label| sizes[label as usize] += weight(weights, row));
            labels.push(label);
        }
        let nobody_counts: Vec<bool> = sizes.iter().map(|size| *size == 0.0).collect();
        let mut sums = vec![0.0; sizes.len() * dim];
        for (row, (label, values)) in labels.iter().zip(embeddings.rows()).enumerate() {
            let Some(label) = label.map(|label| label as usize) else { continue };
            let weight = match nobody_counts[label] {
                true => 1.0,
                false => weight(weights, row),
            };
            sizes[label] += f64::from(u8::from(nobody_counts[label]));
            let sum = &mut sums[label * dim..][..dim];
            sum.iter_mut().zip(values).for_each(|(sum, &value)| *sum += weight * f64::from(value));
        }
        let means = sums.iter().enumerate().map(|(at, sum)| (sum / sizes[at / dim]) as f32).collect();
        Self { labels, sizes, means, known }
    }

    /// Whether a cluster may become the composition of these.
    pub(crate) fn may_become(&self, cluster: usize, members: &[u32]) -> bool {
        let union = |member: &u32| self.known[*member as usize].as_ref().is_some_and(|set| set.len() > 1);
        self.known[cluster].is_none() && !members.iter().any(union)
    }

    /// The mean of the examples of several clusters.
    pub(crate) fn mean(&self, clusters: impl Iterator<Item = usize>, dim: usize) -> Vec<f32> {
        let (mut sum, mut size) = (vec![0.0; dim], 0.0);
        for cluster in clusters {
            size += self.sizes[cluster];
            let mean = &self.means[cluster * dim..][..dim];
            sum.iter_mut().zip(mean).for_each(|(sum, &mean)| *sum += self.sizes[cluster] * f64::from(mean));
        }
        sum.iter().map(|sum| (sum / size) as f32).collect()
    }

    /// How many clusters.
    pub(crate) fn k(&self) -> usize {
        self.sizes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distinct_set_is_a_cluster_with_the_mean_of_its_examples() {
        let values = [1.0, 1.0, 0.0, 5.0, 8.0, 8.0, 3.0, 1.0, 9.0, 9.0];
        let sets = Sets::from_iter([vec![4, 7], vec![7], vec![], vec![4, 7], vec![4]]);
        let found = Preliminary::new(Embeddings::new(&values, 2), None, &sets, None);
        assert_eq!(found.labels, [Some(0), Some(1), None, Some(0), Some(2)]);
        assert_eq!(found.sizes, [2.0, 1.0, 1.0]);
        assert_eq!(found.means, [2.0, 1.0, 0.0, 5.0, 9.0, 9.0]);
        assert_eq!(found.k(), 3);
        assert_eq!(found.mean([0, 2].into_iter(), 2), [13.0 / 3.0, 11.0 / 3.0]);
        assert_eq!(found.mean([1].into_iter(), 2), [0.0, 5.0]);
    }

    #[test]
    fn examples_count_by_their_weights_unless_no_one_of_a_cluster_does() {
        let values = [1.0, 4.0, 9.0, 2.0, 6.0];
        let weights = [2.0, 1.0, 0.0, 0.0, 0.0];
        let sets = Sets::singletons(&[0, 0, 0, 1, 1]);
        let found = Preliminary::new(Embeddings::new(&values, 1), Some(&weights), &sets, None);
        assert_eq!((&found.sizes[..], &found.means[..]), (&[3.0, 2.0][..], &[2.0, 4.0][..]));
    }

    #[test]
    fn what_is_known_is_not_reassigned() {
        let seeds = Sets::from_iter([vec![0], vec![], vec![0, 1], vec![]]);
        let found = Preliminary::new(
            Embeddings::new(&[1.0, 2.0, 5.0, 9.0], 1),
            None,
            &Sets::singletons(&[3, 4, 5, 5]),
            Some(&seeds),
        );
        assert_eq!(found.known, [Some(vec![0]), None, Some(vec![0, 1])]);
        assert_eq!(found.means, [1.0, 2.0, 7.0]);
        assert!(found.may_become(1, &[0]) && !found.may_become(1, &[0, 2]) && !found.may_become(0, &[1]));
    }

    #[test]
    fn huge_examples_have_a_mean() {
        let found = Preliminary::new(Embeddings::new(&[f32::MAX; 4], 1), None, &Sets::singletons(&[3; 4]), None);
        assert_eq!(found.means, [f32::MAX]);
    }
}
