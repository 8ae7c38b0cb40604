//! Normalised mutual information of sets compared as a whole: NMI = I(c, y) / ½(H(c) + H(y)), the arithmetic
//! normalisation of scikit-learn.
//!
//! Kvålseth 1987, doi:10.1109/TSMC.1987.4309069. One cluster on both sides is a perfect match, one cluster on one
//! side tells nothing. Not corrected for chance: many clusters score high, see `ami`.

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services};

use crate::contingency::{Contingency, labels};
use crate::information::{mean_entropy, mutual_information};

pub(crate) struct Nmi;
compflow_api::register!(evaluator Nmi);

impl Component for Nmi {
    const NAME: &'static str = "nmi";
    const SUMMARY: &'static str = "normalised mutual information of whole sets";
    const DOCUMENTATION: &'static str = "\
Mutual information of predicted and true sets, each whole set being one label, divided by the mean of the two entropies.
Not corrected for chance: it grows with the number of clusters; see `ami`.";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Nmi {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::share("nmi")]
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, _services: &Services<'_>) -> Result<Vec<f64>> {
        let (truth, predicted) = labels(evaluation)?;
        Ok(vec![normalised(&Contingency::new(truth, predicted))])
    }
}

fn normalised(table: &Contingency<'_>) -> f64 {
    // Exactly 1, and the only case in which both entropies can be 0.
    if table.is_bijection() {
        return 1.0;
    }
    mutual_information(table) / mean_entropy(table)
}

#[cfg(test)]
mod tests {
    use compflow_api::Sets;

    use super::*;
    use crate::ami::Ami;
    use crate::naive::score;

    #[test]
    fn none_of_them_is_a_label_like_any_other() {
        let truth = Sets::from_iter([vec![], vec![], vec![0], vec![0]]);
        let predicted = Sets::from_iter([vec![4], vec![4], vec![], vec![]]);
        assert_eq!((score(&Nmi, &truth, &predicted), score(&Ami, &truth, &predicted)), (vec![1.0], vec![1.0]));
        let predicted = Sets::from_iter([vec![], vec![1], vec![], vec![1]]);
        assert_eq!(score(&Nmi, &truth, &predicted), [0.0]);
        // Of the three ways to pair up four examples, one shares ln 2 and two share nothing: (0 - ⅓) / (1 - ⅓).
        assert!((score(&Ami, &truth, &predicted)[0] + 0.5).abs() < 1e-15);
    }
}
