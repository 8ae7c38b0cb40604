//! How much two labellings of the same examples agree: the chance-corrected compositional Rand index.
//!
//! Over ordered pairs of different examples, one labelling says whether the first example's set contains the second's, and
//! so does the other. With tp, fp, fn and tn of the 2×2 table of both, Cohen's κ is
//!
//! ```text
//! aCRI = 2 (tp·tn - fn·fp) / ((tp + fn)(fn + tn) + (tp + fp)(fp + tn)),
//! ```
//!
//! which is the adjusted Rand index where all sets are singletons. The pairs are counted over distinct sets, not over
//! examples.

use std::collections::BTreeMap;

use compflow_api::Sets;

/// The agreement of two labellings, at most 1, and 0 if they agree as much as chance would have it. 1 if both say the same
/// of all pairs, be it that none contains another.
pub(super) fn agreement(left: &Sets, right: &Sets) -> f64 {
    let mut cells: BTreeMap<(&[u32], &[u32]), f64> = BTreeMap::new();
    for pair in left.iter().zip(right.iter()) {
        *cells.entry(pair).or_default() += 1.0;
    }
    let examples = left.len() as f64;
    let (mut both, mut by_left, mut by_right) = (-examples, -examples, -examples);
    for ((outer_left, outer_right), outer) in &cells {
        for ((inner_left, inner_right), inner) in &cells {
            let (in_left, in_right) = (contains(outer_left, inner_left), contains(outer_right, inner_right));
            let pairs = outer * inner;
            by_left += if in_left { pairs } else { 0.0 };
            by_right += if in_right { pairs } else { 0.0 };
            both += if in_left && in_right { pairs } else { 0.0 };
        }
    }
    let (left_only, right_only) = (by_left - both, by_right - both);
    let neither = examples * (examples - 1.0) - both - left_only - right_only;
    let chance = (both + right_only) * (right_only + neither) + (both + left_only) * (left_only + neither);
    match chance > 0.0 {
        true => 2.0 * (both * neither - left_only * right_only) / chance,
        false => 1.0,
    }
}

/// Whether an ascending set contains another.
fn contains(outer: &[u32], inner: &[u32]) -> bool {
    let mut members = outer.iter();
    inner.iter().all(|wanted| members.any(|member| member == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By going through all pairs.
    fn naive(left: &Sets, right: &Sets) -> f64 {
        let mut table = [0.0; 4];
        for i in 0..left.len() {
            for j in (0..left.len()).filter(|j| *j != i) {
                let (l, r) = (contains(&left[i], &left[j]), contains(&right[i], &right[j]));
                table[usize::from(l) + 2 * usize::from(r)] += 1.0;
            }
        }
        let [tn, fp, fn_, tp] = table;
        2.0 * (tp * tn - fn_ * fp) / ((tp + fn_) * (fn_ + tn) + (tp + fp) * (fp + tn))
    }

    #[test]
    fn pairs_are_counted_as_one_by_one() {
        let left = Sets::from_iter([vec![0], vec![0, 1], vec![1], vec![0], vec![], vec![1, 2], vec![2]]);
        let right = Sets::from_iter([vec![3], vec![3, 5], vec![4], vec![4], vec![3], vec![4, 5], vec![3]]);
        assert!((agreement(&left, &right) - naive(&left, &right)).abs() < 1e-12);
        assert!(agreement(&left, &right) < 0.9);
    }

    #[test]
    fn names_do_not_matter_and_one_cluster_agrees_with_itself() {
        let left = Sets::from_iter([vec![0], vec![0, 1], vec![1]]);
        let renamed = Sets::from_iter([vec![8], vec![7, 8], vec![7]]);
        assert!((agreement(&left, &renamed) - 1.0).abs() < 1e-12);
        assert_eq!(agreement(&Sets::singletons(&[0, 0, 0]), &Sets::singletons(&[4, 4, 4])), 1.0);
        assert!(agreement(&Sets::singletons(&[0, 0, 1, 1]), &Sets::singletons(&[0, 1, 0, 1])) <= 0.0);
    }
}
