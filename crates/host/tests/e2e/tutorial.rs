//! The commands of docs/plugins.md, as they stand, in an empty folder.

use std::process::Command;

use crate::common::{Folder, build_folder, libraries, repository};

/// The commands of a section.
fn commands(page: &str, section: &str) -> String {
    let section = page.split(&format!("\n## {section}\n")).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    section.split("```sh\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect()
}

fn try_section(folder: &Folder, section: &str) -> String {
    let page = std::fs::read_to_string(repository().join("docs/plugins.md")).unwrap();
    let commands = commands(&page, section);
    assert!(commands.lines().count() > 4, "{commands}");
    let path = folder.with_command_on_path();
    std::fs::create_dir_all(folder.path("empty")).unwrap();
    let output = Command::new("sh")
        .args(["-ec", &commands])
        .current_dir(folder.path("empty"))
        .env("PATH", path)
        .env("COMPFLOW_PLUGIN_PATH", libraries())
        .env("CARGO_BUILD_BUILD_DIR", build_folder("authors"))
        .env("CARGO_NET_OFFLINE", "true")
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    crate::common::finished(output, 0).0
}

#[test]
fn the_tutorial_in_rust_works() {
    let folder = Folder::new();
    let stdout = try_section(&folder, "In Rust");
    assert!(stdout.contains("clusterer `stripes`: ") && stdout.contains("made-up: mean (s.e.)"), "{stdout}");
    assert!(stdout.ends_with(" passed, 0 failed, 0 skipped\n"), "{stdout}");
    let schema = std::fs::read_to_string(folder.path("empty/stripes/compflow.schema.json")).unwrap();
    assert!(schema.contains("\"clusterer.stripes\""), "the schema knows the new component");
    let report = std::fs::read_to_string(folder.path("empty/stripes/results/stripes/report.html")).unwrap();
    assert!(report.contains("stripes") && report.contains("made-up"), "the result is in a report");
}

#[test]
#[cfg(target_os = "linux")]
fn the_tutorial_in_c_works() {
    if Command::new("make").arg("--version").output().is_err() {
        eprintln!("make is not there: not tried");
        return;
    }
    let folder = Folder::new();
    let stdout = try_section(&folder, "In C");
    assert!(stdout.contains("made-up: mean (s.e.)"), "{stdout}");
    assert!(stdout.ends_with(" passed, 0 failed, 0 skipped\n"), "{stdout}");
}
