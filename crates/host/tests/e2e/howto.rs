//! The recipes of docs/howto.md and the first commands of the README, as they stand.

use std::ffi::OsStr;
use std::process::Command;

use crate::common::{Folder, finished, libraries, repository};

fn shell(folder: &Folder, path: &OsStr, commands: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-ec", commands]).current_dir(folder.path(""));
    shell.env("PATH", path).env("COMPFLOW_PLUGIN_PATH", libraries());
    finished(shell.output().unwrap(), 0);
}

#[test]
fn three_commands_lead_from_a_file_to_a_report() {
    let page = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let (before, after) = page.split_once("compflow init embeddings.parquet").unwrap();
    assert!(before.ends_with("```sh\n"), "it is the first command");
    let commands = format!("compflow init embeddings.parquet{}", after.split_once("```").unwrap().0);
    assert_eq!(commands.trim().lines().count(), 3, "{commands}");
    let folder = Folder::new();
    let path = folder.with_command_on_path();
    // Somebody's embeddings, with whatever other columns there are.
    std::fs::copy(repository().join("data/topics/d2_n150_test.parquet"), folder.path("embeddings.parquet"))
        .unwrap();
    shell(&folder, &path, &commands);
    let report = std::fs::read_to_string(folder.path("results/mine/report.html")).unwrap();
    assert!(report.contains("<svg"), "nothing is drawn");
}

#[test]
fn all_recipes_work() {
    let page = std::fs::read_to_string(repository().join("docs/howto.md")).unwrap();
    let folder = Folder::new();
    let path = folder.with_command_on_path();
    // A checkout: what recipes read is there, what they write is not.
    for part in ["data", "pipelines"] {
        std::os::unix::fs::symlink(repository().join(part), folder.path(part)).unwrap();
    }
    let recipes: Vec<&str> = page.split("\n## ").skip(1).collect();
    assert_eq!(recipes.len(), 8);
    for recipe in recipes {
        let title = recipe.lines().next().unwrap();
        let commands: String =
            recipe.split("```sh\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
        assert!(commands.contains("compflow "), "{title}");
        println!("{title}");
        shell(&folder, &path, &commands);
    }
    for left in [
        "results/mine/report.html",
        "g.safetensors",
        "results/auto/selection.parquet",
        "results/unlabelled/report.html",
        "labels.parquet",
        "results/few/assignments.parquet",
        "found.rttm",
        "topics.json",
    ] {
        let size = std::fs::metadata(folder.path(left)).map(|file| file.len()).unwrap_or(0);
        assert!(size > 0, "{left}");
    }
}
