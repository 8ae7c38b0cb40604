//! What unions are composed from that a run has not found.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

use compflow_api::{Clustering, Embeddings, Sets, Singletons};
use compflow_kernels::counting;

/// Vectors before normalisation: those of singletons, or of their exemplars.
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// Row-major.
    pub(crate) vectors: Vec<f32>,
    /// The row of every singleton that has one.
    pub(crate) of: BTreeMap<u32, u32>,
}

impl Members {
    /// What a method says its singletons are.
    pub(crate) fn of_singletons(singletons: &Singletons) -> Self {
        Self { vectors: singletons.vectors.clone(), of: singletons.numbers.iter().copied().zip(0..).collect() }
    }

    /// What a clustering of these examples has: singletons, exemplars, or nothing.
    pub(super) fn of_clustering(clustering: &Clustering, examples: Embeddings<'_>) -> Self {
        let Clustering { clusters, exemplars, singletons, .. } = clustering;
        if !singletons.numbers.is_empty() {
            return Self::of_singletons(singletons);
        }
        let rows = exemplars_of(clusters, exemplars);
        let vectors = rows.values().flat_map(|row| examples.row(*row as usize)).copied().collect();
        Self { vectors, of: rows.into_keys().zip(0..).collect() }
    }

    /// How many sets of so many members there are; `None` if more than can be counted.
    pub(crate) fn count(&self, members: RangeInclusive<usize>) -> Option<u128> {
        counting::sets(self.of.len(), members)
    }

    /// All sets of so many members that are not known.
    pub(crate) fn unseen(&self, members: RangeInclusive<usize>, known: &HashSet<&[u32]>) -> Sets {
        let numbers: Vec<u32> = self.of.keys().copied().collect();
        let all = Sets::all_up_to(numbers.len(), *members.end());
        let wanted = all.iter().filter(|set| members.contains(&set.len()));
        let named = wanted.map(|set| set.iter().map(|&at| numbers[at as usize]).collect::<Vec<u32>>());
        named.filter(|set| !known.contains(&set[..])).collect()
    }

    /// Sets as the rows of their members, all of which have one.
    pub(crate) fn rows(&self, sets: &Sets) -> Sets {
        sets.iter().map(|set| set.iter().map(|member| self.of[member]).collect::<Vec<u32>>()).collect()
    }
}

/// The exemplar of every singleton: that of the cluster that it is alone in, or of the first that it is in.
pub(crate) fn exemplars_of(clusters: &Sets, exemplars: &[Vec<u32>]) -> BTreeMap<u32, u32> {
    let mut clusters: Vec<(&[u32], &Vec<u32>)> = clusters.iter().zip(exemplars).collect();
    clusters.sort_by_key(|(set, _)| set.len());
    let mut of = BTreeMap::new();
    for (member, row) in clusters.iter().flat_map(|(set, rows)| set.iter().zip(*rows)) {
        of.entry(*member).or_insert(*row);
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_not_composed_again() {
        let parts = Members { vectors: vec![0.0; 3], of: [(2, 1), (5, 0), (7, 2)].into() };
        let known: HashSet<&[u32]> = [&[2][..], &[2, 7]].into();
        let found = parts.unseen(1..=2, &known);
        assert_eq!(found, Sets::from_iter([vec![5], vec![7], vec![2, 5], vec![5, 7]]));
        assert_eq!(parts.unseen(2..=2, &known), Sets::from_iter([vec![2, 5], vec![5, 7]]));
        assert_eq!(parts.rows(&found), Sets::from_iter([vec![0], vec![2], vec![1, 0], vec![0, 2]]));
        assert_eq!(parts.count(2..=2), Some(3));
    }

    #[test]
    fn the_exemplar_of_a_cluster_of_its_own_comes_first() {
        let clusters = Sets::from_iter([vec![0, 1], vec![1]]);
        assert_eq!(exemplars_of(&clusters, &[vec![2, 0], vec![1]]), [(0, 2), (1, 1)].into());
    }
}
