//! Runs that are killed, and disks that fail, at every moment: nothing is lost that was finished, and nothing is wrong afterwards.
//!
//! `COMPFLOW_TRIALS=10` tries ten times as many moments where they are chosen at random. What was tried is left in
//! `target/reliability.md`, which `docs/reliability.md` has from a run of all of it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Folder, SMALL, build_folder, repository};
use crate::silently_wrong::add_wrong;

const TABLES: [&str; 4] = ["metrics", "summary", "assignments", "clusters"];

/// What came of trying one kind of fault.
#[derive(Default)]
struct Tally {
    tried: AtomicUsize,
    survived: AtomicUsize,
}

impl Tally {
    /// Writes the row of this fault down; it is read by people.
    fn row(&self, fault: &str) -> usize {
        let (tried, survived) = (self.tried.load(Ordering::Relaxed), self.survived.load(Ordering::Relaxed));
        let folder = build_folder("reliability");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(
            folder.join(fault.replace('/', "-")),
            format!("| {fault} | {tried} | {survived} | 0 | {} |\n", tried - survived),
        )
        .unwrap();
        assert_eq!(tried, survived, "{fault}");
        let page = std::fs::read_to_string(repository().join("docs/reliability.md")).unwrap();
        assert!(page.contains(&format!("| {fault} |")), "docs/reliability.md has no row for `{fault}`");
        tried
    }
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

/// A folder with what an undisturbed run finds.
fn undisturbed() -> (Folder, String) {
    let folder = Folder::new();
    folder.write("p.toml", SMALL);
    folder.run(&["run", "p.toml", "--out", "whole", "--jobs", "1"], 0);
    let report = folder.run(&["report", "whole", "--format", "md", "--layout", "long"], 0).0;
    (folder, report)
}

/// After whatever happened to a run: what is there says the truth or nothing, and a second run finds what an undisturbed one does.
fn recovers(folder: &Folder, out: &str, report: &str, about: &str) {
    let seen = folder.compflow(&["report", out, "--format", "md", "--layout", "long"]).output().unwrap();
    match seen.status.code() {
        Some(0) => assert_eq!(String::from_utf8(seen.stdout).unwrap(), report, "{about}"),
        code => assert_eq!(code, Some(2), "{about}: {}", String::from_utf8_lossy(&seen.stderr)),
    }
    folder.run(&["run", "p.toml", "--out", out, "--jobs", "1"], 0);
    for table in TABLES {
        let read = |out: &str| std::fs::read(folder.path(&format!("{out}/{table}.parquet"))).unwrap();
        assert!(read(out) == read("whole"), "{about}: {table} differs");
    }
    folder.run(&["verify", out], 0);
    std::fs::remove_dir_all(folder.path(out)).unwrap();
}

/// Calls of a run that can fail.
fn calls(folder: &Folder) -> usize {
    let counted = folder.path("calls");
    let mut command = folder.compflow(&["run", "p.toml", "--out", "counted", "--jobs", "1"]);
    command.env("LD_PRELOAD", shim()).env("FAULT_CALLS", &counted);
    assert!(command.output().unwrap().status.success());
    let calls = std::fs::read_to_string(counted).unwrap().parse().unwrap();
    assert!(calls > 20, "{calls} calls");
    calls
}

/// Lets every call of a run fail, one run for each.
fn at_every_call(fault: &str, number: i32, expected: &[&str]) {
    let (folder, report) = undisturbed();
    let (calls, tally, next) = (calls(&folder), Tally::default(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= calls {
                        break;
                    }
                    tally.tried.fetch_add(1, Ordering::Relaxed);
                    let out = format!("out{at}");
                    let mut command = folder.compflow(&["run", "p.toml", "--out", &out, "--jobs", "1"]);
                    command.env("LD_PRELOAD", shim()).env("FAULT_AT", at.to_string());
                    let output = command.env("FAULT_ERRNO", number.to_string()).output().unwrap();
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
                    recovers(&folder, &out, &report, &format!("{fault} at {at}"));
                    tally.survived.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    tally.row(fault);
}

#[test]
fn killed_at_every_write_sync_and_rename() {
    at_every_call("killed at every write, sync and rename", 0, &[]);
}

#[test]
fn a_disk_that_is_full_at_every_write() {
    at_every_call("no space at every write, sync and rename", 28, &["the disk is full"]);
}

#[test]
fn a_disk_that_fails_at_every_write() {
    at_every_call("I/O error at every write, sync and rename", 5, &["input/output error"]);
}

#[test]
fn killed_at_random_moments() {
    let (folder, report) = undisturbed();
    let tally = Tally::default();
    for trial in 0..repeated(50) {
        tally.tried.fetch_add(1, Ordering::Relaxed);
        let out = format!("killed{trial}");
        let mut command = folder.compflow(&["run", "p.toml", "--out", &out, "--jobs", "1"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A run takes about a tenth of a second; the moments are spread by a multiple of the golden section.
        std::thread::sleep(Duration::from_micros((trial as u64 * 61_803_399) % 120_000));
        child.kill().unwrap();
        child.wait().unwrap();
        recovers(&folder, &out, &report, &format!("killed, trial {trial}"));
        tally.survived.fetch_add(1, Ordering::Relaxed);
    }
    assert!(tally.row("killed at random moments") >= 50);
}

#[test]
fn flipped_bits() {
    let (folder, _) = undisturbed();
    let mut files = vec![folder.path("whole")];
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
    let tally = Tally::default();
    for trial in 0..repeated(500) {
        tally.tried.fetch_add(1, Ordering::Relaxed);
        let file = &found[trial % found.len()];
        let whole = std::fs::read(file).unwrap();
        let mut bytes = whole.clone();
        let at = (trial * 7919) % bytes.len();
        bytes[at] ^= 1 << (trial % 8);
        std::fs::write(file, bytes).unwrap();
        let (stdout, _) = folder.run(&["verify", "whole"], 1);
        assert!(stdout.contains("1 file is damaged"), "{}, byte {at}: {stdout}", file.display());
        std::fs::write(file, whole).unwrap();
        tally.survived.fetch_add(1, Ordering::Relaxed);
    }
    tally.row("flipped bits in a results folder, found by `verify`");
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
    let failing =
        ["cancel", "complain", "wide", "twins", "hungry", "shout", "overwrite"].map(|mode| (clusterer(mode), 1));
    let harmless = ["round", "settle", "none"].map(|mode| (clusterer(mode), 0));
    let scoring = ["overwrite", "cancel", "beyond"].map(|mode| (evaluator(mode), 1));
    let composing = [(composer, 1)];
    let tally = Tally::default();
    for (text, code) in failing.into_iter().chain(harmless).chain(scoring).chain(composing) {
        for isolate in ["isolate=true", "isolate=false"] {
            tally.tried.fetch_add(1, Ordering::Relaxed);
            let folder = Folder::new();
            add_wrong(&folder);
            folder.write("p.toml", &text);
            folder.run(&[&args[..], &["--set", isolate, "--memory", "1GB"]].concat(), code);
            folder.write("p.toml", SMALL);
            assert_eq!(folder.run(&args, 0).0, expected, "{isolate}: {text}");
            folder.run(&["verify", "out"], 0);
            tally.survived.fetch_add(1, Ordering::Relaxed);
        }
    }
    tally.row("components that do what they must not, and say that all went well");
}
