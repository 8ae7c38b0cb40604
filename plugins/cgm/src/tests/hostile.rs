//! Data and parameters that ask too much.

use compflow_api::Level;
use compflow_kernels::testing::watcher::Watcher;

use super::*;
use crate::{Assignment, Kind};

/// Whether all numbers are numbers.
fn is_finite(found: &Clustering) -> bool {
    found.centroids.iter().chain(&found.memberships).chain(&found.singletons.vectors).all(|v| v.is_finite())
        && found.scalars.iter().all(|(_, value)| value.is_finite())
        && found.diagnostics.trace.iter().all(|value| value.is_finite())
}

fn warnings(task: &Task<'_>, params: Params) -> (Clustering, Vec<String>) {
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let start = task.embeddings.values()[..params.k * task.embeddings.dim()].to_vec();
    let found = cluster(task, params, &start, &services).unwrap();
    let lines = host.lines.into_inner().unwrap();
    (found, lines.into_iter().filter(|(level, _)| *level == Level::Warn).map(|(_, line)| line).collect())
}

#[test]
fn nothing_degenerates() {
    let cases: [(&str, Vec<f32>, usize, usize); 6] = [
        ("more dimensions than examples", examples::uniform(12, 40, 1), 40, 3),
        ("one example per set", examples::uniform(6, 3, 2), 3, 3),
        ("all equal", vec![1.5; 60], 3, 2),
        ("two places", (0..60).map(|at| if at / 3 % 2 == 0 { 1.0 } else { -2.0 }).collect(), 3, 2),
        (
            "a constant dimension",
            (0..60).map(|at| if at % 3 == 0 { 7.0 } else { (at % 11) as f32 }).collect(),
            3,
            3,
        ),
        ("zeros", vec![0.0; 30], 3, 2),
    ];
    for (name, values, dim, k) in cases {
        for normalize in [Normalize::None, Normalize::L2] {
            for (assignment, outliers) in
                [(Assignment::Hard, false), (Assignment::Soft, false), (Assignment::Hard, true)]
            {
                for covariance in [Kind::Tied, Kind::Diagonal, Kind::Spherical] {
                    let planted = Planted {
                        values: values.clone(),
                        truth: Sets::default(),
                        dim,
                        degree: 2,
                        g: Plain::Sum,
                        start: Vec::new(),
                    };
                    let params = Params { assignment, outliers, covariance, ..Params::new(k) };
                    let found =
                        cluster(&planted.task(normalize), params, &values[..k * dim], &Services::none()).unwrap();
                    assert!(is_finite(&found), "{name} {normalize:?} {assignment:?} {outliers} {covariance:?}");
                }
            }
        }
    }
}

#[test]
fn what_was_done_about_it_is_said() {
    let few = Planted {
        values: examples::uniform(12, 40, 1),
        truth: Sets::default(),
        dim: 40,
        degree: 2,
        g: Plain::Sum,
        start: Vec::new(),
    };
    let (found, said) = warnings(&few.task(Normalize::None), Params::new(3));
    assert!(
        said.iter().any(|line| line.contains("little is said by 12 examples of a covariance in 40 dimensions")),
        "{said:?}"
    );
    assert!(resolved(&found, "shrinkage") > 0.5);
    let equal = Planted {
        values: (0..60).map(|at| if at / 3 % 2 == 0 { 1.0 } else { -2.0 }).collect(),
        truth: Sets::default(),
        dim: 3,
        degree: 2,
        g: Plain::Sum,
        start: Vec::new(),
    };
    let same =
        Planted { values: vec![1.5; 60], truth: Sets::default(), g: Plain::Sum, start: Vec::new(), ..equal };
    for planted in [&equal, &same] {
        let (_, said) = warnings(&planted.task(Normalize::None), Params::new(2));
        assert!(said.iter().any(|line| line.contains("are all equal")), "{said:?}");
    }
}

#[test]
fn a_composer_that_is_plainly_wrong_is_asked_about() {
    let mut planted = plant(Plain::Sum, 3, 2, 8, 40, 0.2, 1.0, 3);
    let said = |planted: &Planted| {
        let host = Watcher::new(usize::MAX);
        let services = Services { host: &host, ..Services::none() };
        cluster(&planted.task(Normalize::None), Params::new(3), &planted.start, &services).unwrap();
        let lines = host.lines.into_inner().unwrap();
        lines.into_iter().filter(|(_, line)| line.contains("from where the composer says")).count()
    };
    assert_eq!(said(&planted), 0);
    // Every union in a place of its own.
    for (row, set) in planted.values.chunks_exact_mut(8).zip(planted.truth.iter()) {
        if set.len() == 2 {
            row[set[0] as usize + 2 * set[1] as usize] += 2.0;
        }
    }
    assert_eq!(said(&planted), 1);
}

#[test]
fn residuals_at_their_borders() {
    let planted = plant(Plain::Sum, 3, 2, 4, 20, 0.5, 1.0, 2);
    for tau2 in [0.0, 1e-300, 1e300] {
        let found = planted.cluster(Params { residual: Residual::Value(tau2), ..Params::new(3) });
        assert!(is_finite(&found), "{tau2}");
    }
    assert!(is_finite(&planted.cluster(Params { residual: AUTO, ..Params::new(3) })));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |params: Params| params.check().unwrap_err().to_string();
    let shrinkage = Shrinkage::Value(1.5);
    assert_eq!(
        refused(Params { shrinkage, ..Params::new(3) }),
        "`shrinkage` must be \"auto\" or from 0 to 1, found 1.5"
    );
    let residual = Residual::Value(-1.0);
    assert_eq!(
        refused(Params { residual, ..Params::new(3) }),
        "`residual` must be \"auto\" or at least 0, found -1"
    );
    assert_eq!(
        refused(Params { sample: 2, ..Params::new(3) }),
        "`sample` = 2 is less than `k` = 3, which must be found in it"
    );
    let planted = plant(Plain::Sum, 2, 2, 2, 1, 0.1, 1.0, 1);
    let error = cluster(&planted.task(Normalize::None), Params::new(9), &[], &Services::none()).unwrap_err();
    assert_eq!(error.to_string(), "`k` = 9 is more than the 3 examples");
    let task = Task { composer: None, ..planted.task(Normalize::None) };
    let error = cluster(&task, Params::new(2), &planted.start, &Services::none()).unwrap_err();
    assert_eq!(error.to_string(), "needs a composer, and the pipeline has no [composer]");
}

#[test]
fn work_that_is_no_longer_wanted_stops() {
    let planted = plant(Plain::Sum, 3, 2, 4, 200, 1.5, 1.0, 2);
    let host = Watcher::new(3);
    let services = Services { host: &host, ..Services::none() };
    let cgm = Cgm::beginning_with(Params::new(3), Box::new(Given(planted.values[..12].to_vec())));
    assert_eq!(cgm.cluster(&planted.task(Normalize::None), &services), Err(compflow_api::Error::Cancelled));
}
