//! Results folders that cannot be written to, or are somebody else's.

use std::process::Command;

use crate::common::{Folder, SMALL, executable, finished, libraries};

#[test]
fn the_results_of_another_pipeline_are_not_overwritten() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.write("other.toml", &SMALL.replace("name = \"small\"", "name = \"other\""));
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    let (_, stderr) = folder.run(&["run", "other.toml", "--out", "out"], 2);
    let expected = "error: out holds the results of the pipeline `small`, and this is `other`: \
                    choose another folder with --out\n";
    assert_eq!(stderr, expected);
}

#[test]
fn a_folder_with_other_things_in_it_is_not_used() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.write("out/thesis.txt", "years of work");
    let (_, stderr) = folder.run(&["run", "small.toml", "--out", "out"], 2);
    let expected = "error: out is no results folder: it holds thesis.txt; choose another folder with --out\n";
    assert_eq!(stderr, expected);
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_before_anything_is_computed() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.write("file", "in the way");
    let (stdout, stderr) = folder.run(&["run", "small.toml", "--out", "file/out"], 1);
    assert_eq!(stdout, "");
    assert_eq!(stderr, "error: cannot write to file/out: not a directory\n");
}

/// A limit on the size of files stands in for a full disk: writes fail in the middle.
#[test]
#[cfg(unix)]
fn a_full_disk_is_an_error_and_the_results_are_still_printed_or_kept() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    // In blocks of 512 bytes: enough for run.json, not for every table.
    let script = format!(
        "ulimit -f 8; trap '' XFSZ; exec '{}' run small.toml --out out --set data.made.n=4000 --format csv",
        executable().display()
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder.path(""))
        .env("COMPFLOW_PLUGIN_PATH", libraries())
        .output()
        .unwrap();
    let (_, stderr) = finished(output, 1);
    assert!(stderr.contains(" KM: the finished cell cannot be kept: "), "{stderr}");
    assert!(stderr.contains("error: out: ") && stderr.contains(".parquet cannot be written: "), "{stderr}");
    assert!(!folder.path("out/assignments.parquet").exists(), "no half table is left behind");
    // With room again, everything is there.
    folder.run(&["run", "small.toml", "--out", "out", "--set", "data.made.n=4000"], 0);
}
