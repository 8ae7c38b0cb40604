//! What becomes of clusters.

use super::*;

#[test]
fn the_listing_by_hand() {
    let (values, sets) = unions();
    // Singletons are numbered as they appear: 1 is 0, 2 is 1, 3 is 2.
    let expected: [&[u32]; 12] =
        [&[0, 1], &[0], &[0], &[1], &[1], &[0, 1], &[2], &[1, 2], &[1, 2], &[0, 2], &[0, 2], &[2]];
    for threshold in [json!(0.5), json!("auto")] {
        let found = Run::new(&values, 3).on(&sets, json!({ "threshold": threshold })).unwrap();
        assert_eq!(found.assignments, Sets::from_iter(expected), "{threshold}");
        assert_eq!(
            found.clusters,
            Sets::from_iter([vec![0], vec![1], vec![2], vec![0, 1], vec![0, 2], vec![1, 2]])
        );
        assert_eq!(
            found.centroids,
            [1., 0., 0., 0., 1., 0., 0., 0., 1., 1., 1., 0., 1., 0., 1., 0., 1., 1.],
            "of compositions, what the composer says"
        );
        let expected = Sets::from_iter([[3], [0], [0], [1], [1], [3], [2], [4], [4], [5], [5], [2]]);
        assert_eq!(*base(&found), expected);
        assert_eq!(found.singletons.numbers, [0, 1, 2]);
        assert_eq!(found.singletons.vectors, found.centroids[..9]);
    }
    // Squared distances 0.01, 0.04 and 0.09: below 0.04 is only the first.
    let found = Run::new(&values, 3).on(&sets, json!({ "threshold": 0.04 })).unwrap();
    assert_eq!(found.clusters.iter().filter(|set| set.len() == 2).count(), 1);
    let trace = &found.diagnostics.trace;
    assert_eq!(trace.len(), 2);
    assert!((trace[0] - 12.0 * 0.04).abs() < 1e-9 && (trace[1] - (10.0 * 0.04 + 2.0 * 0.01)).abs() < 1e-6);
    assert_eq!(found.diagnostics.objective, trace[1]);
    assert_eq!((found.diagnostics.iterations, found.diagnostics.converged), (12, true));
}

#[test]
fn with_a_threshold_of_nothing_it_returns_the_base() {
    let (values, sets) = unions();
    for method in ["greedy", "exhaustive"] {
        let found = Run::new(&values, 3).on(&sets, json!({ "threshold": 0, "method": method })).unwrap();
        let labels: Vec<u32> = sets.iter().map(|set| set[0]).collect();
        assert_eq!(found.assignments, Sets::singletons(&examples::partition(&labels)));
        assert_eq!(*base(&found), found.assignments);
        assert_eq!(found.diagnostics.objective, 0.0);
    }
    // Even where a composition fits exactly; the authors' rule takes that one.
    let values = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0];
    let sets = singletons(&[0, 1, 2]);
    let exact = |params: Value| Run::new(&values, 2).on(&sets, params).unwrap().assignments;
    assert_eq!(exact(json!({ "threshold": 0 })), Sets::singletons(&[0, 1, 2]));
    assert_eq!(
        exact(json!({ "threshold": 0, "preset": "authors-code" })),
        Sets::from_iter([vec![0], vec![1], vec![0, 1]])
    );
}

#[test]
fn a_degree_of_one_returns_the_base() {
    let (values, sets) = unions();
    let found = Run::new(&values, 3).on(&sets, json!({ "degree": 1 })).unwrap();
    assert_eq!(found.assignments, *base(&found));
}

#[test]
fn three_are_composed_where_the_degree_allows_it() {
    let values = [1., 0., 0., 0., 1., 0., 0., 0., 1., 1., 1., 0.9];
    let sets = singletons(&[0, 1, 2, 3]);
    let mut run = Run::new(&values, 3);
    assert_eq!(run.on(&sets, json!({ "threshold": 0.1 })).unwrap().clusters.len(), 4);
    run.degree = 3;
    let found = run.on(&sets, json!({ "threshold": 0.1 })).unwrap();
    assert_eq!(&found.assignments[3], [0, 1, 2]);
    // The parameter is stronger than the pipeline.
    assert_eq!(&run.on(&sets, json!({ "threshold": 0.1, "degree": 2 })).unwrap().assignments[3], [3]);
}

#[test]
fn the_composer_is_given_means_that_are_not_normalised() {
    // Directions 45° apart with lengths 10 and 1: the larger of each two numbers is (10, 1), whose direction only the
    // lengths tell. From normalised means it would be (1, 1).
    let values = [10.0, 0.0, 0.0, 1.0, 20.0, 2.0];
    let mut run = Run::new(&values, 2);
    run.space = Space { normalize: Normalize::L2, distance: Distance::Euclidean };
    let found = run.on(&singletons(&[0, 1, 2]), json!({ "threshold": 1e-3 })).unwrap();
    assert_eq!(&found.assignments[2], [0, 1]);
    let length: f32 = found.centroids[4..].iter().map(|value| value * value).sum();
    assert!((length - 1.0).abs() < 1e-6, "a centroid is a point of the space");
}

#[test]
fn greedy_equals_exhaustive_where_clusters_are_well_apart() {
    for (degree, seed) in (0..12).map(|seed| (2 + seed as usize % 2, seed)) {
        // Four things along axes and some of their unions, all a little off.
        let noise = examples::uniform(8 * 3, 4, seed);
        let unions: [&[usize]; 8] = match degree {
            2 => [&[0], &[1], &[2], &[3], &[0, 1], &[1, 2], &[2, 3], &[0, 3]],
            _ => [&[0], &[1], &[2], &[3], &[0, 1], &[2, 3], &[0, 1, 2], &[1, 2, 3]],
        };
        let labels: Vec<u32> = (0..24).map(|row| row % 8).collect();
        let values: Vec<f32> = (0..24 * 4)
            .map(|at| {
                let inside = unions[at / 4 % 8].contains(&(at % 4));
                f32::from(u8::from(inside)) + 0.02 * noise[at]
            })
            .collect();
        let run = Run { degree, ..Run::new(&values, 4) };
        let params = |method: &str| json!({ "method": method, "threshold": 0.2, "on_conflict": "skip" });
        let greedy = run.on(&singletons(&labels), params("greedy")).unwrap();
        let exhaustive = run.on(&singletons(&labels), params("exhaustive")).unwrap();
        if degree == 2 {
            assert_eq!(greedy, exhaustive, "seed {seed}");
            assert_eq!(greedy.clusters.iter().filter(|set| set.len() == 2).count(), 4);
        }
        assert!(exhaustive.diagnostics.objective <= greedy.diagnostics.objective + 1e-9, "seed {seed}");
    }
}

#[test]
fn a_singleton_that_the_base_split_is_one_again() {
    let (mut values, mut sets) = unions();
    // One more part of 2, a little off, which comes first and is smaller.
    values.splice(0..0, [0.0, 1.3, 0.0]);
    sets.insert(0, vec![5]);
    let found = Run::new(&values, 3).on(&sets, json!({})).unwrap();
    assert_eq!(found.assignments[0], [0]);
    assert_eq!(found.assignments.iter().filter(|set| **set == [0]).count(), 3);
    let mut occurring: Vec<usize> = found.clusters.iter().map(<[u32]>::len).collect();
    occurring.sort_unstable();
    assert_eq!(occurring, [1, 1, 1, 2, 2, 2]);
    assert_eq!(found.centroids[..3], [0.0, 1.1, 0.0], "the mean of both parts");
    assert_eq!(found.scalars[2], ("merged_clusters".to_owned(), 1.0));
    let own: Vec<&[u32]> = base(&found).iter().collect();
    assert!(own[4] == [0] && own[0][0] > 2 && own.iter().filter(|set| **set == own[0]).count() == 1, "{own:?}");

    let apart = Run::new(&values, 3).on(&sets, json!({ "merge": 0 })).unwrap();
    assert_eq!(apart.clusters.iter().filter(|set| set.len() == 1).count(), 4);
}

#[test]
fn clusters_without_unions_have_none() {
    // Means from a normal distribution, which lie near some composition by chance.
    let normal = |seed: u64, k: usize, dim: usize| -> Vec<f32> {
        let sums = examples::uniform(12 * k, dim, seed);
        let rows = sums.chunks_exact(12 * dim);
        rows.flat_map(|rows| (0..dim).map(|at| rows.iter().skip(at).step_by(dim).sum::<f32>() - 6.0)).collect()
    };
    // The base has found the right number, or has split some of them in two.
    for split in [0, 2, 5] {
        let (mut before, mut after) = (0, 0);
        for seed in 0..60 {
            let (k, dim) = ([5, 8, 12, 17][seed as usize % 4], [2, 3, 5][seed as usize % 3]);
            let mut values = normal(seed, k, dim);
            let noise = examples::uniform(split * dim, dim, seed + 500);
            for (at, noise) in noise.iter().enumerate().take(split * dim) {
                let half = 0.15 * (noise - 0.5);
                values.push(values[at] - half);
                values[at] += half;
            }
            let sets = singletons(&(0..(k + split) as u32).collect::<Vec<u32>>());
            let run = Run { seed, ..Run::new(&values, dim) };
            let found = run.on(&sets, json!({})).unwrap();
            // It is looked at only where the distances part.
            before += usize::from(found.scalars.iter().any(|(name, _)| name == "chance_without_unions"));
            after += usize::from(found.clusters.iter().any(|set| set.len() > 1));
        }
        assert!(before > 45, "{before} of 60 would have unions");
        assert!(after <= 6, "{after} of 60 have unions, where 3 or 4 are to be expected, with {split} split");
    }
}

proptest! {
    #[test]
    fn no_cluster_is_both_a_composition_and_a_member_of_one(
        values in prop::collection::vec(-1.0f32..1.0, 7 * 2),
        threshold in prop::option::of(0.0..3.0),
        degree in 1usize..=4,
        skip: bool,
        exhaustive: bool,
        euclidean: bool,
        normalised: bool,
    ) {
        let sets = singletons(&(0..7).collect::<Vec<u32>>());
        let mut run = Run { degree, ..Run::new(&values, 2) };
        run.space.distance = if euclidean { Distance::Euclidean } else { Distance::SqEuclidean };
        run.space.normalize = if normalised { Normalize::L2 } else { Normalize::None };
        let found = run.on(&sets, json!({
            "threshold": threshold.map_or(json!("auto"), |threshold| json!(threshold)),
            "on_conflict": if skip { "skip" } else { "stop" },
            "method": if exhaustive { "exhaustive" } else { "greedy" },
        })).unwrap();
        // Rows are clusters: every member of a union is the singleton of some row, and that row is no union.
        for set in found.assignments.iter() {
            prop_assert!(set.len() <= degree);
            for member in set {
                let alone = found.assignments.iter().filter(|other| *other == [*member]).count();
                prop_assert_eq!(alone, 1);
            }
        }
        // A row is the base's cluster of the same number if it is left, and of a number after those if it is not.
        let left = found.assignments.iter().filter(|set| set.len() == 1).count() as u32;
        for (set, base) in found.assignments.iter().zip(base(&found).iter()) {
            if set.len() == 1 { prop_assert_eq!(set, base) } else { prop_assert!(base[0] >= left) }
        }
        if exhaustive {
            let mut unions: Vec<&[u32]> = found.assignments.iter().filter(|set| set.len() > 1).collect();
            unions.sort_unstable();
            prop_assert!(unions.windows(2).all(|pair| pair[0] != pair[1]), "a union for each");
        }
        prop_assert!(found.diagnostics.trace.is_sorted_by(|a, b| a >= b));
    }
}
