//! What must not change the result, and what must hold whatever the data.

use compflow_api::BATCH_ROWS;
use compflow_kernels::testing::watcher::Watcher;
use proptest::prelude::*;

use super::*;
use crate::{Assignment, Kind, Weights};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn neither_the_order_of_rows_nor_numbers_matter(
        seed in 0u64..1000, weights in 0u64..1000, normalise: bool, soft: bool, kind in 0usize..3,
        rows in Just((0..14 * 12).collect::<Vec<usize>>()).prop_shuffle(),
        numbers in Just((0..4).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        // Three that are composed by an order would be composed otherwise under other numbers.
        let planted = plant(Plain::bilinear(8, weights), 4, 3, 8, 12, 0.1, 1.0, seed);
        let other = planted.turned(&rows, &numbers);
        let params = Params {
            covariance: [Kind::Tied, Kind::Diagonal, Kind::Spherical][kind],
            assignment: if soft { Assignment::Soft } else { Assignment::Hard },
            ..Params::new(4)
        };
        let normalize = if normalise { Normalize::L2 } else { Normalize::None };
        let on = |planted: &Planted| {
            cluster(&planted.task(normalize), params.clone(), &planted.start, &Services::none()).unwrap()
        };
        let (before, after) = (on(&planted), on(&other));
        prop_assert_eq!(&after.assignments, &turned(&before.assignments, &rows, &numbers));
        let (a, b) = (after.diagnostics.objective, before.diagnostics.objective);
        prop_assert!((a - b).abs() < 1e-3 * b.abs(), "{} {}", a, b);
        for (at, vector) in after.singletons.vectors.chunks_exact(8).enumerate() {
            for (a, b) in vector.iter().zip(&before.singletons.vectors[numbers[at] * 8..][..8]) {
                prop_assert!((a - b).abs() < 1e-2, "{} {}", a, b);
            }
        }
    }
}

#[test]
fn a_stream_gives_what_the_matrix_gives_for_any_number_of_threads() {
    let planted = plant(Plain::Max, 3, 2, 4, (BATCH_ROWS + 9000) / 6, 1.0, 1.3, 8);
    for (normalize, assignment, outliers) in [
        (Normalize::None, Assignment::Hard, false),
        (Normalize::L2, Assignment::Hard, true),
        (Normalize::L2, Assignment::Soft, false),
    ] {
        let task = planted.task(normalize);
        let params = Params { max_iter: 3, sample: 2000, assignment, outliers, ..Params::new(3) };
        let cgm = |stream| {
            let params = Params { stream, ..params.clone() };
            Cgm::beginning_with(params, Box::new(Given(planted.start.clone())))
        };
        let services = Services::none();
        let whole = cgm(false).cluster(&task, &services).unwrap();
        assert_eq!((cgm(true).streams(), cgm(false).streams()), (Ok(true), Ok(false)));
        for threads in [1, 3] {
            let services = Services { threads, ..Services::none() };
            let read = cgm(true).cluster_stream(&task.stream(), &services).unwrap();
            assert!(read == whole, "{normalize:?} {assignment:?} {outliers} {threads}");
        }
    }
}

#[test]
fn a_weight_of_two_is_the_example_twice() {
    let mut planted = plant(Plain::Sum, 3, 2, 4, 20, 0.8, 1.5, 4);
    let far = examples::uniform(24, 4, 9);
    planted.values.extend(far.iter().map(|value| 12.0 * value));
    (0..24).for_each(|_| planted.truth.push(&[]));
    let n = planted.truth.len();
    let weights: Vec<f32> = (0..n).map(|row| [1.0, 2.0, 0.0][row % 3]).collect();
    let values: Vec<f32> = (0..n)
        .flat_map(|row| std::iter::repeat_n(&planted.values[row * 4..][..4], weights[row] as usize))
        .flatten()
        .copied()
        .collect();
    let rows: Vec<usize> = (0..n).flat_map(|row| std::iter::repeat_n(row, weights[row] as usize)).collect();
    let start: Vec<f32> = planted.values[..12].to_vec();
    for (assignment, outliers) in [(Assignment::Hard, false), (Assignment::Soft, false), (Assignment::Hard, true)]
    {
        let params = Params { assignment, outliers, tol: 0.0, max_iter: 20, ..Params::new(3) };
        let cgm = Cgm::beginning_with(params, Box::new(Given(start.clone())));
        let task = planted.task(Normalize::None);
        let weighted = Task { weights: Some(&weights), ..task };
        let weighted = cgm.cluster(&weighted, &Services::none()).unwrap();
        let repeated = Task { embeddings: Embeddings::new(&values, 4), ..task };
        let repeated = cgm.cluster(&repeated, &Services::none()).unwrap();
        for (at, &row) in rows.iter().enumerate() {
            assert_eq!(repeated.assignments[at], weighted.assignments[row], "{assignment:?} {outliers}");
        }
        for name in ["log_likelihood", "bic", "outliers"] {
            let (a, b) = (scalar(&weighted, name), scalar(&repeated, name));
            assert!((a - b).abs() <= 1e-3 * b.abs(), "{assignment:?} {outliers}: {name} {a} {b}");
        }
        let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-3 * (1.0 + b.abs());
        assert!(weighted.singletons.vectors.iter().zip(&repeated.singletons.vectors).all(close), "{assignment:?}");
        assert_eq!(outliers, scalar(&weighted, "outliers") > 0.0, "there is something to count");
    }
    // Rows that count for nothing may lie anywhere.
    let weights: Vec<f32> = (0..2 * n).map(|row| f32::from(u8::from(row < n))).collect();
    for (outliers, far) in [(false, 40.0), (true, 40.0), (false, 1e6), (true, 1e6), (false, 1e25), (true, 1e25)] {
        let mut values = planted.values.clone();
        values.extend(std::iter::repeat_n(far, 4 * n));
        let cgm = Cgm::beginning_with(Params { outliers, ..Params::new(3) }, Box::new(Given(start.clone())));
        let task = planted.task(Normalize::None);
        let plain = cgm.cluster(&task, &Services::none()).unwrap();
        let task = Task { embeddings: Embeddings::new(&values, 4), weights: Some(&weights), ..task };
        let beside = cgm.cluster(&task, &Services::none()).unwrap();
        (0..n).for_each(|row| {
            assert_eq!(beside.assignments[row], plain.assignments[row], "{outliers} {far} {row}");
        });
        let (a, b) = (scalar(&beside, "log_likelihood"), scalar(&plain, "log_likelihood"));
        assert!((a - b).abs() < 1e-3 * b.abs(), "{outliers} {far}: {a} {b}");
    }
    // Those that add up to 1 are told to count.
    let host = Watcher::new(usize::MAX);
    let normalised = vec![1.0 / n as f32; n];
    let task = Task { weights: Some(&normalised), ..planted.task(Normalize::None) };
    let services = Services { host: &host, ..Services::none() };
    cluster(&task, Params::new(3), &start, &services).unwrap();
    let (said, expected) = (host.warnings(), format!("multiply them by {n} if"));
    assert!(said.iter().any(|line| line.contains(&expected)), "{said:?}");
    let none = vec![0.0; n];
    let task = Task { weights: Some(&none), ..planted.task(Normalize::None) };
    let error = cluster(&task, Params::new(3), &start, &Services::none()).unwrap_err();
    assert_eq!(error.to_string(), "all weights are 0, so there is nothing to cluster");
}

#[test]
fn the_bound_never_falls() {
    let mut rounds = 0;
    for (seed, g) in [(1, Plain::Max), (2, Plain::Sum), (3, Plain::Mean), (4, Plain::bilinear(5, 4))] {
        let planted = plant(g.clone(), 4, 3, 5, 20, 1.5, 1.2, seed);
        for normalize in [Normalize::None, Normalize::L2] {
            for (covariance, weights) in
                [(Kind::Tied, Weights::Sizes), (Kind::Diagonal, Weights::Sets), (Kind::Spherical, Weights::Equal)]
            {
                for (assignment, outliers) in [
                    (Assignment::Hard, false),
                    (Assignment::Hard, true),
                    (Assignment::Soft, false),
                    (Assignment::Soft, true),
                ] {
                    let params = Params {
                        covariance,
                        weights,
                        assignment,
                        outliers,
                        tol: 0.0,
                        max_iter: 40,
                        ..Params::new(4)
                    };
                    // Far from any optimum, so that there is something to climb.
                    let cgm = Cgm::beginning_with(params, Box::new(Given(planted.values[..20].to_vec())));
                    let services = Services { seed, ..Services::none() };
                    let found = cgm.cluster(&planted.task(normalize), &services).unwrap();
                    // The first round knows neither outliers nor posteriors.
                    let trace = &found.diagnostics.trace[1..];
                    rounds += trace.len();
                    for pair in trace.windows(2) {
                        assert!(
                            pair[1] >= pair[0] - 1e-6 * (pair[0].abs() + 100.0),
                            "{g:?} {normalize:?} {covariance:?} {weights:?} {assignment:?} {outliers}: {pair:?}"
                        );
                    }
                }
            }
        }
    }
    assert!(rounds > 500, "{rounds}");
}

#[test]
fn units_change_nothing() {
    let planted = plant(Plain::Sum, 3, 2, 4, 30, 0.6, 1.5, 6);
    let found = planted.cluster(Params::new(3));
    for unit in [1e-20f32, 1000.0, 1e15] {
        let values: Vec<f32> = planted.values.iter().map(|value| value * unit).collect();
        let task = Task { embeddings: Embeddings::new(&values, 4), ..planted.task(Normalize::None) };
        let start: Vec<f32> = planted.start.iter().map(|value| value * unit).collect();
        let other = cluster(&task, Params::new(3), &start, &Services::none()).unwrap();
        assert_eq!(other.assignments, found.assignments, "{unit}");
        let shift = planted.truth.len() as f64 * 4.0 * f64::from(unit).ln();
        let (a, b) = (scalar(&other, "log_likelihood") + shift, scalar(&found, "log_likelihood"));
        assert!((a - b).abs() < 1e-3 * b.abs(), "{unit}: {a} {b}");
    }
}
