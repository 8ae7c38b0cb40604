//! One numbering of clusters for all that say the same.

use std::collections::{HashMap, HashSet};

use compflow_api::{Clustering, Densities, Sets, Singletons};

/// Renumbers the singletons: first those below `named`, which have the numbers that the user's names have; then in the
/// order of the first example that belongs to one alone, then those that occur only in larger sets, then the rest, among
/// themselves as the method counts them. Clusters are listed by size of their set, then in order.
pub(crate) fn canonical(mut clustering: Clustering, named: usize) -> Clustering {
    let mut order: Vec<u32> = (0..named as u32).collect();
    let alone = clustering.assignments.iter().filter(|set| set.len() == 1);
    let others = clustering.assignments.iter().filter(|set| set.len() > 1);
    let mut seen: HashSet<u32> = order.iter().copied().collect();
    let unseen = std::iter::once(&clustering.singletons.numbers[..]);
    let likely = clustering.densities.sets.iter();
    for set in alone.chain(others).chain(clustering.clusters.iter()).chain(unseen).chain(likely) {
        order.extend(set.iter().filter(|member| seen.insert(**member)));
    }
    let numbers: HashMap<u32, u32> = order.iter().copied().zip(0..).collect();
    let renumber = |sets: &Sets| -> Sets {
        let mut renumbered = Sets::with_capacity(sets.len(), sets.values().len());
        let mut set = Vec::new();
        for members in sets.iter() {
            set.clear();
            set.extend(members.iter().map(|member| numbers[member]));
            renumbered.push(&set);
        }
        renumbered
    };
    clustering.assignments = renumber(&clustering.assignments);

    let dim = clustering.centroids.len().checked_div(clustering.clusters.len()).unwrap_or(0);
    let renumbered = renumber(&clustering.clusters);
    let mut by_set: Vec<usize> = (0..renumbered.len()).collect();
    by_set.sort_by_key(|&at| (renumbered[at].len(), renumbered[at].to_vec()));
    // Exemplars stand in the order of the members, which the new numbers may have changed.
    clustering.exemplars = if clustering.exemplars.is_empty() {
        Vec::new()
    } else {
        by_set
            .iter()
            .map(|&at| {
                let mut pairs: Vec<(u32, u32)> = clustering.clusters[at]
                    .iter()
                    .zip(&clustering.exemplars[at])
                    .map(|(member, exemplar)| (numbers[member], *exemplar))
                    .collect();
                pairs.sort_unstable();
                pairs.into_iter().map(|(_, exemplar)| exemplar).collect()
            })
            .collect()
    };
    clustering.centroids =
        by_set.iter().flat_map(|&at| clustering.centroids[at * dim..][..dim].to_vec()).collect();
    clustering.clusters = by_set.iter().map(|&at| &renumbered[at]).collect();

    let Singletons { numbers: old, vectors } = std::mem::take(&mut clustering.singletons);
    let dim = vectors.len().checked_div(old.len()).unwrap_or(0);
    let mut by_number: Vec<usize> = (0..old.len()).collect();
    by_number.sort_by_key(|&at| numbers[&old[at]]);
    clustering.singletons = Singletons {
        numbers: by_number.iter().map(|&at| numbers[&old[at]]).collect(),
        vectors: by_number.iter().flat_map(|&at| &vectors[at * dim..][..dim]).copied().collect(),
    };

    let Densities { sets, centres, offsets, factor_of, factors } = std::mem::take(&mut clustering.densities);
    let dim = centres.len().checked_div(sets.len()).unwrap_or(0);
    let renumbered = renumber(&sets);
    let mut by_set: Vec<usize> = (0..renumbered.len()).collect();
    by_set.sort_by_key(|&at| (renumbered[at].len(), renumbered[at].to_vec()));
    clustering.densities = Densities {
        sets: by_set.iter().map(|&at| &renumbered[at]).collect(),
        centres: by_set.iter().flat_map(|&at| &centres[at * dim..][..dim]).copied().collect(),
        offsets: by_set.iter().map(|&at| offsets[at]).collect(),
        factor_of: by_set.iter().map(|&at| factor_of[at]).collect(),
        factors,
    };

    let width = clustering.memberships.len().checked_div(clustering.assignments.len()).unwrap_or(0);
    if width > 0 {
        order.extend((0..width as u32).filter(|member| !seen.contains(member)));
        let rows = clustering.memberships.chunks_exact(width);
        // Nothing belongs to a name that the method has no singleton for.
        let of = |row: &[f32], member: u32| row.get(member as usize).copied().unwrap_or(0.0);
        clustering.memberships = rows.flat_map(|row| order.iter().map(move |member| of(row, *member))).collect();
    }
    clustering
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singletons_are_numbered_by_first_appearance_and_everything_follows() {
        let clustering = Clustering {
            assignments: Sets::from_iter([vec![5, 9], vec![9], vec![5], vec![9]]),
            clusters: Sets::from_iter([vec![5], vec![9], vec![5, 9], vec![7]]),
            exemplars: vec![vec![2], vec![1], vec![2, 1], vec![3]],
            centroids: vec![5.0, 9.0, 59.0, 7.0],
            singletons: Singletons { numbers: vec![5, 7, 9, 8], vectors: vec![0.5, 0.7, 0.9, 0.8] },
            densities: Densities {
                sets: Sets::from_iter([vec![5], vec![9], vec![5, 9], vec![7], vec![]]),
                centres: vec![5.0, 9.0, 59.0, 7.0, 1.0],
                offsets: vec![-5.0, -9.0, -59.0, -7.0, -1.0],
                factor_of: vec![0, 0, 0, 0, 1],
                factors: vec![2.0, 3.0],
            },
            ..Clustering::default()
        };
        let canonical = canonical(clustering, 0);
        assert_eq!(canonical.assignments, Sets::from_iter([vec![0, 1], vec![0], vec![1], vec![0]]));
        assert_eq!(canonical.clusters, Sets::from_iter([vec![0], vec![1], vec![2], vec![0, 1]]));
        assert_eq!(canonical.exemplars, [vec![1], vec![2], vec![3], vec![1, 2]]);
        assert_eq!(canonical.centroids, [9.0, 5.0, 7.0, 59.0]);
        let singletons = Singletons { numbers: vec![0, 1, 2, 3], vectors: vec![0.9, 0.5, 0.7, 0.8] };
        assert_eq!(canonical.singletons, singletons);
        let densities = canonical.densities;
        assert_eq!(densities.sets, Sets::from_iter([vec![], vec![0], vec![1], vec![2], vec![0, 1]]));
        assert_eq!(densities.centres, [1.0, 9.0, 5.0, 7.0, 59.0]);
        assert_eq!(densities.offsets, [-1.0, -9.0, -5.0, -7.0, -59.0]);
        assert_eq!((densities.factor_of, densities.factors), (vec![1, 0, 0, 0, 0], vec![2.0, 3.0]));
    }

    #[test]
    fn any_numbering_gives_the_same_canonical_one() {
        let named = |a, b, c| Clustering::from_labels(&[a, b, a, c, b]);
        assert_eq!(canonical(named(3, 1, 2), 0).assignments, canonical(named(0, 9, 4), 0).assignments);
    }

    #[test]
    fn singletons_with_names_keep_their_numbers() {
        let found = canonical(Clustering::from_labels(&[7, 1, 5, 0, 7]), 2);
        assert_eq!(found.assignments, Sets::singletons(&[2, 1, 3, 0, 2]));
        assert_eq!(found.clusters, Sets::singletons(&[0, 1, 2, 3]));
    }

    #[test]
    fn memberships_are_reordered_with_the_singletons() {
        let mut clustering = Clustering::from_labels(&[1, 0]);
        clustering.memberships = vec![0.1, 0.9, 0.8, 0.2];
        assert_eq!(canonical(clustering, 0).memberships, [0.9, 0.1, 0.2, 0.8]);
    }

    #[test]
    fn nothing_belongs_to_names_that_the_method_knows_nothing_of() {
        let mut clustering = Clustering::from_labels(&[1, 0]);
        clustering.memberships = vec![0.1, 0.9, 0.8, 0.2];
        assert_eq!(canonical(clustering, 3).memberships, [0.1, 0.9, 0.0, 0.8, 0.2, 0.0]);
    }
}
