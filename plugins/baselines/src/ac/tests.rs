use compflow_api::{Embeddings, ForeignClusterer, Normalize, Registration, Services, Shape};

use super::*;
use compflow_kernels::testing::examples;
use compflow_kernels::testing::watcher::Watcher;

const LINKAGES: [Linkage; 4] = [Linkage::Ward, Linkage::Average, Linkage::Complete, Linkage::Single];

fn cluster(values: &[f32], dim: usize, params: Params, services: &Services<'_>) -> Result<Clustering> {
    let task = Task::new(Embeddings::new(values, dim));
    let clustering = Ac::new(params, services)?.cluster(&task, services)?;
    clustering.check(&task)?;
    Ok(clustering)
}

fn found(values: &[f32], dim: usize, params: Params) -> Clustering {
    cluster(values, dim, params, &Services::none()).unwrap()
}

fn by_k(linkage: Linkage, k: usize) -> Params {
    Params { linkage, k: Some(k), ..Params::default() }
}

fn by_height(linkage: Linkage, height: f64) -> Params {
    Params { linkage, distance_threshold: Some(Threshold::Distance(height)), ..Params::default() }
}

#[test]
fn equals_the_definition() {
    for linkage in LINKAGES {
        for (n, dim, k, seed) in [(2, 1, 1, 1), (40, 1, 5, 2), (90, 3, 7, 3), (70, 35, 20, 4)] {
            let values = examples::uniform(n, dim, seed);
            let (heights, labels) = naive::agglomerate(&values, dim, linkage, k);
            let clustering = found(&values, dim, by_k(linkage, k));
            assert_eq!(clustering.assignments.values(), examples::partition(&labels), "{linkage:?} {seed}");
            assert_eq!(clustering.diagnostics.iterations, n as u64 - 1);
            for (found, expected) in clustering.diagnostics.trace.iter().zip(&heights) {
                assert!((found - expected).abs() <= 1e-12 * expected, "{linkage:?}: {found} {expected}");
            }
        }
    }
}

#[test]
fn data_far_from_the_origin_huge_or_tiny_equal_the_definition_too() {
    let plain = examples::uniform(60, 3, 5);
    let changes: [fn(f32) -> f32; 4] =
        [|x| x + 30_000.0, |x| x * 3e38, |x| x * 1e-38, |x| if x > 0.99 { x * 1e9 } else { x }];
    for change in changes {
        let values: Vec<f32> = plain.iter().map(|&value| change(value)).collect();
        for linkage in LINKAGES {
            let (heights, _) = naive::agglomerate(&values, 3, linkage, 1);
            let clustering = found(&values, 3, by_k(linkage, 1));
            for (found, expected) in clustering.diagnostics.trace.iter().zip(&heights) {
                assert!((found - expected).abs() <= 1e-9 * expected, "{linkage:?}: {found} {expected}");
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for linkage in LINKAGES {
        let (n, dim) = if linkage == Linkage::Ward { (2500, 512) } else { (1000, 32) };
        let values = examples::uniform(n, dim, 6);
        let ac = Ac::new(by_k(linkage, 20), &Services::none()).unwrap();
        assert_eq!(ac.shared(n, dim), linkage != Linkage::Single);
        let run =
            |threads| cluster(&values, dim, by_k(linkage, 20), &Services { threads, ..Services::none() }).unwrap();
        let alone = run(1);
        assert_eq!(run(2), alone);
        assert_eq!(run(3), alone);
    }
}

#[test]
fn the_order_of_the_rows_does_not_matter() {
    let values = examples::uniform(400, 4, 7);
    let backwards: Vec<f32> = values.chunks_exact(4).rev().flatten().copied().collect();
    for linkage in LINKAGES {
        let labels = found(&values, 4, by_k(linkage, 12)).assignments;
        let mut turned = found(&backwards, 4, by_k(linkage, 12)).assignments.values().to_vec();
        turned.reverse();
        assert_eq!(examples::partition(&turned), labels.values());
    }
}

#[test]
fn separated_groups_are_recovered_by_number_and_by_height() {
    let (values, truth) = examples::blobs(9, 30, 3, 8);
    for linkage in LINKAGES {
        let clustering = found(&values, 3, by_k(linkage, 9));
        assert_eq!(clustering.assignments.values(), truth);
        let [.., below, above, _, _, _, _, _, _, _] = clustering.diagnostics.trace[..] else { panic!() };
        let cut = found(&values, 3, by_height(linkage, f64::midpoint(below, above)));
        assert_eq!(cut, clustering);
        // A merge exactly at the threshold is not done.
        assert_eq!(found(&values, 3, by_height(linkage, above)).clusters.len(), 9);
        assert_eq!(found(&values, 3, by_height(linkage, above.next_up())).clusters.len(), 8);
    }
}

#[test]
fn the_objective_is_the_sum_of_squares_or_the_height_below_the_cut() {
    let values = examples::uniform(300, 5, 9);
    let ward = found(&values, 5, by_k(Linkage::Ward, 10));
    let mut squares = 0.0;
    for (point, &label) in values.chunks_exact(5).zip(ward.assignments.values()) {
        let centroid = &ward.centroids[label as usize * 5..][..5];
        squares += point.iter().zip(centroid).map(|(x, c)| f64::from(x - c).powi(2)).sum::<f64>();
    }
    assert!((ward.diagnostics.objective - squares).abs() < 1e-5 * squares);
    let single = found(&values, 5, by_k(Linkage::Single, 10)).diagnostics;
    assert_eq!(single.objective, single.trace[300 - 10 - 1]);
    assert_eq!(found(&values, 5, by_k(Linkage::Single, 300)).diagnostics.objective, 0.0);
}

#[test]
fn degenerate_data_are_clustered() {
    for linkage in LINKAGES {
        let one = found(&[3.0, 4.0], 2, by_k(linkage, 1));
        assert_eq!((one.assignments.values(), &one.centroids[..]), (&[0][..], &[3.0, 4.0][..]));
        assert_eq!((one.diagnostics.iterations, one.diagnostics.trace), (0, vec![]));
        assert_eq!(found(&[3.0], 1, by_height(linkage, 0.0)).clusters.len(), 1);

        let two = found(&[0.0, 5.0], 1, by_height(linkage, 5.0));
        assert_eq!((two.clusters.len(), two.diagnostics.trace), (2, vec![5.0]));

        let equal = [7.5; 200];
        assert_eq!(found(&equal, 2, by_k(linkage, 1)).centroids, [7.5, 7.5]);
        assert_eq!(found(&equal, 2, by_height(linkage, 1e-300)).clusters.len(), 1);
        assert_eq!(found(&equal, 2, by_height(linkage, 0.0)).clusters.len(), 100);
        assert_eq!(found(&equal, 2, by_k(linkage, 3)).clusters.len(), 3);

        let values = examples::uniform(50, 3, 10);
        let apart = found(&values, 3, by_k(linkage, 50));
        assert_eq!((apart.clusters.len(), apart.centroids), (50, values));
    }
}

#[test]
fn a_space_that_normalises_is_clustered_by_direction() {
    let values = [1.0, 0.1, 50.0, 4.0, 0.1, 1.0, 2.0, 60.0];
    let mut task = Task::new(Embeddings::new(&values, 2));
    task.space.normalize = Normalize::L2;
    for linkage in LINKAGES {
        let ac = Ac::new(by_k(linkage, 2), &Services::none()).unwrap();
        let clustering = ac.cluster(&task, &Services::none()).unwrap();
        assert_eq!(clustering.assignments.values(), [0, 0, 1, 1]);
        assert!(clustering.centroids.iter().all(|value| *value < 1.0));
    }
}

#[test]
fn more_clusters_than_examples_are_refused() {
    let refused = cluster(&[1.0, 2.0], 1, by_k(Linkage::Ward, 3), &Services::none()).unwrap_err();
    assert_eq!(refused.to_string(), "`k` = 3 is more than the 2 examples");
}

#[test]
fn a_threshold_that_is_no_height_is_refused() {
    for (height, text) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (-1.0, "-1")] {
        let refused = Ac::new(by_height(Linkage::Ward, height), &Services::none()).unwrap_err();
        let expected = format!("`distance_threshold` must be a finite number at least 0, found {text}");
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn a_threshold_per_example_holds_for_more_of_the_same_examples() {
    // Each example ten times: the same groups, ten times as large.
    let (values, _) = examples::blobs(6, 10, 3, 4);
    let more: Vec<f32> = values.chunks_exact(3).flat_map(|row| row.repeat(10)).collect();
    let per_example = |per_example: f64| Params {
        distance_threshold: Some(Threshold::PerExample(PerExample { per_example })),
        ..Params::default()
    };
    let mut sizes = Vec::new();
    for squared in [0.003, 0.03, 0.3, 3.0] {
        let few = found(&values, 3, per_example(squared));
        assert_eq!(found(&more, 3, per_example(squared)).clusters.len(), few.clusters.len(), "{squared}");
        let height = (60.0 * squared).sqrt();
        assert_eq!(found(&values, 3, by_height(Linkage::Ward, height)).assignments, few.assignments);
        assert_eq!(few.resolved, [("distance_threshold".to_owned(), height.to_string())]);
        sizes.push(few.clusters.len());
    }
    assert!(sizes.iter().any(|size| (2..60).contains(size)), "{sizes:?}");
    let by_one = |values: &[f32]| found(values, 3, by_height(Linkage::Ward, 1.0)).clusters.len();
    assert!(by_one(&more) > by_one(&values));
}

#[test]
fn all_pairs_over_the_budget_are_refused_with_a_remedy() {
    let services = Services { memory: 1 << 20, ..Services::none() };
    let values = vec![1.0; 1000];
    let refused = cluster(&values, 1, by_k(Linkage::Average, 3), &services).unwrap_err().to_string();
    assert!(refused.contains("set `linkage` to \"ward\" or \"single\""), "{refused}");
    assert!(cluster(&values, 1, by_k(Linkage::Ward, 3), &services).is_ok());
    assert!(cluster(&values, 1, by_k(Linkage::Single, 3), &services).is_ok());
}

#[test]
fn work_that_is_no_longer_wanted_stops() {
    let values = examples::uniform(1000, 8, 11);
    for linkage in LINKAGES {
        let host = Watcher::new(1);
        let services = Services { host: &host, ..Services::none() };
        assert_eq!(cluster(&values, 8, by_k(linkage, 5), &services).unwrap_err(), Error::Cancelled);
    }
}

#[test]
fn works_across_the_boundary() {
    let component = Registration::clusterer::<Ac>().component().unwrap();
    let create = |params: &str| component.create(params, &Services::none());
    let ac = ForeignClusterer::try_from(create(r#"{"linkage": "average", "k": 9}"#).unwrap()).unwrap();
    let (values, _) = examples::blobs(9, 20, 3, 8);
    let task = Task::new(Embeddings::new(&values, 3));
    let expected = found(&values, 3, by_k(Linkage::Average, 9));
    assert_eq!(ac.cluster(&task, &Services::none()).unwrap(), expected);
    assert!(ac.memory(Shape { rows: 180, dim: 3, degree: 1 }, &Services::none()).unwrap() > 180 * 179 / 2 * 8);

    for preset in ["paper", "authors-code"] {
        let ac = create(&format!(r#"{{"preset": "{preset}"}}"#)).unwrap();
        let ac = ForeignClusterer::try_from(ac).unwrap();
        let expected = found(&values, 3, by_height(Linkage::Ward, 1.0));
        assert_eq!(ac.cluster(&task, &Services::none()).unwrap(), expected);
    }
    assert!(create(r#"{"preset": "paper", "k": 3}"#).is_ok());

    let refused = |params: &str| create(params).unwrap_err().to_string();
    assert_eq!(refused("{}"), "`k` or `distance_threshold` must be given, found neither");
    assert_eq!(
        refused(r#"{"k": 3, "distance_threshold": 0.5}"#),
        "`k` and `distance_threshold` exclude one another, found 3 and 0.5"
    );
    assert_eq!(refused(r#"{"k": 0}"#), "`k` must be a whole number at least 1, found 0");
    assert_eq!(
        refused(r#"{"distance_threshold": -0.5}"#),
        "`distance_threshold` must be a number at least 0 or { per_example = … }, found -0.5"
    );
    assert_eq!(
        refused(r#"{"k": 3, "distance_threshold": {"per_example": 0.5}}"#),
        "`k` and `distance_threshold` exclude one another, found 3 and { per_example = 0.5 }"
    );
    let refused_average = refused(r#"{"linkage": "average", "distance_threshold": {"per_example": 0.5}}"#);
    assert!(
        refused_average.starts_with("`distance_threshold.per_example` is for `linkage` = \"ward\""),
        "{refused_average}"
    );
    assert_eq!(
        refused(r#"{"k": 2, "linkage": "centroid"}"#),
        r#"`linkage` must be "ward" or "average" or "complete" or "single", found "centroid""#
    );
}

#[test]
fn singletons_are_means_before_normalisation() {
    let values = [10.0, 0.0, 0.0, 1.0, 20.0, 0.0, 0.0, 3.0];
    let mut task = Task::new(Embeddings::new(&values, 2));
    task.space.normalize = Normalize::L2;
    let found =
        Ac::new(by_k(Linkage::Ward, 2), &Services::none()).unwrap().cluster(&task, &Services::none()).unwrap();
    found.check(&task).unwrap();
    assert_eq!(
        (&found.singletons.numbers[..], &found.singletons.vectors[..]),
        (&[0, 1][..], &[15.0, 0.0, 0.0, 2.0][..])
    );
    assert_eq!(found.centroids, [1.0, 0.0, 0.0, 1.0]);
}
