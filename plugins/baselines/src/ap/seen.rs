//! The exemplars of past iterations, for messages that do not settle.

use std::collections::VecDeque;

use compflow_api::{Result, Services};

use super::refine::choose;
use crate::similarities::Similarities;
use compflow_kernels::workers::Workers;

/// Exemplars kept at most, as a multiple of the number of examples.
const KEPT: usize = 4;

/// Different sets of exemplars, the oldest of which are forgotten when there are too many.
pub(crate) struct Seen {
    sets: VecDeque<Vec<u32>>,
    room: usize,
}

impl Seen {
    /// How many bytes are kept for `n` examples.
    pub(crate) fn memory(n: usize) -> u64 {
        (n as u64).saturating_mul(((KEPT + 1) * size_of::<u32>()) as u64)
    }

    pub(crate) fn new(n: usize) -> Self {
        Self { sets: VecDeque::new(), room: KEPT * n }
    }

    /// Remembers a set, unless it is empty or known.
    pub(crate) fn add(&mut self, exemplars: &[u32]) {
        if exemplars.is_empty() || self.sets.iter().any(|set| set == exemplars) {
            return;
        }
        while self.room < exemplars.len() {
            self.room += self.sets.pop_front().expect("a set fits into an empty room").len();
        }
        self.room -= exemplars.len();
        self.sets.push_back(exemplars.to_vec());
    }

    /// The set with the highest net similarity.
    pub(crate) fn best(
        self,
        similarities: &Similarities,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Option<Vec<u32>>> {
        let mut best: Option<(f64, Vec<u32>)> = None;
        for set in self.sets {
            let clusters = choose(similarities, set, workers, services)?;
            let net = clusters.net_similarity(similarities);
            if best.as_ref().is_none_or(|(highest, _)| net > *highest) {
                best = Some((net, clusters.exemplars));
            }
        }
        Ok(best.map(|(_, set)| set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_and_none_is_kept_twice() {
        let mut seen = Seen::new(2);
        for set in [&[0, 1][..], &[], &[0], &[0, 1], &[0, 1, 2], &[0, 1, 3]] {
            seen.add(set);
        }
        assert_eq!(seen.sets, [vec![0], vec![0, 1, 2], vec![0, 1, 3]]);
        assert_eq!(Seen::memory(10), 200);
    }
}
