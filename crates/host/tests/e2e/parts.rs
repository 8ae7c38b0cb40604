//! A run in parts: as many processes as one likes, one results folder, and the tables of a run in one piece.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;

use crate::common::{Folder, SMALL, executable, finished, libraries, read_parquet};

/// Tunes one clusterer, selects for another, and has a point of a grid that fails.
const TUNED: &str = r#"
name = "tuned"
seed = 3

[[data]]
name = "val"
role = "tune"
loader = "synthetic"
params = { n = 45, dim = 4, k = 3, noise = 0.05, trials = 3, seed = 1 }

[[data]]
name = "made"
loader = "synthetic"
params = { n = 45, dim = 4, k = 3, noise = 0.05, trials = 3, seed = 2 }

[[clusterer]]
name = "KM"
use = "kmeans"
params = { k = { grid = [2, 3, 6, 99] }, restarts = 3 }

[[clusterer]]
name = "selects"
use = "kmeans"
params = { k = { select = [2, 6, 30] }, restarts = 2 }

[[evaluator]]
use = "cri"

[tune]
data = "val"
metric = "acri"
"#;

/// The table of cells without what differs from one computation to the next.
fn comparable(out: &Path) -> RecordBatch {
    let table = read_parquet(&out.join("runs.parquet"));
    let schema = table.schema();
    let differs = |at: &usize| ["seconds", "peak_bytes"].contains(&schema.field(*at).name().as_str());
    let kept: Vec<usize> = (0..schema.fields().len()).filter(|at| !differs(at)).collect();
    table.project(&kept).unwrap()
}

fn assert_same_tables(folder: &Folder, left: &str, right: &str) {
    assert_same(&folder.path(left), &folder.path(right));
}

/// All tables that there are, byte by byte, but for what differs from one computation to the next.
pub(crate) fn assert_same(left: &Path, right: &Path) {
    let tables = |out: &Path| {
        let names = std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".parquet")).collect::<BTreeSet<String>>()
    };
    let names = tables(left);
    assert_eq!(names, tables(right));
    let made = ["runs", "metrics", "summary", "assignments", "clusters", "singletons"];
    assert!(made.iter().all(|name| names.contains(&format!("{name}.parquet"))), "{names:?}");
    assert_eq!(comparable(left), comparable(right));
    for name in names.iter().filter(|name| *name != "runs.parquet") {
        let bytes = |out: &Path| std::fs::read(out.join(name)).unwrap();
        assert!(bytes(left) == bytes(right), "{name} differs");
    }
}

/// For scripts that run parts elsewhere.
#[test]
#[ignore = "compares the two results folders in COMPFLOW_COMPARE=LEFT:RIGHT"]
fn two_folders_hold_the_same() {
    let folders = std::env::var("COMPFLOW_COMPARE").unwrap();
    let (left, right) = folders.split_once(':').unwrap();
    assert_same(Path::new(left), Path::new(right));
}

/// Runs all parts at the same time.
fn run_parts(folder: &Folder, of: usize, more: &[&str]) -> Vec<(String, String)> {
    let children = (1..=of).map(|number| {
        let part = format!("{number}/{of}");
        let args = [&["run", "pipeline.toml", "--out", "parts", "--jobs", "1", "--part", &part], more].concat();
        folder.compflow(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    let children: Vec<_> = children.collect();
    children.into_iter().map(|child| finished(child.wait_with_output().unwrap(), 0)).collect()
}

#[test]
fn parts_at_the_same_time_and_a_run_that_assembles_them_give_the_tables_of_one_run() {
    let folder = Folder::new();
    folder.write("pipeline.toml", TUNED);
    let (single, _) = folder.run(&["run", "pipeline.toml", "--out", "single", "--quiet"], 1);
    for (phase, last) in [("tune", "run them again to test"), ("test", "writes the tables")] {
        for (stdout, stderr) in run_parts(&folder, 3, &[]) {
            assert_eq!(stdout, "");
            let line = stderr.lines().last().unwrap();
            assert!(line.contains(&format!("of phase {phase}:")) && line.ends_with(last), "{stderr}");
        }
        assert!(!folder.path("parts/runs.parquet").exists() && !folder.path("parts/run.json").exists());
    }
    let (status, _) = folder.run(&["status", "pipeline.toml", "--out", "parts"], 0);
    assert!(
        status.contains("all cells have ended") && status.contains("failed: val trial 0 KM k=99: "),
        "{status}"
    );
    let cells = std::fs::read_dir(folder.path("parts/cells")).unwrap().count();
    let (assembled, _) = folder.run(&["run", "pipeline.toml", "--out", "parts", "--quiet"], 1);
    assert_eq!(
        std::fs::read_dir(folder.path("parts/cells")).unwrap().count(),
        cells,
        "nothing was computed again"
    );
    assert_eq!(assembled, single);
    let (status, _) = folder.run(&["status", "pipeline.toml", "--out", "parts"], 0);
    assert!(status.contains("all cells have ended, and the tables are written"), "{status}");
    assert_same_tables(&folder, "single", "parts");
}

#[test]
fn tables_that_not_every_run_has_are_the_same_too() {
    let folder = Folder::new();
    let known = "[[data]]\nname = \"made\"\nloader = \"synthetic\"\nparams = { n = 90, dim = 4, k = 3, noise = 0.1, trials = 2 }\n";
    let composed =
        "[[clusterer]]\nuse = \"cgm\"\nparams = { k = 3 }\n[[clusterer]]\nuse = \"ckm\"\nparams = { k = 3 }\n";
    let head = "name = \"all\"\ndegree = 2\nmemberships = true\n[composer]\nuse = \"max\"\n";
    folder.write("pipeline.toml", &format!("{head}{known}{composed}[[evaluator]]\nuse = \"cri\"\n"));
    folder.run(&["run", "pipeline.toml", "--out", "single"], 0);
    for table in ["singletons", "densities", "traces", "memberships"] {
        assert!(folder.path(&format!("single/{table}.parquet")).exists(), "{table}");
    }
    run_parts(&folder, 3, &[]);
    folder.run(&["run", "pipeline.toml", "--out", "parts"], 0);
    assert_same_tables(&folder, "single", "parts");
}

#[test]
fn more_parts_than_cells_or_one_are_as_good() {
    let folder = Folder::new();
    folder.write("pipeline.toml", SMALL);
    folder.run(&["run", "pipeline.toml", "--out", "single"], 0);
    for of in [1, 5] {
        run_parts(&folder, of, &["--fresh"]);
        folder.run(&["run", "pipeline.toml", "--out", "parts"], 0);
        assert_same_tables(&folder, "single", "parts");
    }
}

#[test]
fn a_part_knows_its_phase() {
    let folder = Folder::new();
    folder.write("pipeline.toml", TUNED);
    let run = |more: &[&str], code| {
        let part = ["run", "pipeline.toml", "--out", "out", "--part"];
        folder.run(&[&part[..], more].concat(), code).1
    };
    let early = run(&["1/2", "--phase", "test"], 2);
    assert_eq!(
        early,
        "error: tuning has not ended: 12 of 12 cells are missing; run all parts with --phase tune first\n"
    );
    assert!(run(&["1/2", "--fresh"], 2).contains("say --phase tune or test"));
    assert!(run(&["1/2"], 0).contains("part 1/2 of phase tune: 6 cells"));
    // Half of the tuning is missing, so the same part has nothing more to do yet.
    assert!(run(&["1/2"], 0).contains("part 1/2 of phase tune: 6 cells, 5 of them kept from before, 1 failed"));
    assert!(run(&["2/2"], 0).contains("part 2/2 of phase tune: 6 cells"));
    assert!(run(&["1/2"], 0).contains("part 1/2 of phase test: 3 cells"));
    folder.write("pipeline.toml", SMALL);
    let part = ["run", "pipeline.toml", "--out", "small", "--part", "1/2", "--phase", "tune"];
    let (_, stderr) = folder.run(&part, 2);
    assert_eq!(stderr, "error: nothing is tuned: there is no `[tune]`, or no grid\n");
}

#[test]
fn a_part_that_is_not_there_is_refused() {
    let folder = Folder::new();
    folder.write("pipeline.toml", SMALL);
    for (part, says) in [
        ("9/8", "there is no part 9 of 8: parts are numbered from 1 to 8"),
        ("0/8", "there is no part 0 of 8"),
        ("1/0", "there must be at least one part"),
        ("two", "expected a part of all parts, such as 2/8"),
    ] {
        let (_, stderr) = folder.run(&["run", "pipeline.toml", "--part", part], 2);
        assert!(stderr.contains(says), "{stderr}");
    }
    let (_, stderr) = folder.run(&["run", "pipeline.toml", "--part", "1/2", "--format", "csv"], 2);
    assert!(stderr.contains("cannot be used with"), "{stderr}");
    folder.run(&["run", "pipeline.toml", "--phase", "tune"], 2);
    assert!(!folder.path("results").exists());
}

#[test]
fn a_killed_part_runs_again_and_does_only_what_is_missing() {
    let folder = Folder::new();
    folder.add_faulty();
    let slow = SMALL.replace("trials = 3", "trials = 12").replace("use = \"kmeans\"", "use = \"faulty\"");
    folder.write("slow.toml", &slow.replace("k = 6, restarts = 3", "fault = \"none\", takes = 100"));
    let part = |number: &'static str| {
        ["--plugins", "faulty", "run", "slow.toml", "--out", "parts", "--jobs", "1", "--part", number]
    };
    let mut killed = folder.compflow(&part("1/2")).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while std::fs::read_dir(folder.path("parts/cells")).map_or(0, Iterator::count) < 2 {
        assert!(started.elapsed() < Duration::from_secs(60), "no cell was kept");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (status, _) = folder.run(&["status", "slow.toml", "--out", "parts", "--json"], 0);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!((&status["parts"], &status["phases"][0]["running"]), (&1.into(), &1.into()), "{status}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let (_, stderr) = folder.run(&part("1/2"), 0);
    assert!(stderr.contains("6 cells, ") && !stderr.contains(" 0 of them kept"), "{stderr}");
    folder.run(&part("2/2"), 0);
    let whole = |out: &'static str| ["--plugins", "faulty", "run", "slow.toml", "--jobs", "2", "--out", out];
    folder.run(&whole("parts"), 0);
    folder.run(&whole("single"), 0);
    assert_same_tables(&folder, "single", "parts");
}

#[test]
fn status_counts_says_what_else_is_there_and_needs_no_data() {
    let folder = Folder::new();
    folder.write("pipeline.toml", SMALL);
    let status = |code| folder.run(&["status", "pipeline.toml", "--out", "out"], code);
    let (_, stderr) = status(2);
    assert_eq!(stderr, "error: no part of the pipeline `small` has begun in out; see `compflow run --part`\n");
    folder.run(&["run", "pipeline.toml", "--out", "out", "--part", "1/2"], 0);
    let (stdout, _) = folder.run(&["status", "pipeline.toml", "--out", "out", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let phase = serde_json::json!({ "phase": "test", "cells": 3, "done": 2, "running": 0, "failed": 0 });
    assert_eq!(json["phases"], serde_json::json!([phase]));
    assert_eq!((&json["parts"], &json["others"]), (&serde_json::json!(0), &serde_json::json!([])));
    // Another seed is another pipeline, and its cells are other cells.
    let other = ["run", "pipeline.toml", "--out", "out", "--part", "1/1", "--set", "seed=4"];
    folder.run(&other, 0);
    let (stdout, _) = status(0);
    assert!(stdout.contains("no part is at work, 1 cell left"), "{stdout}");
    let also = "also in the folder, and not used: 3 cells of another pipeline, or this one as it was\n";
    assert!(stdout.ends_with(also), "{stdout}");
    let (stdout, _) = folder.run(&["status", "pipeline.toml", "--out", "out", "--set", "seed=4"], 0);
    assert!(stdout.contains("all cells have ended"), "{stdout}");
}

#[test]
fn status_knows_of_a_run_in_one_piece_that_it_is_at_work_or_was_stopped() {
    let folder = Folder::new();
    folder.write("pipeline.toml", SMALL);
    folder.run(&["run", "pipeline.toml", "--out", "out"], 0);
    // As a run leaves it that was killed, or has not ended yet.
    std::fs::remove_file(folder.path("out/run.json")).unwrap();
    let status = |code| folder.run(&["status", "pipeline.toml", "--out", "out"], code);
    let (_, stderr) = status(2);
    assert!(
        stderr
            .contains("nor has a run in one piece ended; the folder has 3 cells of a run that was stopped or of ")
            && stderr.contains(": `compflow plan`, given the same, counts what is its own, and"),
        "{stderr}"
    );
    let lock = std::fs::File::open(folder.path("out/.lock")).unwrap();
    lock.lock().unwrap();
    let (stdout, _) = status(0);
    let said = "a run without --part is at work; how far it is, only it can say, and `compflow plan`, given the same, counts \
                what it has kept\nin the folder: 3 cells of runs in one piece";
    assert!(stdout.starts_with(said), "{stdout}");
    let (stdout, _) = folder.run(&["status", "pipeline.toml", "--out", "out", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&json["run_at_work"], &json["phases"]), (&serde_json::json!(true), &serde_json::json!([])));
}

#[test]
fn status_of_a_run_in_one_piece_that_was_killed_says_what_counts_its_cells() {
    let folder = Folder::new();
    folder.add_faulty();
    let slow = SMALL.replace("trials = 3", "trials = 12").replace("use = \"kmeans\"", "use = \"faulty\"");
    folder.write("slow.toml", &slow.replace("k = 6, restarts = 3", "fault = \"none\", takes = 100"));
    let run = ["--plugins", "faulty", "run", "slow.toml", "--out", "out", "--jobs", "1"];
    let mut killed = folder.compflow(&run).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while std::fs::read_dir(folder.path("out/cells")).map_or(0, Iterator::count) < 2 {
        assert!(started.elapsed() < Duration::from_secs(60), "no cell was kept");
        std::thread::sleep(Duration::from_millis(5));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let status = || folder.run(&["status", "slow.toml", "--out", "out"], 2).1;
    let stderr = status();
    assert!(
        stderr.starts_with("error: a run of the pipeline `small` in one piece was stopped in out, which has ")
            && stderr.ends_with(
                "`compflow plan`, given the same, counts what is its own, and `compflow run` goes on\n"
            ),
        "{stderr}"
    );
    let (plan, _) = folder.run(&["--plugins", "faulty", "plan", "slow.toml", "--out", "out"], 0);
    assert!(plan.contains("12 cells, ") && !plan.contains("12 to compute"), "{plan}");
    std::fs::remove_dir_all(folder.path("out/cells")).unwrap();
    assert!(status().contains("was stopped in out, and nothing is kept; `compflow run` begins again"));
}

#[test]
fn parts_of_another_pipeline_are_refused_at_the_first() {
    let folder = Folder::new();
    folder.write("pipeline.toml", SMALL);
    let run =
        |more: &[&str], code| folder.run(&[&["run", "pipeline.toml", "--out", "out"], more].concat(), code).1;
    run(&["--part", "1/2"], 0);
    for more in [&["--part", "2/2", "--set", "name=other"][..], &["--set", "name=other"]] {
        let stderr = run(more, 2);
        assert!(
            stderr.contains("out holds the results of the pipeline `small`, and this is `other`: choose"),
            "{stderr}"
        );
    }
    // A change that leaves it its name is one of the same pipeline.
    run(&["--part", "2/2", "--set", "seed=4"], 0);
    run(&[], 0);
}

#[test]
fn tables_are_written_if_they_are_those_of_these_cells() {
    let folder = Folder::new();
    folder.write("pipeline.toml", SMALL);
    let run = |more: &[&str]| folder.run(&[&["run", "pipeline.toml", "--out", "out"], more].concat(), 0);
    let status = |more: &[&str]| folder.run(&[&["status", "pipeline.toml", "--out", "out"], more].concat(), 0).0;
    let (missing, written) = ("a run without --part writes the tables", "and the tables are written");
    // A run in one piece has ended as well as parts have.
    run(&[]);
    assert!(status(&[]).contains(written), "{}", status(&[]));
    folder.run(&["status", "pipeline.toml", "--out", "out", "--set", "seed=4"], 2);
    run(&["--part", "1/1", "--set", "seed=4"]);
    assert!(status(&["--set", "seed=4"]).contains(missing), "those in the folder are another run's");
    run(&["--part", "1/1"]);
    assert!(status(&[]).contains(written), "{}", status(&[]));
    run(&["--set", "seed=4"]);
    assert!(status(&["--set", "seed=4"]).contains(written) && status(&[]).contains(missing));
}

/// Has a part say something else of itself.
fn edit_heartbeat(folder: &Folder, part: &str, edit: impl Fn(&mut serde_json::Value)) {
    let mut entries = std::fs::read_dir(folder.path("out/parts")).unwrap().map(|entry| entry.unwrap().path());
    let beat = entries.find(|path| path.to_str().unwrap().contains(part)).unwrap();
    let mut heartbeat: serde_json::Value = serde_json::from_slice(&std::fs::read(&beat).unwrap()).unwrap();
    edit(&mut heartbeat);
    // What says that it is what was written is computed with zeros in its place.
    let zeros = "0".repeat(64);
    heartbeat["checksum"] = zeros.clone().into();
    let text = heartbeat.to_string();
    let sum = blake3::hash(text.as_bytes()).to_hex().to_string();
    std::fs::write(&beat, text.replace(&zeros, &sum)).unwrap();
}

#[test]
fn a_part_that_was_not_heard_of_for_a_while_is_not_just_at_work() {
    let folder = Folder::new();
    folder.write("pipeline.toml", SMALL);
    folder.run(&["run", "pipeline.toml", "--out", "out", "--part", "1/2"], 0);
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    for (ago, says) in [
        // A clock that is ahead is no silence.
        (-600.0, "1 part is at work, "),
        (30.0, "1 part is at work (last heard of 3"),
        (90.0, "part 1/2 of phase test"),
    ] {
        edit_heartbeat(&folder, "part-1-of-2", |beat| {
            beat["ended"] = false.into();
            beat["heard"] = (now() - ago).into();
        });
        let (status, _) = folder.run(&["status", "pipeline.toml", "--out", "out"], 0);
        assert!(status.contains(says), "{ago} s ago: {status}");
    }
}

#[test]
fn the_time_left_is_what_those_at_work_need_whether_cells_fail_or_not() {
    let folder = Folder::new();
    folder.write("pipeline.toml", &SMALL.replace("trials = 3", "trials = 10"));
    folder.run(&["run", "pipeline.toml", "--out", "out", "--part", "1/5"], 0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    // Eight cells are left, of which two go on, and four ended in forty seconds.
    edit_heartbeat(&folder, "part-1-of-5", |beat| {
        beat["ended"] = false.into();
        (beat["started"], beat["heard"]) = ((now - 40.0).into(), now.into());
        (beat["cells"], beat["jobs"]) = (8.into(), 2.into());
        (beat["computed"], beat["failed"]) = (3.into(), 1.into());
    });
    let (stdout, _) = folder.run(&["status", "pipeline.toml", "--out", "out", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&json["parts"], &json["phases"][0]["running"]), (&1.into(), &2.into()), "{stdout}");
    let left = json["seconds_left"].as_f64().unwrap();
    assert!((left - 80.0).abs() < 1e-3, "{left}");
    let (stdout, _) = folder.run(&["status", "pipeline.toml", "--out", "out"], 0);
    assert!(stdout.contains("1 part is at work, about 1 min 2"), "{stdout}");
}

#[test]
fn a_selection_that_is_still_to_be_made_is_not_done() {
    let folder = Folder::new();
    folder.write("pipeline.toml", SMALL);
    let run = |more: &[&str]| folder.run(&[&["run", "pipeline.toml", "--out", "out"], more].concat(), 0);
    let done = || {
        let (stdout, _) = folder.run(&["status", "pipeline.toml", "--out", "out", "--json"], 0);
        let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        (json["phases"][0]["done"].as_u64().unwrap(), json["phases"][0]["cells"].as_u64().unwrap())
    };
    run(&["--part", "1/1"]);
    assert_eq!(done(), (3, 3));
    // Of each of these, one of the cells that it may come to is kept.
    for values in ["[2, 6]", "[2, 6, 4, 99]"] {
        folder.write("pipeline.toml", &SMALL.replace("k = 6", &format!("k = {{ select = {values} }}")));
        folder.run(&["slurm", "pipeline.toml", "--out", "out"], 0);
        assert_eq!(done(), (0, 3), "{values}");
        run(&["--part", "1/3"]);
        assert_eq!(done(), (1, 3), "{values}");
        // That a value cannot be had is known of it, too.
        run(&["--part", "1/1"]);
        assert_eq!(done(), (3, 3), "{values}");
    }
}

#[test]
fn tuning_without_the_score_that_it_goes_by_has_not_ended_whoever_is_asked() {
    let folder = Folder::new();
    let tuned = TUNED.replace("6, 99", "6");
    folder.write("pipeline.toml", &tuned);
    folder.run(&["run", "pipeline.toml", "--out", "out"], 0);
    let scored = tuned.replace("use = \"cri\"", "use = \"cri\"\n[[evaluator]]\nuse = \"ari\"");
    folder.write("pipeline.toml", &scored.replace("\"acri\"", "\"ari\""));
    let part = |more: &[&str], code| {
        folder.run(&[&["run", "pipeline.toml", "--out", "out", "--part"], more].concat(), code).1
    };
    let tuning = || {
        let (stdout, _) = folder.run(&["status", "pipeline.toml", "--out", "out", "--json"], 0);
        let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        json["phases"][0].clone()
    };
    let refused =
        |left: &str| format!("error: tuning has not ended: {left}; run all parts with --phase tune first\n");
    assert_eq!(part(&["1/1", "--phase", "test"], 2), refused("9 of 9 cells are not scored yet"));
    let (_, stderr) = folder.run(&["slurm", "pipeline.toml", "--out", "out"], 0);
    assert!(stderr.contains("phase tune: 9 cells, in "), "{stderr}");
    let phase =
        |done: usize| serde_json::json!({ "phase": "tune", "cells": 9, "done": done, "running": 0, "failed": 0 });
    assert_eq!(tuning(), phase(0));
    part(&["1/3", "--phase", "tune"], 0);
    assert_eq!(tuning(), phase(3));
    assert_eq!(part(&["1/1", "--phase", "test"], 2), refused("6 of 9 cells are not scored yet"));
    part(&["1/1", "--phase", "tune"], 0);
    assert_eq!(tuning(), phase(9));
    part(&["1/1", "--phase", "test"], 0);
}

#[test]
fn status_names_the_library_whose_version_differs() {
    let folder = Folder::new();
    folder.add_faulty();
    let pipeline = SMALL.replace("use = \"kmeans\"", "use = \"faulty\"").replace("k = 6, restarts = 3", "");
    folder.write("pipeline.toml", &pipeline);
    let part = ["--plugins", "faulty", "run", "pipeline.toml", "--out", "out", "--part", "1/1"];
    folder.run(&part, 0);
    // Bytes behind the end of a library change its content and nothing else.
    let library = std::fs::read_dir(folder.path("faulty")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&library).unwrap();
    bytes.extend(b"another version");
    std::fs::remove_file(&library).unwrap();
    std::fs::write(&library, bytes).unwrap();
    folder.run(&part, 0);
    let (stdout, _) = folder.run(&["status", "pipeline.toml", "--out", "out"], 0);
    let also = "and not used: 3 cells of other versions of the libraries `faulty`\n";
    assert!(stdout.contains("all cells have ended") && stdout.ends_with(also), "{stdout}");
}

#[test]
fn a_part_whose_cells_cannot_be_kept_fails_and_says_so_however_quiet() {
    let folder = Folder::new();
    folder.write("big.toml", &SMALL.replace("n = 45", "n = 3000"));
    // A limit on the size of files stands in for a full disk: there is room for what parts tell of themselves, and for no cell.
    let script = format!("ulimit -f 8; exec '{}' run big.toml --out r --part 1/1 --quiet", executable().display());
    let mut shell = std::process::Command::new("bash");
    shell.current_dir(folder.path("")).args(["-c", &script]).env("COMPFLOW_PLUGIN_PATH", libraries());
    shell.env("XDG_CACHE_HOME", crate::common::build_folder("test-cache"));
    let (stdout, stderr) = finished(shell.output().unwrap(), 1);
    assert_eq!(stdout, "");
    assert_eq!(
        stderr,
        "error: 3 of 3 cells cannot be kept in r: the file would be larger than the limit on the size of files (ulimit -f); \
         run the part again when it can be written to\n"
    );
    let (status, _) = folder.run(&["status", "big.toml", "--out", "r"], 0);
    assert!(status.contains("no part is at work, 3 cells left"), "{status}");
    let (_, stderr) = folder.run(&["run", "big.toml", "--out", "r", "--part", "1/1"], 0);
    assert!(stderr.contains("3 cells, 0 of them kept from before"), "{stderr}");
}

/// Runs the tasks of an array as Slurm would, one after the other.
fn run_array(folder: &Folder, script: &str) -> usize {
    let text = std::fs::read_to_string(folder.path(script)).unwrap();
    let array = text.lines().find_map(|line| line.strip_prefix("#SBATCH --array=1-")).unwrap();
    let tasks: usize = array.split('%').next().unwrap().parse().unwrap();
    for task in 1..=tasks {
        let mut shell = std::process::Command::new("bash");
        shell.arg(folder.path(script));
        shell.env("XDG_CACHE_HOME", crate::common::build_folder("test-cache"));
        finished(shell.env("SLURM_ARRAY_TASK_ID", task.to_string()).output().unwrap(), 0);
    }
    tasks
}

#[test]
fn the_scripts_for_slurm_run_everything() {
    let folder = Folder::new();
    folder.write("pipeline.toml", &TUNED.replace("6, 99", "6"));
    folder.run(&["run", "pipeline.toml", "--out", "single"], 0);
    let slurm = ["slurm", "pipeline.toml", "--out", "parts", "--time", "2:00:00", "--mem", "2G"];
    let more = ["--partition", "lab", "--cells-per-job", "2", "--at-once", "3", "--sbatch=--account=it"];
    let (stdout, stderr) = folder.run(&[&slurm[..], &more].concat(), 0);
    assert!(stdout.ends_with("parts/slurm/submit.sh\n"), "{stdout}");
    assert!(stderr.contains("phase tune: 9 cells, in 5 jobs of at most 2 cells; no cell is kept"), "{stderr}");
    let text = std::fs::read_to_string(folder.path("parts/slurm/tune.sbatch")).unwrap();
    for option in ["--array=1-5%3", "--time=2:00:00", "--mem=2G", "--partition=lab", "--account=it"] {
        assert!(text.contains(&format!("#SBATCH {option}\n")), "{option} is missing:\n{text}");
    }
    assert!(text.contains(&executable().display().to_string()), "{text}");
    assert!(text.contains(&format!(" --memory {} ", 3_u64 << 29)), "three quarters are for cells: {text}");
    assert_eq!(run_array(&folder, "parts/slurm/tune.sbatch"), 5);
    assert_eq!(run_array(&folder, "parts/slurm/test.sbatch"), 3);
    let mut assembly = std::process::Command::new("bash");
    assembly.arg(folder.path("parts/slurm/assemble.sbatch")).env("COMPFLOW_PLUGIN_PATH", libraries());
    assembly.env("XDG_CACHE_HOME", crate::common::build_folder("test-cache"));
    finished(assembly.output().unwrap(), 0);
    assert_same_tables(&folder, "single", "parts");
    // Now that it is known how long cells take, none of the jobs would take minutes.
    let (_, stderr) = folder.run(&["slurm", "pipeline.toml", "--out", "parts", "--set", "seed=5"], 0);
    assert!(stderr.contains("phase test: 6 cells, in 6 jobs"), "{stderr}");
    folder.run(&["run", "pipeline.toml", "--out", "parts", "--set", "seed=5", "--part", "1/3"], 0);
    let (_, stderr) = folder.run(&["slurm", "pipeline.toml", "--out", "parts", "--set", "seed=5"], 0);
    assert!(stderr.contains("phase tune: 6 cells of 9, the others being kept, in 1 job; about 0.0"), "{stderr}");
    let (_, stderr) = folder.run(&["slurm", "pipeline.toml", "--out", "new", "--max-array-size", "4"], 0);
    assert!(
        stderr.contains("phase tune: 9 cells, in 3 jobs"),
        "an array of 4 numbers its tasks from 1 to 3: {stderr}"
    );
    let slurm =
        ["slurm", "pipeline.toml", "--out", "own", "--set", "name=東京", "--mem", "4096", "--time", "UNLIMITED"];
    folder.run(&slurm, 0);
    let text = std::fs::read_to_string(folder.path("own/slurm/tune.sbatch")).unwrap();
    for option in ["--job-name=own-tune", "--mem=4096M", "--time=UNLIMITED"] {
        assert!(text.contains(&format!("#SBATCH {option}\n")), "{option} is missing:\n{text}");
    }
    let (_, stderr) = folder.run(&["slurm", "pipeline.toml", "--partition="], 2);
    assert!(stderr.contains("expected a name"), "{stderr}");
    let (_, stderr) = folder.run(&["slurm", "pipeline.toml", "--time", "soon"], 2);
    assert!(stderr.contains("expected a time as sbatch takes it"), "{stderr}");
}

#[test]
fn scripts_for_slurm_ask_for_what_was_meant_whatever_it_is_called() {
    let folder = Folder::new();
    folder.write("pipeline.toml", SMALL);
    let out = "50% of \"it's\" #1";
    let slurm =
        ["slurm", "pipeline.toml", "--out", out, "--partition", "a b", "--sbatch=--comment=#1", "--isolate"];
    folder.run(&[&slurm[..], &["--timeout", "90", "--strict", "--sbatch", "-A lab"]].concat(), 0);
    let text = std::fs::read_to_string(folder.path(out).join("slurm/test.sbatch")).unwrap();
    for option in [
        r#"/50%\ of\ \"it\'s\"\ \#1/slurm""#,
        "--output=test-%A_%a.log",
        r#""--partition=a\ b""#,
        r#""--comment=\#1""#,
        "-A lab",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with("#SBATCH ") && line.ends_with(option)),
            "{option}:\n{text}"
        );
    }
    assert!(text.contains(" --strict --isolate --timeout 90 --quiet --part "), "{text}");
    run_array(&folder, &format!("{out}/slurm/test.sbatch"));
    for wrong in [
        ["--partition", "a\nb"],
        ["--sbatch", "--comment=a\nb"],
        ["--sbatch", "account=lab"],
        ["--sbatch", "-"],
        ["--out", "a\nb"],
        ["--out", "a\\b"],
    ] {
        let (_, stderr) = folder.run(&[&["slurm", "pipeline.toml"], &wrong[..]].concat(), 2);
        assert!(
            stderr.contains("control characters") || stderr.contains("expected an option of sbatch"),
            "{stderr}"
        );
    }
    let (_, stderr) = folder.run(&["slurm", "-"], 2);
    assert!(stderr.starts_with("error: jobs cannot read the pipeline from standard input"), "{stderr}");
    let data = SMALL.replace(
        "loader = \"synthetic\"\nparams = { n = 45, dim = 4, k = 3, noise = 0.05, trials = 3 }",
        "path = \"-\"\nloader = \"csv\"",
    );
    folder.write("piped.toml", &data);
    let (_, stderr) = folder.run(&["slurm", "piped.toml"], 2);
    assert!(stderr.starts_with("error: jobs cannot read data from standard input"), "{stderr}");
}

/// What a job has of the environment if Slurm is told to hand over none of it.
fn run_bare(folder: &Folder, script: &str) -> std::process::Output {
    let mut shell = std::process::Command::new("bash");
    shell.arg(folder.path(script)).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    shell.current_dir(folder.path("results/pipeline/slurm")).env("SLURM_ARRAY_TASK_ID", "1").output().unwrap()
}

#[test]
fn jobs_have_the_folders_and_variables_that_the_pipeline_was_planned_with() {
    let folder = Folder::new();
    folder.write("da ta/made.csv", "d0,d1\n0,1\n0,1.1\n5,5\n5.1,5\n");
    let data = "[[data]]\nname = \"made\"\nloader = \"csv\"\npath = \"${DATA}/made.csv\"\ncolumns = { embedding = \"d*\" }\n";
    folder.write("pipeline.toml", &format!("{data}[[clusterer]]\nuse = \"kmeans\"\nparams = {{ k = 2 }}\n"));
    // Relative to where the user is, which is not where a job is.
    std::os::unix::fs::symlink(libraries(), folder.path("plugins")).unwrap();
    let mut slurm = folder.compflow(&["slurm", "pipeline.toml"]);
    slurm
        .env("COMPFLOW_PLUGIN_PATH", "plugins")
        .env("DATA", folder.path("da ta"))
        .env("SECRET", "not for scripts");
    finished(slurm.output().unwrap(), 0);
    let text = std::fs::read_to_string(folder.path("results/pipeline/slurm/test.sbatch")).unwrap();
    assert!(text.contains(&format!("'DATA={}'", folder.path("da ta").display())), "{text}");
    assert!(text.contains(&format!(" --plugins {} ", folder.path("plugins").display())), "{text}");
    assert!(!text.contains("SECRET") && !text.contains("not for scripts"), "{text}");
    finished(run_bare(&folder, "results/pipeline/slurm/test.sbatch"), 0);
    finished(run_bare(&folder, "results/pipeline/slurm/assemble.sbatch"), 0);
    assert_eq!(folder.read_parquet("results/pipeline/runs.parquet").num_rows(), 1);
}

#[test]
fn what_cannot_be_written_into_a_script_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let folder = Folder::new();
    let name = std::ffi::OsString::from_vec(b"pipe\xffline.toml".to_vec());
    std::fs::write(folder.path("").join(&name), SMALL).unwrap();
    let mut slurm = folder.compflow(&["slurm", "--out", "out"]);
    let (_, stderr) = finished(slurm.arg(&name).output().unwrap(), 2);
    assert!(stderr.contains("cannot be told to Slurm: it is not UTF-8"), "{stderr}");
    folder.write("pipeline.toml", SMALL);
    let plugins = folder.path("").join(std::ffi::OsString::from_vec(b"pl\xffugins".to_vec()));
    std::fs::create_dir(&plugins).unwrap();
    let mut slurm = folder.compflow(&["slurm", "pipeline.toml", "--out", "out", "--plugins"]);
    let (_, stderr) = finished(slurm.arg(&plugins).output().unwrap(), 2);
    assert!(stderr.contains("cannot be told to Slurm: it is not UTF-8"), "{stderr}");
}

#[test]
fn jobs_that_slurm_has_taken_are_cancelled_if_it_refuses_another() {
    let folder = Folder::new();
    folder.write("pipeline.toml", TUNED);
    folder.run(&["slurm", "pipeline.toml", "--out", "out"], 0);
    let sbatch = r#"#!/bin/sh
for last; do :; done
case $last in "$REFUSED"*) echo "sbatch: error: no" >&2; exit 1 ;; tune*) echo 11 ;; test*) echo "12;far" ;; *) echo 13 ;; esac
"#;
    folder.write("bin/sbatch", sbatch);
    folder.write("bin/scancel", "#!/bin/sh\necho \"$@\" >> \"$CANCELLED\"\n[ \"$1\" != \"$KEPT\" ]\n");
    for name in ["sbatch", "scancel"] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder.path("bin").join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let submit = |refused: &str, kept: &str, code: i32| {
        let before = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths(std::iter::once(folder.path("bin")).chain(std::env::split_paths(&before)));
        let mut shell = std::process::Command::new("sh");
        shell.arg(folder.path("out/slurm/submit.sh")).env("PATH", path.unwrap()).env("REFUSED", refused);
        shell.env("KEPT", kept).env("CANCELLED", folder.path("cancelled"));
        let _ = std::fs::remove_file(folder.path("cancelled"));
        let (stdout, stderr) = finished(shell.output().unwrap(), code);
        (stdout, stderr, std::fs::read_to_string(folder.path("cancelled")).unwrap_or_default())
    };
    let (stdout, stderr, cancelled) = submit("none", "", 0);
    assert_eq!((&stdout[..], &stderr[..], &cancelled[..]), ("tune 11\ntest 12\nassemble 13\n", "", ""));
    let (stdout, stderr, cancelled) = submit("assemble", "", 1);
    assert_eq!((&stdout[..], &cancelled[..]), ("", "11\n--clusters=far 12\n"));
    assert!(stderr.contains("job 11 is cancelled, as not all were taken\njob 12 is cancelled"), "{stderr}");
    let (_, stderr, _) = submit("test", "11", 1);
    assert!(stderr.ends_with("job 11 is still queued, though not all were taken: cancel it\n"), "{stderr}");
    assert_eq!(submit("tune", "", 1).2, "");
}

#[test]
fn what_is_left_after_a_failure_is_spread_over_jobs() {
    let folder = Folder::new();
    folder.write("pipeline.toml", &SMALL.replace("trials = 3", "trials = 40"));
    for part in ["1/4", "2/4", "3/4"] {
        folder.run(&["run", "pipeline.toml", "--out", "out", "--part", part], 0);
    }
    let (_, stderr) = folder.run(&["slurm", "pipeline.toml", "--out", "out", "--cells-per-job", "3"], 0);
    let says = "phase test: 10 cells of 40, the others being kept, in 5 jobs of at most 2 cells; ";
    assert!(stderr.contains(says), "{stderr}");
}

#[test]
fn a_point_of_a_grid_that_fails_does_not_keep_slurm_from_testing() {
    let folder = Folder::new();
    folder.write("pipeline.toml", TUNED);
    let slurm = |more: &[&str]| folder.run(&[&["slurm", "pipeline.toml", "--out", "out"], more].concat(), 0).1;
    assert!(slurm(&[]).contains("phase tune: 12 cells"));
    folder.run(&["run", "pipeline.toml", "--out", "out", "--part", "1/1"], 0);
    let stderr = slurm(&[]);
    assert!(!stderr.contains("phase tune") && stderr.contains("phase test: 6 cells"), "{stderr}");
    // What has not converged has failed if it is to be so; either way it has ended.
    let stderr = slurm(&["--strict"]);
    assert!(!stderr.contains("phase tune") && stderr.contains("phase test: 6 cells"), "{stderr}");
    let submit = std::fs::read_to_string(folder.path("out/slurm/submit.sh")).unwrap();
    assert!(!submit.contains("tune"), "{submit}");
    assert!(!folder.path("out/slurm/tune.sbatch").exists(), "there is nothing to tune any more");
    run_array(&folder, "out/slurm/test.sbatch");
    // A score that is not there yet is work for those who tune.
    folder.write("pipeline.toml", &TUNED.replace("use = \"cri\"", "use = \"cri\"\n[[evaluator]]\nuse = \"ari\""));
    assert!(slurm(&[]).contains("phase tune: "), "{}", slurm(&[]));
}
