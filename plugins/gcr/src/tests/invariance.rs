//! What changes nothing.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn neither_the_order_of_rows_nor_numbers_matter(
        seed in 0u64..1000, weights in 0u64..1000, normalise: bool, auto: bool,
        order in Just((0..24).collect::<Vec<usize>>()).prop_shuffle(),
        numbers in Just((0..8).collect::<Vec<u32>>()).prop_shuffle(),
    ) {
        let dim = 6;
        // Not `max`, by which different unions can be exactly the same vector, of which the first is taken.
        let composer = || testing::composer("bilinear", &json!({ "weights": weights }).to_string());
        let centres = composed(&composer(), dim, seed);
        let noise = examples::uniform(24, dim, seed + 2000);
        let values: Vec<f32> = (0..24 * dim)
            .map(|at| centres[at / (3 * dim) * dim + at % dim] + 0.02 * noise[at])
            .collect();
        let permuted: Vec<f32> = order.iter().flat_map(|&row| &values[row * dim..][..dim]).copied().collect();
        let labels: Vec<u32> = (0..24).map(|row| row / 3).collect();
        let other: Vec<u32> = order.iter().map(|&row| numbers[row / 3]).collect();
        let normalize = if normalise { Normalize::L2 } else { Normalize::None };
        let params = || if auto { json!({}) } else { json!({ "threshold": 0.1 }) };
        let on = |values: &[f32], labels: &[u32]| {
            let run = Run { degree: 3, composer: composer(), ..Run::new(values, dim) };
            Run { space: Space { normalize, ..run.space }, ..run }.on(&singletons(labels), params()).unwrap()
        };
        let (before, after) = (on(&values, &labels), on(&permuted, &other));
        let place = |row: usize| order.iter().position(|&at| at == row).unwrap();
        let back: Vec<&[u32]> = (0..24).map(|row| &after.assignments[place(row)]).collect();
        prop_assert_eq!(rename(before.assignments.iter().collect(), &back), back);
        // Where the threshold is given, there is something to compose.
        prop_assert!(auto || before.clusters.iter().any(|set| set.len() > 1));
        let (a, b) = (after.diagnostics.objective, before.diagnostics.objective);
        prop_assert!((a - b).abs() <= 1e-4 * b, "{} {}", a, b);
    }
}

/// Four singletons and some of their compositions, two of them of three: the centres of eight clusters.
fn composed(composer: &ForeignComposer, dim: usize, seed: u64) -> Vec<f32> {
    let singles = examples::uniform(4, dim, seed);
    let sets = Sets::from_iter([&[0][..], &[1], &[2], &[3], &[0, 1], &[0, 3], &[0, 1, 2], &[1, 2, 3]]);
    let singles = Embeddings::new(&singles, dim);
    let task = Task { degree: 3, composer: Some(composer), ..Task::new(singles) };
    task.compose_sets(singles, &sets, &Services::none()).unwrap()
}

/// Sets with the singletons numbered as in `like`, where examples are in the same order.
fn rename<'a>(sets: Vec<&'a [u32]>, like: &[&'a [u32]]) -> Vec<Vec<u32>> {
    let pairs: Vec<(u32, u32)> = sets
        .iter()
        .zip(like)
        .filter(|(set, like)| set.len() == 1 && like.len() == 1)
        .map(|(a, b)| (a[0], b[0]))
        .collect();
    let number = |member: &u32| pairs.iter().find(|(from, _)| from == member).map_or(u32::MAX, |pair| pair.1);
    sets.iter()
        .map(|set| {
            let mut set: Vec<u32> = set.iter().map(number).collect();
            set.sort_unstable();
            set
        })
        .collect()
}

#[test]
fn the_number_of_threads_changes_nothing_and_the_log_says_what_was_found() {
    let (n, dim) = (190, 60);
    let values = examples::uniform(n, dim, 4);
    let sets: Vec<u32> = (0..n as u32).collect();
    let base = json!({ "use": "given", "params": { "sets": singletons(&sets) } });
    let params = json!({ "base": base, "threshold": 99, "method": "greedy" });
    let composer = testing::max();
    let task = Task { degree: 2, composer: Some(&composer), ..Task::new(Embeddings::new(&values, dim)) };
    let run = |threads| {
        let shop = Shop::default();
        let services = Services { host: &shop, threads, ..Services::none() };
        let gcr = services.clusterer("gcr", &params.to_string()).unwrap();
        (gcr.cluster(&task, &services).unwrap(), shop.lines.into_inner().unwrap())
    };
    let (alone, lines) = run(1);
    assert_eq!(run(3).0, alone);
    let composed = alone.assignments.iter().filter(|set| set.len() == 2).count();
    assert!(composed > 0);
    assert_eq!(lines, [format!("{composed} of 190 clusters are compositions, at a threshold of 99")]);
}

#[test]
fn huge_and_tiny_examples_are_told_apart() {
    let (values, sets) = unions();
    let plain = Run::new(&values, 3).on(&sets, json!({})).unwrap();
    for scale in [1e30, 1e-15] {
        let scaled: Vec<f32> = values.iter().map(|value| value * scale).collect();
        assert_eq!(Run::new(&scaled, 3).on(&sets, json!({})).unwrap().assignments, plain.assignments);
    }
}

/// Runs `gcr` over a base that goes by weights.
fn weighted(values: &[f32], weights: Option<&[f32]>, sets: &[Vec<u32>], params: Value) -> Clustering {
    let shop = Shop::default();
    let services = Services { host: &shop, ..Services::none() };
    let mut params = params;
    params["base"] = json!({ "use": "given", "params": { "sets": sets, "weighs": true } });
    let gcr = services.clusterer("gcr", &params.to_string()).unwrap();
    assert!(gcr.flags().unwrap().contains(Flags::USES_WEIGHTS));
    let composer = testing::max();
    let task = Task { degree: 2, composer: Some(&composer), weights, ..Task::new(Embeddings::new(values, 3)) };
    gcr.cluster(&task, &services).unwrap()
}

#[test]
fn a_weight_of_two_is_the_example_twice_and_one_of_0_is_as_if_it_were_not_there() {
    let (mut values, mut sets) = unions();
    // One of each two examples lies beside the other.
    values.iter_mut().zip(examples::uniform(12, 3, 2)).for_each(|(value, noise)| *value += 0.05 * noise);
    let weights: Vec<f32> = (0..12).map(|row| [1.0, 2.0][row % 2]).collect();
    let rows: Vec<usize> = (0..12).flat_map(|row| std::iter::repeat_n(row, 1 + row % 2)).collect();
    let twice: Vec<f32> = rows.iter().flat_map(|&row| &values[3 * row..][..3]).copied().collect();
    let sets_twice: Vec<Vec<u32>> = rows.iter().map(|&row| sets[row].clone()).collect();
    for params in [json!({}), json!({ "method": "greedy" }), json!({ "method": "exhaustive" })] {
        let found = weighted(&values, Some(&weights), &sets, params.clone());
        let expected = weighted(&twice, None, &sets_twice, params.clone());
        assert!(found.clusters.iter().any(|set| set.len() == 2));
        assert_eq!((&found.clusters, &found.singletons), (&expected.clusters, &expected.singletons));
        assert_eq!(found.diagnostics, expected.diagnostics);
        for (at, &row) in rows.iter().enumerate() {
            assert_eq!(found.assignments[row], expected.assignments[at], "{params}");
        }
    }
    let alone = weighted(&values, None, &sets, json!({}));
    values.extend([1e25, -1e25, 1e25].repeat(3));
    sets.extend(singletons(&[1, 7, 9]));
    let weights: Vec<f32> = (0..15).map(|row| f32::from(u8::from(row < 12))).collect();
    let found = weighted(&values, Some(&weights), &sets, json!({}));
    assert_eq!((&found.clusters, &found.singletons), (&alone.clusters, &alone.singletons));
    assert_eq!(found.diagnostics, alone.diagnostics);
    (0..12).for_each(|row| assert_eq!(found.assignments[row], alone.assignments[row]));
}
