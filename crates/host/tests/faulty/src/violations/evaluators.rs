//! Evaluators that break rules.

use std::time::Duration;

use compflow_api::{Component, Evaluator, Flags, Metric, NoParams, Result, Services, Sets, register};

use super::{calls, leak};

component!(evaluator Literal, "literal", "takes labels for numbers");

impl Evaluator for Literal {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::larger("literal")]
    }

    fn evaluate(&self, truth: &Sets, _predicted: &Sets, _services: &Services<'_>) -> Result<Vec<f64>> {
        Ok(vec![f64::from(truth[0][0])])
    }
}

component!(evaluator Repetitive, "repetitive", "one metric twice");

impl Evaluator for Repetitive {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::larger("again"), Metric::larger("again")]
    }

    fn evaluate(&self, _truth: &Sets, _predicted: &Sets, _services: &Services<'_>) -> Result<Vec<f64>> {
        Ok(vec![1.0, 2.0])
    }
}

component!(evaluator Erratic, "erratic", "another result every time, memory is lost, and it does not stop");

impl Evaluator for Erratic {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::larger("erratic")]
    }

    fn evaluate(&self, truth: &Sets, _predicted: &Sets, _services: &Services<'_>) -> Result<Vec<f64>> {
        leak();
        if truth.len() > 1000 {
            std::thread::sleep(Duration::from_secs(3));
        }
        Ok(vec![calls().into()])
    }
}

component!(evaluator Brittle, "brittle", "panics on what is unusual");

impl Evaluator for Brittle {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::larger("brittle")]
    }

    fn evaluate(&self, truth: &Sets, predicted: &Sets, _services: &Services<'_>) -> Result<Vec<f64>> {
        assert!(truth.len() > 1, "too few");
        assert!(predicted.iter().any(|set| set != &predicted[0]), "the same again");
        assert!(predicted.iter().flatten().all(|label| *label < 1000), "too much");
        Ok(vec![1.0])
    }
}
