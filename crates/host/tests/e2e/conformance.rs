//! `compflow test-plugin`: what we ship passes, and every rule can be broken.

use std::collections::BTreeMap;

use crate::common::{Folder, libraries, library_name, repository};
use crate::new_plugins::compile;

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
    let stems = ["baselines", "cap", "cgm", "ckm", "composers", "gcr", "metrics"];
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
    folder.write("few.csv", "embedding,id\n0.5 1.5,1\n2.5 3.5,2\n");
    folder.write("few.jsonl", "{\"embedding\": [0.5, 1.5], \"id\": 1}\n{\"embedding\": [2.5, 3.5], \"id\": 2}\n");
    let paths = [parquet.as_str(), "npy=few.npy", "arrow=few.arrow", "csv=few.csv", "json=few.jsonl"];
    passes(&folder, "loaders", &paths.iter().flat_map(|path| ["--path", path]).collect::<Vec<&str>>());
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
    (
        "clusterer excessive",
        "clusters into feasible sets",
        "an impossible result: the cluster [0, 1] has more members than the degree, 1",
    ),
    (
        "clusterer absent",
        "clusters into feasible sets",
        "example 0 is assigned to nothing, which the component does not declare",
    ),
    ("clusterer vague", "survives a single example", "fails with the code of its own faults: one is not enough"),
    ("clusterer extravagant", "states its memory", "states 999940, 994000 and 990000 bytes for 60, 6000 and"),
    (
        "clusterer extravagant",
        "keeps to its budget",
        "states 999940 bytes, and with one less fails without the code of the budget: there is too little",
    ),
    ("clusterer forgetful", "says what it needs", "an instance lacks a flag that the component says all have"),
    ("clusterer absentminded", "takes the columns that it asks for", "the data has no further column `width`"),
    ("clusterer heavy", "takes weights of 1 for none", "the results differ"),
    ("clusterer heavy", "survives weights of 0", "weighs nothing"),
    ("clusterer stubborn", "takes known sets that are all empty for none", "the results differ"),
    (
        "clusterer stubborn",
        "keeps a few known sets",
        "an impossible result: example 5 is known to belong to [1, 2] and was assigned to [0]",
    ),
    ("clusterer stubborn", "keeps known unions whose members are never alone", "is known to belong to [0, 1]"),
    (
        "clusterer stubborn",
        "keeps known sets that the examples do not bear out",
        "example 0 is known to belong to [1]",
    ),
    ("clusterer stubborn", "keeps the known sets of all examples", "example 1 is known to belong to [1]"),
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
    (
        "clusterer farsighted",
        "finds the same in examples that are elsewhere",
        "other clusters are found in examples that are elsewhere",
    ),
    ("composer careless", "composes every row", "value 5 of row 19 is NaN"),
    ("composer careless", "has the gradients of what it composes", " in direction 1 of 12, relative error "),
    ("composer careless", "survives no rows", "panicked"),
    ("composer timid", "composes negative, large and zero vectors", " is NaN"),
    ("composer angular", "composes matrices of any shape", "1 rows of 1 numbers: value 0 of row 0 is NaN"),
    ("composer contrary", "composes two whatever their order", " for g(b, a) and "),
    ("composer contrary", "composes three whatever their grouping", " for g(a, g(b, c)) and "),
    ("composer partial", "composes sets of one and two as it does without sets", " for a set of two and "),
    ("composer partial", "composes sets whatever the order of their members", " for the vectors in reverse and "),
    ("composer partial", "has the gradients of the sets that it composes", " where differences give "),
    ("composer erratic", "gives the same result with its defaults written out", "the results differ"),
    ("composer erratic", "gives the same result every time", "the results differ"),
    ("composer erratic", "gives the same result row by row", " for alone and "),
    ("composer erratic", "gives the same result to several threads at once", "the results differ"),
    ("composer erratic", "loses no memory", "bytes more are allocated"),
    ("composer brittle", "survives a single row", "too few"),
    ("composer brittle", "survives the same row many times", "the same again"),
    ("composer brittle", "survives huge values", "too much"),
    ("evaluator literal", "takes labels for names without meaning", " becomes "),
    ("evaluator literal", "scores without the truth", "needs true sets, and the data has none"),
    ("evaluator undefined", "scores with numbers", "NaN"),
    (
        "evaluator immodest",
        "says what its metrics are",
        "`owed` counts or is a distance, and is said to be -2 at least",
    ),
    ("evaluator immodest", "scores within its ranges", "`immodest` is 1.5, which is not between 0 and 1"),
    ("evaluator rootless", "scores with and without centroids", "nothing in the middle"),
    ("evaluator absentminded", "takes the columns that it asks for", "the data has no further column `width`"),
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
    ("evaluator brittle", "scores empty sets", "nothing there"),
    ("loader erratic", "yields the wanted columns and no others", "and yields [\"surplus\"]"),
    ("loader erratic", "gives the same result with its defaults written out", "the results differ"),
    ("loader erratic", "gives the same result for the same seed", "the results differ"),
    ("loader erratic", "gives the same result with any number of threads", "the results differ"),
    ("loader erratic", "yields a stream that outlives it", "the results differ"),
    ("loader erratic", "loses no memory", "bytes more are allocated"),
    ("loader erratic", "refuses a column that is not there", "accepts a column that is not there in `load`"),
    ("loader boastful", "describes what it loads", "says 9 rows and yields 1"),
    (
        "loader boastful",
        "refuses a column that is not there",
        "without the code and the name `column:missing`: there is no such thing",
    ),
    ("loader nameless", "says what there is to load", "give --columns nameless:embedding=..."),
    ("loader brittle", "survives no file", "panicked"),
    ("loader brittle", "survives an empty file", "panicked"),
    ("loader brittle", "survives a broken file", "panicked"),
];

/// Clusterers are never called without examples by the side of the boundary that Rust plugins have, and cannot write into
/// what it lends them.
const UNBREAKABLE: [&str; 2] = ["clusterer: survives no examples", "clusterer: leaves what it is given alone"];
/// What all kinds of components are tested for is broken by clusterers.
const COMMON: [&str; 5] = [
    "describes itself",
    "can be made, and from its defaults too",
    "refuses bad parameters by their names",
    "says what it needs",
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
    let alone =
        ["crowded", "lonely", "bored", "delicate", "leaky", "chatty", "mute", "secretive", "vague", "forgetful"];
    for component in alone {
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
        let kept = COMMON.contains(&point) || UNBREAKABLE.contains(&rule.as_str()) || verdict.starts_with("skip");
        assert!(kept || broken.contains(&rule), "nobody breaks `{rule}`\n{stdout}");
    }
}

/// What components may be like is tried with some that are, and behave.
#[test]
fn every_rule_can_be_kept() {
    let folder = Folder::new();
    folder.add_faulty();
    let library = folder.path("faulty").join(library_name("faulty"));
    let good = ["choosy", "middle", "total", "spread", "named"];
    let mut args = vec![library.to_str().unwrap(), "--columns", "named:embedding=vec,truth=labels"];
    args.extend(good.iter().flat_map(|name| ["--component", name]));
    let (found, stdout) = verdicts(&folder, &args, 0);
    assert!(found.values().all(|verdict| verdict == "ok"), "{stdout}");
    for kept in [
        "clusterer choosy: takes the columns that it asks for",
        "clusterer choosy: takes weights of 1 for none",
        "clusterer choosy: keeps to its budget",
        "composer middle: composes sets of one and two as it does without sets",
        "composer middle: has the gradients of the sets that it composes",
        "composer total: composes two whatever their order",
        "composer total: composes three whatever their grouping",
        "evaluator spread: scores without the truth",
        "evaluator spread: scores with and without centroids",
        "evaluator spread: takes the columns that it asks for",
        "loader named: describes what it loads",
        "loader named: refuses a column that is not there",
    ] {
        assert!(found.contains_key(kept), "{kept}\n{stdout}");
    }
    // Without the user's word, it says what it has.
    let (found, stdout) = verdicts(&folder, &[library.to_str().unwrap(), "--component", "named"], 1);
    let verdict = &found["loader named: says what there is to load"];
    assert!(verdict.ends_with("give --columns named:embedding=..."), "{stdout}");
    let (_, stderr) = folder.run(&["test-plugin", library.to_str().unwrap(), "--columns", "vec"], 2);
    assert!(stderr.contains("--columns vec: expected COLUMN=SOURCE, found `vec`"), "{stderr}");
}

/// Rules that Rust does not let a plugin break.
#[test]
fn what_only_c_can_break_is_noticed() {
    let folder = Folder::new();
    folder.run(&["new-plugin", "scribbler", "--kind", "clusterer", "--lang", "c"], 0);
    let at = folder.path("scribbler");
    let source = std::fs::read_to_string(at.join("scribbler.c")).unwrap();
    let try_with = |name: &str, changes: &[(&str, &str)]| {
        let mut source = source.clone();
        for (from, to) in changes {
            assert!(source.contains(from), "{from}");
            source = source.replace(from, to);
        }
        let (file, library) = (at.join(format!("{name}.c")), at.join(library_name(name)));
        std::fs::write(&file, source).unwrap();
        compile(&file, &library, &[]);
        verdicts(&folder, &[library.to_str().unwrap()], 1)
    };
    let (found, stdout) = try_with(
        "writes",
        &[(
            "  uint64_t n = task->rows, k =",
            "  ((float *)task->embeddings)[1] += 1;\n  uint64_t n = task->rows, k =",
        )],
    );
    let verdict = &found["clusterer scribbler: leaves what it is given alone"];
    assert_eq!(verdict, "FAIL writes into the embeddings", "{stdout}");
    let (found, stdout) =
        try_with("vague", &[("compflow_unknown(host, &param)", "compflow_fail_data(host, \"not like this\")")]);
    let verdict = &found["clusterer scribbler: refuses bad parameters by their names"];
    let text = "which is no parameter without the code and the name `no_such_parameter`: not like this";
    assert!(verdict.contains(text), "{verdict}\n{stdout}");
    let flags = "static int32_t flags_of(void *instance, const CompflowHost *host, uint64_t *flags) {\n  (void)instance, \
                 (void)host;\n  *flags = 1u << 31;\n  return COMPFLOW_STATUS_OK;\n}\n\nstatic const CompflowComponent COMPONENT";
    let (found, stdout) = try_with(
        "unknown",
        &[
            ("static const CompflowComponent COMPONENT", flags),
            (".methods = &METHODS,", ".methods = &METHODS,\n    .flags_of = flags_of,"),
        ],
    );
    let verdict = &found["clusterer scribbler: says what it needs"];
    assert!(verdict.contains("flags 0x80000000 that this compflow does not understand"), "{verdict}\n{stdout}");
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
