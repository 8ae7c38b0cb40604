//! The recipes of docs/howto.md, as they stand.

use std::process::Command;

use crate::common::{Folder, finished, libraries, repository};

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
        let output = Command::new("sh")
            .args(["-ec", &commands])
            .current_dir(folder.path(""))
            .env("PATH", &path)
            .env("COMPFLOW_PLUGIN_PATH", libraries())
            .output()
            .unwrap();
        finished(output, 0);
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
