//! What is refused, and what is warned of.

use compflow_api::plural;

use super::*;

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
                "the base `given` found {}, and a composition takes one to be composed of two others: its \
                 clustering is the result; let it find more",
                plural(k, "cluster")
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
