//! Normalised mutual information of sets compared as a whole: NMI = I(c, y) / ½(H(c) + H(y)), the arithmetic
//! normalisation of scikit-learn.
//!
//! Kvålseth 1987, doi:10.1109/TSMC.1987.4309069. One cluster on both sides is a perfect match, one cluster on one
//! side tells nothing. Not corrected for chance: many clusters score high, see `ami`.

use compflow_api::{Component, Evaluator, Metric, NoParams, Result, Services, Sets};

use crate::contingency::Contingency;
use crate::information::{mean_entropy, mutual_information};

pub(crate) struct Nmi;
compflow_api::register!(evaluator Nmi);

impl Component for Nmi {
    const NAME: &'static str = "nmi";
    const SUMMARY: &'static str = "normalised mutual information of whole sets";
    const DOCUMENTATION: &'static str = "\
Mutual information of predicted and true sets, each whole set being one label, divided by the mean of the two entropies.
Not corrected for chance: it grows with the number of clusters; see `ami`.";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Nmi {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::larger("nmi")]
    }

    fn evaluate(&self, truth: &Sets, predicted: &Sets, _services: &Services<'_>) -> Result<Vec<f64>> {
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
