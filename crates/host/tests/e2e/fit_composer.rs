//! `compflow fit-composer`: from labelled embeddings to a g that a pipeline uses.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Folder, embeddings, numbers, sets};

const DIM: usize = 4;

/// Numbers between -1 and 1 that look random and are always the same.
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / f32::from(u16::MAX) / 128.0 - 1.0
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIM).map(|_| 2.0 * self.next()).collect()
    }
}

/// A g that is none of the simple ones.
fn composed(a: &[f32], b: &[f32]) -> Vec<f32> {
    let pair = |at: usize| 0.6 * (a[at] + b[at]) - 0.2 * (a[(at + 1) % DIM] + b[(at + 1) % DIM]);
    (0..DIM).map(|at| pair(at) + 0.4 * a[at] * b[at] + 0.1).collect()
}

/// Trials of labels and all their pairs, six examples each; `place` says where a pair lies.
fn write(
    folder: &Folder,
    name: &str,
    (trials, labels, seed): (u32, u32, u64),
    place: impl Fn(&[f32], &[f32], &mut Stream) -> Vec<f32>,
) {
    let mut stream = Stream(seed);
    let (mut rows, mut truth, mut trial_of): (Vec<Vec<f32>>, Vec<Vec<u32>>, Vec<u32>) = Default::default();
    for trial in 0..trials {
        let centres: Vec<Vec<f32>> = (0..labels).map(|_| stream.vector()).collect();
        for a in 0..labels {
            for b in a..labels {
                let set = if a == b { vec![a] } else { vec![a, b] };
                let (left, right) = (&centres[a as usize], &centres[b as usize]);
                let centre = if a == b { left.clone() } else { place(left, right, &mut stream) };
                for _ in 0..6 {
                    rows.push(centre.iter().map(|value| value + 0.05 * stream.next()).collect());
                    truth.push(set.clone());
                    trial_of.push(trial);
                }
            }
        }
    }
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let truth: Vec<&[u32]> = truth.iter().map(Vec::as_slice).collect();
    let mut columns = vec![("embedding", embeddings(&rows)), ("labels", sets(&truth))];
    if trials > 1 {
        columns.push(("trial", numbers(&trial_of)));
    }
    folder.write_parquet(name, columns);
}

fn fitted_json(folder: &Folder, args: &[&str]) -> Value {
    let args = [&["fit-composer", "--out", "g.safetensors", "--json", "--quiet"], args].concat();
    serde_json::from_str(&folder.run(&args, 0).0).unwrap()
}

fn composer<'j>(judgement: &'j Value, name: &str) -> &'j Value {
    judgement["composers"].as_array().unwrap().iter().find(|composer| composer["name"] == name).unwrap()
}

/// The header of a safetensors file.
fn header(path: &Path) -> (Value, Vec<u8>) {
    let content = fs::read(path).unwrap();
    let length = u64::from_le_bytes(content[..8].try_into().unwrap()) as usize;
    (serde_json::from_slice(&content[8..8 + length]).unwrap(), content[8 + length..].to_vec())
}

#[test]
fn a_fitted_g_finds_unions_of_labels_that_nobody_had_seen() {
    let folder = Folder::new();
    write(&folder, "known.parquet", (3, 7, 1), |a, b, _| composed(a, b));
    write(&folder, "new.parquet", (2, 4, 99), |a, b, _| composed(a, b));
    let (table, warnings) = folder.run(&["fit-composer", "known.parquet", "--out", "g.safetensors"], 0);
    assert_eq!(warnings, "");
    let taken = table.lines().find(|line| line.contains("take this")).unwrap();
    assert!(taken.trim().starts_with("fitted bilinear"), "{table}");
    assert!(table.contains("use    = \"bilinear\"\nparams = { weights = \"g.safetensors\" }"), "{table}");
    folder.write(
        "p.toml",
        r#"
        [composer]
        use = "bilinear"
        params = { weights = "g.safetensors" }
        [[data]]
        name = "new"
        loader = "parquet"
        path = "new.parquet"
        columns = { embedding = "embedding", truth = "labels", trial = "trial" }
        [[clusterer]]
        use = "ckm"
        params = { k = 4 }
        [[evaluator]]
        use = "cri"
        "#,
    );
    let (csv, _) = folder.run(&["run", "p.toml", "--out", "run", "--quiet", "--format", "csv"], 0);
    let cri = csv.lines().find(|line| line.contains(",cri,")).unwrap();
    let mean: f64 = cri.split(',').nth(4).unwrap().parse().unwrap();
    assert!(mean > 0.99, "{csv}");
    // The judgement is inside the file, and a report of the run shows it.
    folder.run(&["report", "run"], 0);
    let page = fs::read_to_string(folder.path("run/report.html")).unwrap();
    assert!(page.contains("id=\"composition\"") && page.contains("fitted bilinear"));
    // A file that is another by now says nothing about the run.
    folder.run(&["fit-composer", "new.parquet", "--out", "g.safetensors", "--write", "scaled-sum"], 0);
    folder.run(&["report", "run"], 0);
    assert!(!fs::read_to_string(folder.path("run/report.html")).unwrap().contains("id=\"composition\""));
}

#[test]
fn unions_at_random_places_are_said_not_to_compose() {
    let folder = Folder::new();
    write(&folder, "random.parquet", (1, 8, 3), |_, _, stream| stream.vector());
    let (table, warnings) = folder.run(&["fit-composer", "random.parquet", "--out", "g.safetensors"], 0);
    assert!(warnings.contains("warning: composition does not hold in this data"), "{warnings}");
    assert!(table.contains("composition does not hold in this data (see the warning)"), "{table}");
    assert!(folder.path("g.safetensors").exists());
    let judgement = fitted_json(&folder, &["random.parquet"]);
    assert_eq!(judgement["holds"], false);
}

#[test]
fn a_composer_of_a_library_is_taken_where_it_is_right() {
    let folder = Folder::new();
    let max = |a: &[f32], b: &[f32], _: &mut Stream| a.iter().zip(b).map(|(a, b)| a.max(*b)).collect();
    write(&folder, "max.parquet", (1, 9, 5), max);
    let judgement = fitted_json(&folder, &["max.parquet", "--composer", "max"]);
    assert_eq!((&judgement["take"], &judgement["holds"]), (&Value::from("max"), &Value::from(true)));
    assert!(composer(&judgement, "max")["miss"].as_f64().unwrap() < 0.5);
    // Not of all: the maximum of a label and a smaller one is the label itself.
    assert!(composer(&judgement, "max")["nearest"].as_f64().unwrap() > 0.8);
    // Asked for by name, it is not judged twice.
    assert_eq!(judgement["composers"].as_array().unwrap().len(), 5);
    // A file of weights is judged like any other composer, here the one that was just written.
    let trained = r#"bilinear={"weights":"g.safetensors"}"#;
    let judgement = fitted_json(&folder, &["max.parquet", "--composer", trained]);
    let trained = composer(&judgement, r#"bilinear {"weights":"g.safetensors"}"#);
    let fitted = composer(&judgement, "fitted bilinear");
    // It has seen these unions, and those that are fitted without them have not.
    assert!(trained["error"].as_f64().unwrap() <= fitted["error"].as_f64().unwrap(), "{judgement:#}");
}

#[test]
fn the_result_does_not_depend_on_threads_and_the_scaled_sum_is_just_that() {
    let folder = Folder::new();
    write(&folder, "known.parquet", (2, 6, 1), |a, b, _| composed(a, b));
    let one = fitted_json(&folder, &["known.parquet", "--threads", "1", "--normalize", "l2"]);
    let content = fs::read(folder.path("g.safetensors")).unwrap();
    let four = fitted_json(&folder, &["known.parquet", "--threads", "4", "--normalize", "l2"]);
    assert_eq!(one, four);
    assert_eq!(content, fs::read(folder.path("g.safetensors")).unwrap());

    let judgement = fitted_json(&folder, &["known.parquet", "--write", "scaled-sum"]);
    let (header, data) = header(&folder.path("g.safetensors"));
    let inside: Value = serde_json::from_str(header["__metadata__"]["compflow"].as_str().unwrap()).unwrap();
    assert_eq!(inside, judgement);
    let tensor = |name: &str| -> Vec<f32> {
        let ends: Vec<usize> = serde_json::from_value(header[name]["data_offsets"].clone()).unwrap();
        data[ends[0]..ends[1]].chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
    };
    let c = judgement["scale"].as_f64().unwrap() as f32;
    let expected: Vec<f32> = (0..DIM * DIM).map(|at| if at % (DIM + 1) == 0 { c } else { 0.0 }).collect();
    assert_eq!(tensor("linear1.weight"), expected);
    assert!(
        ["linear1.bias", "linear2.weight", "linear2.bias"].map(tensor).concat().iter().all(|value| *value == 0.0)
    );
}

#[test]
fn columns_have_other_names_and_labels_of_files_without_trials_are_the_same() {
    let folder = Folder::new();
    let rows: Vec<Vec<f32>> = (0..12).map(|at| vec![(at % 4) as f32, (at / 4) as f32 + 0.1 * at as f32]).collect();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let half = |from: usize, truth: &[&[u32]], name: &str| {
        folder.write_parquet(name, vec![("vec", embeddings(&rows[from..from + 6])), ("tags", sets(truth))]);
    };
    // The single examples are in one file, the unions in the other.
    half(0, &[&[0], &[1], &[2], &[3], &[0], &[1]], "a.parquet");
    half(6, &[&[0, 1], &[1, 2], &[2, 3], &[0, 3], &[0, 2], &[1, 3]], "b.parquet");
    let named = ["--columns", "embedding=vec,truth=tags"];
    let judgement = fitted_json(&folder, &[&["a.parquet", "b.parquet"][..], &named].concat());
    assert_eq!((&judgement["labels"], &judgement["unions"]), (&Value::from(4), &Value::from(6)));
    let judgement = fitted_json(&folder, &[&["?.parquet"][..], &named].concat());
    assert_eq!(judgement["unions"], 6);
}

#[test]
fn labels_are_columns_of_0_and_1_by_their_names() {
    let folder = Folder::new();
    let mut text = "x,y,ann,ben,cem,who\n".to_owned();
    for at in 0..24 {
        let flags = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]][at % 6];
        let [ann, ben, cem] = flags;
        text += &format!("{}.{at},{}.{at},{ann},{ben},{cem},z\n", 2 * ann + 5 * cem, 3 * ben + cem);
    }
    folder.write("a.csv", &text);
    let judgement = fitted_json(&folder, &["a.csv", "--columns", "embedding=x,y,truth=ann,ben,cem,trial="]);
    assert_eq!((&judgement["dim"], &judgement["labels"], &judgement["unions"]), (&2.into(), &3.into(), &3.into()));
    let (_, stderr) = folder.run(&["fit-composer", "a.csv", "--out", "g", "--columns", "ann,truth=ben"], 2);
    assert!(stderr.contains("--columns takes embedding=NAME") && stderr.contains("found `ann`"), "{stderr}");
    let (_, stderr) = folder
        .run(&["fit-composer", "a.csv", "--out", "g", "--columns", "embedding=x,y,truth=ann,ben,trial=who"], 2);
    assert!(stderr.contains("--columns trial= takes all examples for one trial"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn what_is_printed_is_a_pipeline_whatever_the_file_is_called() {
    let folder = Folder::new();
    write(&folder, "a.parquet", (1, 7, 3), |a, b, _| composed(a, b));
    let (stdout, _) = folder.run(&["fit-composer", "a.parquet", "--out", "we\"ird.safetensors"], 0);
    assert!(stdout.contains(r#"params = { weights = "we\"ird.safetensors" }"#), "{stdout}");
}

#[test]
fn numpy_arrays_have_their_labels_beside_them() {
    let folder = Folder::new();
    let npy = |shape: &str, kind: &str, data: Vec<u8>| {
        let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
        let padding = 64 - (10 + header.len() + 1) % 64;
        header += &" ".repeat(padding);
        header.push('\n');
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), &data].concat()
    };
    let truth: [[u8; 3]; 6] = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]];
    let rows: Vec<f32> = truth.iter().flatten().map(|&bit| f32::from(bit)).collect();
    let bytes = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
    fs::write(folder.path("x.npy"), npy("(6, 3)", "<f4", bytes)).unwrap();
    fs::write(folder.path("x-labels.npy"), npy("(6, 3)", "|u1", truth.concat())).unwrap();
    let judgement = fitted_json(&folder, &["x.npy"]);
    assert_eq!((&judgement["labels"], &judgement["unions"]), (&Value::from(3), &Value::from(3)));
    assert_eq!(judgement["take"], "max");
    fs::remove_file(folder.path("x-labels.npy")).unwrap();
    let (_, stderr) = folder.run(&["fit-composer", "x.npy", "--out", "g.safetensors"], 2);
    assert!(
        stderr.contains("x-labels.npy: there is no such file; ") && stderr.contains("x.npy has no columns"),
        "{stderr}"
    );
}

#[test]
fn what_cannot_be_learned_from_is_refused_with_what_would_do() {
    let folder = Folder::new();
    let points: [&[f32]; 4] = [&[0.0, 1.0], &[2.0, 3.0], &[1.0, 1.0], &[4.0, 0.0]];
    let write = |name: &str, truth: &[&[u32]]| {
        folder
            .write_parquet(name, vec![("embedding", embeddings(&points[..truth.len()])), ("labels", sets(truth))]);
    };
    write("no-unions.parquet", &[&[0], &[1], &[2], &[]]);
    write("no-singles.parquet", &[&[0], &[0, 1], &[0, 2], &[0, 1]]);
    write("one.parquet", &[&[0], &[1], &[0, 1], &[0, 1]]);
    write("good.parquet", &[&[0], &[1], &[0, 1], &[0, 1]]);
    let wide: [&[f32]; 2] = [&[0.0, 1.0, 2.0], &[2.0, 3.0, 4.0]];
    folder.write_parquet("wide.parquet", vec![("embedding", embeddings(&wide)), ("labels", sets(&[&[0], &[1]]))]);
    folder.write_parquet(
        "empty.parquet",
        vec![("embedding", embeddings(&points).slice(0, 0)), ("labels", sets(&[&[0]]).slice(0, 0))],
    );
    let zeros: [&[f32]; 3] = [&[0.0, 0.0]; 3];
    folder.write_parquet(
        "zeros.parquet",
        vec![
            ("embedding", embeddings(&[zeros[0], zeros[0], zeros[0], zeros[0], zeros[0], zeros[0]])),
            ("labels", sets(&[&[0], &[1], &[2], &[0, 1], &[1, 2], &[0, 2]])),
        ],
    );
    folder.write("notes.txt", "");
    fs::create_dir(folder.path("folder")).unwrap();
    for (args, expected) in [
        (&["no-unions.parquet"][..], "there are no unions: every example has one label at most"),
        (&["no-singles.parquet"], "`1` has no example that has this label alone; add such examples"),
        (&["one.parquet"], "there is only one union that can be used"),
        (
            &["good.parquet", "wide.parquet"],
            "wide.parquet has embeddings of length 3, and good.parquet of length 2",
        ),
        (&["empty.parquet"], "there are no rows"),
        (&["zeros.parquet"], "the means of all labels are zero"),
        (
            &["one.parquet", "--columns", "truth=tags"],
            "there is no column `tags`; there are `embedding`, `labels`; --columns truth=NAME",
        ),
        (&["one.parquet", "--columns", "trial=run"], "there is no column `run`"),
        (&["one.parquet", "--columns", "weight=w"], "there is no column `w`"),
        (
            &["one.parquet", "--columns", "labels=tags"],
            "--columns takes embedding=NAME, truth=NAME, trial=NAME and weight=NAME, found `labels=tags`",
        ),
        (&["one.parquet", "--params", "[1]"], "--params takes a JSON object"),
        (&["one.parquet", "--composer", "bilinear"], "weights"),
        (&["one.parquet", "--composer", "maxx"], "did you mean `max`?"),
        (&["missing.parquet"], "missing.parquet: there is no such file"),
        (&["missing-*.parquet"], "no file matches missing-*.parquet"),
        (&["folder"], "folder: there is no .parquet, .arrow, .csv, .tsv, .jsonl or .npy file in this folder"),
        (&["notes.txt"], "expected a .parquet, .arrow, .csv, .tsv, .jsonl or .npy file"),
    ] {
        let args = [&["fit-composer", "--out", "g.safetensors"], args].concat();
        let (stdout, stderr) = folder.run(&args, 2);
        assert!(stderr.contains(expected) && stdout.is_empty(), "{args:?}: {stderr}");
    }
    let (_, stderr) = folder.run(&["fit-composer", "one.parquet", "--out", "nowhere/g.safetensors"], 2);
    assert!(stderr.contains("--out: there is no folder nowhere"), "{stderr}");
    let (_, stderr) = folder.run(&["fit-composer", "one.parquet", "--out", "folder"], 2);
    assert!(stderr.contains("--out: folder is a folder, not a file"), "{stderr}");
    assert!(!folder.path("g.safetensors").exists());
}

#[test]
fn little_data_and_constant_columns_are_fitted_with_a_word_of_warning() {
    let folder = Folder::new();
    // More dimensions than examples, and half of them constant.
    let rows: Vec<Vec<f32>> = (0..9)
        .map(|row| (0..20).map(|at| if at % 2 == 0 { 1.0 } else { ((row * 7 + at * 3) % 5) as f32 }).collect())
        .collect();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let truth: [&[u32]; 9] = [&[0], &[1], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2], &[3, 0], &[0]];
    folder.write_parquet("little.parquet", vec![("embedding", embeddings(&rows)), ("labels", sets(&truth))]);
    let (_, warnings) = folder.run(&["fit-composer", "little.parquet", "--out", "g.safetensors"], 0);
    assert!(
        warnings.contains("1 of 5 unions are left out: for example of {0, 3}, `3` has no example"),
        "{warnings}"
    );
    assert!(warnings.contains("with 3 labels there are too few labels to hold some out"), "{warnings}");
    assert!(warnings.contains("10 numbers of the embeddings are the same in all examples (0, 2, 4"), "{warnings}");
    assert!(warnings.contains("can know these labels by heart"), "{warnings}");
    assert_ne!(fitted_json(&folder, &["little.parquet"])["take"], "fitted bilinear");
    assert!(warnings.contains("there are too few unions to tell whether composition holds"), "{warnings}");
    assert!(folder.path("g.safetensors").exists());
}

/// Sums of all pairs of seven, with and without columns that are 7 in all examples.
#[test]
fn constant_columns_are_left_out_of_the_fit_and_come_back_as_they_are() {
    let folder = Folder::new();
    let mut stream = Stream(5);
    let centres: Vec<Vec<f32>> = (0..7).map(|_| [stream.vector(), stream.vector()].concat()).collect();
    let (mut rows, mut truth): (Vec<Vec<f32>>, Vec<Vec<u32>>) = Default::default();
    for a in 0..7u32 {
        for b in a..7 {
            for _ in 0..5 {
                let (left, right) = (&centres[a as usize], &centres[b as usize]);
                let pairs = left.iter().zip(right);
                let sum = pairs.map(|(x, y)| if a == b { *x } else { x + y }).map(|sum| sum + 0.1 * stream.next());
                rows.push(sum.collect());
                truth.push(if a == b { vec![a] } else { vec![a, b] });
            }
        }
    }
    let truth: Vec<&[u32]> = truth.iter().map(Vec::as_slice).collect();
    let judged = |name: &str, rows: &[Vec<f32>]| {
        let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
        folder.write_parquet(name, vec![("embedding", embeddings(&rows)), ("labels", sets(&truth))]);
        fitted_json(&folder, &[name])
    };
    let without = judged("without.parquet", &rows);
    for row in &mut rows {
        row.insert(3, 7.0);
        row.insert(5, 7.0);
    }
    let with = judged("with.parquet", &rows);
    assert!(with["warnings"][0].as_str().unwrap().contains("(3, 5, counted from 0)"), "{}", with["warnings"]);
    assert_eq!((&without["take"], &with["take"]), (&"sum".into(), &"scaled sum".into()));
    for name in ["scaled sum", "fitted bilinear"] {
        let explained = |judgement| composer(judgement, name)["explained"].as_f64().unwrap();
        assert!((explained(&with) - explained(&without)).abs() < 1e-3, "{name}: {with}");
    }
    let scale = |judgement: &Value| judgement["scale"].as_f64().unwrap();
    assert!((scale(&with) - scale(&without)).abs() < 1e-4);
}

#[test]
fn examples_that_count_for_nothing_spoil_nothing() {
    let folder = Folder::new();
    // Nine labels in the plane and the sums of all pairs, and an example of every pair that lies elsewhere.
    let (mut rows, mut truth, mut weights): (Vec<Vec<f32>>, Vec<Vec<u32>>, Vec<u32>) = Default::default();
    let mut stream = Stream(11);
    let centres: Vec<Vec<f32>> = (0..9).map(|_| stream.vector()).collect();
    for a in 0..9u32 {
        for b in a..9 {
            let (left, right) = (&centres[a as usize], &centres[b as usize]);
            let sum: Vec<f32> = left.iter().zip(right).map(|(a, b)| if b == a { *a } else { a + b }).collect();
            let set = if a == b { vec![a] } else { vec![a, b] };
            for weight in [1, 1, 0] {
                let wrong = if weight == 0 { 10.0 * stream.next() } else { 0.01 * stream.next() };
                rows.push(sum.iter().map(|value| value + wrong).collect());
                truth.push(set.clone());
                weights.push(weight);
            }
        }
    }
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let truth: Vec<&[u32]> = truth.iter().map(Vec::as_slice).collect();
    let columns = vec![("embedding", embeddings(&rows)), ("labels", sets(&truth)), ("w", numbers(&weights))];
    folder.write_parquet("a.parquet", columns);
    let nearest = |more: &[&str]| -> f64 {
        let args = [&["fit-composer", "a.parquet", "--out", "g.safetensors", "--json"], more].concat();
        let judgement: Value = serde_json::from_str(&folder.run(&args, 0).0).unwrap();
        let composers = judgement["composers"].as_array().unwrap();
        composers.iter().find(|composer| composer["name"] == "sum").unwrap()["nearest"].as_f64().unwrap()
    };
    assert_eq!(nearest(&["--columns", "weight=w"]), 1.0);
    assert!(nearest(&[]) < 1.0);
}

#[test]
fn the_space_that_suits_better_is_named() {
    // Only directions say what an example is of: lengths are drawn.
    let folder = Folder::new();
    let mut stream = Stream(5);
    let centres: Vec<Vec<f32>> = (0..7).map(|_| stream.vector()).collect();
    let mut lines = String::new();
    for a in 0..7 {
        for b in a..7 {
            for _ in 0..6 {
                let length = 3.0f32.powf(stream.next());
                let of = |at: usize| if a == b { centres[a][at] } else { centres[a][at] + centres[b][at] };
                let row: Vec<f32> = (0..DIM).map(|at| length * (of(at) + 0.05 * stream.next())).collect();
                let labels = if a == b { vec![a] } else { vec![a, b] };
                lines += &format!("{}\n", serde_json::json!({ "embedding": row, "labels": labels }));
            }
        }
    }
    fs::write(folder.path("data.jsonl"), lines).unwrap();
    let warned = |normalize: &str| {
        let judgement = fitted_json(&folder, &["data.jsonl", "--normalize", normalize]);
        let warnings = judgement["warnings"].as_array().unwrap();
        warnings.iter().filter(|text| text.as_str().unwrap().contains("may suit this data better")).count()
    };
    assert_eq!((warned("none"), warned("l2")), (1, 0));
}
