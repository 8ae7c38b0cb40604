//! How many reassignments there are: those that `method = "exhaustive"` chooses from.
//!
//! A reassignment is a choice of i of the k clusters, each of which becomes a composition of two to d of the other
//! k-i clusters, no two of them the same one:
//!
//! ```text
//! Σᵢ C(k, i) · P(C(k-i, 2) + … + C(k-i, d), i)
//! ```

use compflow_kernels::counting::{binomial, sets};

/// How many reassignments of `k` clusters there are; none if they are more than a u128 holds.
pub(crate) fn maps(k: usize, degree: usize) -> Option<u128> {
    (0..=k).try_fold(0u128, |sum, composed| {
        let targets = sets(k - composed, 2..=degree)?;
        let arrangements = (0..composed as u128)
            .try_fold(1u128, |product, at| product.checked_mul(targets.saturating_sub(at)))?;
        sum.checked_add(binomial(k, composed)?.checked_mul(arrangements)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_number() {
        assert_eq!(maps(15, 2), Some(107_770_296_705_436));
    }

    #[test]
    fn as_many_as_can_be_listed() {
        /// Every way to go on from the clusters that are decided.
        fn listed(k: usize, degree: usize, chosen: &mut Vec<Option<u32>>) -> u128 {
            if chosen.len() == k {
                let composed = |cluster: usize| chosen[cluster].is_some();
                let mut targets: Vec<u32> = chosen.iter().flatten().copied().collect();
                let sound = targets.iter().all(|target| (0..k).all(|at| target >> at & 1 == 0 || !composed(at)));
                targets.sort_unstable();
                let count = targets.len();
                targets.dedup();
                return u128::from(sound && targets.len() == count);
            }
            let sizes = 2..=degree as u32;
            let targets = (0..1u32 << k).filter(|set| sizes.contains(&set.count_ones())).map(Some);
            let all: Vec<Option<u32>> = targets.chain([None]).collect();
            all.into_iter()
                .map(|target| {
                    chosen.push(target);
                    let count = listed(k, degree, chosen);
                    chosen.pop();
                    count
                })
                .sum()
        }
        for (k, degree) in [(2, 2), (3, 2), (3, 3), (4, 2), (4, 3), (5, 2), (5, 4)] {
            assert_eq!(maps(k, degree), Some(listed(k, degree, &mut Vec::new())), "k = {k}, degree = {degree}");
        }
    }

    #[test]
    fn what_no_u128_holds_is_none() {
        assert!(maps(20, 2).is_some());
        assert_eq!(maps(60, 3), None);
        assert_eq!(maps(100_000, 100_000), None);
    }
}
