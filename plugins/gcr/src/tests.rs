//! The whole clusterer, with bases and composers across the boundary.

use compflow_api::{
    Clusterer, Clustering, Code, Column, Component, Distance, Embeddings, Error, Flags, ForeignClusterer, Kind,
    Normalize, Result, Services, Sets, Shape, Space, Task,
};
use compflow_kernels::testing::examples;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::testing::{self, Shop};
use crate::{Auto, Gcr, Params, Threshold};

/// Runs `gcr` with these parameters on rows of `dim` numbers that the base gives these sets.
struct Run<'a> {
    values: &'a [f32],
    dim: usize,
    degree: usize,
    space: Space,
    composer: &'a str,
    seed: u64,
}

impl<'a> Run<'a> {
    fn new(values: &'a [f32], dim: usize) -> Self {
        Self { values, dim, degree: 2, space: Space::default(), composer: "max", seed: 0 }
    }

    fn on(&self, sets: &[Vec<u32>], mut params: Value) -> Result<Clustering> {
        if params.get("base").is_none() {
            params["base"] = json!({ "use": "given", "params": { "sets": sets } });
        }
        let (shop, composer) = (Shop::default(), testing::composer(self.composer));
        let services = Services { host: &shop, threads: 2, seed: self.seed, ..Services::none() };
        let gcr = services.clusterer("gcr", &params.to_string())?;
        let task = Task {
            degree: self.degree,
            space: self.space,
            composer: Some(&composer),
            ..Task::new(Embeddings::new(self.values, self.dim))
        };
        gcr.cluster(&task, &services)
    }
}

fn singletons(labels: &[u32]) -> Vec<Vec<u32>> {
    labels.iter().map(|&label| vec![label]).collect()
}

/// The column that keeps what the base found.
fn base(found: &Clustering) -> &Sets {
    match &found.extra[0] {
        (name, Column::Sets(sets)) if name == "base" => sets,
        other => panic!("{other:?}"),
    }
}

fn refused(params: Value) -> String {
    let sets = singletons(&[0, 1, 2, 3]);
    Run::new(&[0.0, 1.0, 2.0, 4.0], 1).on(&sets, params).unwrap_err().to_string()
}

/// Three things as unit vectors, all unions of two, twice each; the unions are predicted but for a small error.
fn unions() -> (Vec<f32>, Vec<Vec<u32>>) {
    let rows: [([f32; 3], u32); 12] = [
        ([1.0, 1.0, 0.1], 7),
        ([1.0, 0.0, 0.0], 1),
        ([1.0, 0.0, 0.0], 1),
        ([0.0, 1.0, 0.0], 2),
        ([0.0, 1.0, 0.0], 2),
        ([1.0, 1.0, 0.1], 7),
        ([0.0, 0.0, 1.0], 3),
        ([0.2, 1.0, 1.0], 9),
        ([0.2, 1.0, 1.0], 9),
        ([1.0, 0.3, 1.0], 8),
        ([1.0, 0.3, 1.0], 8),
        ([0.0, 0.0, 1.0], 3),
    ];
    (rows.iter().flat_map(|row| row.0).collect(), rows.iter().map(|row| vec![row.1]).collect())
}

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
fn the_authors_take_squared_distances_between_normalised_vectors() {
    // The directions of (9, 1) and the composed (10, 1) are 0.0112 apart, the vectors 1.
    let values = [10.0, 0.0, 0.0, 1.0, 9.0, 1.0];
    let params = |preset: &str| json!({ "threshold": 2e-4, "preset": preset });
    let run = |preset| Run::new(&values, 2).on(&singletons(&[0, 1, 2]), params(preset)).unwrap();
    assert_eq!(&run("authors-code").assignments[2], [0, 1]);
    assert_eq!(
        run("authors-code").centroids[4..],
        [10.0, 1.0],
        "in the pipeline's space, which does not normalise"
    );
    assert_eq!(&run("paper").assignments[2], [2]);
}

#[test]
fn sets_of_the_base_are_preliminary_clusters() {
    let (values, sets) = unions();
    // As a base would name them that already found unions, but the wrong ones.
    let names = |label: u32| match label {
        7 => vec![1, 3],
        8 => vec![2, 3],
        9 => vec![1, 2],
        label => vec![label],
    };
    let named: Vec<Vec<u32>> = sets.iter().map(|set| names(set[0])).collect();
    let (found, plain) = (Run::new(&values, 3).on(&named, json!({})), Run::new(&values, 3).on(&sets, json!({})));
    let (found, plain) = (found.unwrap(), plain.unwrap());
    assert_eq!(found.assignments, plain.assignments);
    assert_eq!(*base(&found), Sets::from_iter(&named));
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

/// By distance: 3 = {0, 1}, then 4 = {2, 3} although 3 is a union, then 5 = {0, 2}.
fn conflict() -> (Vec<f32>, Vec<Vec<u32>>) {
    let rows =
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.01], [1.0, 1.0, 0.98], [0.7, 0.0, 1.0]];
    (rows.concat(), singletons(&[0, 1, 2, 3, 4, 5]))
}

#[test]
fn the_presets_stop_at_a_conflict_and_the_default_finds_its_way_around() {
    let (values, sets) = conflict();
    let run = Run { degree: 3, ..Run::new(&values, 3) };
    let unions = |params: Value| -> Vec<Vec<u32>> {
        let found = run.on(&sets, params).unwrap();
        found.assignments.iter().filter(|set| set.len() > 1).map(<[u32]>::to_vec).collect()
    };
    let stopped = unions(json!({ "threshold": 0.1, "on_conflict": "stop" }));
    for preset in ["paper", "authors-code"] {
        assert_eq!(unions(json!({ "threshold": 0.1, "preset": preset })), stopped, "{preset}");
    }
    let skipped = unions(json!({ "threshold": 0.1, "method": "greedy" }));
    assert_eq!(unions(json!({ "threshold": 0.1, "on_conflict": "skip" })), skipped, "the listing unless given");
    let searched = unions(json!({ "threshold": 0.1 }));
    assert_eq!(stopped, [[0, 1]]);
    assert_eq!(skipped, [[0, 1], [0, 2]]);
    assert_eq!(searched, [vec![0, 1], vec![0, 1, 2], vec![0, 2]]);
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
    let (mut before, mut after) = (0, 0);
    for seed in 0..60 {
        let (k, dim) = ([5, 8, 12, 17][seed as usize % 4], [2, 3, 5][seed as usize % 3]);
        let values = normal(seed, k, dim);
        let sets = singletons(&(0..k as u32).collect::<Vec<u32>>());
        let run = Run { seed, ..Run::new(&values, dim) };
        let found = run.on(&sets, json!({})).unwrap();
        // It is looked at only where the distances part.
        before += usize::from(found.scalars.iter().any(|(name, _)| name == "chance_without_unions"));
        after += usize::from(found.clusters.iter().any(|set| set.len() > 1));
    }
    assert!(before > 45, "{before} of 60 would have unions");
    assert!(after <= 6, "{after} of 60 have unions, where 3 are to be expected");
}

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
fn too_many_maps_are_refused_with_their_number() {
    let values = examples::uniform(15, 3, 1);
    let sets = singletons(&(0..15).collect::<Vec<u32>>());
    let refused = Run::new(&values, 3).on(&sets, json!({ "method": "exhaustive" })).unwrap_err().to_string();
    assert_eq!(
        refused,
        "`method` = \"exhaustive\" would choose from 107770296705436 reassignments of 15 clusters with `degree` = 2, \
         over the 1000000000 of `max_maps`; set it to \"greedy\", or let the base find fewer clusters"
    );
    let values = examples::uniform(80, 3, 1);
    let sets = singletons(&(0..80).collect::<Vec<u32>>());
    let refused = Run::new(&values, 3).on(&sets, json!({ "method": "exhaustive" })).unwrap_err().to_string();
    assert!(refused.contains("from more than 340282366920938463463374607431768211455 reassign"), "{refused}");
}

#[test]
fn problems_say_which_parameter_they_are_about() {
    let problems = |params: Value| -> Vec<(Code, Option<String>)> {
        let error = Run::new(&[0.0, 1.0, 2.0, 4.0], 1).on(&singletons(&[0, 1, 2, 3]), params).unwrap_err();
        error.problems().iter().map(|problem| (problem.code, problem.parameter.clone())).collect()
    };
    let about = |parameter: &str| (Code::Parameter, Some(parameter.to_owned()));
    assert_eq!(
        problems(json!({ "base": { "use": "given", "params": { "k": 0, "kk": 1 } } })),
        [about("base.params.k"), about("base.params.kk")]
    );
    assert_eq!(problems(json!({ "base": { "use": "givn" } })), [about("base")]);
    assert_eq!(problems(json!({ "degree": 3 })), [about("degree")]);
}

#[test]
fn a_base_that_fails_is_named_beside_gcr() {
    let base = json!({ "base": { "use": "given", "params": { "error": "not today" } } });
    assert_eq!(refused(base), "`gcr` got no clusters from its base `given`: not today");
    let through = json!({ "base": "given", "with": r#"{"error": "not today"}"# });
    let nested = json!({ "base": { "use": "through", "params": through } });
    assert_eq!(refused(nested), "`gcr` got no clusters from its base `through`: not today");
}

#[test]
fn what_a_base_says_about_its_parameters_is_about_ours() {
    let base = |params: Value| json!({ "base": { "use": "given", "params": params } });
    assert_eq!(
        refused(base(json!({ "k": 0, "kk": 1 }))).lines().collect::<Vec<_>>(),
        [
            "`base.params.k` of `given` must be a whole number at least 1, found 0",
            "`base.params.kk` of `given` is not a parameter; did you mean `k`?",
        ]
    );
    assert_eq!(refused(json!({ "base": { "use": "givn" } })), "`base` `givn`: there is no clusterer named `givn`");
    assert_eq!(refused(json!({ "base": {} })), "`base` `ac`: there is no clusterer named `ac`", "the default");
}

#[test]
fn what_the_base_needs_is_needed_and_given() {
    let (shop, composer) = (Shop::default(), testing::max());
    let services = Services { host: &shop, ..Services::none() };
    let make = |base: Value| services.clusterer("gcr", &json!({ "base": base }).to_string()).unwrap();
    let knowing = make(json!({ "use": "knowing" }));
    assert_eq!(knowing.flags().unwrap(), Flags::NEEDS_COMPOSER.and(Flags::NEEDS_TRUTH));
    let (values, sets) = unions();
    let truth = Sets::from_iter(&sets);
    let task = Task {
        degree: 2,
        composer: Some(&composer),
        truth: Some(&truth),
        ..Task::new(Embeddings::new(&values, 3))
    };
    let found = knowing.cluster(&task, &services).unwrap();
    assert_eq!(found.assignments, Run::new(&values, 3).on(&sets, json!({})).unwrap().assignments);

    let given = make(json!({ "use": "given", "params": { "columns": ["margin"] } }));
    assert_eq!(given.flags().unwrap(), Flags::NEEDS_COMPOSER);
    assert_eq!(given.columns().unwrap(), ["margin"]);
}

#[test]
fn what_the_base_tells_is_kept_beside_ours() {
    let (values, sets) = unions();
    let columns = ["margin", "base", "base_base"];
    let params = json!({ "base": { "use": "given", "params": { "sets": sets, "columns": columns } } });
    let found = Run::new(&values, 3).on(&sets, params.clone()).unwrap();
    let names: Vec<&str> = found.extra.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["base", "margin", "base_base_base", "base_base"]);
    assert_eq!(found.extra[1].1, Column::Floats((0..12).map(f64::from).collect()));

    // The squared distances of compositions are 0.01, 0.04 and 0.09; the singletons are at 1 and a little less.
    let names: Vec<&str> = found.scalars.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "preliminary_clusters",
            "compositions",
            "merged_clusters",
            "farthest_composition",
            "nearest_beyond_threshold",
            "chance_without_unions",
            "base_ssd"
        ]
    );
    let [k, composed, merged, farthest, beyond, chance, ssd] = [0, 1, 2, 3, 4, 5, 6].map(|at| found.scalars[at].1);
    assert_eq!((k, composed, merged, chance, ssd), (6.0, 3.0, 0.0, 0.025, 2.5));
    let [(base_k, six), (parameter, threshold)] = &found.resolved[..] else { panic!("{:?}", found.resolved) };
    assert_eq!((base_k.as_str(), six.as_str(), parameter.as_str()), ("base.params.k", "6", "threshold"));
    let threshold: f64 = threshold.parse().unwrap();
    assert!((farthest - 0.09).abs() < 1e-6 && farthest < threshold && threshold < beyond, "{threshold} {beyond}");

    let mut given = params;
    given["threshold"] = json!(threshold);
    let again = Run::new(&values, 3).on(&sets, given).unwrap();
    assert_eq!(again.assignments, found.assignments);
    assert_eq!(again.resolved.len(), 1, "a threshold that was given was not found");
}

#[test]
fn what_the_base_puts_nowhere_stays_there() {
    let (mut values, mut sets) = unions();
    let plain = Run::new(&values, 3).on(&sets, json!({})).unwrap();
    values.extend([50.0, 0.0, 0.0]);
    sets.push(vec![]);
    let found = Run::new(&values, 3).on(&sets, json!({})).unwrap();
    assert_eq!((&found.clusters, &found.centroids), (&plain.clusters, &plain.centroids));
    assert!(found.assignments[12].is_empty() && base(&found)[12].is_empty());
    assert!((0..12).all(|row| found.assignments[row] == plain.assignments[row]));
    assert_eq!(found.diagnostics, plain.diagnostics);
}

#[test]
fn gcr_is_not_its_own_base_however_deep() {
    let error = "`gcr` cannot be the base of `gcr`, nor can a clusterer that uses it";
    assert_eq!(refused(json!({ "base": { "use": "gcr" } })), format!("`base` `gcr`: {error}"));
    let through = |base: &str, with: Value| json!({ "base": base, "with": with.to_string() });
    let nested = through("gcr", json!({ "base": { "use": "given" } }));
    assert_eq!(
        refused(json!({ "base": { "use": "through", "params": nested } })),
        format!("`base.params.base` of `through` fails: {error}")
    );
    let deeper = through("through", nested);
    let text = refused(json!({ "base": { "use": "through", "params": deeper } }));
    assert!(text.starts_with("`base.params.base` of `through` fails: ") && text.ends_with(error), "{text}");
    // One after the other is no recursion, also after a refusal.
    let (shop, params) = (Shop::default(), json!({ "base": { "use": "given" } }).to_string());
    let services = Services { host: &shop, ..Services::none() };
    let first = services.clusterer("gcr", &params).unwrap();
    assert!(services.clusterer("gcr", &params).is_ok());
    drop(first);
}

#[test]
fn a_clusterer_may_come_through_another() {
    let (values, sets) = unions();
    let given = json!({ "sets": sets }).to_string();
    let nested = json!({ "base": { "use": "through", "params": { "base": "given", "with": given } } });
    let run = Run::new(&values, 3);
    assert_eq!(run.on(&[], nested).unwrap(), run.on(&sets, json!({})).unwrap());
}

#[test]
fn bad_parameters_are_refused() {
    let given = json!({ "use": "given" });
    assert_eq!(
        refused(json!({ "base": given, "threshold": -0.1 })),
        "`threshold` must be a number at least 0 or \"auto\", found -0.1"
    );
    assert_eq!(
        refused(json!({ "base": given, "threshold": "otto" })),
        "`threshold` must be a number at least 0 or \"auto\", found \"otto\""
    );
    assert_eq!(
        refused(json!({ "base": given, "degree": 0 })),
        "`degree` must be a whole number at least 1, found 0"
    );
    for value in [f64::NAN, f64::INFINITY, -1.0] {
        let params = Params { threshold: Threshold::Value(value), ..Params::default() };
        let error = Gcr::new(params, &Services::none()).unwrap_err().to_string();
        assert_eq!(error, format!("`threshold` must be a finite number at least 0 or \"auto\", found {value}"));
    }
    let read: Threshold = serde_json::from_value(json!("auto")).unwrap();
    assert_eq!(read, Threshold::Auto(Auto::Auto));
}

#[test]
fn a_degree_beyond_the_pipelines_is_refused() {
    let run = Run::new(&[0.0, 1.0, 2.0, 4.0], 1);
    assert_eq!(
        run.on(&singletons(&[0, 1, 2, 0]), json!({ "degree": 3 })).unwrap_err().to_string(),
        "`degree` = 3 is more than the pipeline's, 2"
    );
}

#[test]
fn too_few_clusters_are_returned_with_a_warning() {
    let composer = testing::max();
    let values = [0.0, 1.0, 2.0, 4.0];
    let run = |sets: &[Vec<u32>], degree: usize| {
        let shop = Shop::default();
        let services = Services { host: &shop, ..Services::none() };
        // A threshold that would admit everything.
        let base = json!({ "use": "given", "params": { "sets": sets } });
        let params = json!({ "base": base, "threshold": 99, "merge": 0 });
        let gcr = services.clusterer("gcr", &params.to_string()).unwrap();
        let task = Task { degree, composer: Some(&composer), ..Task::new(Embeddings::new(&values, 1)) };
        (gcr.cluster(&task, &services).unwrap(), shop.lines.into_inner().unwrap().swap_remove(0))
    };
    for (sets, k) in [(singletons(&[0, 1, 1, 0]), 2), (singletons(&[5; 4]), 1), (vec![vec![]; 4], 0)] {
        let (found, warning) = run(&sets, 3);
        assert_eq!(
            found.assignments,
            Sets::from_iter(
                &sets.iter().map(|set| set.iter().map(|at| at % 5).collect()).collect::<Vec<Vec<u32>>>()
            )
        );
        assert_eq!(
            warning,
            format!(
                "the base `given` found {k} clusters, and a composition takes one to be composed of two others: its \
                 clustering is the result; let it find more"
            )
        );
    }
    // Three clusters have compositions of two, whatever the degree.
    let three = singletons(&[0, 1, 2, 0]);
    let (found, warning) = run(&three, 7);
    assert_eq!(warning, "the base `given` found 3 clusters, so compositions have at most 2 members, not 7");
    assert_eq!(found, run(&three, 2).0);
    assert_eq!(found.clusters.iter().filter(|set| set.len() == 2).count(), 1);
}

#[test]
fn without_a_composer_it_says_so() {
    let shop = Shop::default();
    let services = Services { host: &shop, ..Services::none() };
    let gcr = services.clusterer("gcr", r#"{"base": {"use": "given"}}"#).unwrap();
    let task = Task { degree: 2, ..Task::new(Embeddings::new(&[1.0], 1)) };
    let error = gcr.cluster(&task, &services).unwrap_err();
    assert_eq!(error.to_string(), "needs a composer, and the pipeline has no [composer]");
}

#[test]
fn a_base_that_did_not_converge_shows() {
    let (values, sets) = unions();
    let base = json!({ "base": { "use": "given", "params": { "sets": sets, "wanders": true } } });
    assert!(!Run::new(&values, 3).on(&[], base).unwrap().diagnostics.converged);
}

#[test]
fn the_presets_fill_in_the_base_and_the_threshold() {
    /// Notes what is asked for, and has nothing.
    struct Asked(std::sync::Mutex<Vec<String>>);
    impl compflow_api::Host for Asked {
        fn create(&self, _kind: Kind, name: &str, params: &str) -> Result<compflow_api::Instance> {
            self.0.lock().unwrap().push(format!("{name} {params}"));
            Err(Error::new("no"))
        }
    }
    let asked = Asked(std::sync::Mutex::default());
    let services = Services { host: &asked, ..Services::none() };
    let component = compflow_api::Registration::clusterer::<Gcr>().component().unwrap();
    for params in [r#"{"preset": "paper"}"#, r#"{"preset": "paper", "base": {"use": "kmeans"}}"#, "{}"] {
        assert!(component.create(params, &services).is_err());
    }
    assert_eq!(*asked.0.lock().unwrap(), [r#"ac {"k":17}"#, "kmeans {}", "ac {}"]);
}

#[test]
fn memory_is_that_of_the_base_and_more_and_too_many_compositions_are_refused() {
    let shop = Shop::default();
    let services = Services { host: &shop, ..Services::none() };
    let gcr = services.clusterer("gcr", r#"{"base": {"use": "given"}}"#).unwrap();
    assert!(gcr.memory(Shape { rows: 1000, dim: 8, degree: 2 }, &Services::none()).unwrap() > 1 << 40);

    let values = examples::uniform(400, 2, 3);
    let sets: Vec<u32> = (0..400).collect();
    let params = json!({ "base": { "use": "given", "params": { "sets": singletons(&sets) } } }).to_string();
    let gcr: ForeignClusterer = services.clusterer("gcr", &params).unwrap();
    let composer = testing::max();
    let task = Task { degree: 3, composer: Some(&composer), ..Task::new(Embeddings::new(&values, 2)) };
    let error = gcr.cluster(&task, &Services { memory: 1 << 20, ..services }).unwrap_err().to_string();
    assert!(error.ends_with("lower `degree`, or let the base find fewer clusters"), "{error}");
    let task = Task { degree: 30, ..task };
    let error = gcr.cluster(&task, &services).unwrap_err().to_string();
    assert_eq!(error, "400 clusters have too many compositions of up to 30");
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
