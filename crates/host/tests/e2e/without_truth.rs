//! What can be had without true sets, and what a clustering says beyond its sets.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Float64Array, StringArray};

use crate::common::{Folder, embeddings, texts};

/// Three blobs of ten points on a line, well apart.
fn blobs() -> Vec<Vec<f32>> {
    (0..30).map(|at| vec![10.0 * (at / 10) as f32 + 0.1 * (at % 10) as f32, 1.0]).collect()
}

fn write_blobs(folder: &Folder, name: &str, mut columns: Vec<(&str, ArrayRef)>) {
    let rows = blobs();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    columns.push(("embedding", embeddings(&rows)));
    folder.write_parquet(name, columns);
}

const DATA: &str = "degree = 1\n[[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"d.parquet\"\n";

#[test]
fn grids_can_be_settled_without_a_truth() {
    let folder = Folder::new();
    write_blobs(&folder, "d.parquet", Vec::new());
    folder.write(
        "p.toml",
        &format!(
            "{DATA}\n[[data]]\nname = \"v\"\nloader = \"parquet\"\npath = \"d.parquet\"\nrole = \"tune\"\n\n\
             [[clusterer]]\nname = \"KM\"\nuse = \"kmeans\"\nparams = {{ k = {{ grid = [2, 3, 4, 5] }}, restarts = 5 }}\n\n\
             [[evaluator]]\nuse = \"silhouette\"\n\n[[evaluator]]\nuse = \"ssd\"\n\n\
             [tune]\ndata = \"v\"\nmetric = \"silhouette\"\n"
        ),
    );
    let (stdout, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    assert!(stderr.contains("tuned KM: k=3"), "{stderr}");
    assert!(stdout.contains("silhouette") && stdout.contains("ssd"), "{stdout}");
    // The mean squared distance of 0, 0.1, …, 0.9 to their mean is 0.0825.
    let (json, _) = folder.run(&["run", "p.toml", "--out", "out", "--format", "json"], 0);
    let entries: serde_json::Value = serde_json::from_str(&json).unwrap();
    let of = |metric: &str| {
        let entries = entries.as_array().unwrap();
        entries.iter().find(|entry| entry["metric"] == metric).unwrap()["mean"].as_f64().unwrap()
    };
    assert!((of("ssd") - 30.0 * 0.0825).abs() < 1e-3, "{json}");
    assert!(of("silhouette") > 0.9, "{json}");
}

#[test]
fn an_evaluator_that_needs_the_truth_says_so_and_one_that_does_not_runs() {
    let folder = Folder::new();
    write_blobs(&folder, "d.parquet", Vec::new());
    let clusterer = "\n[[clusterer]]\nuse = \"kmeans\"\nparams = { k = 3 }\n";
    folder.write("p.toml", &format!("{DATA}{clusterer}\n[[evaluator]]\nuse = \"cri\"\n"));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 2);
    assert!(stderr.contains("data `d` has no true sets, and evaluator `cri` needs them"), "{stderr}");
    folder.write("p.toml", &format!("{DATA}{clusterer}\n[[evaluator]]\nuse = \"silhouette\"\n"));
    let (stdout, _) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    assert!(stdout.contains("silhouette") && !stdout.contains("silhouette %"), "{stdout}");
    assert!(stdout.contains("d: what was found in 30 examples"), "{stdout}");
    folder.run(&["report", "out"], 0);
}

#[test]
fn without_scores_the_clusters_are_printed() {
    let folder = Folder::new();
    write_blobs(&folder, "d.parquet", Vec::new());
    let clusterer = "\n[[clusterer]]\nname = \"KM\"\nuse = \"kmeans\"\nparams = { k = 3, restarts = 5 }\n\n\
                     [[clusterer]]\nname = \"AP\"\nuse = \"ap\"\nparams = { preference = { k = 3 } }\n";
    folder.write("p.toml", &format!("{DATA}{clusterer}"));
    let printed =
        |format: &str| folder.run(&["run", "p.toml", "--out", "out", "--quiet", "--format", format], 0).0;
    let text = printed("table").replace('\u{a0}', " ");
    assert!(text.contains("0 (10, 33 %), 1 (10, 33 %), 2 (10, 33 %)"), "{text}");
    assert!(text.contains("\nsettled: AP: preference = -"), "a preference that was searched for: {text}");
    let json: serde_json::Value = serde_json::from_str(&printed("json")).unwrap();
    let cell = &json[0];
    assert_eq!((&cell["clusterer"], &cell["singletons"], &cell["unions"]), (&"KM".into(), &3.into(), &0.into()));
    assert_eq!(cell["clusters"][2], serde_json::json!({ "members": ["2"], "size": 10 }));
    assert!((cell["objective"].as_f64().unwrap() - 30.0 * 0.0825).abs() < 1e-3, "{cell}");
    assert!(printed("csv").lines().nth(1).unwrap().starts_with("d,0,KM,30,3,0,0,10,10,10,2.47"));
    let markdown = printed("md");
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| KM ")).count(), 2, "{markdown}");
}

#[test]
fn parameters_of_nested_components_are_in_the_tables_with_their_defaults() {
    let folder = Folder::new();
    write_blobs(&folder, "d.parquet", Vec::new());
    let clusterer = "\n[[clusterer]]\nuse = \"gcr\"\nparams = { base = { use = \"ac\", params = { k = 3 } } }\n\
                     [composer]\nuse = \"max\"\n";
    folder.write("p.toml", &format!("{DATA}{clusterer}").replace("degree = 1", "degree = 2"));
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let runs = folder.read_parquet("out/runs.parquet");
    let params: serde_json::Value = serde_json::from_str(texts(&runs, "params")[0]).unwrap();
    assert_eq!(params["base"]["params"]["k"], 3);
    assert!(params["base"]["params"]["linkage"].is_string(), "a default of the nested component: {params}");
}

#[test]
fn the_empty_set_is_a_truth_like_any_other() {
    let folder = Folder::new();
    let mut truth = ListBuilder::new(UInt32Builder::new());
    for at in 0..30u32 {
        // The last blob is none of them.
        (at < 20).then(|| truth.values().append_value(at / 10));
        truth.append(true);
    }
    write_blobs(&folder, "d.parquet", vec![("labels", Arc::new(truth.finish()))]);
    let mut pipeline = format!("{DATA}columns = {{ embedding = \"embedding\", truth = \"labels\" }}\n");
    pipeline += "\n[[clusterer]]\nname = \"KM\"\nuse = \"kmeans\"\nparams = { k = 3, restarts = 5 }\n";
    for name in ["cri", "ari", "nmi", "ami", "bcubed", "set_f1", "omega"] {
        pipeline += &format!("\n[[evaluator]]\nuse = \"{name}\"\n");
    }
    folder.write("p.toml", &pipeline);
    let (json, _) = folder.run(&["run", "p.toml", "--out", "out", "--format", "json"], 0);
    let entries: serde_json::Value = serde_json::from_str(&json).unwrap();
    for entry in entries.as_array().unwrap() {
        assert!(entry["mean"].as_f64().is_some_and(f64::is_finite), "{entry}");
        if entry["metric"] == "ari" {
            assert_eq!(entry["mean"], 1.0, "the partition is the true one");
        }
    }
    folder.run(&["report", "out"], 0);
}

#[test]
fn memberships_become_a_table_where_a_pipeline_asks_for_them() {
    let folder = Folder::new();
    write_blobs(&folder, "d.parquet", Vec::new());
    let clusterers = "\n[[clusterer]]\nuse = \"fcm\"\nparams = { k = 3 }\n\n[[clusterer]]\nuse = \"kmeans\"\nparams = { k = 3 }\n";
    folder.write("p.toml", &format!("{DATA}{clusterers}"));
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    assert!(!folder.path("out/memberships.parquet").exists());
    folder.write("p.toml", &format!("memberships = true\n{DATA}{clusterers}"));
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let table = folder.read_parquet("out/memberships.parquet");
    assert_eq!(table.num_rows(), 60);
    let lists = table.column_by_name("memberships").unwrap().as_list::<i64>().clone();
    for (row, name) in texts(&table, "clusterer").iter().enumerate() {
        assert_eq!(lists.is_null(row), *name == "kmeans");
        if *name == "fcm" {
            let sum: f32 = lists.value(row).as_primitive::<Float32Type>().values().iter().sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        }
    }
}

#[test]
fn weights_are_read_and_a_method_that_ignores_them_is_named() {
    let folder = Folder::new();
    let weights: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 30]));
    write_blobs(&folder, "d.parquet", vec![("w", weights)]);
    let columns = "columns = { embedding = \"embedding\", weight = \"w\" }\n";
    let clusterer = "\n[[clusterer]]\nuse = \"ac\"\nparams = { k = 3 }\n";
    folder.write("p.toml", &format!("{DATA}{columns}{clusterer}"));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    assert!(stderr.contains("warning: data `d`: no use of its weights is made by `ac`"), "{stderr}");
    let mut negative = vec![1.0; 30];
    negative[7] = -0.5;
    let negative: ArrayRef = Arc::new(Float64Array::from(negative));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["heavy"; 30]));
    for (column, reason) in
        [(negative, "row 7: the weight -0.5 is below 0"), (texts, "the weight column must hold numbers")]
    {
        write_blobs(&folder, "d.parquet", vec![("w", column)]);
        let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 2);
        assert!(stderr.contains(reason), "{stderr}");
    }
}

#[test]
fn what_a_method_settled_by_itself_and_what_unions_are_composed_from_is_in_the_tables() {
    let folder = Folder::new();
    write_blobs(&folder, "d.parquet", Vec::new());
    let clusterers = "\n[[clusterer]]\nuse = \"ap\"\nparams = { preference = { k = 3 } }\n\n\
                      [[clusterer]]\nuse = \"kmeans\"\nparams = { k = 3, restarts = 5 }\n";
    folder.write("p.toml", &format!("{DATA}{clusterers}"));
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let runs = folder.read_parquet("out/runs.parquet");
    let resolved = texts(&runs, "resolved");
    let settled: serde_json::Value = serde_json::from_str(resolved[0]).unwrap();
    assert!(settled["preference"].as_f64().is_some_and(|found| found < 0.0), "{settled}");
    assert_eq!(resolved[1], "", "null: kmeans settles nothing");
    let singletons = folder.read_parquet("out/singletons.parquet");
    assert_eq!(texts(&singletons, "clusterer"), ["kmeans"; 3]);
    assert_eq!(singletons.column_by_name("singleton").unwrap().as_primitive::<UInt32Type>().values(), &[0, 1, 2]);
    let vectors = singletons.column_by_name("vector").unwrap().as_list::<i64>();
    let first = vectors.value(0);
    let first = first.as_primitive::<Float32Type>();
    assert!((first.value(0) - 0.45).abs() < 1e-4 && (first.value(1) - 1.0).abs() < 1e-6, "{first:?}");
}
