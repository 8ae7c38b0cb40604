//! How good what is found is.

use super::*;

/// The highest objective that there is, over all sets of exemplars.
fn optimum(task: &Task<'_>, preference: f64) -> f64 {
    let (n, dim, points) = (task.embeddings.len(), task.embeddings.dim(), task.points());
    let mut best = f64::NEG_INFINITY;
    for chosen in 1u32..1 << n {
        let exemplars: Vec<u32> = (0..n as u32).filter(|row| chosen >> row & 1 == 1).collect();
        let sets: Sets = Sets::all_up_to(exemplars.len(), task.degree)
            .iter()
            .map(|set| set.iter().map(|&at| exemplars[at as usize]).collect::<Vec<_>>())
            .collect();
        let composed = task.compose_sets(task.embeddings, &sets, &Services::none()).unwrap();
        let nearest = |row: usize| {
            let distances =
                composed.chunks_exact(dim).map(|c| task.space.distance(&points[row * dim..][..dim], c));
            -distances.fold(f64::INFINITY, f64::min)
        };
        let others = (0..n).filter(|row| chosen >> row & 1 == 0).map(nearest);
        best = best.max(exemplars.len() as f64 * preference + others.sum::<f64>());
    }
    best
}

#[test]
fn a_composition_that_overlaps_a_third_class_is_told_apart_and_not_by_affinity_propagation() {
    // Scenario 2 of the paper's figure 1.
    for seed in 0..5 {
        let (values, truth) = shapes(0.3, 0.05, 0.14, seed);
        let cap = found(&task(&values, 3, 2), target(3));
        assert!(agreement(&cap.assignments, &truth) > 0.95, "{seed}: {:?}", cap.clusters);
        // Affinity propagation with as many exemplars has one cluster for both together and triangles.
        let ap = found(&task(&values, 3, 1), target(3));
        assert_eq!(ap.clusters.len(), 3);
        assert!((0..20).all(|row| ap.assignments[4 * row + 2] == ap.assignments[3]));
        assert!((0..20).all(|row| ap.assignments[4 * row + 3] == ap.assignments[3]));
    }
}

#[test]
fn the_optimum_is_reached_most_of_the_time() {
    let (mut reached, mut tried, mut gap) = (0, 0, 0.0);
    for seed in 0..200 {
        let (n, degree) = (4 + seed as usize % 4, 1 + seed as usize % 3);
        let values = examples::uniform(n, 3, seed);
        let task = task(&values, 3, degree);
        for preference in [-0.3, -0.8, -2.0] {
            let found = found(&task, at(preference));
            let (best, objective) = (optimum(&task, preference), objective(&task, &found, preference));
            assert!((found.diagnostics.objective - objective).abs() < 1e-6);
            assert!(objective <= best + 1e-6, "{objective} {best}");
            tried += 1;
            reached += usize::from(objective > best - 1e-6);
            gap += (best - objective) / best.abs();
        }
    }
    let share = f64::from(reached as u32) / f64::from(tried);
    println!(
        "optimum reached in {:.1} % of {tried}, mean gap {:.2} %",
        100.0 * share,
        100.0 * gap / f64::from(tried)
    );
    assert!(share > 0.95, "{share}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_result_is_feasible_and_its_objective_true(
        n in 1usize..40, dim in 1usize..4, degree in 1usize..4, seed in 0u64..1000, preference in -3.0..0.5f64,
        euclidean: bool, way in 0..5, damping in 0.0..0.9f64, max_iter in 1usize..60,
    ) {
        let values = examples::uniform(n, dim, seed);
        let mut task = task(&values, dim, degree);
        task.space.distance = if euclidean { Distance::Euclidean } else { Distance::SqEuclidean };
        let mut params = Params { damping, max_iter, ..at(preference) };
        match way {
            0 => (),
            1 => params.candidates = Some(n.div_ceil(2)),
            2 => params.subset = Some(n.div_ceil(2)),
            3 => (params.subset, params.extension) = (Some(n.div_ceil(2)), Extension::NearestInferred),
            _ => (params.subset, params.extension) = (Some(n.div_ceil(2)), Extension::NearestMember),
        }
        let found = found(&task, params);
        let expected = objective(&task, &found, preference);
        prop_assert!((found.diagnostics.objective - expected).abs() <= 1e-5 * expected.abs().max(1.0));
        prop_assert_eq!(found.diagnostics.trace.len() as u64, found.diagnostics.iterations);
        let of_all = way < 2 || n == 1;
        prop_assert!(!of_all || found.diagnostics.trace.last() == Some(&found.diagnostics.objective));
    }
}

#[test]
fn equal_examples_stay_together() {
    let (values, truth) = shapes(1.0, 0.1, 0.1, 1);
    let (twice, truth) = ([&values[..], &values].concat(), [&truth[..], &truth].concat());
    for seed in 0..5 {
        let services = Services { seed, ..Services::none() };
        let found = cluster(&task(&twice, 3, 2), at(-4.0), &services).unwrap();
        assert!(agreement(&found.assignments, &truth) == 1.0, "{seed}: {:?}", found.clusters);
        assert!(found.diagnostics.converged);
    }
}
