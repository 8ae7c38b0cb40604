//! The recipes of docs/howto.md and the first commands of the README, as they stand.

use std::ffi::OsStr;
use std::process::Command;

use crate::common::{Folder, finished, libraries, repository};

fn shell(folder: &Folder, path: &OsStr, commands: &str) -> (String, String) {
    let mut shell = Command::new("sh");
    shell.args(["-ec", commands]).current_dir(folder.path(""));
    shell.env("PATH", path).env("COMPFLOW_PLUGIN_PATH", libraries());
    shell.env("XDG_CACHE_HOME", crate::common::build_folder("test-cache"));
    finished(shell.output().unwrap(), 0)
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

/// What docs/composers-fit.md shows of data in which composition holds, and in which it does not.
#[test]
fn what_is_said_where_composition_does_not_hold_is_what_the_page_shows() {
    let page = std::fs::read_to_string(repository().join("docs/composers-fit.md")).unwrap();
    let (_, example) = page.split_once("## Where composition does not hold\n").unwrap();
    let commands: Vec<&str> = example.split("```sh\n").skip(1).take(2).collect();
    let folder = Folder::new();
    let path = folder.with_command_on_path();
    for (commands, holds) in commands.into_iter().zip([true, false]) {
        let (commands, after) = commands.split_once("```").unwrap();
        let (stdout, stderr) = shell(&folder, &path, commands);
        let warned = stderr.contains("composition does not hold in this data");
        assert_eq!(warned, !holds, "{stdout}{stderr}");
        let shown = after.split_once("```text\n").unwrap().1.split_once("```").unwrap().0;
        let printed = stderr + &stdout;
        assert!(shown.lines().all(|line| printed.contains(line.trim_end())), "{printed}");
    }
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
