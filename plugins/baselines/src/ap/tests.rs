use compflow_api::{Distance, Embeddings, ForeignClusterer, Registration, Services, Shape};

use super::*;
use compflow_kernels::preference::Target;
use compflow_kernels::testing::watcher::Watcher;
use compflow_kernels::testing::{examples, propagation};

fn ap(params: Params) -> Ap {
    Ap::new(params, &Services::none()).unwrap()
}

fn with_preference(preference: Preference) -> Params {
    Params { preference, ..Params::default() }
}

fn cluster(values: &[f32], dim: usize, params: Params, services: &Services<'_>) -> Result<Clustering> {
    let task = Task::new(Embeddings::new(values, dim));
    let clustering = ap(params).cluster(&task, services)?;
    clustering.check(&task)?;
    Ok(clustering)
}

fn found(values: &[f32], dim: usize, params: Params) -> Clustering {
    cluster(values, dim, params, &Services::none()).unwrap()
}

#[test]
fn messages_are_those_of_plain_loops() {
    for (n, damping, seed) in [(5, 0.5, 1), (23, 0.65, 2), (40, 0.9, 3)] {
        let values = examples::uniform(n, 3, seed);
        let task = Task::new(Embeddings::new(&values, 3));
        let (workers, services) = (Workers::alone(), Services::none());
        let mut similarities = Similarities::new(&task, &workers, &services).unwrap();
        similarities.add_noise(&workers, &services).unwrap();
        similarities.set_preference(-0.3);
        let wide: Vec<f64> = similarities.values().iter().map(|&value| f64::from(value)).collect();
        let mut messages = Messages::new(&similarities, damping);
        for iterations in 1..=30 {
            messages.pass(&workers, &services).unwrap();
            let expected = propagation::pass(&wide, n, damping, iterations);
            for (found, expected) in messages.responsibilities().iter().zip(&expected.responsibilities) {
                assert!((f64::from(*found) - expected).abs() < 2e-5, "{iterations}: {found} {expected}");
            }
            for (k, belief) in messages.beliefs().enumerate() {
                let own = k * (n + 1);
                let expected = expected.availabilities[own] + expected.responsibilities[own];
                assert!((belief - expected).abs() < 2e-5, "{iterations}: {belief} {expected}");
            }
        }
    }
}

#[test]
fn groups_far_apart_are_found() {
    let (values, truth) = examples::blobs(9, 30, 3, 1);
    for distance in [Distance::SqEuclidean, Distance::Euclidean] {
        let mut task = Task::new(Embeddings::new(&values, 3));
        task.space.distance = distance;
        let params = Params { damping: 0.7, ..with_preference(Preference::Value(-40.0)) };
        let found = ap(params).cluster(&task, &Services::none()).unwrap();
        assert_eq!(examples::partition(found.assignments.values()), examples::partition(&truth));
        assert!(found.diagnostics.converged);
    }
}

#[test]
fn the_objective_is_the_net_similarity_and_exemplars_are_in_their_clusters() {
    let values = examples::uniform(200, 4, 2);
    for distance in [Distance::SqEuclidean, Distance::Euclidean] {
        let mut task = Task::new(Embeddings::new(&values, 4));
        task.space.distance = distance;
        let found = ap(with_preference(Preference::Value(-3.0))).cluster(&task, &Services::none()).unwrap();
        let labels = found.assignments.values();
        let mut net = -3.0 * found.clusters.len() as f64;
        for (row, &label) in labels.iter().enumerate() {
            let exemplar = found.exemplars[label as usize][0] as usize;
            net -= task.space.distance(task.embeddings.row(row), task.embeddings.row(exemplar));
        }
        assert!((found.diagnostics.objective - net).abs() < 1e-5 * net.abs());
        for (label, exemplar) in found.exemplars.iter().enumerate() {
            assert_eq!(labels[exemplar[0] as usize], label as u32);
        }
        assert!(found.exemplars.is_sorted());
        assert_eq!(found.diagnostics.trace.len() as u64, found.diagnostics.iterations);
        // Refinement may only add to what the last choices had.
        assert!(net >= found.diagnostics.trace.last().unwrap() - 1e-5 * net.abs());
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let values = examples::uniform(701, 5, 3);
    let at = |threads: usize| {
        cluster(&values, 5, Params::default(), &Services { threads, ..Services::none() }).unwrap()
    };
    let alone = at(1);
    assert_eq!(at(2), alone);
    assert_eq!(at(3), alone);
}

#[test]
fn the_order_of_examples_does_not_matter() {
    let (n, dim) = (300, 3);
    let values = examples::uniform(n, dim, 4);
    // 7 has no divisor in common with 300.
    let moved = |row: usize| row * 7 % n;
    let mut permuted = vec![0.0; n * dim];
    for row in 0..n {
        permuted[moved(row) * dim..][..dim].copy_from_slice(&values[row * dim..][..dim]);
    }
    let (before, after) = (found(&values, dim, Params::default()), found(&permuted, dim, Params::default()));
    let back: Vec<u32> = (0..n).map(|row| after.assignments.values()[moved(row)]).collect();
    assert_eq!(examples::partition(before.assignments.values()), examples::partition(&back));
}

#[test]
fn a_number_of_clusters_is_reached() {
    let values = examples::uniform(250, 2, 5);
    for k in [1, 2, 5, 12, 40] {
        let found = found(&values, 2, with_preference(Preference::Target(Target { k })));
        assert_eq!(found.clusters.len(), k);
    }
    let (values, truth) = examples::blobs(5, 30, 2, 1);
    let target = || with_preference(Preference::Target(Target { k: 5 }));
    let clusters = |values: &[f32]| examples::partition(found(values, 2, target()).assignments.values());
    assert_eq!(clusters(&values), examples::partition(&truth));
    // Equal examples are as far apart as their noise, which must not mislead the search.
    assert_eq!(clusters(&[&values[..], &values].concat()), examples::partition(&[&truth[..], &truth].concat()));
}

#[test]
fn presets_give_way_to_what_is_given() {
    let component = Registration::clusterer::<Ap>().component().unwrap();
    let from = |params: &str| {
        let params: Params = serde_json::from_str(&component.effective(params)).unwrap();
        (params.damping, params.max_iter, params.convergence_iter)
    };
    assert_eq!(from("{}"), (0.5, 200, 15));
    assert_eq!(from(r#"{"preset": "paper"}"#), (0.65, 200, 15));
    assert_eq!(from(r#"{"preset": "authors-code"}"#), (0.85, 300, 15));
    assert_eq!(from(r#"{"preset": "authors-code", "damping": 0.7}"#), (0.7, 300, 15));
}

#[test]
fn what_did_not_converge_is_usable_and_says_so() {
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let values = examples::uniform(100, 2, 6);
    // Too few iterations for anybody to become an exemplar.
    let params = Params { preference: Preference::Value(-1000.0), max_iter: 1, ..Params::default() };
    let one = cluster(&values, 2, params, &services).unwrap();
    assert_eq!((one.clusters.len(), one.diagnostics.converged, one.diagnostics.iterations), (1, false, 1));
    // Enough for exemplars, not for their staying.
    let params = Params { max_iter: 12, ..Params::default() };
    let several = cluster(&values, 2, params, &services).unwrap();
    assert!(several.clusters.len() > 1 && !several.diagnostics.converged);
    assert_eq!(
        host.warnings(),
        [
            "ap found no exemplar in 1 iteration and took the best; raise `max_iter`, as more `damping` did not help, up to 0.95",
            "ap did not converge in 12 iterations; raise `max_iter`, as more `damping` did not help, up to 0.95",
        ]
    );
}

#[test]
fn equal_similarities_give_one_cluster_or_one_each() {
    let count = |values: &[f32], preference| found(values, 1, with_preference(preference)).clusters.len();
    assert_eq!(count(&[3.0], Preference::default()), 1);
    assert_eq!(count(&[3.0; 6], Preference::default()), 1);
    assert_eq!(count(&[3.0; 6], Preference::Value(0.5)), 6);
    assert_eq!(count(&[0.0, 1.0], Preference::default()), 2);
    assert_eq!(count(&[0.0, 1.0], Preference::Value(-2.0)), 1);
    assert_eq!(count(&[0.0, 1.0], Preference::Target(Target { k: 1 })), 1);
    assert_eq!(count(&[0.0, 1.0], Preference::Target(Target { k: 2 })), 2);

    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let target = with_preference(Preference::Target(Target { k: 2 }));
    assert_eq!(cluster(&[3.0; 6], 1, target, &services).unwrap().clusters.len(), 1);
    assert_eq!(
        host.warnings(),
        ["ap found no preference that gives 2 clusters, the nearest that came up are 1 and 6; it has 1"]
    );
}

#[test]
fn huge_values_do_not_overflow() {
    let (values, truth) = examples::blobs(4, 20, 2, 7);
    let huge: Vec<f32> = values.iter().map(|value| value * 1e35).collect();
    let found = found(&huge, 2, with_preference(Preference::Target(Target { k: 4 })));
    assert_eq!(examples::partition(found.assignments.values()), examples::partition(&truth));
    assert!(found.diagnostics.objective.is_finite());
}

#[test]
fn work_that_is_no_longer_wanted_stops() {
    let values = examples::uniform(600, 3, 8);
    for (threads, patience) in [(1, 1), (2, 3)] {
        let host = Watcher::new(patience);
        let services = Services { host: &host, threads, ..Services::none() };
        let params = Params { max_iter: 1_000_000, convergence_iter: 1_000_000, ..Params::default() };
        assert_eq!(cluster(&values, 3, params, &services).unwrap_err(), Error::Cancelled);
        assert_eq!(host.reports.lock().unwrap().len(), patience);
    }
}

#[test]
fn too_little_memory_is_refused_with_a_remedy() {
    let services = Services { memory: 10_000, ..Services::none() };
    let refused = cluster(&[1.0; 400], 4, Params::default(), &services).unwrap_err().to_string();
    assert!(refused.ends_with("cluster fewer examples: memory grows with their number squared"), "{refused}");
}

#[test]
fn works_across_the_boundary() {
    let component = Registration::clusterer::<Ap>().component().unwrap();
    let create = |params: &str| component.create(params, &Services::none());
    let ap = ForeignClusterer::try_from(create(r#"{"preference": "p10"}"#).unwrap()).unwrap();
    let values = examples::uniform(150, 3, 9);
    let task = Task::new(Embeddings::new(&values, 3));
    let direct = found(&values, 3, with_preference(Preference::Percentile("p10".to_owned())));
    assert_eq!(ap.cluster(&task, &Services::none()).unwrap(), direct);
    assert!(
        (8 * 3000 * 3000..9 * 3000 * 3000)
            .contains(&ap.memory(Shape { rows: 3000, dim: 32, degree: 1 }, &Services::none()).unwrap())
    );

    let refused = |params: &str| create(params).unwrap_err().to_string();
    assert_eq!(refused(r#"{"damping": 1.0}"#), "`damping` must be a number at least 0.5 and below 1.0, found 1.0");
    assert_eq!(refused(r#"{"max_iter": 0}"#), "`max_iter` must be a whole number at least 1, found 0");
    assert_eq!(
        refused(r#"{"preference": {"k": 0}}"#),
        "`preference.k` must be a whole number at least 1, found 0"
    );
    assert!(refused(r#"{"preference": "low"}"#).starts_with("`preference` must be "));
    assert!(refused(r#"{"preset": "mine"}"#).contains(r#"`preset` must be "paper" or "authors-code""#));
    let many = ForeignClusterer::try_from(create(r#"{"preference": {"k": 151}}"#).unwrap()).unwrap();
    assert_eq!(
        many.cluster(&task, &Services::none()).unwrap_err().to_string(),
        "`preference.k` = 151 is more than the 150 examples"
    );
}

#[test]
fn equal_examples_end_in_the_same_cluster() {
    let values = examples::uniform(40, 4, 1);
    let twice = [&values[..], &values, &values[..20]].concat();
    for (preference, damping) in [("median", 0.5), ("median", 0.65), ("median", 0.85), ("p90", 0.5), ("p25", 0.95)]
    {
        for seed in 0..5 {
            let params = Params { damping, ..with_preference(Preference::Percentile(preference.to_owned())) };
            let found = cluster(&twice, 4, params, &Services { seed, ..Services::none() }).unwrap();
            let labels = found.assignments.values();
            for row in 40..labels.len() {
                assert_eq!(labels[row], labels[row % 40], "{preference} {damping} {seed}: {row}");
            }
        }
    }
}

#[test]
fn messages_that_do_not_settle_end_in_the_best_state() {
    let values = examples::uniform(60, 2, 3);
    let task = Task::new(Embeddings::new(&values, 2));
    // So low that any second exemplar costs more than all distances.
    for preference in [-1e4, -1e9, -1e15] {
        let (host, services) = (Watcher::new(usize::MAX), Services::none());
        let services = Services { host: &host, ..services };
        let found = cluster(&values, 2, with_preference(Preference::Value(preference)), &services).unwrap();
        let row = |row: usize| task.embeddings.row(row);
        let from = |one: usize| (0..60).map(|other| task.space.distance(row(one), row(other))).sum::<f64>();
        let medoid = (0..60).min_by(|&a, &b| from(a).total_cmp(&from(b))).unwrap();
        assert_eq!(found.exemplars, [[medoid as u32]], "{preference}");
        assert_eq!(found.diagnostics.converged, host.warnings().is_empty(), "{preference}");
        // With so much damping all are exemplars for long.
        let slow = Params { damping: 0.95, ..with_preference(Preference::Value(preference)) };
        assert_eq!(cluster(&values, 2, slow, &services).unwrap().exemplars, [[medoid as u32]], "{preference}");
    }
}

#[test]
fn messages_that_oscillate_are_damped_more_unless_a_preset_says_how_much() {
    let mut settled = 0;
    for (seed, power) in (0..4).flat_map(|seed| (-2..8).map(move |power| (seed, power))) {
        let values = examples::uniform(60, 2, seed);
        let found = |preset| {
            let host = Watcher::new(usize::MAX);
            let params = Params { preset, ..with_preference(Preference::Value(-f64::powi(2.0, power))) };
            let found = cluster(&values, 2, params, &Services { host: &host, ..Services::none() }).unwrap();
            assert_eq!(found.diagnostics.converged, host.warnings().is_empty());
            found
        };
        let (raised, fixed) = (found(None), found(Some(Preset::Paper)));
        if fixed.diagnostics.converged {
            assert_eq!(raised, fixed);
        } else {
            assert!(raised.diagnostics.objective >= fixed.diagnostics.objective);
            settled += usize::from(raised.diagnostics.converged);
        }
    }
    assert!(settled > 0);
}

#[test]
fn a_number_of_clusters_that_is_missed_is_not_converged_and_names_the_nearest() {
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    // Pairs of equal distance in a square: 1 and 4 clusters come up, hardly 3.
    let square = [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
    let target = |k| with_preference(Preference::Target(Target { k }));
    let found = cluster(&square, 2, target(3), &services).unwrap();
    let three = found.clusters.len() == 3;
    assert_eq!(found.diagnostics.converged, three);
    // All equally far apart: 1 or 3.
    let found = cluster(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], 3, target(2), &services).unwrap();
    assert!(!found.diagnostics.converged);
    let expected = "ap found no preference that gives 2 clusters, the nearest that came up are 1 and 3; it has 1";
    assert_eq!(host.warnings().last().unwrap(), expected);
    assert!(three || host.warnings()[0].starts_with("ap found no preference that gives 3 clusters, the nearest "));
}

#[test]
fn what_does_not_fit_into_32_bits_is_said() {
    let warnings = |values: &[f32], preference: f64| {
        let host = Watcher::new(usize::MAX);
        let services = Services { host: &host, ..Services::none() };
        let params = Params { damping: 0.9, max_iter: 1000, ..with_preference(Preference::Value(preference)) };
        cluster(values, 1, params, &services).unwrap();
        host.warnings()
    };
    let near = [0.0, 1.0, 3.0, 4.0];
    assert!(warnings(&near, -1.0).is_empty());
    assert!(warnings(&near, -1e60)[0].starts_with("`preference` = -1e60 is beyond 32 bits beside these examples"));
    assert!(warnings(&near, -1e-60)[0].starts_with("`preference` = -1e-60 is beyond 32 bits"));
    let warned = warnings(&[0.0, 1e-10, 1e20, 2e20], -1e40);
    assert!(warned[0].starts_with("1 pairs of examples that differ are 0 apart in 32 bits"), "{warned:?}");
}

#[test]
fn a_preference_that_was_found_is_told() {
    let (values, _) = examples::blobs(3, 8, 2, 5);
    let told = |preference: Preference| {
        let found = found(&values, 2, Params { preference, ..Params::default() });
        found
            .resolved
            .iter()
            .map(|(name, value)| (name.clone(), value.parse::<f64>().unwrap()))
            .collect::<Vec<_>>()
    };
    let [(name, median)] = &told(Preference::default())[..] else { panic!() };
    assert!(name == "preference" && *median < 0.0, "{median}");
    let of = |preference: Preference| found(&values, 2, with_preference(preference)).assignments;
    assert_eq!(of(Preference::Value(*median)), of(Preference::default()));
    assert_eq!(told(Preference::Target(Target { k: 3 })).len(), 1);
    assert!(told(Preference::Value(-5.0)).is_empty());
}
