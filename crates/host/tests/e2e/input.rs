//! The files that people really have: the same examples, written in every way, lead to the same clusters.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;

use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, ListArray, StringArray};

use crate::common::{Folder, embeddings, finished, numbers, sets};

/// Two groups, and what lies between: embeddings are whole numbers, so that every format holds them exactly.
const ROWS: [([i32; 2], &[u32]); 8] = [
    ([0, 9], &[3]),
    ([9, 0], &[5]),
    ([1, 9], &[3]),
    ([9, 1], &[5]),
    ([9, 9], &[3, 5]),
    ([0, 8], &[3]),
    ([8, 0], &[5]),
    ([8, 9], &[3, 5]),
];

fn pipeline(loader: &str, path: &str, rest: &str) -> String {
    format!(
        "name = \"p\"\ndegree = 2\n[composer]\nuse = \"max\"\n\
         [[data]]\nname = \"d\"\nloader = \"{loader}\"\npath = \"{path}\"\n{rest}\n\
         [[clusterer]]\nuse = \"ckm\"\nparams = {{ k = 2 }}\n[[evaluator]]\nuse = \"cri\"\n"
    )
}

/// What a run of this data prints.
fn scores(folder: &Folder, loader: &str, path: &str, rest: &str) -> String {
    folder.write("p.toml", &pipeline(loader, path, rest));
    folder.run(&["run", "p.toml", "--format", "csv", "--quiet"], 0).0
}

fn lines(separator: &str, labels: &str) -> String {
    let line = |(vector, set): &([i32; 2], &[u32])| {
        let names: Vec<String> = set.iter().map(ToString::to_string).collect();
        format!("{}{separator}{}{separator}\"{}\"\n", vector[0], vector[1], names.join(labels))
    };
    format!("d0{separator}d1{separator}labels\n{}", ROWS.iter().map(line).collect::<String>())
}

fn column(at: usize) -> ArrayRef {
    Arc::new(Float32Array::from_iter_values(ROWS.iter().map(|(vector, _)| vector[at] as f32)))
}

fn whole() -> ArrayRef {
    Arc::new(FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
        ROWS.iter().map(|(vector, _)| Some(vector.map(Some))),
        2,
    ))
}

fn labels() -> ArrayRef {
    sets(&ROWS.map(|(_, set)| set))
}

const PLAIN: &str = "columns = { embedding = \"embedding\", truth = \"labels\" }";

#[test]
fn the_same_examples_in_every_format_are_clustered_alike() {
    let folder = Folder::new();
    let floats: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(
        ROWS.iter().map(|(vector, _)| Some(vector.map(|value| Some(value as f32)))),
    ));
    folder.write_parquet("floats.parquet", vec![("embedding", floats), ("labels", labels())]);
    let expected = scores(&folder, "parquet", "floats.parquet", PLAIN);
    assert!(expected.contains("d,ckm,acri,1,1,"), "{expected}");

    folder.write_parquet("whole.parquet", vec![("embedding", whole()), ("labels", labels())]);
    assert_eq!(scores(&folder, "parquet", "whole.parquet", PLAIN), expected, "whole numbers");

    let flag = |label: u32| -> ArrayRef {
        Arc::new(BooleanArray::from_iter(ROWS.iter().map(|(_, set)| Some(set.contains(&label)))))
    };
    let columns = vec![("d1", column(1)), ("is_3", flag(3)), ("d0", column(0)), ("is_5", flag(5))];
    folder.write_parquet("wide.parquet", columns);
    for columns in [
        "columns = { embedding = \"d*\", truth = \"is_*\" }",
        "columns = { embedding = [\"d0\", \"d1\"], truth = [\"is_3\", \"is_5\"] }",
    ] {
        assert_eq!(scores(&folder, "parquet", "wide.parquet", columns), expected, "{columns}");
    }

    let split = "columns = { embedding = \"d*\", truth = \"labels\" }\nlabels = { split = \",\" }";
    folder.write("t.csv", &lines(",", ","));
    assert_eq!(scores(&folder, "csv", "t.csv", split), expected);
    folder.write("t.tsv", &lines("\t", ", "));
    assert_eq!(scores(&folder, "csv", "t.tsv", split), expected);
    assert_eq!(scores(&folder, "csv", "t.csv", &split.replace("d*", "d[01]")), expected);

    let json = ROWS.map(|(vector, set)| format!("{{\"embedding\": {vector:?}, \"labels\": {set:?}}}\n")).concat();
    folder.write("t.jsonl", &json);
    assert_eq!(scores(&folder, "json", "t.jsonl", PLAIN), expected);

    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(ROWS.map(|(vector, _)| format!("{vector:?}"))));
    let sets: ArrayRef = Arc::new(StringArray::from_iter_values(ROWS.map(|(_, set)| format!("{set:?}"))));
    folder.write_parquet("texts.parquet", vec![("embedding", texts), ("labels", sets)]);
    let split = format!("{PLAIN}\nlabels = {{ split = \",\" }}");
    assert_eq!(scores(&folder, "parquet", "texts.parquet", &split), expected, "lists as texts");
}

#[test]
fn a_folder_stands_for_its_files() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("parts")).unwrap();
    for (name, rows) in [("a", 0..4), ("b", 4..8)] {
        let part = |array: ArrayRef| array.slice(rows.start, 4);
        let columns = vec![("embedding", part(whole())), ("labels", part(labels()))];
        folder.write_parquet(&format!("parts/{name}.parquet"), columns);
    }
    folder.write("parts/_SUCCESS", "");
    let printed = scores(&folder, "parquet", "parts", PLAIN);
    assert!(printed.contains("d,ckm,acri,1,1,"), "{printed}");
    let (stdout, _) = folder.run(&["init", "parts", "--out", "i.toml"], 0);
    assert!(stdout.contains("8 rows × 2 in 2 files"), "{stdout}");
    assert!(std::fs::read_to_string(folder.path("i.toml")).unwrap().contains("path    = \"parts\"\n"));
    folder.run(&["check", "i.toml"], 0);
}

#[test]
fn init_looks_at_the_identifiers_and_labels_of_all_parts() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("parts")).unwrap();
    for (name, rows) in [("a", 0..4), ("b", 4..8)] {
        let part = |array: ArrayRef| array.slice(rows.start, 4);
        let ids: Vec<u32> = (0..4).collect();
        let columns = vec![("embedding", part(whole())), ("labels", part(labels())), ("id", numbers(&ids))];
        folder.write_parquet(&format!("parts/{name}.parquet"), columns);
    }
    let (stdout, _) = folder.run(&["init", "parts", "--out", "i.toml"], 0);
    let note = "note: the column `id` is left out: parts: rows 0 and 4 of trial 0 have the same id 0";
    assert!(stdout.contains(note), "{stdout}");
    assert!(!std::fs::read_to_string(folder.path("i.toml")).unwrap().contains("id = "));
    folder.run(&["check", "i.toml"], 0);
    folder.run(&["run", "i.toml", "--only", "CKM", "--out", "o", "--quiet"], 0);
    // Every part has one of the labels alone; all of them count.
    std::fs::create_dir(folder.path("apart")).unwrap();
    for (name, label) in [("a", 0), ("b", 1), ("c", 2)] {
        let one = embeddings(&[&[label as f32, 1.0][..]; 4]);
        let columns = vec![("embedding", one), ("labels", sets(&[&[label][..]; 4]))];
        folder.write_parquet(&format!("apart/{name}.parquet"), columns);
    }
    let (stdout, _) = folder.run(&["init", "apart", "--out", "k.toml"], 0);
    assert!(stdout.contains("12 rows × 2 in 3 files, `labels` has one label each, of 3 classes"), "{stdout}");
    // A part that is unlike the others is named.
    folder.write_parquet(
        "apart/d.parquet",
        vec![("embedding", embeddings(&[&[1.0][..]])), ("labels", sets(&[&[0]]))],
    );
    let (_, stderr) = folder.run(&["init", "apart", "--out", "d.toml"], 2);
    assert!(stderr.contains("d.parquet: "), "{stderr}");
}

#[test]
fn init_takes_texts_of_numbers_and_knows_decimal_commas() {
    let folder = Folder::new();
    folder.write("t.csv", "vec,tags\n\"[0.5, 1, 2]\",a\n\"[0.25, 0, 1]\",b\n\"[0.5, 1, 1]\",a\n");
    let (stdout, _) = folder.run(&["init", "t.csv"], 0);
    assert!(stdout.contains("note: the texts of the column `vec` are taken for embeddings"), "{stdout}");
    assert!(stdout.contains("3 rows × 3, `tags` has one label each, of 2 classes"), "{stdout}");
    folder.run(&["check", "pipeline.toml"], 0);
    folder.write("two.csv", "v,w\n\"[0.5, 1, 2]\",\"[1, 2, 3]\"\n");
    let (_, stderr) = folder.run(&["init", "two.csv", "--out", "two.toml"], 2);
    assert!(stderr.contains("--embedding v takes the texts of that column"), "{stderr}");
    folder.write("comma.csv", "d0;d1\n0,5;1,25\n-1,5;2,5\n");
    let (_, stderr) = folder.run(&["init", "comma.csv", "--out", "c.toml"], 2);
    assert!(stderr.contains("the texts of `d0` and others seem to be numbers with decimal commas"), "{stderr}");
    let (_, stderr) = folder.run(&["init", "comma.csv", "--embedding", "d*", "--out", "c.toml"], 2);
    assert!(stderr.contains("write the file with points, as in 0.5"), "{stderr}");
}

#[test]
fn data_and_pipelines_come_from_standard_input() {
    let folder = Folder::new();
    folder.write_parquet("x.parquet", vec![("embedding", whole()), ("labels", labels())]);
    let piped = |args: &[&str], input: &[u8], code: i32| {
        let mut command = folder.compflow(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        finished(child.wait_with_output().unwrap(), code)
    };
    let data = std::fs::read(folder.path("x.parquet")).unwrap();
    folder.write("p.toml", &pipeline("parquet", "-", PLAIN));
    let from_data = piped(&["run", "p.toml", "--format", "csv", "--quiet"], &data, 0).0;
    let text = pipeline("parquet", "x.parquet", PLAIN);
    let from_text = piped(&["run", "-", "--format", "csv", "--quiet", "--out", "o"], text.as_bytes(), 0).0;
    assert_eq!(from_data, from_text);
    assert!(from_text.contains("d,ckm,acri,1,1,"), "{from_text}");
    let (_, stderr) = piped(&["check", "-"], b"name = 3", 2);
    assert!(stderr.contains("--> standard input:1:8"), "{stderr}");
    let (_, stderr) = piped(&["check", "-"], &vec![b'#'; (64 << 20) + 1], 2);
    assert!(stderr.contains("standard input: has more than 67108864 bytes"), "{stderr}");
    let (_, stderr) = piped(&["run", "-"], pipeline("parquet", "-", PLAIN).as_bytes(), 2);
    assert!(stderr.contains("the pipeline and its data cannot both be on standard input"), "{stderr}");
}

#[test]
fn init_assign_and_fit_composer_read_them_too() {
    let folder = Folder::new();
    folder.write("t.csv", &lines(",", "|"));
    let (stdout, _) = folder.run(&["init", "t.csv", "--out", "i.toml"], 0);
    assert!(stdout.contains("8 rows × 2, `labels` has up to 2 labels each, of 2 classes"), "{stdout}");
    assert!(stdout.contains("texts of labels are taken apart at `|`"), "{stdout}");
    let written = std::fs::read_to_string(folder.path("i.toml")).unwrap();
    assert!(
        written.contains("columns = { embedding = \"d*\", truth = \"labels\" }\nlabels  = { split = \"|\" }"),
        "{written}"
    );
    folder.run(&["run", "i.toml", "--only", "CKM", "--out", "o", "--quiet"], 0);
    let (_, stderr) = folder.run(&["assign", "o", "t.csv", "--out", "a.parquet"], 0);
    assert!(stderr.contains("8 examples to 3 sets of CKM"), "{stderr}");
    let args = ["fit-composer", "t.csv", "--out", "g.safetensors", "--split", "|", "--columns", "embedding=d*"];
    let (_, stderr) = folder.run(&args, 2);
    assert!(stderr.contains("there is only one union that can be used"), "{stderr}");
    let (stdout, _) = folder.run(&["eval", "t.csv:labels", "t.csv:labels", "--split", "|"], 0);
    assert!(stdout.contains("1.0000"), "{stdout}");
}

#[test]
fn an_empty_field_is_the_empty_set_to_eval_if_texts_are_taken_apart() {
    let folder = Folder::new();
    folder.write("truth.csv", "id,labels\n1,a;b\n2,\n3,b\n");
    folder.write("pred.csv", "id,clusters\n1,\"x;y\"\n2,\"\"\n3,y\n");
    folder.write("none.csv", "id,clusters\n1,\n2,\n3,\n");
    let eval = |pred: &str, more: &[&str], code: i32| {
        folder.run(&[&["eval", pred, "truth.csv", "--evaluator", "cri"], more].concat(), code)
    };
    let (stdout, _) = eval("pred.csv", &["--split", ";"], 0);
    assert!(stdout.contains("1.0000"), "{stdout}");
    eval("none.csv", &["--split", ";"], 0);
    let (_, stderr) = eval("pred.csv", &[], 2);
    assert!(stderr.contains("pred.csv: row 1: the set is null") && stderr.contains("with --split"), "{stderr}");
    assert!(!stderr.contains("seed"), "{stderr}");
}
