//! The parameter `threshold`: how near a composition must be for a cluster to be called one.

use compflow_api::Distance;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distance in the pipeline's space, or a rule that finds one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Threshold {
    /// This distance.
    Value(#[schemars(range(min = 0))] f64),
    /// Where the distances of the clusters part.
    Auto(Auto),
}

/// The rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Auto {
    /// Where the distances of the clusters part.
    Auto,
}

/// Which distances are near enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limit {
    pub(crate) threshold: f64,
    /// Whether the threshold itself is.
    pub(crate) inclusive: bool,
}

impl Limit {
    pub(crate) fn admits(&self, distance: f64) -> bool {
        distance < self.threshold || self.inclusive && distance == self.threshold
    }
}

/// The rule `"auto"`: the clusters' distances from their nearest compositions are cut into near and far ones such that
/// the squared deviations from the two means are least, and the threshold is the middle between the farthest of the near
/// and the nearest of the far. Distances always part somewhere; whether that says anything is asked of the [null](crate::null).
/// How far apart the two are does not tell: a mean of n examples lies σ²/n from where it belongs, which is added to near and far
/// distances alike. 0, which admits nothing, if there are fewer than two.
///
/// Both the cut and the middle are those of Euclidean distances, whatever the pipeline's `distance`, so that either
/// kind leads to the same clusters.
pub(crate) fn auto(distances: &[f64], kind: Distance) -> f64 {
    let mut sorted: Vec<f64> = match kind {
        Distance::SqEuclidean => distances.iter().map(|squared| squared.sqrt()).collect(),
        Distance::Euclidean => distances.to_vec(),
    };
    sorted.sort_by(f64::total_cmp);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let spread = |part: &[f64]| part.iter().map(|distance| (distance - mean(part)).powi(2)).sum::<f64>();
    let cuts = (1..sorted.len()).map(|at| sorted.split_at(at));
    let parted = cuts.min_by(|a, b| (spread(a.0) + spread(a.1)).total_cmp(&(spread(b.0) + spread(b.1))));
    let Some((near, far)) = parted else { return 0.0 };
    let middle = f64::midpoint(near[near.len() - 1], far[0]);
    match kind {
        Distance::SqEuclidean => middle * middle,
        Distance::Euclidean => middle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lies_between_the_near_and_the_far() {
        let distances = [1.0, 0.3, 0.1, 0.2, 1.2, 0.2];
        assert_eq!(auto(&distances, Distance::Euclidean), 0.65);
        let squared: Vec<f64> = distances.iter().map(|distance| distance * distance).collect();
        assert!((auto(&squared, Distance::SqEuclidean) - 0.65 * 0.65).abs() < 1e-12);
    }

    #[test]
    fn its_scale_is_that_of_the_distances() {
        let distances = [0.5, 4.0, 0.25, 3.0];
        let scaled: Vec<f64> = distances.iter().map(|distance| distance * 1024.0).collect();
        assert_eq!(auto(&scaled, Distance::Euclidean), 1024.0 * auto(&distances, Distance::Euclidean));
    }

    #[test]
    fn what_does_not_part_admits_nothing() {
        for distances in [&[][..], &[1.0], &[0.0, 0.0, 0.0], &[2.0, 2.0, 2.0]] {
            let limit = Limit { threshold: auto(distances, Distance::Euclidean), inclusive: false };
            assert!(!distances.iter().any(|distance| limit.admits(*distance)), "{distances:?}");
        }
        assert_eq!(auto(&[0.0, 0.0, 2.0], Distance::Euclidean), 1.0);
    }

    #[test]
    fn only_the_authors_admit_the_threshold_itself() {
        let limit = |inclusive| Limit { threshold: 0.4, inclusive };
        assert!(limit(false).admits(0.39) && !limit(false).admits(0.4));
        assert!(limit(true).admits(0.4) && !limit(true).admits(0.41));
    }
}
