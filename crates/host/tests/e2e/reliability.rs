//! Runs that are killed, and disks that fail, at every moment: nothing is lost that was finished, and nothing is wrong afterwards.
//!
//! `COMPFLOW_TRIALS=10` tries ten times as many moments where they are chosen at random. What was tried is left in
//! `target/reliability`, and `docs/reliability.md` must say the same.

mod jobs;
#[path = "../../../../docs/row.rs"]
mod page;
mod pipelines;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use self::page::row;
use crate::common::{Folder, SMALL, build_folder, repository};
use crate::silently_wrong::add_wrong;

const TABLES: [&str; 4] = ["metrics", "summary", "assignments", "clusters"];

/// What came of trying one kind of fault.
#[derive(Default)]
pub(crate) struct Tally {
    tried: AtomicUsize,
    survived: AtomicUsize,
    /// Cells that were finished before the fault, and that the run after it did not find.
    lost: AtomicUsize,
    /// Trials after which something is not what an undisturbed run finds.
    wrong: AtomicUsize,
    /// What went wrong, for people.
    why: Mutex<Vec<String>>,
}

impl Tally {
    /// Notes so many trials after which all was as it must be; one that was not has ended the test.
    pub(crate) fn survived(&self, trials: usize) {
        (0..trials).for_each(|_| self.note(Found::default(), ""));
    }

    /// Notes what came of one trial.
    fn note(&self, found: Found, about: &str) {
        let Found { lost, wrong } = found;
        self.tried.fetch_add(1, Ordering::Relaxed);
        self.lost.fetch_add(lost, Ordering::Relaxed);
        self.wrong.fetch_add(usize::from(!wrong.is_empty()), Ordering::Relaxed);
        match lost == 0 && wrong.is_empty() {
            true => drop(self.survived.fetch_add(1, Ordering::Relaxed)),
            false => self.why.lock().unwrap().push(format!("{about}: {lost} cells lost; {}", wrong.join(", "))),
        }
    }

    /// Writes the row of this fault down, for people, and holds the page to it.
    pub(crate) fn row(&self, fault: &str) -> usize {
        self.row_within(fault, |_| 0)
    }

    /// The same where the page may say so much more or less.
    fn row_within(&self, fault: &str, slack: impl FnOnce(usize) -> usize) -> usize {
        let [tried, survived, lost, wrong] =
            [&self.tried, &self.survived, &self.lost, &self.wrong].map(|number| number.load(Ordering::Relaxed));
        let folder = build_folder("reliability");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(
            folder.join(fault.replace('/', "-")),
            format!("| {fault} | {tried} | {survived} | {lost} | {wrong} |\n"),
        )
        .unwrap();
        assert_eq!((survived, lost, wrong), (tried, 0, 0), "{fault}: {:#?}", self.why.lock().unwrap());
        let numbers = row(fault);
        assert_eq!(numbers[1..], [numbers[0], 0, 0], "{fault}");
        let is_said = repeated(1) > 1 || numbers[0].abs_diff(tried) <= slack(tried);
        assert!(is_said, "{fault}: docs/reliability.md says {}, and {tried} were tried", numbers[0]);
        tried
    }
}

/// What a run after a fault has shown.
#[derive(Default)]
struct Found {
    lost: usize,
    wrong: Vec<String>,
}

fn repeated(trials: usize) -> usize {
    trials * std::env::var("COMPFLOW_TRIALS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// The library that makes calls fail.
fn shim() -> PathBuf {
    static BUILT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let path = build_folder("reliability-shim");
        std::fs::create_dir_all(&path).unwrap();
        let library = path.join(format!("faults-{}.so", std::process::id()));
        let source = repository().join("crates/host/tests/e2e/reliability/faults.c");
        let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let status = Command::new(cc)
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .arg(source)
            .arg("-ldl")
            .status();
        assert!(status.unwrap().success());
        library
    });
    built.clone()
}

/// A folder with what undisturbed runs find, `whole` and, with another seed, `other`, and the reports of both.
fn undisturbed() -> (Folder, [String; 2]) {
    let folder = Folder::new();
    folder.write("p.toml", SMALL);
    let reports = [("whole", FIRST), ("other", SECOND)].map(|(out, seed)| {
        folder.run(&["run", "p.toml", "--out", out, "--jobs", "1", "--set", seed], 0);
        folder.run(&["report", out, "--format", "md", "--layout", "long"], 0).0
    });
    (folder, reports)
}

const FIRST: &str = "seed=3";
const SECOND: &str = "seed=4";

/// How many cells a run says that it has found.
fn kept(stderr: &str) -> usize {
    let before = stderr.split(" of them kept from before").next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{stderr}"))
}

/// How many cells a disturbed run has finished, by what was seen of it from outside.
fn finished_cells(folder: &Folder, out: &str) -> usize {
    std::fs::read_to_string(folder.path(&format!("{out}.cells"))).map_or(0, |number| number.parse().unwrap_or(0))
}

/// After whatever happened to a run: what is there says the truth or nothing, a second run finds the cells that were finished,
/// and then what an undisturbed one does. `over`: the run was one with another seed over the results of `whole`, which are
/// there until its own are.
fn recovers(folder: &Folder, out: &str, over: bool, reports: &[String; 2]) -> Found {
    let mut found = Found::default();
    let (seed, like) = if over { (SECOND, "other") } else { (FIRST, "whole") };
    let seen = folder.compflow(&["report", out, "--format", "md", "--layout", "long"]).output().unwrap();
    match seen.status.code() {
        Some(0) => {
            let report = String::from_utf8(seen.stdout).unwrap();
            if report != reports[usize::from(over)] && !(over && report == reports[0]) {
                found.wrong.push("the report".to_owned());
            }
        }
        // There may be nothing yet.
        Some(2) if !over => {}
        code => found.wrong.push(format!("report ended with {code:?}: {}", String::from_utf8_lossy(&seen.stderr))),
    }
    let again = |seed: &str, finished: usize, like: &str, found: &mut Found| {
        let (_, stderr) = folder.run(&["run", "p.toml", "--out", out, "--jobs", "1", "--set", seed], 0);
        found.lost += finished.saturating_sub(kept(&stderr));
        for table in TABLES {
            let read = |out: &str| std::fs::read(folder.path(&format!("{out}/{table}.parquet"))).unwrap();
            if read(out) != read(like) {
                found.wrong.push(format!("{table} of {like}"));
            }
        }
    };
    again(seed, finished_cells(folder, out), like, &mut found);
    if over {
        again(FIRST, CELLS, "whole", &mut found);
    }
    let verified = folder.compflow(&["verify", out]).output().unwrap();
    if !verified.status.success() {
        found.wrong.push(String::from_utf8_lossy(&verified.stderr).into_owned());
    }
    std::fs::remove_dir_all(folder.path(out)).unwrap();
    found
}

/// Cells of the small pipeline.
const CELLS: usize = 3;

/// A run that is going to be disturbed, into a folder that may have results of another seed.
fn disturbed(folder: &Folder, out: &str, over: bool) -> Command {
    if over {
        copy(&folder.path("whole"), &folder.path(out));
    }
    let seed = if over { SECOND } else { FIRST };
    let mut command = folder.compflow(&["run", "p.toml", "--out", out, "--jobs", "1", "--set", seed]);
    command.env("LD_PRELOAD", shim()).env("FAULT_CELLS", folder.path(&format!("{out}.cells")));
    command
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(std::fs::copy(&path, &to).unwrap()),
        }
    }
}

/// Calls of a run that can fail.
fn calls(folder: &Folder, over: bool) -> usize {
    let counted = folder.path("calls");
    let mut command = disturbed(folder, "counted", over);
    command.env("FAULT_CALLS", &counted);
    assert!(command.output().unwrap().status.success());
    // Nobody could lose what is not counted.
    assert_eq!(finished_cells(folder, "counted"), CELLS);
    let calls = std::fs::read_to_string(counted).unwrap().parse().unwrap();
    assert!(calls > 20, "{calls} calls");
    calls
}

/// Lets every call of a run fail, one run for each.
fn at_every_call(fault: &str, over: bool, number: i32, expected: &[&str]) {
    let fault = if over { format!("{fault}, over older results") } else { fault.to_owned() };
    let (folder, reports) = undisturbed();
    let (calls, tally, next) = (calls(&folder, over), Tally::default(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= calls {
                        break;
                    }
                    let out = format!("out{at}");
                    let mut command = disturbed(&folder, &out, over);
                    command.env("FAULT_AT", at.to_string()).env("FAULT_ERRNO", number.to_string());
                    let output = command.output().unwrap();
                    let stderr = String::from_utf8_lossy(&output.stderr);
                    match output.status.code() {
                        // A cell that could not be kept is a warning.
                        Some(0) => {}
                        Some(1) => {
                            let said = expected.iter().any(|text| stderr.contains(text));
                            assert!(said, "{fault} at {at}: {stderr}");
                        }
                        code => assert_eq!((code, number), (None, 0), "{fault} at {at}: {stderr}"),
                    }
                    tally.note(recovers(&folder, &out, over, &reports), &format!("{fault} at {at}"));
                }
            });
        }
    });
    // How often a run writes changes with what it writes.
    tally.row_within(&fault, |tried| tried / 5);
}

#[test]
fn killed_at_every_write_sync_and_rename() {
    at_every_call("killed at every write, sync and rename", false, 0, &[]);
    at_every_call("killed at every write, sync and rename", true, 0, &[]);
}

#[test]
fn a_disk_that_is_full_at_every_write() {
    at_every_call("no space at every write, sync and rename", false, 28, &["the disk is full"]);
    at_every_call("no space at every write, sync and rename", true, 28, &["the disk is full"]);
}

#[test]
fn a_disk_that_fails_at_every_write() {
    at_every_call("I/O error at every write, sync and rename", false, 5, &["input/output error"]);
    at_every_call("I/O error at every write, sync and rename", true, 5, &["input/output error"]);
}

#[test]
fn killed_at_random_moments() {
    let (folder, reports) = undisturbed();
    let tally = Tally::default();
    for trial in 0..repeated(50) {
        let (out, over) = (format!("killed{trial}"), trial % 2 == 1);
        let mut command = disturbed(&folder, &out, over);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A run takes about a tenth of a second; the moments are spread by a multiple of the golden section.
        std::thread::sleep(Duration::from_micros((trial as u64 * 61_803_399) % 120_000));
        child.kill().unwrap();
        child.wait().unwrap();
        tally.note(recovers(&folder, &out, over, &reports), &format!("killed, trial {trial}"));
    }
    assert!(tally.row("killed at random moments") >= 50);
}

/// The files of a folder that have something in them.
fn files_in(folder: PathBuf) -> Vec<PathBuf> {
    let mut files = vec![folder];
    let mut found: Vec<PathBuf> = Vec::new();
    while let Some(path) = files.pop() {
        match path.is_dir() {
            true => files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path())),
            false if std::fs::metadata(&path).unwrap().len() > 0 => found.push(path.canonicalize().unwrap()),
            false => {}
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Flips a bit of one of the files while something is done.
fn with_flipped_bit(files: &[PathBuf], trial: usize, then: impl FnOnce(&str)) {
    let file = &files[trial % files.len()];
    let whole = std::fs::read(file).unwrap();
    let mut bytes = whole.clone();
    let at = (trial * 7919) % bytes.len();
    bytes[at] ^= 1 << (trial % 8);
    std::fs::write(file, bytes).unwrap();
    then(&format!("{}, byte {at}", file.display()));
    std::fs::write(file, whole).unwrap();
}

#[test]
fn flipped_bits() {
    let (folder, _) = undisturbed();
    let files = files_in(folder.path("whole"));
    let tally = Tally::default();
    for trial in 0..repeated(500) {
        with_flipped_bit(&files, trial, |about| {
            let (stdout, _) = folder.run(&["verify", "whole"], 1);
            assert!(stdout.contains("1 file is damaged"), "{about}: {stdout}");
        });
        tally.note(Found::default(), "");
    }
    tally.row("flipped bits in a results folder, found by `verify`");
}

/// Whoever reads results says what is said of undamaged ones, or that they are damaged.
#[test]
fn flipped_bits_and_those_who_read_them() {
    let (folder, _) = undisturbed();
    folder.write("new.jsonl", "{\"embedding\": [0.1, 0.2, 0.3, 0.4]}\n{\"embedding\": [1, 0, 1, 0]}\n");
    std::fs::copy(folder.path("whole/assignments.parquet"), folder.path("known.parquet")).unwrap();
    let tally = Tally::default();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (folder, tally) = (&folder, &tally);
            scope.spawn(move || {
                let (out, assigned) = (format!("half{half}"), format!("assigned{half}.parquet"));
                copy(&folder.path("whole"), &folder.path(&out));
                let predicted = format!("{out}/assignments.parquet");
                let commands = [
                    &["report", &out, "--format", "md", "--layout", "long"][..],
                    &["diff", &out, "other", "--format", "csv"],
                    &["assign", &out, "new.jsonl", "--out", &assigned, "--trial", "1", "--quiet"],
                    &["eval", &predicted, "known.parquet:clusters", "--format", "csv"],
                ];
                // What is printed, and what is written.
                let said = |command: &[&str]| {
                    let _ = std::fs::remove_file(folder.path(&assigned));
                    let output = folder.compflow(command).output().unwrap();
                    let written = std::fs::read(folder.path(&assigned)).ok();
                    (output.status.code(), output.stdout, written)
                };
                let whole = commands.map(said);
                assert!(whole.iter().all(|(code, ..)| matches!(code, Some(0 | 1))), "{whole:?}");
                // Nobody reads cells but runs.
                let mut files = files_in(folder.path(&out));
                files.retain(|file| file.parent() == Some(&folder.path(&out).canonicalize().unwrap()));
                for trial in (half..repeated(100)).step_by(2) {
                    with_flipped_bit(&files, trial, |about| {
                        for (command, whole) in commands.iter().zip(&whole) {
                            let found = said(command);
                            let is_refused = found.0 == Some(2) && found.1.is_empty() && found.2.is_none();
                            let wrong =
                                if is_refused || found == *whole { vec![] } else { vec![format!("{found:?}")] };
                            tally.note(Found { lost: 0, wrong }, &format!("{command:?}: {about}"));
                        }
                    });
                }
            });
        }
    });
    tally.row("flipped bits, noticed by `report`, `diff`, `assign` and `eval`, or nothing to them");
}

/// Components that say all went well, in the same process and in another: afterwards what others found is what they find without them.
#[test]
fn components_that_do_what_they_must_not() {
    let undisturbed = Folder::new();
    undisturbed.write("p.toml", SMALL);
    let args = ["--plugins", "wrong", "run", "p.toml", "--out", "out", "--jobs", "1", "--format", "csv"];
    add_wrong(&undisturbed);
    let (expected, _) = undisturbed.run(&args, 0);
    let clusterer = |mode: &str| {
        format!("{SMALL}\n[[clusterer]]\nname = \"bad\"\nuse = \"wrong\"\nparams = {{ mode = \"{mode}\" }}\n")
    };
    let evaluator =
        |mode: &str| format!("{SMALL}\n[[evaluator]]\nuse = \"wrong\"\nparams = {{ mode = \"{mode}\" }}\n");
    let composer = format!("{SMALL}\n[composer]\nuse = \"wrong\"\n\n[[clusterer]]\nuse = \"cap\"\n");
    let failing = ["cancel", "complain", "wide", "twins", "hungry", "shout", "overwrite", "lazy"]
        .map(|mode| (clusterer(mode), 1));
    let harmless = ["round", "settle", "none"].map(|mode| (clusterer(mode), 0));
    let scoring = ["overwrite", "cancel", "beyond", "lazy"].map(|mode| (evaluator(mode), 1));
    let composing = [(composer, 1)];
    let tally = Tally::default();
    for (text, code) in failing.into_iter().chain(harmless).chain(scoring).chain(composing) {
        for isolate in ["isolate=true", "isolate=false"] {
            let folder = Folder::new();
            add_wrong(&folder);
            folder.write("p.toml", &text);
            folder.write("w.bin", "A");
            folder.run(&[&args[..], &["--set", isolate, "--memory", "1GB"]].concat(), code);
            folder.write("p.toml", SMALL);
            let mut found = Found::default();
            if folder.run(&args, 0).0 != expected {
                found.wrong.push("what others found".to_owned());
            }
            folder.run(&["verify", "out"], 0);
            tally.note(found, &format!("{isolate}: {text}"));
        }
    }
    tally.row("components that do what they must not, and say that all went well");
}
