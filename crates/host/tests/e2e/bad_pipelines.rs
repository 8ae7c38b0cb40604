//! Pipelines that cannot run: every problem at once, each with its place. `bad_pipelines/*.toml` are checked and must
//! print exactly what stands in `*.stderr` beside them; `COMPFLOW_BLESS=1 cargo test` writes what they print now.

use std::path::Path;

use crate::common::{Folder, repository};

#[test]
fn every_bad_pipeline_prints_its_problems() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/bad_pipelines");
    let folder = Folder::new();
    let table = "data/omniglot/d2_n150_test.parquet";
    folder.write(table, "");
    std::fs::copy(repository().join(table), folder.path(table)).unwrap();
    let mut names: Vec<String> = std::fs::read_dir(&source)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    assert!(names.len() >= 8, "{names:?}");
    let mut different = Vec::new();
    for name in names {
        std::fs::copy(source.join(&name), folder.path(&name)).unwrap();
        let (stdout, stderr) = folder.run_exactly(&["check", &name], 2);
        assert_eq!(stdout, "", "{name}");
        let expected = source.join(&name).with_extension("stderr");
        if std::env::var_os("COMPFLOW_BLESS").is_some() {
            std::fs::write(&expected, &stderr).unwrap();
        } else if std::fs::read_to_string(&expected).ok().as_deref() != Some(&stderr) {
            different.push(format!("{name} printed\n{stderr}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn a_wrong_set_is_shown_like_a_wrong_line() {
    let folder = Folder::new();
    folder.write("small.toml", crate::common::SMALL);
    let (_, stderr) = folder.run(&["run", "small.toml", "--set", "clusterer.KM.k=0"], 2);
    let expected = "\
error: kmeans: `k` must be a whole number at least 1, found 0
 --> --set:1:16
  |
1 | clusterer.KM.k=0
  |                ^
";
    assert_eq!(stderr, expected);
}
