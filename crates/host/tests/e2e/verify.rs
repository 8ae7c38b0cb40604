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
    assert!(stdout.starts_with("out: 10 tables and 3 kept files: all as they were written\n"), "{stdout}");
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

/// A name that differs in one bit is no other pipeline's; one that somebody has chosen is.
#[test]
fn the_name_in_a_damaged_record_locks_nobody_out() {
    let folder = results();
    let record = folder.path("out/run.json");
    let text = std::fs::read_to_string(&record).unwrap();
    let at = text.find("\"small\"").unwrap() + 1;
    for bit in 0..8 {
        std::fs::write(&record, &text).unwrap();
        flip(&record, at, bit);
        let (_, stderr) = folder.run(&["run", "small.toml", "--out", "out"], 0);
        assert!(stderr.contains("3 cells, 3 of them kept from before"), "bit {bit}: {stderr}");
    }
    let (_, stderr) = folder.run(&["run", "small.toml", "--out", "out", "--set", "name=\"other\""], 2);
    assert!(stderr.contains("holds the results of the pipeline `small`, and this is `other`"), "{stderr}");
}

#[test]
fn a_cell_whose_version_is_damaged_is_found_and_one_of_another_version_is_told_apart() {
    let folder = results();
    let cells = files(&folder.path("out/cells"));
    let whole = std::fs::read(&cells[0]).unwrap();
    for bit in 0..8 {
        flip(&cells[0], "compflow cell ".len(), bit);
        let (stdout, stderr) = folder.run(&["verify", "out"], 1);
        assert!(stdout.contains("1 file is damaged"), "bit {bit}: {stdout}");
        assert!(stderr.contains(cells[0].file_name().unwrap().to_str().unwrap()), "bit {bit}: {stderr}");
        std::fs::write(&cells[0], &whole).unwrap();
    }
    std::fs::write(&cells[0], "compflow cell 1\nas it was in another version, with whatever it had to say")
        .unwrap();
    let (stdout, _) = folder.run(&["verify", "out"], 0);
    let expected = "out: 10 tables and 2 kept files: all as they were written; 1 more is of another version, which this \
                    one does not use\n";
    assert_eq!(stdout, expected);
}

#[test]
fn what_parts_leave_is_whole_without_tables_and_what_they_tell_is_checked() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml", "--out", "out", "--part", "1/2"], 0);
    let (stdout, _) = folder.run(&["verify", "out"], 0);
    assert_eq!(stdout, "out: 0 tables and 2 kept files, 3 files of parts: all as they were written\n");
    let told = files(&folder.path("out/parts"));
    assert_eq!(told.len(), 3, "{told:?}");
    for file in &told {
        let whole = std::fs::read_to_string(file).unwrap();
        for number in 0..FLIPS {
            let at = (whole.len() - 1) * number / (FLIPS - 1);
            flip(file, at, (number + at) % 8);
            let (stdout, _) = folder.run(&["verify", "out"], 1);
            assert!(stdout.contains("1 file is damaged"), "{}, byte {at}: {stdout}", file.display());
            std::fs::write(file, &whole).unwrap();
        }
        // Somebody who adds a cell to those that there are is not believed.
        if let Some((before, after)) = whole.split_once("\"cells\":[[") {
            std::fs::write(file, format!("{before}\"cells\":[[\"abc\"],[{after}")).unwrap();
            let (_, stderr) = folder.run(&["verify", "out"], 1);
            assert!(stderr.contains(file.file_name().unwrap().to_str().unwrap()), "{stderr}");
            let (_, stderr) = folder.run(&["status", "small.toml", "--out", "out"], 2);
            assert!(stderr.contains("no part of the pipeline `small` has begun"), "{stderr}");
            std::fs::write(file, &whole).unwrap();
        }
    }
    let (stdout, _) = folder.run(&["status", "small.toml", "--out", "out"], 0);
    assert!(stdout.contains('3'), "{stdout}");
    // Tables without the record that they belong to are another matter.
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    std::fs::remove_file(folder.path("out/run.json")).unwrap();
    folder.run(&["verify", "out"], 1);
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
    folder.write("out/.next-Ab3xY9/runs.parquet", "half");
    folder.write("out/report.html.x7Yz12.tmp", "half");
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    assert!(!folder.path("out/.next-Ab3xY9").exists() && !folder.path("out/report.html.x7Yz12.tmp").exists());
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

/// What a run was about to put into its place when it was killed is put there by the next one, and nothing else is.
#[test]
#[cfg(unix)]
fn a_planted_generation_moves_no_files_of_others() {
    let folder = results();
    let names = ["paper.tex", "runs.parquet", "run.json"];
    names.iter().for_each(|name| drop(folder.write(&format!("docs/{name}"), "years of work")));
    let untouched = || {
        for name in names {
            let text = std::fs::read_to_string(folder.path(&format!("docs/{name}"))).unwrap();
            assert_eq!(text, "years of work", "{name}");
        }
    };
    let committed = folder.path("out/.committed");
    std::os::unix::fs::symlink(folder.path("docs"), &committed).unwrap();
    let (_, stderr) = folder.run(&["run", "small.toml", "--out", "out", "--set", "seed=4"], 1);
    assert!(stderr.contains(".committed is a link or a file, and no folder of ours: remove it"), "{stderr}");
    untouched();
    // Readers do not look there either.
    folder.run(&["report", "out"], 0);
    folder.run(&["verify", "out"], 0);
    std::fs::remove_file(&committed).unwrap();
    // A folder is taken for ours only if all in it is.
    folder.write("out/.committed/photo.jpeg", "mine");
    let (_, stderr) = folder.run(&["run", "small.toml", "--out", "out"], 1);
    assert!(stderr.contains(".committed/photo.jpeg is no file of a run"), "{stderr}");
    assert_eq!(std::fs::read_to_string(folder.path("out/.committed/photo.jpeg")).unwrap(), "mine");
    std::fs::remove_dir_all(&committed).unwrap();
    std::fs::create_dir(&committed).unwrap();
    std::os::unix::fs::symlink(folder.path("docs/runs.parquet"), committed.join("runs.parquet")).unwrap();
    let (_, stderr) = folder.run(&["run", "small.toml", "--out", "out"], 1);
    assert!(stderr.contains(".committed/runs.parquet is no file of a run"), "{stderr}");
    untouched();
    std::fs::remove_dir_all(&committed).unwrap();
    folder.run(&["run", "small.toml", "--out", "out"], 0);
}

/// Runs a command that must not wait for anybody.
#[cfg(unix)]
fn at_once(folder: &Folder, args: &[&str], code: i32) -> String {
    use std::process::Stdio;
    let mut command = folder.compflow(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > std::time::Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{args:?} waits for ever");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    crate::common::finished(child.wait_with_output().unwrap(), code).1
}

#[test]
#[cfg(target_os = "linux")]
fn pipes_and_devices_in_a_results_folder_are_no_files_and_nobody_waits_for_them() {
    let folder = results();
    let pipe = |name: &str| {
        let path = folder.path(name);
        let _ = std::fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    };
    let is_pipe = |name: &str| {
        use std::os::unix::fs::FileTypeExt;
        std::fs::symlink_metadata(folder.path(name)).unwrap().file_type().is_fifo()
    };
    let run = ["run", "small.toml", "--out", "out"];
    let no_file = "is a pipe or a device, not a file";
    for name in ["out/run.json", "out/metrics.parquet"] {
        let whole = std::fs::read(folder.path(name)).unwrap();
        pipe(name);
        for args in [&["report", "out"][..], &["diff", "out", "out"], &["why", "small.toml", "--out", "out"]] {
            let code = if args[0] == "why" { 0 } else { 2 };
            let stderr = at_once(&folder, args, code);
            assert!(code == 0 || stderr.contains(no_file), "{args:?}: {stderr}");
        }
        at_once(&folder, &["runs", "."], 0);
        let stderr = at_once(&folder, &["verify", "out"], 1);
        assert!(stderr.contains(&name[4..]) && stderr.contains(no_file), "{stderr}");
        // It is not replaced, which is said before anything is computed.
        let stderr = at_once(&folder, &run, 1);
        let text = format!("cannot write to out: {} is no file, and is not replaced by one", &name[4..]);
        assert!(stderr.contains(&text), "{stderr}");
        assert!(is_pipe(name));
        std::fs::remove_file(folder.path(name)).unwrap();
        std::fs::write(folder.path(name), whole).unwrap();
    }
    pipe("out/.lock");
    at_once(&folder, &["runs", "."], 0);
    std::fs::remove_file(folder.path("out/.lock")).unwrap();

    let cells = files(&folder.path("out/cells"));
    let name = |at: usize| format!("out/cells/{}", cells[at].file_name().unwrap().to_str().unwrap());
    pipe(&name(0));
    std::fs::remove_file(&cells[1]).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &cells[1]).unwrap();
    let stderr = at_once(&folder, &["verify", "out"], 1);
    assert!(stderr.contains(&name(0)) && stderr.contains(&name(1)), "{stderr}");
    let stderr = at_once(&folder, &run, 0);
    assert!(stderr.contains("1 of them kept from before"), "{stderr}");
    assert_eq!(stderr.matches("is damaged; what it kept is computed again").count(), 2, "{stderr}");
    assert!(
        stderr.contains("the finished cell cannot be kept: is no file, and is not replaced by one"),
        "{stderr}"
    );
    assert!(stderr.contains("the finished cell cannot be kept: is a link"), "{stderr}");
    assert!(is_pipe(&name(0)));

    pipe("pipe.toml");
    for pipeline in ["pipe.toml", "/dev/zero"] {
        let stderr = at_once(&folder, &["run", pipeline, "--out", "other"], 2);
        assert!(stderr.contains(&format!("{pipeline}: {no_file}")), "{stderr}");
    }
    std::fs::File::create(folder.path("large.toml")).unwrap().set_len(1 << 40).unwrap();
    let stderr = at_once(&folder, &["run", "large.toml", "--out", "other"], 2);
    assert!(stderr.contains("large.toml: has more than 67108864 bytes"), "{stderr}");
}

/// Whoever reads beside a run sees one generation or the next, and never half of each.
#[test]
fn readers_beside_a_run_see_one_generation_or_the_next() {
    let folder = results();
    let report = |folder: &Folder| folder.run(&["report", "out", "--format", "md", "--layout", "long"], 0).0;
    let three = report(&folder);
    folder.run(&["run", "small.toml", "--out", "out", "--set", "seed=4"], 0);
    let four = report(&folder);
    assert_ne!(three, four);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seed = 3;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                folder.run(&["run", "small.toml", "--out", "out", "--set", &format!("seed={seed}")], 0);
                seed = 7 - seed;
            }
        });
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..60 {
                let seen = report(&folder);
                assert!(seen == three || seen == four, "{seen}");
            }
            for _ in 0..20 {
                folder.run(&["verify", "out"], 0);
                folder.run(&["diff", "out", "out"], 0);
            }
        }));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        read.unwrap();
    });
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

/// Examples that were in memory go along with the results.
#[test]
fn what_went_along_is_verified_as_well() {
    let folder = Folder::new();
    folder.write("p.toml", SMALL);
    folder.write("out/inputs/examples.parquet", "examples");
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let (stdout, _) = folder.run(&["verify", "out"], 0);
    assert!(stdout.contains(", 1 file of examples: all as they were written"), "{stdout}");
    for change in [Some("junk"), None] {
        match change {
            Some(text) => drop(folder.write("out/inputs/examples.parquet", text)),
            None => std::fs::remove_file(folder.path("out/inputs/examples.parquet")).unwrap(),
        }
        let (stdout, stderr) = folder.run(&["verify", "out"], 1);
        assert!(stdout.contains("1 file is damaged"), "{stdout}");
        assert!(stderr.contains("examples.parquet is not what it was when the run ended"), "{stderr}");
    }
}
