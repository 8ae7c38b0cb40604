//! Numbers for sets: 0, 1, … for those that occur, then for those that new examples might be given to.

use std::collections::{BTreeSet, HashMap};

use compflow_api::Sets;

/// The label of "none of them".
const NOTHING: i64 = -1;

/// Which label is which set.
pub(crate) struct Labels {
    /// By label.
    pub(crate) sets: Vec<Vec<u32>>,
    of: HashMap<Vec<u32>, i64>,
}

impl Labels {
    /// The sets that occur come first, by size and then by members; then the further ones as they come.
    pub(crate) fn new(assignments: &Sets, further: Option<&Sets>) -> Self {
        let occurring: BTreeSet<(usize, &[u32])> =
            assignments.iter().filter(|set| !set.is_empty()).map(|set| (set.len(), set)).collect();
        let mut labels = Self { sets: Vec::new(), of: HashMap::from([(Vec::new(), NOTHING)]) };
        occurring.into_iter().for_each(|(_, set)| labels.add(set));
        further.into_iter().flat_map(Sets::iter).for_each(|set| labels.add(set));
        labels
    }

    fn add(&mut self, set: &[u32]) {
        if !self.of.contains_key(set) {
            self.of.insert(set.to_vec(), self.sets.len() as i64);
            self.sets.push(set.to_vec());
        }
    }

    /// The label of a set; that of nothing if it has none.
    pub(crate) fn of(&self, set: &[u32]) -> i64 {
        self.of.get(set).copied().unwrap_or(NOTHING)
    }
}
