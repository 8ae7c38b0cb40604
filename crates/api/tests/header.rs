//! `include/compflow.h` is what the C ABI looks like from C: made from `abi.rs`, kept, and compared here.
//!
//! After a change of `abi.rs`: `COMPFLOW_UPDATE=1 cargo test --release -p compflow-api --test header`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cbindgen::{Builder, Config, DocumentationStyle, Language, RenameRule, Style};

/// The guard stands here and not in cbindgen's hands, whose would end before what libraries define.
const HEAD: &str = "/* Made from crates/api/src/abi.rs: change that, not this. SPDX: MIT OR Apache-2.0 */
#ifndef COMPFLOW_H
#define COMPFLOW_H";

/// Before everything else: the Arrow C data and stream interfaces, as their specification asks to be included.
const ARROW: &str = include_str!("header/arrow.h");

/// Behind everything else: what a library must define.
const EXPORTS: &str = include_str!("header/exports.h");

fn manifest() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// `RawClustererMethods` is `CompflowClustererMethods` in C.
fn c_name(rust: &str) -> String {
    format!("Compflow{}", rust.trim_start_matches("Raw"))
}

/// The names of all items that `keyword` introduces.
fn names<'s>(source: &'s str, keyword: &str) -> Vec<&'s str> {
    let introduction = format!("pub {keyword} ");
    let behind = |line: &'s str| line.strip_prefix(&introduction);
    let ends = |c: char| !c.is_alphanumeric() && c != '_';
    source.lines().filter_map(behind).map(|rest| rest.split(ends).next().unwrap()).collect()
}

/// The constants of 64 bits as C has to write them: `1 << 32` is none there.
fn wide_constants(source: &str) -> Vec<(&str, String)> {
    let lines = source.lines().filter_map(|line| line.strip_prefix("pub const ")?.split_once(": u64 = "));
    lines
        .map(|(name, value)| {
            let value = value.trim_end_matches(';').replace('_', "");
            let written = match value.split_once(" << ") {
                _ if value == "u64::MAX" => "UINT64_MAX".to_owned(),
                Some((one, by)) => format!("(UINT64_C({one}) << {by})"),
                None => format!("UINT64_C({value})"),
            };
            (name, written)
        })
        .collect()
}

fn header(abi: &Path) -> String {
    let source = std::fs::read_to_string(abi).unwrap();
    let source = source.split("#[cfg(test)]").next().unwrap();
    let mut config = Config {
        language: Language::C,
        header: Some(HEAD.to_owned()),
        after_includes: Some(ARROW.trim_end().to_owned()),
        trailer: Some(EXPORTS.trim_end().to_owned()),
        cpp_compat: true,
        documentation_style: DocumentationStyle::C99,
        style: Style::Both,
        no_includes: true,
        sys_includes: vec!["stdint.h".to_owned()],
        usize_is_size_t: true,
        ..Config::default()
    };
    config.structure.rename_fields = RenameRule::None;
    let mut renamed: Vec<(String, String)> = Vec::new();
    for name in names(source, "struct").into_iter().chain(names(source, "type")) {
        config.export.include.push(name.to_owned());
        renamed.push((name.to_owned(), c_name(name)));
    }
    for name in names(source, "const") {
        renamed.push((name.to_owned(), format!("COMPFLOW_{name}")));
    }
    config.export.rename.extend(renamed.iter().cloned());
    let mut bytes = Vec::new();
    // cbindgen does not see that a type with a name of its own is a function, which may be null in C anyway.
    let folder = tempfile::tempdir().unwrap();
    let readable = folder.path().join("abi.rs");
    let functions = names(source, "type").into_iter();
    let whole = functions.fold(source.to_owned(), |text, name| text.replace(&format!("Option<{name}>"), name));
    std::fs::write(&readable, whole).unwrap();
    Builder::new().with_src(readable).with_config(config).generate().unwrap().write(&mut bytes);
    let mut text = String::from_utf8(bytes).unwrap();
    for (name, value) in wide_constants(source) {
        let begin = format!("#define COMPFLOW_{name} ");
        let made = text.split(&begin).nth(1).and_then(|rest| rest.lines().next()).unwrap().to_owned();
        text = text.replace(&format!("{begin}{made}\n"), &format!("{begin}{value}\n"));
    }
    // Rust's links in comments: [`RawHost::error`] is CompflowHost.error here.
    for (rust, c) in &renamed {
        text = text.replace(&format!("[`{rust}`]"), c).replace(&format!("[`{rust}::"), &format!("[`{c}."));
    }
    let prefixes: BTreeSet<&str> =
        names(source, "const").iter().filter_map(|name| name.split('_').next()).collect();
    for prefix in prefixes {
        text = text.replace(&format!("`{prefix}_"), &format!("`COMPFLOW_{prefix}_"));
    }
    let mut plain = String::new();
    for (at, part) in text.split("[`").enumerate() {
        plain += &if at == 0 { part.to_owned() } else { part.replacen("`]", "", 1) };
    }
    let comments = "`Raw*Methods`";
    assert!(!plain.replace(comments, "").contains("Raw"), "a Rust name is left over");
    let plain = plain.replace(comments, "`Compflow*Methods`");
    plain.lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn the_header_in_the_repository_is_that_of_the_abi() {
    let kept = manifest().join("include/compflow.h");
    let made = header(&manifest().join("src/abi.rs"));
    if std::env::var_os("COMPFLOW_UPDATE").is_some() {
        std::fs::write(&kept, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&kept).unwrap_or_default();
    let first = kept.lines().zip(made.lines()).find(|(kept, made)| kept != made);
    assert!(kept == made, "include/compflow.h is out of date, first at {first:?}; see the head of this test");
}

/// Runs the C compiler, of which there is one, since Rust links with it.
fn compile(arguments: &[&str]) -> std::process::Output {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    std::process::Command::new(compiler).args(arguments).output().unwrap()
}

#[test]
fn the_convenience_for_c_does_what_it_says() {
    let (include, source) = (manifest().join("include"), manifest().join("tests/header/util.c"));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("util");
    let (include, source) = (include.to_str().unwrap(), source.to_str().unwrap());
    let usual = ["-std=c11", "-g", "-Wall", "-Wextra", "-Werror", "-I", include, source, "-o"];
    let with = |more: &[&str]| compile(&[&usual[..], &[program.to_str().unwrap(), "-lm"], more].concat());
    // Not every compiler comes with its sanitizers.
    if !with(&["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]).status.success() {
        let plain = with(&[]);
        assert!(plain.status.success(), "{}", String::from_utf8_lossy(&plain.stderr));
    }
    let ran = std::process::Command::new(&program).output().unwrap();
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    // Leaks are looked for in a way that some containers and tracers forbid.
    let untraceable = said.contains("LeakSanitizer has encountered a fatal error");
    assert!(ran.status.success() || untraceable, "{said}");
}
