//! Segments of recordings: who speaks when, scored and exported.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array, StringArray};

use crate::common::{Folder, embeddings, numbers, repository, sets, texts};

/// Two recordings, each of two people who speak in turn and at once.
const TRUTH: [&[u32]; 8] = [&[0], &[0], &[0, 1], &[1], &[1], &[0], &[1], &[0, 1]];

fn strings(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn floats(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

/// Writes segments of these recordings and times.
fn write_segments(folder: &Folder, files: &[&str; 8], start: &[f64; 8], end: &[f64; 8]) {
    // Unions are the larger of both.
    let of =
        |set: &[u32]| -> Vec<f32> { (0..2).map(|speaker| f32::from(u8::from(set.contains(&speaker)))).collect() };
    let rows: Vec<Vec<f32>> = TRUTH.iter().map(|set| of(set)).collect();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let columns = vec![
        ("embedding", embeddings(&rows)),
        ("who", sets(&TRUTH)),
        ("recording", strings(files)),
        ("from", floats(start)),
        ("to", floats(end)),
        ("n", numbers(&[0, 1, 2, 3, 4, 5, 6, 7])),
    ];
    folder.write_parquet("talk.parquet", columns);
}

const FILES: [&str; 8] = ["a", "a", "a", "a", "a", "b", "b", "b"];
const START: [f64; 8] = [0.5, 2.0, 3.5, 4.0, 6.0, 0.0, 1.0, 2.0];
const END: [f64; 8] = [2.0, 3.5, 4.0, 5.5, 7.25, 1.0, 2.0, 4.0];

const COLUMNS: &str =
    "embedding = \"embedding\", truth = \"who\", file = \"recording\", start = \"from\", end = \"to\"";

fn pipeline(columns: &str, evaluators: &[&str]) -> String {
    let evaluators: String =
        evaluators.iter().map(|name| format!("[[evaluator]]\nuse = \"{name}\"\n\n")).collect();
    format!(
        "name = \"talk\"\nseed = 1\n\n[composer]\nuse = \"max\"\n\n[[data]]\nname = \"talk\"\nloader = \"parquet\"\n\
         path = \"talk.parquet\"\ncolumns = {{ {columns} }}\n\n[[clusterer]]\nname = \"CKM\"\nuse = \"ckm\"\n\
         params = {{ k = 2 }}\n\n{evaluators}"
    )
}

/// The metrics of a run by clusterer and name.
fn scores(folder: &Folder, run: &str) -> BTreeMap<(String, String), f64> {
    let table = folder.read_parquet(&format!("{run}/metrics.parquet"));
    let values = table.column_by_name("value").unwrap().as_primitive::<Float64Type>().values().to_vec();
    let names = texts(&table, "clusterer").into_iter().zip(texts(&table, "metric"));
    names.map(|(clusterer, metric)| (clusterer.to_owned(), metric.to_owned())).zip(values).collect()
}

/// A talk that CKM finds out and k-means cannot.
fn talk() -> Folder {
    let folder = Folder::new();
    write_segments(&folder, &FILES, &START, &END);
    let two = "[[clusterer]]\nname = \"KM\"\nuse = \"kmeans\"\nparams = { k = 2 }\n";
    folder.write("talk.toml", &(pipeline(COLUMNS, &["der", "jer"]) + two));
    folder.run(&["run", "talk.toml", "--out", "run", "--quiet"], 0);
    folder
}

#[test]
fn overlaps_are_found_by_unions_and_missed_without() {
    let folder = talk();
    let scores = scores(&folder, "run");
    let score = |clusterer: &str, metric: &str| scores[&(clusterer.to_owned(), metric.to_owned())];
    for metric in ["der", "missed", "false_alarm", "confusion", "jer"] {
        assert!(score("CKM", metric).abs() < 1e-12, "{metric}: {scores:?}");
    }
    // 2.5 of 12.75 + 1.5 s of speech are a second speaker's, and one cluster is all that an example has.
    let spoken = START.iter().zip(END).zip(TRUTH).map(|((start, end), set)| (end - start) * set.len() as f64);
    assert!((score("KM", "missed") - 2.5 / spoken.sum::<f64>()).abs() < 1e-12, "{scores:?}");
    assert!(score("KM", "der") >= score("KM", "missed"));
}

#[test]
fn turns_are_exported_as_rttm_and_say_what_was_scored() {
    let folder = talk();
    let (text, _) = folder.run(&["export", "rttm", "run", "--clusterer", "CKM"], 0);
    // The first to speak alone is the first cluster.
    let expected = "\
SPEAKER a 1 0.500 3.500 <NA> <NA> speaker0 <NA> <NA>
SPEAKER a 1 3.500 2.000 <NA> <NA> speaker1 <NA> <NA>
SPEAKER a 1 6.000 1.250 <NA> <NA> speaker1 <NA> <NA>
SPEAKER b 1 0.000 1.000 <NA> <NA> speaker0 <NA> <NA>
SPEAKER b 1 1.000 3.000 <NA> <NA> speaker1 <NA> <NA>
SPEAKER b 1 2.000 2.000 <NA> <NA> speaker0 <NA> <NA>
";
    assert_eq!(text, expected);
    // k-means misses the second speaker of overlaps: what its turns lack is what was scored as missed.
    folder.run(&["export", "rttm", "run", "--clusterer", "KM", "--out", "km.rttm"], 0);
    let (_, stderr) = folder.run(&["export", "rttm", "run", "--clusterer", "KM", "--out", "no/km.rttm"], 2);
    assert_eq!(stderr, "error: --out: there is no folder no\n");
    let seconds = |text: &str| -> f64 {
        text.lines().map(|line| line.split(' ').nth(4).unwrap().parse::<f64>().unwrap()).sum()
    };
    let (all, found) = (seconds(expected), seconds(&std::fs::read_to_string(folder.path("km.rttm")).unwrap()));
    let missed = scores(&folder, "run")[&("KM".to_owned(), "missed".to_owned())];
    assert!((missed - (all - found) / all).abs() < 1e-12, "{missed}, {found} of {all} s");
}

#[test]
fn exporting_says_what_to_choose_and_what_is_missing() {
    let folder = talk();
    let refused = |args: &[&str]| folder.run(&[&["export", "rttm"], args].concat(), 2).1;
    assert_eq!(refused(&["run"]), "error: choose with --clusterer: `CKM`, `KM`\n");
    assert_eq!(
        refused(&["run", "--clusterer", "CAP"]),
        "error: the run has no clusterer `CAP`; it has `CKM`, `KM`\n"
    );
    assert_eq!(
        refused(&["run", "--clusterer", "KM", "--trial", "3"]),
        "error: the run has no trial `3`; it has `0`\n"
    );
    folder.write("plain.toml", &pipeline("embedding = \"embedding\", truth = \"who\"", &["cri"]));
    folder.run(&["run", "plain.toml", "--out", "plain", "--quiet"], 0);
    assert_eq!(
        refused(&["plain"]),
        "error: data `talk` has no `file`: name the columns of its segments and run again, \
         `columns = { …, file = …, start = …, end = … }`\n"
    );
    // Times that have changed since would be those of other turns.
    write_segments(&folder, &FILES, &START.map(|start| start + 0.25), &END.map(|end| end + 0.25));
    assert_eq!(refused(&["run", "--clusterer", "CKM"]), "error: talk.parquet has changed since the run\n");
}

#[test]
fn a_recording_in_two_trials_needs_a_choice() {
    let folder = Folder::new();
    write_segments(&folder, &FILES, &START, &END);
    let name = |trial: &str| format!("{COLUMNS}, trial = \"{trial}\"");
    folder.write(
        "talk.toml",
        &pipeline(&name("n"), &["der"])
            .replace("use = \"ckm\"\nparams = { k = 2 }", "use = \"ckm\"\nparams = { k = 1 }"),
    );
    folder.run(&["run", "talk.toml", "--out", "run", "--quiet"], 0);
    let (_, stderr) = folder.run(&["export", "rttm", "run"], 2);
    assert_eq!(stderr, "error: `a` is in the trials 0 and 1: choose one with --trial\n");
    let (text, _) = folder.run(&["export", "rttm", "run", "--trial", "3"], 0);
    assert_eq!(text, "SPEAKER a 1 4.000 1.500 <NA> <NA> speaker0 <NA> <NA>\n");
}

#[test]
fn segments_that_make_no_sense_are_refused_by_their_row() {
    let folder = Folder::new();
    let refused = |files: &[&str; 8], start: &[f64; 8], end: &[f64; 8]| {
        write_segments(&folder, files, start, end);
        folder.write("talk.toml", &pipeline(COLUMNS, &["der"]));
        folder.run(&["check", "talk.toml"], 2).1.lines().next().unwrap().to_owned()
    };
    let with = |times: &[f64; 8], row: usize, time: f64| {
        let mut times = *times;
        times[row] = time;
        times
    };
    assert_eq!(
        refused(&FILES, &START, &with(&END, 3, 3.75)),
        "error: data `talk`: row 3: the segment ends at 3.75 s, before it starts at 4 s"
    );
    assert_eq!(refused(&FILES, &with(&START, 6, f64::NAN), &END), "error: data `talk`: row 6: the start is NaN");
    assert_eq!(
        refused(&FILES, &START, &with(&END, 5, 1.5)),
        "error: data `talk`: rows 5 and 6 are segments of `b` that overlap from 1 to 1.5 s; \
         who speaks at once belongs in one set"
    );
}

#[test]
fn columns_that_are_not_there_are_named() {
    let folder = Folder::new();
    write_segments(&folder, &FILES, &START, &END);
    let refused = |columns: &str| {
        folder.write("talk.toml", &pipeline(columns, &["der"]));
        folder.run(&["check", "talk.toml"], 2).1
    };
    let wrong = refused(&COLUMNS.replace("\"from\"", "\"form\""));
    assert!(wrong.contains("error: `start` names the column `form`, which is not in talk.parquet\n"), "{wrong}");
    let partly = refused(&COLUMNS.replace(", end = \"to\"", ""));
    assert!(partly.contains("error: `columns` names `file`, but not `end`\n"), "{partly}");
    let unnamed = refused("embedding = \"embedding\", truth = \"who\"");
    assert!(
        unnamed
            .contains("error: a clusterer or evaluator asks for the column `end`, which is not in talk.parquet\n"),
        "{unnamed}"
    );
    assert!(unnamed.contains("name the columns: `columns = { …, file = …, start = …, end = … }`"), "{unnamed}");
}

#[test]
fn scoring_of_files_leaves_out_what_needs_times() {
    let folder = Folder::new();
    write_segments(&folder, &FILES, &START, &END);
    let (stdout, stderr) = folder.run(&["eval", "talk.parquet:who", "talk.parquet:who"], 0);
    assert!(stdout.contains("cri") && !stdout.contains("der") && stderr.is_empty(), "{stdout}{stderr}");
    let (_, stderr) = folder.run(&["eval", "talk.parquet:who", "talk.parquet:who", "--evaluator", "der"], 2);
    assert_eq!(stderr, "error: evaluator `der` needs the column `file` of the data, and here are only sets\n");
}

#[test]
fn the_shipped_conversations_are_told_apart_best_by_who_knows_unions() {
    let folder = Folder::new();
    let file = repository().join("pipelines/conversation.toml");
    let set = "data.conversations.where={ trial = 0 }";
    let only = ["--only", "CKM", "--only", "k-means", "--only", "Ward", "--only", "conversations"];
    let args = [&["run", file.to_str().unwrap(), "--out", "run", "--quiet", "--set", set], &only[..]].concat();
    folder.run(&args, 0);
    let scores = scores(&folder, "run");
    let score = |clusterer: &str| scores[&(clusterer.to_owned(), "der".to_owned())];
    assert!(score("CKM") < 0.1 && score("k-means") > 0.15 && score("Ward") > 0.15, "{scores:?}");
    let (text, _) = folder.run(&["export", "rttm", "run", "--clusterer", "CKM"], 0);
    assert!(text.lines().count() > 30 && text.lines().all(|line| line.starts_with("SPEAKER conversation-0-")));
}
