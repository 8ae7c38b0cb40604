//! What changes nothing.

use super::*;

#[test]
fn numbers_have_no_part_in_it() {
    for (composer, degree, normalize) in [
        ("max", 3, Normalize::L2),
        ("max", 2, Normalize::None),
        ("bilinear", 2, Normalize::L2),
        ("bilinear", 3, Normalize::L2),
    ] {
        for seed in 0..6 {
            let (k, each, dim) = (8, 3, 6);
            let (run, order) = (Run::new(&[], dim), shuffled(k * each, seed));
            let centres = composed(composer, degree, dim, seed);
            let noise = examples::uniform(k * each, dim, seed + 90);
            let values: Vec<f32> = noise
                .iter()
                .enumerate()
                .map(|(at, noise)| centres[at / (each * dim) * dim + at % dim] + 0.05 * noise)
                .collect();
            let labels: Vec<u32> = (0..k * each).map(|row| (row / each) as u32).collect();
            let permuted: Vec<f32> = order.iter().flat_map(|&row| &values[row * dim..][..dim]).copied().collect();
            let space = Space { normalize, ..run.space };
            let on = |values: &[f32], labels: &[u32]| {
                Run { values, degree, space, composer, ..run }.on(&singletons(labels), json!({})).unwrap()
            };
            let plain = on(&values, &labels);
            // Other numbers for clusters, too.
            let other: Vec<u32> = order.iter().map(|&row| 100 - labels[row]).collect();
            let found = on(&permuted, &other);
            let back: Vec<&[u32]> = (0..order.len())
                .map(|row| &found.assignments[order.iter().position(|&at| at == row).unwrap()])
                .collect();
            let renamed = rename(plain.assignments.iter().collect(), &back);
            assert_eq!(renamed, back, "{composer} {degree} {seed}");
            assert!(plain.clusters.iter().any(|set| set.len() > 1), "{composer} {degree} {seed} shows nothing");
            let close = (plain.diagnostics.objective - found.diagnostics.objective).abs();
            assert!(close <= 1e-5 * plain.diagnostics.objective, "{composer} {degree} {seed}");
        }
    }
}

/// Four singletons and some of their compositions: the centres of eight clusters.
fn composed(composer: &str, degree: usize, dim: usize, seed: u64) -> Vec<f32> {
    let singles = examples::uniform(4, dim, seed);
    let last = if degree > 2 { vec![1, 2, 3] } else { vec![1, 3] };
    let sets = Sets::from_iter([vec![0], vec![1], vec![2], vec![3], vec![0, 1], vec![1, 2], vec![0, 3], last]);
    let composer = testing::composer(composer);
    let singles = Embeddings::new(&singles, dim);
    let task = Task { degree, composer: Some(&composer), ..Task::new(singles) };
    task.compose_sets(singles, &sets, &Services::none()).unwrap()
}

/// The numbers below n in some order.
fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let keys = examples::uniform(n, 1, seed + 50);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
    order
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
