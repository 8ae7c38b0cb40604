//! What must not change the result, and what must hold whatever the data.

use compflow_api::{BATCH_ROWS, Clusterer};
use compflow_kernels::testing::watcher::Watcher;
use proptest::prelude::*;

use super::*;

#[test]
fn a_stream_gives_what_the_matrix_gives() {
    let planted = plant(Plain::Max, 3, 2, 4, (BATCH_ROWS + 9000) / 6, 1.0, 8);
    for normalize in [Normalize::None, Normalize::L2] {
        let task = planted.task(normalize);
        for init in [Start::Random, Start::PlusPlus] {
            let params =
                Params { restarts: 3, max_iter: 12, init: Init::Start(init), sample: 5000, ..Params::new(3) };
            let ckm = |stream| Ckm::new(Params { stream, ..params.clone() }, &Services::none()).unwrap();
            let whole = ckm(false).cluster(&task, &Services::none()).unwrap();
            assert_eq!((ckm(true).streams(), ckm(false).streams()), (Ok(true), Ok(false)));
            for threads in [1, 3] {
                let services = Services { threads, ..Services::none() };
                let read = ckm(true).cluster_stream(&task.stream(), &services).unwrap();
                assert_eq!(read, whole);
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    // Few examples and many restarts, many examples and few restarts; blocks are many in both.
    for (each, restarts) in [(20, 30), (900, 2)] {
        let planted = plant(Plain::bilinear(6, 3), 4, 3, 6, each, 1.0, 9);
        let params = Params { restarts, max_iter: 20, ..Params::new(4) };
        let run = |threads| planted.cluster(params.clone(), &Services { threads, ..Services::none() }).unwrap();
        let alone = run(1);
        assert_eq!(run(2), alone);
        assert_eq!(run(3), alone);
    }
}

#[test]
fn another_seed_is_another_run() {
    let planted = plant(Plain::Sum, 5, 2, 4, 20, 2.0, 1);
    let params = Params { restarts: 1, max_iter: 2, ..Params::new(5) };
    let run = |seed| planted.cluster(params.clone(), &Services { seed, ..Services::none() }).unwrap();
    assert_ne!(run(1), run(2));
}

#[test]
fn giving_up_changes_no_winner() {
    let mut given_up = 0;
    for seed in 0..8 {
        let g = if seed % 2 == 0 { Plain::bilinear(8, seed) } else { Plain::Max };
        let planted = plant(g, 5, 2, 8, [12, 60][seed as usize / 4], 0.8, 20 + seed);
        for normalize in [Normalize::None, Normalize::L2] {
            let run = |prune| {
                let host = Watcher::new(usize::MAX);
                let services = Services { host: &host, seed, ..Services::none() };
                let params = Params { restarts: 40, prune, ..Params::new(5) };
                let found = cluster(&planted.task(normalize), params, &services).unwrap();
                let lines = host.lines.into_inner().unwrap();
                let line = lines.iter().find(|(_, line)| line.contains("given up")).unwrap().1.clone();
                let number = line.split("SSD; ").nth(1).unwrap().split(' ').next().unwrap();
                (found, number.parse::<usize>().unwrap())
            };
            let ((all, none), (pruned, some)) = (run(false), run(true));
            assert_eq!(none, 0);
            // Several restarts come to the same sets, and differ in their last digits.
            let (a, b) = (pruned.diagnostics.objective, all.diagnostics.objective);
            assert!((a - b).abs() <= 1e-5 * b, "seed {seed}, {normalize:?}: {a} {b}");
            assert_eq!(cri(&pruned.assignments, &all.assignments), 1.0, "seed {seed}, {normalize:?}");
            given_up += some;
        }
    }
    assert!(given_up > 100, "{given_up}");
}

#[test]
fn the_ssd_never_rises() {
    for (seed, g) in [(1, Plain::Max), (2, Plain::Sum), (3, Plain::Mean), (4, Plain::bilinear(5, 4))] {
        let planted = plant(g.clone(), 4, 3, 5, 20, 2.0, seed);
        for normalize in [Normalize::None, Normalize::L2] {
            for seed in 0..5 {
                let services = Services { seed, ..Services::none() };
                let task = planted.task(normalize);
                let found = cluster(&task, Params { restarts: 1, ..params(4) }, &services).unwrap();
                let trace = &found.diagnostics.trace;
                assert!(trace.len() > 2 && trace.is_sorted_by(|a, b| b < a), "{g:?} {trace:?}");
                assert_eq!(found.diagnostics.objective, *trace.last().unwrap());
                assert!(found.diagnostics.converged, "{g:?} {normalize:?}: {}", trace.len());
            }
        }
    }
}

#[test]
fn progress_ends_at_the_total() {
    let planted = plant(Plain::Sum, 3, 2, 4, 20, 1.0, 2);
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, threads: 2, ..Services::none() };
    planted.cluster(Params { restarts: 300, max_iter: 50, ..Params::new(3) }, &services).unwrap();
    let reports = host.reports.into_inner().unwrap();
    assert!(reports.is_sorted() && reports.iter().all(|report| report.1 == 15_000), "{reports:?}");
    assert_eq!(reports.last(), Some(&(15_000, 15_000)));
}

#[test]
fn data_far_from_the_origin_huge_or_tiny_are_told_apart() {
    let planted = plant(Plain::Max, 3, 2, 6, 20, 0.1, 5);
    let changes: [&dyn Fn(f32) -> f32; 3] = [&|x| x + 3000.0, &|x| x * 1e30, &|x| x * 1e-30];
    for change in changes {
        let values: Vec<f32> = planted.values.iter().map(|&value| change(value)).collect();
        let task = Task { embeddings: Embeddings::new(&values, 6), ..planted.task(Normalize::None) };
        let found = cluster(&task, Params::new(3), &Services::none()).unwrap();
        assert_eq!(cri(&found.assignments, &planted.truth), 1.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn neither_the_order_of_rows_nor_numbers_matter(
        seed in 0u64..1000, weights in 0u64..1000, normalise: bool,
        rows in Just((0..14 * 12).collect::<Vec<usize>>()).prop_shuffle(),
        numbers in Just((0..4).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        // Three that are composed by an order would be composed otherwise under other numbers. What is drawn at random
        // depends on the order of rows, so both begin at the same singletons.
        let planted = plant(Plain::bilinear(8, weights), 4, 3, 8, 12, 0.1, seed);
        let other = planted.turned(&rows, &numbers);
        let normalize = if normalise { Normalize::L2 } else { Normalize::None };
        let on = |planted: &Planted| {
            let initial: Option<Box<dyn Clusterer>> = Some(Box::new(Given(planted.start.clone())));
            let ckm = Ckm { params: Params { restarts: 1, ..params(4) }, initial };
            ckm.cluster(&planted.task(normalize), &Services::none()).unwrap()
        };
        let (before, after) = (on(&planted), on(&other));
        prop_assert_eq!(&after.assignments, &turned(&before.assignments, &rows, &numbers));
        let (a, b) = (after.diagnostics.objective, before.diagnostics.objective);
        prop_assert!((a - b).abs() < 1e-4 * b, "{} {}", a, b);
        for (at, vector) in after.singletons.vectors.chunks_exact(8).enumerate() {
            for (a, b) in vector.iter().zip(&before.singletons.vectors[numbers[at] * 8..][..8]) {
                prop_assert!((a - b).abs() < 1e-2, "{} {}", a, b);
            }
        }
    }

    #[test]
    fn every_example_has_its_nearest_centroid(
        n in 1usize..60, dim in 1usize..5, k in 1usize..6, degree in 1usize..5, seed in 0u64..1000,
        normalise: bool, composer in 0usize..4, coarse: bool, init in 0usize..2,
    ) {
        prop_assume!(k <= n);
        let mut values = examples::uniform(n, dim, seed);
        if coarse {
            // Many equal examples, and zero vectors.
            values.iter_mut().for_each(|value| *value = value.round());
        }
        let g = [Plain::Max, Plain::Sum, Plain::Mean, Plain::bilinear(dim, seed)][composer].clone();
        let normalize = if normalise { Normalize::L2 } else { Normalize::None };
        let planted = Planted { values, truth: Sets::default(), dim, degree, g, start: Vec::new() };
        let task = planted.task(normalize);
        let init = Init::Start([Start::Random, Start::PlusPlus][init]);
        let params = Params { restarts: 3, max_iter: 30, init, ..Params::new(k) };
        let found = cluster(&task, params, &Services { seed, ..Services::none() }).unwrap();
        let least: f64 = task.points().chunks_exact(dim).map(|x| {
            let squared = |c: &[f32]| x.iter().zip(c).map(|(&x, &c)| (f64::from(x) - f64::from(c)).powi(2)).sum();
            found.centroids.chunks_exact(dim).map(squared).fold(f64::INFINITY, f64::min)
        }).sum();
        let objective = found.diagnostics.objective;
        let scale = 1e-5 * (1.0 + n as f64);
        prop_assert!((ssd(&task, &found) - objective).abs() < scale, "{} {objective}", ssd(&task, &found));
        prop_assert!((least - objective).abs() < scale, "{least} {objective}");
        prop_assert!(found.diagnostics.trace.is_sorted_by(|a, b| b < a));
        prop_assert!(found.clusters.iter().all(|set| set.len() <= degree));
    }
}
