//! `compflow test-plugin`: what we ship passes, and every rule can be broken.

use std::collections::BTreeMap;

use crate::common::{Folder, libraries, library_name, repository};

/// What the kit says of a library: the verdict on every point of every component.
fn verdicts(folder: &Folder, args: &[&str], code: i32) -> (BTreeMap<String, String>, String) {
    let (stdout, _) = folder.run(&[&["test-plugin"], args].concat(), code);
    let lines = stdout.lines().filter_map(|line| {
        let (word, rest) = line.split_once("  ")?;
        let (component, point) = rest.trim().split_once(": ")?;
        let (point, reason) = point.split_once(": ").unwrap_or((point.trim_end_matches(':'), ""));
        Some((format!("{component}: {point}"), format!("{word} {reason}").trim().to_owned()))
    });
    (lines.collect(), stdout)
}

fn passes(folder: &Folder, stem: &str, more: &[&str]) {
    let library = libraries().join(library_name(stem));
    let args = [&[library.to_str().unwrap()], more].concat();
    let (found, stdout) = verdicts(folder, &args, 0);
    assert!(found.values().all(|verdict| verdict == "ok"), "{stdout}");
    assert!(found.len() > 10 && stdout.contains(" 0 failed, 0 skipped\n"), "{stdout}");
}

#[test]
fn our_clusterers_composers_and_evaluators_pass() {
    let folder = Folder::new();
    let (json, _) = folder.run(&["plugins", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let offers = |stem: &str| {
        let file = libraries().join(library_name(stem));
        let found = json.as_array().unwrap().iter().find(|found| found["path"].as_str() == file.to_str());
        found.is_some_and(|found| found["components"].as_array().is_some_and(|components| !components.is_empty()))
    };
    // Those that cannot be made from their defaults alone.
    let weights = repository().join("data/omniglot/g.safetensors");
    let bilinear = format!("bilinear={{\"weights\": \"{}\"}}", weights.display());
    let params = [
        "ac={\"k\": 3}",
        "fcm={\"k\": 3}",
        "gcr={\"base\": {\"use\": \"ac\", \"params\": {\"k\": 5}}}",
        &bilinear,
    ];
    let params: Vec<&str> = params.iter().flat_map(|params| ["--params", params]).collect();
    let stems = ["baselines", "cap", "ckm", "composers", "gcr", "metrics"];
    let tested: Vec<&str> = stems.into_iter().filter(|stem| offers(stem)).collect();
    assert!(tested.len() >= 4, "{tested:?}");
    for stem in tested {
        passes(&folder, stem, &params);
    }
}

#[test]
fn our_loaders_pass() {
    let folder = Folder::new();
    let parquet = format!("parquet={}", repository().join("data/omniglot/d2_n150_test.parquet").display());
    // A version 1.0 header of 118 bytes, a newline at its end, and six numbers.
    let header = format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }");
    let numbers = [0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0].map(f32::to_le_bytes).concat();
    let npy = [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), &numbers].concat();
    std::fs::write(folder.path("few.npy"), npy).unwrap();
    folder.write_arrow("few.arrow");
    passes(&folder, "loaders", &["--path", &parquet, "--path", "npy=few.npy", "--path", "arrow=few.arrow"]);
}

/// A component of the misbehaving library, the point that it fails, and the reason given.
const VIOLATIONS: &[(&str, &str, &str)] = &[
    ("clusterer moody", "gives the same result for the same seed", "the results differ"),
    ("clusterer crowded", "gives the same result with any number of threads", "the results differ"),
    ("clusterer deaf", "stops when it is no longer wanted", "went on for "),
    ("clusterer mute", "says how far it is", "without a word"),
    ("clusterer lonely", "survives a single example", "one is not enough"),
    ("clusterer bored", "survives the same example many times", "the same again"),
    (
        "clusterer delicate",
        "survives huge values",
        "an impossible result: the centroid of cluster [0] has the value NaN",
    ),
    ("clusterer excessive", "clusters into feasible sets", "assigns 2 clusters to an example at degree 1"),
    ("clusterer leaky", "loses no memory", "bytes more are allocated after 1000 rounds of create, run and drop"),
    ("clusterer chatty", "prints nothing on stdout", "here I am"),
    ("clusterer fatal", "survives a single example", "the process ended: "),
    ("clusterer boastful", "clusters into feasible sets", "says that more is done than there is"),
    ("clusterer silent", "survives a single example", "refuses it without saying why"),
    ("clusterer gullible", "refuses bad parameters by their names", "accepts `no_such_parameter` = 1"),
    ("clusterer fickle", "gives the same result with its defaults written out", "the results differ"),
    ("clusterer secretive", "describes itself", "`k` is not described"),
    ("clusterer impossible", "can be made, and from its defaults too", "not today"),
    ("clusterer jealous", "gives the same result to several threads at once", "the results differ"),
    ("clusterer hasty", "gives the same result batch by batch", "the results differ"),
    ("composer careless", "composes every row", "value 5 of row 19 is NaN"),
    ("composer careless", "has the gradients of what it composes", "`vjp` is wrong in "),
    ("composer careless", "survives no rows", "panicked"),
    ("composer erratic", "gives the same result with its defaults written out", "the results differ"),
    ("composer erratic", "gives the same result every time", "the results differ"),
    ("composer erratic", "gives the same result row by row", "a row's result depends on the other rows"),
    ("composer erratic", "gives the same result to several threads at once", "the results differ"),
    ("composer erratic", "loses no memory", "bytes more are allocated"),
    ("composer brittle", "survives a single row", "too few"),
    ("composer brittle", "survives the same row many times", "the same again"),
    ("composer brittle", "survives huge values", "too much"),
    ("evaluator literal", "takes labels for names without meaning", " becomes "),
    ("evaluator undefined", "scores with numbers", "NaN"),
    ("evaluator repetitive", "names its metrics, each once", "reports `again` twice"),
    ("evaluator erratic", "gives the same result with its defaults written out", "the results differ"),
    ("evaluator erratic", "gives the same result every time", "the results differ"),
    ("evaluator erratic", "gives the same result with any number of threads", "the results differ"),
    ("evaluator erratic", "loses no memory", "bytes more are allocated"),
    ("evaluator erratic", "stops when it is no longer wanted", "went on for "),
    ("evaluator brittle", "survives a single example", "too few"),
    ("evaluator brittle", "survives no examples", "too few"),
    ("evaluator brittle", "survives the same example many times", "the same again"),
    ("evaluator brittle", "survives large labels", "too much"),
    ("loader erratic", "yields the wanted columns and no others", "and yields [\"surplus\"]"),
    ("loader erratic", "gives the same result with its defaults written out", "the results differ"),
    ("loader erratic", "gives the same result for the same seed", "the results differ"),
    ("loader erratic", "gives the same result with any number of threads", "the results differ"),
    ("loader erratic", "yields a stream that outlives it", "the results differ"),
    ("loader erratic", "loses no memory", "bytes more are allocated"),
    ("loader brittle", "survives no file", "panicked"),
    ("loader brittle", "survives an empty file", "panicked"),
    ("loader brittle", "survives a broken file", "panicked"),
];

/// Clusterers are never called without examples by the side of the boundary that Rust plugins have.
const UNBREAKABLE: &str = "clusterer: survives no examples";
/// What all kinds of components are tested for is broken by clusterers.
const COMMON: [&str; 4] = [
    "describes itself",
    "can be made, and from its defaults too",
    "refuses bad parameters by their names",
    "prints nothing on stdout",
];

#[test]
fn every_rule_can_be_broken() {
    let folder = Folder::new();
    folder.add_faulty();
    let library = folder.path("faulty").join(library_name("faulty"));
    let names: Vec<&str> = VIOLATIONS.iter().map(|(component, ..)| component.split_once(' ').unwrap().1).collect();
    let only: Vec<&str> = names.iter().flat_map(|name| ["--component", name]).collect();
    let (found, stdout) = verdicts(&folder, &[&[library.to_str().unwrap()][..], &only].concat(), 1);
    for &(component, point, reason) in VIOLATIONS {
        let verdict = found.get(&format!("{component}: {point}")).map_or("nothing", String::as_str);
        assert!(
            verdict.starts_with("FAIL") && verdict.contains(reason),
            "{component}: {point}: {verdict}\n{stdout}"
        );
    }
    // Who breaks one rule is not blamed for another.
    for component in ["crowded", "lonely", "bored", "delicate", "leaky", "chatty", "mute", "secretive"] {
        let failed = found.iter().filter(|(point, verdict)| {
            point.starts_with(&format!("clusterer {component}: ")) && verdict.starts_with("FAIL")
        });
        assert_eq!(failed.count(), 1, "{component}\n{stdout}");
    }
    // No rule is left out.
    let kind_and_point =
        |component: &str, point: &str| format!("{}: {point}", component.split_once(' ').unwrap().0);
    let broken: Vec<String> =
        VIOLATIONS.iter().map(|(component, point, _)| kind_and_point(component, point)).collect();
    for (rule, verdict) in found.iter().filter(|(rule, _)| !rule.starts_with("lib")) {
        let (component, point) = rule.split_once(": ").unwrap();
        let rule = kind_and_point(component, point);
        let kept = COMMON.contains(&point) || rule == UNBREAKABLE || verdict.starts_with("skip");
        assert!(kept || broken.contains(&rule), "nobody breaks `{rule}`\n{stdout}");
    }
}

#[test]
fn a_file_that_is_no_plugin_fails_the_handshake() {
    let folder = Folder::new();
    folder.write(&library_name("text"), "this is no library");
    let (found, stdout) = verdicts(&folder, &[&library_name("text")], 1);
    assert!(found[&format!("{}: handshake", library_name("text"))].contains("cannot be loaded"), "{stdout}");
    let (found, _) =
        verdicts(&folder, &[libraries().join("libfaulty.so").to_str().unwrap(), "--component", "rough"], 1);
    assert!(found["libfaulty.so: is named like a plugin"].starts_with("FAIL"));
    folder.run(&["test-plugin", "nowhere.so"], 2);
}
