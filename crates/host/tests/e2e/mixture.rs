//! `cgm` beside `ckm`: it begins with it, contains it, and says more.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt32Type};
use arrow_array::{Array, RecordBatch};

use crate::common::{Folder, repository, texts};

/// A pipeline on images of handwritten characters.
fn pipeline(clusterers: &str) -> String {
    let data = repository().join("data/omniglot");
    let data = data.display();
    format!(
        "name = \"p\"\nseed = 1\ndegree = 2\nspace = {{ normalize = \"l2\" }}\nmemberships = true\n\n\
         [composer]\nuse = \"bilinear\"\nparams = {{ weights = \"{data}/g.safetensors\" }}\n\n\
         [[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"{data}/d2_n150_test.parquet\"\n\
         columns = {{ embedding = \"embedding\", truth = \"labels\", trial = \"trial\", id = \"id\" }}\n\n\
         {clusterers}\n[[evaluator]]\nuse = \"cri\"\n"
    )
}

/// The sets of all examples, by clusterer.
fn sets(table: &RecordBatch, clusterer: &str) -> Vec<Vec<u32>> {
    let column = table.column_by_name("clusters").unwrap();
    let rows = texts(table, "clusterer").into_iter().enumerate().filter(|(_, name)| *name == clusterer);
    rows.map(|(row, _)| {
        let set = match column.data_type() {
            arrow_schema::DataType::LargeList(_) => column.as_list::<i64>().value(row),
            _ => column.as_list::<i32>().value(row),
        };
        set.as_primitive::<UInt32Type>().values().to_vec()
    })
    .collect()
}

#[test]
fn with_spheres_no_residuals_equal_weights_and_hard_assignments_it_is_ckm() {
    let folder = Folder::new();
    let start = "init = { use = \"ac\", params = { k = 5 } }";
    folder.write(
        "p.toml",
        &pipeline(&format!(
            "[[clusterer]]\nname = \"CKM\"\nuse = \"ckm\"\n\
             params = {{ k = 5, {start}, restarts = 1, reseed = false, tol = 0.0, max_iter = 500 }}\n\n\
             [[clusterer]]\nname = \"CGM\"\nuse = \"cgm\"\n\
             params = {{ k = 5, {start}, covariance = \"spherical\", residual = 0, weights = \"equal\", tol = 0.0, \
             max_iter = 500 }}\n"
        )),
    );
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let table = folder.read_parquet("out/assignments.parquet");
    let (ckm, cgm) = (sets(&table, "CKM"), sets(&table, "CGM"));
    assert_eq!(ckm.len(), 1500);
    let differ = ckm.iter().zip(&cgm).filter(|(a, b)| a != b).count();
    assert_eq!(differ, 0, "of 1500 examples");
}

#[test]
fn outliers_take_no_singletons_however_far_they_lie() {
    let folder = Folder::new();
    folder.write(
        "p.toml",
        "name = \"p\"\nseed = 1\ndegree = 2\n\n[composer]\nuse = \"sum\"\n\n\
         [[data]]\nname = \"d\"\nloader = \"disturbed\"\n\
         params = { of = { use = \"synthetic\", params = { composer = { use = \"sum\" }, k = 5, dim = 16, n = 300, noise = 0.4, \
         trials = 2, seed = 1 } }, seed = 1, outliers = 0.1, spread = 100 }\n\
         columns = { embedding = \"embedding\", truth = \"labels\", trial = \"trial\", id = \"id\" }\n\n\
         [[clusterer]]\nuse = \"cgm\"\nparams = { k = 5, outliers = true }\n[[evaluator]]\nuse = \"cri\"\n",
    );
    for spread in ["3", "10", "100"] {
        let set = format!("data.d.spread={spread}");
        folder.run(&["run", "p.toml", "--out", "out", "--set", &set], 0);
        let summary = folder.read_parquet("out/summary.parquet");
        let row = texts(&summary, "metric").iter().position(|metric| *metric == "acri").unwrap();
        let mean = summary.column_by_name("mean").unwrap().as_primitive::<Float64Type>().value(row);
        assert!(mean > 0.95, "{mean} where outliers lie {spread} times as far");
    }
    // Who is not told of outliers says what became of them.
    let (_, said) = folder.run(&["run", "p.toml", "--out", "out", "--set", "clusterer.cgm.outliers=false"], 0);
    assert_eq!(said.matches("of all squared distances from the mean").count(), 2, "once in every trial: {said}");
}

#[test]
fn rare_unions_do_not_make_a_singleton_the_union_of_others() {
    let folder = Folder::new();
    let data = repository().join("data/speech");
    let data = data.display();
    folder.write(
        "p.toml",
        &format!(
            "name = \"p\"\nseed = 1\ndegree = 2\nspace = {{ normalize = \"l2\" }}\n\n\
             [composer]\nuse = \"bilinear\"\nparams = {{ weights = \"{data}/g.safetensors\" }}\n\n\
             [[data]]\nname = \"d\"\nloader = \"disturbed\"\n\
             params = {{ of = {{ use = \"parquet\", path = \"{data}/d2_n750_test.parquet\" }}, seed = 1, unions = 0.02 }}\n\
             columns = {{ embedding = \"embedding\", truth = \"labels\", trial = \"trial\", id = \"id\" }}\n\n\
             [[clusterer]]\nuse = \"ckm\"\nparams = {{ k = 5, restarts = 40 }}\n\
             [[clusterer]]\nuse = \"cgm\"\nparams = {{ k = 5, restarts = 40 }}\n\
             [[evaluator]]\nuse = \"cri\"\n"
        ),
    );
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let summary = folder.read_parquet("out/summary.parquet");
    let (metrics, means) = (texts(&summary, "metric"), summary.column_by_name("mean").unwrap());
    for (row, _) in metrics.iter().enumerate().filter(|(_, metric)| **metric == "acri") {
        let mean = means.as_primitive::<Float64Type>().value(row);
        assert!(mean > 0.97, "row {row}: {mean}");
    }
}

#[test]
fn it_begins_with_ckm_and_says_how_sure_it_is() {
    let folder = Folder::new();
    folder.write(
        "p.toml",
        &pipeline(
            "[[clusterer]]\nname = \"CKM\"\nuse = \"ckm\"\nparams = { k = 5, restarts = 20 }\n\n\
             [[clusterer]]\nname = \"CGM\"\nuse = \"cgm\"\nparams = { k = 5, restarts = 20 }\n",
        ),
    );
    let (json, _) = folder.run(&["run", "p.toml", "--out", "out", "--format", "json"], 0);
    let entries: serde_json::Value = serde_json::from_str(&json).unwrap();
    let score = |clusterer: &str| {
        let mut entries = entries.as_array().unwrap().iter();
        entries.find(|e| e["clusterer"] == clusterer && e["metric"] == "acri").unwrap()["mean"].as_f64().unwrap()
    };
    assert!(score("CGM") >= score("CKM"), "{json}");

    let table = folder.read_parquet("out/assignments.parquet");
    let names = texts(&table, "clusterer");
    let posteriors = table.column_by_name("posterior").unwrap().as_primitive::<Float64Type>().clone();
    for (row, name) in names.iter().enumerate() {
        assert_eq!(posteriors.is_null(row), *name == "CKM");
        assert!(*name == "CKM" || (posteriors.value(row) > 1.0 / 15.0 && posteriors.value(row) <= 1.0));
    }
    let memberships = folder.read_parquet("out/memberships.parquet");
    assert!(memberships.num_rows() >= 1500);
    let runs = folder.read_parquet("out/runs.parquet");
    let scalars = format!("{:?}", runs.column_by_name("scalars").unwrap());
    assert!(scalars.contains("log_likelihood") && scalars.contains("bic"), "{scalars}");
    let resolved = format!("{:?}", runs.column_by_name("resolved").unwrap());
    assert!(resolved.contains("shrinkage") && resolved.contains("residual"), "{resolved}");
    let singletons = folder.read_parquet("out/singletons.parquet");
    let vectors = singletons.column_by_name("vector").unwrap();
    let length = match vectors.data_type() {
        arrow_schema::DataType::LargeList(_) => vectors.as_list::<i64>().value(0),
        _ => vectors.as_list::<i32>().value(0),
    };
    assert_eq!(length.as_primitive::<Float32Type>().len(), 32);
}
