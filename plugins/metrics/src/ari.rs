//! The adjusted Rand index of sets compared as a whole: two examples belong together if their sets are equal.
//!
//! Hubert & Arabie 1985, doi:10.1007/BF01908075. It is Cohen's κ of the table of pairs (Warrens 2008,
//! doi:10.1007/s00357-008-9023-7). Whole numbers up to the final division. As in scikit-learn, labels that agree
//! on all pairs score 1, also if there are no pairs or all of them are alike.

use compflow_api::{Component, Evaluator, Metric, NoParams, Result, Services, Sets};

use crate::contingency::Contingency;
use crate::pair_table::PairTable;

pub(crate) struct Ari;
compflow_api::register!(evaluator Ari);

impl Component for Ari {
    const NAME: &'static str = "ari";
    const SUMMARY: &'static str = "adjusted Rand index of whole sets";
    const DOCUMENTATION: &'static str = "\
The adjusted Rand index with whole sets as labels: two examples belong together if their sets are equal. Containment
counts for nothing; `cri` is the index that looks at it.";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Ari {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::larger("ari")]
    }

    fn evaluate(&self, truth: &Sets, predicted: &Sets, _services: &Services<'_>) -> Result<Vec<f64>> {
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
    use proptest::prelude::*;

    use super::*;
    use crate::naive::{self, labels};

    proptest! {
        #[test]
        fn agrees_with_the_definition((truth, predicted) in labels()) {
            let found = Ari.evaluate(&truth, &predicted, &Services::none()).unwrap();
            prop_assert_eq!(found, [naive::ari(&truth, &predicted)]);
        }
    }
}
