//! The 2×2 table of a relation between two examples that holds or not, once by the predicted sets and once by the
//! true ones; `cri` and `ari` differ in the relation alone.
//!
//! Cohen's κ of the table, doi:10.1177/001316446002000104, is
//! 2 (tp·tn - fn·fp) / ((tp+fn)(fn+tn) + (tp+fp)(fp+tn)).

/// How many pairs of examples the relation holds for. The four add up to less than 2^64.
pub(crate) struct PairTable {
    /// By both labels.
    tp: u64,
    /// By the predicted ones only.
    fp: u64,
    /// By the true ones only.
    fn_: u64,
    /// By neither.
    tn: u64,
}

impl PairTable {
    /// From the number of all `pairs` and of those for which the relation holds by the `predicted` sets, by the
    /// true ones, and by `both`.
    pub(crate) fn new(pairs: u64, predicted: u64, truth: u64, both: u64) -> Self {
        let fn_ = truth - both;
        Self { tp: both, fp: predicted - both, fn_, tn: pairs - predicted - fn_ }
    }

    /// The share of pairs on which the labels agree; 1 without pairs.
    pub(crate) fn agreement(&self) -> f64 {
        let (agree, disagree) = (self.tp + self.tn, self.fp + self.fn_);
        if disagree == 0 { 1.0 } else { agree as f64 / (agree + disagree) as f64 }
    }

    /// Cohen's κ: the agreement, scaled so that labels that know nothing of each other are expected at 0. It is 1
    /// if the labels agree everywhere, which covers all tables whose κ would be 0/0.
    pub(crate) fn kappa(&self) -> f64 {
        if self.fp == 0 && self.fn_ == 0 {
            return 1.0;
        }
        // Below 2^126 each, because the factors of a product add up to less than 2^64.
        let product = |a: u64, b: u64| i128::from(a) * i128::from(b);
        let Self { tp, fp, fn_, tn } = *self;
        let above = product(tp, tn) - product(fn_, fp);
        let below = product(tp + fn_, fn_ + tn) + product(tp + fp, fp + tn);
        2.0 * above as f64 / below as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kappa_of_a_table_computed_by_hand() {
        // Agreement 0.7, expected 0.6·0.5 + 0.4·0.5 = 0.5.
        let table = PairTable::new(100, 60, 50, 40);
        assert_eq!(table.agreement(), 0.7);
        assert!((table.kappa() - 0.4).abs() < 1e-15);
    }

    #[test]
    fn the_largest_tables_do_not_overflow() {
        let n = u64::from(u32::MAX);
        let pairs = n * (n - 1);
        assert_eq!(PairTable::new(pairs, pairs / 2, pairs / 2, 0).kappa(), -1.0);
        assert_eq!(PairTable::new(pairs, 0, pairs, 0).kappa(), 0.0);
        assert_eq!(PairTable::new(pairs, pairs, 0, 0).agreement(), 0.0);
    }

    #[test]
    fn no_pairs_and_no_disagreement_are_perfect() {
        for table in [PairTable::new(0, 0, 0, 0), PairTable::new(6, 6, 6, 6), PairTable::new(6, 0, 0, 0)] {
            assert_eq!((table.agreement(), table.kappa()), (1.0, 1.0));
        }
    }
}
