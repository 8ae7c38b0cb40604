//! What a run leaves behind.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use crate::common::{Folder, SMALL, repository};

fn types(table: &RecordBatch) -> Vec<(String, String)> {
    table.schema().fields().iter().map(|field| (field.name().clone(), short(field.data_type()))).collect()
}

/// A type as the documentation writes it; how Arrow lays out texts and list offsets does not matter to readers.
fn short(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::List(item) | DataType::LargeList(item) => format!("list<{}>", short(item.data_type())),
        DataType::FixedSizeList(item, size) => format!("fixed_size_list<{}>[{size}]", short(item.data_type())),
        DataType::UInt32 => "u32".to_owned(),
        DataType::UInt64 => "u64".to_owned(),
        DataType::Int64 => "i64".to_owned(),
        DataType::Float32 => "f32".to_owned(),
        DataType::Float64 => "f64".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        other => other.to_string(),
    }
}

fn expect(table: &RecordBatch, columns: &[(&str, &str)]) {
    let columns: Vec<(String, String)> = columns.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    assert_eq!(types(table), columns);
}

#[test]
fn the_tables_have_the_documented_columns_and_belong_together() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml", "--out", "out"], 0);

    let runs = folder.read_parquet("out/runs.parquet");
    expect(
        &runs,
        &[
            ("data", "string"),
            ("trial", "u32"),
            ("clusterer", "string"),
            ("params", "string"),
            ("n", "u32"),
            ("dim", "u32"),
            ("seed", "i64"),
            ("seconds", "f64"),
            ("peak_bytes", "u64"),
            ("iterations", "u64"),
            ("converged", "bool"),
            ("objective", "f64"),
            ("singletons", "u32"),
            ("compositions", "u32"),
            ("scalars", "string"),
            ("resolved", "string"),
            ("status", "string"),
            ("error", "string"),
        ],
    );
    assert_eq!(runs.num_rows(), 3);
    assert_eq!(runs["n"].as_primitive::<UInt32Type>().values(), &[45, 45, 45]);
    assert_eq!(runs["singletons"].as_primitive::<UInt32Type>().values(), &[6, 6, 6]);
    let seeds = runs["seed"].as_primitive::<Int64Type>();
    assert!(seeds.value(0) != seeds.value(1) && seeds.value(1) != seeds.value(2));
    assert!(runs["iterations"].as_primitive::<UInt64Type>().values().iter().all(|count| *count > 0));
    assert_eq!(runs["error"].null_count(), 3);

    let metrics = folder.read_parquet("out/metrics.parquet");
    expect(
        &metrics,
        &[("data", "string"), ("trial", "u32"), ("clusterer", "string"), ("metric", "string"), ("value", "f64")],
    );
    assert_eq!(metrics.num_rows(), 3 * 3, "cri, acri and ari in three trials");

    let summary = folder.read_parquet("out/summary.parquet");
    expect(
        &summary,
        &[
            ("data", "string"),
            ("clusterer", "string"),
            ("metric", "string"),
            ("trials", "u32"),
            ("mean", "f64"),
            ("se", "f64"),
            ("best", "bool"),
            ("p_vs_best", "f64"),
        ],
    );
    let values = metrics["value"].as_primitive::<Float64Type>().values();
    let mean = (values[0] + values[3] + values[6]) / 3.0;
    assert!((summary["mean"].as_primitive::<Float64Type>().value(0) - mean).abs() < 1e-15);

    let assignments = folder.read_parquet("out/assignments.parquet");
    expect(
        &assignments,
        &[
            ("data", "string"),
            ("trial", "u32"),
            ("clusterer", "string"),
            ("id", "i64"),
            ("clusters", "list<u32>"),
            ("composite", "bool"),
            ("distance", "f32"),
        ],
    );
    assert_eq!(assignments.num_rows(), 3 * 45);
    assert_eq!(assignments["distance"].null_count(), 0);

    let clusters = folder.read_parquet("out/clusters.parquet");
    expect(
        &clusters,
        &[
            ("data", "string"),
            ("trial", "u32"),
            ("clusterer", "string"),
            ("clusters", "list<u32>"),
            ("size", "u32"),
            ("exemplars", "list<u32>"),
            ("centroid", "fixed_size_list<f32>[4]"),
        ],
    );
    assert_eq!(clusters["size"].as_primitive::<UInt32Type>().values().iter().sum::<u32>(), 3 * 45);

    let traces = folder.read_parquet("out/traces.parquet");
    expect(
        &traces,
        &[
            ("data", "string"),
            ("trial", "u32"),
            ("clusterer", "string"),
            ("iteration", "u32"),
            ("objective", "f64"),
        ],
    );
    let last = traces["objective"].as_primitive::<Float64Type>().value(traces.num_rows() - 1);
    assert_eq!(last, runs["objective"].as_primitive::<Float64Type>().value(2), "a trace ends at the objective");
    assert_eq!(traces["iteration"].as_primitive::<UInt32Type>().value(0), 1);

    // k-means' objective is the sum of the distances, so the tables agree with one another.
    let distances = assignments["distance"].as_primitive::<Float32Type>().values();
    let objective = runs["objective"].as_primitive::<Float64Type>().value(0);
    let sum: f64 = distances[..45].iter().map(|distance| f64::from(*distance)).sum();
    assert!((sum - objective).abs() < 1e-4 * objective, "{sum} {objective}");

    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path("out/run.json")).unwrap()).unwrap();
    assert_eq!(record["pipeline"]["clusterer"][0]["params"]["k"], 6);
    assert_eq!((record["cells"].as_u64(), record["failed"].as_u64()), (Some(3), Some(0)));
    assert!(record["finished"].as_f64() >= record["started"].as_f64());
    let hash = record["libraries"][0]["blake3"].as_str().unwrap();
    assert_eq!(hash.len(), 64);
}

#[test]
fn a_grid_without_tune_is_a_sweep() {
    let folder = Folder::new();
    folder.write("sweep.toml", &SMALL.replace("k = 6, restarts = 3", "k = { grid = [2, 6] }, restarts = 3"));
    let (stdout, _) = folder.run(&["run", "sweep.toml", "--format", "csv"], 0);
    assert!(stdout.contains("made,KM k=2,cri,3,") && stdout.contains("made,KM k=6,cri,3,"), "{stdout}");
    assert_eq!(folder.read_parquet("results/small/runs.parquet").num_rows(), 6);
}

#[test]
fn a_grid_with_tune_is_settled_on_the_tuning_data_and_frozen() {
    let tuned = SMALL.replace("k = 6, restarts = 3", "k = { grid = [2, 6] }, restarts = 3")
        + r#"
[[data]]
name = "validation"
role = "tune"
loader = "synthetic"
params = { n = 45, dim = 4, k = 3, noise = 0.05, trials = 2 }

[tune]
data = "validation"
metric = "ari"
"#;
    let folder = Folder::new();
    folder.write("tuned.toml", &tuned);
    let (stdout, stderr) = folder.run(&["run", "tuned.toml", "--format", "csv"], 0);
    assert!(stderr.contains("tuned KM: k=6\n"), "{stderr}");
    assert!(stdout.contains("made,KM,ari,3,"), "{stdout}");
    assert!(!stdout.contains("validation"), "tuning data is not part of the results: {stdout}");
    let runs = folder.read_parquet("results/small/runs.parquet");
    let data: Vec<&str> = crate::common::texts(&runs, "data");
    assert_eq!(data.iter().filter(|name| **name == "validation").count(), 4, "two values of k in two trials");
    assert_eq!(data.iter().filter(|name| **name == "made").count(), 3);
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path("results/small/run.json")).unwrap()).unwrap();
    assert_eq!(record["tuned"]["KM"]["k"], 6);
}

#[test]
fn only_and_set_narrow_and_change_a_run() {
    let folder = Folder::new();
    let two = SMALL.to_owned() + "\n[[clusterer]]\nname = \"other\"\nuse = \"kmeans\"\nparams = { k = 2 }\n";
    folder.write("two.toml", &two);
    let args = ["run", "two.toml", "--only", "other", "--set", "clusterer.other.k=3", "--format", "csv"];
    let (stdout, _) = folder.run(&args, 0);
    assert!(stdout.contains(",other,") && !stdout.contains(",KM,"), "{stdout}");
    let runs = folder.read_parquet("results/small/runs.parquet");
    assert_eq!(runs["singletons"].as_primitive::<UInt32Type>().values(), &[3, 3, 3]);
}

#[test]
fn identifiers_and_truth_may_be_texts_in_several_files() {
    use std::sync::Arc;

    use arrow_array::StringArray;

    use crate::common::{embeddings, sets};
    let folder = Folder::new();
    let texts = |values: [&str; 2]| Arc::new(StringArray::from(values.to_vec())) as arrow_array::ArrayRef;
    for (file, ids, labels) in [("x1", ["a", "b"], ["cat", "dog"]), ("x2", ["c", "d"], ["dog", "cat"])] {
        folder.write_parquet(
            &format!("{file}.parquet"),
            vec![
                ("vector", embeddings(&[&[0.0, 1.0], &[5.0, 5.0]])),
                ("name", texts(ids)),
                ("animal", texts(labels)),
                ("unused", sets(&[&[1], &[2]])),
            ],
        );
    }
    let pipeline = r#"
[[data]]
name = "animals"
loader = "parquet"
path = "x*.parquet"
columns = { embedding = "vector", truth = "animal", id = "name" }

[[clusterer]]
use = "kmeans"
params = { k = 2 }

[[evaluator]]
use = "ari"
"#;
    folder.write("animals.toml", pipeline);
    folder.run(&["run", "animals.toml"], 0);
    let assignments = folder.read_parquet("results/animals/assignments.parquet");
    assert_eq!(crate::common::texts(&assignments, "id"), ["a", "b", "c", "d"]);
    let metrics = folder.read_parquet("results/animals/metrics.parquet");
    // The two files call opposite points by the same animal.
    assert_eq!(metrics["value"].as_primitive::<Float64Type>().value(0), -0.5);
}

/// The closed form: 1 - S·m²/(n(n-1)) with S ordered pairs of true sets of which one contains the other, m examples
/// of each.
#[test]
fn the_oracle_scores_its_closed_form_on_the_shipped_data() {
    let folder = Folder::new();
    for (file, n, degree, expected) in
        [("d2_n150", 150.0, 2, 0.9105), ("d2_n1500", 1500.0, 2, 0.9111), ("d3_n250", 250.0, 3, 0.8715)]
    {
        let path = repository().join(format!("data/omniglot/{file}_test.parquet"));
        let pipeline = format!(
            "name = \"{file}\"\n[[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"{}\"\n\
             columns = {{ embedding = \"embedding\", truth = \"labels\", trial = \"trial\" }}\n\
             [[clusterer]]\nuse = \"oracle\"\n[[evaluator]]\nuse = \"cri\"\n",
            path.display()
        );
        folder.write("oracle.toml", &pipeline);
        let (stdout, _) = folder.run(&["run", "oracle.toml", "--format", "json"], 0);
        let summary: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        let (pairs, sets) = if degree == 2 { (20.0, 15.0) } else { (20.0 + 30.0 + 30.0, 25.0) };
        let each: f64 = n / sets;
        let closed = 1.0 - pairs * each * each / (n * (n - 1.0));
        let cri = summary[0]["mean"].as_f64().unwrap();
        assert!((cri - closed).abs() < 1e-12, "{file}: {cri} {closed}");
        assert!((cri - expected).abs() < 5e-5, "{file}: {cri}");
    }
}

#[test]
fn examples_that_are_read_batch_by_batch_give_the_same_tables() {
    let folder = Folder::new();
    for stream in [false, true] {
        let pipeline = format!(
            "name = \"s\"\ndegree = 2\n[composer]\nuse = \"max\"\n[[data]]\nname = \"d\"\nloader = \"synthetic\"\n\
             params = {{ n = 300, dim = 8, k = 4, trials = 2 }}\n[[clusterer]]\nuse = \"ckm\"\n\
             params = {{ k = 4, restarts = 5, stream = {stream} }}\n[[evaluator]]\nuse = \"cri\"\n"
        );
        folder.write("s.toml", &pipeline);
        folder.run(&["run", "s.toml", "--out", &format!("out-{stream}")], 0);
    }
    for table in ["assignments", "clusters", "metrics", "traces"] {
        let read = |stream: bool| folder.read_parquet(&format!("out-{stream}/{table}.parquet"));
        assert!(read(true).num_rows() > 0);
        assert_eq!(read(true), read(false), "{table}");
    }
}

/// What is left out depends on the true sets, which a pass over the examples does not ask for.
#[test]
fn disturbed_data_is_the_same_batch_by_batch() {
    let folder = Folder::new();
    for stream in [false, true] {
        let pipeline = format!(
            "name = \"s\"\ndegree = 2\n[composer]\nuse = \"max\"\n[[data]]\nname = \"d\"\nloader = \"disturbed\"\n\
             params = {{ of = {{ use = \"synthetic\", params = {{ n = 300, dim = 8, k = 4, trials = 2, seed = 5 }} }}, \
             unions = 0.1, outliers = 0.1 }}\n[[clusterer]]\nuse = \"ckm\"\n\
             params = {{ k = 4, restarts = 5, stream = {stream} }}\n[[evaluator]]\nuse = \"cri\"\n"
        );
        folder.write("s.toml", &pipeline);
        folder.run(&["run", "s.toml", "--out", &format!("out-{stream}")], 0);
    }
    let read = |stream: bool| folder.read_parquet(&format!("out-{stream}/assignments.parquet"));
    assert_eq!(read(true), read(false));
    // 120 of 300 examples are of one singleton, and 13 unions are a tenth of what is left.
    assert_eq!(read(true).num_rows(), 2 * 133);
}

#[test]
fn cap_without_unions_is_affinity_propagation() {
    let folder = Folder::new();
    let data = repository().join("data/omniglot/d2_n150_test.parquet");
    for method in ["cap", "ap"] {
        let pipeline = format!(
            "name = \"one\"\ndegree = 1\nspace = {{ normalize = \"l2\" }}\n[[data]]\nname = \"d\"\n\
             loader = \"parquet\"\npath = '{}'\n\
             columns = {{ embedding = \"embedding\", trial = \"trial\", id = \"id\" }}\n\
             [[clusterer]]\nname = \"method\"\nuse = \"{method}\"\nparams = {{ preference = -1.0, damping = 0.65 }}\n",
            data.display()
        );
        folder.write("one.toml", &pipeline);
        folder.run(&["run", "one.toml", "--out", method], 0);
    }
    // Neither do others need a composer then.
    let others = std::fs::read_to_string(folder.path("one.toml")).unwrap().replace("-1.0, damping = 0.65", "-1.0");
    let others = others
        + "[[clusterer]]\nuse = \"ckm\"\nparams = { k = 5, restarts = 2 }\n[[clusterer]]\nuse = \"gcr\"\n\
                           params = { base = { use = \"ac\", params = { k = 5 } } }\n";
    folder.write("others.toml", &others);
    folder.run(&["run", "others.toml", "--out", "others"], 0);
    // Noise against ties is not the same, so a trial may settle elsewhere, on sums that are as good.
    let read = |method: &str, table: &str| folder.read_parquet(&format!("{method}/{table}.parquet"));
    let (cap, ap) = (read("cap", "assignments"), read("ap", "assignments"));
    assert_eq!((cap.num_rows(), ap.num_rows()), (1500, 1500));
    let equal = (0..10).filter(|trial| cap.slice(150 * trial, 150) == ap.slice(150 * trial, 150)).count();
    assert!(equal >= 9, "{equal} of 10 trials");
    let objectives = |method: &str| read(method, "runs").column_by_name("objective").unwrap().clone();
    let (cap, ap) = (objectives("cap"), objectives("ap"));
    let pairs = cap.as_primitive::<Float64Type>().values().iter().zip(ap.as_primitive::<Float64Type>().values());
    for (cap, ap) in pairs {
        assert!((cap - ap).abs() < 1e-3 * ap.abs(), "{cap} {ap}");
    }
}
