//! Under which licences the dependencies come, and where from: as `deny.toml` says. Vulnerabilities take a database, see `.ci/deny`.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::common::repository;

/// Whether a licence expression can be met with these licences.
fn allowed(expression: &str, licences: &BTreeSet<String>) -> bool {
    // Older crates write `/` for OR.
    let expression =
        expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ").replace(" WITH ", "\u{1}");
    let mut words = expression.split_whitespace().peekable();
    alternatives(&mut words, licences)
}

type Words<'t> = std::iter::Peekable<std::str::SplitWhitespace<'t>>;

fn alternatives(words: &mut Words<'_>, licences: &BTreeSet<String>) -> bool {
    let mut met = all(words, licences);
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, licences);
    }
    met
}

fn all(words: &mut Words<'_>, licences: &BTreeSet<String>) -> bool {
    let mut met = one(words, licences);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, licences);
    }
    met
}

fn one(words: &mut Words<'_>, licences: &BTreeSet<String>) -> bool {
    match words.next() {
        Some("(") => {
            let met = alternatives(words, licences);
            assert_eq!(words.next(), Some(")"));
            met
        }
        Some(licence) => licences.contains(&licence.replace('\u{1}', " WITH ")),
        None => false,
    }
}

#[test]
fn every_dependency_has_a_known_licence_and_source() {
    let deny: toml::Table = std::fs::read_to_string(repository().join("deny.toml")).unwrap().parse().unwrap();
    let allow = deny["licenses"]["allow"].as_array().unwrap();
    let licences: BTreeSet<String> = allow.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    let metadata = |of: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--format-version", "1", "--offline", "--locked"]).args(of);
        cargo.current_dir(repository()).output().unwrap()
    };
    let mut output = metadata(&[]);
    if !output.status.success() {
        // Those of other platforms need not have been downloaded; `.ci/deny` looks at all.
        let host = Command::new("rustc").args(["--print", "host-tuple"]).output().unwrap();
        output = metadata(&["--filter-platform", String::from_utf8_lossy(&host.stdout).trim()]);
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = found["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "{}", packages.len());
    for package in packages {
        let (name, licence) = (package["name"].as_str().unwrap(), package["license"].as_str().unwrap_or_default());
        assert!(allowed(licence, &licences), "{name} comes under `{licence}`, which deny.toml does not allow");
        let source = package["source"].as_str().unwrap_or("registry+");
        assert!(source.starts_with("registry+"), "{name} comes from {source}");
    }
}

#[test]
fn licence_expressions_are_read_as_they_are_meant() {
    let licences = ["MIT", "Apache-2.0", "X WITH y"].map(str::to_owned).into();
    for fine in [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/GPL-3.0",
        "MIT AND Apache-2.0",
        "(GPL-3.0 OR MIT) AND Apache-2.0",
        "X WITH y",
    ] {
        assert!(allowed(fine, &licences), "{fine}");
    }
    for not in ["", "GPL-3.0", "MIT AND GPL-3.0", "X", "(GPL-3.0 AND MIT) OR BSD"] {
        assert!(!allowed(not, &licences), "{not}");
    }
}
