//! How close examples are to the centres of their clusters: `ssd` = Σ_i ‖x_i - μ(c_i)‖², and `msd` = `ssd` / n, over the
//! n examples that are in a cluster, in the pipeline's space. What k-means minimises.
//!
//! Squared Euclidean distances whatever the pipeline's `distance`, of points that are normalised if its space does that.
//! μ is as [`clusters`](crate::clusters) says. Both are 0 if no example is in a cluster. O(n p) for p dimensions.

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services};

use crate::clusters::Clusters;

pub(crate) struct Ssd;
compflow_api::register!(evaluator Ssd);

impl Component for Ssd {
    const NAME: &'static str = "ssd";
    const SUMMARY: &'static str = "sum and mean of squared distances from the clusters' centres; needs no truth";
    const DOCUMENTATION: &'static str = "\
How close examples are to the centres of their clusters, without looking at the truth: `ssd` is the sum of the squared
Euclidean distances in the pipeline's space, `msd` their mean. Every distinct set is a cluster of its own; its centre is
the method's or, if it has none, the mean of its examples. Examples that are in no cluster are left out. Less is better,
and more clusters give less.";
    const FLAGS: Flags = Flags::NEEDS_EMBEDDINGS;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Ssd {
    fn metrics(&self) -> Vec<Metric> {
        ["ssd", "msd"].map(Metric::distance).to_vec()
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let clusters = Clusters::new(evaluation, services)?;
        let mut ssd = 0.0;
        clusters.each(evaluation, services, |cluster, point| ssd += clusters.squared(cluster, point))?;
        Ok(vec![ssd, ssd / clusters.examples().max(1) as f64])
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Embeddings, ForeignEvaluator, Normalize, Registration, Sets, Space};
    use proptest::prelude::*;

    use super::*;
    use crate::clusters::tests::{evaluation, examples, naive};

    fn scores(values: &[f32], dim: usize, predicted: &Sets, space: Space) -> Vec<f64> {
        let rows = Embeddings::new(values, dim);
        Ssd.evaluate(&evaluation(&rows, predicted, space), &Services::none()).unwrap()
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition((values, predicted) in examples(10), normalised: bool) {
            let normalize = if normalised { Normalize::L2 } else { Normalize::None };
            let space = Space { normalize, ..Space::default() };
            let (points, centres) = naive(&values, 10, &predicted, space);
            let squares: Vec<f64> = points.iter().flatten().map(|(point, set)| {
                point.iter().zip(&centres[set]).map(|(a, b)| (a - b).powi(2)).sum()
            }).collect();
            let expected: f64 = squares.iter().sum();
            let found = scores(&values, 10, &predicted, space);
            prop_assert!((found[0] - expected).abs() < 1e-9, "{found:?} {expected}");
            prop_assert!((found[1] * squares.len() as f64 - expected).abs() < 1e-9, "{found:?} {expected}");
        }
    }

    #[test]
    fn a_case_by_hand() {
        // Centres 2 and 10, and an example that is in no cluster.
        let predicted = Sets::from_iter([vec![0], vec![0], vec![0, 1], vec![]]);
        assert_eq!(scores(&[1.0, 3.0, 10.0, 99.0], 1, &predicted, Space::default()), [2.0, 2.0 / 3.0]);
        assert_eq!(scores(&[1.0, 3.0], 1, &Sets::from_iter([[], []]), Space::default()), [0.0, 0.0]);
    }

    #[test]
    fn works_across_the_boundary() -> Result<()> {
        let component = Registration::evaluator::<Ssd>().component()?;
        assert_eq!(component.flags(), Flags::NEEDS_EMBEDDINGS);
        let ssd = ForeignEvaluator::try_from(component.create("{}", &Services::none())?)?;
        assert_eq!(ssd.metrics(), Ssd.metrics());
        let (rows, predicted) = (Embeddings::new(&[0.0, 0.0, 3.0, 4.0], 2), Sets::singletons(&[0, 0]));
        let clusters = Sets::singletons(&[0]);
        let mut evaluation = evaluation(&rows, &predicted, Space::default());
        assert_eq!(ssd.evaluate(&evaluation, &Services::none())?, [12.5, 6.25]);
        (evaluation.clusters, evaluation.centroids) = (Some(&clusters), Some(&[0.0, 0.0][..]));
        assert_eq!(ssd.evaluate(&evaluation, &Services::none())?, [25.0, 12.5]);
        Ok(())
    }
}
