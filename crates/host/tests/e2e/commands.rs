//! The smaller commands.

use crate::common::{Folder, SMALL, numbers, sets};

#[test]
fn plugins_lists_the_libraries_and_their_components() {
    let folder = Folder::new();
    let (stdout, _) = folder.run(&["plugins"], 0);
    for component in ["loader    parquet", "composer  bilinear", "clusterer kmeans", "evaluator cri"] {
        assert!(stdout.contains(component), "{component} is missing in\n{stdout}");
    }
}

#[test]
fn inspect_shows_parameters_and_an_example_that_works() {
    let folder = Folder::new();
    let (stdout, _) = folder.run(&["inspect", "kmeans"], 0);
    assert!(stdout.starts_with("clusterer `kmeans`: "), "{stdout}");
    assert!(stdout.contains(" restarts ") && stdout.contains("≥ 1"), "{stdout}");
    let (json, _) = folder.run(&["inspect", "bilinear", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["kind"], "composer");
    assert_eq!(json[0]["gradients"], true);
    assert_eq!(json[0]["schema"]["required"], serde_json::json!(["weights"]));

    let (stdout, _) = folder.run(&["inspect", "der"], 0);
    assert!(
        stdout.contains("needs:   the true sets\n") && stdout.contains("columns: file, start, end\n"),
        "{stdout}"
    );
    let (stdout, _) = folder.run(&["inspect", "ckm"], 0);
    assert!(stdout.contains("uses:    weights, seeds\n") && !stdout.contains("columns: "), "{stdout}");

    let (_, stderr) = folder.run(&["inspect", "kmeens"], 2);
    assert_eq!(stderr, "error: there is no component named `kmeens`; did you mean `kmeans`?\n");
}

/// What a clusterer was left to choose by preset and default stands beside its results.
#[test]
fn presets_are_listed_and_recorded() {
    let folder = Folder::new();
    let (stdout, _) = folder.run(&["inspect", "fcm"], 0);
    assert!(stdout.contains("authors-code") && stdout.contains("k = 18, m = 1.2"), "{stdout}");
    let clusterer = "[[clusterer]]\nuse = \"fcm\"\nparams = { preset = \"authors-code\", m = 1.5 }\n";
    folder.write("p.toml", &format!("[[data]]\nname = \"d\"\nloader = \"synthetic\"\n{clusterer}"));
    folder.run(&["run", "p.toml"], 0);
    let runs = folder.read_parquet("results/p/runs.parquet");
    let params: serde_json::Value = serde_json::from_str(crate::common::texts(&runs, "params")[0]).unwrap();
    assert_eq!((&params["k"], &params["m"], &params["max_iter"]), (&18.into(), &1.5.into(), &1000.into()));
}

/// Every component's example can be pasted, once what it needs is filled in.
#[test]
fn every_component_describes_itself() {
    let folder = Folder::new();
    let (json, _) = folder.run(&["plugins", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let components = json.as_array().unwrap().iter().filter_map(|found| found["components"].as_array()).flatten();
    let mut seen = 0;
    for component in components {
        let name = component["name"].as_str().unwrap();
        let (stdout, _) = folder.run(&["inspect", name], 0);
        let (json, _) = folder.run(&["inspect", name, "--json"], 0);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_ne!(json[0]["summary"], "", "{name}");
        assert_ne!(json[0]["documentation"], "", "{name}");
        for (parameter, schema) in json[0]["schema"]["properties"].as_object().into_iter().flatten() {
            assert!(schema["description"].is_string(), "{name}: {parameter} is not described\n{stdout}");
        }
        let data = "[[data]]\nname = \"d\"\nloader = \"synthetic\"\n";
        if component["kind"] == "clusterer" {
            let example = stdout.split_once("\n[[clusterer]]").unwrap().1;
            folder.write("p.toml", &format!("{data}[[clusterer]]{example}[composer]\nuse = \"max\"\n"));
            folder.run(&["check", "p.toml"], 0);
        }
        seen += 1;
    }
    assert!(seen >= 15, "{seen} components");
}

#[test]
fn plan_says_what_is_kept_and_what_is_left() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    let (before, _) = folder.run(&["plan", "small.toml"], 0);
    assert!(before.ends_with("3 cells, 3 to compute\n"), "{before}");
    assert!(!folder.path("results").exists(), "planning leaves nothing behind");
    folder.run(&["run", "small.toml"], 0);
    let (after, _) = folder.run(&["plan", "small.toml"], 0);
    assert!(after.ends_with("3 cells, 0 to compute\n"), "{after}");
    assert!(after.contains("KiB") || after.contains("B"), "k-means states its memory: {after}");
}

#[test]
fn eval_scores_one_file_against_another() {
    let folder = Folder::new();
    let truth = [&[0][..], &[1], &[0, 1], &[1]];
    folder.write_parquet("truth.parquet", vec![("labels", sets(&truth)), ("id", numbers(&[1, 2, 3, 4]))]);
    // The same sets in another order and under other names.
    let predicted = [&[7][..], &[7, 9], &[9], &[7]];
    folder.write_parquet("pred.parquet", vec![("found", sets(&predicted)), ("id", numbers(&[4, 3, 1, 2]))]);
    let args =
        ["eval", "pred.parquet:found", "truth.parquet", "--id", "id", "--format", "csv", "--evaluator", "cri"];
    assert_eq!(folder.run(&args, 0).0, "trial,cri,acri\n0,1,1\n");
    let (stdout, _) = folder.run(&["eval", "pred.parquet:found", "truth.parquet", "--order"], 0);
    assert!(stdout.contains("omega") && !stdout.contains("1.0000 1.0000 1.0000"), "{stdout}");

    let refused = |args: &[&str]| folder.run(&[&["eval"], args].concat(), 2).1;
    assert!(
        refused(&["pred.parquet", "truth.parquet"])
            .contains("error: pred.parquet: there is no column `clusters`; ")
    );
    assert_eq!(refused(&["none.parquet", "truth.parquet"]), "error: none.parquet: there is no such file\n");
    assert!(
        refused(&["pred.parquet:found", "truth.parquet", "--evaluator", "cry"]).contains("did you mean `cri`?")
    );
}

#[test]
fn eval_picks_a_cell_of_a_run() {
    let folder = Folder::new();
    let repository = crate::common::repository();
    let data = repository.join("data/omniglot/d2_n150_test.parquet");
    let pipeline = format!(
        "name = \"og\"\n[[data]]\nname = \"n150\"\nloader = \"parquet\"\npath = \"{}\"\n\
         columns = {{ embedding = \"embedding\", truth = \"labels\", trial = \"trial\", id = \"id\" }}\n\
         [[clusterer]]\nname = \"A\"\nuse = \"kmeans\"\nparams = {{ k = 15 }}\n\
         [[clusterer]]\nname = \"B\"\nuse = \"kmeans\"\nparams = {{ k = 5 }}\n[[evaluator]]\nuse = \"cri\"\n",
        data.display()
    );
    folder.write("og.toml", &pipeline);
    folder.run(&["run", "og.toml"], 0);
    let args = [
        "eval",
        "results/og/assignments.parquet",
        data.to_str().unwrap(),
        "--id",
        "id",
        "--where",
        "clusterer=B",
        "--evaluator",
        "cri",
        "--format",
        "json",
    ];
    let (stdout, _) = folder.run(&args, 0);
    let scores: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let metrics = folder.read_parquet("results/og/metrics.parquet");
    let value = {
        use arrow_array::cast::AsArray;
        let at = crate::common::texts(&metrics, "clusterer").iter().position(|name| *name == "B").unwrap();
        metrics["value"].as_primitive::<arrow_array::types::Float64Type>().value(at)
    };
    assert_eq!(scores[0]["cri"].as_f64(), Some(value));
    let (_, stderr) = folder.run(&[&args[..5], &["--format", "json"]].concat(), 2);
    assert!(stderr.contains("the same id"), "two clusterers at once: {stderr}");
}

#[test]
fn results_come_in_every_format_and_nothing_else_on_stdout() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    for (format, begins) in [
        ("table", "made: mean (s.e.)"),
        ("json", "["),
        ("csv", "data,"),
        ("md", "**made"),
        ("latex", "% \\usepackage{booktabs}"),
    ] {
        let (stdout, stderr) = folder.run(&["run", "small.toml", "--format", format, "--quiet"], 0);
        assert!(stdout.starts_with(begins), "{format}: {stdout}");
        assert_eq!(stderr, "", "a quiet run says nothing else");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn results_that_cannot_be_printed_are_an_error() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    let full = std::fs::File::create("/dev/full").unwrap();
    let output = folder.compflow(&["run", "small.toml", "--quiet"]).stdout(full).output().unwrap();
    let (_, stderr) = crate::common::finished(output, 1);
    assert_eq!(stderr, "error: cannot write to stdout: the disk is full\n");
}

#[test]
fn completions_are_scripts() {
    let folder = Folder::new();
    assert!(folder.run(&["completions", "bash"], 0).0.contains("_compflow()"));
    assert!(folder.run(&["completions", "zsh"], 0).0.starts_with("#compdef compflow"));
}

#[test]
fn a_results_folder_in_the_place_of_a_pipeline_names_the_pipeline() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml"], 0);
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    let said = "is the results folder of small.toml, not a pipeline: give that";
    for command in ["check", "run", "plan", "why", "status"] {
        assert_eq!(folder.run(&[command, "results/small"], 2).1, format!("error: results/small {said}\n"));
        let expected = format!("error: out {said}, and for its results `--out out`\n");
        assert_eq!(folder.run(&[command, "out"], 2).1, expected);
    }
    // Whatever is called so.
    folder.write("data/run.json", "{}");
    let (_, stderr) = folder.run(&["run", "data"], 2);
    assert!(stderr.contains("data is a folder, not a pipeline; `compflow init data` looks"), "{stderr}");
}

#[test]
fn a_wrong_command_line_is_exit_code_two() {
    let folder = Folder::new();
    folder.run(&["fly"], 2);
    let (_, stderr) = folder.run(&["run", "nothing.toml"], 2);
    assert_eq!(stderr, "error: nothing.toml: there is no such file\n");
    folder.write("small.toml", SMALL);
    let (_, stderr) = folder.run(&["run", "small.toml", "--only", "KN"], 2);
    assert!(stderr.starts_with("error: --only: there is no clusterer or data named `KN`\n"), "{stderr}");
    assert!(stderr.contains("did you mean `KM`?"), "{stderr}");
}
