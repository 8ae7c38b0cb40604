//! Entropy and mutual information of sets compared as a whole, in nats:
//! H(c) = -Σ_k p_k ln p_k and I(c, y) = Σ_{k,l} p_kl ln(p_kl / (p_k p_l)).
//!
//! Terms are added in the order of the counts they come from, so that the sums do not depend on names or on the
//! order of examples, not even in the last digit.

use crate::contingency::Contingency;

/// The entropy of a labelling with these counts, which add up to `n`.
pub(crate) fn entropy(counts: &[u64], n: u64) -> f64 {
    let mut counts = counts.to_vec();
    counts.sort_unstable();
    let n = n as f64;
    counts.into_iter().map(|count| count as f64 / n * libm::log(n / count as f64)).sum()
}

/// The mean of the two entropies.
pub(crate) fn mean_entropy(table: &Contingency<'_>) -> f64 {
    0.5 * (entropy(&table.truth.counts, table.n()) + entropy(&table.predicted.counts, table.n()))
}

/// The mutual information of the predicted and the true sets.
pub(crate) fn mutual_information(table: &Contingency<'_>) -> f64 {
    let mut terms: Vec<(u64, u64)> = table
        .cells
        .iter()
        .map(|cell| {
            let expected =
                table.predicted.counts[cell.predicted as usize] * table.truth.counts[cell.truth as usize];
            (cell.count, expected)
        })
        .collect();
    terms.sort_unstable();
    let n = table.n();
    let term = |(count, expected): (u64, u64)| {
        // The quotient of two whole numbers, so that independent labels give exactly 0.
        count as f64 / n as f64 * libm::log((count * n) as f64 / expected as f64)
    };
    terms.into_iter().map(term).sum::<f64>().max(0.0)
}

#[cfg(test)]
mod tests {
    use compflow_api::Sets;

    use super::*;

    #[test]
    fn independent_labels_share_no_information() {
        let (truth, predicted) = (Sets::singletons(&[0, 1, 0, 1, 0, 1]), Sets::singletons(&[0, 0, 1, 1, 2, 2]));
        let table = Contingency::new(&truth, &predicted);
        assert_eq!(mutual_information(&table), 0.0);
        assert!((mean_entropy(&table) - 0.5 * 6f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn the_information_of_labels_about_themselves_is_their_entropy() {
        let labels = Sets::from_iter([vec![0], vec![0, 1], vec![0], vec![0, 1], vec![2]]);
        let table = Contingency::new(&labels, &labels);
        assert!((mutual_information(&table) - entropy(&[1, 2, 2], 5)).abs() < 1e-15);
    }
}
