//! Extended BCubed precision, recall and their harmonic mean for overlapping clusters.
//!
//! Amigó, Gonzalo, Artiles & Verdejo 2009, doi:10.1007/s10791-008-9066-8. For predicted sets c and true sets y,
//! precision = mean_i mean_{j: c_i ∩ c_j ≠ ∅} min(|c_i ∩ c_j|, |y_i ∩ y_j|) / |c_i ∩ c_j|,
//! recall the same with c and y exchanged, F1 = 2 P R / (P + R). As in the paper, j = i is one of the pairs, so
//! that neither is ever 0. Cost and limit: those of [`overlaps`](crate::overlaps).

use compflow_api::{Component, Evaluator, Metric, NoParams, Result, Services, Sets};

use crate::overlaps::each_overlap;

pub(crate) struct Bcubed;
compflow_api::register!(evaluator Bcubed);

impl Component for Bcubed {
    const NAME: &'static str = "bcubed";
    const SUMMARY: &'static str = "extended BCubed F1, precision and recall for overlapping clusters";
    const DOCUMENTATION: &'static str = "\
Extended BCubed for overlapping clusters: precision and recall of the clusters that pairs of examples share, averaged over
examples, and their harmonic mean: `bcubed_precision`, `bcubed_recall` and `bcubed_f1`.";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Bcubed {
    fn metrics(&self) -> Vec<Metric> {
        ["bcubed_f1", "bcubed_precision", "bcubed_recall"].map(Metric::larger).to_vec()
    }

    fn evaluate(&self, truth: &Sets, predicted: &Sets, services: &Services<'_>) -> Result<Vec<f64>> {
        let (mut precisions, mut recalls) = (Vec::new(), Vec::new());
        each_overlap(truth, predicted, services, |examples, overlap| {
            precisions.push((mean_multiplicity(overlap.entries()), examples));
            recalls.push((mean_multiplicity(overlap.entries().map(|(t, u, count)| (u, t, count))), examples));
        })?;
        let (precision, recall) = (mean(precisions), mean(recalls));
        Ok(vec![2.0 * precision * recall / (precision + recall), precision, recall])
    }
}

/// The mean of min(t, u) / t over (t, u, how often) with t > 0.
fn mean_multiplicity(overlaps: impl Iterator<Item = (usize, usize, u64)>) -> f64 {
    let (mut sum, mut pairs) = (0.0, 0);
    for (t, u, count) in overlaps.filter(|&(t, ..)| t > 0) {
        sum += (t.min(u) as u64 * count) as f64 / t as f64;
        pairs += count;
    }
    sum / pairs as f64
}

/// The mean of values with their multiplicities; 1 of nothing. In ascending order, so that it does not depend on
/// the order of examples.
fn mean(mut values: Vec<(f64, u64)>) -> f64 {
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let examples: u64 = values.iter().map(|&(_, count)| count).sum();
    if examples == 0 {
        return 1.0;
    }
    values.iter().map(|&(value, count)| value * count as f64).sum::<f64>() / examples as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::naive::{self, labels};

    fn scores(truth: &Sets, predicted: &Sets) -> Vec<f64> {
        Bcubed.evaluate(truth, predicted, &Services::none()).unwrap()
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition((truth, predicted) in labels()) {
            let found = scores(&truth, &predicted);
            for (found, expected) in found.iter().zip(naive::bcubed(&truth, &predicted)) {
                prop_assert!((found - expected).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn one_cluster_has_full_recall_and_the_precision_of_the_classes() {
        let found = scores(&Sets::singletons(&[0, 0, 0, 1]), &Sets::singletons(&[5; 4]));
        // Three examples find 3 of 4 alike, one finds 1 of 4.
        assert_eq!(found[1..], [(3.0 * 0.75 + 0.25) / 4.0, 1.0]);
    }

    #[test]
    fn a_missing_member_costs_recall() {
        let found = scores(&Sets::from_iter([[0, 1], [0, 1]]), &Sets::singletons(&[0, 0]));
        assert_eq!(found, [2.0 / 3.0, 1.0, 0.5]);
    }
}
