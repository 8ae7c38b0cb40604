use compflow_api::{Embeddings, Error, ForeignClusterer, Normalize, Registration, Services, Shape};

use super::*;
use crate::fixtures::{Fixtures, deviation};
use crate::{naive, parity};
use compflow_kernels::testing::examples;
use compflow_kernels::testing::watcher::Watcher;

fn params(k: usize) -> Params {
    Params { k, restarts: 4, max_iter: 100, tol: 0.0, init: Init::PlusPlus }
}

fn cluster(values: &[f32], dim: usize, params: Params, services: &Services<'_>) -> Result<Clustering> {
    let task = Task::new(Embeddings::new(values, dim));
    let clustering = KMeans(params).cluster(&task, services)?;
    clustering.check(&task)?;
    Ok(clustering)
}

fn found(values: &[f32], dim: usize, params: Params) -> Clustering {
    cluster(values, dim, params, &Services::none()).unwrap()
}

fn prepare(values: &[f32], dim: usize) -> Points {
    weighted(values, None, dim)
}

fn weighted(values: &[f32], weights: Option<&[f32]>, dim: usize) -> Points {
    Points::weighted(values.to_vec(), weights, dim, 1024, &Workers::alone(), &Services::none()).unwrap()
}

fn lloyd(points: &Points, centres: Vec<f32>) -> Run {
    let k = centres.len() / points.dim();
    KMeans(params(k)).lloyd(points, centres, &Workers::alone(), &Services::none(), || Ok(())).unwrap()
}

#[test]
fn equals_plain_loops_from_the_same_centres() {
    for (n, dim, k, seed) in [(200, 2, 3, 1), (1500, 8, 10, 2), (3000, 16, 20, 3), (500, 3, 40, 4)] {
        let points = prepare(&examples::uniform(n, dim, seed), dim);
        let centres: Vec<f32> = (0..k).flat_map(|at| points.row(at * n / k).to_vec()).collect();
        let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
        let rows: Vec<f64> = points.blocks().flat_map(wide).collect();
        let (labels, inertia, iterations) = naive::lloyd(&rows, wide(&centres), dim);

        let run = lloyd(&points, centres);
        assert_eq!(run.labels, labels, "seed {seed}");
        assert_eq!(run.trace.len() as u64, iterations, "seed {seed}");
        assert!((run.inertia - inertia).abs() < 1e-9 * inertia, "{} {inertia}", run.inertia);
        assert!(run.converged);
    }
}

#[test]
fn equals_scikit_learn_from_the_same_centres() {
    let (data, expected) = (Fixtures::new(), Fixtures::kmeans());
    let (mut cases, mut largest) = (0, 0.0f64);
    for case in expected.with_ending("/numbers") {
        let (values, dim) = data.points(case.rsplitn(3, '_').nth(2).unwrap());
        let numbers = |name: &str| expected.numbers(&format!("{case}/{name}")).1;
        let [tol, max_iter, iterations, inertia] = numbers("numbers")[..] else { panic!("{case}") };
        let points = prepare(&values, dim);
        let centres: Vec<f32> =
            numbers("start").iter().flat_map(|row| points.row(*row as usize).to_vec()).collect();
        let k = centres.len() / dim;
        let kmeans = KMeans(Params { tol, max_iter: max_iter as usize, ..params(k) });
        let run = kmeans.lloyd(&points, centres, &Workers::alone(), &Services::none(), || Ok(())).unwrap();
        let labels: Vec<u32> = numbers("labels").iter().map(|label| *label as u32).collect();
        assert_eq!(run.labels, labels, "{case}");
        assert_eq!(run.trace.len(), iterations as usize, "{case}");
        largest = largest.max(deviation(&[points.frame().restore_squared(run.inertia)], &[inertia], 1e-6));
        let restored: Vec<f64> = run
            .centres
            .chunks_exact(dim)
            .flat_map(|centre| points.frame().restore(centre))
            .map(f64::from)
            .collect();
        largest = largest.max(deviation(&restored, &numbers("centres"), 1e-2));
        cases += 1;
    }
    assert!(cases > 50 && largest < 1e-4, "{cases} {largest:e}");
    parity::check("`kmeans`", largest);
}

#[test]
fn inertia_never_rises() {
    for (seed, tol) in [(1, 0.0), (2, 0.0), (3, 1e-2)] {
        let values = examples::uniform(2000, 5, seed);
        let diagnostics = found(&values, 5, Params { tol, init: Init::Random, ..params(30) }).diagnostics;
        assert!(diagnostics.trace.is_sorted_by(|a, b| *b <= a * (1.0 + 1e-12)), "{:?}", diagnostics.trace);
        assert!(diagnostics.objective <= *diagnostics.trace.last().unwrap());
        assert_eq!(diagnostics.iterations, diagnostics.trace.len() as u64);
    }
}

#[test]
fn labels_are_the_nearest_centroids_even_when_stopped_early() {
    let values = examples::uniform(3000, 4, 5);
    for (max_iter, tol) in [(1, 0.0), (3, 0.0), (100, 1e-2)] {
        let clustering = found(&values, 4, Params { max_iter, tol, ..params(7) });
        assert_eq!(clustering.diagnostics.converged, tol > 0.0);
        let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
        let (labels, inertia) = naive::nearest(&wide(&values), &wide(&clustering.centroids), 4);
        assert_eq!(clustering.assignments.values(), labels);
        assert!((clustering.diagnostics.objective - inertia).abs() < 1e-5 * inertia);
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    // Restarts shared out, and examples shared out.
    for (n, dim, k) in [(2000, 8, 20), (40_000, 16, 12)] {
        assert_eq!(n * dim * k < SMALL, n == 2000);
        let values = examples::uniform(n, dim, 6);
        let params = Params { restarts: 3, max_iter: 15, ..params(k) };
        let run = |threads| cluster(&values, dim, params, &Services { threads, ..Services::none() }).unwrap();
        let alone = run(1);
        assert_eq!(run(1), alone);
        assert_eq!(run(2), alone);
        assert_eq!(run(3), alone);
    }
}

#[test]
fn another_seed_is_another_run() {
    let values = examples::uniform(1000, 4, 7);
    let params = Params { restarts: 1, max_iter: 3, ..params(20) };
    let run = |seed| cluster(&values, 4, params, &Services { seed, ..Services::none() }).unwrap();
    assert_ne!(run(1), run(2));
}

#[test]
fn separated_groups_are_recovered_in_any_order_of_the_rows() {
    let (values, truth) = examples::blobs(9, 50, 3, 8);
    let labels = found(&values, 3, params(9)).assignments.values().to_vec();
    assert_eq!(examples::partition(&labels), examples::partition(&truth));

    let backwards: Vec<f32> = values.chunks_exact(3).rev().flatten().copied().collect();
    let mut turned = found(&backwards, 3, params(9)).assignments.values().to_vec();
    turned.reverse();
    assert_eq!(examples::partition(&turned), examples::partition(&truth));
}

#[test]
fn data_far_from_the_origin_are_told_apart() {
    let (values, truth) = examples::blobs(4, 30, 2, 9);
    let far: Vec<f32> = values.iter().map(|value| value + 30_000.0).collect();
    let labels = found(&far, 2, params(4)).assignments.values().to_vec();
    assert_eq!(examples::partition(&labels), examples::partition(&truth));
}

#[test]
fn one_cluster_is_the_mean() {
    let clustering = found(&[1.0, 2.0, 3.0, 6.0], 2, params(1));
    assert_eq!(clustering.centroids, [2.0, 4.0]);
    assert_eq!(clustering.assignments.values(), [0, 0]);
    assert_eq!(clustering.diagnostics.objective, 10.0);
    assert!(clustering.diagnostics.converged);
}

#[test]
fn as_many_clusters_as_examples_leave_no_distance() {
    let values = examples::uniform(50, 3, 10);
    for init in [Init::PlusPlus, Init::Random] {
        let clustering = found(&values, 3, Params { init, ..params(50) });
        assert_eq!(clustering.clusters.len(), 50);
        assert!(clustering.diagnostics.objective < 1e-12);
    }
}

#[test]
fn a_space_that_normalises_is_clustered_by_direction() {
    let values = [1.0, 0.1, 50.0, 4.0, 0.1, 1.0, 2.0, 60.0];
    let mut task = Task::new(Embeddings::new(&values, 2));
    task.space.normalize = Normalize::L2;
    let clustering = KMeans(params(2)).cluster(&task, &Services::none()).unwrap();
    assert_eq!(examples::partition(clustering.assignments.values()), [0, 0, 1, 1]);
    assert!(clustering.centroids.iter().all(|value| *value < 1.0));
}

#[test]
fn fewer_distinct_examples_than_clusters_give_fewer_clusters_and_a_warning() {
    let values: Vec<f32> = (0..300).map(|at| [0.1, -7.3, 2.2][at % 3]).collect();
    for init in [Init::PlusPlus, Init::Random] {
        let host = Watcher::new(usize::MAX);
        let services = Services { host: &host, ..Services::none() };
        let clustering = cluster(&values, 1, Params { init, ..params(5) }, &services).unwrap();
        let expected: Vec<u32> = (0..300).map(|at| at % 3).collect();
        assert_eq!(examples::partition(clustering.assignments.values()), expected);
        assert_eq!(clustering.clusters.len(), 3);
        assert!(clustering.diagnostics.objective < 1e-9 && clustering.diagnostics.converged);
        let lines = host.lines.into_inner().unwrap();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].0, Level::Warn);
        assert!(lines[0].1.starts_with("kmeans found 3 clusters for `k` = 5; "), "{}", lines[0].1);
    }
    let equal = found(&[3.0; 8], 2, params(2));
    assert_eq!((equal.clusters.len(), &equal.centroids[..]), (1, &[3.0, 3.0][..]));
}

#[test]
fn an_outlier_that_hides_the_rest_is_named_as_the_reason() {
    let (mut values, _) = examples::blobs(4, 20, 2, 1);
    values.extend([1e9, 1e9]);
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let clustering = cluster(&values, 2, params(5), &services).unwrap();
    assert!(clustering.clusters.len() < 5);
    let warnings = host.warnings();
    assert!(warnings[0].contains("32 bits do not tell the rest apart"), "{warnings:?}");
}

#[test]
fn an_empty_cluster_moves_to_the_farthest_example() {
    // Both centres on the left: the second gets nothing, and the example on the right is the farthest.
    let points = prepare(&[0.0, 1.0, 2.0, 20.0], 1);
    let left = points.row(0)[0];
    let mut labels = vec![u32::MAX; 4];
    let centres = [left, left];
    let (workers, services) = (Workers::alone(), Services::none());
    let mut totals = assign(&points, &centres, &mut labels, &workers, &services).unwrap();
    assert_eq!(totals.counts, [4.0, 0.0]);
    assert!(fill_empty(&points, &centres, &mut labels, &mut totals));
    assert_eq!((totals.counts.clone(), &labels[..]), (vec![3.0, 1.0], &[0, 0, 0, 1][..]));
    assert_eq!(totals.means(&centres), [points.row(1)[0], points.row(3)[0]]);
    assert!(!fill_empty(&points, &centres, &mut labels, &mut totals));
    assert_eq!(lloyd(&points, centres.to_vec()).labels, [0, 0, 0, 1]);
}

#[test]
fn more_clusters_than_examples_are_refused() {
    let refused = cluster(&[1.0, 2.0], 1, params(3), &Services::none()).unwrap_err();
    assert_eq!(refused.to_string(), "`k` = 3 is more than the 2 examples");
}

#[test]
fn too_little_memory_is_refused_with_a_remedy() {
    let services = Services { memory: 1000, ..Services::none() };
    let refused = cluster(&[1.0; 4000], 4, params(3), &services).unwrap_err();
    assert!(refused.to_string().ends_with("lower `k` or the number of examples"), "{refused}");
}

#[test]
fn work_that_is_no_longer_wanted_stops() {
    let values = examples::uniform(5000, 8, 11);
    for (threads, patience) in [(1, 1), (1, 3), (2, 3)] {
        let host = Watcher::new(patience);
        let services = Services { host: &host, threads, ..Services::none() };
        let params = Params { max_iter: 1_000_000, ..params(50) };
        assert_eq!(cluster(&values, 8, params, &services).unwrap_err(), Error::Cancelled);
        assert!(host.reports.lock().unwrap().len() <= patience + threads);
    }
}

#[test]
fn progress_ends_at_the_total() {
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, threads: 2, ..Services::none() };
    cluster(&examples::uniform(2000, 8, 12), 8, params(20), &services).unwrap();
    let reports = host.reports.into_inner().unwrap();
    assert!(reports.iter().all(|(done, total)| done <= total && *total == 400));
    assert!(reports.contains(&(400, 400)));
}

#[test]
fn works_across_the_boundary() {
    let component = Registration::clusterer::<KMeans>().component().unwrap();
    let create = |params: &str| component.create(params, &Services::none());
    let kmeans = create(r#"{"k": 9, "restarts": 4, "max_iter": 100, "tol": 0}"#).unwrap();
    let kmeans = ForeignClusterer::try_from(kmeans).unwrap();
    let (values, _) = examples::blobs(9, 50, 3, 8);
    let task = Task::new(Embeddings::new(&values, 3));
    assert_eq!(kmeans.cluster(&task, &Services::none()).unwrap(), found(&values, 3, params(9)));
    assert!(kmeans.memory(Shape { rows: 450, dim: 3, degree: 1 }, &Services::none()).unwrap() > 450 * 3 * 4);

    let refused = |params: &str| create(params).unwrap_err().to_string();
    assert_eq!(refused("{}"), "`k` is missing");
    assert_eq!(refused(r#"{"k": 0}"#), "`k` must be a whole number at least 1, found 0");
    assert_eq!(
        refused(r#"{"k": 2, "init": "kmeans"}"#),
        r#"`init` must be "k-means++" or "random", found "kmeans""#
    );
    assert_eq!(refused(r#"{"k": 2, "tol": -1}"#), "`tol` must be a number at least 0, found -1");
}

#[test]
fn singletons_are_means_before_normalisation() {
    let values = [10.0, 0.0, 0.0, 1.0, 20.0, 0.0, 0.0, 3.0];
    let rows = Embeddings::new(&values, 2);
    for normalize in [Normalize::None, Normalize::L2] {
        let mut task = Task::new(rows);
        task.space.normalize = normalize;
        let found = KMeans(params(2)).cluster(&task, &Services::none()).unwrap();
        found.check(&task).unwrap();
        assert_eq!(found.singletons.numbers, [0, 1]);
        if normalize == Normalize::None {
            assert_eq!(found.singletons.vectors, found.centroids);
        } else {
            let first = found.assignments[0][0] as usize;
            assert_eq!(found.singletons.vectors[2 * first..][..2], [15.0, 0.0]);
            assert_eq!(found.singletons.vectors[2 * (1 - first)..][..2], [0.0, 2.0]);
        }
    }
}

/// Rows of `dim` numbers, each so many times.
fn repeated(values: &[f32], dim: usize, times: &[usize]) -> Vec<f32> {
    values.chunks_exact(dim).zip(times).flat_map(|(row, &times)| row.repeat(times)).collect()
}

#[test]
fn a_weight_of_two_is_an_example_twice() {
    let (n, dim, k) = (600, 4, 7);
    let values = examples::uniform(n, dim, 8);
    let times: Vec<usize> = (0..n).map(|row| row % 4).collect();
    let weights: Vec<f32> = times.iter().map(|&times| times as f32).collect();
    let weighted = weighted(&values, Some(&weights), dim);
    let doubled = prepare(&repeated(&values, dim, &times), dim);
    let from = |points: &Points| lloyd(points, points.frame().prepared(&values[..k * dim]));
    let (found, expected) = (from(&weighted), from(&doubled));
    let labels: Vec<u32> = (0..n).flat_map(|row| vec![found.labels[row]; times[row]]).collect();
    assert_eq!(labels, expected.labels);
    assert_eq!(found.trace.len(), expected.trace.len());
    let inertia = |points: &Points, run: &Run| points.frame().restore_squared(run.inertia);
    let (found, expected) = (inertia(&weighted, &found), inertia(&doubled, &expected));
    assert!((found - expected).abs() < 1e-5 * expected, "{found} {expected}");
}

#[test]
fn what_weighs_nothing_moves_no_centre_and_is_never_one() {
    // Two groups and far points without weight, which would otherwise have a centre each.
    let values = [0.0, 1.0, 0.5, 10.0, 11.0, 10.5, 1000.0, -1000.0];
    let weights = [1.0, 1.0, 0.5, 1.0, 1.0, 0.25, 0.0, 0.0];
    for (init, normalize) in [(Init::PlusPlus, Normalize::None), (Init::Random, Normalize::L2)] {
        for seed in 0..5 {
            let mut task = Task { weights: Some(&weights), ..Task::new(Embeddings::new(&values, 1)) };
            task.space.normalize = normalize;
            let services = Services { seed, ..Services::none() };
            let found = KMeans(Params { init, ..params(2) }).cluster(&task, &services).unwrap();
            found.check(&task).unwrap();
            if normalize == Normalize::None {
                let mut centroids = found.centroids.clone();
                centroids.sort_by(f32::total_cmp);
                assert_eq!(centroids, [0.5, 10.5]);
                assert_eq!(
                    (&found.assignments[6], &found.assignments[7]),
                    (&found.assignments[3], &found.assignments[0])
                );
            }
        }
    }
}

#[test]
fn however_far_it_lies_what_weighs_nothing_changes_nothing() {
    let (n, dim, k) = (600, 4, 7);
    let mut values = examples::uniform(n, dim, 8);
    let alone = found(&values, dim, params(k));
    for far in [1e6, 1e25] {
        values.truncate(n * dim);
        values.extend([far, -far, 0.0, far].repeat(3));
        let mut weights = vec![1.0; n];
        weights.extend([0.0; 3]);
        let task = Task { weights: Some(&weights), ..Task::new(Embeddings::new(&values, dim)) };
        let found = KMeans(params(k)).cluster(&task, &Services::none()).unwrap();
        let inertia = |found: &Clustering| found.diagnostics.objective;
        // Weights are summed up in other blocks, and other rows are drawn.
        assert!((inertia(&found) - inertia(&alone)).abs() < 0.05 * inertia(&alone), "{far}: {}", inertia(&found));
    }
}

#[test]
fn weights_that_cannot_be_are_refused() {
    let weights = [1.0, f32::NAN];
    let task = Task { weights: Some(&weights), ..Task::new(Embeddings::new(&[1.0, 2.0], 1)) };
    let refused = KMeans(params(1)).cluster(&task, &Services::none()).unwrap_err();
    assert_eq!(refused.to_string(), "example 1 has the weight NaN; weights are numbers from 0 on");
    assert!(KMeans::FLAGS.contains(compflow_api::Flags::USES_WEIGHTS));
}

#[test]
fn fewer_examples_that_count_than_clusters_are_said() {
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let weights = [1.0, 1.0, 0.0, 0.0];
    let task = Task { weights: Some(&weights), ..Task::new(Embeddings::new(&[1.0, 2.0, 3.0, 9.0], 1)) };
    for init in [Init::PlusPlus, Init::Random] {
        let found = KMeans(Params { init, ..params(3) }).cluster(&task, &services).unwrap();
        found.check(&task).unwrap();
        assert!(found.centroids.iter().all(|value| value.is_finite()));
    }
}
