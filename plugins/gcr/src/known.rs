//! What clusters become of which some examples have known sets.
//!
//! A base need know nothing of seeds. So an example with a known set leaves its cluster for that of all examples with the
//! same one; and where a cluster has such examples, the others go with the majority of them, as it was one cluster to the
//! base, unless another cluster has more examples of that set: then it is at home there, and these were misplaced. Clusters with the same name are one from then on. What is known of a cluster is no longer up to reassignment: a
//! named singleton stays one, and a known union is neither reassigned nor a member of another one.
//!
//! Names that occur in known unions only are given to those of the other clusters whose compositions come nearest to the
//! known unions, all of them together:
//!
//! ```text
//! min over clusters j of names of Σ_η N_η ‖m_η - g({m_j : names in η})‖²    over known unions η
//! ```

use std::collections::{BTreeMap, HashMap};

use compflow_api::{Embeddings, Result, Services, Sets, Task};
use compflow_kernels::counting;
use compflow_kernels::known::identify;
use compflow_kernels::pairs::squared;
use compflow_kernels::weights::weight;

use crate::preliminary::Preliminary;

/// More compositions than this are not looked at for names.
const MOST: usize = 1 << 18;

/// What examples are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Group<'a> {
    /// What the base found.
    Found(&'a [u32]),
    /// A known set.
    Known(&'a [u32]),
}

/// How many examples of a cluster are known to be each set, by their weights; by its size, then in order.
type Votes<'a> = BTreeMap<(usize, &'a [u32]), f64>;

/// The group of every example; none if it is in no cluster. `seeds` has the known sets, empty where there is none.
pub(crate) fn groups<'a>(
    assignments: &'a Sets,
    weights: Option<&[f32]>,
    seeds: Option<&'a Sets>,
) -> Vec<Option<Group<'a>>> {
    let found = |set: &'a [u32]| (!set.is_empty()).then_some(Group::Found(set));
    let Some(seeds) = seeds else { return assignments.iter().map(found).collect() };
    let mut votes: HashMap<&[u32], Votes<'_>> = HashMap::new();
    for (row, (set, seed)) in assignments.iter().zip(seeds.iter()).enumerate() {
        let weight = weight(weights, row);
        if !seed.is_empty() && weight > 0.0 {
            *votes.entry(set).or_default().entry((seed.len(), seed)).or_default() += weight;
        }
    }
    // Where each known set is at home: so many of its examples has the cluster that has the most.
    let mut most: HashMap<&[u32], f64> = HashMap::new();
    for (&(_, seed), &count) in votes.values().flatten() {
        let most = most.entry(seed).or_default();
        *most = count.max(*most);
    }
    // Of as many votes, the smaller set, then the first.
    let majority = |votes: &Votes<'a>| -> Option<&'a [u32]> {
        let (&(_, seed), count) = votes.iter().min_by(|a, b| b.1.total_cmp(a.1))?;
        (most.get(seed) == Some(count)).then_some(seed)
    };
    let majorities: HashMap<&[u32], &[u32]> =
        votes.iter().filter_map(|(set, votes)| Some((*set, majority(votes)?))).collect();
    let group = |(set, seed): (&'a [u32], &'a [u32])| match (seed, set) {
        ([], []) => None,
        ([], set) => majorities.get(set).map(|seed| Group::Known(seed)).or(found(set)),
        (seed, _) => Some(Group::Known(seed)),
    };
    assignments.iter().zip(seeds.iter()).map(group).collect()
}

/// Gives names that are known in unions only to clusters of which nothing is known.
///
/// # Errors
/// Those of the composer.
pub(crate) fn find_names(clusters: &mut Preliminary, task: &Task<'_>, services: &Services<'_>) -> Result<()> {
    let mut settled: Vec<Option<u32>> = vec![None; task.named()];
    for (at, known) in (0..).zip(&clusters.known) {
        if let Some([name]) = known.as_deref() {
            settled[*name as usize] = Some(at);
        }
    }
    let of_unions = clusters.known.iter().enumerate().filter_map(|(at, known)| Some((at, known.as_deref()?)));
    let unions: Vec<(usize, &[u32])> = of_unions.filter(|(_, set)| set.len() > 1).collect();
    let most = unions.iter().map(|(_, set)| set.len()).max().unwrap_or(0);
    let free: Vec<u32> =
        (0..).zip(&clusters.known).filter(|(_, known)| known.is_none()).map(|(at, _)| at).collect();
    let few = counting::compositions(clusters.k(), most).is_ok_and(|count| count <= MOST);
    if task.composer.is_none() || settled.iter().all(Option::is_some) || free.is_empty() || !few {
        return Ok(());
    }
    let dim = task.embeddings.dim();
    let means = Embeddings::new(&clusters.means, dim);
    let sets = Sets::all_up_to(clusters.k(), most);
    let (composed, points) = (task.compose_sets(means, &sets, services)?, task.space.points(means));
    let numbers: HashMap<&[u32], usize> = sets.iter().zip(0..).collect();
    let cost = |at: usize, set: &[u32]| -> f64 {
        let (union, number) = (unions[at].0, numbers.get(set).copied().unwrap_or_default());
        let [mean, composed] = [&points[union * dim..][..dim], &composed[number * dim..][..dim]];
        clusters.sizes[union] * squared(mean, composed)
    };
    let known: Vec<&[u32]> = unions.iter().map(|(_, set)| *set).collect();
    let found = identify(&known, &settled, &free, cost);
    for (name, cluster) in (0..).zip(&found) {
        if let Some(cluster) = cluster {
            clusters.known[*cluster as usize] = Some(vec![name]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_go_with_the_majority_of_what_is_known_of_them() {
        let assignments =
            Sets::from_iter([vec![7], vec![7], vec![7], vec![7], vec![8], vec![8], vec![], vec![], vec![9]]);
        let seeds =
            Sets::from_iter([vec![0, 1], vec![1], vec![1], vec![], vec![0, 1], vec![], vec![], vec![0], vec![]]);
        use Group::{Found, Known};
        let expected = [
            Some(Known(&[0, 1])),
            Some(Known(&[1])),
            Some(Known(&[1])),
            Some(Known(&[1])),
            Some(Known(&[0, 1])),
            Some(Known(&[0, 1])),
            None,
            Some(Known(&[0])),
            Some(Found(&[9])),
        ];
        assert_eq!(groups(&assignments, None, Some(&seeds)), expected);
        let found: Vec<_> = assignments.iter().map(|set| (!set.is_empty()).then_some(Found(set))).collect();
        assert_eq!(groups(&assignments, None, None), found);
    }

    #[test]
    fn misplaced_examples_take_nobody_along() {
        let assignments = Sets::singletons(&[5, 5, 5, 6, 6]);
        let seeds = Sets::from_iter([vec![0], vec![0], vec![], vec![0], vec![]]);
        let found = groups(&assignments, None, Some(&seeds));
        assert_eq!(
            (found[2], found[3], found[4]),
            (Some(Group::Known(&[0])), Some(Group::Known(&[0])), Some(Group::Found(&[6])))
        );
    }

    #[test]
    fn of_as_many_votes_the_smaller_set_wins() {
        let assignments = Sets::singletons(&[5, 5, 5]);
        let seeds = Sets::from_iter([vec![0, 1], vec![2], vec![]]);
        assert_eq!(groups(&assignments, None, Some(&seeds))[2], Some(Group::Known(&[2])));
        // A vote is one by weight.
        assert_eq!(groups(&assignments, Some(&[2.0, 1.0, 1.0]), Some(&seeds))[2], Some(Group::Known(&[0, 1])));
    }
}
