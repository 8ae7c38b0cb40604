//! Greedy reassignment: the paper's listing.

use crate::compositions::Near;
use crate::threshold::Limit;

/// What becomes of a cluster that would make another one both a composition and a member of one.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// It and all that follow stay singletons, as in the paper's listing.
    Stop,
    /// It stays a singleton, and those that follow are still looked at.
    #[default]
    Skip,
}

/// For every cluster the composition that it becomes; none if it stays a singleton. Clusters are looked at in the order
/// of their distances, those equally far by number. `members` says which clusters a composition consists of.
pub(crate) fn reassign<'s>(
    nearest: &[Option<Near>],
    members: impl Fn(usize) -> &'s [u32],
    limit: Limit,
    on_conflict: OnConflict,
) -> Vec<Option<Near>> {
    let mut order: Vec<(usize, Near)> =
        nearest.iter().enumerate().filter_map(|(cluster, near)| Some((cluster, (*near)?))).collect();
    order.sort_by(|(_, a), (_, b)| a.distance.total_cmp(&b.distance));
    let mut chosen: Vec<Option<Near>> = vec![None; nearest.len()];
    let mut is_member = vec![false; nearest.len()];
    for (cluster, near) in order {
        if !limit.admits(near.distance) {
            break;
        }
        let members = members(near.set);
        if is_member[cluster] || members.iter().any(|&member| chosen[member as usize].is_some()) {
            match on_conflict {
                OnConflict::Stop => break,
                OnConflict::Skip => continue,
            }
        }
        chosen[cluster] = Some(near);
        members.iter().for_each(|&member| is_member[member as usize] = true);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use compflow_api::Sets;
    use proptest::prelude::*;

    use super::*;

    const FAR: Limit = Limit { threshold: 9.0, inclusive: false };

    fn near(set: usize, distance: f64) -> Option<Near> {
        Some(Near { set, distance })
    }

    fn chosen(nearest: &[Option<Near>], sets: &Sets, limit: Limit, on_conflict: OnConflict) -> Vec<Option<usize>> {
        let found = reassign(nearest, |set| &sets[set], limit, on_conflict);
        found.into_iter().map(|near| Some(near?.set)).collect()
    }

    #[test]
    fn the_first_conflict_stops_or_is_skipped() {
        // By distance: 3 = {0, 1}, then 0 = {1, 2} although 0 is a member, then 4 = {1, 2}.
        let sets = Sets::from_iter([[0, 1], [1, 2]]);
        let nearest = [near(1, 0.2), near(0, 5.0), near(0, 6.0), near(0, 0.1), near(1, 0.3)];
        let stopped = chosen(&nearest, &sets, FAR, OnConflict::Stop);
        assert_eq!(stopped, [None, None, None, Some(0), None]);
        // 2 = {0, 1} comes after it has become a member.
        let skipped = chosen(&nearest, &sets, FAR, OnConflict::Skip);
        assert_eq!(skipped, [None, None, None, Some(0), Some(1)]);
    }

    #[test]
    fn what_has_become_a_composition_is_no_member() {
        // 2 = {0, 1}, then 3 = {1, 2}.
        let sets = Sets::from_iter([[0, 1], [1, 2]]);
        let nearest = [None, None, near(0, 0.1), near(1, 0.2)];
        for on_conflict in [OnConflict::Stop, OnConflict::Skip] {
            assert_eq!(chosen(&nearest, &sets, FAR, on_conflict), [None, None, Some(0), None]);
        }
    }

    #[test]
    fn two_clusters_may_become_the_same_composition_and_the_threshold_ends_it() {
        let sets = Sets::from_iter([[0, 1]]);
        let nearest = [None, None, near(0, 0.2), near(0, 0.1), near(0, 0.3)];
        let limit = |inclusive| Limit { threshold: 0.3, inclusive };
        assert_eq!(chosen(&nearest, &sets, limit(false), OnConflict::Stop), [None, None, Some(0), Some(0), None]);
        assert_eq!(chosen(&nearest, &sets, limit(true), OnConflict::Stop)[4], Some(0));
    }

    proptest! {
        #[test]
        fn members_and_compositions_never_meet(
            picks in prop::collection::vec((0usize..1000, 0.0..1.0), 3..12),
            degree in 2usize..4,
            skip: bool,
        ) {
            let k = picks.len();
            let sets = Sets::all_up_to(k, degree);
            let nearest: Vec<Option<Near>> = picks.iter().enumerate().map(|(cluster, (pick, distance))| {
                let others: Vec<usize> = (k..sets.len()).filter(|&set| !sets[set].contains(&(cluster as u32))).collect();
                Some(Near { set: *others.get(pick % others.len().max(1))?, distance: *distance })
            }).collect();
            let on_conflict = if skip { OnConflict::Skip } else { OnConflict::Stop };
            let found = chosen(&nearest, &sets, Limit { threshold: 0.8, inclusive: false }, on_conflict);
            for set in found.iter().flatten() {
                prop_assert!(sets[*set].iter().all(|&member| found[member as usize].is_none()));
            }
        }
    }
}
