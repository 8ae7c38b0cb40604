use compflow_api::{Embeddings, Error, ForeignClusterer, Registration, Services, Sets, Shape};

use super::*;
use crate::fixtures::{Fixtures, deviation};
use crate::naive;
use crate::parity;
use compflow_kernels::testing::examples;
use compflow_kernels::testing::watcher::Watcher;

fn fcm(k: usize, m: f64) -> Fcm {
    Fcm { k, m, threshold: None, error: 0.005, max_iter: 1000 }
}

fn cluster(values: &[f32], dim: usize, fcm: &Fcm, services: &Services<'_>) -> Result<Clustering> {
    let mut task = Task::new(Embeddings::new(values, dim));
    task.degree = 2;
    let clustering = fcm.cluster(&task, services)?;
    clustering.check(&task)?;
    Ok(clustering)
}

fn run(fcm: &Fcm, tiles: &Tiles, first: &[f64]) -> Run {
    fcm.run(tiles, first, &Workers::alone(), &Services::none()).unwrap()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

#[test]
fn equals_scikit_fuzzy_from_the_same_memberships() {
    let fixtures = Fixtures::new();
    let mut largest = 0.0f64;
    for (case, data) in fixtures.cases("fcm") {
        let (points, dim) = fixtures.points(data);
        let [k, m, error, max_iter, fpc] = fixtures.numbers(&format!("{case}/params")).1[..] else { panic!() };
        let fcm = Fcm { error, max_iter: max_iter as usize, ..fcm(k as usize, m) };
        let tiles = Tiles::new(&points, None, dim, 1);
        let found = run(&fcm, &tiles, &fixtures.numbers(&format!("{case}/start")).1);

        let expected = |name: &str| fixtures.numbers(&format!("{case}/{name}")).1;
        assert_eq!(found.trace.len(), expected("trace").len(), "{case}: iterations");
        let memberships = tiles.rows(&found.u);
        let sets = soft::sets(&memberships, fcm.k, soft::EQUAL_SHARE, 2);
        assert_eq!(sets, Sets::from_iter(fixtures.sets(&case)), "{case}");
        // In f64: rounding to f32 would be all there is to see.
        let exact = exact_rows(&tiles, &found.u);
        let deviations = [
            deviation(&exact, &expected("memberships"), 1e-6),
            deviation(&found.centres, &expected("centres"), 1e-6),
            deviation(&found.trace, &expected("trace"), 1e-6),
            deviation(&[found.fpc], &[fpc], 1e-6),
        ];
        println!("{case}: memberships, centres, objective, coefficient deviate by {deviations:?}");
        largest = deviations.into_iter().fold(largest, f64::max);
    }
    assert!(largest < 1e-6);
    parity::check("`fcm`", largest);
}

/// A table's rows as they are.
fn exact_rows(tiles: &Tiles, table: &[f64]) -> Vec<f64> {
    let columns = table.len() / tiles.len().next_multiple_of(ROWS);
    let at = |row: usize, column: usize| table[row / ROWS * ROWS * columns + column * ROWS + row % ROWS];
    (0..tiles.len()).flat_map(|row| (0..columns).map(move |column| at(row, column))).collect()
}

#[test]
fn one_iteration_equals_plain_loops() {
    for (n, dim, k, m) in [(1, 1, 1, 2.0), (10, 3, 4, 1.2), (300, 5, 7, 1.9), (1500, 8, 3, 4.0)] {
        let values = examples::uniform(n, dim, 1);
        let first: Vec<f64> = examples::uniform(n, k, 2).iter().map(|&value| f64::from(value) + 1.1).collect();
        let (tiles, fcm) = (Tiles::new(&values, None, dim, 1), Fcm { max_iter: 1, ..fcm(k, m) });
        let found = run(&fcm, &tiles, &first);
        let (centres, u, objective) = naive::fuzzy_step(&wide(&values), &first, dim, k, m);
        assert!(deviation(&found.centres, &centres, 1e-3) < 1e-12);
        assert!(deviation(&exact_rows(&tiles, &found.u), &u, 1e-12) < 1e-10);
        assert!(deviation(&found.trace, &[objective], 1e-6) < 1e-12);
    }
}

#[test]
fn powers_of_whole_numbers_are_products_and_equal_the_others() {
    assert_eq!(Power::new(2.0), Power::Products(0));
    assert_eq!(Power::new(1.2), Power::Products(4));
    assert_eq!(Power::new(1.1), Power::Products(9));
    assert_eq!(Power::new(3.0), Power::Any(0.5));
    let ratios = [1.0, 0.9, 0.5, 0.1, 1e-3, 1e-10, 1e-30, 0.0];
    let (products, any) = (Power::new(1.2).of(ratios), Power::Any(5.0).of(ratios));
    assert!(deviation(&products, &any, 1e-300) < 1e-14);
}

#[test]
fn the_objective_never_rises_and_memberships_add_up() {
    for (m, seed) in [(1.05, 1), (1.2, 2), (2.0, 3), (8.0, 4)] {
        let values = examples::uniform(700, 4, seed);
        let found = cluster(&values, 4, &Fcm { error: 1e-6, ..fcm(9, m) }, &Services::none()).unwrap();
        let trace = &found.diagnostics.trace;
        assert!(trace.is_sorted_by(|a, b| *b <= a * (1.0 + 1e-12)), "m = {m}: {trace:?}");
        assert_eq!(found.diagnostics.iterations, trace.len() as u64);
        for row in found.memberships.chunks_exact(9) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5 && row.iter().all(|value| *value >= 0.0));
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let values = examples::uniform(5000, 8, 5);
    let fcm = Fcm { max_iter: 20, ..fcm(12, 1.2) };
    let run = |threads| cluster(&values, 8, &fcm, &Services { threads, ..Services::none() }).unwrap();
    let alone = run(1);
    assert_eq!(run(2), alone);
    assert_eq!(run(3), alone);
    let other = cluster(&values, 8, &fcm, &Services { seed: 1, ..Services::none() }).unwrap();
    assert_ne!(other, alone);
}

#[test]
fn separated_groups_are_recovered_and_what_lies_between_belongs_to_both() {
    let (mut values, truth) = examples::blobs(3, 40, 1, 6);
    values.push(5.0);
    let found = cluster(&values, 1, &fcm(3, 2.0), &Services::none()).unwrap();
    let labels: Vec<u32> = found.assignments.iter().take(120).map(|set| set[0]).collect();
    assert_eq!(examples::partition(&labels), examples::partition(&truth));
    assert!(found.diagnostics.converged);
    let both = &found.assignments[120];
    let mut expected = vec![labels[0], labels[1]];
    expected.sort_unstable();
    assert_eq!(both, expected);
    assert_eq!((found.clusters.len(), found.centroids[3]), (4, 5.0));
}

#[test]
fn extreme_exponents_and_values_give_numbers() {
    for m in [1.0001, 1.01, 50.0, 1000.0] {
        for scale in [1e-30, 1.0, 1e37] {
            let values: Vec<f32> = examples::uniform(60, 2, 7).iter().map(|value| value * scale).collect();
            let found = cluster(&values, 2, &Fcm { max_iter: 30, ..fcm(5, m) }, &Services::none()).unwrap();
            assert!(found.memberships.iter().all(|value| value.is_finite()), "m = {m}, scale {scale}");
        }
    }
}

#[test]
fn more_clusters_than_examples_and_too_little_memory_are_refused() {
    let refused = cluster(&[1.0, 2.0], 1, &fcm(3, 2.0), &Services::none()).unwrap_err();
    assert_eq!(refused.to_string(), "`k` = 3 is more than the 2 examples");
    let services = Services { memory: 1000, ..Services::none() };
    let refused = cluster(&[1.0; 4000], 4, &fcm(3, 2.0), &services).unwrap_err();
    assert!(refused.to_string().ends_with("lower `k` or the number of examples"), "{refused}");
}

#[test]
fn work_that_is_no_longer_wanted_stops() {
    let values = examples::uniform(3000, 8, 8);
    for (threads, patience) in [(1, 1), (2, 3)] {
        let host = Watcher::new(patience);
        let services = Services { host: &host, threads, ..Services::none() };
        let fcm = Fcm { error: 0.0, max_iter: 1_000_000, ..fcm(20, 2.0) };
        assert_eq!(cluster(&values, 8, &fcm, &services).unwrap_err(), Error::Cancelled);
        assert_eq!(host.reports.into_inner().unwrap().len(), patience);
    }
}

#[test]
fn works_across_the_boundary_and_refuses_bad_parameters() {
    let component = Registration::clusterer::<Fcm>().component().unwrap();
    let create = |params: &str| component.create(params, &Services::none());
    let foreign = ForeignClusterer::try_from(create(r#"{"k": 9, "m": 1.5}"#).unwrap()).unwrap();
    let (values, _) = examples::blobs(9, 20, 3, 9);
    let mut task = Task::new(Embeddings::new(&values, 3));
    task.degree = 2;
    let found = foreign.cluster(&task, &Services::none()).unwrap();
    assert_eq!(found, cluster(&values, 3, &fcm(9, 1.5), &Services::none()).unwrap());
    assert!(foreign.memory(Shape { rows: 180, dim: 3, degree: 1 }, &Services::none()).unwrap() > 180 * 3 * 8);

    let effective =
        |params: &str| serde_json::from_str::<serde_json::Value>(&component.effective(params)).unwrap();
    let preset = effective(r#"{"preset": "authors-code"}"#);
    assert_eq!((&preset["k"], &preset["m"], &preset["error"]), (&18.into(), &1.2.into(), &0.005.into()));
    create(r#"{"preset": "authors-code"}"#).unwrap();

    let refused = |params: &str| create(params).unwrap_err().to_string();
    assert_eq!(refused("{}"), "`k` is missing");
    assert_eq!(refused(r#"{"k": 0}"#), "`k` must be a whole number at least 1, found 0");
    assert_eq!(refused(r#"{"k": 2, "m": 1}"#), "`m` must be a number above 1, found 1");
    assert_eq!(refused(r#"{"k": 2, "error": -1}"#), "`error` must be a number at least 0, found -1");
    assert_eq!(
        refused(r#"{"k": 2, "threshold": 1.0}"#),
        "`threshold` must be a number above 0 and below 1 or \"1/k\", found 1.0"
    );
}

#[test]
fn examples_too_near_for_f64_are_said_to_be() {
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let values: Vec<f32> = examples::uniform(50, 2, 1).iter().map(|value| value * 1e-20).collect();
    cluster(&values, 2, &fcm(3, 2.0), &services).unwrap();
    assert!(host.warnings()[0].contains("too near for f64"), "{:?}", host.warnings());
}
