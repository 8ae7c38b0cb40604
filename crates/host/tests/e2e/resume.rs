//! What was computed once is not computed again, whatever happened in between.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{Folder, SMALL, finished};

const TABLES: [&str; 5] = ["runs", "metrics", "summary", "assignments", "clusters"];

fn read(folder: &Folder, out: &str, table: &str) -> Vec<u8> {
    std::fs::read(folder.path(&format!("{out}/{table}.parquet"))).unwrap()
}

/// Cells that take a moment, so that a run can be stopped in the middle.
fn slow(trials: usize, fault: &str) -> String {
    format!(
        r#"
name = "slow"

[[data]]
name = "made"
loader = "synthetic"
params = {{ n = 20, dim = 2, k = 2, trials = {trials} }}

[[clusterer]]
use = "faulty"
params = {{ fault = "{fault}", takes = 100 }}

[[clusterer]]
use = "kmeans"
params = {{ k = 3 }}

[[evaluator]]
use = "cri"
"#
    )
}

#[test]
fn a_second_run_computes_nothing_even_if_a_table_is_gone() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    let first = folder.run(&["run", "small.toml", "--out", "out"], 0);
    // The seconds that the cells took are in `runs`: identical bytes mean that no cell ran again.
    let before: Vec<Vec<u8>> = TABLES.iter().map(|table| read(&folder, "out", table)).collect();
    std::fs::remove_file(folder.path("out/assignments.parquet")).unwrap();
    let second = folder.run(&["run", "small.toml", "--out", "out"], 0);
    assert_eq!(first.0, second.0);
    for (table, before) in TABLES.iter().zip(&before) {
        assert!(read(&folder, "out", table) == *before, "{table} differs");
    }
    folder.run(&["run", "small.toml", "--out", "out", "--fresh"], 0);
    assert!(read(&folder, "out", "runs") != before[0], "--fresh computes again");
    assert!(read(&folder, "out", "clusters") == before[4], "and finds the same");
}

/// Tables of many cells are written in several row groups, from cells that are read back.
#[test]
fn large_tables_are_the_same_however_their_cells_came() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    let run = |out: &str, more: &[&str]| {
        let grid = "clusterer.KM.max_iter={ grid = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }";
        let many = ["--set", "data.made.trials=120", "--set", grid];
        folder.run(&[&["run", "small.toml", "--out", out][..], &many, more].concat(), 0);
    };
    run("whole", &["--jobs", "1"]);
    run("several", &["--jobs", "2", "--part", "2/3"]);
    run("several", &["--jobs", "2", "--threads", "2"]);
    for table in &TABLES[1..] {
        assert!(read(&folder, "whole", table) == read(&folder, "several", table), "{table} differs");
    }
    let table = std::fs::File::open(folder.path("whole/assignments.parquet")).unwrap();
    let table = ParquetRecordBatchReaderBuilder::try_new(table).unwrap();
    assert!(table.metadata().num_row_groups() > 1, "{} row groups", table.metadata().num_row_groups());
    assert_eq!(table.metadata().file_metadata().num_rows(), 1200 * 45);
}

#[test]
fn an_extended_run_computes_only_what_is_new() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    let seconds = |table: &arrow_array::RecordBatch| {
        use arrow_array::cast::AsArray;
        table["seconds"].as_primitive::<arrow_array::types::Float64Type>().values().to_vec()
    };
    let before = seconds(&folder.read_parquet("out/runs.parquet"));
    let more = SMALL.to_owned() + "\n[[clusterer]]\nname = \"more\"\nuse = \"kmeans\"\nparams = { k = 2 }\n";
    folder.write("small.toml", &(more + "\n[[evaluator]]\nuse = \"nmi\"\n"));
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    let after = seconds(&folder.read_parquet("out/runs.parquet"));
    assert_eq!(after.len(), 6);
    assert_eq!(after[..3], before[..], "the old clusterer's cells were not run again for the new evaluator");
    let metrics = folder.read_parquet("out/metrics.parquet");
    assert_eq!(metrics.num_rows(), 6 * 4);
}

#[test]
fn another_seed_or_parameter_is_another_cell() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    let cells = || std::fs::read_dir(folder.path("out/cells")).unwrap().count();
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    assert_eq!(cells(), 3);
    folder.run(&["run", "small.toml", "--out", "out", "--set", "clusterer.KM.restarts=4"], 0);
    assert_eq!(cells(), 6);
    folder.run(&["run", "small.toml", "--out", "out", "--set", "degree=3"], 0);
    assert_eq!(cells(), 9);
}

#[test]
fn a_damaged_cell_is_computed_again() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    let before = read(&folder, "out", "assignments");
    for cell in std::fs::read_dir(folder.path("out/cells")).unwrap() {
        std::fs::write(cell.unwrap().path(), b"compflow cell 1\ngarbage").unwrap();
    }
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    assert!(read(&folder, "out", "assignments") == before);
}

/// Waits until a run has kept at least `cells` cells.
fn wait_for_cells(folder: &Folder, out: &str, cells: usize) {
    let started = Instant::now();
    let kept = || std::fs::read_dir(folder.path(&format!("{out}/cells"))).map_or(0, Iterator::count);
    while kept() < cells {
        assert!(started.elapsed() < Duration::from_secs(60), "no cell was kept");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_run_and_a_second_one_give_the_tables_of_an_undisturbed_run() {
    let folder = Folder::new();
    folder.add_faulty();
    folder.write("slow.toml", &slow(12, "none"));
    let run = |out: &'static str| ["--plugins", "faulty", "run", "slow.toml", "--jobs", "1", "--out", out];
    folder.run(&run("undisturbed"), 0);

    let mut child = folder.compflow(&run("killed")).stdout(Stdio::null()).spawn().unwrap();
    wait_for_cells(&folder, "killed", 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = std::fs::read_dir(folder.path("killed/cells")).unwrap().count();
    assert!((3..24).contains(&kept), "{kept} cells were kept");
    assert!(!folder.path("killed/assignments.parquet").exists(), "no table is there before it is whole");
    folder.run(&run("killed"), 0);
    for table in ["metrics", "summary", "assignments", "clusters"] {
        assert!(read(&folder, "killed", table) == read(&folder, "undisturbed", table), "{table} differs");
    }
}

fn interrupt(folder: &Folder, fault: &str) -> (String, String, Duration) {
    folder.add_faulty();
    folder.write("slow.toml", &slow(4, fault));
    let args = ["--plugins", "faulty", "run", "slow.toml", "--jobs", "2", "--out", "out", "--format", "csv"];
    let child = folder.compflow(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Planning ends at once and keeps nothing; this is about cells.
    let patience = Instant::now() + Duration::from_secs(60);
    while !folder.path("out/cells").exists() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(500));
    let interrupted = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let (stdout, stderr) = finished(child.wait_with_output().unwrap(), 130);
    (stdout, stderr, interrupted.elapsed())
}

#[test]
fn an_interrupted_run_ends_soon_keeps_finished_cells_and_resumes() {
    let folder = Folder::new();
    let (_, stderr, took) = interrupt(&folder, "slow");
    assert!(took < Duration::from_secs(10), "the cells would have taken a minute each: {took:?}");
    assert!(stderr.ends_with("of 8 cells are kept in out; run again to continue\ninterrupted\n"), "{stderr}");
    let runs = folder.read_parquet("out/runs.parquet");
    assert!(crate::common::texts(&runs, "status").iter().all(|status| *status == "interrupted"));
    // The same cells without the fault have another key; the others go on from where they were.
    let args = ["--plugins", "faulty", "run", "slow.toml", "--out", "out", "--set", "clusterer.faulty.fault=none"];
    folder.run(&args, 0);
    let runs = folder.read_parquet("out/runs.parquet");
    assert!(crate::common::texts(&runs, "status").iter().all(|status| *status == "ok"));
}

#[test]
fn an_interrupted_run_does_not_wait_for_a_component_that_does_not_listen() {
    let folder = Folder::new();
    let (_, _, took) = interrupt(&folder, "stubborn");
    assert!(took < Duration::from_secs(10), "the component would have taken a minute: {took:?}");
}

#[test]
fn two_runs_do_not_share_a_results_folder() {
    let folder = Folder::new();
    folder.add_faulty();
    folder.write("slow.toml", &slow(20, "none"));
    let run = ["--plugins", "faulty", "run", "slow.toml", "--jobs", "1", "--out", "out"];
    let mut child = folder.compflow(&run).stdout(Stdio::null()).spawn().unwrap();
    wait_for_cells(&folder, "out", 1);
    let (_, stderr) = folder.run(&run, 2);
    assert_eq!(stderr, "error: out is in use by another run of compflow\n");
    child.kill().unwrap();
    child.wait().unwrap();
}
