//! Components and libraries that fork: what a second process says is nobody's answer, and what it does is done by nobody else.

use std::process::{Command, Stdio};

use crate::common::{Folder, SMALL, finished, texts};
use crate::reliability::Tally;
use crate::silently_wrong::add_wrong;

/// A loader, a clusterer and an evaluator that can fork, beside others that do not.
const PIPELINE: &str = r#"
seed = 3

[[data]]
name = "made"
loader = "synthetic"
params = { n = 45, dim = 4, k = 3, noise = 0.05, trials = 2 }

[[data]]
name = "other"
loader = "wrong"
columns = { embedding = "embedding" }

[[clusterer]]
name = "bad"
use = "wrong"

[[clusterer]]
name = "KM"
use = "kmeans"
params = { k = 6, restarts = 3 }

[[evaluator]]
use = "silhouette"

[[evaluator]]
use = "wrong"
"#;

fn with_wrong() -> Folder {
    let folder = Folder::new();
    add_wrong(&folder);
    folder.write("p.toml", PIPELINE);
    folder
}

/// Runs the command with a library that forks there; waits for all that it has left, which holds the other end of what it prints.
fn forking(folder: &Folder, at: &str, args: &[&str]) -> (String, String) {
    let mut command = folder.compflow(args);
    command.env("WRONG_TWINS", at).env("XDG_CACHE_HOME", folder.path("cache")).stdin(Stdio::null());
    finished(command.output().unwrap(), 0)
}

/// Everything that a run leaves but how long it took.
fn left(folder: &Folder, at: &str, isolate: &str) -> (String, Vec<u8>) {
    let _ = std::fs::remove_dir_all(folder.path("out"));
    let run = ["--plugins", "wrong", "run", "p.toml", "--out", "out", "--jobs", "1", "--format", "csv"];
    let (stdout, stderr) = forking(folder, at, &[&run[..], &["--set", isolate]].concat());
    assert!(!stderr.contains("error") && !stderr.contains("failed"), "{at}, {isolate}: {stderr}");
    let runs = folder.read_parquet("out/runs.parquet");
    assert_eq!(texts(&runs, "clusterer").len(), 6, "{at}, {isolate}: {stdout}");
    assert!(texts(&runs, "status").iter().all(|status| *status == "ok"), "{at}, {isolate}: {stdout}");
    folder.run(&["verify", "out"], 0);
    (stdout, std::fs::read(folder.path("out/metrics.parquet")).unwrap())
}

#[test]
fn a_component_that_returns_in_two_processes_has_returned_once() {
    let folder = with_wrong();
    let (alone, tally) = (left(&folder, "nowhere", "isolate=true"), Tally::default());
    for at in ["cluster", "evaluate", "create", "flags", "destroy", "load"] {
        for isolate in ["isolate=true", "isolate=false"] {
            assert_eq!(left(&folder, at, isolate), alone, "{at}, {isolate}");
            tally.survived(1);
        }
    }
    tally.row("components that fork, and go on in two processes");
}

#[test]
fn a_library_that_forks_while_it_is_opened_spoils_nothing_that_is_kept() {
    let tally = Tally::default();
    for at in ["open", "describe"] {
        let folder = with_wrong();
        let (listed, _) = forking(&folder, at, &["--plugins", "wrong", "plugins"]);
        let again = forking(&folder, "nowhere", &["--plugins", "wrong", "plugins"]).0;
        std::fs::remove_dir_all(folder.path("cache")).unwrap();
        let alone = forking(&folder, "nowhere", &["--plugins", "wrong", "plugins"]).0;
        assert_eq!([&listed, &again], [&alone; 2], "{at}");
        tally.survived(1);
        // Opened to be used, too.
        left(&folder, at, "isolate=false");
        tally.survived(1);
        folder.write("small.toml", SMALL);
        forking(&folder, "nowhere", &["check", "small.toml"]);
    }
    tally.row("libraries that fork while they are opened, and go on in two processes");
}

#[test]
fn a_library_that_no_longer_offers_what_was_kept_is_looked_at_again() {
    let folder = with_wrong();
    let check = |variable: &str, code: i32| {
        let mut command = folder.compflow(&["--plugins", "wrong", "check", "p.toml"]);
        finished(command.env(variable, "1").env("XDG_CACHE_HOME", folder.path("cache")).output().unwrap(), code).1
    };
    check("NOTHING", 0);
    let stderr = check("WRONG_LESS", 2);
    let expected =
        "libcompflow_wrong.so no longer offers the clusterer `wrong`, as it did when it was looked at; run again";
    assert!(stderr.contains(expected), "{stderr}");
    let stderr = check("WRONG_LESS", 2);
    assert!(stderr.contains("there is no clusterer named `wrong`"), "{stderr}");
}

#[test]
fn what_is_kept_of_a_library_and_is_not_what_was_written_is_made_anew() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    let check = || forking(&folder, "nowhere", &["check", "small.toml"]);
    check();
    let kept =
        || std::fs::read_dir(folder.path("cache/compflow/libraries")).unwrap().map(|entry| entry.unwrap().path());
    let read = || kept().map(|path| std::fs::read_to_string(path).unwrap_or_default()).collect::<Vec<_>>();
    let whole = read();
    for path in kept() {
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("kmeans", "kmeanz")).unwrap();
    }
    assert_ne!(read(), whole);
    check();
    assert_eq!(read(), whole);
    // Nobody would ever write to it.
    for path in kept() {
        std::fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    }
    check();
    assert!(kept().all(|path| std::fs::symlink_metadata(path).unwrap().is_file()));
    assert_eq!(read(), whole);
}
