//! Components that fail: a clear error, and nothing else is lost.

use crate::common::{Folder, SMALL, texts};

/// The small pipeline with a clusterer that misbehaves beside the one that does not.
fn with_fault(folder: &Folder, fault: &str) {
    folder.add_faulty();
    let faulty =
        format!("\n[[clusterer]]\nname = \"bad\"\nuse = \"faulty\"\nparams = {{ fault = \"{fault}\" }}\n");
    folder.write("p.toml", &(SMALL.to_owned() + &faulty));
}

fn run(folder: &Folder, extra: &[&str], code: i32) -> (String, String) {
    let args = [&["--plugins", "faulty", "run", "p.toml", "--out", "out", "--jobs", "1"], extra].concat();
    folder.run(&args, code)
}

fn failing_cells(folder: &Folder) -> Vec<(String, String)> {
    let runs = folder.read_parquet("out/runs.parquet");
    let rows = texts(&runs, "clusterer").into_iter().zip(texts(&runs, "status")).zip(texts(&runs, "error"));
    rows.filter(|((_, status), _)| *status != "ok")
        .map(|((name, _), error)| (name.to_owned(), error.to_owned()))
        .collect()
}

#[test]
fn a_failing_cell_becomes_a_row_and_the_others_go_on() {
    let folder = Folder::new();
    with_fault(&folder, "error");
    let (stdout, stderr) = run(&folder, &["--format", "csv"], 1);
    assert!(stdout.contains("made,KM,cri,3,"), "{stdout}");
    assert!(stderr.contains("error: made trial 0 bad: not today\n"), "{stderr}");
    assert!(stderr.ends_with("error: 3 of 6 cells failed; out/runs.parquet says why\n"), "{stderr}");
    assert_eq!(failing_cells(&folder), vec![("bad".to_owned(), "not today".to_owned()); 3]);
}

#[test]
fn some_trials_may_fail_and_others_not() {
    let folder = Folder::new();
    with_fault(&folder, "sometimes");
    run(&folder, &["--set", "data.made.trials=8"], 1);
    let failed = failing_cells(&folder).len();
    assert!((1..8).contains(&failed), "{failed} of 8");
    let summary = folder.read_parquet("out/summary.parquet");
    assert!(texts(&summary, "clusterer").contains(&"bad"), "the other trials are summarised");
    let (stdout, _) = run(&folder, &["--set", "data.made.trials=8"], 1);
    let row = stdout.lines().find(|line| line.starts_with(" bad")).unwrap();
    assert!(row.contains("/8]") && !row.contains('*'), "it is marked, and not the best: {row}");
}

#[test]
fn a_panic_in_use_is_an_error_with_its_text_and_place() {
    let folder = Folder::new();
    with_fault(&folder, "panic");
    run(&folder, &[], 1);
    for (_, error) in failing_cells(&folder) {
        assert!(error.starts_with("panicked at ") && error.ends_with(": cluster went wrong"), "{error}");
        assert!(error.contains("faulty/src/lib.rs:"), "{error}");
    }
}

#[test]
fn a_panic_in_create_is_a_problem_of_the_pipeline() {
    let folder = Folder::new();
    with_fault(&folder, "panic_in_create");
    let (stdout, stderr) = run(&folder, &[], 2);
    assert_eq!(stdout, "");
    assert!(stderr.contains("error: faulty: panicked at ") && stderr.contains(": create went wrong"), "{stderr}");
    assert!(stderr.contains("use = \"faulty\""), "{stderr}");
}

#[test]
fn a_panic_in_drop_is_a_warning_and_the_result_is_kept() {
    let folder = Folder::new();
    with_fault(&folder, "panic_in_drop");
    let (_, stderr) = run(&folder, &[], 0);
    assert!(stderr.contains("warning: made trial 0 bad: while it was being ended: panicked at "), "{stderr}");
    assert_eq!(failing_cells(&folder), []);
}

#[test]
fn a_result_that_does_not_fit_the_data_is_refused() {
    let folder = Folder::new();
    with_fault(&folder, "wrong_length");
    run(&folder, &[], 1);
    assert_eq!(failing_cells(&folder)[0].1, "an impossible result: 44 assignments were returned for 45 examples");
}

#[test]
fn not_converging_is_a_warning_and_an_error_if_strict() {
    let folder = Folder::new();
    with_fault(&folder, "drifts");
    let (_, stderr) = run(&folder, &[], 0);
    assert_eq!(stderr.matches(" bad: did not converge in 7 iterations\n").count(), 1, "{stderr}");
    assert!(stderr.contains("warning: in 2 further cells: did not converge in 7 iterations\n"), "{stderr}");
    // From the cache, too.
    let (_, again) = run(&folder, &["--strict"], 1);
    assert!(again.contains("warning: in 2 further cells: did not converge in 7 iterations\n"), "{again}");
    assert_eq!(failing_cells(&folder)[0].1, "did not converge in 7 iterations");
    let summary = folder.read_parquet("out/summary.parquet");
    assert!(!texts(&summary, "clusterer").contains(&"bad"), "what failed is not summarised");
}

#[test]
fn a_method_that_says_itself_what_went_wrong_is_not_warned_of_twice() {
    let folder = Folder::new();
    with_fault(&folder, "wanders");
    for args in [&[][..], &["--strict"]] {
        let (_, stderr) = run(&folder, args, i32::from(!args.is_empty()));
        assert!(stderr.contains("warning: in 2 further cells: lost the way\n"), "{stderr}");
        assert!(!stderr.contains("warning: made trial 0 bad: did not converge"), "{stderr}");
    }
    assert_eq!(failing_cells(&folder)[0].1, "did not converge in 7 iterations");
}

#[test]
fn an_evaluator_that_fails_does_not_lose_the_other_scores() {
    let folder = Folder::new();
    folder.add_faulty();
    folder.write("p.toml", &(SMALL.to_owned() + "\n[[evaluator]]\nuse = \"undefined\"\n"));
    let (stdout, _) = run(&folder, &["--format", "csv"], 1);
    assert!(stdout.contains("made,KM,cri,3,"), "{stdout}");
    assert_eq!(failing_cells(&folder)[0].1, "evaluator `undefined`: the score `undefined` is NaN");
}

#[test]
fn more_clusters_than_examples_are_refused_but_as_a_point_of_a_grid_a_failing_cell() {
    let folder = Folder::new();
    folder.write("p.toml", SMALL);
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out", "--set", "clusterer.KM.k=46"], 2);
    let text = "error: clusterer `KM` is to find 46 clusters, and trial 0 of data `made` has 45 examples\n";
    assert!(stderr.starts_with(text), "{stderr}");
    folder.run(&["run", "p.toml", "--out", "out", "--set", "clusterer.KM.k={ grid = [6, 46] }"], 1);
    assert_eq!(failing_cells(&folder)[0].1, "`k` = 46 is more than the 45 examples");
}

#[test]
fn tuning_that_fails_everywhere_is_said_where_the_results_would_be() {
    let folder = Folder::new();
    folder.add_faulty();
    let tuned = r#"
name = "t"
[[data]]
name = "validation"
role = "tune"
loader = "synthetic"
params = { n = 9, dim = 2, k = 2 }
[[data]]
name = "made"
loader = "synthetic"
params = { n = 9, dim = 2, k = 2 }
[[clusterer]]
name = "bad"
use = "faulty"
params = { fault = { grid = ["error", "panic"] } }
[[evaluator]]
use = "cri"
[tune]
data = "validation"
metric = "cri"
"#;
    folder.write("p.toml", tuned);
    run(&folder, &[], 1);
    let cells = failing_cells(&folder);
    assert_eq!(cells.len(), 3);
    assert_eq!(cells[2], ("bad".to_owned(), "every grid point failed on some tuning trial: not today".to_owned()));
}

#[test]
fn a_plugin_may_use_a_component_of_another_library() {
    let folder = Folder::new();
    folder.add_faulty();
    let nested = "\n[[clusterer]]\nname = \"nested\"\nuse = \"nested\"\nparams = { base = \"kmeans\", with = '{\"k\": 4}' }\n";
    folder.write("p.toml", &(SMALL.to_owned() + nested));
    run(&folder, &[], 0);
    let (_, stderr) = run(&folder, &["--set", "clusterer.nested.with={\"k\":0}"], 2);
    assert!(
        stderr.contains("error: nested: `base` cannot be made: `k` must be a whole number at least 1, found 0"),
        "{stderr}"
    );
    let (_, stderr) = run(&folder, &["--set", "clusterer.nested.base=kmean"], 2);
    assert!(stderr.contains("`base` cannot be made: there is no clusterer named `kmean`"), "{stderr}");
    assert!(stderr.contains("did you mean `kmeans`?"), "{stderr}");
}

#[test]
fn what_a_clusterer_needs_is_checked_before_anything_runs() {
    let folder = Folder::new();
    folder.add_faulty();
    let demanding = SMALL.to_owned() + "\n[[clusterer]]\nuse = \"demanding\"\n";
    folder.write("p.toml", &demanding);
    let (_, stderr) = run(&folder, &[], 2);
    assert!(stderr.contains("error: clusterer `demanding` needs a composer"), "{stderr}");

    folder.write("p.toml", &(demanding.clone() + "\n[composer]\nuse = \"rough\"\n"));
    let (_, stderr) = run(&folder, &[], 2);
    assert!(stderr.contains("needs gradients, and the composer `rough` has none"), "{stderr}");
    assert!(
        stderr.contains("these have: `bilinear`, `careless`, `max`, `mean`, `middle`, `partial`, `sum`"),
        "{stderr}"
    );

    folder.write("p.toml", &(demanding.clone() + "\n[composer]\nuse = \"max\"\n"));
    let (stdout, _) = run(&folder, &["--format", "csv"], 0);
    assert!(
        stdout.contains("made,demanding,cri,3,1,0,false,"),
        "given the truth it is perfect, and does not compete: {stdout}"
    );

    let blind = demanding
        .replace("trials = 3 }", "trials = 3 }\ncolumns = { embedding = \"embedding\", trial = \"trial\" }");
    folder.write("p.toml", &(blind + "\n[composer]\nuse = \"max\"\n"));
    let (_, stderr) = run(&folder, &[], 2);
    assert!(
        stderr.contains(
            "data `made` has no true sets, and clusterer `demanding`, evaluator `cri`, evaluator `ari` need them"
        ),
        "{stderr}"
    );
}

#[test]
fn nobody_reading_what_is_said_does_not_end_a_run() {
    let folder = Folder::new();
    with_fault(&folder, "wanders");
    let mut command = folder.compflow(&["--plugins", "faulty", "run", "p.toml", "--out", "out"]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status = command.stderr(full).stdout(std::process::Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(texts(&folder.read_parquet("out/runs.parquet"), "status"), ["ok"; 6]);
}
