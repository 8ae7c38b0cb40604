//! The first minute: a bundled example, and a pipeline for one's own data.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float32Array, StringArray};

use crate::common::{Folder, embeddings, numbers, repository, sets};

#[test]
fn a_demo_needs_nothing_but_the_command_and_ends_in_a_report() {
    let folder = Folder::new();
    let (stdout, _) = folder.run(&["demo"], 0);
    assert!(stdout.contains("The report: compflow-demo/digits/results/report.html\n"), "{stdout}");
    assert!(stdout.contains("k-means") && stdout.contains("  5. One trial, "), "{stdout}");
    let html = std::fs::read_to_string(folder.path("compflow-demo/digits/results/report.html")).unwrap();
    // What the guide sends people to is there under these names.
    for heading in [
        "Scores",
        "Where the points lie",
        "Which singletons make which cluster",
        "True sets against inferred sets",
    ] {
        assert!(stdout.contains(heading) && html.contains(heading), "{heading}");
    }
    folder.write("compflow-demo/digits/pipeline.toml", "name = \"mine\"\n");
    let (_, stderr) = folder.run(&["demo"], 2);
    assert!(stderr.contains("pipeline.toml is there and is not the demo's own"), "{stderr}");
}

#[test]
fn the_other_demos_are_right() {
    let folder = Folder::new();
    let host = repository().join("crates/host/demo");
    for name in ["speech", "topics"] {
        let data = repository().join("data").join(name);
        let out = folder.write(&format!("{name}/pipeline.toml"), "");
        std::fs::copy(host.join(format!("{name}.toml")), &out).unwrap();
        std::fs::copy(data.join("d2_n150_test.parquet"), out.with_file_name(format!("{name}.parquet"))).unwrap();
        let _ = std::fs::copy(data.join("g.safetensors"), out.with_file_name("g.safetensors"));
        folder.run(&["check", out.to_str().unwrap()], 0);
    }
}

#[test]
fn init_writes_a_pipeline_for_every_shipped_set_that_is_right() {
    let folder = Folder::new();
    let mut files = Vec::new();
    for name in ["digits", "omniglot", "speech", "topics"] {
        for entry in std::fs::read_dir(repository().join("data").join(name)).unwrap() {
            let path = entry.unwrap().path();
            // One of each kind: the larger ones differ in nothing that matters here.
            let small = path.to_str().is_some_and(|path| path.contains("n150_test") || path.contains("n250_test"));
            if small || path.to_str().is_some_and(|path| path.contains("k10")) {
                files.push((name, path));
            }
        }
    }
    assert_eq!(files.len(), 8, "{files:?}");
    for (at, (name, path)) in files.iter().enumerate() {
        let out = format!("{at}.toml");
        let (stdout, _) = folder.run(&["init", path.to_str().unwrap(), "--out", &out], 0);
        let pipeline = std::fs::read_to_string(folder.path(&out)).unwrap();
        folder.run(&["check", &out], 0);
        // The images of digits cover one another and texts add up; the others have a composer of their own.
        for (expected, of) in [("use = \"max\"", "digits"), ("use = \"sum\"", "topics")] {
            assert!(of != *name || pipeline.contains(expected), "{name}: {pipeline}");
        }
        for (expected, of) in [("normalize = \"none\"", "digits"), ("normalize = \"l2\"", "topics")] {
            assert!(of != *name || pipeline.contains(expected), "{name}: {pipeline}");
        }
        let k = if path.to_str().unwrap().contains("k10") { 10 } else { 5 };
        assert!(pipeline.contains(&format!("params = {{ k = {k} }}")), "{name}: {pipeline}");
        assert!(stdout.contains("rows × ") && stdout.contains("labels each"), "{stdout}");
        if *name == "omniglot" {
            assert!(pipeline.contains("g.safetensors\" }"), "weights beside the data are mentioned: {pipeline}");
            assert!(pipeline.contains("None of the simple ones predicts well here"), "{pipeline}");
        }
    }
}

#[test]
fn what_init_writes_runs() {
    let folder = Folder::new();
    let topics = repository().join("data/topics/d2_n150_test.parquet");
    folder.run(&["init", topics.to_str().unwrap()], 0);
    // One trial of the ten says whether it runs.
    let args = ["run", "pipeline.toml", "--set", "data.d2_n150_test.where={trial=0}"];
    let (stdout, stderr) = folder.run(&args, 0);
    for name in ["CKM", "CGM", "CAP", "GCR", "k-means", "acri", "union_recall"] {
        assert!(stdout.contains(name), "{name}: {stdout}{stderr}");
    }
    let (_, stderr) = folder.run(&["init", topics.to_str().unwrap()], 2);
    assert!(stderr.contains("pipeline.toml is there already; --force overwrites it"), "{stderr}");
    folder.run(&["init", topics.to_str().unwrap(), "--force"], 0);
}

/// Sixty labels, up to eight of them an example: of all sets of that many nobody could compute the centres.
#[test]
fn what_init_writes_for_many_labels_runs() {
    let folder = Folder::new();
    let member = |at: usize, part: usize| ((at * 7 + part * (at % 11 + 1)) % 60) as u32;
    let mut labels: Vec<Vec<u32>> = (0..60).flat_map(|label| [vec![label], vec![label]]).collect();
    labels.extend((0..60).map(|at| (0..at % 7 + 2).map(|part| member(at, part)).collect()));
    labels.iter_mut().for_each(|set| {
        set.sort_unstable();
        set.dedup();
    });
    let number = |label: u32, at: u32| ((label * 37 + at * 101) % 61) as f32;
    let rows: Vec<Vec<f32>> = labels
        .iter()
        .map(|set| (0..4).map(|at| set.iter().map(|label| number(*label, at)).sum()).collect())
        .collect();
    let rows = embeddings(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let labels = sets(&labels.iter().map(Vec::as_slice).collect::<Vec<_>>());
    folder.write_parquet("a.parquet", vec![("embedding", rows), ("labels", labels)]);
    let (stdout, _) = folder.run(&["init", "a.parquet"], 0);
    assert!(stdout.contains("up to 8 labels each, of 60 classes"), "{stdout}");
    let pipeline = std::fs::read_to_string(folder.path("pipeline.toml")).unwrap();
    let words: String = pipeline.lines().map(|line| line.trim_start_matches("# ").to_owned() + " ").collect();
    assert!(
        words.contains("Some examples have 8 labels, but of 60 things there are 36050 sets of up to 3"),
        "{words}"
    );
    assert!(pipeline.contains("degree = 2\n") && words.contains("2 leaves 1830 and takes minutes"), "{words}");
    assert!(pipeline.contains("use = \"ac\", params = { k = 60 }"), "sets that one example has are no groups");
    let (stdout, stderr) = folder.run(&["run", "pipeline.toml"], 0);
    assert!(stdout.contains("union_recall") && !stderr.contains("failed"), "{stdout}{stderr}");
}

/// Three blobs of ten points, well apart.
fn blobs() -> ArrayRef {
    let rows: Vec<Vec<f32>> =
        (0..30).map(|at| vec![10.0 * (at / 10) as f32 + 0.1 * (at % 10) as f32, 1.0]).collect();
    embeddings(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

#[test]
fn data_without_labels_gets_evaluators_that_need_none() {
    let folder = Folder::new();
    folder
        .write_parquet("a.parquet", vec![("vec", blobs()), ("loud", Arc::new(Float32Array::from(vec![0.5; 30])))]);
    let (stdout, _) = folder.run(&["init", "a.parquet"], 0);
    assert!(stdout.starts_with("a.parquet: found 30 rows × 2, no labels, most vectors are "), "{stdout}");
    let pipeline = std::fs::read_to_string(folder.path("pipeline.toml")).unwrap();
    assert!(pipeline.contains("columns = { embedding = \"vec\" }"), "{pipeline}");
    assert!(pipeline.contains("a guess, as there are no labels"), "{pipeline}");
    let (stdout, _) = folder.run(&["run", "pipeline.toml"], 0);
    assert!(stdout.contains("silhouette") && stdout.contains("CKM"), "{stdout}");
}

#[test]
fn labels_of_some_examples_are_seeds() {
    let folder = Folder::new();
    let names: Vec<Option<&str>> =
        (0..30).map(|at| ["x", "y"].get(at / 10).copied().filter(|_| at % 5 == 0)).collect();
    let nothing: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>; 30]));
    let columns = |labels: ArrayRef| vec![("embedding", blobs()), ("label", labels)];
    folder.write_parquet("a.parquet", columns(Arc::new(StringArray::from(names))));
    let (stdout, _) = folder.run(&["init", "a.parquet"], 0);
    assert!(stdout.contains("30 rows × 2, `label` has labels of 4 rows, with 2 names"), "{stdout}");
    let pipeline = std::fs::read_to_string(folder.path("pipeline.toml")).unwrap();
    assert!(pipeline.contains("seed = \"label\"") && pipeline.contains("what is known beforehand"), "{pipeline}");
    folder.run(&["run", "pipeline.toml", "--out", "out"], 0);
    let assignments = folder.read_parquet("out/assignments.parquet");
    assert!(assignments.column_by_name("names").is_some(), "clusters are called by the labels");

    folder.write_parquet("a.parquet", columns(nothing));
    let (stdout, _) = folder.run(&["init", "a.parquet", "--force"], 0);
    assert!(stdout.contains("note: the column `label` is left out: it is null in all examples"), "{stdout}");
    folder.run(&["check", "pipeline.toml"], 0);
}

#[test]
fn single_labels_make_a_pipeline_of_ordinary_methods() {
    let folder = Folder::new();
    let names: ArrayRef =
        Arc::new(StringArray::from((0..30).map(|at| ["x", "y", "y|z"][at / 10]).collect::<Vec<_>>()));
    folder.write_parquet("a.parquet", vec![("embedding", blobs()), ("Class", names.clone()), ("id", names)]);
    let (stdout, _) = folder.run(&["init", "a.parquet"], 0);
    assert!(stdout.contains("`Class` has one label each, of 3 classes"), "{stdout}");
    assert!(stdout.contains("note: `y|z` is taken for one label"), "{stdout}");
    assert!(stdout.contains("note: the column `id` is left out: a.parquet: rows 0 and 1 of trial 0"), "{stdout}");
    let pipeline = std::fs::read_to_string(folder.path("pipeline.toml")).unwrap();
    assert!(pipeline.contains("degree = 1") && !pipeline.contains("[composer]"), "{pipeline}");
    let (stdout, _) = folder.run(&["run", "pipeline.toml"], 0);
    assert!(stdout.contains("GMM") && stdout.contains("ari"), "{stdout}");
}

#[test]
fn init_says_what_it_cannot_know() {
    let folder = Folder::new();
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true; 30]));
    folder.write_parquet("two.parquet", vec![("a", blobs()), ("b", blobs()), ("p", flags.clone()), ("q", flags)]);
    let (_, stderr) = folder.run(&["init", "two.parquet"], 2);
    assert!(
        stderr.contains("several columns hold lists of numbers: `a` (2 numbers), `b` (2 numbers)"),
        "{stderr}"
    );
    let (stdout, _) = folder.run(&["init", "two.parquet", "--embedding", "b"], 0);
    assert!(stdout.contains("note: the columns `p`, `q` hold true and false"), "{stdout}");
    folder.write("notes.txt", "");
    let (_, stderr) = folder.run(&["init", "notes.txt", "--out", "n.toml"], 2);
    assert!(stderr.contains("init looks at .parquet, .arrow, .csv, .tsv, .jsonl or .npy files"), "{stderr}");
    let (_, stderr) = folder.run(&["init", "gone.parquet", "--out", "n.toml"], 2);
    assert_eq!(stderr, "error: gone.parquet: there is no such file\n");
    assert!(!folder.path("n.toml").exists());
}

/// Twelve segments of two who speak in turn and at once, which begin at these times.
fn talk(folder: &Folder, start: impl Fn(usize) -> usize) {
    let row = |at: usize| {
        let (numbers, who, flags) =
            [("1,0", "ann", "1,0"), ("0,1", "ben", "0,1"), ("1,1", "ann+ben", "1,1")][at % 3];
        format!("{at},{numbers},talk,{},{},{who},{flags}\n", start(at), at + 1)
    };
    let rows: String = (0..12).map(row).collect();
    folder.write("talk.csv", &format!("id,d0,d1,file,start,end,who,is_ann,is_ben\n{rows}"));
}

#[test]
fn init_sees_segments_texts_to_take_apart_flags_and_weights_that_fit() {
    let folder = Folder::new();
    talk(&folder, |at| at);
    let weights = repository().join("data/omniglot/g.safetensors");
    std::fs::copy(weights, folder.path("g.safetensors")).unwrap();
    let init = |more: &[&str], code: i32| {
        let args = [&["init", "talk.csv", "--force"], more].concat();
        let (stdout, stderr) = folder.run(&args, code);
        (stdout + &stderr, std::fs::read_to_string(folder.path("pipeline.toml")).unwrap_or_default())
    };
    let (said, pipeline) = init(&["--split", "+"], 0);
    assert!(said.contains("the texts of the column `who` are taken for labels with `+` between them"), "{said}");
    assert!(
        pipeline.contains("truth = \"who\", id = \"id\", file = \"file\", start = \"start\", end = \"end\""),
        "{pipeline}"
    );
    assert!(pipeline.contains("labels  = { split = \"+\" }") && pipeline.contains("use = \"der\""), "{pipeline}");
    assert!(pipeline.contains("[composer]") && !pipeline.contains("safetensors"), "its weights are of 32 numbers");
    folder.run(&["check", "pipeline.toml"], 0);
    assert!(init(&["--split", ";"], 2).0.contains("there is nothing to take apart, and no text has `;` in it"));
    assert!(
        init(&["--split", "+", "--truth", "none"], 2).0.contains("leave it out, or let --truth name a column")
    );
    let (said, pipeline) = init(&[], 0);
    assert!(
        said.contains("`is_ann`, `is_ben` hold 0 and 1; if they are labels, --truth 'is_*' takes them"),
        "{said}"
    );
    assert!(!pipeline.contains("split") && !pipeline.contains("\"der\""), "{pipeline}");
    talk(&folder, |_| 0);
    let (said, pipeline) = init(&["--truth", "is_*"], 0);
    assert!(
        said.contains("note: the columns `file`, `start`, `end` are left out: ") && !pipeline.contains("jer"),
        "{said}"
    );
    folder.run(&["check", "pipeline.toml"], 0);
}

#[test]
fn without_labels_everything_that_is_given_a_number_finds_it() {
    let folder = Folder::new();
    let rows: Vec<Vec<f32>> = (0..60).map(|at| vec![10.0 * (at % 3) as f32, 0.1 * (at % 7) as f32]).collect();
    let rows = embeddings(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
    folder.write_parquet("a.parquet", vec![("embedding", rows)]);
    folder.run(&["init", "a.parquet"], 0);
    let pipeline = std::fs::read_to_string(folder.path("pipeline.toml")).unwrap();
    assert!(pipeline.contains("base = { use = \"ac\", params = { k = \"auto\" } }"), "{pipeline}");
    folder.run(&["check", "pipeline.toml"], 0);
}

#[test]
fn init_takes_parts_of_one_set_as_a_pattern_and_finds_them_from_another_folder() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("my data")).unwrap();
    std::fs::create_dir_all(folder.path("pipelines")).unwrap();
    for part in 1..3 {
        folder.write_parquet(&format!("my data/part-{part}.parquet"), vec![("embedding", blobs())]);
    }
    folder.run(&["init", "my data/part-*.parquet", "--out", "pipelines/p.toml"], 0);
    let pipeline = std::fs::read_to_string(folder.path("pipelines/p.toml")).unwrap();
    assert!(pipeline.contains("path    = \"../my data/part-*.parquet\""), "{pipeline}");
    folder.run(&["check", "pipelines/p.toml"], 0);
}

/// True sets, as lists of strings.
fn people() -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for set in [&["anna"][..], &["anna", "ben"], &["ben"], &[]] {
        set.iter().for_each(|name| lists.values().append_value(name));
        lists.append(true);
    }
    Arc::new(lists.finish())
}

#[test]
fn eval_takes_the_labels_of_other_tools_and_matches_them_by_id() {
    let folder = Folder::new();
    let ids = |ids: [&str; 4]| -> ArrayRef { Arc::new(StringArray::from(ids.to_vec())) };
    folder.write_parquet("truth.parquet", vec![("id", ids(["1", "2", "3", "4"])), ("labels", people())]);
    // The same in another order: a column for each label, and strings.
    let (first, second) = (numbers(&[0, 0, 1, 1]), Arc::new(BooleanArray::from(vec![false, true, true, false])));
    let age = numbers(&[31, 32, 33, 34]);
    folder.write_parquet(
        "flags.parquet",
        vec![("id", numbers(&[4, 3, 2, 1])), ("spk_a", first), ("spk_b", second), ("age", age)],
    );
    folder.write_parquet(
        "texts.parquet",
        vec![("id", numbers(&[4, 3, 2, 1])), ("who", Arc::new(StringArray::from(vec!["", "b", "b; a", "a"])))],
    );
    let all_right = "trial,cri,acri\n0,1,1\n";
    let eval = |args: &[&str], code: i32| {
        folder.run(&[&["eval"], args, &["truth.parquet", "--evaluator", "cri", "--format", "csv"]].concat(), code)
    };
    assert_eq!(eval(&["flags.parquet:spk_*"], 0).0, all_right);
    assert_eq!(eval(&["flags.parquet:spk_a,spk_b"], 0).0, all_right);
    assert_eq!(eval(&["texts.parquet:who", "--split", ";"], 0).0, all_right);
    let (_, stderr) = eval(&["texts.parquet:who"], 2);
    assert!(
        stderr.contains("`b; a` is one text, and seems to be several labels\n") && stderr.contains("--split ';'"),
        "{stderr}"
    );
    assert_ne!(eval(&["flags.parquet:spk_*", "--order"], 0).0, all_right);

    let (_, stderr) = eval(&["flags.parquet:spk_a,age"], 2);
    assert!(stderr.contains("flags.parquet: row 0: the column `age` is 31, and labels are 0 or 1"), "{stderr}");
    let (_, stderr) = eval(&["flags.parquet:spk_*", "--split", ";"], 2);
    assert!(stderr.contains("--split is for columns of strings"), "{stderr}");
    let (_, stderr) = eval(&["flags.parquet:speaker*"], 2);
    assert!(stderr.contains("flags.parquet: there is no column `speaker*`; available: `id`, `spk_a`"), "{stderr}");
}

#[test]
fn eval_says_what_it_takes_for_labels_and_which_examples_are_missing() {
    let folder = Folder::new();
    let truth = [&[0][..], &[1], &[0, 1], &[1], &[0], &[1], &[0]];
    folder.write_parquet("truth.parquet", vec![("labels", sets(&truth)), ("id", numbers(&[1, 2, 3, 4, 5, 6, 7]))]);
    let (a, b) = (numbers(&[1, 0]), numbers(&[0, 1]));
    folder.write_parquet("pred.parquet", vec![("a", a), ("b", b), ("id", numbers(&[1, 9]))]);
    let (_, stderr) = folder.run(&["eval", "pred.parquet", "truth.parquet"], 2);
    assert!(stderr.contains("pred.parquet: its labels are the columns a, b\n"), "{stderr}");
    assert!(
        stderr.contains(
            "trial 0: 6 of 7 true examples have no prediction: id 2, 3, 4, 5, 6, … (6 in all); \
             1 of 2 predictions are of no true example: id 9"
        ),
        "{stderr}"
    );
}

/// Singles and pairs of four labels, where a pair lies at the maximum.
fn covering(folder: &Folder, name: &str, more: &str, row: impl Fn(usize, &[usize]) -> String) {
    let sets: Vec<Vec<usize>> =
        (0..4).flat_map(|a| (a..4).map(move |b| if a == b { vec![a] } else { vec![a, b] })).collect();
    let mut text = format!("d0,d1,d2,d3,{more}\n");
    for at in 0..40 {
        let set = &sets[at % sets.len()];
        let number = |axis: usize| if set.contains(&axis) { 3.0 } else { 0.01 * (at % 7) as f64 };
        let numbers: Vec<String> = (0..4).map(|axis| number(axis).to_string()).collect();
        text += &format!("{},{}\n", numbers.join(","), row(at, set));
    }
    folder.write(name, &text);
}

fn joined(set: &[usize]) -> String {
    set.iter().map(|label| ["ann", "ben", "cem", "dua"][*label]).collect::<Vec<_>>().join("+")
}

#[test]
fn what_init_writes_is_called_as_its_file_and_leaves_out_examples_of_nothing_if_there_are_some() {
    let folder = Folder::new();
    let truth: Vec<&[u32]> = (0..30).map(|at| [&[0][..], &[1], &[]][at / 10]).collect();
    folder.write_parquet("a.parquet", vec![("embedding", blobs()), ("labels", self::sets(&truth))]);
    let (stdout, _) = folder.run(&["init", "a.parquet", "--out", "mine.toml"], 0);
    assert!(stdout.contains("compflow report results/mine\n"), "{stdout}");
    let pipeline = std::fs::read_to_string(folder.path("mine.toml")).unwrap();
    assert!(pipeline.contains("name   = \"mine\"\n") && pipeline.contains("name    = \"a\"\n"), "{pipeline}");
    folder.run(&["init", "a.parquet"], 0);
    let pipeline = std::fs::read_to_string(folder.path("pipeline.toml")).unwrap();
    assert!(pipeline.contains("name   = \"a\"\n"), "{pipeline}");

    let all: Vec<&[u32]> = (0..30).map(|at| [&[0][..], &[1], &[0, 1]][at / 10]).collect();
    let none: Vec<&[u32]> = [&[&[][..]], &all[1..]].concat();
    for (name, truth, outliers) in [("all", all, false), ("none", none, true)] {
        let (data, out) = (format!("{name}.parquet"), format!("{name}.toml"));
        folder.write_parquet(&data, vec![("embedding", blobs()), ("labels", self::sets(&truth))]);
        folder.run(&["init", &data, "--out", &out], 0);
        let pipeline = std::fs::read_to_string(folder.path(&out)).unwrap();
        assert_eq!(pipeline.contains("params = { k = 2, outliers = true }"), outliers, "{pipeline}");
        folder.run(&["check", &out], 0);
    }
}

#[test]
fn results_of_another_pipeline_with_the_same_name_are_not_replaced_without_a_word() {
    let folder = Folder::new();
    folder.write("a.toml", crate::common::SMALL);
    folder.write("b.toml", &crate::common::SMALL.replace("k = 6", "k = 5"));
    let said = |file: &str| folder.run(&["run", file], 0).1;
    assert!(!said("a.toml").contains("replaced"));
    assert!(!said("a.toml").contains("replaced"), "its own");
    let stderr = said("b.toml");
    assert!(stderr.contains("a.toml in results/small, a pipeline with the same name, are replaced"), "{stderr}");
    // One that has another name by now is no other.
    std::fs::rename(folder.path("b.toml"), folder.path("c.toml")).unwrap();
    assert!(!said("c.toml").contains("replaced"));
}

#[test]
fn what_was_hardly_meant_so_is_said() {
    let folder = Folder::new();
    let truth: Vec<&[u32]> = (0..30).map(|at| [&[0][..], &[1], &[0, 1, 2]][at / 10]).collect();
    folder.write_parquet("a.parquet", vec![("embedding", blobs()), ("labels", self::sets(&truth))]);
    folder.run(&["init", "a.parquet"], 0);
    let (_, stderr) = folder.run(&["check", "pipeline.toml"], 0);
    assert!(!stderr.contains("degree"), "{stderr}");
    let (_, stderr) = folder.run(&["check", "pipeline.toml", "--set", "degree=2"], 0);
    assert!(stderr.contains("10 of 30 true sets have more labels than the degree, 2"), "{stderr}");
    let args = ["run", "pipeline.toml", "--only", "CAP", "--set", "clusterer.CAP.preference=5"];
    let (_, stderr) = folder.run(&args, 0);
    assert!(stderr.contains("every example is an exemplar; `preference = { k = 5 }` asks for 5"), "{stderr}");
}

#[test]
fn init_says_why_columns_of_usual_names_are_passed_over() {
    let folder = Folder::new();
    covering(&folder, "a.csv", "labels,trial", |at, set| format!("{}.5,day{}", set.len(), at % 2));
    let (stdout, _) = folder.run(&["init", "a.csv"], 0);
    assert!(
        stdout.contains(
            "note: the column `trial` is passed over: it holds texts, and trials are whole numbers; number them"
        ),
        "{stdout}"
    );
    assert!(
        stdout.contains("note: the column `labels` is passed over: it holds floating-point numbers"),
        "{stdout}"
    );
    // 0 and 1 may well be written as floating-point numbers.
    covering(&folder, "b.csv", "ann,ben,score", |_, set| {
        format!("{}.0,{}.0,0.5", u8::from(set.contains(&0)), u8::from(set.contains(&1)))
    });
    let (stdout, _) = folder.run(&["init", "b.csv", "--force"], 0);
    assert!(
        stdout.contains("the columns `ann`, `ben` hold 0 and 1; if they are labels, --truth 'ann,ben'"),
        "{stdout}"
    );
}

#[test]
fn what_is_known_beforehand_has_room_beside_true_labels() {
    let folder = Folder::new();
    covering(&folder, "a.csv", "labels,known", |at, set| {
        let known = match at {
            0 => "ann+ben+cem".to_owned(),
            1..=4 => format!("p{at}"),
            _ => String::new(),
        };
        format!("{},{known}", joined(set))
    });
    folder.run(&["init", "a.csv", "--split", "+"], 0);
    let pipeline = std::fs::read_to_string(folder.path("pipeline.toml")).unwrap();
    assert!(pipeline.contains("degree = 3\n") && pipeline.contains("k = 7"), "{pipeline}");
    folder.run(&["check", "pipeline.toml"], 0);
}

#[test]
fn init_judges_composers_by_whatever_labels_there_are() {
    let folder = Folder::new();
    covering(&folder, "a.csv", "labels", |_, set| joined(set));
    covering(&folder, "none.csv", "what", |_, _| "x".to_owned());
    covering(&folder, "some.csv", "known", |at, set| if at < 20 { joined(set) } else { String::new() });
    for files in [&["a.csv", "none.csv"][..], &["none.csv", "a.csv"], &["some.csv"]] {
        folder.run(&[&["init", "--force"], files].concat(), 0);
        let pipeline = std::fs::read_to_string(folder.path("pipeline.toml")).unwrap();
        assert!(pipeline.contains("Judged by the labels:"), "{files:?}: {pipeline}");
        assert!(pipeline.contains("Unions are predicted as"), "{files:?}: {pipeline}");
    }
}

#[cfg(unix)]
#[test]
fn init_makes_a_pipeline_of_files_of_any_name_or_says_why_not() {
    let folder = Folder::new();
    for name in [".hidden.csv", "a\\b.csv", "two\nlines.csv", "we\"ird 'name'.csv"] {
        covering(&folder, name, "labels", |_, set| joined(set));
        folder.run(&["init", name, "--force", "--split", "+"], 0);
        folder.run(&["check", "pipeline.toml"], 0);
    }
    covering(&folder, "${HOME}.csv", "labels", |_, set| joined(set));
    let (_, stderr) = folder.run(&["init", "${HOME}.csv", "--force"], 2);
    assert!(
        stderr.contains("its path has `${` in it, which stands for a variable in a pipeline: rename it"),
        "{stderr}"
    );
}

#[test]
fn eval_takes_all_columns_of_0_and_1_and_says_what_it_leaves_out() {
    let folder = Folder::new();
    folder.write_parquet("truth.parquet", vec![("labels", people())]);
    let right = "trial,cri,acri\n0,1,1\n";
    let eval = |more: &[&str], code: i32| {
        let args = ["eval", "pred.csv", "truth.parquet", "--evaluator", "cri", "--format", "csv"];
        folder.run(&[&args, more].concat(), code)
    };
    let pred = |rows: [&str; 4]| folder.write("pred.csv", &format!("a,b,correct,age,note\n{}\n", rows.join("\n")));
    pred(["1,0.0,false,31,x", "1,1.0,false,32,y", "0,1.0,false,33,z", "0,0.0,false,34,"]);
    let (stdout, stderr) = eval(&[], 0);
    assert_eq!(stdout, right);
    assert!(
        stderr.contains("pred.csv: its labels are the columns a, b, correct; left out: age, note\n"),
        "{stderr}"
    );
    pred(["1,0,false,31,x", "1,,false,32,y", "0,1,false,33,z", "0,0,false,34,"]);
    let (_, stderr) = eval(&[], 2);
    assert!(
        stderr.contains("row 1: the column `b` is null, and labels are 0 or 1")
            && stderr.contains("write 0 where"),
        "{stderr}"
    );
}

#[test]
fn eval_says_how_rows_are_matched_and_has_a_way_out_of_trials() {
    let folder = Folder::new();
    let (truth, pred) = ("trial,id,labels\nx,1,a\nx,2,b\ny,1,a\n", "trial,clusters\nx,7\nx,8\ny,7\n");
    folder.write("truth.csv", truth);
    folder.write("pred.csv", pred);
    let (_, stderr) = folder.run(&["eval", "pred.csv", "truth.csv"], 2);
    assert!(
        stderr.contains("found text") && stderr.contains("--trial '' scores all rows as one trial"),
        "{stderr}"
    );
    let args = ["eval", "pred.csv", "truth.csv", "--trial", "", "--evaluator", "cri", "--format", "csv"];
    let (stdout, stderr) = folder.run(&args, 0);
    assert_eq!(stdout, "trial,cri,acri\n0,1,1\n");
    assert!(stderr.contains("rows are matched by their order, as the other file has no column `id`"), "{stderr}");
    assert!(!folder.run(&[&args[..], &["--order"]].concat(), 0).1.contains("matched"), "who says so knows");
}

#[test]
fn a_prediction_is_not_called_the_truth_nor_a_list_of_flags_a_set() {
    let folder = Folder::new();
    folder.write("truth.csv", "labels\na\nb\na\n");
    folder.write("pred.csv", "clusters\na;b\nb\na\n");
    let (_, stderr) = folder.run(&["eval", "pred.csv", "truth.csv"], 2);
    assert!(
        stderr.contains("row 0: the set `a;b` is one text") && stderr.contains("--split ';' takes it apart"),
        "{stderr}"
    );
    assert!(!stderr.contains("[[data]]"), "{stderr}");
    folder.write_parquet("hot.parquet", vec![("clusters", sets(&[&[0, 1, 1], &[1, 0, 0], &[0, 0, 1]]))]);
    let (_, stderr) = folder.run(&["eval", "hot.parquet", "truth.csv"], 2);
    assert!(stderr.contains("row 0: the set [0, 1, 1] seems to have a 0 or 1 for every label"), "{stderr}");
}
