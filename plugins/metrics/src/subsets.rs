//! Which of some distinct sets contain which: for every set, those among them that are subsets of it.
//!
//! The sets are sorted, so that those with a common beginning stand together, and a search for subsets follows
//! only the beginnings that some set has (a set-trie without the trie: Savnik 2013,
//! doi:10.1007/978-3-642-40511-2_10). A set of d members costs at most 2^d steps, and never more than there are
//! beginnings: large sets are no problem as long as they are few.

use compflow_api::{Result, Services};

/// For each set, the numbers of its subsets, itself among them.
pub(crate) struct Subsets {
    starts: Vec<usize>,
    numbers: Vec<u32>,
}

impl Subsets {
    /// Finds the subsets among `sets`, which are distinct. The empty set is one of every set.
    ///
    /// # Errors
    /// If cancelled.
    pub(crate) fn new(sets: &[&[u32]], services: &Services<'_>) -> Result<Self> {
        let mut sorted: Vec<(&[u32], u32)> = sets.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let mut subsets = Self { starts: vec![0], numbers: Vec::new() };
        let mut open = Vec::new();
        for set in sets {
            services.check_cancelled()?;
            let start = subsets.numbers.len();
            search(&sorted, set, &mut open, &mut subsets.numbers);
            subsets.numbers[start..].sort_unstable();
            subsets.starts.push(subsets.numbers.len());
        }
        Ok(subsets)
    }

    /// The subsets of a set, ascending.
    pub(crate) fn of(&self, set: u32) -> &[u32] {
        let set = set as usize;
        &self.numbers[self.starts[set]..self.starts[set + 1]]
    }
}

/// Sets that begin with the same `depth` members of the one searched for, and the members that may follow.
struct Open<'s, 'a> {
    sorted: &'s [(&'a [u32], u32)],
    depth: usize,
    members: &'a [u32],
}

/// Appends the numbers of all subsets of `set`. A stack instead of recursion, whose depth would be that of the
/// largest set.
fn search<'s, 'a>(
    sorted: &'s [(&'a [u32], u32)],
    set: &'a [u32],
    open: &mut Vec<Open<'s, 'a>>,
    found: &mut Vec<u32>,
) {
    open.push(Open { sorted, depth: 0, members: set });
    while let Some(Open { mut sorted, depth, members }) = open.pop() {
        // A set sorts before those that begin with it.
        if let Some(((first, number), rest)) = sorted.split_first()
            && first.len() == depth
        {
            found.push(*number);
            sorted = rest;
        }
        for (at, &member) in members.iter().enumerate() {
            let skipped = sorted.partition_point(|(set, _)| set[depth] < member);
            let end = skipped + sorted[skipped..].partition_point(|(set, _)| set[depth] == member);
            if skipped < end {
                open.push(Open { sorted: &sorted[skipped..end], depth: depth + 1, members: &members[at + 1..] });
            }
            sorted = &sorted[end..];
            if sorted.is_empty() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_what_comparing_all_sets_finds(
            sets in prop::collection::btree_set(prop::collection::btree_set(0..7u32, 0..=5), 0..40)
        ) {
            let sets: Vec<Vec<u32>> = sets.into_iter().map(|set| set.into_iter().collect()).collect();
            // Numbers that are not in the order of the sets.
            let slices: Vec<&[u32]> = sets.iter().rev().map(Vec::as_slice).collect();
            let subsets = Subsets::new(&slices, &Services::none()).unwrap();
            for (number, set) in slices.iter().enumerate() {
                let contained = |other: &&[u32]| other.iter().all(|member| set.contains(member));
                let expected: Vec<u32> =
                    (0..slices.len() as u32).filter(|&other| contained(&slices[other as usize])).collect();
                prop_assert_eq!(subsets.of(number as u32), expected);
            }
        }
    }

    #[test]
    fn a_set_of_many_members_is_no_problem() {
        let large: Vec<u32> = (0..200_000).collect();
        let subsets = Subsets::new(&[&large[1..], &large, &[5, 7]], &Services::none()).unwrap();
        assert_eq!(subsets.of(1), [0, 1, 2]);
    }
}
