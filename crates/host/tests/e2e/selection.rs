//! Parameters that are selected without labels.

use std::process::Stdio;
use std::time::{Duration, Instant};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;

use crate::common::{Folder, texts};

/// Five clusters, no truth asked for.
const BLOBS: &str = r#"
name = "blobs"
seed = 2
degree = 1

[[data]]
name = "made"
loader = "synthetic"
params = { n = 120, dim = 6, k = 5, degree = 1, noise = 0.1, trials = 3 }

[[clusterer]]
name = "KM"
use = "kmeans"
params = { k = { select = { from = 2, to = 8 } }, restarts = 5 }
"#;

fn numbers(table: &arrow_array::RecordBatch, column: &str) -> Vec<Option<f64>> {
    table[column].as_primitive::<Float64Type>().iter().collect()
}

#[test]
fn the_number_of_clusters_is_found_and_everything_about_it_is_in_the_tables() {
    let folder = Folder::new();
    folder.write("p.toml", BLOBS);
    let (plan, _) = folder.run(&["plan", "p.toml", "--out", "out"], 0);
    // Three trials, seven values, nine pairs of halves.
    let expected = "3 cells, 3 to compute, after 378 clusterings of halves that select values\n";
    assert!(plan.contains("values") && plan.ends_with(expected), "{plan}");
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    assert!(stderr.contains("selected KM on made: k=5 in 3 of 3 trials"), "{stderr}");

    let runs = folder.read_parquet("out/runs.parquet");
    assert_eq!(texts(&runs, "clusterer"), ["KM"; 3]);
    assert_eq!(texts(&runs, "resolved"), [r#"{"k":5}"#; 3]);
    for params in texts(&runs, "params") {
        let params: serde_json::Value = serde_json::from_str(params).unwrap();
        assert_eq!((&params["k"], &params["restarts"]), (&5.into(), &5.into()));
    }
    let selection = folder.read_parquet("out/selection.parquet");
    assert_eq!(selection.num_rows(), 3 * 7);
    assert_eq!(texts(&selection, "params")[1], r#"{"k":3}"#);
    let (value, worth) = (numbers(&selection, "value"), numbers(&selection, "worth"));
    let chosen = selection["chosen"].as_boolean();
    for row in 0..selection.num_rows() {
        assert_eq!(chosen.value(row), value[row] == Some(5.0));
        assert!(worth[row] <= worth[row / 7 * 7 + 3], "five are worth most");
    }
    let stability = numbers(&selection, "stability");
    assert!(stability.iter().all(|one| one.is_some_and(|one| (-1.0..=1.0 + 1e-12).contains(&one))));

    folder.run(&["report", "out"], 0);
    let page = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(page.contains("id=\"selection\"") && page.contains("k = 5 in 3 of 3"), "the report shows it");
    let (plan, _) = folder.run(&["plan", "p.toml", "--out", "out"], 0);
    assert!(plan.ends_with("3 cells, 0 to compute\n"), "{plan}");
}

#[test]
fn a_value_at_the_end_of_its_range_is_said_unless_nothing_can_lie_beyond() {
    let folder = Folder::new();
    let advice = |range: &str| {
        folder.write("p.toml", &BLOBS.replace("{ from = 2, to = 8 }", range));
        let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
        stderr.lines().find(|line| line.contains("[C104]")).map(str::to_owned)
    };
    assert_eq!(advice("{ from = 2, to = 8 }"), None);
    let text = advice("{ from = 2, to = 4 }").unwrap();
    assert!(text.contains("KM on made: `k` = 4 is the largest value that was selected from, in "), "{text}");
    let text = advice("[5, 6, 7]").unwrap();
    assert!(text.contains("`k` = 5 is the smallest value that was selected from, in 3 of 3 trials"), "{text}");
    folder.write("p.toml", &BLOBS.replace("k = 5, ", "k = 2, "));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "two"], 0);
    assert!(stderr.contains("k=2 in 3 of 3 trials") && !stderr.contains("C104"), "{stderr}");
}

#[test]
fn what_is_selected_depends_on_neither_jobs_nor_threads() {
    let folder = Folder::new();
    folder.write("p.toml", BLOBS);
    let tables = |out: &str, jobs: &str, threads: &str| {
        folder.run(&["run", "p.toml", "--out", out, "--jobs", jobs, "--threads", threads], 0);
        ["selection", "assignments"]
            .map(|table| std::fs::read(folder.path(&format!("{out}/{table}.parquet"))).unwrap())
    };
    let one = tables("one", "1", "1");
    assert!(one == tables("three", "3", "1") && one == tables("threads", "1", "4"));
}

#[test]
fn auto_is_short_for_a_selection_also_inside_another_component() {
    let folder = Folder::new();
    folder.write("p.toml", &BLOBS.replace("{ select = { from = 2, to = 8 } }", "\"auto\""));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    assert!(stderr.contains("selected KM on made: k=5 in 3 of 3 trials"), "{stderr}");
    assert_eq!(folder.read_parquet("out/selection.parquet").num_rows(), 3 * 29);

    let nested = "use = \"gcr\"\nparams = { base = { params = { k = \"auto\" } } }\n";
    let text = BLOBS.replace("degree = 1\n\n[[data]]", "degree = 1\n[composer]\nuse = \"sum\"\n[[data]]");
    folder.write("p.toml", &format!("{}{nested}", text.split("use = \"kmeans\"").next().unwrap()));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    assert!(stderr.contains("selected KM on made: base.params.k="), "{stderr}");
}

#[test]
fn the_number_of_singletons_is_found_where_there_are_unions() {
    let folder = Folder::new();
    let text =
        BLOBS.replace("degree = 1", "degree = 2").replace("n = 120, dim = 6, k = 5", "n = 90, dim = 8, k = 3");
    let methods = "[composer]\nuse = \"max\"\n
        [[clusterer]]\nuse = \"ckm\"\nparams = { k = { select = [2, 3, 4, 5] }, restarts = 8 }\n
        [[clusterer]]\nuse = \"cgm\"\nparams = { k = { select = [2, 3, 4, 5] }, starts = 1 }\n";
    folder.write("p.toml", &format!("{}{methods}", text.split("[[clusterer]]").next().unwrap()));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    for clusterer in ["ckm", "cgm"] {
        assert!(stderr.contains(&format!("selected {clusterer} on made: k=3 in 3 of 3 trials")), "{stderr}");
    }
}

#[test]
fn several_selections_multiply_and_go_beside_grids() {
    let folder = Folder::new();
    let several = BLOBS.replace("restarts = 5", "restarts = { select = [2, 4] }, max_iter = { grid = [50, 100] }");
    folder.write("p.toml", &several.replace("to = 8", "to = 6"));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    assert!(stderr.contains("selected KM max_iter=50 on made: k=5 restarts="), "{stderr}");
    let selection = folder.read_parquet("out/selection.parquet");
    assert_eq!(selection.num_rows(), 3 * 2 * 5 * 2);
    assert_eq!(selection["value"].null_count(), selection.num_rows(), "there is no one value");

    let tuned = several.replace("to = 8", "to = 6").replace(", restarts = { select = [2, 4] }", "")
        + "\n[[data]]\nname = \"v\"\nrole = \"tune\"\nloader = \"synthetic\"\n\
           params = { n = 60, dim = 6, k = 5, degree = 1, noise = 0.1 }\n\n[[evaluator]]\nuse = \"silhouette\"\n\n\
           [tune]\ndata = \"v\"\nmetric = \"silhouette\"\n";
    folder.write("p.toml", &tuned);
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "tuned"], 0);
    assert!(stderr.contains("tuned KM: max_iter=50"), "{stderr}");
    assert!(stderr.contains("selected KM on made: k=5 in 3 of 3 trials"), "{stderr}");
}

#[test]
fn values_that_halves_cannot_have_are_left_out() {
    let folder = Folder::new();
    folder.write("p.toml", &BLOBS.replace("n = 120", "n = 12").replace("trials = 3", "trials = 1"));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    let refused = "2 of 7 values are not selected from, k=7 first: `k` = 7 is more than the 6 examples";
    assert!(stderr.contains(refused), "{stderr}");
    let selection = folder.read_parquet("out/selection.parquet");
    assert!(texts(&selection, "error")[5].contains("more than the 6 examples"));
    assert!(selection["stability"].is_null(5) && !selection["stability"].is_null(4));
    // What is refused is known the next time, and said again.
    let (plan, _) = folder.run(&["plan", "p.toml", "--out", "out"], 0);
    assert!(plan.ends_with("1 cell, 0 to compute\n"), "{plan}");
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    assert!(stderr.contains(refused) && stderr.contains("1 of them kept"), "{stderr}");

    let few =
        BLOBS.replace("n = 120, dim = 6, k = 5", "n = 3, dim = 6, k = 2").replace("trials = 3", "trials = 1");
    folder.write("p.toml", &few);
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "few"], 1);
    assert!(stderr.contains("every value fails: 3 examples are too few to be cut into halves"), "{stderr}");
    let runs = folder.read_parquet("few/runs.parquet");
    assert_eq!((texts(&runs, "status")[0], runs["params"].null_count()), ("failed", 1));
}

#[test]
fn a_slip_of_auto_and_a_single_example_are_told_in_words() {
    let folder = Folder::new();
    let km = |k: &str| {
        BLOBS.replace("{ select = { from = 2, to = 8 } }", k).replace("use = \"kmeans\"", "use = \"ckm\"")
    };
    folder.write("p.toml", &km("\"autoo\""));
    let (_, stderr) = folder.run(&["check", "p.toml"], 2);
    assert!(
        stderr.contains("or \"auto\", found \"autoo\"") && stderr.contains("did you mean \"auto\"?"),
        "{stderr}"
    );
    folder.write("p.toml", &km("\"auto\"").replace("n = 120, dim = 6, k = 5", "n = 1, dim = 6, k = 1"));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 1);
    assert!(stderr.contains("1 example is too few to be cut into halves"), "{stderr}");
}

#[test]
fn a_killed_selection_goes_on_where_it_was() {
    let folder = Folder::new();
    folder.add_faulty();
    let slow = BLOBS.replace("use = \"kmeans\"", "use = \"faulty\"").replace("trials = 3", "trials = 1");
    let slow = slow
        .replace("k = { select = { from = 2, to = 8 } }, restarts = 5", "takes = { select = [10, 20, 30, 40] }");
    folder.write("p.toml", &slow);
    let run = |out: &'static str| {
        ["--plugins", "faulty", "run", "p.toml", "--jobs", "1", "--threads", "1", "--out", out]
    };
    folder.run(&run("undisturbed"), 0);
    let mut child = folder.compflow(&run("killed")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let kept = || {
        let files = std::fs::read_dir(folder.path("killed/cells")).into_iter().flatten();
        files
            .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|end| end == "stability"))
            .count()
    };
    let started = Instant::now();
    while kept() < 2 {
        assert!(started.elapsed() < Duration::from_secs(60), "nothing was kept");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!((2..4).contains(&kept()), "{} were kept", kept());
    let of = |table: &str| std::fs::read(folder.path(&format!("killed/cells/{table}"))).unwrap();
    let names: Vec<String> = std::fs::read_dir(folder.path("killed/cells"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".stability"))
        .collect();
    let before: Vec<_> = names
        .iter()
        .map(|name| std::fs::metadata(folder.path(&format!("killed/cells/{name}"))).unwrap().modified().unwrap())
        .collect();
    folder.run(&run("killed"), 0);
    for (name, before) in names.iter().zip(before) {
        let path = folder.path(&format!("killed/cells/{name}"));
        assert_eq!(
            std::fs::metadata(path).unwrap().modified().unwrap(),
            before,
            "what was kept is not measured again"
        );
        assert!(!of(name).is_empty());
    }
    let table = |out: &str| std::fs::read(folder.path(&format!("{out}/selection.parquet"))).unwrap();
    assert!(table("killed") == table("undisturbed"));
}
