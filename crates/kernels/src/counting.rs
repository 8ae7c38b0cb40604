//! How many sets there are.

use std::ops::RangeInclusive;

use compflow_api::{Error, Result};

/// How many sets of `members` there are among `n`; none if they are more than a u128 holds.
pub fn binomial(n: usize, members: usize) -> Option<u128> {
    if members > n {
        return Some(0);
    }
    // A product of at + 1 consecutive numbers is divisible by (at + 1)!.
    (0..members.min(n - members))
        .try_fold(1u128, |count, at| Some(count.checked_mul((n - at) as u128)? / (at as u128 + 1)))
}

/// How many sets there are among `n` with so many members; none if they are more than a u128 holds.
pub fn sets(n: usize, members: RangeInclusive<usize>) -> Option<u128> {
    let (least, most) = (*members.start(), *members.end().min(&n));
    (least..=most).try_fold(0u128, |sum, members| sum.checked_add(binomial(n, members)?))
}

/// How many sets of at most `degree` of `k` singletons there are.
///
/// # Errors
/// If they are more than can be numbered.
pub fn compositions(k: usize, degree: usize) -> Result<usize> {
    let counted = sets(k, 1..=degree).filter(|&sets| sets < u128::from(u32::MAX));
    counted.map(|sets| sets as usize).ok_or_else(|| {
        let text = format!("= {k} has more compositions of up to {degree} than can be counted");
        Error::parameter("k", text).help("lower `k` or the degree")
    })
}

#[cfg(test)]
mod tests {
    use compflow_api::Sets;

    use super::*;

    #[test]
    fn as_many_as_can_be_listed() {
        for (n, degree) in [(1, 1), (1, 3), (5, 2), (7, 7), (6, 9), (12, 3)] {
            let listed = Sets::all_up_to(n, degree);
            assert_eq!(sets(n, 1..=degree), Some(listed.len() as u128), "{degree} of {n}");
            let unions = listed.iter().filter(|set| set.len() > 1).count();
            assert_eq!(sets(n, 2..=degree), Some(unions as u128), "2 to {degree} of {n}");
        }
        assert_eq!((binomial(3, 4), binomial(0, 0), binomial(30, 3)), (Some(0), Some(1), Some(4060)));
        assert_eq!(sets(0, 1..=2), Some(0));
    }

    #[test]
    fn what_no_u128_holds_is_none() {
        assert_eq!(sets(100_000, 2..=100_000), None);
        assert_eq!(binomial(usize::MAX, 2), Some(usize::MAX as u128 * (usize::MAX as u128 - 1) / 2));
        assert_eq!(binomial(usize::MAX, usize::MAX - 1), Some(usize::MAX as u128));
    }
}
