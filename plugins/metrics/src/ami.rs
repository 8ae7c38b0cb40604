//! Adjusted mutual information of sets compared as a whole:
//! AMI = (I(c, y) - E[I]) / (½(H(c) + H(y)) - E[I]), the arithmetic normalisation of scikit-learn.
//!
//! Vinh, Epps & Bailey 2010, <https://jmlr.org/papers/v11/vinh10a.html>. The expectation is over all labellings
//! with the same counts: the size k of the intersection of clusters of a and b examples is hypergeometric, so that
//! E[I] = Σ_{a,b} Σ_k P(k) k/n ln(n k / (a b)).
//!
//! Clusters of equal size have equal terms, and P is followed from its mode outwards by the quotients of
//! neighbours until it no longer matters: O(√n) terms for each pair of distinct sizes, of which there are at most
//! √(2n) on either side. No factorials, hence none of their cancellation either.

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services};

use crate::contingency::{Contingency, labels};
use crate::information::{mean_entropy, mutual_information};

/// Probabilities relative to that of the mode below which the rest is left out. They fall faster than a geometric
/// series there, so that what is left out is far below the precision of the sum.
const NEGLIGIBLE: f64 = 1e-30;

pub(crate) struct Ami;
compflow_api::register!(evaluator Ami);

impl Component for Ami {
    const NAME: &'static str = "ami";
    const SUMMARY: &'static str = "adjusted mutual information of whole sets";
    const DOCUMENTATION: &'static str = "\
Mutual information of predicted and true sets, each whole set being one label, corrected for the information that random
labels of the same sizes would share.";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Ami {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::share("ami").between(-1.0, 1.0)]
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let (truth, predicted) = labels(evaluation)?;
        Ok(vec![adjusted(&Contingency::new(truth, predicted), services)?])
    }
}

fn adjusted(table: &Contingency<'_>, services: &Services<'_>) -> Result<f64> {
    if table.is_bijection() {
        return Ok(1.0);
    }
    // One cluster tells nothing, and is expected to.
    if table.truth.len() == 1 || table.predicted.len() == 1 {
        return Ok(0.0);
    }
    let expected = expected_information(&table.predicted.counts, &table.truth.counts, table.n(), services)?;
    // Positive unless the labels are equal up to names, but for rounding.
    let possible = (mean_entropy(table) - expected).max(f64::EPSILON);
    Ok((mutual_information(table) - expected) / possible)
}

/// E[I] over all labellings with these counts, which add up to `n` on both sides.
fn expected_information(predicted: &[u64], truth: &[u64], n: u64, services: &Services<'_>) -> Result<f64> {
    let truth = multiplicities(truth);
    let mut total = 0.0;
    for (a, times_a) in multiplicities(predicted) {
        services.check_cancelled()?;
        for &(b, times_b) in &truth {
            total += (times_a * times_b) as f64 * expected_term(a, b, n);
        }
    }
    Ok(total)
}

/// The distinct values, ascending, and how often each occurs.
fn multiplicities(counts: &[u64]) -> Vec<(u64, u64)> {
    let mut counts = counts.to_vec();
    counts.sort_unstable();
    counts.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect()
}

/// What a cluster of `a` and one of `b` among `n` examples are expected to add to the mutual information.
fn expected_term(a: u64, b: u64, n: u64) -> f64 {
    let (smallest, largest) = ((a + b).saturating_sub(n), a.min(b));
    let mode = ((u128::from(a + 1) * u128::from(b + 1) / u128::from(n + 2)) as u64).clamp(smallest, largest);
    let (a_f, b_f, n_f) = (a as f64, b as f64, n as f64);
    // Probabilities relative to the mode's, and their sum in the end, make the factorials cancel.
    let information = |k: u64| if k == 0 { 0.0 } else { k as f64 / n_f * libm::log(n_f / a_f * (k as f64 / b_f)) };
    // P(k + 1) / P(k)
    let quotient = |k: u64| {
        let k = k as f64;
        (a_f - k) * (b_f - k) / ((k + 1.0) * (n_f - a_f - b_f + k + 1.0))
    };
    let (mut probability, mut sum) = (1.0, information(mode));
    let mut weight = 1.0;
    for k in mode + 1..=largest {
        weight *= quotient(k - 1);
        if weight < NEGLIGIBLE {
            break;
        }
        probability += weight;
        sum += weight * information(k);
    }
    weight = 1.0;
    for k in (smallest..mode).rev() {
        weight /= quotient(k);
        if weight < NEGLIGIBLE {
            break;
        }
        probability += weight;
        sum += weight * information(k);
    }
    sum / probability
}

#[cfg(test)]
mod tests {
    use compflow_api::Sets;
    use proptest::prelude::*;

    use super::*;
    use crate::naive;

    /// Calls `visit` with `labels` in each of their orders.
    fn each_order(labels: &mut Vec<u32>, from: usize, visit: &mut impl FnMut(&[u32])) {
        if from == labels.len() {
            return visit(labels);
        }
        for at in from..labels.len() {
            labels.swap(from, at);
            each_order(labels, from + 1, visit);
            labels.swap(from, at);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_expectation_is_the_mean_over_all_orders(
            rows in prop::collection::vec((0..3u32, 0..4u32), 1..=6)
        ) {
            let (truth, mut predicted): (Vec<u32>, Vec<u32>) = rows.into_iter().unzip();
            let truth = Sets::singletons(&truth);
            let (mut sum, mut orders) = (0.0, 0);
            each_order(&mut predicted, 0, &mut |order| {
                sum += mutual_information(&Contingency::new(&truth, &Sets::singletons(order)));
                orders += 1;
            });
            let predicted = Sets::singletons(&predicted);
            let table = Contingency::new(&truth, &predicted);
            let expected = expected_information(
                &table.predicted.counts, &table.truth.counts, table.n(), &Services::none(),
            ).unwrap();
            prop_assert!((expected - sum / f64::from(orders)).abs() < 1e-13);
        }
    }

    #[test]
    fn large_counts_keep_their_precision() {
        // Of 10⁹ examples in 2 × 2 clusters, E[2 n I] is the mean of χ² with one degree of freedom, up to O(1/n).
        let n = 1_000_000_000;
        let half = [n / 2, n / 2];
        let expected = expected_information(&half, &half, n, &Services::none()).unwrap();
        assert!((2.0 * n as f64 * expected - 1.0).abs() < 1e-5, "{expected}");
    }

    #[test]
    fn examples_alone_against_pairs_are_no_better_than_chance() {
        let truth = Sets::singletons(&[0, 0, 1, 1, 2, 2]);
        let alone = Sets::singletons(&[0, 1, 2, 3, 4, 5]);
        assert!(naive::score(&Ami, &truth, &alone)[0].abs() < 1e-14);
        assert_eq!(naive::score(&Ami, &alone, &alone), [1.0]);
    }
}
