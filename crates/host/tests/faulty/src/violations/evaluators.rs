//! Evaluators that break rules.

use std::time::Duration;

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services, register};

use super::{calls, leak};

/// Declares what an evaluator reports and how it scores.
macro_rules! evaluator {
    ($type:ident, $metrics:expr, |$evaluation:ident| $scores:expr) => {
        impl Evaluator for $type {
            fn metrics(&self) -> Vec<Metric> {
                $metrics
            }

            fn evaluate(&self, $evaluation: &Evaluation<'_>, _services: &Services<'_>) -> Result<Vec<f64>> {
                $scores
            }
        }
    };
}

component!(evaluator Literal, "literal", "takes labels for numbers, and does not say that it needs true ones");

evaluator!(Literal, vec![Metric::number("literal")], |evaluation| {
    Ok(vec![f64::from(evaluation.truth()?.iter().flatten().copied().next().unwrap_or(0))])
});

component!(evaluator Repetitive, "repetitive", "one metric twice");

evaluator!(Repetitive, vec![Metric::number("again"), Metric::number("again")], |_evaluation| Ok(vec![1.0, 2.0]));

component!(evaluator Immodest, "immodest", "more than there can be, and less than nothing");

evaluator!(Immodest, vec![Metric::share("immodest"), Metric::count("owed").between(-2.0, 2.0)], |_evaluation| Ok(
    vec![1.5, 0.0]
));

component!(
    evaluator Erratic,
    "erratic",
    "another result every time, memory is lost, and it does not stop",
    Flags::NEEDS_TRUTH
);

evaluator!(Erratic, vec![Metric::number("erratic")], |evaluation| {
    leak();
    if evaluation.predicted.len() > 1000 {
        std::thread::sleep(Duration::from_secs(3));
    }
    Ok(vec![calls().into()])
});

component!(evaluator Brittle, "brittle", "panics on what is unusual");

evaluator!(Brittle, vec![Metric::number("brittle")], |evaluation| {
    let predicted = evaluation.predicted;
    assert!(predicted.len() > 1, "too few");
    assert!(predicted.iter().all(|set| !set.is_empty()), "nothing there");
    assert!(predicted.iter().any(|set| set != &predicted[0]), "the same again");
    assert!(predicted.iter().flatten().all(|label| *label < 1000), "too much");
    Ok(vec![1.0])
});

component!(evaluator Rootless, "rootless", "panics without centroids", Flags::NEEDS_EMBEDDINGS);

evaluator!(Rootless, vec![Metric::number("rootless")], |evaluation| {
    evaluation.rows()?;
    assert!(evaluation.centroids.is_some(), "nothing in the middle");
    Ok(vec![1.0])
});

component!(
    evaluator Absentminded,
    "absentminded",
    "asks for one column and looks for another",
    Flags::NONE,
    Ok(Self),
    {
        fn columns(&self) -> Vec<String> {
            vec!["height".to_owned()]
        }
    }
);

evaluator!(Absentminded, vec![Metric::number("absentminded")], |evaluation| {
    evaluation.column("width")?;
    Ok(vec![1.0])
});
