//! `include/compflow.h` is what the C ABI looks like from C: made from `abi.rs`, kept, and compared here.
//!
//! After a change of `abi.rs`: `COMPFLOW_UPDATE=1 cargo test --release -p compflow-api --test header`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

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
    for arrow in ["ArrowArray", "ArrowSchema", "ArrowArrayStream"] {
        renamed.push((format!("FFI_{arrow}"), arrow.to_owned()));
    }
    config.export.rename.extend(renamed.iter().cloned());
    let mut bytes = Vec::new();
    Builder::new().with_src(abi).with_config(config).generate().unwrap().write(&mut bytes);
    let mut text = String::from_utf8(bytes).unwrap();
    // Rust's links in comments: [`RawHost::error`] is CompflowHost.error here.
    for (rust, c) in &renamed {
        text = text.replace(&format!("[`{rust}`]"), c).replace(&format!("[`{rust}::"), &format!("[`{c}."));
    }
    for prefix in ["KIND", "NEEDS", "HAS", "NORMALIZE", "DISTANCE", "LOG"] {
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
