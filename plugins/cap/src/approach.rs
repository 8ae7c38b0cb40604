//! Who passes messages, and to whom: all to all if that takes some seconds at most.

use crate::compositions::count_sets;

/// What exact CAP may cost if nothing else is asked for, in multiplications: some seconds on two cores.
const EXACT: u64 = 30_000_000_000;
/// What a similarity costs over all iterations, in multiplications; computing it costs one for every dimension.
const PASSES: u64 = 100;
/// How often messages are passed to the end for a wanted number of exemplars.
const SEARCH: u64 = 8;
/// How many candidates there are, at most and at least, if all would take longer: see docs/cap.md.
const CANDIDATES: std::ops::RangeInclusive<usize> = 30..=150;

/// Who passes messages, and who may become an exemplar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approach {
    Exact,
    Subset(usize),
    Candidates(usize),
}

/// What it costs `n` examples of `dim` numbers to pass messages to compositions of `candidates`, in multiplications.
fn cost(n: usize, dim: usize, candidates: usize, degree: usize) -> u64 {
    count_sets(candidates, degree).saturating_mul(n as u64).saturating_mul(PASSES + dim as u64)
}

/// Exact if it does not cost too much; otherwise as many candidates as do not, and twice as many as are `wanted` at least.
pub(crate) fn by_cost(n: usize, dim: usize, degree: usize, wanted: usize) -> Approach {
    let most = if wanted > 0 { EXACT / SEARCH } else { EXACT };
    let affordable = |candidates: &usize| cost(n, dim, *candidates, degree) <= most;
    if affordable(&n) {
        return Approach::Exact;
    }
    let most = CANDIDATES.rev().find(affordable).unwrap_or(*CANDIDATES.start());
    let candidates = most.max(wanted.saturating_mul(2));
    if candidates < n { Approach::Candidates(candidates) } else { Approach::Exact }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_longer_than_some_seconds_is_approximated_whatever_makes_it_long() {
        assert_eq!(by_cost(750, 32, 2, 0), Approach::Exact);
        assert_eq!(by_cost(150, 512, 2, 0), Approach::Exact);
        assert_eq!(by_cost(1500, 32, 2, 0), Approach::Candidates(150));
        assert_eq!(by_cost(750, 512, 2, 0), Approach::Candidates(150));
        assert_eq!(by_cost(150, 32, 3, 0), Approach::Exact);
        assert_eq!(by_cost(250, 32, 3, 0), Approach::Candidates(150));
        assert_eq!(by_cost(2500, 32, 3, 0), Approach::Candidates(81));
        assert_eq!(by_cost(7500, 32, 1, 0), Approach::Exact);
        assert_eq!(by_cost(100_000, 32, 2, 0), Approach::Candidates(66));
        assert_eq!(by_cost(10_000_000, 32, 2, 0), Approach::Candidates(30));
        assert_eq!(by_cost(40, 32, 9, 0), Approach::Candidates(30));
        assert_eq!(by_cost(20, 32, 20, 0), Approach::Exact);
    }

    #[test]
    fn a_wanted_number_of_exemplars_finds_room() {
        assert_eq!(by_cost(300, 32, 2, 5), Approach::Exact);
        assert_eq!(by_cost(750, 32, 2, 5), Approach::Candidates(150));
        assert_eq!(by_cost(7500, 32, 2, 200), Approach::Candidates(400));
        assert_eq!(by_cost(1000, 32, 2, 600), Approach::Exact);
    }
}
