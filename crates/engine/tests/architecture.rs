//! The folders of the engine know only those before them, and none of them knows a terminal.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};

/// The modules of the crate's root; each may know those before it.
const ORDER: [&str; 20] = [
    "cancel",
    "causes",
    "files",
    "machine",
    "parallel",
    "processes",
    "problem",
    "error",
    "observer",
    "pipeline",
    "plugin",
    "data",
    "plan",
    "run",
    "results",
    "assign",
    "fitted",
    "shards",
    "fit",
    "fuzzing",
];

/// All source files and their code without comments, line by line.
fn sources() -> Vec<(PathBuf, Vec<String>)> {
    fn visit(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { visit(&path, files) } else { files.push(path) }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    visit(&root, &mut files);
    files.sort();
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    files
        .into_iter()
        .map(|file| {
            let lines = std::fs::read_to_string(&file).unwrap().lines().map(code).collect();
            (file.strip_prefix(&root).unwrap().to_owned(), lines)
        })
        .collect()
}

/// The module of the crate's root that a file belongs to; `None` for the root itself.
fn module(file: &Path) -> Option<String> {
    let first = file.components().next().unwrap().as_os_str().to_str().unwrap();
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib").then(|| name.to_owned())
}

/// The names behind `crate::`; several in braces, which may go on for lines.
fn named(code: &str) -> Vec<&str> {
    let word = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => names.push(&rest[..word(rest)]),
            Some(list) => {
                let mut depth = 0;
                let mut start = 0;
                for (at, character) in list.char_indices() {
                    match character {
                        '{' => depth += 1,
                        '}' if depth > 0 => depth -= 1,
                        ',' | '}' if depth == 0 => {
                            let item = list[start..at].trim();
                            names.extend(Some(&item[..word(item)]).filter(|name| !name.is_empty()));
                            start = at + 1;
                            if character == '}' {
                                break;
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

#[test]
fn no_folder_knows_one_behind_it() {
    let rank = |name: &str| ORDER.iter().position(|known| *known == name);
    let mut wrong = Vec::new();
    for (file, lines) in sources() {
        let Some(own) = module(&file) else { continue };
        let own = rank(&own).unwrap_or_else(|| panic!("{} has no place in the order", file.display()));
        let code = lines.join("\n");
        for name in named(&code) {
            // Names that the root re-exports would hide what is known.
            if rank(name).is_none_or(|other| other > own) {
                wrong.push(format!("{} knows crate::{name}", file.display()));
            }
        }
        if code.contains("super::super") {
            wrong.push(format!("{} leaves its folder by super::super", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_engine_leaves_the_process_alone() {
    const FORBIDDEN: [&str; 8] =
        ["print!(", "println!(", "eprint!(", "dbg!(", "process::exit", "env::var", "thread_local!", "static mut"];
    for (file, lines) in sources() {
        for line in &lines {
            let code = line.trim_start();
            let item = code.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
            // The umask is the process's, and so is what it was before a component changed it. What has no value here is C's.
            let is_ours = item.contains('=') || !item.ends_with(';');
            let global = item.starts_with("static ") && is_ours && file != Path::new("files/umask.rs");
            assert!(!global, "{}: a global: {code}", file.display());
            if let Some(word) = FORBIDDEN.iter().find(|word| code.contains(**word)) {
                panic!("{}: `{word}`: {code}", file.display());
            }
            let unsafe_code = code.contains("unsafe ") && file != Path::new("plugin/library.rs");
            assert!(!unsafe_code, "{}: unsafe code: {code}", file.display());
        }
    }
}

#[test]
fn the_engine_does_not_depend_on_a_terminal() {
    let manifest = include_str!("../Cargo.toml");
    for name in ["annotate-snippets", "clap", "comfy-table", "ctrlc", "indicatif"] {
        assert!(!manifest.contains(name), "{name}");
    }
}

#[test]
fn names_behind_crate_are_found() {
    assert_eq!(named("use crate::plan::cell::Cell;"), ["plan"]);
    assert_eq!(named("use crate::{run, plan::{a, b}, files};"), ["run", "plan", "files"]);
    assert_eq!(named("use crate::{\n    run::Row,\n    plan,\n};"), ["run", "plan"]);
    assert_eq!(named("let x = crate::data::y(crate::run::z);"), ["data", "run"]);
}
