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
        "ulimit -f 8; exec '{}' run small.toml --out out --set data.made.n=4000 --format csv",
        executable().display()
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder.path(""))
        .env("COMPFLOW_PLUGIN_PATH", libraries())
        .output()
        .unwrap();
    let (_, stderr) = finished(output, 1);
    let why = "the file would be larger than the limit on the size of files (ulimit -f)";
    assert!(stderr.contains(&format!(" KM: the finished cell cannot be kept: {why}")), "{stderr}");
    assert!(
        stderr.contains("error: out: ") && stderr.contains(&format!(".parquet cannot be written: {why}")),
        "{stderr}"
    );
    assert!(!folder.path("out/assignments.parquet").exists(), "no half table is left behind");
    // With room again, everything is there.
    folder.run(&["run", "small.toml", "--out", "out", "--set", "data.made.n=4000"], 0);
}

/// Ours are not written among files of others, nor are those taken for ours.
#[test]
#[cfg(unix)]
fn links_inside_a_results_folder_are_not_followed_and_files_of_others_stay() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.write("theirs/experiment.tmp", "years of work");
    let days_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 24 * 3600);
    let file = std::fs::File::options().write(true).open(folder.path("theirs/experiment.tmp")).unwrap();
    file.set_modified(days_ago).unwrap();
    for name in ["cells", "parts", "slurm", "inputs"] {
        let out = format!("out-{name}");
        std::fs::create_dir(folder.path(&out)).unwrap();
        std::os::unix::fs::symlink("../theirs", folder.path(&format!("{out}/{name}"))).unwrap();
        let part = ["run", "small.toml", "--out", &out, "--part", "1/1"];
        for command in [&part[..4], &part, &["slurm", "small.toml", "--out", &out]] {
            let (_, stderr) = folder.run(command, 1);
            let expected = format!(
                "error: cannot write to {out}: {name} is a link, and no folder of ours: remove it, or choose another \
                 folder with --out\n"
            );
            assert_eq!(stderr, expected, "{command:?}");
        }
    }
    let entries = std::fs::read_dir(folder.path("theirs")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(entries.collect::<Vec<_>>(), ["experiment.tmp"]);
    // Nor without links.
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    for name in ["out/thesis.tmp", "out/.next-chapter/text", "out/cells/thesis.tmp"] {
        let path = folder.write(name, "years of work");
        std::fs::File::options().write(true).open(path).unwrap().set_modified(days_ago).unwrap();
    }
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    for name in ["out/thesis.tmp", "out/.next-chapter/text", "out/cells/thesis.tmp"] {
        assert!(folder.path(name).exists(), "{name} is gone");
    }
}

#[test]
fn what_stands_in_the_way_of_a_folder_or_file_of_ours_is_named() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    std::fs::remove_dir_all(folder.path("out/cells")).unwrap();
    folder.write("out/cells", "in the way");
    let (_, stderr) = folder.run(&["run", "small.toml", "--out", "out"], 1);
    let expected = "error: cannot write to out: cells is a file, and no folder of ours: remove it, or choose another \
                    folder with --out\n";
    assert_eq!(stderr, expected);
    std::fs::create_dir_all(folder.path("locked/.lock")).unwrap();
    let (_, stderr) = folder.run(&["run", "small.toml", "--out", "locked"], 1);
    assert_eq!(stderr, "error: cannot write to locked: .lock is a folder, and no file of ours: remove it\n");
}
