//! Which colour a cluster has: that of the true set that most of its examples have, so that pictures of different
//! methods can be compared. The colour of a union is the mixture of its members'.

use std::collections::HashMap;

use compflow_api::Sets;

use super::matching::Matching;

/// Red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Colour([u8; 3]);

/// Told apart on white and on black.
const PALETTE: [Colour; 10] = [
    Colour([0x42, 0x69, 0xd0]),
    Colour([0xff, 0x72, 0x5c]),
    Colour([0xef, 0xb1, 0x18]),
    Colour([0x3c, 0xa9, 0x51]),
    Colour([0xa4, 0x63, 0xf2]),
    Colour([0x4f, 0xb8, 0xd6]),
    Colour([0xff, 0x8a, 0xb7]),
    Colour([0x9c, 0x6b, 0x4e]),
    Colour([0x94, 0x98, 0xa0]),
    Colour([0x0f, 0x9b, 0x8e]),
];

impl Colour {
    /// The colour of the thing with this number.
    pub(crate) fn of(number: usize) -> Self {
        PALETTE[number % PALETTE.len()]
    }

    fn mixed(colours: impl Iterator<Item = Self> + Clone) -> Self {
        let count = colours.clone().count().max(1) as u32;
        Self(
            [0, 1, 2].map(|at| (colours.clone().map(|colour| u32::from(colour.0[at])).sum::<u32>() / count) as u8),
        )
    }

    /// The same a bit darker or lighter, for the second and further clusters of one kind.
    fn shaded(self, rank: usize) -> Self {
        let towards = [255.0, 0.0, 255.0, 0.0][rank.saturating_sub(1) % 4];
        let much = [0.0, 0.35, 0.35, 0.6, 0.6][rank.min(4)];
        Self(self.0.map(|value| (f64::from(value) + much * (towards - f64::from(value))) as u8))
    }

    pub(crate) fn hex(self) -> String {
        let [red, green, blue] = self.0;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

/// The true set that most examples of each cluster have.
pub(crate) struct Majorities {
    of_set: HashMap<Vec<u32>, Vec<u32>>,
    of_singleton: HashMap<u32, Vec<u32>>,
    /// `None` if nothing is to be judged, or there is too much.
    matching: Option<Matching>,
}

impl Majorities {
    pub(crate) fn new(found: &Sets, truth: &Sets) -> Self {
        let mut sets: HashMap<Vec<u32>, HashMap<&[u32], usize>> = HashMap::new();
        let mut members: HashMap<u32, HashMap<&[u32], usize>> = HashMap::new();
        for (set, truth) in found.iter().zip(truth.iter()) {
            *sets.entry(set.to_vec()).or_default().entry(truth).or_default() += 1;
            for member in set {
                *members.entry(*member).or_default().entry(truth).or_default() += 1;
            }
        }
        let most = |counts: &HashMap<&[u32], usize>| -> Vec<u32> {
            // The first of equals.
            let best = counts.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.cmp(a.0)));
            best.map_or_else(Vec::new, |(set, _)| set.to_vec())
        };
        let of_set: HashMap<Vec<u32>, Vec<u32>> =
            sets.iter().map(|(set, counts)| (set.clone(), most(counts))).collect();
        // What a singleton stands for is told by the examples that belong to it alone, if there are any.
        let of_singleton = members
            .iter()
            .map(|(member, counts)| (*member, of_set.get(&[*member][..]).cloned().unwrap_or_else(|| most(counts))))
            .collect();
        let has_unions = |sets: &Sets| sets.iter().any(|set| set.len() > 1);
        let judged = has_unions(found) && has_unions(truth);
        let matching = if judged { Matching::best(found, truth) } else { None };
        Self { of_set, of_singleton, matching }
    }

    pub(crate) fn of_set(&self, set: &[u32]) -> &[u32] {
        self.of_set.get(set).map_or(&[], Vec::as_slice)
    }

    fn of_singleton(&self, member: u32) -> &[u32] {
        self.of_singleton.get(&member).map_or(&[], Vec::as_slice)
    }

    /// Whether most examples of a composition truly have the union of what its members are matched with; `None` if that cannot
    /// be said. What members are mostly would not do: two with the same majority, or one with none, make no union.
    pub(crate) fn is_right(&self, set: &[u32]) -> Option<bool> {
        let matching = self.matching.as_ref()?;
        Some(set.len() > 1 && matching.renamed(set).is_some_and(|union| self.of_set(set) == union))
    }
}

/// The colours of a clustering's singletons, by their number. Without majorities they are told by number.
pub(crate) fn of_singletons(found: &Sets, majorities: Option<&Majorities>) -> Vec<Colour> {
    let count = found.values().iter().max().map_or(0, |most| *most as usize + 1);
    let Some(majorities) = majorities else { return (0..count).map(Colour::of).collect() };
    let mut ranks: HashMap<&[u32], usize> = HashMap::new();
    (0..count as u32)
        .map(|member| {
            let majority = majorities.of_singleton(member);
            let rank = ranks.entry(majority).or_default();
            let colour = Colour::mixed(majority.iter().map(|class| Colour::of(*class as usize))).shaded(*rank);
            *rank += 1;
            colour
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_the_colour_of_its_majority() {
        let truth = Sets::from_iter([vec![0], vec![0], vec![1], vec![0, 1], vec![0, 1]]);
        // Singleton 0 is mostly class 1, singleton 1 is class 0, their union is right.
        let found = Sets::from_iter([vec![1], vec![1], vec![0], vec![0, 1], vec![0, 1]]);
        let majorities = Majorities::new(&found, &truth);
        assert_eq!(of_singletons(&found, Some(&majorities)), [Colour::of(1), Colour::of(0)]);
        assert_eq!(majorities.is_right(&[0, 1]), Some(true));
        assert_eq!(majorities.of_set(&[0, 1]), [0, 1]);
    }

    #[test]
    fn a_union_taken_for_a_cluster_has_the_mixture() {
        let truth = Sets::from_iter([vec![0], vec![1], vec![0, 1]]);
        let found = Sets::singletons(&[0, 1, 2]);
        let colours = of_singletons(&found, Some(&Majorities::new(&found, &truth)));
        assert_eq!(colours[2], Colour::mixed([Colour::of(0), Colour::of(1)].into_iter()));
    }

    #[test]
    fn clusters_of_one_kind_are_told_apart() {
        let truth = Sets::singletons(&[0, 0, 0]);
        let found = Sets::singletons(&[0, 1, 2]);
        let colours = of_singletons(&found, Some(&Majorities::new(&found, &truth)));
        assert!(colours[0] != colours[1] && colours[1] != colours[2] && colours[0] != colours[2]);
        assert_eq!(colours[0].hex(), "#4269d0");
    }

    #[test]
    fn a_wrong_union_is_not_right() {
        let truth = Sets::from_iter([vec![0], vec![1], vec![2], vec![0, 2]]);
        let found = Sets::from_iter([vec![0], vec![1], vec![0, 1], vec![]]);
        assert_eq!(Majorities::new(&found, &truth).is_right(&[0, 1]), Some(false));
    }

    /// The compositions of a clustering that are right if its examples truly have these sets.
    fn right(found: &[&[u32]], truth: &[&[u32]]) -> Vec<Vec<u32>> {
        let sets = |sets: &[&[u32]]| Sets::from_iter(sets.iter().map(|set| set.to_vec()));
        let majorities = Majorities::new(&sets(found), &sets(truth));
        let mut right: Vec<Vec<u32>> = found.iter().map(|set| set.to_vec()).collect();
        right.retain(|set| majorities.is_right(set) == Some(true));
        right.sort_unstable();
        right.dedup();
        right
    }

    #[test]
    fn what_is_truly_no_union_is_no_right_composition() {
        // Singletons 2 and 3 are mostly examples of nothing, and so is what they make: {} is no union of {} and {}.
        let truth: &[&[u32]] = &[&[0], &[1], &[0, 1], &[], &[], &[], &[2], &[3]];
        let found: &[&[u32]] = &[&[0], &[1], &[0, 1], &[2], &[3], &[2, 3], &[2, 3], &[2]];
        assert_eq!(right(found, truth), [[0, 1]]);
        // 1 and 2 are both mostly class 1, and so is what they make.
        let truth: &[&[u32]] = &[&[0], &[1], &[1], &[1], &[1], &[0, 1]];
        let found: &[&[u32]] = &[&[0], &[1], &[1], &[2], &[1, 2], &[0, 1]];
        assert_eq!(right(found, truth), [[0, 1]]);
        // 0 is class 0, 1 is nothing, and so their union would be class 0 alone.
        let truth: &[&[u32]] = &[&[0], &[0], &[], &[], &[0], &[0], &[1], &[0, 1]];
        let found: &[&[u32]] = &[&[0], &[0], &[1], &[1], &[0, 1], &[0, 1], &[1], &[0]];
        assert!(right(found, truth).is_empty());
    }

    #[test]
    fn a_singleton_that_also_took_what_belongs_to_nothing_makes_true_unions() {
        let truth: &[&[u32]] = &[&[0], &[], &[], &[], &[1], &[2], &[0, 1], &[0, 2], &[1, 2]];
        let found: &[&[u32]] = &[&[0], &[0], &[0], &[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2]];
        assert_eq!(right(found, truth), [[0, 1], [0, 2], [1, 2]]);
        // Where one has no examples of its own, it is known by its unions.
        let truth: &[&[u32]] = &[&[1], &[2], &[0, 1], &[0, 2]];
        let found: &[&[u32]] = &[&[1], &[2], &[1, 5], &[2, 5]];
        assert_eq!(right(found, truth).len(), 2);
    }

    #[test]
    fn without_true_unions_nothing_is_judged() {
        let truth = Sets::singletons(&[0, 1, 2]);
        let found = Sets::from_iter([vec![0], vec![1], vec![0, 1]]);
        assert_eq!(Majorities::new(&found, &truth).is_right(&[0, 1]), None);
    }
}
