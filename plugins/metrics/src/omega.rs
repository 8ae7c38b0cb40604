//! The Omega index: agreement on how many clusters two examples share, corrected for chance.
//!
//! Collins & Dent 1988, doi:10.1207/s15327906mbr2302_6. Over all pairs of examples, with J(t, u) the share of
//! pairs that have t predicted and u true clusters in common,
//! ω = (Σ_t J(t, t) - Σ_t J(t, ·) J(·, t)) / (1 - Σ_t J(t, ·) J(·, t)).
//! It is the adjusted Rand index if all sets are singletons. Cost and limit: those of
//! [`overlaps`](crate::overlaps). Labels that agree on all pairs score 1, also if there are none or all are alike. An
//! empty set shares 0 clusters with every other, as two sets without a common member do.

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services};

use crate::contingency::labels;
use crate::overlaps::each_overlap;

pub(crate) struct Omega;
compflow_api::register!(evaluator Omega);

impl Component for Omega {
    const NAME: &'static str = "omega";
    const SUMMARY: &'static str = "Omega index: agreement on the number of shared clusters, corrected for chance";
    const DOCUMENTATION: &'static str = "\
The Omega index: over all pairs of examples, agreement on the *number* of clusters that both belong to, corrected for
chance. It equals the adjusted Rand index if every set has one member.";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Omega {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::share("omega").between(-1.0, 1.0)]
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let (truth, predicted) = labels(evaluation)?;
        let mut levels = Levels::default();
        each_overlap(truth, predicted, services, |examples, overlap| {
            for (t, u, count) in overlap.entries() {
                // Every example shares all of its own clusters with itself, which is no pair.
                let itself = t + 1 == overlap.rows && u + 1 == overlap.columns;
                levels.add(t, u, examples * (count - u64::from(itself)));
            }
        })?;
        Ok(vec![levels.omega()])
    }
}

/// Ordered pairs of examples by the number of clusters they share.
#[derive(Default)]
struct Levels {
    /// Equally many in both labellings.
    agreeing: u64,
    /// By the number of predicted clusters.
    predicted: Vec<u64>,
    /// By the number of true clusters.
    truth: Vec<u64>,
}

impl Levels {
    fn add(&mut self, t: usize, u: usize, pairs: u64) {
        for (level, levels) in [(t, &mut self.predicted), (u, &mut self.truth)] {
            if levels.len() <= level {
                levels.resize(level + 1, 0);
            }
            levels[level] += pairs;
        }
        if t == u {
            self.agreeing += pairs;
        }
    }

    fn omega(&self) -> f64 {
        let pairs: u64 = self.predicted.iter().sum();
        if self.agreeing == pairs {
            return 1.0;
        }
        // All three are products of two numbers of pairs, each below 2^64.
        let expected: u128 =
            self.predicted.iter().zip(&self.truth).map(|(&t, &u)| u128::from(t) * u128::from(u)).sum();
        let (observed, all) = (u128::from(self.agreeing) * u128::from(pairs), u128::from(pairs).pow(2));
        let size = observed.abs_diff(expected) as f64 / (all - expected) as f64;
        if observed < expected { -size } else { size }
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::Sets;
    use proptest::prelude::*;

    use super::*;
    use crate::naive::{self, labels};

    fn omega(truth: &Sets, predicted: &Sets) -> f64 {
        naive::score(&Omega, truth, predicted)[0]
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition((truth, predicted) in labels()) {
            prop_assert!((omega(&truth, &predicted) - naive::omega(&truth, &predicted)).abs() < 1e-12);
        }
    }

    #[test]
    fn none_of_them_shares_nothing() {
        let truth = Sets::from_iter([vec![], vec![0], vec![0], vec![]]);
        let predicted = Sets::from_iter([vec![], vec![0], vec![], vec![]]);
        // One of 6 pairs shares a cluster in truth, none does as predicted: 5/6 observed, 5/6 expected.
        assert_eq!(omega(&truth, &predicted), 0.0);
        // One of 6 in each, but another one: 4/6 observed, 26/36 expected.
        let predicted = Sets::from_iter([vec![0], vec![], vec![], vec![0]]);
        assert!((omega(&truth, &predicted) - (24.0 - 26.0) / (36.0 - 26.0)).abs() < 1e-15);
        assert_eq!(omega(&truth, &truth), 1.0);
    }

    #[test]
    fn the_same_clusters_counted_differently_disagree() {
        // Both sides put everything together, in one cluster and in two.
        let (once, twice) = (Sets::singletons(&[0, 0, 0]), Sets::from_iter([[0, 1]; 3]));
        assert_eq!(omega(&once, &twice), 0.0);
        assert_eq!(omega(&twice, &twice), 1.0);
        assert_eq!(omega(&Sets::singletons(&[0]), &Sets::from_iter([[0, 1]])), 1.0);
    }
}
