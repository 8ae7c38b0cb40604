//! `compflow assign`: a finished run's clusters and new examples.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};

use crate::common::{Folder, embeddings, numbers, repository, texts};

/// A pipeline on a data set of the repository, which has ten trials.
fn pipeline(data: &str, degree: usize, clusterers: &str) -> String {
    let (folder, name) = data.split_once('/').unwrap();
    let root = repository().join("data").join(folder);
    let root = root.display();
    format!(
        "name = \"p\"\nseed = 1\ndegree = {degree}\nspace = {{ normalize = \"l2\" }}\n\n\
         [composer]\nuse = \"bilinear\"\nparams = {{ weights = \"{root}/g.safetensors\" }}\n\n\
         [[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"{root}/{name}.parquet\"\n\
         columns = {{ embedding = \"embedding\", truth = \"labels\", trial = \"trial\", id = \"id\" }}\n\n{clusterers}"
    )
}

/// The lists of a column.
fn lists(table: &RecordBatch, column: &str) -> Vec<Option<Vec<u32>>> {
    let column = table.column_by_name(column).unwrap();
    let value = |row: usize| match column.data_type() {
        arrow_schema::DataType::LargeList(_) => column.as_list::<i64>().value(row),
        _ => column.as_list::<i32>().value(row),
    };
    let list = |row| value(row).as_primitive::<UInt32Type>().values().to_vec();
    (0..column.len()).map(|row| column.is_valid(row).then(|| list(row))).collect()
}

fn floats(table: &RecordBatch, column: &str) -> Vec<Option<f32>> {
    table.column_by_name(column).unwrap().as_primitive::<Float32Type>().iter().collect()
}

fn ids(table: &RecordBatch) -> Vec<i64> {
    table.column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec()
}

/// Identifiers, sets and distances of a cell's own examples.
fn own(folder: &Folder, clusterer: &str, trial: u32) -> Vec<(i64, Option<Vec<u32>>, Option<f32>)> {
    let table = folder.read_parquet("out/assignments.parquet");
    let trials = table.column_by_name("trial").unwrap().as_primitive::<UInt32Type>().clone();
    let names = texts(&table, "clusterer");
    let rows = ids(&table).into_iter().zip(lists(&table, "clusters")).zip(floats(&table, "distance")).enumerate();
    rows.filter(|(row, _)| names[*row] == clusterer && trials.value(*row) == trial)
        .map(|(_, ((id, set), distance))| (id, set, distance))
        .collect()
}

/// Assigns a trial's examples to what a clusterer found in it.
fn again(folder: &Folder, data: &str, clusterer: &str, trial: u32, more: &[&str]) -> RecordBatch {
    let file = repository().join("data").join(format!("{data}.parquet"));
    let (file, trial) = (file.display().to_string(), trial.to_string());
    let only = format!("trial={trial}");
    let mut args = vec![
        "assign",
        "out",
        &file,
        "--clusterer",
        clusterer,
        "--trial",
        &trial,
        "--out",
        "new.parquet",
        "--where",
        &only,
    ];
    args.extend(more);
    folder.run(&args, 0);
    folder.read_parquet("new.parquet")
}

/// How many of a trial's examples are not given to the cluster that they have.
fn moved(folder: &Folder, data: &str, clusterer: &str, trial: u32) -> usize {
    let (before, table) = (own(folder, clusterer, trial), again(folder, data, clusterer, trial, &[]));
    assert_eq!(before.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), ids(&table));
    let after = lists(&table, "clusters").into_iter().zip(floats(&table, "distance"));
    before.iter().zip(after).filter(|((_, set, distance), after)| (set, distance) != (&after.0, &after.1)).count()
}

#[test]
fn examples_of_the_run_are_given_to_their_own_clusters_at_their_own_distance() {
    for (data, degree) in [("omniglot/d2_n150_test", 2), ("speech/d2_n150_test", 2), ("omniglot/d3_n250_test", 3)]
    {
        let folder = Folder::new();
        let clusterers = "[[clusterer]]\nname = \"CKM\"\nuse = \"ckm\"\nparams = { k = 5, restarts = 3 }\n\n\
                          [[clusterer]]\nname = \"CAP\"\nuse = \"cap\"\nparams = { preference = { k = 5 } }\n";
        let text = pipeline(data, degree, clusterers).replace(
            "truth = \"labels\", trial = \"trial\", id = \"id\" }",
            "truth = \"labels\", trial = \"trial\", id = \"id\" }\nparams = { where = { trial = 1 } }",
        );
        folder.write("p.toml", &text);
        folder.run(&["run", "p.toml", "--out", "out"], 0);
        assert_eq!(moved(&folder, data, "CKM", 1), 0, "CKM, {data}");
        assert_eq!(moved(&folder, data, "CAP", 1), 0, "CAP, {data}");
    }
}

#[test]
fn a_mixture_gives_its_examples_back_with_their_posteriors() {
    let (folder, data) = (Folder::new(), "omniglot/d2_n150_test");
    let clusterers = "[[clusterer]]\nname = \"CGM\"\nuse = \"cgm\"\nparams = { k = 5, restarts = 3 }\n\n\
                      [[clusterer]]\nname = \"none\"\nuse = \"cgm\"\n\
                      params = { k = 5, restarts = 3, assignment = \"soft\", outliers = true }\n\n\
                      [[clusterer]]\nname = \"GMM\"\nuse = \"gmm\"\nparams = { k = 15, covariance = \"tied\" }\n";
    folder.write("p.toml", &pipeline(data, 2, clusterers));
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let table = folder.read_parquet("out/assignments.parquet");
    let names = texts(&table, "clusterer");
    let trials = table.column_by_name("trial").unwrap().as_primitive::<UInt32Type>().clone();
    let posteriors = table.column_by_name("posterior").unwrap().as_primitive::<arrow_array::types::Float64Type>();
    for clusterer in ["CGM", "none"] {
        assert_eq!(moved(&folder, data, clusterer, 2), 0, "{clusterer}");
        let before = (0..names.len()).filter(|&row| names[row] == clusterer && trials.value(row) == 2);
        let after = floats(&folder.read_parquet("new.parquet"), "posterior");
        for (row, after) in before.zip(after) {
            assert!((posteriors.value(row) - f64::from(after.unwrap())).abs() < 1e-3, "{clusterer} {row}");
        }
    }
    // Single components, of which nobody is in two.
    assert_eq!(moved(&folder, data, "GMM", 2), 0);
    let likely = floats(&folder.read_parquet("new.parquet"), "posterior");
    assert!(likely.iter().all(|posterior| posterior.is_some_and(|posterior| (0.5..=1.0).contains(&posterior))));
    // Nothing is known of larger unions.
    let file = repository().join(format!("data/{data}.parquet")).display().to_string();
    let args =
        ["assign", "out", &file, "--clusterer", "CGM", "--trial", "0", "--out", "n.parquet", "--degree", "3"];
    let (_, stderr) = folder.run(&args, 2);
    assert!(stderr.contains("lower --degree, or run the pipeline with `degree = 3`"), "{stderr}");
}

/// Two blobs and their sums, far from one another: two clusters that were seen alone and never together.
fn blobs(folder: &Folder) {
    let rows: Vec<Vec<f32>> = (0..20)
        .map(|at| {
            let (x, y) = if at % 2 == 0 { (10.0, 0.0) } else { (0.0, 10.0) };
            vec![x + 0.01 * (at % 5) as f32, y + 0.01 * (at % 3) as f32]
        })
        .collect();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    folder.write_parquet("blobs.parquet", vec![("embedding", embeddings(&rows))]);
    let new: [&[f32]; 4] = [&[10.02, 0.01], &[0.02, 10.01], &[10.04, 10.02], &[-300.0, -300.0]];
    let names: ArrayRef = std::sync::Arc::new(StringArray::from(vec!["a", "b", "ab", "far"]));
    let at: ArrayRef = std::sync::Arc::new(Int64Array::from(vec![7, 8, 9, 10]));
    folder.write_parquet("new.parquet", vec![("embedding", embeddings(&new)), ("name", names), ("at", at)]);
    folder.write(
        "p.toml",
        "name = \"p\"\ndegree = 2\n[composer]\nuse = \"sum\"\n\n[[data]]\nname = \"d\"\nloader = \"parquet\"\n\
         path = \"blobs.parquet\"\n\n[[clusterer]]\nname = \"CKM\"\nuse = \"ckm\"\nparams = { k = 2 }\n\n\
         [[clusterer]]\nname = \"KM\"\nuse = \"kmeans\"\nparams = { k = 2 }\n\n\
         [[clusterer]]\nname = \"CAP\"\nuse = \"cap\"\nparams = { preference = { k = 2 } }\n",
    );
    folder.run(&["run", "p.toml", "--out", "out"], 0);
}

#[test]
fn unions_nobody_has_seen_are_considered_unless_told_otherwise() {
    let folder = Folder::new();
    blobs(&folder);
    let assigned = |clusterer: &str, more: &[&str]| {
        let mut args = vec!["assign", "out", "new.parquet", "--clusterer", clusterer, "--out", "labels.parquet"];
        args.extend(more);
        let (_, stderr) = folder.run(&args, 0);
        assert!(stderr.contains("4 examples to") && stderr.contains("table in labels.parquet"), "{stderr}");
        let found = lists(&folder.read_parquet("labels.parquet"), "clusters");
        found.into_iter().map(Option::unwrap).collect::<Vec<_>>()
    };
    for clusterer in ["CKM", "CAP"] {
        assert_eq!(assigned(clusterer, &[])[..3], [vec![0], vec![1], vec![0, 1]], "{clusterer}");
        assert_eq!(assigned(clusterer, &["--seen-only"])[2].len(), 1, "{clusterer}");
        assert_eq!(assigned(clusterer, &["--degree", "1"])[2].len(), 1, "{clusterer}");
    }
    // A method that composes nothing is not asked to, unless somebody insists.
    assert_eq!(assigned("KM", &[])[2].len(), 1);
    assert_eq!(assigned("KM", &["--degree", "2"])[..3], [vec![0], vec![1], vec![0, 1]]);

    // The far example is at no place that the run has been to.
    let columns = ["--novel", "1", "--id", "name", "--columns", "at"];
    let found = assigned("KM", &columns);
    assert_eq!((&found[3][..], found[0].len()), (&[][..], 1));
    let table = folder.read_parquet("labels.parquet");
    assert_eq!(texts(&table, "id"), ["a", "b", "ab", "far"]);
    let at = table.column_by_name("at").unwrap().as_primitive::<Int64Type>();
    assert_eq!(at.values()[..], [7, 8, 9, 10]);
    assert_eq!(floats(&table, "distance")[3], None);
    assert!(lists(&table, "runner_up")[3].is_some() && floats(&table, "runner_up_distance")[3] > Some(1000.0));
    assert!(floats(&table, "margin").iter().all(|margin| margin.unwrap() >= 0.0));
    assert!(floats(&table, "posterior").iter().all(Option::is_none));
}

#[test]
fn the_table_does_not_depend_on_threads_or_on_how_files_are_cut() {
    let (folder, data) = (Folder::new(), "speech/d2_n150_test");
    folder.write("p.toml", &pipeline(data, 2, "[[clusterer]]\nuse = \"ckm\"\nparams = { k = 5, restarts = 2 }\n"));
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let file = repository().join(format!("data/{data}.parquet")).display().to_string();
    let written = |out: &str, more: &[&str], files: &[&str]| {
        let mut args = vec!["assign", "out"];
        args.extend(files);
        args.extend(["--trial", "0", "--out", out]);
        args.extend(more);
        folder.run(&args, 0);
        std::fs::read(folder.path(out)).unwrap()
    };
    let one = written("one.parquet", &["--threads", "1"], &[&file]);
    assert_eq!(one, written("three.parquet", &["--threads", "3"], &[&file]));
    // All rows of a file twice: identifiers are the file's own.
    let twice = written("twice.parquet", &["--threads", "2"], &[&file, &file]);
    let (once, twice) = (folder.read_parquet("one.parquet"), {
        drop(twice);
        folder.read_parquet("twice.parquet")
    });
    let doubled: Vec<_> = [lists(&once, "clusters"), lists(&once, "clusters")].concat();
    assert_eq!(lists(&twice, "clusters"), doubled);
}

/// A day without recordings.
#[test]
fn files_without_rows_make_an_empty_table_and_are_passed_over_beside_others() {
    let folder = Folder::new();
    blobs(&folder);
    let nothing: ArrayRef = std::sync::Arc::new(StringArray::from(Vec::<&str>::new()));
    let at: ArrayRef = std::sync::Arc::new(Int64Array::from(Vec::<i64>::new()));
    let none = embeddings(&[&[0.0, 0.0]]).slice(0, 0);
    folder.write_parquet("none.parquet", vec![("embedding", none), ("name", nothing), ("at", at)]);
    folder.write("none.csv", "d0,d1\n");
    let run = |files: &[&str], more: &[&str]| {
        let args = [&["assign", "out", "--clusterer", "CKM", "--out", "labels.parquet"], files, more].concat();
        let (_, stderr) = folder.run(&args, 0);
        let file = std::fs::File::open(folder.path("labels.parquet")).unwrap();
        let table = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        (table.metadata().file_metadata().num_rows(), table.schema().clone(), stderr)
    };
    for (file, more) in [
        ("none.parquet", &["--id", "name", "--columns", "at"][..]),
        ("new.parquet", &["--where", "at=99"]),
        ("none.csv", &["--embedding", "d*"]),
    ] {
        let (rows, columns, stderr) = run(&[file], more);
        assert_eq!(rows, 0, "{file}");
        assert!(["id", "clusters"].iter().all(|name| columns.column_with_name(name).is_some()), "{file}");
        assert!(stderr.contains("there are no examples, so the table is empty"), "{file}: {stderr}");
    }
    let (rows, _, stderr) = run(&["none.parquet", "new.parquet", "none.parquet"], &["--columns", "at"]);
    assert!(rows == 4 && !stderr.contains("empty"), "{stderr}");
}

#[test]
fn without_the_composers_library_what_would_do_is_said() {
    let folder = Folder::new();
    blobs(&folder);
    std::fs::create_dir(folder.path("few")).unwrap();
    for name in ["loaders", "ckm"] {
        let name = crate::common::library_name(name);
        std::fs::copy(crate::common::libraries().join(&name), folder.path("few").join(name)).unwrap();
    }
    // Libraries beside the command would be found.
    std::fs::copy(crate::common::executable(), folder.path("few/compflow")).unwrap();
    let assign = |more: &[&str], code: i32| {
        let mut command = std::process::Command::new(folder.path("few/compflow"));
        command.current_dir(folder.path("")).env_remove("COMPFLOW_PLUGIN_PATH");
        command.env("XDG_CACHE_HOME", crate::common::build_folder("test-cache"));
        command.args(["assign", "out", "new.parquet", "--out", "labels.parquet"]).args(more);
        crate::common::finished(command.output().unwrap(), code).1
    };
    let stderr = assign(&["--clusterer", "CKM"], 2);
    assert!(stderr.contains("no composer named `sum`") && stderr.contains("--seen-only does without"), "{stderr}");
    assign(&["--clusterer", "CKM", "--seen-only"], 0);
    // Of exemplars not even the unions that occur have a place of their own.
    let rows: Vec<[f32; 2]> = (0..30).map(|at| [[10.0, 0.0], [0.0, 10.0], [10.0, 10.0]][at % 3]).collect();
    let rows: Vec<&[f32]> = rows.iter().map(<[f32; 2]>::as_slice).collect();
    folder.write_parquet("blobs.parquet", vec![("embedding", embeddings(&rows))]);
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let stderr = assign(&["--clusterer", "CAP", "--seen-only"], 2);
    assert!(stderr.contains("unions of exemplars are always composed, also with --seen-only"), "{stderr}");
    assert!(!stderr.contains("does without, as"), "{stderr}");
    assign(&["--clusterer", "CAP", "--degree", "1", "--seen-only"], 0);
}

#[test]
fn what_cannot_be_assigned_is_said_with_what_would_do() {
    let folder = Folder::new();
    blobs(&folder);
    folder.write_parquet("wide.parquet", vec![("embedding", embeddings(&[&[1.0, 2.0, 3.0]]))]);
    folder.write_parquet("other.parquet", vec![("vector", embeddings(&[&[1.0, 2.0]])), ("n", numbers(&[1]))]);
    folder.write("x.txt", "1,2\n");
    let refused = |args: &[&str], code: i32, expected: &str| {
        let mut all = vec!["assign"];
        all.extend(args);
        if !args.contains(&"--out") {
            all.extend(["--out", "labels.parquet"]);
        }
        let (stdout, stderr) = folder.run(&all, code);
        assert!(stderr.contains(expected) && stdout.is_empty(), "{args:?}: {stderr}");
        assert!(!folder.path("labels.parquet").exists(), "{args:?}");
    };
    let ckm = |file| ["out", file, "--clusterer", "CKM"];
    refused(&["out", "new.parquet"], 2, "choose with --clusterer: `CKM`, `KM`, `CAP`");
    refused(
        &["out", "new.parquet", "--clusterer", "AP"],
        2,
        "the run has no clusterer `AP`; it has `CKM`, `KM`, `CAP`",
    );
    refused(
        &["out", "new.parquet", "--clusterer", "CKM", "--trial", "4"],
        2,
        "the run has no trial `4`; it has `0`",
    );
    refused(&["nowhere", "new.parquet"], 2, "nowhere is no results folder");
    refused(&ckm("gone.parquet"), 2, "gone.parquet: there is no such file");
    refused(&ckm("gone-*.parquet"), 2, "no file matches gone-*.parquet");
    refused(&ckm("x.txt"), 2, "expected a .parquet, .arrow, .csv, .tsv, .jsonl or .npy file");
    refused(&ckm("wide.parquet"), 2, "the embeddings have 3 numbers, and those of d have 2");
    refused(&ckm("other.parquet"), 2, "other.parquet: there is no column `embedding`");
    let more = |rest: &[&'static str]| [&ckm("new.parquet")[..], rest].concat();
    refused(&more(&["--id", "nobody"]), 2, "there is no column `nobody`");
    refused(&more(&["--columns", "margin"]), 2, "the column `margin` cannot be copied");
    refused(&more(&["--novel", "1.5"]), 2, "--novel takes a share above 0 and at most 1");
    refused(&more(&["--degree", "0"]), 2, "--degree is at least 1");
    refused(&more(&["--out", "new.parquet"]), 2, "new.parquet is what is read");
    refused(&more(&["--out", "out/clusters.parquet"]), 2, "is there already, in the results folder");
    refused(&more(&["--out", "new.csv"]), 2, "new.csv would be taken for something else; call it new.parquet");
    refused(&more(&["--out", "no/where.parquet"]), 2, "there is no folder no");

    // What is gone matters only if it is needed.
    std::fs::rename(folder.path("blobs.parquet"), folder.path("moved.parquet")).unwrap();
    refused(&["out", "new.parquet", "--clusterer", "CAP"], 2, "needs the data it was computed from");
    refused(&["out", "new.parquet", "--clusterer", "CAP"], 2, "or take a method that has centroids or densities");
    folder.run(&["assign", "out", "new.parquet", "--clusterer", "CKM", "--out", "labels.parquet"], 0);
    std::fs::remove_file(folder.path("labels.parquet")).unwrap();
    folder.write_parquet("blobs.parquet", vec![("embedding", embeddings(&[&[1.0, 2.0]]))]);
    refused(&["out", "new.parquet", "--clusterer", "CAP"], 2, "has changed since the run");
    std::fs::write(folder.path("out/clusters.parquet"), "no table").unwrap();
    refused(&ckm("new.parquet"), 2, "clusters.parquet is not what the run wrote");
    std::fs::remove_file(folder.path("out/clusters.parquet")).unwrap();
    refused(&ckm("new.parquet"), 2, "clusters.parquet is missing; run the pipeline again");
}

#[test]
fn weights_that_have_changed_are_refused_where_unions_are_composed() {
    let (folder, data) = (Folder::new(), "omniglot/d2_n150_test");
    let weights = repository().join("data/omniglot/g.safetensors");
    std::fs::copy(&weights, folder.path("g.safetensors")).unwrap();
    let text = pipeline(data, 2, "[[clusterer]]\nuse = \"ckm\"\nparams = { k = 5, restarts = 1 }\n");
    folder.write("p.toml", &text.replace(&weights.display().to_string(), "g.safetensors"));
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let other = std::fs::read(Path::new(&repository()).join("data/speech/g.safetensors")).unwrap();
    std::fs::write(folder.path("g.safetensors"), other).unwrap();
    let file = repository().join(format!("data/{data}.parquet")).display().to_string();
    let args = ["assign", "out", &file, "--trial", "0", "--out", "labels.parquet"];
    // All pairs occur in the run, so nothing of them is composed.
    folder.run(&args, 0);
    let (_, stderr) = folder.run(&[&args[..], &["--degree", "3"]].concat(), 2);
    assert!(
        stderr.contains("g.safetensors has changed since the run") && stderr.contains("--seen-only"),
        "{stderr}"
    );
    folder.run(&[&args[..], &["--seen-only"]].concat(), 0);
}
