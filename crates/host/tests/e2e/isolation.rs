//! Cells in processes of their own: what a component does to its process costs its own cell, and nothing else differs.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, SMALL, executable, finished, libraries, texts};
use crate::reliability::Tally;
use crate::silently_wrong::add_wrong;

/// The small pipeline with a clusterer that misbehaves in front of one that does not.
fn with_fault(fault: &str) -> Folder {
    let folder = Folder::new();
    folder.add_faulty();
    let faulty = format!(
        "[[clusterer]]\nname = \"bad\"\nuse = \"faulty\"\nparams = {{ fault = \"{fault}\" }}\n\n[[clusterer]]"
    );
    let small = SMALL.replacen("[[clusterer]]", &faulty, 1).replace("trials = 3", "trials = 2");
    folder.write("p.toml", &small);
    folder
}

fn run(folder: &Folder, extra: &[&str], code: i32) -> (String, String) {
    let args = [&["--plugins", "faulty", "run", "p.toml", "--out", "out", "--jobs", "1"], extra].concat();
    folder.run(&args, code)
}

/// Clusterer and error of every cell; no error for those that went well.
fn cells(folder: &Folder) -> Vec<(String, String)> {
    let runs = folder.read_parquet("out/runs.parquet");
    let rows = texts(&runs, "clusterer").into_iter().zip(texts(&runs, "error"));
    rows.map(|(name, error)| (name.to_owned(), error.to_owned())).collect()
}

/// The two cells of `bad` have failed like that, and those of `KM` are well; returns how many have failed.
fn only_bad_failed(folder: &Folder, how: &str) -> usize {
    let cells = cells(folder);
    assert_eq!(cells.len(), 4, "{cells:?}");
    let failed = cells.iter().filter(|(name, _)| name == "bad").count();
    for (name, error) in cells {
        match name.as_str() {
            "KM" => assert_eq!(error, ""),
            _ => {
                assert!(
                    error.starts_with("clusterer `faulty` of /") && error.contains("libcompflow_faulty.so"),
                    "{error}"
                );
                assert!(error.contains(how), "{error}");
            }
        }
    }
    failed
}

#[test]
fn a_component_that_ends_its_process_costs_its_own_cell() {
    let tally = Tally::default();
    for (fault, how) in [
        ("abort", ".so crashed: SIGABRT"),
        ("segfault", ".so crashed: SIGSEGV"),
        ("overflow", ".so crashed: SIG"),
        ("exit", ".so ended its process: exit(0)"),
        ("orphan", ".so ended its process: exit(3)"),
    ] {
        let folder = with_fault(fault);
        let (stdout, stderr) = run(&folder, &["--format", "csv"], 1);
        assert!(stdout.contains("made,KM,cri,2,"), "{fault}: {stdout}");
        assert!(stderr.contains(" bad: clusterer `faulty` of "), "{fault}: {stderr}");
        assert!(stderr.ends_with("error: 2 of 4 cells failed; out/runs.parquet says why\n"), "{fault}: {stderr}");
        tally.survived(only_bad_failed(&folder, how));
        // Another run does not end there either, and what went well is kept.
        run(&folder, &[], 1);
        tally.survived(only_bad_failed(&folder, how));
    }
    tally.row("components that abort, segfault, overflow the stack, call `exit` or leave processes behind");
}

/// The small pipeline with a clusterer in C that does what it must not.
fn with_wrong(mode: &str) -> Folder {
    let folder = Folder::new();
    add_wrong(&folder);
    let wrong = format!(
        "[[clusterer]]\nname = \"bad\"\nuse = \"wrong\"\nparams = {{ mode = \"{mode}\" }}\n\n[[clusterer]]"
    );
    folder.write("p.toml", &SMALL.replacen("[[clusterer]]", &wrong, 1).replace("trials = 3", "trials = 2"));
    folder
}

const RUN: [&str; 8] = ["--plugins", "wrong", "run", "p.toml", "--out", "out", "--jobs", "1"];

#[test]
fn a_component_that_closes_or_spoils_what_is_open_costs_its_own_cell() {
    for mode in ["close", "close_all", "scribble"] {
        let folder = with_wrong(mode);
        let started = Instant::now();
        finished(folder.compflow(&RUN).output().unwrap(), 1);
        assert!(started.elapsed() < Duration::from_secs(30), "{mode}");
        for (name, error) in cells(&folder) {
            match name.as_str() {
                "KM" => assert_eq!(error, "", "{mode}"),
                _ => {
                    assert!(error.contains("has closed what a worker process answers through"), "{mode}: {error}")
                }
            }
        }
    }
}

/// A worker that dies of what an earlier cell has left there costs neither that cell nor the one that it dies in.
#[test]
fn a_thread_that_ends_the_process_later_costs_no_other_cell_and_is_told_of() {
    let folder = with_wrong("late");
    let text = std::fs::read_to_string(folder.path("p.toml")).unwrap();
    let slow = "use = \"wrong\"\nparams = { mode = \"slow\" }";
    folder.write("p.toml", &text.replace("use = \"kmeans\"\nparams = { k = 6, restarts = 3 }", slow));
    let (_, stderr) = finished(folder.compflow(&RUN).output().unwrap(), 0);
    assert!(cells(&folder).iter().all(|(_, error)| error.is_empty()), "{:?}", cells(&folder));
    let warned = "KM: clusterer `wrong` of /";
    assert!(stderr.contains(warned) && stderr.contains("libcompflow_wrong.so crashed: SIGABRT"), "{stderr}");
    assert!(stderr.contains("that an earlier cell has left behind, such as a thread, of "), "{stderr}");
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_component_has_started_ends_with_its_worker_even_in_a_session_of_its_own() {
    let folder = with_wrong("leave");
    let (list, mut command) = (folder.path("left"), folder.compflow(&RUN));
    finished(command.env("WRONG_LEAVES", &list).output().unwrap(), 0);
    let left = std::fs::read_to_string(list).unwrap();
    let left: Vec<u32> = left.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(left.len(), 2);
    assert!(vanish(&left), "{left:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_component_that_takes_all_memory_costs_its_own_cell() {
    let folder = with_fault("hungry");
    let script = "ulimit -v 3000000; exec \"$0\" --plugins faulty run p.toml --out out --jobs 1";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(executable())
        .current_dir(folder.path(""))
        .env("COMPFLOW_PLUGIN_PATH", libraries())
        .env("XDG_CACHE_HOME", crate::common::build_folder("test-cache"))
        .output()
        .unwrap();
    finished(output, 1);
    let tally = Tally::default();
    tally.survived(only_bad_failed(&folder, ".so crashed: SIG"));
    tally.row("components that take all memory");
}

#[test]
fn a_loader_that_cells_call_again_costs_them_and_nothing_else() {
    let folder = Folder::new();
    add_wrong(&folder);
    let data = "degree = 1\n\n[[data]]\nname = \"d\"\nloader = \"wrong\"\nparams = { mode = \"lonely\" }\n";
    let rest = "columns = { weight = \"w\" }\n\n[[clusterer]]\nuse = \"ckm\"\nparams = { k = 2, stream = true }\n";
    folder.write("p.toml", &format!("{data}{rest}"));
    folder.run(&["--plugins", "wrong", "run", "p.toml", "--out", "out"], 1);
    let cells = cells(&folder);
    let (_, error) = &cells[0];
    assert!(error.starts_with("loader `wrong` of /") && error.contains("crashed: SIGABRT"), "{error}");
    // Where nobody calls it again, it is no reason for processes, for which there would be a copy of the data.
    folder.write("p.toml", &format!("{data}{}", rest.replace(", stream = true", "")));
    let how = [("as it is", &[][..]), ("inside", &["--set", "isolate=false"]), ("apart", &["--isolate"])];
    let [as_it_is, inside, apart] = how.map(|(out, extra)| {
        let args = ["--plugins", "wrong", "run", "p.toml", "--out", out, "--memory", "1GiB", "--jobs", "1"];
        folder.run(&[&args[..], extra].concat(), 0);
        share(&folder, out)
    });
    assert!(as_it_is == inside && apart < inside, "{as_it_is} {inside} {apart}");
}

/// The memory that a cell could use.
fn share(folder: &Folder, out: &str) -> u64 {
    let record = std::fs::read_to_string(folder.path(out).join("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    record["memory_bytes"].as_u64().unwrap()
}

#[test]
fn the_second_copy_of_the_data_counts() {
    let folder = Folder::new();
    let large = "n = 4000, dim = 1000, k = 3, noise = 0.05, trials = 1";
    let small = SMALL.replace("n = 45, dim = 4, k = 3, noise = 0.05, trials = 3", large);
    folder.write("p.toml", &small);
    let shares = [("one", &[][..]), ("two", &["--isolate"])].map(|(out, extra)| {
        let args = [&["run", "p.toml", "--out", out, "--memory", "64MiB", "--jobs", "1"], extra].concat();
        folder.run(&args, 0);
        share(&folder, out)
    });
    // The embeddings take 16 MB.
    let [whole, less] = shares;
    assert!((16_000_000..17_000_000).contains(&(whole - less)), "{whole} {less}");
    let assignments = |out: &str| std::fs::read(folder.path(out).join("assignments.parquet")).unwrap();
    assert!(assignments("one") == assignments("two"));
}

#[test]
fn a_cell_beyond_the_timeout_has_failed_and_the_others_go_on() {
    let (folder, tally) = (with_fault("stubborn"), Tally::default());
    let started = Instant::now();
    run(&folder, &["--timeout", "1.5"], 1);
    assert!(started.elapsed() < Duration::from_secs(40));
    tally.survived(only_bad_failed(&folder, ".so took longer than the timeout, 1.5 s"));
    let text = std::fs::read_to_string(folder.path("p.toml")).unwrap();
    folder.write("p.toml", &format!("timeout = 1.2\n{text}"));
    run(&folder, &[], 1);
    tally.survived(only_bad_failed(&folder, ".so took longer than the timeout, 1.2 s"));
    tally.row("components that never return, with a `timeout`");
    let (_, stderr) = run(&folder, &["--set", "isolate=false"], 2);
    assert!(stderr.contains("`timeout` cannot be kept with `isolate = false`"), "{stderr}");
}

/// No time lies as far ahead as some timeouts that can be written.
#[test]
fn a_timeout_beyond_all_time_is_none() {
    let folder = Folder::new();
    folder.write("p.toml", SMALL);
    folder.write("q.toml", &format!("timeout = 1e19\n{SMALL}"));
    for args in
        [&["p.toml", "--timeout", "1e19"][..], &["q.toml"], &["p.toml", "--timeout", "9.3e18", "--part", "1/1"]]
    {
        let out = folder.path("out");
        let _ = std::fs::remove_dir_all(&out);
        folder.run(&[&["run", "--out", "out"], args].concat(), 0);
        let kept = std::fs::read_dir(out.join("cells")).unwrap().map(|entry| entry.unwrap().path());
        assert_eq!(
            kept.filter(|path| path.extension().is_some_and(|ending| ending == "cell")).count(),
            3,
            "{args:?}"
        );
    }
}

/// A pipeline that tunes, selects and composes, on two data sets.
const RICH: &str = r#"
name = "rich"
seed = 5

[composer]
use = "max"

[[data]]
name = "validation"
role = "tune"
loader = "synthetic"
params = { n = 40, dim = 6, k = 3, noise = 0.1, trials = 2 }

[[data]]
name = "made"
loader = "synthetic"
params = { n = 60, dim = 6, k = 3, noise = 0.1, trials = 3 }

[[clusterer]]
name = "tuned"
use = "kmeans"
params = { k = { grid = [4, 6] } }

[[clusterer]]
name = "selected"
use = "kmeans"
params = { k = { select = [2, 3, 6] } }

[[clusterer]]
name = "CKM"
use = "ckm"
params = { k = 3 }

[[evaluator]]
use = "cri"

[[evaluator]]
use = "silhouette"

[tune]
data = "validation"
metric = "cri"
"#;

/// Everything that a run leaves but how long it took, and what it has said.
fn left(folder: &Folder, out: &str, extra: &[&str]) -> (Vec<Vec<u8>>, Vec<String>) {
    let args = [&["run", "rich.toml", "--out", out, "--format", "csv"], extra].concat();
    let mut command = folder.compflow(&args);
    let (stdout, stderr) = finished(command.env("COMPFLOW_LOG", "info").output().unwrap(), 0);
    let tables = std::fs::read_dir(folder.path(out)).unwrap().map(|entry| entry.unwrap().path());
    let mut tables: Vec<_> = tables.filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect();
    tables.retain(|path| !path.ends_with("runs.parquet"));
    tables.sort();
    assert!(tables.len() >= 8);
    let mut left: Vec<Vec<u8>> = tables.iter().map(|table| std::fs::read(table).unwrap()).collect();
    left.push(stdout.into_bytes());
    // What depends on the time is not compared: on a busy machine there are lines of progress.
    let timely = |line: &str| line.contains("loaded") || line.contains("tables in") || line.starts_with("cells ");
    let said = stderr.lines().filter(|line| !timely(line));
    let mut said: Vec<String> = said.map(str::to_owned).collect();
    said.sort();
    (left, said)
}

#[test]
fn results_and_messages_are_those_of_a_run_in_one_process() {
    let folder = Folder::new();
    folder.write("rich.toml", RICH);
    let inside = left(&folder, "inside", &["--jobs", "1"]);
    for (out, extra) in [("one", &["--jobs", "1", "--isolate"][..]), ("two", &["--jobs", "2", "--isolate"])] {
        let apart = left(&folder, out, extra);
        assert!(inside.0 == apart.0, "{out}: tables differ");
        assert_eq!(inside.1, apart.1, "{out}");
    }
    // What one has kept, the other takes; and what parts have kept, too.
    let (stdout, stderr) = folder.run(&["run", "rich.toml", "--out", "one"], 0);
    assert!(stderr.contains("13 of them kept from before"), "{stdout}{stderr}");
    for phase in ["tune", "test"] {
        for part in ["1/2", "2/2"] {
            folder.run(&["run", "rich.toml", "--out", "parts", "--part", part, "--phase", phase, "--isolate"], 0);
        }
    }
    assert!(left(&folder, "parts", &["--isolate"]).0 == inside.0, "parts");
}

/// The processes that another one has started.
#[cfg(target_os = "linux")]
fn children_of(parent: u32) -> Vec<u32> {
    let is_child = |id: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.nth(1).and_then(|id| id.parse().ok()) == Some(parent)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

/// Whether processes are gone, or are so soon.
#[cfg(target_os = "linux")]
fn vanish(ids: &[u32]) -> bool {
    let state = |id: &u32| std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let is_gone =
        |id: &u32| state(id).rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"));
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline {
        if ids.iter().all(is_gone) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
#[cfg(target_os = "linux")]
fn workers_end_with_the_run_however_it_ends() {
    for (signal, code) in [("INT", Some(130)), ("KILL", None)] {
        let folder = with_fault("stubborn");
        let mut command =
            folder.compflow(&["--plugins", "faulty", "run", "p.toml", "--out", "out", "--jobs", "2"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while children_of(child.id()).len() < 2 {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(200));
        let workers = children_of(child.id());
        assert_eq!(workers.len(), 2);
        let started = Instant::now();
        Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        assert!(started.elapsed() < Duration::from_secs(5));
        assert!(vanish(&workers), "{signal}: {workers:?}");
        // What was interrupted has not failed.
        if signal == "INT" {
            assert!(cells(&folder).iter().all(|(_, error)| error.is_empty()), "{:?}", cells(&folder));
        }
    }
}

/// As it is without worker processes: nothing can be saved, but it is said who it was.
#[test]
fn in_one_process_a_crash_names_library_component_and_cell() {
    for (fault, how, code) in [
        ("abort", "error: crashed by SIGABRT in clusterer `faulty` of ", None),
        ("segfault", "error: crashed by SIGSEGV in clusterer `faulty` of ", None),
        ("overflow", "error: crashed by SIGSEGV in clusterer `faulty` of ", None),
        ("exit", "error: the process was ended by exit() in clusterer `faulty` of ", Some(1)),
        ("abort_in_create", "error: crashed by SIGABRT in clusterer `faulty` of ", Some(2)),
    ] {
        let folder = with_fault(fault);
        let args =
            ["--plugins", "faulty", "run", "p.toml", "--out", "out", "--jobs", "1", "--set", "isolate=false"];
        let output = folder.compflow(&args).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), code, "{fault}: {stderr}");
        assert!(stderr.contains(how), "{fault}: {stderr}");
        // Where nothing has begun, it is a request that cannot be met.
        let during = if fault == "abort_in_create" { "its creation" } else { "made trial 0 bad" };
        assert!(stderr.contains(&format!("libcompflow_faulty.so, during {during}\n")), "{fault}: {stderr}");
    }
}

/// Commands that compute nothing lose nothing: the request cannot be met.
#[test]
fn a_crash_where_nothing_is_computed_is_an_error_of_the_request() {
    for (fault, command, during) in
        [("abort_in_memory", "plan", "planning"), ("abort_in_memory", "why", "planning")]
    {
        let folder = with_fault(fault);
        let (_, stderr) = folder.run(&["--plugins", "faulty", command, "p.toml"], 2);
        assert!(stderr.contains(&format!("libcompflow_faulty.so, during {during}\n")), "{command}: {stderr}");
        assert!(stderr.contains("nothing was computed; leave the component out"), "{command}: {stderr}");
    }
}

/// A component of somebody else is made in a process of its own first, whose end nobody can hide.
#[test]
fn a_component_that_ends_the_process_without_a_word_while_it_is_made_is_refused_by_name() {
    for (variable, stage, how) in [
        ("WRONG_QUITS", "create", "by exit 0"),
        ("WRONG_QUITS", "flags", "by exit 0"),
        ("WRONG_QUITS", "destroy", "by exit 0"),
        ("WRONG_ABORTS", "create", "by signal 6 (SIGABRT)"),
    ] {
        for command in ["check", "run", "plan"] {
            let folder = with_wrong("fine");
            let mut command = folder.compflow(&["--plugins", "wrong", command, "p.toml"]);
            let (_, stderr) = finished(command.env(variable, stage).output().unwrap(), 2);
            let expected =
                format!("libcompflow_wrong.so cannot be used: it ends the process that makes it, {how}");
            assert!(stderr.contains("clusterer `wrong` of /") && stderr.contains(&expected), "{stage}: {stderr}");
        }
    }
}

/// Whatever is called is named.
#[test]
fn a_crash_names_the_component_whatever_it_is_asked() {
    for (stage, args, during) in [
        ("create", &["check", "p.toml"][..], "its creation"),
        ("flags", &["check", "p.toml"], "planning"),
        ("destroy", &["check", "p.toml"], "planning"),
        ("create", &["inspect", "wrong"], "its creation"),
        ("destroy", &["inspect", "wrong"], "its creation"),
    ] {
        let folder = with_wrong("fine");
        let alone: &[&str] = if args[0] == "check" { &["--set", "isolate=false"] } else { &[] };
        let args = [&["--plugins", "wrong"], args, alone].concat();
        let mut command = folder.compflow(&args);
        let (_, stderr) = finished(command.env("WRONG_ABORTS", stage).output().unwrap(), 2);
        assert!(stderr.contains("error: crashed by SIGABRT in "), "{stage} {args:?}: {stderr}");
        assert!(
            stderr.contains(&format!("libcompflow_wrong.so, during {during}\n")),
            "{stage} {args:?}: {stderr}"
        );
    }
}

#[test]
fn what_a_plugin_prints_logs_and_where_it_goes_is_not_seen_elsewhere() {
    for isolate in ["true", "false"] {
        let set = format!("isolate={isolate}");
        let folder = with_fault("prints");
        let (stdout, stderr) = run(&folder, &["--format", "csv", "--set", &set], 0);
        assert!(stdout.starts_with("data,") && !stdout.contains("hello"), "{stdout}");
        assert_eq!(stderr.matches("hello from a plugin\n").count(), 2, "{stderr}");

        let folder = with_fault("floods");
        let (_, stderr) = run(&folder, &["--set", &set], 0);
        assert_eq!(stderr.matches(" bad: line ").count(), 100, "{isolate}");
        assert!(stderr.contains("warning: made trial 0 bad: 49900 further warnings were left out\n"), "{stderr}");

        let folder = with_fault("leaves");
        run(&folder, &["--set", &set], 0);
        assert_eq!(cells(&folder).len(), 4);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_c_holds_back_of_what_is_printed_is_printed_and_a_line_without_an_end_is_cut() {
    for isolate in ["isolate=true", "isolate=false"] {
        let folder = with_wrong("print");
        let (stdout, stderr) = folder.run(&[&RUN[..], &["--format", "csv", "--set", isolate]].concat(), 0);
        assert!(stdout.starts_with("data,") && !stdout.contains("hello"), "{stdout}");
        assert_eq!(stderr.matches("hello in C\nwithout an end").count(), 2, "{isolate}: {stderr}");

        let folder = with_wrong("verbose");
        let (_, stderr) = folder.run(&[&RUN[..], &["--set", isolate]].concat(), 0);
        assert!(stderr.contains("x… (19983616 further bytes were left out)\n"), "{isolate}: {}", stderr.len());
        assert!(stderr.len() < 100_000, "{isolate}: {}", stderr.len());
    }
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_component_that_ends_its_thread_is_named() {
    let folder = with_wrong("end_thread");
    finished(folder.compflow(&RUN).output().unwrap(), 1);
    for (name, error) in cells(&folder) {
        match name.as_str() {
            "KM" => assert_eq!(error, ""),
            _ => assert!(
                error.starts_with("clusterer `wrong` of /") && error.contains("crashed: SIGABRT"),
                "{error}"
            ),
        }
    }
    let folder = with_wrong("end_thread");
    let output = folder.compflow(&[&RUN[..], &["--set", "isolate=false"]].concat()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(stderr.contains("error: crashed by SIGABRT in clusterer `wrong` of /"), "{stderr}");
}

#[test]
fn a_limit_that_a_component_sets_ends_with_its_worker() {
    let folder = with_wrong("few_files");
    let output = folder.compflow(&RUN).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains(" KM: "), "{stderr}");
    let kept = std::fs::read_dir(folder.path("out/cells")).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(kept.filter(|path| path.extension().is_some_and(|ending| ending == "cell")).count(), 2, "{stderr}");
    assert!(cells(&folder).iter().all(|(name, error)| name != "KM" || error.is_empty()), "{stderr}");
}
