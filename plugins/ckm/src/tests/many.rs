//! Many singletons, and those without examples of their own.

use super::*;

/// Planted examples without those of some sets.
fn without(planted: Planted, gone: impl Fn(&[u32]) -> bool) -> Planted {
    let (dim, mut values, mut truth) = (planted.dim, Vec::new(), Sets::default());
    for (row, set) in planted.values.chunks_exact(dim).zip(planted.truth.iter()).filter(|(_, set)| !gone(set)) {
        values.extend_from_slice(row);
        truth.push(set);
    }
    Planted { values, truth, ..planted }
}

/// Whether the SSD is that of the noise, so that all singletons were found.
fn explained(planted: &Planted, found: &Clustering, noise: f64) -> bool {
    found.diagnostics.objective < 1.1 * planted.values.len() as f64 * noise * noise / 3.0
}

#[test]
fn swaps_find_what_restarts_miss() {
    let mut missed = 0;
    for (seed, g) in [(1, Plain::Sum), (5, Plain::Max), (2, Plain::bilinear(8, 2)), (4, Plain::Sum)] {
        let planted = plant(g, 12, 2, 8, 6, 0.2, seed);
        let params = Params { restarts: 20, ..Params::new(12) };
        let restarts = planted.cluster(Params { refine: false, ..params.clone() }, &Services::none()).unwrap();
        missed += usize::from(!explained(&planted, &restarts, 0.2));
        let found = planted.cluster(params, &Services::none()).unwrap();
        assert!(explained(&planted, &found, 0.2), "seed {seed}: {}", found.diagnostics.objective);
        if !matches!(planted.g, Plain::Max) {
            assert_eq!(cri(&found.assignments, &planted.truth), 1.0, "seed {seed}");
        }
    }
    assert_eq!(missed, 4);
}

#[test]
fn a_singleton_that_never_occurs_alone_is_found() {
    let mut missed = 0;
    for (seed, g) in [(1, Plain::Sum), (2, Plain::Sum), (1, Plain::Max), (3, Plain::bilinear(8, 2))] {
        let planted = without(plant(g, 6, 2, 8, 8, 0.1, seed), |set| set == [2]);
        let params = Params { restarts: 3, ..Params::new(6) };
        let restarts = planted.cluster(Params { refine: false, ..params.clone() }, &Services::none()).unwrap();
        missed += usize::from(!explained(&planted, &restarts, 0.1));
        let found = planted.cluster(params, &Services::none()).unwrap();
        assert!(explained(&planted, &found, 0.1), "seed {seed}: {}", found.diagnostics.objective);
    }
    assert_eq!(missed, 4);
}

#[test]
fn with_swaps_neither_threads_nor_batches_matter() {
    let planted = plant(Plain::bilinear(6, 3), 9, 2, 6, 30, 0.4, 9);
    let task = planted.task(Normalize::L2);
    let ckm = |stream| Ckm::new(Params { stream, ..Params::new(9) }, &Services::none()).unwrap();
    let alone = ckm(false).cluster(&task, &Services::none()).unwrap();
    let services = Services { threads: 3, ..Services::none() };
    assert_eq!(ckm(false).cluster(&task, &services).unwrap(), alone);
    assert_eq!(ckm(true).cluster_stream(&task.stream(), &services).unwrap(), alone);
}
