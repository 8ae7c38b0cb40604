//! Every pipeline and every example in the documentation passes `compflow check`, and every option that it names is one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::common::{Folder, repository};

#[test]
fn every_pipeline_in_the_repository_is_right() {
    let folder = Folder::new();
    let mut pipelines: Vec<PathBuf> = std::fs::read_dir(repository().join("pipelines"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    pipelines.sort();
    // The larger sets are not in the repository: others stand in.
    let (large, pipelines): (Vec<_>, Vec<_>) = pipelines
        .into_iter()
        .partition(|path| std::fs::read_to_string(path).unwrap().contains("path    = \"${COMPFLOW_DATA}"));
    assert!(large.len() == 3 && pipelines.len() >= 5);
    for path in &large {
        let sets = ["n7500", "n15000"].map(|name| format!("data.{name}.path=../data/speech/d2_n150_test.parquet"));
        folder.run(&["check", path.to_str().unwrap(), "--set", &sets[0], "--set", &sets[1]], 0);
    }
    let args: Vec<&str> =
        std::iter::once("check").chain(pipelines.iter().map(|path| path.to_str().unwrap())).collect();
    folder.run(&args, 0);
}

/// Sections that a fragment may leave out, as they are added to make it a whole pipeline.
const REST: [(&str, &str); 2] = [
    ("[[data]]", "[[data]]\nname = \"rest\"\nloader = \"synthetic\"\nparams = { n = 30, trials = 2 }\n"),
    ("[[clusterer]]", "[[clusterer]]\nname = \"CAP\"\nuse = \"kmeans\"\nparams = { k = 5 }\n"),
];

#[test]
fn every_example_of_the_pipeline_reference_is_right() {
    let folder = Folder::new();
    std::os::unix::fs::symlink(repository().join("data"), folder.path("data")).unwrap();
    let text = std::fs::read_to_string(repository().join("docs/pipeline.md")).unwrap();
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    assert!(examples.len() >= 8, "{} examples", examples.len());
    for (at, example) in examples.iter().enumerate() {
        let mut pipeline = (*example).to_owned();
        for (section, rest) in REST {
            if !pipeline.contains(section) {
                pipeline = pipeline + "\n" + rest;
            }
        }
        let name = format!("pipelines/example{at}.toml");
        folder.write(&name, &pipeline);
        folder.run(&["check", &name], 0);
    }
}

#[test]
fn every_key_of_a_pipeline_is_in_the_reference() {
    let text = std::fs::read_to_string(repository().join("docs/pipeline.md")).unwrap();
    let source = std::fs::read_to_string(repository().join("crates/engine/src/pipeline/keys.rs")).unwrap();
    let lists = source.lines().filter(|line| line.contains("_KEYS: &[&str] =") || line.starts_with("    &[\""));
    let keys: Vec<&str> = lists.flat_map(|line| line.split('"').skip(1).step_by(2)).collect();
    assert!(keys.len() > 20, "{keys:?}");
    for key in keys {
        let explained = [format!("`{key}`"), format!("`[{key}]`"), format!("`[[{key}]]`")];
        assert!(explained.iter().any(|key| text.contains(key)), "docs/pipeline.md does not explain `{key}`");
    }
}

#[test]
fn every_option_that_the_documentation_gives_a_command_is_one_of_its_own() {
    let folder = Folder::new();
    let mut helps = BTreeMap::new();
    let (list, _) = folder.run(&["--help"], 0);
    let commands = list.split_once("Commands:").unwrap().1.split_once("Options:").unwrap().0;
    for command in commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()) {
        if !command.is_empty() && command != "help" {
            helps.insert(command.to_owned(), folder.run(&[command, "--help"], 0).0);
        }
    }
    helps.insert("export".to_owned(), folder.run(&["export", "rttm", "--help"], 0).0);
    assert!(helps.len() > 20, "{:?}", helps.keys());
    let docs = std::fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    // Mistakes are what that page is about.
    let pages = docs
        .filter(|path| path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("messages.md"));
    let mut given = 0;
    for page in pages.chain(["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| repository().join(name))) {
        let text = std::fs::read_to_string(&page).unwrap();
        for line in text.lines().flat_map(|line| line.split("compflow ").skip(1)) {
            // To the end of what is typed.
            let typed = line.split(['`', '#', '|', ';']).next().unwrap_or_default();
            let Some((command, help)) = helps.get_key_value(typed.split(' ').next().unwrap_or_default()) else {
                continue;
            };
            for option in typed.split(' ').filter(|word| word.starts_with("--")) {
                let option = option.split(['=', ',', ')', '.']).next().unwrap_or_default();
                assert!(
                    help.contains(&format!("{option} ")) || help.contains(&format!("{option}\n")),
                    "{}: compflow {command} {option}",
                    page.display()
                );
                given += 1;
            }
        }
    }
    assert!(given > 50, "{given} options");
}

#[test]
fn what_scripts_put_into_the_documentation_is_there() {
    let docs = std::fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let mut places = 0;
    for page in pages.chain([repository().join("README.md")]) {
        let text = std::fs::read_to_string(&page).unwrap();
        for (at, end) in text.match_indices("<!-- end ") {
            let name = text[at + end.len()..].split(" -->").next().unwrap();
            let (_, inside) = text[..at].rsplit_once(&format!("<!-- {name} -->")).unwrap();
            assert!(inside.lines().filter(|line| line.starts_with('|')).count() > 2, "{}: {name}", page.display());
            places += 1;
        }
    }
    assert!(places > 10, "{places} places");
}
