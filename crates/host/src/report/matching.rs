//! Which true singleton every found one stands for where unions are judged: as for the evaluator `unions`, they are matched
//! one to one so that they share as many examples as possible. So marks and scores on one page say the same.

use compflow_api::Sets;
use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

/// More steps than this take seconds, and are not taken for a picture.
const MOST_STEPS: usize = 1_000_000_000;

/// The best matching.
pub(crate) struct Matching {
    /// The found singletons, ascending.
    members: Vec<u32>,
    /// The true one of each, if it has one.
    partners: Vec<Option<u32>>,
}

impl Matching {
    /// `None` if there are too many singletons to be matched for a picture.
    pub(crate) fn best(found: &Sets, truth: &Sets) -> Option<Self> {
        let (members, classes) = (distinct(found), distinct(truth));
        // The algorithm wants no more rows than columns.
        let upright = members.len() <= classes.len();
        let (rows, columns) =
            if upright { (members.len(), classes.len()) } else { (classes.len(), members.len()) };
        if rows.saturating_mul(rows).saturating_mul(columns) > MOST_STEPS {
            return None;
        }
        let mut partners = vec![None; members.len()];
        if rows == 0 {
            return Some(Self { members, partners });
        }
        let mut overlaps = Matrix::new(rows, columns, 0i64);
        for (found, truth) in found.iter().zip(truth.iter()) {
            for member in found {
                for class in truth {
                    let (p, t) = (place(&members, *member), place(&classes, *class));
                    overlaps[if upright { (p, t) } else { (t, p) }] += 1;
                }
            }
        }
        let (_, column_of) = kuhn_munkres(&overlaps);
        for (row, column) in column_of.into_iter().enumerate() {
            let (p, t) = if upright { (row, column) } else { (column, row) };
            partners[p] = Some(classes[t]);
        }
        Some(Self { members, partners })
    }

    /// The true set that a found one stands for; `None` if one of its members stands for nothing.
    pub(crate) fn renamed(&self, set: &[u32]) -> Option<Vec<u32>> {
        let partner = |member: &u32| self.partners[self.members.binary_search(member).ok()?];
        let mut renamed = set.iter().map(partner).collect::<Option<Vec<u32>>>()?;
        renamed.sort_unstable();
        Some(renamed)
    }
}

/// The members that occur, ascending.
fn distinct(sets: &Sets) -> Vec<u32> {
    let mut members = sets.values().to_vec();
    members.sort_unstable();
    members.dedup();
    members
}

/// Where a member is among those that occur.
fn place(members: &[u32], member: u32) -> usize {
    members.partition_point(|other| *other < member)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singletons_are_matched_one_to_one_and_some_are_left() {
        let truth = Sets::from_iter([vec![4], vec![4], vec![4], vec![9], vec![4, 9]]);
        // Singletons 0 and 1 are both mostly 4, and 1 has more of it.
        let found = Sets::from_iter([vec![0], vec![1], vec![1], vec![2], vec![1, 2]]);
        let matching = Matching::best(&found, &truth).unwrap();
        assert_eq!(matching.renamed(&[2, 1]), Some(vec![4, 9]));
        assert_eq!((matching.renamed(&[0, 2]), matching.renamed(&[7])), (None, None));
        let back = Matching::best(&truth, &found).unwrap();
        assert_eq!(back.renamed(&[4, 9]), Some(vec![1, 2]));
    }

    #[test]
    fn nothing_stands_for_nothing_and_far_too_many_are_not_matched() {
        let none = Sets::from_iter([vec![], vec![]]);
        assert_eq!(Matching::best(&Sets::singletons(&[0, 1]), &none).unwrap().renamed(&[0, 1]), None);
        let many = Sets::singletons(&(0..1001).collect::<Vec<u32>>());
        assert!(Matching::best(&many, &many).is_none());
    }
}
