//! What the base found, as clusters that may turn out to be compositions.

use std::collections::HashMap;

use compflow_api::{Embeddings, Sets};

use crate::known::{Group, groups};

/// The distinct sets of a base's assignments, each a cluster of its own, and those that are [known](crate::known), numbered
/// in the order of their first examples. The empty set is no cluster.
#[derive(Debug, PartialEq)]
pub(crate) struct Preliminary {
    /// Of every example; none if it is in no cluster.
    pub(crate) labels: Vec<Option<u32>>,
    /// How many examples each cluster has, never 0.
    pub(crate) sizes: Vec<usize>,
    /// The mean of each cluster's examples as they are: what a composer takes. Row-major.
    pub(crate) means: Vec<f32>,
    /// The set that each cluster is known to be.
    pub(crate) known: Vec<Option<Vec<u32>>>,
}

impl Preliminary {
    pub(crate) fn new(embeddings: Embeddings<'_>, assignments: &Sets, seeds: Option<&Sets>) -> Self {
        let dim = embeddings.dim();
        let mut numbers: HashMap<Group<'_>, u32> = HashMap::new();
        let (mut labels, mut sizes, mut known) = (Vec::with_capacity(assignments.len()), Vec::new(), Vec::new());
        let mut sums: Vec<f64> = Vec::new();
        for (group, row) in groups(assignments, seeds).into_iter().zip(embeddings.rows()) {
            let Some(group) = group else {
                labels.push(None);
                continue;
            };
            let next = sizes.len() as u32;
            let label = *numbers.entry(group).or_insert(next);
            if label == next {
                sizes.push(0);
                known.push(match group {
                    Group::Found(_) => None,
                    Group::Known(set) => Some(set.to_vec()),
                });
                sums.resize(sums.len() + dim, 0.0);
            }
            labels.push(Some(label));
            sizes[label as usize] += 1;
            let sum = &mut sums[label as usize * dim..][..dim];
            sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let means = sums.iter().enumerate().map(|(at, sum)| (sum / sizes[at / dim] as f64) as f32).collect();
        Self { labels, sizes, means, known }
    }

    /// Whether a cluster may become the composition of these.
    pub(crate) fn may_become(&self, cluster: usize, members: &[u32]) -> bool {
        let union = |member: &u32| self.known[*member as usize].as_ref().is_some_and(|set| set.len() > 1);
        self.known[cluster].is_none() && !members.iter().any(union)
    }

    /// The mean of the examples of several clusters.
    pub(crate) fn mean(&self, clusters: impl Iterator<Item = usize>, dim: usize) -> Vec<f32> {
        let (mut sum, mut size) = (vec![0.0; dim], 0);
        for cluster in clusters {
            size += self.sizes[cluster];
            let mean = &self.means[cluster * dim..][..dim];
            sum.iter_mut().zip(mean).for_each(|(sum, &mean)| *sum += self.sizes[cluster] as f64 * f64::from(mean));
        }
        sum.iter().map(|sum| (sum / size as f64) as f32).collect()
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
        let found = Preliminary::new(Embeddings::new(&values, 2), &sets, None);
        assert_eq!(found.labels, [Some(0), Some(1), None, Some(0), Some(2)]);
        assert_eq!(found.sizes, [2, 1, 1]);
        assert_eq!(found.means, [2.0, 1.0, 0.0, 5.0, 9.0, 9.0]);
        assert_eq!(found.k(), 3);
        assert_eq!(found.mean([0, 2].into_iter(), 2), [13.0 / 3.0, 11.0 / 3.0]);
        assert_eq!(found.mean([1].into_iter(), 2), [0.0, 5.0]);
    }

    #[test]
    fn what_is_known_is_not_reassigned() {
        let seeds = Sets::from_iter([vec![0], vec![], vec![0, 1], vec![]]);
        let found = Preliminary::new(
            Embeddings::new(&[1.0, 2.0, 5.0, 9.0], 1),
            &Sets::singletons(&[3, 4, 5, 5]),
            Some(&seeds),
        );
        assert_eq!(found.known, [Some(vec![0]), None, Some(vec![0, 1])]);
        assert_eq!(found.means, [1.0, 2.0, 7.0]);
        assert!(found.may_become(1, &[0]) && !found.may_become(1, &[0, 2]) && !found.may_become(0, &[1]));
    }

    #[test]
    fn huge_examples_have_a_mean() {
        let found = Preliminary::new(Embeddings::new(&[f32::MAX; 4], 1), &Sets::singletons(&[3; 4]), None);
        assert_eq!(found.means, [f32::MAX]);
    }
}
