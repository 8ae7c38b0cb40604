//! `compflow new-plugin`: what it makes builds, is found, runs in the pipeline it brings along, and passes the tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Folder, build_folder, finished, library_name, repository};

/// Runs a command in a folder; panics with what it printed if it fails.
pub(crate) fn done(command: &mut Command, folder: &Path) {
    let output = command.current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
}

/// Cargo for a workspace that is not ours. Intermediate files are shared and kept from run to run.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    command.env("CARGO_BUILD_BUILD_DIR", build_folder("authors")).env_remove("CARGO_TARGET_DIR");
    // What the workspace was built with is all that it needs.
    command.env("CARGO_NET_OFFLINE", "true");
    command
}

/// The command in that folder, with the libraries of this build.
fn compflow(folder: &Folder, at: &Path, args: &[&str]) -> (String, String) {
    finished(folder.compflow(args).current_dir(at).output().unwrap(), 0)
}

fn runs(folder: &Folder, at: &Path, plugins: &str, library: &Path, kind: &str, name: &str) {
    let (stdout, _) = compflow(folder, at, &["--plugins", plugins, "plugins"]);
    assert!(stdout.contains(&format!("{kind:9} {name}")), "{stdout}");
    let (stdout, _) = compflow(folder, at, &["--plugins", plugins, "run", "pipeline.toml"]);
    assert!(stdout.contains("mean (s.e.)"), "{stdout}");
    let mut args = vec!["test-plugin", library.to_str().unwrap()];
    if kind == "loader" {
        args.extend(["--path", "points.txt"]);
    }
    let (stdout, _) = compflow(folder, at, &args);
    assert!(stdout.contains(" 0 failed, 0 skipped\n"), "{stdout}");
}

#[test]
fn every_kind_in_rust() {
    let folder = Folder::new();
    let api = repository().join("crates/api");
    for kind in ["clusterer", "composer", "evaluator", "loader"] {
        let name = format!("my-{kind}");
        let args = ["new-plugin", &name, "--kind", kind, "--api", api.to_str().unwrap()];
        let (stdout, _) = folder.run(&args, 0);
        assert!(
            stdout.starts_with(&format!(
                "{name} is {} {kind} in Rust. Next:\n\n  cd {name}\n  cargo build",
                if kind == "evaluator" { "an" } else { "a" }
            )),
            "{stdout}"
        );
        let at = folder.path(&name);
        done(cargo().args(["test", "--release"]), &at);
        done(cargo().args(["build", "--release"]), &at);
        let library = at.join("target/release").join(library_name(&format!("my_{kind}")));
        runs(&folder, &at, "target/release", &library, kind, &name);
    }
}

#[test]
fn a_plugin_that_would_end_the_process_is_refused_when_it_is_built() {
    let folder = Folder::new();
    let api = repository().join("crates/api");
    let args = ["new-plugin", "fragile", "--kind", "evaluator", "--api", api.to_str().unwrap()];
    folder.run(&args, 0);
    let mut check = cargo();
    check.args(["check", "--release", "--config", "profile.release.panic = \"abort\""]);
    let output = check.current_dir(folder.path("fragile")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{stderr}");
    assert!(stderr.contains("a compflow plugin must be built with panic = "), "{stderr}");
}

/// Compiles a C file as a plugin's Makefile does.
pub(crate) fn compile(source: &Path, library: &Path, more: &[&str]) {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden", "-shared"]);
    command.args(more).arg("-o").arg(library).arg(source).arg("-lm");
    done(&mut command, source.parent().unwrap());
}

#[test]
fn every_kind_in_c() {
    let folder = Folder::new();
    for kind in ["clusterer", "composer", "evaluator", "loader"] {
        let name = format!("my_{kind}");
        folder.run(&["new-plugin", &name, "--kind", kind, "--lang", "c"], 0);
        let at = folder.path(&name);
        let library = at.join(library_name(&name));
        compile(&at.join(format!("{name}.c")), &library, &[]);
        runs(&folder, &at, ".", &library, kind, &name);
    }
    // Rust brings a C compiler along, but not make.
    if Command::new("make").arg("--version").output().is_ok() {
        let compflow = PathBuf::from(env!("CARGO_BIN_EXE_compflow"));
        let mut make = Command::new("make");
        make.env("COMPFLOW_PLUGIN_PATH", crate::common::libraries());
        make.arg(format!("COMPFLOW={}", compflow.display())).args(["clean", "test"]);
        done(&mut make, &folder.path("my_loader"));
    } else {
        eprintln!("make is not there: the Makefile was not tried");
    }
}

#[test]
fn a_name_or_a_place_that_will_not_do_is_refused() {
    let folder = Folder::new();
    let refused = |args: &[&str]| folder.run(&[&["new-plugin"], args].concat(), 2).1;
    assert!(refused(&["kmeans", "--kind", "clusterer"]).contains("there is a clusterer `kmeans` already"));
    assert!(refused(&["My Plugin", "--kind", "clusterer"]).contains("cannot be the name of a component"));
    for keyword in ["self", "crate", "fn", "type", "switch"] {
        let text = format!("`{keyword}` cannot be the name of a plugin: it is a keyword of ");
        assert!(refused(&[keyword, "--kind", "loader"]).contains(&text), "{keyword}");
        assert!(!folder.path(keyword).exists());
    }
    for library in ["metrics", "loaders", "cap"] {
        let text = refused(&[library, "--kind", "evaluator", "--lang", "c"]);
        assert!(text.contains(&format!("`{library}` cannot be the name of a plugin: there is ")), "{text}");
        assert!(text.contains(" already, which a library of that name would hide"), "{text}");
    }
    let text = refused(&["params", "--kind", "clusterer"]);
    assert!(text.contains("its type would be called `Params`, as another is; choose another name"), "{text}");
    assert!(refused(&["x", "--kind", "clusterer", "--api", "nowhere"]).contains("is neither a folder"));
    assert!(refused(&["x", "--kind", "loader", "--lang", "c", "--api", "0.1"]).contains("--api is for Rust"));
    assert!(!folder.path("x").exists());
    folder.write("x/something", "");
    assert_eq!(refused(&["x", "--kind", "clusterer"]), "error: x is already there\n");
    // A version and an address are taken as they are.
    folder.run(&["new-plugin", "y", "--kind", "loader", "--api", "0.1"], 0);
    let manifest = std::fs::read_to_string(folder.path("y/Cargo.toml")).unwrap();
    assert!(manifest.contains("compflow-api = \"0.1\"\n"), "{manifest}");
    assert!(!manifest.contains("arrow") && !manifest.contains("serde"), "what a loader needs not: {manifest}");
    folder.run(&["new-plugin", "z", "--kind", "evaluator", "--api", "https://example.org/compflow"], 0);
    let manifest = std::fs::read_to_string(folder.path("z/Cargo.toml")).unwrap();
    assert!(manifest.contains("compflow-api = { git = \"https://example.org/compflow\" }\n"), "{manifest}");
}
