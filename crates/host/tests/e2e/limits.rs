//! What input claims, and what is asked for, has limits: too much is refused with its number, or can be stopped.

use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int32Array, LargeStringArray, RecordBatch, RunArray};

use crate::common::{Folder, SMALL, embeddings, executable, finished, libraries};

/// A pipeline over a file.
fn over(path: &str, loader: &str) -> String {
    SMALL.replace(
        "loader = \"synthetic\"\nparams = { n = 45, dim = 4, k = 3, noise = 0.05, trials = 3 }",
        &format!("loader = \"{loader}\"\npath = \"{path}\""),
    )
}

/// What is said of a pipeline that is refused at once.
fn refused(folder: &Folder, extra: &[&str]) -> String {
    let started = Instant::now();
    let args = [&["run", "p.toml", "--out", "out"], extra].concat();
    let (_, stderr) = folder.run(&args, 2);
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}: {stderr}");
    stderr
}

/// Waits until a process listens to interrupts, of which the system tells.
fn wait_until_it_listens(id: u32) {
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        u64::from_str_radix(caught.trim(), 16).ok()
    };
    let (both, patience) = (1 << 1 | 1 << 14, Instant::now() + Duration::from_secs(60));
    while listens().is_some_and(|caught| caught & both != both) && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn pipes_and_devices_are_no_files() {
    let folder = Folder::new();
    let pipe = folder.path("pipe.parquet");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.to_str().unwrap(), "/dev/zero"] {
        for loader in ["parquet", "arrow", "npy"] {
            folder.write("p.toml", &over(path, loader));
            assert!(refused(&folder, &[]).contains("is a pipe or a device, not a file"));
        }
        folder.write(
            "p.toml",
            &format!("{SMALL}\n[composer]\nuse = \"bilinear\"\nparams = {{ weights = \"{path}\" }}\n"),
        );
        assert!(refused(&folder, &[]).contains("is a pipe or a device, not a file"));
    }
}

#[test]
fn a_sparse_file_of_a_tebibyte_is_refused_with_its_number() {
    let folder = Folder::new();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 64)}";
    let path = folder.write("large.npy", "");
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let mut start = b"\x93NUMPY\x01\x00".to_vec();
    start.extend((header.len() as u16).to_le_bytes());
    start.extend(header.as_bytes());
    file.write_all_at(&start, 0).unwrap();
    file.set_len((1 << 40) + 128).unwrap();
    folder.write("p.toml", &over("large.npy", "npy"));
    let stderr = refused(&folder, &["--memory", "1GiB"]);
    let expected = "4294967296 embeddings of 64 numbers take 1.00 TiB, more than the memory budget of 1.00 GiB";
    assert!(stderr.contains(expected), "{stderr}");
}

#[test]
fn a_value_for_a_run_of_rows_is_held_to_the_memory_before_each_row_has_its_own() {
    let folder = Folder::new();
    let rows = Int32Array::from(vec![800_000]);
    let label = LargeStringArray::from(vec!["x".repeat(100_000)]);
    let label: ArrayRef = Arc::new(RunArray::try_new(&rows, &label).unwrap());
    let embedding: ArrayRef = Arc::new(RunArray::try_new(&rows, &embeddings(&[&[0.0, 1.0]])).unwrap());
    let batch = RecordBatch::try_from_iter([("embedding", embedding), ("label", label)]).unwrap();
    let file = std::fs::File::create(folder.path("runs.arrow")).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    folder.write("p.toml", &over("runs.arrow", "arrow").replace("path", "columns = { truth = \"label\" }\npath"));
    let stderr = refused(&folder, &["--memory", "1GiB"]);
    let expected = "rows 0 to 799999: a value for each of them takes more than the memory budget of 1.00 GiB";
    assert!(stderr.contains(expected) && stderr.contains("the column `truth`"), "{stderr}");
}

#[test]
fn labels_and_weights_that_are_too_large_are_refused_with_their_numbers() {
    let folder = Folder::new();
    for (name, dtype, columns, length) in
        [("x.npy", "<f4", 2, 1 << 10), ("labels.npy", "|i1", 10_000_000, 1 << 30)]
    {
        let header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': (100, {columns})}}");
        let mut start = b"\x93NUMPY\x01\x00".to_vec();
        start.extend((header.len() as u16).to_le_bytes());
        start.extend(header.as_bytes());
        let file = std::fs::File::create(folder.path(name)).unwrap();
        file.write_all_at(&start, 0).unwrap();
        file.set_len(length).unwrap();
    }
    let labelled = "columns = { truth = \"t\" }\nparams = { labels = \"labels.npy\" }\npath";
    folder.write("p.toml", &over("x.npy", "npy").replace("path", labelled));
    let stderr = refused(&folder, &["--memory", "64MiB"]);
    assert!(stderr.contains("labels.npy takes more than 8388608 bytes"), "{stderr}");
    std::fs::File::create(folder.path("w")).unwrap().set_len(1 << 40).unwrap();
    let composer = "[composer]\nuse = \"bilinear\"\nparams = { weights = \"w\" }\n";
    folder.write("p.toml", &format!("{SMALL}\n{composer}"));
    let stderr = refused(&folder, &["--memory", "8GiB"]);
    assert!(stderr.contains("w: has more than the 8589934592 bytes that may be used"), "{stderr}");
}

#[test]
fn a_grid_of_a_billion_points_is_refused_with_its_number() {
    let folder = Folder::new();
    let values: Vec<String> = (1..=1000).map(|value| value.to_string()).collect();
    let grid = format!("{{ grid = [{}] }}", values.join(", "));
    let many = format!("params = {{ k = {grid}, restarts = {grid}, max_iter = {grid} }}");
    folder.write("p.toml", &SMALL.replace("params = { k = 6, restarts = 3 }", &many));
    assert!(refused(&folder, &[]).contains("the grids have 1000000000 points together, more than 100000"));
}

#[test]
fn nesting_of_any_depth_is_an_error() {
    let folder = Folder::new();
    folder.write("p.toml", SMALL);
    let deep = ".a".repeat(20_000);
    for set in
        [format!("clusterer.KM{deep}=1"), format!("seed={}", "[".repeat(20_000)), format!("a={{ b{deep} = 1 }}")]
    {
        assert!(refused(&folder, &["--set", &set]).contains("tables are nested more than 64 deep"));
    }
    folder.write("p.toml", &format!("{SMALL}\n[x{deep}]\n"));
    assert!(refused(&folder, &[]).contains("tables are nested more than 64 deep"));
}

#[test]
fn a_search_through_everything_hears_the_first_interrupt() {
    let folder = Folder::new();
    folder.write("p.toml", &over("/**/no such file.parquet", "parquet"));
    let mut command = folder.compflow(&["run", "p.toml", "--out", "out"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until_it_listens(child.id());
    std::thread::sleep(Duration::from_millis(500));
    let interrupted = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let took = interrupted.elapsed();
    // Where there is little to search, it may have come to its end.
    let code = output.status.code();
    assert!(matches!(code, Some(130 | 2)), "{code:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// While nothing is computed, nothing can be lost: whatever is waited for, the first interrupt ends it.
#[test]
fn planning_hears_the_first_interrupt_whatever_it_waits_for() {
    let folder = Folder::new();
    crate::silently_wrong::add_wrong(&folder);
    let wrong = |mode: &str| format!("use = \"wrong\"\nparams = {{ mode = \"{mode}\" }}");
    let kmeans = "use = \"kmeans\"\nparams = { k = 6, restarts = 3 }";
    assert!(SMALL.contains(kmeans), "{SMALL}");
    folder.write("hangs.toml", &SMALL.replace(kmeans, &wrong("hang")));
    folder.write("fine.toml", &SMALL.replace(kmeans, &wrong("fine")));
    folder.write("alone.toml", &format!("isolate = false\n{}", SMALL.replace(kmeans, &wrong("hang"))));
    // Nobody waits for what comes out of a pipe that is called a pipeline.
    assert!(Command::new("mkfifo").arg(folder.path("fifo.toml")).status().unwrap().success());
    folder.run(&["run", "fifo.toml", "--out", "out"], 2);
    let huge = folder.path("huge").join(crate::common::library_name("huge"));
    folder.write(&format!("huge/{}", crate::common::library_name("huge")), "");
    std::fs::File::options().write(true).open(huge).unwrap().set_len(1 << 40).unwrap();
    for (plugins, pipeline, sleeps) in [
        ("wrong", "hangs.toml", false),
        ("wrong", "alone.toml", false),
        ("wrong", "fine.toml", true),
        ("huge", "fine.toml", false),
    ] {
        for signal in ["-INT", "-TERM"] {
            let mut command = folder.compflow(&["--plugins", plugins, "run", pipeline, "--out", "out"]);
            if sleeps {
                command.env("WRONG_SLEEPS", "1").env("XDG_CACHE_HOME", folder.path("cache"));
            }
            let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            wait_until_it_listens(child.id());
            std::thread::sleep(Duration::from_millis(1000));
            let interrupted = Instant::now();
            assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
            let output = child.wait_with_output().unwrap();
            let (took, stderr) = (interrupted.elapsed(), String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.status.code(), Some(130), "{plugins} {pipeline} {signal}: {stderr}");
            assert!(stderr.ends_with("interrupted\n"), "{plugins} {pipeline} {signal}: {stderr}");
            assert!(took < Duration::from_secs(20), "{plugins} {pipeline} {signal}: {took:?}");
        }
    }
}

/// Nor is there anything to lose where files are only looked into.
#[test]
fn looking_into_a_large_file_hears_the_first_interrupt() {
    let folder = Folder::new();
    folder.write("large.csv", "a,b\n1,2\n3,");
    std::fs::File::options().write(true).open(folder.path("large.csv")).unwrap().set_len(1 << 40).unwrap();
    for args in [&["init", "large.csv"][..], &["eval", "large.csv:a", "large.csv:b"]] {
        // A shell that has started something in the background lets it ignore interrupts.
        let script = format!("trap '' INT; exec '{}' {}", executable().display(), args.join(" "));
        let mut command = Command::new("sh");
        command.current_dir(folder.path("")).args(["-c", &script]).env("COMPFLOW_PLUGIN_PATH", libraries());
        command.env("XDG_CACHE_HOME", crate::common::build_folder("test-cache"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until_it_listens(child.id());
        let interrupted = Instant::now();
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let (took, stderr) = (interrupted.elapsed(), String::from_utf8_lossy(&output.stderr));
        assert_eq!((output.status.code(), &*stderr), (Some(130), "interrupted\n"), "{args:?}");
        assert!(took < Duration::from_secs(2), "{args:?}: {took:?}");
    }
}

/// What is said to the process that tries components out is not for them.
#[test]
fn a_component_that_reads_stdin_keeps_nobody_waiting() {
    let folder = Folder::new();
    crate::silently_wrong::add_wrong(&folder);
    let listens = "use = \"wrong\"\nparams = { mode = \"listen\" }";
    folder.write("p.toml", &SMALL.replace("use = \"kmeans\"\nparams = { k = 6, restarts = 3 }", listens));
    let mut command = folder.compflow(&["--plugins", "wrong", "run", "p.toml", "--out", "out"]);
    finished(command.stdin(Stdio::null()).output().unwrap(), 0);
}

/// A line that does not end, plain or compressed, is refused once it is longer than the memory allows.
#[test]
fn a_line_of_text_that_does_not_end_is_refused_with_its_number() {
    let folder = Folder::new();
    let file = |name: &str, start: &str| {
        folder.write(name, start);
        let file = std::fs::File::options().write(true).open(folder.path(name)).unwrap();
        file.set_len(1 << 40).unwrap();
    };
    file("large.csv", "a,b\n1,2\n3,");
    file("large.jsonl", "{\"a\": 1}\n{\"a\": ");
    for (path, loader, line) in [("large.csv", "csv", 3), ("large.jsonl", "json", 2)] {
        folder.write("p.toml", &over(path, loader));
        let stderr = refused(&folder, &["--memory", "256MiB"]);
        assert!(stderr.contains(path) && stderr.contains(&format!("line {line} takes more than")), "{stderr}");
        assert!(stderr.contains("a run may use more with --memory"), "{stderr}");
    }
}

#[test]
fn more_jobs_than_cores_are_as_many_as_there_are_cores() {
    let folder = Folder::new();
    folder.write("p.toml", SMALL);
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out", "--jobs", "100000", "--threads", "100000"], 0);
    for option in ["--jobs", "--threads"] {
        assert!(stderr.contains(&format!("{option} 100000: this machine runs ")), "{stderr}");
    }
}

/// The system counts the threads of a user, and root has no limit; so another user is needed.
#[test]
fn a_system_that_grants_no_threads_gets_an_error_or_a_slower_run() {
    let folder = Folder::new();
    folder.write("p.toml", SMALL);
    let run = folder.compflow(&["run", "p.toml", "--out", "out", "--threads", "2"]);
    let program = run.get_program().to_str().unwrap().to_owned();
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0);
    if !is_root
        || !Command::new("setpriv")
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|done| done.success())
    {
        return;
    }
    std::os::unix::fs::chown(folder.path("."), Some(54_321), None).unwrap();
    for (limit, extra) in (1..16).flat_map(|limit| [(limit, ""), (limit, "--isolate")]) {
        let script =
            format!("ulimit -u {limit} && exec {program} run p.toml --out out{limit}{extra} --threads 2 {extra}");
        let mut command = Command::new("setpriv");
        command.args(["--reuid=54321", "--clear-groups", "bash", "-c", &script]).current_dir(folder.path("."));
        command.env("COMPFLOW_PLUGIN_PATH", crate::common::libraries());
        command.env("XDG_CACHE_HOME", crate::common::build_folder("test-cache"));
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        assert!(matches!(code, Some(0..=2 | 126)), "{limit} threads {extra}: {code:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{limit} threads {extra}: {code:?}: {stderr}");
    }
}

#[test]
fn a_number_of_cells_that_nobody_has_computed_is_refused_with_the_number() {
    let folder = Folder::new();
    let values: Vec<String> = (1..=2000).map(|value| value.to_string()).collect();
    let many = format!("params = {{ k = {{ grid = [{}] }} }}", values.join(", "));
    let text = SMALL.replace("params = { k = 6, restarts = 3 }", &many).replace("n = 45", "n = 12");
    folder.write("p.toml", &text.replace("trials = 3", "trials = 6000"));
    let output = folder.compflow(&["run", "p.toml", "--out", "out"]).output().unwrap();
    let (_, stderr) = finished(output, 2);
    assert!(stderr.contains("6000 trials and 2000 methods are 12000000 cells, more than 10000000"), "{stderr}");
}
