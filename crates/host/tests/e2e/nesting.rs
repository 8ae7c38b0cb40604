//! A clusterer on top of another: `gcr` with bases of its own and of other libraries.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;

use crate::common::{Folder, SMALL, texts};

/// The small pipeline with `gcr` on top of a base.
fn with_base(folder: &Folder, base: &str) {
    folder.add_faulty();
    let gcr = format!(
        "\n[composer]\nuse = \"max\"\n[[clusterer]]\nname = \"GCR\"\nuse = \"gcr\"\nparams = {{ base = {base} }}\n"
    );
    folder.write("p.toml", &(SMALL.to_owned() + &gcr));
}

fn run(folder: &Folder, out: &str, code: i32) -> String {
    let args = ["--plugins", "faulty", "run", "p.toml", "--out", out, "--only", "GCR"];
    folder.run(&args, code).1
}

/// What every example was assigned to, and what the base assigned it to.
fn assignments(folder: &Folder, out: &str) -> Vec<[Vec<u32>; 2]> {
    let table = folder.read_parquet(&format!("{out}/assignments.parquet"));
    let column = |name: &str| -> Vec<Vec<u32>> {
        let column = table.column_by_name(name).unwrap();
        let sets: Vec<arrow_array::ArrayRef> = match column.data_type() {
            arrow_schema::DataType::LargeList(_) => column.as_list::<i64>().iter().map(Option::unwrap).collect(),
            _ => column.as_list::<i32>().iter().map(Option::unwrap).collect(),
        };
        sets.iter().map(|set| set.as_primitive::<UInt32Type>().values().to_vec()).collect()
    };
    column("clusters").into_iter().zip(column("base")).map(|(clusters, base)| [clusters, base]).collect()
}

#[test]
fn a_base_may_come_from_another_library_and_through_a_third() {
    let folder = Folder::new();
    with_base(&folder, "{ use = \"kmeans\", params = { k = 6 } }");
    run(&folder, "direct", 0);
    with_base(&folder, "{ use = \"nested\", params = { base = \"kmeans\", with = '{\"k\": 6}' } }");
    run(&folder, "through", 0);
    let found = assignments(&folder, "direct");
    assert_eq!(found.len(), 3 * 45);
    assert_eq!(assignments(&folder, "through"), found);
    assert!(found.iter().any(|[clusters, _]| clusters.len() == 2), "some are unions");
    for [clusters, base] in &found {
        assert_eq!(base.len(), 1);
        assert!(clusters.len() == 2 || clusters == base, "what is left has the same number before and after");
    }
}

#[test]
fn a_base_that_needs_the_truth_is_given_it() {
    let folder = Folder::new();
    with_base(&folder, "{ use = \"oracle\" }");
    run(&folder, "out", 0);
    let runs = folder.read_parquet("out/runs.parquet");
    assert_eq!(texts(&runs, "status"), ["ok"; 3]);
    let record = std::fs::read_to_string(folder.path("out/run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["oracles"], serde_json::json!(["GCR"]), "and does not compete then");
}

#[test]
fn a_base_that_fails_is_named_beside_gcr() {
    let folder = Folder::new();
    with_base(&folder, "{ use = \"faulty\", params = { fault = \"error\" } }");
    run(&folder, "out", 1);
    let runs = folder.read_parquet("out/runs.parquet");
    assert_eq!(texts(&runs, "error"), ["`gcr` got no clusters from its base `faulty`: not today"; 3]);

    with_base(&folder, "{ use = \"faulty\", params = { fault = \"panic\" } }");
    run(&folder, "out", 1);
    let runs = folder.read_parquet("out/runs.parquet");
    for error in texts(&runs, "error") {
        assert!(error.starts_with("`gcr` got no clusters from its base `faulty`: panicked at "), "{error}");
    }

    with_base(&folder, "{ use = \"faulty\", params = { fault = \"panic_in_create\" } }");
    let stderr = run(&folder, "out", 2);
    assert!(stderr.contains("error: gcr: `base` `faulty`: panicked at "), "{stderr}");
}

#[test]
fn bases_that_cannot_be_are_refused_before_anything_runs() {
    let folder = Folder::new();
    for (base, text) in [
        ("{ use = \"gcr\" }", "gcr: `base` `gcr`: `gcr` cannot be the base of `gcr`"),
        (
            "{ use = \"nested\", params = { base = \"gcr\", with = '{\"base\": {\"params\": {\"k\": 5}}}' } }",
            "gcr: `base.params.base` of `nested` cannot be made: `gcr` cannot be the base of `gcr`",
        ),
        ("{ use = \"kmean\" }", "gcr: `base` `kmean`: there is no clusterer named `kmean`"),
        ("{ params = { k = 0 } }", "gcr: `base.params.k` of `ac` must be a whole number at least 1, found 0"),
        ("{}", "gcr: `base.params.k` of `ac` or `distance_threshold` must be given, found neither"),
    ] {
        with_base(&folder, base);
        let stderr = run(&folder, "out", 2);
        assert!(stderr.contains(text), "{base}: {stderr}");
    }
}
