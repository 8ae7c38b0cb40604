//! What it finds.

use compflow_kernels::testing::naive;
use compflow_kernels::testing::watcher::Watcher;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::params::Optimizer;

#[test]
fn planted_compositions_are_recovered() {
    for degree in [2, 3] {
        for (g, dim) in [(Plain::Max, 12), (Plain::Sum, 8), (Plain::Mean, 8), (Plain::bilinear(8, 3), 8)] {
            let planted = plant(g.clone(), 4, degree, dim, 12, 0.05, 3);
            for init in [Start::Random, Start::PlusPlus] {
                // A mean of means may be found in other ways, too: only the SSD tells.
                let params = Params { restarts: 60, init: Init::Start(init), ..params(4) };
                let found = planted.cluster(params, &Services::none()).unwrap();
                let least = ssd(&planted.task(Normalize::None), &found);
                assert!(least < 0.01 * planted.values.len() as f64, "{degree} {init:?}: {least} {g:?}");
                if !matches!(g, Plain::Mean) {
                    assert_eq!(cri(&found.assignments, &planted.truth), 1.0, "{g:?} {degree} {init:?}");
                    assert_eq!(found.clusters.len(), Sets::all_up_to(4, degree).len());
                }
                assert!(found.diagnostics.converged);
            }
        }
    }
}

/// Overlapping k-means, Cleuziou 2008: every example takes the set of prototypes whose mean is nearest, and a prototype moves to where
/// Σ‖x - mean of its set‖² is least while the others stay. Where neither does anything any more, `ckm` with `mean` must be, too.
#[test]
fn with_the_mean_it_is_overlapping_k_means() {
    for seed in 0..4 {
        let (k, degree, dim) = (4, 3, 6);
        let planted = plant(Plain::Mean, k, degree, dim, 12, 0.3, seed);
        let found = planted.cluster(params(k), &Services { seed, ..Services::none() }).unwrap();
        let mut prototypes: Vec<Vec<f64>> = found
            .singletons
            .vectors
            .chunks_exact(dim)
            .map(|row| row.iter().map(|&v| f64::from(v)).collect())
            .collect();
        let mean_of = |prototypes: &[Vec<f64>], set: &[u32], axis: usize| {
            set.iter().map(|&member| prototypes[member as usize][axis]).sum::<f64>() / set.len() as f64
        };
        let squared = |prototypes: &[Vec<f64>], row: &[f32], set: &[u32]| -> f64 {
            (0..dim).map(|axis| (f64::from(row[axis]) - mean_of(prototypes, set, axis)).powi(2)).sum()
        };
        let rows: Vec<&[f32]> = planted.values.chunks_exact(dim).collect();
        for (row, set) in rows.iter().zip(found.assignments.iter()) {
            let least = Sets::all_up_to(k, degree)
                .iter()
                .map(|set| squared(&prototypes, row, set))
                .fold(f64::MAX, f64::min);
            assert!(squared(&prototypes, row, set) <= least + 1e-4);
        }
        // A prototype's place is the mean of what it would have to be for each of its examples, by 1/|set|².
        for _ in 0..2000 {
            for moved in 0..k {
                for axis in 0..dim {
                    let (mut sum, mut total) = (0.0, 0.0);
                    for (row, set) in
                        rows.iter().zip(found.assignments.iter()).filter(|(_, set)| set.contains(&(moved as u32)))
                    {
                        let size = set.len() as f64;
                        let others = size * mean_of(&prototypes, set, axis) - prototypes[moved][axis];
                        sum += (size * f64::from(row[axis]) - others) / (size * size);
                        total += 1.0 / (size * size);
                    }
                    prototypes[moved][axis] = sum / total;
                }
            }
        }
        for (prototype, vector) in prototypes.iter().zip(found.singletons.vectors.chunks_exact(dim)) {
            for (a, &b) in prototype.iter().zip(vector) {
                assert!((a - f64::from(b)).abs() < 1e-2, "{seed}: {a} {b}");
            }
        }
        let least: f64 =
            rows.iter().zip(found.assignments.iter()).map(|(row, set)| squared(&prototypes, row, set)).sum();
        assert!(
            (found.diagnostics.objective / least - 1.0).abs() < 1e-5,
            "{} {least}",
            found.diagnostics.objective
        );
    }
}

#[test]
fn planted_compositions_are_recovered_by_direction() {
    let planted = plant(Plain::bilinear(10, 2), 4, 2, 10, 15, 0.05, 3);
    let task = planted.task(Normalize::L2);
    let found = cluster(&task, Params::new(4), &Services::none()).unwrap();
    assert_eq!(cri(&found.assignments, &planted.truth), 1.0);
    for centroid in found.centroids.chunks_exact(10) {
        let norm: f32 = centroid.iter().map(|value| value * value).sum();
        assert!((norm - 1.0).abs() < 1e-5);
    }
}

/// The paper's figure 1, scenario 2: triangles lie beside the images that show a rectangle and a circle.
#[test]
fn a_cluster_beside_a_composition_is_told_apart_from_it() {
    let centres = [[4.0, 0.0], [0.0, 4.0], [4.0, 4.0], [4.7, 4.7]];
    let truth = Sets::from_iter((0..80).map(|row| [vec![0], vec![1], vec![0, 1], vec![2]][row % 4].clone()));
    let noise = examples::uniform(80, 2, 1);
    let values: Vec<f32> = (0..160).map(|at| centres[at / 2 % 4][at % 2] + 0.2 * noise[at]).collect();
    let task = Task { degree: 2, composer: Some(&Plain::Max), ..Task::new(Embeddings::new(&values, 2)) };
    let found = cluster(&task, Params::new(3), &Services::none()).unwrap();
    assert_eq!(cri(&found.assignments, &truth), 1.0);
    assert_eq!(found.clusters.len(), 4);

    // Without compositions, three clusters lump the two together.
    let lumped = cluster(&Task { degree: 1, ..task }, Params::new(3), &Services::none()).unwrap();
    assert_eq!(lumped.assignments[2], lumped.assignments[3]);
    assert!(found.diagnostics.objective < 0.5 * lumped.diagnostics.objective);
}

#[test]
fn degree_one_is_k_means() {
    for (n, dim, k, seed) in [(200, 2, 3, 1), (1500, 8, 10, 2), (500, 3, 30, 3)] {
        let values = examples::uniform(n, dim, seed);
        let services = Services { seed, ..Services::none() };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let rows = rand::seq::index::sample(&mut rng, n, k).into_vec();
        let wide: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
        let mut centres: Vec<f64> = rows.iter().flat_map(|row| wide[row * dim..][..dim].to_vec()).collect();
        let (mut labels, _) = naive::nearest(&wide, &centres, dim);
        let inertia = loop {
            centres = naive::means(&wide, &labels, &centres, dim);
            let (next, inertia) = naive::nearest(&wide, &centres, dim);
            if next == labels {
                break inertia;
            }
            labels = next;
        };
        let task = Task::new(Embeddings::new(&values, dim));
        let found = cluster(&task, Params { restarts: 1, ..params(k) }, &services).unwrap();
        assert_eq!(examples::partition(found.assignments.values()), examples::partition(&labels), "seed {seed}");
        let objective = found.diagnostics.objective;
        assert!((objective - inertia).abs() < 1e-6 * inertia, "{objective} instead of {inertia}");
    }
}

/// The authors' procedure as plain loops: the lowest SSD of `restarts` times 100 steps of Adam.
fn plain_adam(planted: &Planted, k: usize, restarts: u64) -> f64 {
    let (g, dim) = (&planted.g, planted.dim);
    let unit = |mut row: Vec<f64>| {
        let norm = row.iter().map(|value| value * value).sum::<f64>().sqrt();
        row.iter_mut().for_each(|value| *value /= norm);
        (row, norm)
    };
    let rows: Vec<Vec<f64>> =
        planted.values.chunks_exact(dim).map(|row| row.iter().map(|&value| f64::from(value)).collect()).collect();
    let points: Vec<Vec<f64>> = rows.iter().map(|row| unit(row.clone()).0).collect();
    let mut lowest = f64::INFINITY;
    for restart in 0..restarts {
        // The starts of `init` = "random".
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        rng.set_stream(restart);
        let start = rand::seq::index::sample(&mut rng, rows.len(), k);
        let mut m: Vec<f64> = start.iter().flat_map(|row| rows[row].clone()).collect();
        let (mut first, mut second) = (vec![0.0; m.len()], vec![0.0; m.len()]);
        for step in 1..=100 {
            let row = |m: &[f64], at: usize| m[at * dim..][..dim].to_vec();
            let pairs: Vec<(usize, usize)> = (0..k).flat_map(|a| (a..k).map(move |b| (a, b))).collect();
            let composed: Vec<(Vec<f64>, f64)> = pairs
                .iter()
                .map(|&(a, b)| unit(if a == b { row(&m, a) } else { g.compose_pair(&row(&m, a), &row(&m, b)) }))
                .collect();
            let (mut sum, mut grads) = (0.0, vec![vec![0.0; dim]; pairs.len()]);
            for x in &points {
                let far = |u: &[f64]| u.iter().zip(x).map(|(u, x)| (u - x).powi(2)).sum::<f64>();
                let all = composed.iter().map(|(u, _)| far(u)).enumerate();
                let (at, least) = all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
                sum += least;
                grads[at].iter_mut().zip(&composed[at].0).zip(x).for_each(|((grad, u), x)| *grad += 2.0 * (u - x));
            }
            lowest = lowest.min(sum);
            let mut grad = vec![0.0; m.len()];
            for ((&(a, b), (u, norm)), by_u) in pairs.iter().zip(&composed).zip(&grads) {
                let along: f64 = u.iter().zip(by_u).map(|(u, grad)| u * grad).sum();
                let by_m: Vec<f64> = u.iter().zip(by_u).map(|(u, grad)| (grad - along * u) / norm).collect();
                let (to_a, to_b) = match a == b {
                    true => (by_m, vec![0.0; dim]),
                    false => g.pull_back_pair(&row(&m, a), &row(&m, b), &by_m),
                };
                (0..dim).for_each(|at| grad[a * dim + at] += to_a[at]);
                (0..dim).for_each(|at| grad[b * dim + at] += to_b[at]);
            }
            for at in 0..m.len() {
                let grad = grad[at] / (2.0 * sum.sqrt());
                first[at] = 0.9 * first[at] + 0.1 * grad;
                second[at] = 0.999 * second[at] + 0.001 * grad * grad;
                let (mean, square) =
                    (first[at] / (1.0 - 0.9f64.powi(step)), second[at] / (1.0 - 0.999f64.powi(step)));
                m[at] -= 0.2 * mean / (square.sqrt() + 1e-8);
            }
        }
    }
    lowest
}

#[test]
fn the_ssd_is_no_worse_than_that_of_plain_adam() {
    for seed in [1, 2, 3] {
        let planted = plant(Plain::bilinear(8, seed), 4, 2, 8, 60, 1.0, 10 * seed);
        let reference = plain_adam(&planted, 4, 10);
        let task = planted.task(Normalize::L2);
        for params in
            [Params { restarts: 10, ..Params::new(4) }, read(r#"{"k": 4, "preset": "paper", "restarts": 30}"#)]
        {
            let found = cluster(&task, params, &Services::none()).unwrap().diagnostics.objective;
            assert!(found <= reference, "{found} instead of {reference}");
        }
        // The same procedure from the same starts, in f32.
        let params = read(r#"{"k": 4, "preset": "authors-code", "restarts": 10}"#);
        let found = cluster(&task, params, &Services::none()).unwrap();
        let ratio = found.diagnostics.objective / reference;
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
        assert_eq!(found.diagnostics.iterations, 100);
        let lowest = found.diagnostics.trace.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(found.diagnostics.objective <= lowest);
    }
}

#[test]
fn several_steps_of_adam_between_assignments_descend_as_well() {
    let planted = plant(Plain::Sum, 3, 2, 6, 30, 0.3, 4);
    let params = Params {
        optimizer: Optimizer::Adam,
        lr: Some(0.05),
        steps: Some(5),
        restarts: 20,
        max_iter: 100,
        ..params(3)
    };
    let found = planted.cluster(params, &Services::none()).unwrap();
    assert_eq!(cri(&found.assignments, &planted.truth), 1.0);
}

#[test]
fn singletons_that_nothing_needs_start_anew() {
    // Nearly all examples are the same, and so are the first singletons.
    let places = [0.0, 5.0, -3.0, 9.0];
    let values: Vec<f32> = (0..300).map(|row| places[if row % 100 < 97 { 0 } else { row % 100 - 96 }]).collect();
    let task = Task::new(Embeddings::new(&values, 1));
    let found = cluster(&task, Params { restarts: 1, ..params(4) }, &Services::none()).unwrap();
    assert_eq!(found.clusters.len(), 4);
    assert!(found.diagnostics.objective < 1e-9, "{}", found.diagnostics.objective);
    let expected: Vec<u32> = (0..300).map(|row| if row % 100 < 97 { 0 } else { row % 100 - 96 }).collect();
    assert_eq!(examples::partition(found.assignments.values()), expected);
}

#[test]
fn sets_without_examples_are_absent() {
    // Two groups and their sum; of three singletons' six sets at most three have examples.
    let values: Vec<f32> = (0..60).flat_map(|row| [[9.0, 0.0], [0.0, 7.0], [9.0, 7.0]][row % 3]).collect();
    let task = Task { degree: 2, composer: Some(&Plain::Sum), ..Task::new(Embeddings::new(&values, 2)) };
    let found = cluster(&task, params(2), &Services::none()).unwrap();
    assert_eq!(found.clusters, Sets::from_iter([vec![0], vec![1], vec![0, 1]]));
    let host = Watcher::new(usize::MAX);
    let found = cluster(&task, params(3), &Services { host: &host, ..Services::none() }).unwrap();
    assert!(found.clusters.len() <= 3 && found.diagnostics.objective < 1e-6);
    let members = found.clusters.values().iter().max().unwrap() + 1;
    for member in 0..members {
        assert!(found.assignments.values().contains(&member));
    }
}

#[test]
fn singletons_are_what_the_centres_are_composed_from() {
    let planted = plant(Plain::Sum, 4, 2, 3, 6, 0.05, 2);
    for normalize in [Normalize::None, Normalize::L2] {
        let task = planted.task(normalize);
        let found = cluster(&task, params(4), &Services::none()).unwrap();
        assert_eq!(found.singletons.numbers, [0, 1, 2, 3]);
        let rows = Embeddings::new(&found.singletons.vectors, 3);
        let composed = task.compose_sets(rows, &found.clusters, &Services::none()).unwrap();
        assert_eq!(composed, found.centroids);
    }
}
