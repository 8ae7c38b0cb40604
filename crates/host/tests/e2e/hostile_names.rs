//! Names come from data and pipelines of other people: what a terminal, a spreadsheet or a page would obey is only shown.

use crate::common::{Folder, SMALL};

/// A clusterer's name as it is written in TOML, and what must not come out.
const NAME: &str = "=cmd|' /C calc'!A0\\u001b[2J\\u202e\\u0085<b>*x*</b>\\nnew\\u200b\\ufeff\\u00ad";

fn harmless(text: &str, of: &str) {
    let misleads = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}' | '\u{feff}' | '\u{ad}');
    let bad = text.chars().find(|&c| (c.is_control() && !matches!(c, '\n' | '\t')) || misleads(c));
    assert_eq!(bad, None, "{of}: {text:?}");
}

#[test]
fn names_of_other_people_are_shown_and_not_obeyed() {
    let folder = Folder::new();
    folder.write("p.toml", &SMALL.replace("name = \"KM\"", &format!("name = \"{NAME}\"")));
    let mut printed = Vec::new();
    for format in ["table", "csv", "md", "latex", "json"] {
        let (stdout, stderr) = folder.run(&["run", "p.toml", "--out", "out", "--format", format], 0);
        harmless(&stdout, format);
        harmless(&stderr, format);
        printed.push(stdout);
    }
    let [table, csv, md, latex, json] = &printed[..] else { panic!("five formats") };
    assert!(
        table.contains("=cmd|' /C calc'!A0␛[2J\u{fffd}\u{fffd}<b>*x*</b>␊new\u{fffd}\u{fffd}\u{fffd}"),
        "{table}"
    );
    assert!(csv.contains(",\"'=cmd|' /C calc'!A0␛[2J"), "{csv}");
    assert!(csv.lines().nth(1).unwrap().starts_with("made,"), "{csv}");
    assert!(md.contains("\\|' /C calc'!A0␛\\[2J\u{fffd}\u{fffd}&lt;b>\\*x\\*&lt;/b>␊new"), "{md}");
    assert!(!latex.contains("\nnew"), "{latex}");
    // Programs get what it is.
    let parsed: serde_json::Value = serde_json::from_str(json).unwrap();
    let name = parsed[0]["clusterer"].as_str().unwrap();
    assert!(name.contains("\u{1b}[2J\u{202e}\u{85}<b>*x*</b>\nnew"), "{name:?}");

    for args in [
        &["plan", "p.toml", "--out", "out"][..],
        &["diff", "out", "out"],
        &["diff", "out", "out", "--format", "csv"],
        &["diff", "out", "out", "--format", "md"],
        &["report", "out", "--format", "md"],
        &["report", "out", "--format", "md", "--layout", "wide"],
    ] {
        let (stdout, stderr) = folder.run(args, 0);
        harmless(&stdout, &args.join(" "));
        harmless(&stderr, &args.join(" "));
        assert!(stdout.contains("␛") || stdout.contains("\u{fffd}"), "{args:?}: {stdout}");
        let quoted = args.contains(&"csv");
        assert!(quoted || !stdout.contains("\nnew"), "one line stays one: {args:?}: {stdout}");
    }
    folder.run(&["report", "out", "--format", "md", "--out", "page.md", "--tests", "tests"], 0);
    folder.run(&["report", "out", "--out", "page.html"], 0);
    for file in ["page.md", "page.html", "tests/small.csv"] {
        harmless(&std::fs::read_to_string(folder.path(file)).unwrap(), file);
    }
}

#[test]
fn results_are_written_with_the_umask_of_the_user() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.write("p.toml", SMALL);
    let run = folder.compflow(&["run", "p.toml", "--out", "out"]);
    let program = run.get_program().to_str().unwrap().to_owned();
    let script = format!("umask 077 && exec {program} run p.toml --out out");
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", &script])
        .current_dir(folder.path("."))
        .env("COMPFLOW_PLUGIN_PATH", crate::common::libraries());
    assert!(command.output().unwrap().status.success());
    let mut folders = vec![folder.path("out")];
    let mut seen = 0;
    while let Some(path) = folders.pop() {
        let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
        for entry in std::fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            seen += 1;
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => {
                    let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                    assert_eq!(mode & 0o077, 0, "{}: {mode:o}", entry.path().display());
                }
                _ => {}
            }
        }
    }
    assert!(seen > 10, "{seen}");
}

/// What is wrong with the command line is said in words that may be other people's, too.
#[test]
fn words_on_the_command_line_are_shown_and_not_obeyed() {
    let folder = Folder::new();
    let hostile = "a\u{202e}b\u{1b}[2Jc\u{200b}";
    for args in [&["run", "--jobs", hostile, "p.toml"][..], &[hostile], &["report", "out", "--format", hostile]] {
        let (_, stderr) = folder.run(args, 2);
        assert!(stderr.contains("a\u{fffd}b␛[2Jc\u{fffd}"), "{args:?}: {stderr}");
        assert!(!stderr.contains(['\u{202e}', '\u{1b}', '\u{200b}']), "{args:?}: {stderr:?}");
    }
}
