use compflow_api::{Embeddings, Error, ForeignClusterer, Registration, Services, Sets, Shape};

use super::*;
use crate::fixtures::{Fixtures, deviation};
use crate::naive;
use crate::parity;
use crate::tiles::ROWS;
use compflow_kernels::testing::examples;
use compflow_kernels::testing::watcher::Watcher;

const KINDS: [Covariance; 4] = [Covariance::Full, Covariance::Tied, Covariance::Diag, Covariance::Spherical];

fn gmm(k: usize, variant: Variant, covariance: Covariance) -> Gmm {
    Gmm {
        k,
        variant,
        covariance,
        reg_covar: 1e-6,
        tol: 1e-3,
        max_iter: 100,
        restarts: 1,
        init: Init::Kmeans,
        threshold: None,
    }
}

fn cluster(values: &[f32], dim: usize, gmm: &Gmm, services: &Services<'_>) -> Result<Clustering> {
    let mut task = Task::new(Embeddings::new(values, dim));
    task.degree = 2;
    let clustering = gmm.cluster(&task, services)?;
    clustering.check(&task)?;
    assert!(clustering.memberships.iter().all(|value| value.is_finite()));
    Ok(clustering)
}

fn run(gmm: &Gmm, tiles: &Tiles, first: &[f64]) -> Run {
    let estimator = Estimator::new(tiles, gmm.covariance, gmm.reg_covar);
    gmm.run(&estimator, first, &Workers::alone(), &Services::none(), |_| Ok(())).unwrap()
}

/// A table's rows as they are.
fn exact_rows(tiles: &Tiles, table: &[f64]) -> Vec<f64> {
    let columns = table.len() / tiles.len().next_multiple_of(ROWS);
    let at = |row: usize, column: usize| table[row / ROWS * ROWS * columns + column * ROWS + row % ROWS];
    (0..tiles.len()).flat_map(|row| (0..columns).map(move |column| at(row, column))).collect()
}

fn equals_scikit_learn(method: &str, variant: Variant) {
    let fixtures = Fixtures::new();
    let mut largest = 0.0f64;
    let mut failed = Vec::new();
    for (case, data) in fixtures.cases(method) {
        let (points, dim) = fixtures.points(data);
        let [k, kind, reg_covar, tol, max_iter, converged] = fixtures.numbers(&format!("{case}/params")).1[..]
        else {
            panic!("{case}")
        };
        let gmm =
            Gmm { reg_covar, tol, max_iter: max_iter as usize, ..gmm(k as usize, variant, KINDS[kind as usize]) };
        let tiles = Tiles::new(&points, None, dim, 1);
        let (shape, start) = fixtures.numbers(&format!("{case}/start"));
        let first = match shape.len() {
            1 => one_hot(&start.iter().map(|&label| label as u32).collect::<Vec<_>>(), gmm.k),
            _ => start,
        };
        let found = run(&gmm, &tiles, &first);

        let expected = |name: &str| fixtures.numbers(&format!("{case}/{name}")).1;
        if found.trace.len() != expected("trace").len() {
            failed.push(format!("{case}: {} iterations, not {}", found.trace.len(), expected("trace").len()));
            continue;
        }
        assert_eq!(found.converged, converged > 0.0, "{case}");
        assert_eq!(found.raised, 0.0, "{case}");
        let sets = soft::sets(&tiles.rows(&found.responsibilities), gmm.k, soft::EQUAL_SHARE, 2);
        if sets != Sets::from_iter(fixtures.sets(&case)) {
            failed.push(format!("{case}: sets differ"));
        }
        let deviations = [
            deviation(&exact_rows(&tiles, &found.responsibilities), &expected("memberships"), 1e-6),
            deviation(&tiles.restore(&found.means), &expected("centres"), 1e-6),
            deviation(&found.trace, &expected("trace"), 1e-6),
        ];
        println!("{case}: memberships, means, objective deviate by {deviations:?}");
        largest = deviations.into_iter().fold(largest, f64::max);
    }
    assert!(largest < 1e-6 && failed.is_empty(), "{failed:#?}");
    parity::check(if variant == Variant::Em { "`gmm`" } else { "`gmm`, `variant = \"bayes\"`" }, largest);
}

#[test]
fn em_equals_scikit_learn_from_the_same_responsibilities() {
    equals_scikit_learn("em", Variant::Em);
}

#[test]
fn bayes_equals_scikit_learn_from_the_same_responsibilities() {
    equals_scikit_learn("bayes", Variant::Bayes);
}

#[test]
fn one_iteration_equals_plain_loops() {
    for (n, dim, k) in [(4, 1, 1), (60, 3, 4), (300, 5, 2), (1500, 8, 3)] {
        let values = examples::uniform(n, dim, 1);
        let mut first: Vec<f64> = examples::uniform(n, k, 2).iter().map(|&value| f64::from(value) + 1.1).collect();
        for row in first.chunks_exact_mut(k) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|value| *value /= sum);
        }
        let wide: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
        let (responsibilities, log_likelihood) = naive::mixture_step(&wide, &first, dim, k, 1e-6);
        let (expected, _) = naive::mixture_step(&wide, &responsibilities, dim, k, 1e-6);

        let tiles = Tiles::new(&values, None, dim, 1);
        let found = run(&Gmm { max_iter: 1, ..gmm(k, Variant::Em, Covariance::Full) }, &tiles, &first);
        assert!(deviation(&found.trace, &[log_likelihood], 1e-6) < 1e-12);
        assert!(deviation(&exact_rows(&tiles, &found.responsibilities), &expected, 1e-9) < 1e-9);
    }
}

#[test]
fn the_log_likelihood_never_falls() {
    let values = examples::uniform(900, 4, 3);
    for covariance in KINDS {
        for init in [Init::Kmeans, Init::Random] {
            // Regularisation is no part of what is maximised.
            let gmm = Gmm { reg_covar: 0.0, tol: 1e-6, init, ..gmm(7, Variant::Em, covariance) };
            let found = cluster(&values, 4, &gmm, &Services::none()).unwrap();
            let trace = &found.diagnostics.trace;
            assert!(trace.is_sorted_by(|a, b| *b >= a - 1e-9), "{covariance:?}: {trace:?}");
            assert_eq!(found.diagnostics.iterations, trace.len() as u64);
            for row in found.memberships.chunks_exact(7) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let values = examples::uniform(5000, 8, 4);
    for variant in [Variant::Em, Variant::Bayes] {
        for covariance in KINDS {
            let gmm = Gmm { max_iter: 5, ..gmm(6, variant, covariance) };
            let run = |threads| cluster(&values, 8, &gmm, &Services { threads, ..Services::none() }).unwrap();
            let alone = run(1);
            assert_eq!(run(2), alone);
            assert_eq!(run(3), alone);
        }
    }
}

#[test]
fn separated_groups_are_recovered_however_far_from_the_origin() {
    for variant in [Variant::Em, Variant::Bayes] {
        for covariance in KINDS {
            for offset in [0.0, 10_000.0] {
                let (values, truth) = examples::blobs(4, 50, 2, 5);
                let values: Vec<f32> = values.iter().map(|value| value + offset).collect();
                let found = cluster(&values, 2, &gmm(4, variant, covariance), &Services::none()).unwrap();
                let labels = found.assignments.values();
                assert_eq!(examples::partition(labels), examples::partition(&truth));
                assert!(found.diagnostics.converged);
            }
        }
    }
}

#[test]
fn bayes_leaves_components_empty_that_are_not_needed() {
    let (values, truth) = examples::blobs(3, 60, 1, 6);
    let found =
        cluster(&values, 1, &Gmm { max_iter: 500, ..gmm(8, Variant::Bayes, Covariance::Full) }, &Services::none());
    let found = found.unwrap();
    let mut sizes = [0.0; 8];
    for row in found.memberships.chunks_exact(8) {
        sizes.iter_mut().zip(row).for_each(|(size, value)| *size += value);
    }
    assert!(sizes.iter().filter(|size| **size > 1.0).count() < 8, "{sizes:?}");
    assert_eq!(truth.len(), found.assignments.len());
}

#[test]
fn more_restarts_are_not_worse() {
    let values = examples::uniform(600, 3, 7);
    let bound = |restarts| {
        let gmm = Gmm { restarts, init: Init::Random, ..gmm(6, Variant::Em, Covariance::Diag) };
        cluster(&values, 3, &gmm, &Services::none()).unwrap().diagnostics.objective
    };
    assert!(bound(5) >= bound(1));
}

#[test]
fn singular_covariances_raise_the_regularisation_with_a_warning() {
    // Multiples of one vector, and equal examples: without regularisation no covariance has an inverse.
    let line: Vec<f32> = (0..40).flat_map(|at| [at as f32, 2.0 * at as f32]).collect();
    for (values, reg_covar) in [(&line[..], 0.0), (&line[..], 1e-20), (&[3.0; 20][..], 0.0)] {
        for variant in [Variant::Em, Variant::Bayes] {
            for covariance in [Covariance::Full, Covariance::Tied] {
                let host = Watcher::new(usize::MAX);
                let services = Services { host: &host, ..Services::none() };
                let gmm = Gmm { reg_covar, ..gmm(2, variant, covariance) };
                let found = cluster(values, 2, &gmm, &services).unwrap();
                assert!(found.diagnostics.trace.iter().all(|bound| bound.is_finite()));
                let lines = host.lines.into_inner().unwrap();
                let warned =
                    |line: &&(Level, String)| line.0 == Level::Warn && line.1.starts_with("`reg_covar` = ");
                assert_eq!(lines.iter().filter(warned).count(), 1, "{variant:?} {covariance:?}: {lines:?}");
            }
        }
    }
}

#[test]
fn one_example_and_huge_ones_give_numbers() {
    for variant in [Variant::Em, Variant::Bayes] {
        for covariance in KINDS {
            let one = cluster(&[2.0, 3.0], 2, &gmm(1, variant, covariance), &Services::none()).unwrap();
            assert_eq!((one.memberships, one.centroids), (vec![1.0], vec![2.0, 3.0]));
            let huge: Vec<f32> = examples::uniform(40, 2, 8).iter().map(|value| value * 1e37).collect();
            cluster(&huge, 2, &gmm(3, variant, covariance), &Services::none()).unwrap();
        }
    }
}

#[test]
fn more_components_than_examples_and_too_little_memory_are_refused() {
    let gmm = gmm(3, Variant::Em, Covariance::Full);
    let refused = cluster(&[1.0, 2.0], 1, &gmm, &Services::none()).unwrap_err();
    assert_eq!(refused.to_string(), "`k` = 3 is more than the 2 examples");
    let services = Services { memory: 1000, ..Services::none() };
    let refused = cluster(&[1.0; 4000], 4, &gmm, &services).unwrap_err();
    assert!(refused.to_string().ends_with("lower `k` or the number of examples"), "{refused}");
}

#[test]
fn work_that_is_no_longer_wanted_stops() {
    let values = examples::uniform(3000, 8, 9);
    for (threads, patience) in [(1, 1), (2, 3)] {
        let host = Watcher::new(patience);
        let services = Services { host: &host, threads, ..Services::none() };
        let gmm = Gmm { tol: 0.0, max_iter: 1_000_000, ..gmm(9, Variant::Em, Covariance::Full) };
        assert_eq!(cluster(&values, 8, &gmm, &services).unwrap_err(), Error::Cancelled);
        assert_eq!(host.reports.into_inner().unwrap().len(), patience);
    }
}

#[test]
fn works_across_the_boundary_and_refuses_bad_parameters() {
    let component = Registration::clusterer::<Gmm>().component().unwrap();
    let create = |params: &str| component.create(params, &Services::none());
    let foreign = create(r#"{"k": 4, "variant": "bayes", "covariance": "diag"}"#).unwrap();
    let foreign = ForeignClusterer::try_from(foreign).unwrap();
    let (values, _) = examples::blobs(4, 20, 3, 9);
    let mut task = Task::new(Embeddings::new(&values, 3));
    task.degree = 2;
    let found = foreign.cluster(&task, &Services::none()).unwrap();
    let expected = cluster(&values, 3, &gmm(4, Variant::Bayes, Covariance::Diag), &Services::none()).unwrap();
    assert_eq!(found, expected);
    assert!(foreign.memory(Shape { rows: 180, dim: 3, degree: 1 }, &Services::none()).unwrap() > 180 * 3 * 8);

    let refused = |params: &str| create(params).unwrap_err().to_string();
    assert_eq!(refused("{}"), "`k` is missing");
    assert_eq!(refused(r#"{"k": 0}"#), "`k` must be a whole number at least 1, found 0");
    assert_eq!(
        refused(r#"{"k": 2, "reg_covar": -1}"#),
        "`reg_covar` must be a number at least 0 and at most 1e+100, found -1"
    );
    assert_eq!(
        refused(r#"{"k": 2, "covariance": "round"}"#),
        r#"`covariance` must be "full" or "tied" or "diag" or "spherical", found "round""#
    );
    assert_eq!(
        refused(r#"{"k": 2, "threshold": 0}"#),
        "`threshold` must be a number above 0 and below 1 or \"1/k\", found 0"
    );
}

#[test]
fn a_preset_gives_way_to_what_is_given() {
    let component = Registration::clusterer::<Gmm>().component().unwrap();
    let found = |params: &str| {
        component.create(params, &Services::none()).unwrap();
        let params: Params = serde_json::from_str(&component.effective(params)).unwrap();
        (params.variant, params.max_iter, params.reg_covar)
    };
    assert_eq!(found(r#"{"k": 18, "preset": "authors-code"}"#), (Variant::Bayes, 500, 0.1));
    assert_eq!(found(r#"{"k": 18, "preset": "authors-code", "reg_covar": 0.05}"#), (Variant::Bayes, 500, 0.05));
    assert_eq!(found(r#"{"k": 18}"#), (Variant::Em, 100, 1e-6));
}

#[test]
fn a_regularisation_that_hides_the_data_is_said_to() {
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let (values, _) = examples::blobs(3, 20, 2, 1);
    let hidden = Gmm { reg_covar: 1e6, ..gmm(3, Variant::Bayes, Covariance::Full) };
    cluster(&values, 2, &hidden, &services).unwrap();
    assert!(
        host.warnings()[0].contains("`reg_covar` = 1e6 is above the largest variance"),
        "{:?}",
        host.warnings()
    );
}

#[test]
fn the_likelihood_is_that_of_the_components() {
    let values = [1.0, 2.0, 4.0, 5.0];
    let found = cluster(&values, 1, &gmm(1, Variant::Em, Covariance::Full), &Services::none()).unwrap();
    // Mean 3, variance 2.5.
    let variance = 2.5 + 1e-6;
    let expected: f64 = values
        .iter()
        .map(|&x| -0.5 * ((std::f64::consts::TAU * variance).ln() + (f64::from(x) - 3.0).powi(2) / variance))
        .sum();
    let [(first, likelihood), (second, bic)] = &found.scalars[..] else { panic!("{:?}", found.scalars) };
    assert_eq!((first.as_str(), second.as_str()), ("log_likelihood", "bic"));
    assert!((likelihood - expected).abs() < 1e-9, "{likelihood} {expected}");
    // A mean and a variance.
    assert!((bic - (2.0 * 4f64.ln() - 2.0 * expected)).abs() < 1e-9, "{bic}");
    assert!((likelihood / 4.0 - found.diagnostics.objective).abs() < 1e-6);

    let bayes = cluster(&values, 1, &gmm(1, Variant::Bayes, Covariance::Full), &Services::none()).unwrap();
    assert!(bayes.scalars.is_empty());
    let parameters = |covariance| gmm(3, Variant::Em, covariance).free_parameters(4);
    assert_eq!(KINDS.map(parameters), [14.0 + 30.0, 14.0 + 10.0, 14.0 + 12.0, 14.0 + 3.0]);
}

#[test]
fn a_weight_of_two_is_an_example_twice() {
    let (n, dim, k) = (300, 3, 4);
    let values = examples::uniform(n, dim, 5);
    let times = |row: usize| row % 4;
    let weights: Vec<f32> = (0..n).map(|row| times(row) as f32).collect();
    let repeated: Vec<f32> = (0..n).flat_map(|row| values[row * dim..][..dim].repeat(times(row))).collect();
    let first = |row: usize| (0..k).map(move |at| if at == row % k { 0.7 } else { 0.1 });
    let firsts: Vec<f64> = (0..n).flat_map(first).collect();
    let firsts_repeated: Vec<f64> =
        (0..n).flat_map(|row| first(row).collect::<Vec<_>>().repeat(times(row))).collect();
    let weighted = Tiles::new(&values, Some(&weights), dim, 1);
    let doubled = Tiles::new(&repeated, None, dim, 1);
    for variant in [Variant::Em, Variant::Bayes] {
        for covariance in KINDS {
            let gmm = Gmm { tol: 0.0, max_iter: 20, ..gmm(k, variant, covariance) };
            let (found, expected) = (run(&gmm, &weighted, &firsts), run(&gmm, &doubled, &firsts_repeated));
            let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + b.abs()));
            assert!(near(&found.trace, &expected.trace), "{variant:?} {covariance:?}");
            assert!(near(&weighted.restore(&found.means), &doubled.restore(&expected.means)));
            assert!(near(&[found.log_likelihood], &[expected.log_likelihood]));
            let (found, expected) =
                (exact_rows(&weighted, &found.responsibilities), exact_rows(&doubled, &expected.responsibilities));
            let found_repeated: Vec<f64> =
                found.chunks_exact(k).enumerate().flat_map(|(row, found)| found.repeat(times(row))).collect();
            assert!(near(&found_repeated, &expected));
            // What does not count has memberships all the same.
            assert!(found.chunks_exact(k).all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-9));
        }
    }
}

#[test]
fn weights_reach_the_start_and_the_result() {
    // Two groups and far examples without weight, of which k-means would make a group of its own.
    let weights = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0];
    let far = [1e3, 1e6, 1e25].map(|far| [0.0, 1.0, 0.5, 10.0, 11.0, 10.5, far]);
    let task = Task { weights: Some(&weights), ..Task::new(Embeddings::new(&far[0], 1)) };
    for (values, variant) in far.iter().flat_map(|values| [(values, Variant::Em), (values, Variant::Bayes)]) {
        let task = Task { embeddings: Embeddings::new(values, 1), ..task };
        let found = gmm(2, variant, Covariance::Full).cluster(&task, &Services::none()).unwrap();
        found.check(&task).unwrap();
        assert!(found.centroids.iter().all(|centroid| (0.0..11.0).contains(centroid)), "{:?}", found.centroids);
        // So few examples leave the variant `bayes` with its prior.
        assert!(variant == Variant::Bayes || found.assignments[0] != found.assignments[5]);
    }
    let host = Watcher::new(usize::MAX);
    let normalised = [1.0 / 7.0; 7];
    let small = Task { weights: Some(&normalised), ..task };
    let services = Services { host: &host, ..Services::none() };
    gmm(2, Variant::Em, Covariance::Full).cluster(&small, &services).unwrap();
    assert!(host.warnings()[0].contains("multiply them by 7 if"), "{:?}", host.warnings());
    let weights = [0.0; 7];
    let task = Task { weights: Some(&weights), ..task };
    let refused = gmm(2, Variant::Em, Covariance::Full).cluster(&task, &Services::none()).unwrap_err();
    assert_eq!(refused.to_string(), "all weights are 0, so there is nothing to cluster");
}

#[test]
fn densities_are_those_of_the_memberships() {
    let (dim, k) = (6, 3);
    let values: Vec<f32> = examples::uniform(90, dim, 5)
        .chunks_exact(dim)
        .enumerate()
        .flat_map(|(row, point)| {
            point.iter().map(move |x| 100.0 + x + 0.4 * (row % k) as f32).collect::<Vec<f32>>()
        })
        .collect();
    let task = Task::new(Embeddings::new(&values, dim));
    for variant in [Variant::Em, Variant::Bayes] {
        for covariance in KINDS {
            let found = gmm(k, variant, covariance).cluster(&task, &Services::none()).unwrap();
            found.check(&task).unwrap();
            let Densities { sets, centres, offsets, factor_of, factors } = &found.densities;
            assert_eq!(sets, &Sets::singletons(&[0, 1, 2]), "{variant:?} {covariance:?}");
            for (point, memberships) in values.chunks_exact(dim).zip(found.memberships.chunks_exact(k)) {
                let log = |at: usize| {
                    let offsets_of = |axis: usize| f64::from(point[axis]) - f64::from(centres[at * dim + axis]);
                    let length = Densities::factor_len(dim);
                    let factor = &factors[factor_of[at] as usize * length..][..length];
                    let white = (0..dim).map(|row| -> f64 {
                        let row = (0..=row).zip(&factor[row * (row + 1) / 2..]);
                        row.map(|(column, &value)| f64::from(value) * offsets_of(column)).sum()
                    });
                    offsets[at] - 0.5 * white.map(|value| value * value).sum::<f64>()
                };
                let logs: Vec<f64> = (0..k).map(log).collect();
                let total: f64 = logs.iter().map(|log| log.exp()).sum();
                for (log, &membership) in logs.iter().zip(memberships) {
                    assert!(
                        (log.exp() / total - f64::from(membership)).abs() < 1e-3,
                        "{variant:?} {covariance:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn doubt_between_components_has_no_densities() {
    let values = [0.0, 0.1, 0.2, 0.5, 0.8, 0.9, 1.0];
    let threshold = Some(Threshold::Above(0.1));
    let doubting = Gmm { threshold, reg_covar: 0.5, ..gmm(2, Variant::Em, Covariance::Full) };
    let found = cluster(&values, 1, &doubting, &Services::none()).unwrap();
    assert!(found.assignments.iter().any(|set| set.len() == 2) && found.densities == Densities::default());
}
