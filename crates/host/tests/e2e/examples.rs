//! The examples: a clusterer in C, and a plugin of somebody else's with other versions of everything.

use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_array::cast::AsArray;

use crate::common::{Folder, build_folder, executable, libraries, library_name, repository};
use crate::new_plugins::{cargo, compile, done};

fn c_source() -> PathBuf {
    repository().join("examples/c-clusterer/cmedoids.c")
}

/// Builds the C clusterer with these headers into a folder of its own.
fn build(folder: &Folder, name: &str, include: &Path, more: &[&str]) -> PathBuf {
    std::fs::create_dir_all(folder.path(name)).unwrap();
    let library = folder.path(name).join(library_name("cmedoids"));
    compile(&c_source(), &library, &[&["-I", include.to_str().unwrap()][..], more].concat());
    library
}

/// Runs the example's pipeline with the library; the table of assignments.
fn run(folder: &Folder, plugins: &str) -> arrow_array::RecordBatch {
    let pipeline = repository().join("examples/c-clusterer/pipeline.toml");
    let out = format!("out-{plugins}");
    let args = ["--plugins", plugins, "run", pipeline.to_str().unwrap(), "--out", &out, "--format", "csv"];
    folder.run(&args, 0);
    folder.read_parquet(&format!("{out}/assignments.parquet"))
}

#[test]
fn the_clusterer_in_c_uses_the_composer_and_passes_the_kit() {
    let folder = Folder::new();
    let library = build(&folder, "c", &repository().join("crates/api/include"), &[]);
    let found = run(&folder, "c");
    let composite = found.column_by_name("composite").unwrap().as_boolean().true_count();
    assert!(composite > 0 && composite < found.num_rows(), "{composite} of {} are unions", found.num_rows());
    let scores = folder.read_parquet("out-c/metrics.parquet");
    let scores = scores["value"].as_primitive::<arrow_array::types::Float64Type>();
    assert!(scores.values().iter().all(|score| *score > 0.8), "{scores:?}");
    let (stdout, _) = folder.run(&["test-plugin", library.to_str().unwrap()], 0);
    assert!(stdout.ends_with(" passed, 0 failed, 0 skipped\n"), "{stdout}");
}

/// The engine knows nothing of it but what crosses the boundary, and selects its parameter all the same.
#[test]
fn the_parameter_of_a_clusterer_in_c_is_selected() {
    let folder = Folder::new();
    build(&folder, "c", &repository().join("crates/api/include"), &[]);
    let pipeline = repository().join("examples/c-clusterer/pipeline.toml");
    let pipeline =
        std::fs::read_to_string(pipeline).unwrap().replace("{ k = 3 }", "{ k = { select = [2, 3, 4, 5] } }");
    folder.write("p.toml", &pipeline);
    let (_, stderr) = folder.run(&["--plugins", "c", "run", "p.toml", "--out", "out"], 0);
    assert!(stderr.contains("selected cmedoids on made-up: k="), "{stderr}");
    let selection = folder.read_parquet("out/selection.parquet");
    assert_eq!(selection.num_rows(), 3 * 4);
    assert_eq!(selection["chosen"].as_boolean().true_count(), 3, "one in every trial");
    // It starts once and may end anywhere, but two halves never agree by chance alone.
    let stability = selection["stability"].as_primitive::<arrow_array::types::Float64Type>();
    assert!(stability.iter().all(|one| one.is_some_and(|one| one > 0.1)), "{stability:?}");
}

/// The header as first released, beside today's conveniences: what was built with it loads and gives the same result.
#[test]
fn a_library_built_from_the_first_header_still_loads() {
    let folder = Folder::new();
    let api = repository().join("crates/api");
    std::fs::create_dir_all(folder.path("include")).unwrap();
    std::fs::copy(api.join("tests/frozen/compflow-1.h"), folder.path("include/compflow.h")).unwrap();
    std::fs::copy(api.join("include/compflow_util.h"), folder.path("include/compflow_util.h")).unwrap();
    let library = build(&folder, "first", &folder.path("include"), &[]);
    build(&folder, "now", &api.join("include"), &[]);
    assert_eq!(run(&folder, "first"), run(&folder, "now"));
    let (stdout, _) = folder.run(&["test-plugin", library.to_str().unwrap()], 0);
    assert!(stdout.contains(" 0 failed, "), "{stdout}");
}

/// The AddressSanitizer's library, if the C compiler has one.
fn sanitizer(folder: &Folder) -> Option<PathBuf> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let source = folder.write("probe.c", "int main(void) { return 0; }\n");
    let probe = Command::new(&compiler)
        .args(["-fsanitize=address,undefined", "-o"])
        .args([&folder.path("probe"), &source])
        .output()
        .ok()?;
    let named = Command::new(&compiler).arg("-print-file-name=libasan.so").output().ok()?;
    let path = PathBuf::from(String::from_utf8(named.stdout).ok()?.trim());
    (probe.status.success() && path.is_absolute() && path.exists()).then_some(path)
}

/// Memory errors, undefined behaviour and leaks of the C code, whichever tool there is to find them.
#[test]
#[cfg(target_os = "linux")]
fn the_clusterer_in_c_passes_the_kit_under_a_checker() {
    let folder = Folder::new();
    let include = repository().join("crates/api/include");
    let stderr = if let Some(sanitizer) = sanitizer(&folder) {
        let flags =
            ["-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"];
        let library = build(&folder, "checked", &include, &flags);
        let mut command = folder.compflow(&["test-plugin", library.to_str().unwrap()]);
        // The host keeps its libraries for ever, which counts as a leak; those of the plugin are looked for below.
        command.env("LD_PRELOAD", sanitizer).env("ASAN_OPTIONS", "exitcode=0").env("LSAN_OPTIONS", "exitcode=0");
        crate::common::finished(command.output().unwrap(), 0).1
    } else if Command::new("valgrind").arg("--version").output().is_ok() {
        let library = build(&folder, "checked", &include, &["-g"]);
        let mut command = Command::new("valgrind");
        command.args(["--trace-children=yes", "--leak-check=full", "--show-leak-kinds=definite"]);
        command.arg(executable()).arg("test-plugin").arg(&library);
        command.env("COMPFLOW_PLUGIN_PATH", libraries());
        crate::common::finished(command.output().unwrap(), 0).1
    } else {
        eprintln!("neither AddressSanitizer nor Valgrind is there: not checked");
        return;
    };
    let reports: Vec<&str> =
        stderr.lines().filter(|line| line.contains("cmedoids") || line.contains("compflow_util")).collect();
    assert!(reports.is_empty(), "{}", reports.join("\n"));
    assert!(!stderr.contains("ERROR: AddressSanitizer"), "{stderr}");
}

/// The version of a crate in a lock file.
fn locked<'l>(lock: &'l str, name: &str) -> Vec<&'l str> {
    let entries = lock.split("[[package]]").filter(|entry| entry.contains(&format!("\nname = \"{name}\"\n")));
    entries.map(|entry| entry.split("version = \"").nth(1).unwrap().split('"').next().unwrap()).collect()
}

#[test]
fn a_plugin_of_somebody_else_shares_nothing_but_the_boundary() {
    let folder = Folder::new();
    let example = repository().join("examples/third-party");
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let (ours, theirs) = (read(repository().join("Cargo.lock")), read(example.join("Cargo.lock")));
    for name in ["arrow-array", "ndarray", "serde", "serde_json"] {
        let (ours, theirs) = (locked(&ours, name), locked(&theirs, name));
        assert!(
            !theirs.is_empty() && theirs.iter().all(|version| !ours.contains(version)),
            "{name}: {ours:?}, {theirs:?}"
        );
    }
    let target = build_folder("third-party");
    let mut build = cargo();
    // Its versions are not the workspace's, so the first time they must be fetched.
    build.env_remove("CARGO_NET_OFFLINE").env_remove("CARGO_BUILD_BUILD_DIR").env("CARGO_TARGET_DIR", &target);
    done(build.args(["build", "--release", "--locked"]), &example);
    let plugins = target.join("release");
    let pipeline = example.join("pipeline.toml");
    let args = ["--plugins", plugins.to_str().unwrap(), "run", pipeline.to_str().unwrap(), "--format", "csv"];
    let (stdout, _) = folder.run(&args, 0);
    assert!(stdout.contains("rings,shift,ari"), "{stdout}");
    let library = plugins.join(library_name("third_party"));
    let (stdout, _) = folder.run(&["test-plugin", library.to_str().unwrap()], 0);
    assert!(stdout.contains(" 0 failed, 0 skipped\n"), "{stdout}");
}
