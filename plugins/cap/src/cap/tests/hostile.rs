//! Bad input, too little memory, and work that is no longer wanted.

use super::*;

#[test]
fn what_did_not_converge_is_usable_and_says_so() {
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let values = examples::uniform(40, 2, 6);
    for (preference, max_iter) in [(-1000.0, 1), (-0.1, 14)] {
        let params = Params { max_iter, finish: Finish::Move, ..at(preference) };
        let found = cluster(&task(&values, 2, 2), params, &services).unwrap();
        assert!(!found.diagnostics.converged);
    }
    let warnings = host.warnings();
    assert_eq!(
        warnings[0],
        "cap did not converge in 1 iteration, and found no exemplar; raise `damping` or `max_iter`"
    );
    assert!(warnings.contains(&"cap did not converge in 14 iterations; raise `damping` or `max_iter`".to_owned()));
}

#[test]
fn few_or_equal_examples_are_clustered() {
    let count = |values: &[f32], degree, params| found(&task(values, 1, degree), params).clusters.len();
    assert_eq!(count(&[3.0], 1, Params::default()), 1);
    assert_eq!(count(&[3.0], 5, Params::default()), 1);
    assert_eq!(count(&[3.0; 6], 2, Params::default()), 1);
    assert_eq!(count(&[3.0; 6], 2, at(0.5)), 6);
    assert_eq!(count(&[0.0, 1.0], 7, at(-2.0)), 1);
    assert_eq!(count(&[0.0, 1.0], 2, at(-0.1)), 2);
    assert_eq!(count(&[0.0, 1.0, 5.0], 9, at(-0.1)), 3);
    assert_eq!(count(&[3.0; 6], 2, target(5)), 5);
    assert_eq!(count(&[0.0, 1.0, 5.0], 2, Params { candidates: Some(1), ..at(-0.1) }), 1);
}

#[test]
fn huge_and_tiny_values_do_not_overflow() {
    let (values, truth) = shapes(1.0, 0.1, 0.1, 7);
    for unit in [1e-25, 1e35] {
        let values: Vec<f32> = values.iter().map(|value| value * unit).collect();
        let found = found(&task(&values, 3, 2), target(3));
        assert!(agreement(&found.assignments, &truth) == 1.0);
        assert!(found.diagnostics.objective < 0.0 && found.diagnostics.objective.is_finite());
    }
}

#[test]
fn a_composer_that_fails_names_the_set() {
    struct Broken;
    impl Composer for Broken {
        fn compose(
            &self,
            dim: usize,
            left: &[f32],
            right: &[f32],
            out: &mut [f32],
            services: &Services<'_>,
        ) -> Result<()> {
            Sum.compose(dim, left, right, out, services)?;
            out[0] = f32::NAN;
            Ok(())
        }
    }
    let values = examples::uniform(5, 2, 8);
    let broken = Task { composer: Some(&Broken), ..task(&values, 2, 2) };
    let refused = cluster(&broken, at(-1.0), &Services::none()).unwrap_err().to_string();
    assert_eq!(refused, "composing the set [0, 1] gave NaN");
    let refused =
        cluster(&Task { composer: None, ..broken }, at(-1.0), &Services::none()).unwrap_err().to_string();
    assert_eq!(refused, "composing several needs a composer, and the pipeline has no [composer]");
    assert_eq!(found(&Task { composer: None, degree: 1, ..broken }, at(-100.0)).clusters.len(), 1);
}

#[test]
fn too_little_memory_is_refused_with_both_remedies() {
    let values = examples::uniform(100, 4, 9);
    let services = Services { memory: 50_000, ..Services::none() };
    let refused = cluster(&task(&values, 4, 2), at(-1.0), &services).unwrap_err().to_string();
    assert!(refused.ends_with("cluster a `subset`, or let only some `candidates` become exemplars"), "{refused}");
}

#[test]
fn work_that_is_no_longer_wanted_stops() {
    let values = examples::uniform(100, 3, 8);
    for (threads, patience) in [(1, 1), (2, 3)] {
        let host = Watcher::new(patience);
        let services = Services { host: &host, threads, ..Services::none() };
        let params = Params { max_iter: 1_000_000, convergence_iter: 1_000_000, ..at(-1.0) };
        assert_eq!(cluster(&task(&values, 3, 2), params, &services).unwrap_err(), Error::Cancelled);
        assert_eq!(host.reports.lock().unwrap().len(), patience);
    }
}
