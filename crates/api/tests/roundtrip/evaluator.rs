//! Scores, with their names, units and ranges.

use compflow_api::*;

use crate::component::{Params, make};

component!(TestEvaluator, "e", Flags::NONE);

fn metrics() -> Vec<Metric> {
    vec![Metric::share("good"), Metric::count("bad").between(2.0, 8.0), Metric::number("sum").smaller_is_better()]
}

impl Evaluator for TestEvaluator {
    fn metrics(&self) -> Vec<Metric> {
        metrics()
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, _services: &Services<'_>) -> Result<Vec<f64>> {
        self.0.act()?;
        let mut sum = 0.0;
        if let Some(rows) = evaluation.rows {
            rows.pass(&mut |batch| {
                sum += batch.values().iter().sum::<f32>();
                Ok(())
            })?;
        }
        sum += evaluation.centroids.map_or(0.0, |centroids| centroids.iter().sum());
        sum += evaluation.clusters.map_or(0.0, |clusters| 100.0 * clusters.len() as f32);
        let truth = evaluation.truth.map_or(-1.0, |truth| truth.len() as f64);
        Ok(vec![truth, evaluation.predicted[0].first().copied().map_or(-1.0, f64::from), sum.into()])
    }
}

#[test]
fn scores_cross_with_their_names_units_and_ranges() {
    let evaluator: ForeignEvaluator = make(&Registration::evaluator::<TestEvaluator>(), "fine").unwrap();
    assert_eq!(evaluator.metrics(), metrics());
    let (truth, predicted) = (Sets::singletons(&[0, 1]), Sets::singletons(&[7, 8]));
    let evaluation = Evaluation::new(&predicted, &truth);
    let none = Services::none();
    assert_eq!(evaluator.evaluate(&evaluation, &none), Ok(vec![2.0, 7.0, 0.0]));
    let other = Sets::singletons(&[1]);
    let error = evaluator.evaluate(&Evaluation::new(&other, &truth), &none).unwrap_err();
    assert_eq!(error.to_string(), "2 true sets cannot be compared with 1 predicted ones");
    let rows = Embeddings::new(&[1.0, 2.0, 3.0, 4.0], 2);
    let full = Evaluation {
        truth: None,
        predicted: &Sets::from_iter([vec![], vec![7]]),
        rows: Some(&rows),
        clusters: Some(&other),
        centroids: Some(&[0.5, 0.25]),
        ..evaluation
    };
    assert_eq!(evaluator.evaluate(&full, &none), Ok(vec![-1.0, -1.0, 110.75]));
    let short = Evaluation { centroids: Some(&[0.5]), ..full };
    assert!(evaluator.evaluate(&short, &none).is_err(), "half a centroid");
}
