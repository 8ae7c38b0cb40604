//! The values that scikit-learn computes for the labels in `tests/fixtures`.

use compflow_api::{Evaluator, Sets};
use serde::Deserialize;

use crate::ami::Ami;
use crate::ari::Ari;
use crate::naive;
use crate::nmi::Nmi;

#[derive(Deserialize)]
struct Fixture {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    truth: Vec<u32>,
    predicted: Vec<u32>,
    ari: f64,
    nmi: f64,
    ami: f64,
}

#[test]
fn agrees_with_scikit_learn() {
    let fixture: Fixture = serde_json::from_str(include_str!("../tests/fixtures/sklearn.json")).unwrap();
    assert!(fixture.cases.len() > 20);
    for case in fixture.cases {
        let (truth, predicted) = (Sets::singletons(&case.truth), Sets::singletons(&case.predicted));
        let check = |evaluator: &dyn Evaluator, expected: f64, tolerance: f64| {
            let found = naive::score(evaluator, &truth, &predicted)[0];
            let metric = &evaluator.metrics()[0].name;
            assert!((found - expected).abs() <= tolerance, "{}: {metric} {found}, expected {expected}", case.name);
        };
        check(&Ari, case.ari, 1e-15);
        check(&Nmi, case.nmi, 1e-14);
        // scikit-learn's expectation comes from logarithms of factorials, which cost it some digits.
        check(&Ami, case.ami, 1e-12);
    }
}
