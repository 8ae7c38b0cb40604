//! From memberships to sets: what `fcm` and `gmm` do with how much an example belongs to each cluster.
//!
//! An example belongs to all clusters in which its membership is strictly above a threshold. That is 1/(d+1) unless told
//! otherwise: no more than d memberships can be above it, so nothing has to be cut off. The authors of compositional
//! clustering have 1/k. If there is none, to the one with the largest membership; if there are more than the degree, to those with the
//! largest. Of equal memberships the first cluster's counts as larger. Memberships are compared as they are returned,
//! in f32, so that noise in the last digits of f64 does not decide between equal ones.

use std::collections::BTreeMap;

use compflow_kernels::equals::distinct;
use compflow_kernels::weights::weight;

use compflow_api::{Clustering, Diagnostics, Level, Normalize, Services, Sets, Singletons, Task};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What memberships have to be above.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Threshold {
    /// This share.
    Above(#[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))] f64),
    /// A rule.
    Rule(ThresholdRule),
}

/// What memberships have to be above, by the number of clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ThresholdRule {
    /// What each would be if all were equal.
    #[serde(rename = "1/k")]
    EqualShare,
}

/// What other libraries' users have.
#[cfg(test)]
pub(crate) const EQUAL_SHARE: Option<Threshold> = Some(Threshold::Rule(ThresholdRule::EqualShare));

/// The set of every example: `memberships` holds `k` numbers for each.
pub(crate) fn sets(memberships: &[f32], k: usize, threshold: Option<Threshold>, degree: usize) -> Sets {
    let threshold = match threshold {
        None => 1.0 / (degree + 1) as f64,
        Some(Threshold::Above(share)) => share,
        Some(Threshold::Rule(ThresholdRule::EqualShare)) => 1.0 / k as f64,
    } as f32;
    let rows = memberships.len() / k;
    let mut sets = Sets::with_capacity(rows, rows);
    let mut set: Vec<u32> = Vec::with_capacity(k);
    for row in memberships.chunks_exact(k) {
        let larger = |a: &u32, b: &u32| row[*b as usize].total_cmp(&row[*a as usize]).then(a.cmp(b));
        set.clear();
        set.extend((0..k as u32).filter(|&cluster| row[cluster as usize] > threshold));
        if set.is_empty() {
            set.extend((0..k as u32).min_by(larger));
        }
        if set.len() > degree {
            set.sort_unstable_by(larger);
            set.truncate(degree);
        }
        sets.push(&set);
    }
    sets
}

/// The clustering that memberships stand for. Its clusters are the singletons that occur, alone or in larger sets, with
/// the method's `centres` as centroids, and after them the larger sets that occur, by size and then in lexicographic
/// order, each with the weighted mean of the points that were given to it. Warns if some of the `k` singletons do not occur, and
/// if all examples have the same set although they differ, which `collapse` explains.
pub(crate) fn clustering(
    task: &Task<'_>,
    memberships: Vec<f32>,
    centres: &[f64],
    threshold: Option<Threshold>,
    diagnostics: Diagnostics,
    services: &Services<'_>,
    collapse: impl FnOnce() -> String,
) -> Clustering {
    let dim = task.embeddings.dim();
    let k = centres.len() / dim;
    let assignments = sets(&memberships, k, threshold, task.degree);

    // By size and members: how many points, and their sum.
    let mut unions = BTreeMap::new();
    for (row, (set, point)) in assignments.iter().zip(task.points().chunks_exact(dim)).enumerate() {
        if set.len() > 1 {
            // A union of which nobody counts has a mean all the same.
            let weight = weight(task.weights, row).max(1e-100);
            let (count, sum) = unions.entry((set.len(), set)).or_insert_with(|| (0.0, vec![0.0; dim]));
            *count += weight;
            sum.iter_mut().zip(point).for_each(|(sum, &value)| *sum += weight * f64::from(value));
        }
    }
    let mut occurs = vec![false; k];
    assignments.values().iter().for_each(|&cluster| occurs[cluster as usize] = true);
    let used: Vec<u32> = (0..).zip(&occurs).filter(|(_, occurs)| **occurs).map(|(cluster, _)| cluster).collect();
    let mut clusters = Sets::singletons(&used);
    let in_use = used.iter().flat_map(|&cluster| &centres[cluster as usize * dim..][..dim]);
    let mut centroids: Vec<f32> = in_use.map(|&value| value as f32).collect();
    let same = (1..assignments.len()).all(|row| assignments[row] == assignments[0]);
    if k > 1 && same && distinct(&task.points(), dim) > 1 {
        services.log(Level::Warn, format!("all examples are in the same of {k} clusters: {}", collapse()));
    } else if used.len() < k {
        let empty = k - used.len();
        services.log(Level::Warn, format!("{empty} of {k} clusters are empty and left out"));
    }
    for ((_, set), (count, sum)) in &unions {
        clusters.push(set);
        centroids.extend(sum.iter().map(|sum| (sum / count) as f32));
    }
    drop(unions);
    // In a space that normalises, centres are found after that: there are none from before it.
    let singletons = match task.space.normalize {
        Normalize::None => Singletons { vectors: centroids[..used.len() * dim].to_vec(), numbers: used },
        Normalize::L2 => Singletons::default(),
    };
    Clustering { assignments, clusters, centroids, memberships, singletons, diagnostics, ..Clustering::default() }
}

#[cfg(test)]
mod tests {
    use compflow_api::Embeddings;
    use compflow_kernels::testing::watcher::Watcher;

    use super::*;

    fn above(share: f64) -> Option<Threshold> {
        Some(Threshold::Above(share))
    }

    fn set(row: &[f32], threshold: Option<Threshold>, degree: usize) -> Vec<u32> {
        sets(row, row.len(), threshold, degree)[0].to_vec()
    }

    #[test]
    fn all_memberships_above_the_threshold_count() {
        assert_eq!(set(&[0.1, 0.5, 0.4], EQUAL_SHARE, 3), [1, 2]);
        // Above 1/4 of any number.
        assert_eq!(set(&[0.1, 0.5, 0.26, 0.07, 0.07], None, 3), [1, 2]);
        assert_eq!(set(&[0.1, 0.5, 0.26, 0.07, 0.07], None, 2), [1]);
        assert_eq!(set(&[0.1, 0.5, 0.4], above(0.05), 3), [0, 1, 2]);
        assert_eq!(set(&[0.1, 0.5, 0.4], above(0.45), 3), [1]);
    }

    #[test]
    fn a_membership_equal_to_the_threshold_does_not_count() {
        assert_eq!(set(&[0.25, 0.25, 0.5], above(0.25), 3), [2]);
        assert_eq!(set(&[0.5, 0.5], EQUAL_SHARE, 2), [0]);
    }

    #[test]
    fn without_any_above_it_the_largest_counts_and_of_equal_ones_the_first() {
        assert_eq!(set(&[0.2, 0.5, 0.3], above(0.9), 3), [1]);
        assert_eq!(set(&[0.2, 0.4, 0.4], above(0.9), 3), [1]);
    }

    #[test]
    fn of_more_than_the_degree_the_largest_are_kept_in_order_and_of_equal_ones_the_first() {
        assert_eq!(set(&[0.2, 0.15, 0.4, 0.25], above(0.1), 2), [2, 3]);
        assert_eq!(set(&[0.2, 0.4, 0.2, 0.2], above(0.1), 2), [0, 1]);
        assert_eq!(set(&[0.25; 4], above(0.1), 1), [0]);
    }

    #[test]
    fn empty_clusters_are_left_out_and_collapse_is_said() {
        let host = Watcher::new(usize::MAX);
        let services = Services { host: &host, ..Services::none() };
        let task = Task::new(Embeddings::new(&[1.0, 2.0, 2.0], 1));
        let with = |memberships: &[f32]| {
            let (centres, why) = ([1.0, 7.0, 2.0], || "why".to_owned());
            let found =
                clustering(&task, memberships.to_vec(), &centres, None, Diagnostics::default(), &services, why);
            found.check(&task).unwrap();
            found
        };
        let found = with(&[0.9, 0.0, 0.1, 0.1, 0.0, 0.9, 0.1, 0.0, 0.9]);
        assert_eq!((found.clusters, found.centroids), (Sets::singletons(&[0, 2]), vec![1.0, 2.0]));
        assert_eq!(found.singletons, Singletons { numbers: vec![0, 2], vectors: vec![1.0, 2.0] });
        with(&[0.9, 0.0, 0.1, 0.9, 0.0, 0.1, 0.9, 0.0, 0.1]);
        let expected =
            ["1 of 3 clusters are empty and left out", "all examples are in the same of 3 clusters: why"];
        assert_eq!(host.warnings(), expected);
    }

    #[test]
    fn clusters_are_all_singletons_and_the_unions_that_occur_with_the_means_of_their_points() {
        let values = [0.0, 10.0, 4.0, 6.0, 7.0];
        let mut task = Task::new(Embeddings::new(&values, 1));
        task.degree = 2;
        #[rustfmt::skip]
        let memberships = vec![
            1.0, 0.0, 0.0,
            0.0, 0.0, 1.0,
            0.5, 0.0, 0.5,
            0.4, 0.0, 0.6,
            0.0, 0.6, 0.4,
        ];
        let services = Services::none();
        let found =
            clustering(&task, memberships, &[0.5, 5.5, 9.5], None, Diagnostics::default(), &services, String::new);
        found.check(&task).unwrap();
        assert_eq!(found.assignments, Sets::from_iter([vec![0], vec![2], vec![0, 2], vec![0, 2], vec![1, 2]]));
        assert_eq!(found.clusters, Sets::from_iter([vec![0], vec![1], vec![2], vec![0, 2], vec![1, 2]]));
        assert_eq!(found.centroids, [0.5, 5.5, 9.5, 5.0, 7.0]);
    }
}
