//! Extended BCubed precision, recall and their harmonic mean for overlapping clusters.
//!
//! Amigó, Gonzalo, Artiles & Verdejo 2009, doi:10.1007/s10791-008-9066-8. For predicted sets c and true sets y,
//! precision = mean_i mean_{j: c_i ∩ c_j ≠ ∅} min(|c_i ∩ c_j|, |y_i ∩ y_j|) / |c_i ∩ c_j|,
//! recall the same with c and y exchanged, F1 = 2 P R / (P + R), or 0 if both are 0. As in the paper, j = i is one of the
//! pairs. An example with an empty set shares clusters with nobody, itself included, so there is nothing to take a mean
//! of: precision is the mean over the examples with a predicted cluster, recall over those with a true one, and either
//! is 1 if there are none. A cluster given to an example that has none in truth costs precision, one withheld recall.
//! Cost and limit: those of [`overlaps`](crate::overlaps).

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services};

use crate::contingency::labels;
use crate::overlaps::each_overlap;

pub(crate) struct Bcubed;
compflow_api::register!(evaluator Bcubed);

impl Component for Bcubed {
    const NAME: &'static str = "bcubed";
    const SUMMARY: &'static str = "extended BCubed F1, precision and recall for overlapping clusters";
    const DOCUMENTATION: &'static str = "\
Extended BCubed for overlapping clusters: precision and recall of the clusters that pairs of examples share, averaged over
examples, and their harmonic mean: `bcubed_precision`, `bcubed_recall` and `bcubed_f1`. Examples without a predicted
cluster do not count for precision, those without a true one not for recall.";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Bcubed {
    fn metrics(&self) -> Vec<Metric> {
        ["bcubed_f1", "bcubed_precision", "bcubed_recall"].map(Metric::share).to_vec()
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let (truth, predicted) = labels(evaluation)?;
        let (mut precisions, mut recalls) = (Vec::new(), Vec::new());
        each_overlap(truth, predicted, services, |examples, overlap| {
            precisions.extend(mean_multiplicity(overlap.entries()).map(|mean| (mean, examples)));
            let exchanged = overlap.entries().map(|(t, u, count)| (u, t, count));
            recalls.extend(mean_multiplicity(exchanged).map(|mean| (mean, examples)));
        })?;
        let (precision, recall) = (mean(precisions), mean(recalls));
        let f1 = if precision + recall > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };
        Ok(vec![f1, precision, recall])
    }
}

/// The mean of min(t, u) / t over (t, u, how often) with t > 0, if there are any.
fn mean_multiplicity(overlaps: impl Iterator<Item = (usize, usize, u64)>) -> Option<f64> {
    let (mut sum, mut pairs) = (0.0, 0);
    for (t, u, count) in overlaps.filter(|&(t, ..)| t > 0) {
        sum += (t.min(u) as u64 * count) as f64 / t as f64;
        pairs += count;
    }
    (pairs > 0).then(|| sum / pairs as f64)
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
    use compflow_api::Sets;
    use proptest::prelude::*;

    use super::*;
    use crate::naive::{self, labels};

    fn scores(truth: &Sets, predicted: &Sets) -> Vec<f64> {
        naive::score(&Bcubed, truth, predicted)
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
    fn none_of_them_costs_precision_where_it_is_not_seen_and_recall_where_it_is_not_so() {
        let (truth, predicted) =
            (Sets::from_iter([vec![0], vec![0], vec![]]), Sets::from_iter([vec![3], vec![], vec![3]]));
        // Precision: of the first example 1 of 2, of the third 0 of 2. Recall: of the first 1 of 2, of the second 0 of 2.
        assert_eq!(scores(&truth, &predicted), [0.25, 0.25, 0.25]);
        let (one, other) = (Sets::from_iter([vec![0], vec![]]), Sets::from_iter([vec![], vec![0]]));
        assert_eq!(scores(&one, &other), [0.0, 0.0, 0.0]);
        let none = Sets::from_iter([[], []]);
        assert_eq!(scores(&one, &none), [0.0, 1.0, 0.0]);
        assert_eq!(scores(&none, &one), [0.0, 0.0, 1.0]);
    }

    #[test]
    fn a_missing_member_costs_recall() {
        let found = scores(&Sets::from_iter([[0, 1], [0, 1]]), &Sets::singletons(&[0, 0]));
        assert_eq!(found, [2.0 / 3.0, 1.0, 0.5]);
    }
}
