//! What a run leaves behind is one unit: whole, or known not to be.

use std::path::{Path, PathBuf};

use crate::common::{Folder, SMALL};

/// Flips in one file, spread over its length.
const FLIPS: usize = 12;

fn results() -> Folder {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    folder
}

/// All files of a results folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    files.retain(|path| std::fs::metadata(path).unwrap().len() > 0);
    files.sort();
    files
}

fn flip(path: &Path, at: usize, bit: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 1 << bit;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn every_flipped_bit_is_found_and_none_reaches_a_report() {
    let folder = results();
    let (stdout, _) = folder.run(&["verify", "out"], 0);
    assert!(stdout.starts_with("out: 10 tables and 3 kept files: all as they were written"), "{stdout}");
    let report = folder.run(&["report", "out", "--format", "md"], 0).0;
    let mut tried = 0;
    for file in files(&folder.path("out")) {
        let whole = std::fs::read(&file).unwrap();
        for number in 0..FLIPS {
            let at = (whole.len() - 1) * number / (FLIPS - 1);
            flip(&file, at, (number + at) % 8);
            let (stdout, stderr) = folder.run(&["verify", "out"], 1);
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(stderr.contains(name) && stdout.contains("1 file is damaged"), "{name}, byte {at}: {stderr}");
            let seen = folder.compflow(&["report", "out", "--format", "md"]).output().unwrap();
            match seen.status.code() {
                Some(0) => assert_eq!(String::from_utf8(seen.stdout).unwrap(), report, "{name}, byte {at}"),
                code => assert_eq!(code, Some(2), "{name}, byte {at}"),
            }
            std::fs::write(&file, &whole).unwrap();
            tried += 1;
        }
    }
    assert!(tried >= 14 * FLIPS, "{tried} flips");
    folder.run(&["verify", "out"], 0);
}

#[test]
fn a_damaged_cell_is_computed_again_and_that_is_said() {
    let folder = results();
    let cells = files(&folder.path("out/cells"));
    let before = std::fs::read(&cells[0]).unwrap();
    flip(&cells[0], before.len() / 2, 3);
    let (_, stderr) = folder.run(&["run", "small.toml", "--out", "out"], 0);
    assert!(stderr.contains("is damaged; what it kept is computed again"), "{stderr}");
    assert!(stderr.contains("3 cells, 2 of them kept from before"), "{stderr}");
    // Two that have changed places are neither of them what its name says.
    let (first, second) = (std::fs::read(&cells[0]).unwrap(), std::fs::read(&cells[1]).unwrap());
    std::fs::write(&cells[0], second).unwrap();
    std::fs::write(&cells[1], first).unwrap();
    let (_, stderr) = folder.run(&["run", "small.toml", "--out", "out"], 0);
    assert!(stderr.contains("3 cells, 1 of them kept from before"), "{stderr}");
    folder.run(&["verify", "out"], 0);
}

#[test]
fn a_damaged_record_loses_no_cell() {
    let folder = results();
    for text in ["", "{", "[1, 2]", "{\"name\": 3}"] {
        folder.write("out/run.json", text);
        folder.run(&["report", "out"], 2);
        let (_, stderr) = folder.run(&["run", "small.toml", "--out", "out"], 0);
        assert!(stderr.contains("3 cells, 3 of them kept from before"), "{text}: {stderr}");
        folder.run(&["verify", "out"], 0);
    }
}

#[test]
fn a_table_that_was_changed_is_named() {
    let folder = results();
    std::fs::copy(folder.path("out/runs.parquet"), folder.path("out/metrics.parquet")).unwrap();
    let (_, stderr) = folder.run(&["report", "out"], 2);
    let expected = "error: out/metrics.parquet is not what the run wrote: it was damaged or changed since; \
                    run the pipeline again, finished cells are kept\n";
    assert_eq!(stderr, expected);
    let json = folder.run(&["verify", "out", "--json"], 1).0;
    assert!(json.contains("\"file\":\"out/metrics.parquet\""), "{json}");
}

#[test]
fn what_killed_runs_left_is_swept_up() {
    let folder = results();
    folder.write("out/.next-Ab3/runs.parquet", "half");
    folder.write("out/run.json.x7.tmp", "half");
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    assert!(!folder.path("out/.next-Ab3").exists() && !folder.path("out/run.json.x7.tmp").exists());
}

#[test]
#[cfg(unix)]
fn links_that_somebody_planted_lead_nowhere() {
    let folder = results();
    folder.write("precious", "years of work");
    let plant = |name: &str| {
        let _ = std::fs::remove_file(folder.path(name));
        std::os::unix::fs::symlink(folder.path("precious"), folder.path(name)).unwrap();
    };
    plant("out/.lock");
    let (_, stderr) = folder.run(&["run", "small.toml", "--out", "out"], 1);
    assert!(stderr.contains(".lock is a link"), "{stderr}");
    std::fs::remove_file(folder.path("out/.lock")).unwrap();
    plant("page.html");
    let (_, stderr) = folder.run(&["report", "out", "--out", "page.html"], 1);
    assert!(stderr.contains("page.html cannot be written: is a link"), "{stderr}");
    assert_eq!(std::fs::read_to_string(folder.path("precious")).unwrap(), "years of work");
}

/// A pipe, a terminal: they are written to, and stay what they are.
#[test]
#[cfg(target_os = "linux")]
fn a_report_may_go_to_what_is_no_file() {
    let folder = results();
    let (stdout, _) = folder.run(&["report", "out", "--format", "md", "--out", "/dev/stdout"], 0);
    assert!(stdout.contains("| KM |"), "{stdout}");
    assert!(std::fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
}
