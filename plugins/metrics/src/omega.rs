//! The Omega index: agreement on how many clusters two examples share, corrected for chance.
//!
//! Collins & Dent 1988, doi:10.1207/s15327906mbr2302_6. Over all pairs of examples, with J(t, u) the share of
//! pairs that have t predicted and u true clusters in common,
//! ω = (Σ_t J(t, t) - Σ_t J(t, ·) J(·, t)) / (1 - Σ_t J(t, ·) J(·, t)).
//! It is the adjusted Rand index if all sets are singletons. Cost and limit: those of
//! [`overlaps`](crate::overlaps). Labels that agree on all pairs score 1, also if there are none or all are alike.

use compflow_api::{Component, Evaluator, Metric, NoParams, Result, Services, Sets};

use crate::overlaps::each_overlap;

pub(crate) struct Omega;
compflow_api::register!(evaluator Omega);

impl Component for Omega {
    const NAME: &'static str = "omega";
    const SUMMARY: &'static str = "Omega index: agreement on the number of shared clusters, corrected for chance";
    const DOCUMENTATION: &'static str = "\
The Omega index: over all pairs of examples, agreement on the *number* of clusters that both belong to, corrected for
chance. It equals the adjusted Rand index if every set has one member.";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Omega {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::larger("omega")]
    }

    fn evaluate(&self, truth: &Sets, predicted: &Sets, services: &Services<'_>) -> Result<Vec<f64>> {
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
    use proptest::prelude::*;

    use super::*;
    use crate::naive::{self, labels};

    fn omega(truth: &Sets, predicted: &Sets) -> f64 {
        Omega.evaluate(truth, predicted, &Services::none()).unwrap()[0]
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition((truth, predicted) in labels()) {
            prop_assert!((omega(&truth, &predicted) - naive::omega(&truth, &predicted)).abs() < 1e-12);
        }
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
