//! The adjusted Rand index of sets compared as a whole: two examples belong together if their sets are equal.
//!
//! Hubert & Arabie 1985, doi:10.1007/BF01908075. It is Cohen's κ of the table of pairs (Warrens 2008,
//! doi:10.1007/s00357-008-9023-7). Whole numbers up to the final division. As in scikit-learn, labels that agree
//! on all pairs score 1, also if there are no pairs or all of them are alike. The empty set equals itself and no other. The
//! index is at least -1/2: Chacón & Rastrojo 2023, doi:10.1007/s11634-022-00491-w.

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services};

use crate::contingency::{Contingency, labels};
use crate::pair_table::PairTable;

pub(crate) struct Ari;
compflow_api::register!(evaluator Ari);

impl Component for Ari {
    const NAME: &'static str = "ari";
    const SUMMARY: &'static str = "adjusted Rand index of whole sets";
    const DOCUMENTATION: &'static str = "\
The adjusted Rand index with whole sets as labels: two examples belong together if their sets are equal. Containment
counts for nothing; `cri` is the index that looks at it.";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Ari {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::share("ari").between(-0.5, 1.0)]
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, _services: &Services<'_>) -> Result<Vec<f64>> {
        let (truth, predicted) = labels(evaluation)?;
        Ok(vec![equality(&Contingency::new(truth, predicted)).kappa()])
    }
}

/// Counts the ordered pairs of examples by whether their sets are equal.
fn equality(table: &Contingency<'_>) -> PairTable {
    let pairs = |count: u64| count * (count - 1);
    let of_all = |counts: &[u64]| counts.iter().map(|&count| pairs(count)).sum();
    let both = table.cells.iter().map(|cell| pairs(cell.count)).sum();
    PairTable::new(table.pairs(), of_all(&table.predicted.counts), of_all(&table.truth.counts), both)
}

#[cfg(test)]
mod tests {
    use compflow_api::Sets;
    use proptest::prelude::*;

    use super::*;
    use crate::naive::{self, labels};

    proptest! {
        #[test]
        fn agrees_with_the_definition((truth, predicted) in labels()) {
            let found = naive::score(&Ari, &truth, &predicted);
            prop_assert_eq!(found, [naive::ari(&truth, &predicted)]);
        }
    }

    #[test]
    fn none_of_them_is_a_label_like_any_other() {
        let truth = Sets::from_iter([vec![], vec![], vec![0], vec![0]]);
        let predicted = Sets::from_iter([vec![], vec![], vec![5], vec![6]]);
        // Of 12 ordered pairs 4 are equal in truth, 2 as predicted, 2 in both: κ = 2·(2·8)/(4·10 + 2·8).
        assert_eq!(naive::score(&Ari, &truth, &predicted), [32.0 / 56.0]);
    }
}
