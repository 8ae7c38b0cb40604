//! Sets that are known beforehand: kept, named in every table, and refused where nobody could keep them.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch};

use crate::common::{Folder, embeddings, texts};

/// Three things in the plane and the sums of two of them, in turn.
const SETS: [&[&str]; 6] = [&["zoë"], &["ann"], &["bob"], &["ann", "zoë"], &["bob", "zoë"], &["ann", "bob"]];

fn row(at: usize) -> Vec<f32> {
    let place = |name: &str| match name {
        "ann" => [10.0, 1.0],
        "bob" => [0.0, 7.0],
        _ => [-5.0, -6.0],
    };
    let sum =
        SETS[at % 6].iter().map(|name| place(name)).fold([0.0; 2], |sum, at| [sum[0] + at[0], sum[1] + at[1]]);
    vec![sum[0] + 0.01 * (at % 7) as f32, sum[1] + 0.01 * (at % 5) as f32]
}

/// Sixty of them, with these known sets.
fn write(folder: &Folder, known: impl Fn(usize) -> Option<Vec<&'static str>>) {
    let mut seeds = ListBuilder::new(StringBuilder::new());
    for at in 0..60 {
        match known(at) {
            Some(set) => {
                set.iter().for_each(|name| seeds.values().append_value(name));
                seeds.append(true);
            }
            None => seeds.append(false),
        }
    }
    write_column(folder, Arc::new(seeds.finish()));
}

fn write_column(folder: &Folder, seeds: ArrayRef) {
    let rows: Vec<Vec<f32>> = (0..60).map(row).collect();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    folder.write_parquet("d.parquet", vec![("embedding", embeddings(&rows)), ("known", seeds)]);
}

const PIPELINE: &str = r#"
name = "seeded"
degree = 2
composer = { use = "sum" }

[[data]]
name = "d"
loader = "parquet"
path = "d.parquet"
columns = { embedding = "embedding", seed = "known" }

[[clusterer]]
use = "ckm"
params = { k = 3, restarts = 5 }

[[clusterer]]
name = "stream"
use = "ckm"
params = { k = 3, restarts = 5, stream = true }

[[clusterer]]
use = "cgm"
params = { k = 3 }

[[clusterer]]
use = "gcr"
params = { base = { use = "ac", params = { k = 6 } }, threshold = 1.0 }

[[clusterer]]
use = "kmeans"
params = { k = 6, restarts = 5 }
"#;

/// The lists of a column of names; none where it is null.
fn names(table: &RecordBatch) -> Vec<Option<Vec<String>>> {
    let column = table.column_by_name("names").unwrap().as_list::<i64>();
    let list = |at: usize| {
        let names = RecordBatch::try_from_iter([("names", column.value(at))]).unwrap();
        texts(&names, "names").into_iter().map(str::to_owned).collect()
    };
    (0..column.len()).map(|at| (!column.is_null(at)).then(|| list(at))).collect()
}

#[test]
fn clusters_have_the_users_names_in_every_table() {
    let folder = Folder::new();
    // One of each thing, and nothing of unions.
    write(&folder, |at| (at < 3).then(|| SETS[at].to_vec()));
    folder.write("p.toml", PIPELINE);
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    assert_eq!(stderr.matches("no use of its seeds is made by `kmeans`").count(), 1, "{stderr}");

    let assignments = folder.read_parquet("out/assignments.parquet");
    let clusterers = texts(&assignments, "clusterer");
    for (at, (clusterer, names)) in clusterers.iter().zip(names(&assignments)).enumerate() {
        match *clusterer {
            "kmeans" => assert_eq!(names, None),
            _ => assert_eq!(names.unwrap(), SETS[at % 60 % 6], "{clusterer} {at}"),
        }
    }
    let clusters = folder.read_parquet("out/clusters.parquet");
    let of_ckm: Vec<Vec<String>> = names(&clusters).into_iter().take(6).flatten().collect();
    assert_eq!(of_ckm[..3], [["ann"], ["bob"], ["zoë"]]);
    assert_eq!(of_ckm[3..], [["ann", "bob"], ["ann", "zoë"], ["bob", "zoë"]]);
    let singletons = folder.read_parquet("out/singletons.parquet");
    let (of, called) = (texts(&singletons, "clusterer"), texts(&singletons, "name"));
    for named in ["ckm", "stream", "cgm", "gcr"] {
        let called: Vec<&str> =
            of.iter().zip(&called).filter(|(of, _)| **of == named).map(|(_, name)| *name).collect();
        assert_eq!(called, ["ann", "bob", "zoë"], "{named}");
    }
    let densities = folder.read_parquet("out/densities.parquet");
    let of_cgm: Vec<Vec<String>> = names(&densities).into_iter().map(Option::unwrap).collect();
    assert!(of_cgm.contains(&vec!["ann".to_owned(), "zoë".to_owned()]), "{of_cgm:?}");
    // pandas cannot read lists of texts that Arrow is told to be views.
    for table in ["runs", "assignments", "clusters", "singletons"] {
        let schema = format!("{:?}", folder.read_parquet(&format!("out/{table}.parquet")).schema());
        assert!(schema.contains("LargeUtf8") && !schema.contains("View"), "{table}: {schema}");
    }
    // New examples, too.
    for named in ["ckm", "cgm", "gcr", "kmeans"] {
        folder.run(&["assign", "out", "d.parquet", "--clusterer", named, "--out", "new.parquet"], 0);
        let new = folder.read_parquet("new.parquet");
        let Some(column) = new.column_by_name("names") else {
            assert_eq!(named, "kmeans", "takes no notice of names");
            continue;
        };
        let column = column.as_list::<i32>();
        let (next, called) = (new["runner_up"].as_list::<i32>(), new["runner_up_names"].as_list::<i32>());
        for at in (0..60).filter(|at| next.is_valid(*at)) {
            let members = next.value(at);
            let expected =
                members.as_primitive::<UInt32Type>().values().iter().map(|at| ["ann", "bob", "zoë"][*at as usize]);
            let called = called.value(at);
            assert!(called.as_string::<i32>().iter().flatten().eq(expected), "{named} {at}");
        }
        for (at, expected) in (0..60).map(|at| (at, SETS[at % 6])) {
            let list = column.value(at);
            assert_eq!(list.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), expected, "{named} {at}");
        }
    }
    let args = ["assign", "out", "d.parquet", "--clusterer", "ckm", "--columns", "names", "--out", "no.parquet"];
    let (_, stderr) = folder.run(&args, 2);
    assert!(stderr.contains("the column `names` cannot be copied"), "{stderr}");

    folder.run(&["report", "out"], 0);
    let report = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(report.contains("ann∪zoë"), "the graph of what is composed of what");

    // Another seed is another cell for those that heed it, and only for them.
    write(&folder, |at| (at < 4).then(|| SETS[at].to_vec()));
    for (clusterer, kept) in [("kmeans", 1), ("ckm", 0)] {
        let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out", "--only", clusterer], 0);
        assert!(stderr.contains(&format!("1 cell, {kept} of them kept from before")), "{stderr}");
    }
}

#[test]
fn columns_of_0_and_1_are_seeds_where_they_are_not_empty() {
    let folder = Folder::new();
    let write = |known: &dyn Fn(usize, &str) -> &'static str| {
        let line = |at: usize| {
            let [x, y] = [row(at)[0], row(at)[1]];
            format!("{x},{y},{},{},{}\n", known(at, "ann"), known(at, "bob"), known(at, "zoë"))
        };
        folder.write("d.csv", &format!("d0,d1,ann,bob,zoë\n{}", (0..60).map(line).collect::<String>()));
    };
    let pipeline = PIPELINE.replace("parquet", "csv");
    let columns = "embedding = \"d*\", seed = [\"ann\", \"bob\", \"zoë\"]";
    folder.write("p.toml", &pipeline.replace("embedding = \"embedding\", seed = \"known\"", columns));
    let flag = |at: usize, name: &str| if SETS[at % 6].contains(&name) { "1" } else { "0" };
    write(&|at, name| if at < 4 { flag(at, name) } else { "" });
    folder.run(&["run", "p.toml", "--out", "out", "--only", "ckm"], 0);
    let found = names(&folder.read_parquet("out/assignments.parquet"));
    assert!(found.iter().enumerate().all(|(at, names)| names.as_ref().unwrap() == SETS[at % 6]), "{found:?}");
    write(&|at, name| if at == 9 && name == "bob" { "1" } else { "" });
    let (_, stderr) = folder.run(&["check", "p.toml"], 2);
    assert!(stderr.contains("d.csv: row 9: the column `ann` is null, and labels are 0 or 1"), "{stderr}");
    assert!(stderr.contains("where a set is not known, leave all of its columns empty"), "{stderr}");
    write(&|at, _| if at == 9 { "0" } else { "" });
    let (_, stderr) = folder.run(&["check", "p.toml"], 2);
    assert!(stderr.contains("d.csv: row 9: the seed is an empty set; leave it null"), "{stderr}");
}

#[test]
fn what_nobody_named_is_called_by_its_number_and_nulls_alone_name_nothing() {
    let folder = Folder::new();
    write(&folder, |at| (at == 1).then(|| vec!["ann"]));
    folder.write("p.toml", PIPELINE);
    folder.run(&["run", "p.toml", "--out", "out", "--only", "ckm"], 0);
    let assignments = folder.read_parquet("out/assignments.parquet");
    let found = names(&assignments);
    assert_eq!(found[1].as_ref().unwrap(), &["ann"]);
    assert_eq!(found[0].as_ref().unwrap(), &["cluster 1"]);
    assert_eq!(found[3].as_ref().unwrap(), &["ann", "cluster 1"]);
    write(&folder, |_| None);
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "none", "--only", "ckm"], 0);
    assert!(!stderr.contains("seeds"), "{stderr}");
    assert!(folder.read_parquet("none/assignments.parquet").column_by_name("names").is_none());
}

#[test]
fn known_sets_that_nobody_could_keep_are_refused_with_what_would_do() {
    let folder = Folder::new();
    folder.write("p.toml", PIPELINE);
    let refused = |text: &str| {
        let (_, stderr) = folder.run(&["check", "p.toml"], 2);
        assert!(stderr.contains(text), "{stderr}");
    };
    write(&folder, |at| (at == 7).then(|| vec!["ann", "bob", "zoë"]));
    refused("data `d`: the seed of example 7 in trial 0, [ann, bob, zoë], has 3 members, more than the degree, 2");
    refused("set `degree = 3`, or leave the seed null");
    write(&folder, |at| (at == 7).then(Vec::new));
    refused("d.parquet: row 7: the seed is an empty set; leave it null where the set is not known");
    write_column(&folder, Arc::new(Float64Array::from(vec![0.5; 60])));
    refused("d.parquet: the seed column must hold whole numbers or text, found numbers");
    let same: Vec<&[f32]> = (0..60).map(|_| &[1.0, 2.0][..]).collect();
    let mut seeds = StringBuilder::new();
    (0..60).for_each(|at| seeds.append_option([None, Some("ann"), Some("bob")].get(at).copied().flatten()));
    folder.write_parquet("d.parquet", vec![("embedding", embeddings(&same)), ("known", Arc::new(seeds.finish()))]);
    refused("rows 1 and 2 of trial 0 have the same embedding, and their seeds are [ann] and [bob]");
    folder.write("p.toml", &PIPELINE.replace("seed = \"known\"", "seed = \"knwon\""));
    refused("`seed` names the column `knwon`, which is not in d.parquet");
    refused("did you mean `known`?");
    // More names than singletons: the cell fails, and says what would do.
    write(&folder, |at| (at < 3).then(|| SETS[at].to_vec()));
    folder.write("p.toml", &PIPELINE.replace("k = 3, restarts = 5 }", "k = 2, restarts = 5 }"));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out", "--only", "ckm"], 1);
    let text = "`k` = 2 is less than the 3 singletons that seeds name; set it to at least 3";
    assert!(stderr.contains(text), "{stderr}");
}

#[test]
fn a_selection_among_too_few_for_the_names_says_what_to_write() {
    let folder = Folder::new();
    let text: String = (0..60)
        .map(|at| {
            format!("{}.{at},{},{}\n", at % 12, at / 12, if at < 12 { format!("p{at}") } else { String::new() })
        })
        .collect();
    folder.write("a.csv", &format!("x,y,known\n{text}"));
    folder.write(
        "p.toml",
        "name = \"p\"\nseed = 1\ndegree = 1\n[[data]]\nname = \"a\"\nloader = \"csv\"\npath = \"a.csv\"\n\
         columns = { embedding = [\"x\", \"y\"], seed = \"known\" }\n\
         [[clusterer]]\nuse = \"ckm\"\nparams = { k = \"auto\", restarts = 2 }\n",
    );
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 1);
    assert!(stderr.contains("every value fails") && stderr.contains("set it to at least 12"), "{stderr}");
    assert!(stderr.contains("values that would do are `k = { select = { from = 12, to = 20 } }`"), "{stderr}");
    let pipeline = std::fs::read_to_string(folder.path("p.toml")).unwrap();
    folder.write("p.toml", &pipeline.replace("\"auto\"", "{ select = { from = 12, to = 13 } }"));
    folder.run(&["run", "p.toml", "--out", "out"], 0);
}

/// The scores of a run by clusterer and metric.
fn scores(folder: &Folder, out: &str) -> std::collections::BTreeMap<(String, String), f64> {
    let metrics = folder.read_parquet(&format!("{out}/metrics.parquet"));
    let names = texts(&metrics, "clusterer").into_iter().zip(texts(&metrics, "metric"));
    let values = metrics["value"].as_primitive::<arrow_array::types::Float64Type>();
    names.zip(values.values()).map(|((a, b), value)| ((a.to_owned(), b.to_owned()), *value)).collect()
}

#[test]
fn what_was_told_is_not_scored() {
    let folder = Folder::new();
    let lists = |set: &dyn Fn(usize) -> Option<&'static [&'static str]>| -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for at in 0..60 {
            set(at).into_iter().flatten().for_each(|name| lists.values().append_value(name));
            lists.append(set(at).is_some());
        }
        Arc::new(lists.finish())
    };
    let rows: Vec<Vec<f32>> = (0..60).map(row).collect();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let write = |known: usize| {
        // The truth of the first three, which are known, is wrong.
        let truth = lists(&|at| Some(SETS[if at < 3 { (at + 1) % 3 } else { at % 6 }]));
        let seeds = lists(&|at| (at < known).then_some(SETS[at % 6]));
        folder
            .write_parquet("d.parquet", vec![("embedding", embeddings(&rows)), ("true", truth), ("known", seeds)]);
    };
    let evaluators = "[[evaluator]]\nuse = \"cri\"\n\n[[evaluator]]\nuse = \"ssd\"\n";
    let pipeline = |columns: &str| format!("{PIPELINE}\n{evaluators}").replace("seed = \"known\"", columns);
    let acri = |out: &'static str, columns: &str| -> (Option<f64>, String) {
        folder.write("p.toml", &pipeline(columns));
        let mut said = String::new();
        for clusterer in ["ckm", "kmeans"] {
            said = folder.run(&["run", "p.toml", "--out", out, "--only", clusterer], 0).1;
            assert!(scores(&folder, out).contains_key(&(clusterer.to_owned(), "ssd".to_owned())));
        }
        folder.run(&["run", "p.toml", "--out", out, "--only", "ckm"], 0);
        (scores(&folder, out).get(&("ckm".to_owned(), "acri".to_owned())).copied(), said)
    };
    write(3);
    let (score, said) = acri("out", "seed = \"known\", truth = \"true\"");
    assert_eq!(score, Some(1.0));
    let text = "data `d`: the 3 examples with a seed are not compared with the truth: scores are of 57";
    assert!(said.contains(text), "{said}");
    folder.run(&["report", "out"], 0);
    let page = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(page.contains("Examples with a seed are not compared with the truth."), "the report says it");
    // What is kept of the clusters is scored anew where other sets are known.
    assert!(acri("out", "truth = \"true\"").0.unwrap() < 1.0);
    write(60);
    let (score, said) = acri("all", "seed = \"known\", truth = \"true\"");
    assert_eq!(score, None);
    assert!(said.contains("every example has a seed, so that none is left"), "{said}");
}

#[test]
fn a_number_that_is_selected_keeps_the_names() {
    let folder = Folder::new();
    write(&folder, |at| (at < 3).then(|| SETS[at].to_vec()));
    folder.write(
        "p.toml",
        &PIPELINE.replace("{ k = 3, restarts = 5 }", "{ k = { select = [2, 3, 4] }, restarts = 5 }"),
    );
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out", "--only", "ckm"], 0);
    let refused = "k=2 is not selected from: `k` = 2 is less than the 3 singletons that seeds name";
    assert!(stderr.contains(refused) && stderr.contains("selected ckm on d: k=3 in 1 of 1 trial"), "{stderr}");
    let found = names(&folder.read_parquet("out/assignments.parquet"));
    assert!(found.iter().enumerate().all(|(at, names)| names.as_ref().unwrap() == SETS[at % 6]));
}
