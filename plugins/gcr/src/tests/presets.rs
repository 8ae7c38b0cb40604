//! What the paper and the authors do.

use super::*;

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
