//! What would give a wrong or missing result without a word: every one is an error, and nothing wrong is kept.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use arrow_array::Array;
use arrow_array::cast::AsArray;

use crate::common::{Folder, SMALL, library_name, repository, texts};

/// Compiles the library of `wrong.c` to where `--plugins wrong` finds it, as `libcompflow_NAME`.
pub(crate) fn add_library(folder: &Folder, name: &str, source: &Path, with: &[&str]) {
    std::fs::create_dir_all(folder.path("wrong")).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(compiler)
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I"])
        .arg(repository().join("crates/api/include"))
        .arg(source)
        .arg("-o")
        .arg(folder.path("wrong").join(library_name(name)))
        .arg("-lm")
        .args(with)
        .current_dir(folder.path("wrong"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn add_wrong(folder: &Folder) {
    add_library(folder, "wrong", &repository().join("crates/host/tests/e2e/silently_wrong/wrong.c"), &[]);
}

/// The small pipeline with a clusterer before the one that does nothing wrong.
fn with_clusterer(mode: &str) -> Folder {
    let folder = Folder::new();
    add_wrong(&folder);
    let wrong = format!(
        "[[clusterer]]\nname = \"bad\"\nuse = \"wrong\"\nparams = {{ mode = \"{mode}\" }}\n\n[[clusterer]]"
    );
    folder.write("p.toml", &SMALL.replacen("[[clusterer]]", &wrong, 1));
    folder
}

fn run(folder: &Folder, extra: &[&str], code: i32) -> (String, String) {
    let args = [&["--plugins", "wrong", "run", "p.toml", "--out", "out", "--jobs", "1"], extra].concat();
    folder.run(&args, code)
}

/// Names and errors of the cells that did not end well.
fn failed(folder: &Folder) -> Vec<(String, String)> {
    let runs = folder.read_parquet("out/runs.parquet");
    let rows = texts(&runs, "clusterer").into_iter().zip(texts(&runs, "status")).zip(texts(&runs, "error"));
    let failed = rows.filter(|((_, status), _)| *status != "ok");
    failed.map(|((name, _), error)| (name.to_owned(), error.to_owned())).collect()
}

/// How many cells are kept; that others failed is noted beside them.
fn kept(folder: &Folder) -> usize {
    let cells = std::fs::read_dir(folder.path("out/cells")).unwrap().map(|entry| entry.unwrap().path());
    cells.filter(|path| path.extension().is_some_and(|ending| ending == "cell")).count()
}

/// All cells of `bad` failed for this reason, and no other cell did.
fn only_bad_failed(folder: &Folder, reason: &str) {
    let failed = failed(folder);
    assert_eq!(failed.len(), 3, "{failed:?}");
    for (name, error) in failed {
        assert!(name == "bad" && error.contains(reason), "{name}: {error}");
    }
}

#[test]
fn a_plugin_that_writes_into_the_examples_is_found_and_nothing_more_is_computed_from_them() {
    let folder = with_clusterer("overwrite");
    // In a process of its own it cannot.
    run(&folder, &[], 1);
    only_bad_failed(&folder, "crashed: SIGSEGV");
    std::fs::remove_dir_all(folder.path("out")).unwrap();
    let (_, stderr) = run(&folder, &["--set", "isolate=false"], 1);
    assert!(stderr.contains("were written to during made trial 0 bad"), "{stderr}");
    // The cells of the trial that came later would have computed something else.
    let failed = failed(&folder);
    assert_eq!(failed.len(), 6, "{failed:?}");
    assert_eq!(kept(&folder), 0, "and nothing of it is kept");
    // Without it all is well again.
    let (stdout, _) = run(&folder, &["--only", "KM"], 0);
    assert!(stdout.contains("KM"), "{stdout}");
}

#[test]
fn an_evaluator_that_writes_into_the_truth_is_found() {
    let folder = Folder::new();
    add_wrong(&folder);
    let evaluator = "[[evaluator]]\nuse = \"wrong\"\nparams = { mode = \"overwrite\" }\n";
    folder.write("p.toml", &format!("{SMALL}\n{evaluator}"));
    let (_, stderr) = run(&folder, &[], 1);
    assert!(stderr.contains("evaluator `wrong`: the examples or their true sets were written to"), "{stderr}");
    assert_eq!(kept(&folder), 0, "and nothing of it is kept");
}

/// What is read only while it clusters or scores may be another content than that which the result would be kept under.
#[test]
fn a_file_that_changes_before_a_component_reads_it_is_noticed() {
    const CHANGED: &str = "w.bin has changed since it was read first";
    for isolate in ["isolate=true", "isolate=false"] {
        let folder = with_clusterer("lazy");
        folder.write("w.bin", "A");
        run(&folder, &["--set", isolate], 1);
        only_bad_failed(&folder, CHANGED);
        assert_eq!(kept(&folder), 3, "{isolate}: those of the other one");

        let folder = Folder::new();
        add_wrong(&folder);
        folder.write(
            "p.toml",
            &format!("{SMALL}\n[[evaluator]]\nuse = \"wrong\"\nparams = {{ mode = \"lazy\" }}\n"),
        );
        for _ in 0..2 {
            folder.write("w.bin", "A");
            let (_, stderr) = run(&folder, &["--set", isolate], 1);
            assert!(stderr.contains("evaluator `wrong`: ") && stderr.contains(CHANGED), "{isolate}: {stderr}");
            assert_eq!(kept(&folder), 3, "{isolate}: without its scores, so that it is asked again");
        }
    }
}

#[test]
fn a_file_that_is_read_whole_stays_what_it_was_for_all_cells_of_a_run() {
    for isolate in ["isolate=true", "isolate=false"] {
        let folder = with_clusterer("eager");
        folder.write("w.bin", "A");
        run(&folder, &["--set", isolate], 0);
        assert_eq!(kept(&folder), 6, "{isolate}");
        // The next run is of what is there now, and takes nothing for it that was made of the other.
        assert_eq!(std::fs::read_to_string(folder.path("w.bin")).unwrap(), "B", "every cell has written to it");
        run(&folder, &["--set", isolate], 1);
        only_bad_failed(&folder, "this is not what was there at first");
    }
}

#[test]
fn a_file_that_is_read_whole_is_within_the_memory() {
    let folder = with_clusterer("eager");
    std::fs::File::create(folder.path("w.bin")).unwrap().set_len(1 << 40).unwrap();
    let (_, stderr) = run(&folder, &["--memory", "100MB"], 2);
    assert!(stderr.contains("w.bin: has more than the 100000000 bytes that may be used"), "{stderr}");
}

#[test]
fn a_cell_that_says_it_was_cancelled_has_failed_if_nobody_cancelled_it() {
    let folder = with_clusterer("cancel");
    run(&folder, &[], 1);
    only_bad_failed(&folder, "stopped as if it had been cancelled, and nobody has cancelled it");
}

#[test]
fn a_call_that_reported_an_error_has_failed_whatever_it_returns() {
    let folder = with_clusterer("complain");
    run(&folder, &[], 1);
    only_bad_failed(&folder, "this went badly wrong");
}

#[test]
fn an_example_may_belong_to_none_of_them_where_that_is_declared() {
    let folder = with_clusterer("none");
    run(&folder, &[], 0);
    let assignments = folder.read_parquet("out/assignments.parquet");
    let clusters = assignments.column_by_name("clusters").unwrap().as_list::<i64>();
    let distances = assignments.column_by_name("distance").unwrap();
    let of_bad: Vec<usize> =
        (0..assignments.num_rows()).filter(|&row| texts(&assignments, "clusterer")[row] == "bad").collect();
    let none = of_bad.iter().filter(|&&row| clusters.value(row).is_empty()).count();
    assert_eq!((of_bad.len(), none), (3 * 45, 3 * 23));
    assert!(of_bad.iter().all(|&row| distances.is_null(row)), "it has no representatives");
    let (_, stderr) = folder.run(&["report", "out"], 0);
    assert!(!stderr.contains("error"), "{stderr}");
}

#[test]
fn an_evaluator_that_says_it_was_cancelled_has_failed() {
    let folder = Folder::new();
    add_wrong(&folder);
    let evaluator = "[[evaluator]]\nuse = \"wrong\"\nparams = { mode = \"cancel\" }\n";
    folder.write("p.toml", &format!("{SMALL}\n{evaluator}"));
    let (stdout, stderr) = run(&folder, &["--format", "csv"], 1);
    assert!(stderr.contains("evaluator `wrong`: stopped as if it had been cancelled"), "{stderr}");
    assert!(stdout.contains("made,KM,cri,3,"), "the scores of the others stay: {stdout}");
}

#[test]
fn a_set_larger_than_the_degree_is_an_impossible_result() {
    let folder = with_clusterer("wide");
    run(&folder, &[], 1);
    only_bad_failed(&folder, "an impossible result: the cluster [0, 1, 2] has more members than the degree, 2");
}

#[test]
fn two_further_columns_of_one_name_are_an_impossible_result() {
    let folder = with_clusterer("twins");
    run(&folder, &[], 1);
    only_bad_failed(&folder, "an impossible result: the table `assignments`: has two columns named `margin`");
}

#[test]
fn memberships_and_names_that_cannot_be_are_an_impossible_result() {
    for (mode, reason) in [
        ("crowd", "46 memberships per example are for more singletons than there are examples, 45"),
        ("vague", "example 44 has the membership NaN"),
        ("same_scalars", "two scalars are called `gap`"),
        ("same_resolved", "two resolved parameters are called `gap`"),
        ("unreadable", "the name \"gap\\n\" among the resolved parameters has control characters"),
    ] {
        let folder = with_clusterer(mode);
        run(&folder, &[], 1);
        only_bad_failed(&folder, &format!("an impossible result: {reason}"));
    }
}

#[test]
fn more_memory_than_the_budget_is_refused_before_it_is_taken() {
    let folder = with_clusterer("hungry");
    run(&folder, &["--memory", "1GB"], 1);
    only_bad_failed(&folder, "needs 1024 TiB of memory, over the budget of 954 MiB");
}

#[test]
fn a_cell_that_needs_more_than_its_share_waits_until_there_is_room() {
    for isolate in ["isolate=true", "isolate=false"] {
        let folder = with_clusterer("large");
        // A share is half of it, and two such cells do not fit.
        let args = ["--plugins", "wrong", "run", "p.toml", "--out", "out", "--jobs", "2", "--set", isolate];
        folder.run(&[&args[..], &["--memory", "1GB"]].concat(), 0);
        assert_eq!(failed(&folder), [], "{isolate}");
        folder.run(&[&args[..], &["--memory", "600MB", "--fresh"]].concat(), 1);
        only_bad_failed(&folder, "needs 600 MiB of memory, over the budget of 573 MiB");
    }
}

#[test]
fn all_data_together_must_fit_into_the_budget() {
    let folder = Folder::new();
    let small = SMALL.lines().find(|line| line.starts_with("params") && line.contains("n = ")).unwrap();
    let large = "params = { n = 4000, dim = 100 }";
    let both =
        format!("{}\n[[data]]\nname = \"other\"\nloader = \"synthetic\"\n{large}\n", SMALL.replace(small, large));
    folder.write("p.toml", &both);
    // Each takes 1.6 MB.
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out", "--memory", "2MB"], 2);
    assert!(stderr.contains("more than the memory budget"), "{stderr}");
}

#[test]
fn a_composer_that_writes_nothing_has_not_composed() {
    let folder = Folder::new();
    add_wrong(&folder);
    let with_composer =
        "[composer]\nuse = \"wrong\"\n\n[[clusterer]]\nname = \"CAP\"\nuse = \"cap\"\n\n[[clusterer]]";
    folder.write("p.toml", &SMALL.replacen("[[clusterer]]", with_composer, 1));
    let (_, stderr) = run(&folder, &[], 1);
    assert!(stderr.contains("gave NaN"), "{stderr}");
}

#[test]
fn a_column_that_a_loader_does_not_return_is_missed() {
    let folder = Folder::new();
    add_wrong(&folder);
    folder.write(
        "p.toml",
        "[[data]]\nname = \"d\"\nloader = \"wrong\"\ncolumns = { truth = \"truth\" }\n\n[[clusterer]]\nuse = \"kmeans\"\nparams = { k = 1 }\n",
    );
    let (_, stderr) = run(&folder, &[], 2);
    assert!(stderr.contains("the loader returned no column `truth`, though it was asked for `truth`"), "{stderr}");
}

#[test]
fn how_a_library_rounds_is_its_own_affair() {
    // The composer and clusterers around it compute the same, wherever it stands.
    let [alone, beside] = [Folder::new(), with_clusterer("round")];
    alone.write("p.toml", SMALL);
    alone.run(&["run", "p.toml", "--out", "out", "--jobs", "1"], 0);
    run(&beside, &[], 0);
    let values = |folder: &Folder| {
        let assignments = folder.read_parquet("out/assignments.parquet");
        let rows: Vec<usize> =
            (0..assignments.num_rows()).filter(|&row| texts(&assignments, "clusterer")[row] == "KM").collect();
        rows.iter()
            .map(|&row| format!("{:?}", assignments.column_by_name("distance").unwrap().slice(row, 1)))
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&alone), values(&beside));
}

#[test]
fn locale_and_umask_of_a_library_are_its_own_affair() {
    let folder = with_clusterer("settle");
    let look = "\n[[clusterer]]\nname = \"look\"\nuse = \"wrong\"\nparams = { mode = \"look\" }\n";
    let text = std::fs::read_to_string(folder.path("p.toml")).unwrap();
    folder.write("p.toml", &(text + look));
    run(&folder, &["--set", "isolate=false"], 0);
    assert_eq!(failed(&folder), []);
    let mode = |name: &str| std::fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777;
    let cell = std::fs::read_dir(folder.path("out/cells")).unwrap().next().unwrap().unwrap().file_name();
    for name in [&format!("out/cells/{}", cell.to_str().unwrap()), "out/runs.parquet", "out/run.json"] {
        assert_eq!(mode(name), mode("p.toml"), "{name}");
    }
}

/// The same with a clusterer that does nothing, and an evaluator that does something to its process when it is made.
fn with_evaluator(mode: &str) -> Folder {
    let folder = with_clusterer("fine");
    let text = std::fs::read_to_string(folder.path("p.toml")).unwrap();
    let evaluator = format!("\n[[evaluator]]\nuse = \"wrong\"\nparams = {{ mode = \"{mode}\" }}\n");
    folder.write("p.toml", &(text + &evaluator));
    folder
}

#[test]
fn the_umask_of_a_component_that_is_made_reaches_no_folder() {
    let folder = with_evaluator("lenient");
    run(&folder, &["--set", "isolate=false"], 0);
    let ours = ["--plugins", "wrong"];
    folder.run(&[&ours[..], &["run", "p.toml", "--out", "in parts", "--part", "1/1"]].concat(), 0);
    folder.run(&[&ours[..], &["slurm", "p.toml", "--out", "in jobs"]].concat(), 0);
    let tests = ["report", "out", "--format", "md", "--out", "page.md", "--tests", "tests"];
    folder.run(&[&ours[..], &tests].concat(), 0);
    std::fs::create_dir(folder.path("plain")).unwrap();
    let mode = |name: &str| std::fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777;
    for name in ["out", "out/cells", "in parts", "in parts/cells", "in parts/parts", "in jobs/slurm", "tests"] {
        assert_eq!(mode(name), mode("plain"), "{name}");
    }
    for name in ["out/.lock", "page.md"] {
        assert_eq!(mode(name), mode("p.toml"), "{name}");
    }
}

#[test]
fn a_component_that_goes_elsewhere_while_it_is_made_takes_no_file_along() {
    let folder = with_evaluator("go");
    run(&folder, &["--set", "isolate=false"], 0);
    let wrong = |args: &[&str], code: i32| folder.run(&[&["--plugins", "wrong"], args].concat(), code);
    // Both folders are relative to where the user is, and so is that of the plugins.
    let report = ["report", "out", "out", "--format", "md", "--out", "page.md", "--layout", "long"];
    assert_eq!(wrong(&report, 0).0, "page.md\n");
    assert!(folder.path("page.md").is_file());
    assert_eq!(
        wrong(&["report", "out", "--format", "md", "--tests", "tests", "--out", "tests.md"], 0).0,
        "tests.md\n"
    );
    assert!(folder.path("tests/small.csv").is_file());
    assert_eq!(wrong(&["report", "out"], 0).0, "out/report.html\n");
    assert!(folder.path("out/report.html").is_file());
    let (_, stderr) = wrong(&["report", "out", "--format", "md", "--out", "nowhere/page.md"], 1);
    assert!(stderr.contains("error: nowhere/page.md cannot be written: "), "{stderr}");
    // Where its clusters lie is found out from the data, which takes everything that the run used.
    folder.write("new.jsonl", "{\"embedding\": [0.1, 0.2, 0.3, 0.4]}\n{\"embedding\": [1, 0, 1, 0]}\n");
    let assign = ["assign", "out", "new.jsonl", "--clusterer", "bad", "--trial", "1", "--out"];
    let (_, stderr) = wrong(&[&assign[..], &["new.parquet"]].concat(), 0);
    assert!(stderr.ends_with("table in new.parquet\n"), "{stderr}");
    assert_eq!(folder.read_parquet("new.parquet").num_rows(), 2);
    std::os::unix::fs::symlink("new.parquet", folder.path("link.parquet")).unwrap();
    let (_, stderr) = wrong(&[&assign[..], &["link.parquet"]].concat(), 1);
    assert!(stderr.contains("error: link.parquet cannot be written: is a link"), "{stderr}");
    // One that is asked how much memory it needs is made, too.
    folder.write("p.toml", &std::fs::read_to_string(with_clusterer("go").path("p.toml")).unwrap());
    run(&folder, &["--set", "isolate=false"], 0);
    assert!(wrong(&["why", "p.toml", "--out", "out"], 0).0.ends_with("6 of 6 cells are kept, 0 to compute\n"));
    assert!(wrong(&["plan", "p.toml", "--out", "out"], 0).0.ends_with("6 cells, 0 to compute\n"));
}

#[test]
fn how_a_stream_rounds_is_its_own_affair() {
    let distances = |mode: &str| {
        let folder = Folder::new();
        add_wrong(&folder);
        let data = format!("[[data]]\nname = \"d\"\nloader = \"wrong\"\nparams = {{ mode = \"{mode}\" }}\n");
        let rest =
            "columns = { embedding = \"embedding\" }\n\n[[clusterer]]\nuse = \"kmeans\"\nparams = { k = 3 }\n";
        folder.write("p.toml", &(data + rest));
        run(&folder, &[], 0);
        let assignments = folder.read_parquet("out/assignments.parquet");
        format!("{:?}", assignments.column_by_name("distance").unwrap())
    };
    assert_eq!(distances("round"), distances("fine"));
}

#[test]
fn the_process_ends_without_taking_memory_from_threads_that_still_run() {
    let folder = Folder::new();
    add_wrong(&folder);
    let noted = folder.path("ended");
    let mut command = folder.compflow(&["--plugins", "wrong", "plugins"]);
    assert!(command.env("WRONG_ENDS", &noted).output().unwrap().status.success());
    assert!(!noted.exists(), "destructors of libraries ran");
}

#[test]
fn a_count_is_shown_as_one_and_a_score_beyond_its_range_is_refused() {
    let folder = Folder::new();
    add_wrong(&folder);
    folder.write("p.toml", &format!("{SMALL}\n[[evaluator]]\nuse = \"wrong\"\n"));
    let (stdout, _) = run(&folder, &[], 0);
    assert!(stdout.contains(" 6.0 (0.0)") && !stdout.contains("600"), "{stdout}");
    assert!(stdout.contains("cri %") && stdout.contains("mean (s.e.) over 3 trials"), "{stdout}");
    let (_, stderr) = run(&folder, &["--set", "evaluator.wrong.mode=beyond"], 1);
    assert!(stderr.contains("the score `wrong` is 601, which is not between 0 and 600"), "{stderr}");
}

#[test]
fn components_that_ask_for_themselves_come_to_an_end() {
    let folder = with_clusterer("nest");
    let (_, stderr) = run(&folder, &[], 2);
    assert!(stderr.contains("components ask for one another more than 16 deep"), "{stderr}");
}

#[test]
fn escape_sequences_do_not_reach_the_terminal() {
    let folder = with_clusterer("shout");
    let (stdout, stderr) = run(&folder, &[], 1);
    assert!(stderr.contains("␛[31mred␛[0m and loud") && stderr.contains("␛[2J"), "{stderr}");
    let (listed, _) = folder.run(&["--plugins", "wrong", "plugins"], 0);
    assert!(listed.contains("␛[31mnot to be trusted"), "{listed}");
    folder.write("p.toml", &SMALL.replace("name = \"made\"", "name = \"ma\\u001b[2Jde\""));
    let (renamed, _) = folder.run(&["run", "p.toml", "--out", "other"], 0);
    for text in [stdout, stderr, listed, renamed] {
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
        assert!(!text.contains("\nerror: forged"), "no line passes for one of ours: {text}");
    }
}

#[test]
fn a_library_is_known_by_what_it_was_before_it_was_opened() {
    let folder = Folder::new();
    add_wrong(&folder);
    let library = folder.path("wrong").join(library_name("wrong"));
    let before = blake3::hash(&std::fs::read(&library).unwrap()).to_hex().to_string();
    let mut command = folder.compflow(&["--plugins", "wrong", "plugins", "--json"]);
    // Nobody has seen it.
    let output =
        command.env("WRONG_CHANGES", &library).env("XDG_CACHE_HOME", folder.path("cache")).output().unwrap();
    assert_ne!(
        blake3::hash(&std::fs::read(&library).unwrap()).to_hex().to_string(),
        before,
        "it has changed itself"
    );
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let wrong = listed.as_array().unwrap().iter().find(|found| found["name"] == "compflow-wrong").unwrap();
    assert_eq!(wrong["blake3"], before.as_str());
}

#[test]
fn a_library_that_hides_another_is_named_and_a_qualified_name_chooses() {
    let folder = with_clusterer("fine");
    // Of the same name as ours, with other content.
    add_library(&folder, "metrics", &repository().join("crates/host/tests/e2e/silently_wrong/wrong.c"), &[]);
    let (_, stderr) = run(&folder, &["--only", "KM"], 2);
    assert!(stderr.contains("is not used: ") && stderr.contains("has the same name and comes first"), "{stderr}");
    std::fs::remove_file(folder.path("wrong").join(library_name("metrics"))).unwrap();
    // Under another name both offer the same components.
    std::fs::copy(
        folder.path("wrong").join(library_name("wrong")),
        folder.path("wrong").join(library_name("wrong2")),
    )
    .unwrap();
    let (_, stderr) = run(&folder, &[], 2);
    assert!(stderr.contains("clusterer `wrong` is offered by more than one library"), "{stderr}");
    assert!(stderr.contains("help: say which: `wrong:wrong` or `wrong2:wrong`"), "{stderr}");
    run(&folder, &["--set", "clusterer.bad.use=wrong2:wrong"], 0);
    let (_, stderr) = run(&folder, &["--set", "clusterer.bad.use=wrong3:wrong"], 2);
    assert!(stderr.contains("there is no clusterer named `wrong3:wrong`"), "{stderr}");
}
