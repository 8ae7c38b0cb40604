//! The simplified silhouette: how much nearer examples are to the centre of their own cluster than to any other's.
//!
//! s_i = (b_i - a_i) / max(a_i, b_i), with a_i the distance of example i from the centre of its cluster and b_i that from
//! the nearest other centre; the metric is the mean over all examples that are in a cluster. Rousseeuw 1987,
//! doi:10.1016/0377-0427(87)90125-7, has mean distances to all examples of a cluster in place of those to its centre;
//! with centres (Hruschka, de Castro & Campello 2004, doi:10.1109/ICDM.2004.10073) it costs O(n k p) for k clusters, not
//! O(n² p), and the examples need not be in memory.
//!
//! As Rousseeuw has it, an example that is alone in its cluster counts 0: otherwise every example alone would be best.
//! So does one that is as far from both, be it because both are 0. If there is but one cluster, or none, the metric is 0.
//! Distances are those of the pipeline's space: of squared ones, the quotient a/b is squared as well. Centres are as
//! [`clusters`](crate::clusters) says.

use compflow_api::{Component, Distance, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services};

use crate::clusters::Clusters;

pub(crate) struct Silhouette;
compflow_api::register!(evaluator Silhouette);

impl Component for Silhouette {
    const NAME: &'static str = "silhouette";
    const SUMMARY: &'static str = "simplified silhouette: how clearly clusters are apart; needs no truth";
    const DOCUMENTATION: &'static str = "\
The simplified silhouette, which does not look at the truth: the mean over examples of (b - a) / max(a, b), where a is the
distance from the centre of the example's own cluster and b that from the nearest other centre, in the pipeline's space.
1 is far apart, 0 no structure, below 0 the wrong cluster. Every distinct set is a cluster of its own; its centre is the
method's or, if it has none, the mean of its examples. Examples that are alone in their cluster count 0, and those that
are in no cluster are left out.";
    const FLAGS: Flags = Flags::NEEDS_EMBEDDINGS;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Silhouette {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::number("silhouette").between(-1.0, 1.0)]
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let clusters = Clusters::new(evaluation, services)?;
        if clusters.len() < 2 {
            return Ok(vec![0.0]);
        }
        let mut sum = 0.0;
        clusters.each(evaluation, services, |own, point| {
            if clusters.size(own) > 1 {
                let others = (0..clusters.len()).filter(|&other| other != own);
                let nearest = others.map(|other| clusters.squared(other, point)).fold(f64::INFINITY, f64::min);
                sum += silhouette(clusters.squared(own, point), nearest, evaluation.space.distance);
            }
        })?;
        Ok(vec![sum / clusters.examples() as f64])
    }
}

/// s of an example at these squared distances.
fn silhouette(own: f64, nearest: f64, distance: Distance) -> f64 {
    let (a, b) = match distance {
        Distance::SqEuclidean => (own, nearest),
        Distance::Euclidean => (own.sqrt(), nearest.sqrt()),
    };
    if a == b { 0.0 } else { (b - a) / a.max(b) }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Embeddings, ForeignEvaluator, Normalize, Registration, Sets, Space};
    use proptest::prelude::*;

    use super::*;
    use crate::clusters::tests::{evaluation, examples, naive};

    const EUCLIDEAN: Space = Space { normalize: Normalize::None, distance: Distance::Euclidean };

    fn score(values: &[f32], dim: usize, predicted: &Sets, space: Space) -> f64 {
        let rows = Embeddings::new(values, dim);
        Silhouette.evaluate(&evaluation(&rows, predicted, space), &Services::none()).unwrap()[0]
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition((values, predicted) in examples(3), normalised: bool, squared: bool) {
            let space = Space {
                normalize: if normalised { Normalize::L2 } else { Normalize::None },
                distance: if squared { Distance::SqEuclidean } else { Distance::Euclidean },
            };
            let (points, centres) = naive(&values, 3, &predicted, space);
            let distance = |a: &[f64], b: &[f64]| {
                let squared_distance: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
                if squared { squared_distance } else { squared_distance.sqrt() }
            };
            let of_example = |(point, set): &(Vec<f64>, Vec<u32>)| {
                let alone = predicted.iter().filter(|other| other == set).count() == 1;
                let others = centres.iter().filter(|(other, _)| *other != set);
                let b = others.map(|(_, centre)| distance(point, centre)).min_by(f64::total_cmp)?;
                let a = distance(point, &centres[set]);
                if alone || a == b { None } else { Some((b - a) / a.max(b)) }
            };
            let examples = points.iter().flatten().count();
            let sum: f64 = points.iter().flatten().filter_map(of_example).sum();
            let expected = if examples == 0 { 0.0 } else { sum / examples as f64 };
            let found = score(&values, 3, &predicted, space);
            prop_assert!((-1.0..=1.0).contains(&found));
            // Where a and b are equal but for rounding, both are 0: on this grid, what differs does so by far.
            prop_assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn a_case_by_hand() {
        // Centres 1 and 6; the third example, in no cluster, and the last, alone in its own at 20, count nothing.
        let predicted = Sets::from_iter([vec![0], vec![0], vec![], vec![0, 1], vec![0, 1], vec![7]]);
        let values = [0.0, 2.0, 50.0, 5.0, 7.0, 20.0];
        // a = 1 everywhere; b = 6, 4, 4, 6.
        let expected = (2.0 * 5.0 / 6.0 + 2.0 * 3.0 / 4.0) / 5.0;
        assert!((score(&values, 1, &predicted, EUCLIDEAN) - expected).abs() < 1e-15);
        let squared = (2.0 * 35.0 / 36.0 + 2.0 * 15.0 / 16.0) / 5.0;
        assert!((score(&values, 1, &predicted, Space::default()) - squared).abs() < 1e-15);
    }

    #[test]
    fn without_two_clusters_and_without_a_difference_it_is_0() {
        let values = [1.0, 2.0, 1.0, 2.0];
        for predicted in [
            Sets::singletons(&[0; 4]),
            Sets::from_iter([[]; 4]),
            Sets::singletons(&[0, 1, 2, 3]),
            Sets::singletons(&[0, 0, 1, 1]),
        ] {
            assert_eq!(score(&values, 1, &predicted, EUCLIDEAN), 0.0, "{predicted:?}");
        }
        assert_eq!(score(&[3.0; 4], 1, &Sets::singletons(&[0, 0, 1, 1]), EUCLIDEAN), 0.0);
    }

    #[test]
    fn works_across_the_boundary() -> Result<()> {
        let component = Registration::evaluator::<Silhouette>().component()?;
        assert_eq!(component.flags(), Flags::NEEDS_EMBEDDINGS);
        let silhouette = ForeignEvaluator::try_from(component.create("{}", &Services::none())?)?;
        assert_eq!(silhouette.metrics(), Silhouette.metrics());
        let (rows, predicted) = (Embeddings::new(&[0.0, 2.0, 5.0, 7.0], 1), Sets::singletons(&[0, 0, 1, 1]));
        let clusters = Sets::singletons(&[0, 1]);
        let mut evaluation = evaluation(&rows, &predicted, EUCLIDEAN);
        let found = silhouette.evaluate(&evaluation, &Services::none())?[0];
        assert!((found - (5.0 / 6.0 + 3.0 / 4.0) / 2.0).abs() < 1e-15);
        // The method's centres are the first examples.
        (evaluation.clusters, evaluation.centroids) = (Some(&clusters), Some(&[0.0, 5.0][..]));
        let found = silhouette.evaluate(&evaluation, &Services::none())?[0];
        assert!((found - (1.0 + 1.0 / 3.0 + 1.0 + 5.0 / 7.0) / 4.0).abs() < 1e-15);
        Ok(())
    }
}
