//! The clusterer that finds the preliminary clusters.

use super::*;

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
    assert_eq!(knowing.flags().unwrap(), Gcr::FLAGS.and(Flags::NEEDS_TRUTH));
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
    assert_eq!(given.flags().unwrap(), Gcr::FLAGS);
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
fn a_base_that_did_not_converge_shows() {
    let (values, sets) = unions();
    let base = json!({ "base": { "use": "given", "params": { "sets": sets, "wanders": true } } });
    assert!(!Run::new(&values, 3).on(&[], base).unwrap().diagnostics.converged);
}
