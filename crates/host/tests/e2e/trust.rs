//! Loading a library runs its code: which ones are, which ones are not, and what is written down about them.

use std::path::Path;

use crate::common::{Folder, SMALL, libraries, library_name};

/// The hash as it is written in a pipeline.
fn pin(file: &Path) -> String {
    format!("blake3:{}", blake3::hash(&std::fs::read(file).unwrap()).to_hex())
}

#[test]
fn the_current_folder_is_not_searched() {
    let folder = Folder::new();
    folder.write(&library_name("here"), "would be refused if it were found");
    let (stdout, _) = folder.run(&["plugins"], 0);
    assert!(!stdout.contains("compflow_here"), "{stdout}");
    let (stdout, _) = folder.run(&["--plugins", ".", "plugins"], 0);
    assert!(stdout.contains("compflow_here"), "it is if asked for: {stdout}");
}

#[test]
#[cfg(unix)]
fn what_anyone_may_write_to_is_not_loaded() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let chmod = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let copy = folder.path("plugins").join(library_name("copy"));
    std::fs::create_dir_all(folder.path("plugins")).unwrap();
    std::fs::copy(libraries().join(library_name("metrics")), &copy).unwrap();
    let state = || {
        let (stdout, _) = folder.run(&["--plugins", "plugins", "plugins"], 0);
        let at = stdout.find("compflow_copy").unwrap();
        stdout[at..].lines().nth(1).unwrap().trim().to_owned()
    };
    assert!(state().starts_with("compflow-metrics"), "{}", state());
    chmod(&copy, 0o757);
    assert!(state().starts_with("refused: is not loaded: anyone may write to it; chmod o-w "), "{}", state());
    chmod(&copy, 0o755);
    chmod(&folder.path("plugins"), 0o1777);
    assert!(
        state().starts_with("refused: is not loaded: anyone may write to its folder; chmod o-w "),
        "{}",
        state()
    );
    let (stdout, _) = folder.run(&["test-plugin", copy.to_str().unwrap()], 1);
    assert!(stdout.contains("handshake: is not loaded: anyone may write to its folder"), "{stdout}");
    chmod(&folder.path("plugins"), 0o755);
    assert!(state().starts_with("compflow-metrics"), "{}", state());
    // A link into such a folder is no way around.
    chmod(&folder.path("plugins"), 0o777);
    std::fs::create_dir_all(folder.path("links")).unwrap();
    std::os::unix::fs::symlink(&copy, folder.path("links").join(library_name("copy"))).unwrap();
    let (stdout, _) = folder.run(&["--plugins", "links", "plugins"], 0);
    assert!(stdout.contains("anyone may write to its folder"), "{stdout}");
}

#[test]
fn a_pinned_library_must_have_that_content() {
    let folder = Folder::new();
    let file = libraries().join(library_name("baselines"));
    let with = |require: &str| format!("{SMALL}\n[plugins]\nrequire = {{ {require} }}\n");
    folder.write("good.toml", &with(&format!("baselines = \"{}\"", pin(&file))));
    folder.run(&["check", "good.toml"], 0);

    let wrong = format!("blake3:{}", "0".repeat(64));
    folder.write("wrong.toml", &with(&format!("baselines = \"{wrong}\"")));
    let (_, stderr) = folder.run(&["run", "wrong.toml"], 2);
    let expected = format!("library `baselines` is {}, and the pipeline requires {wrong}", pin(&file));
    assert!(stderr.contains(&expected), "{stderr}");
    // None of its code has run: its components are not there.
    assert!(stderr.contains("there is no clusterer named `kmeans`"), "{stderr}");

    folder.write("typo.toml", &with("baseline = \"blake3:1234\""));
    let (_, stderr) = folder.run(&["check", "typo.toml"], 2);
    assert!(stderr.contains("`baseline` must be required as \"blake3:\" and 64 hexadecimal digits"), "{stderr}");
    folder.write("missing.toml", &with(&format!("baseline = \"{wrong}\"")));
    let (_, stderr) = folder.run(&["check", "missing.toml"], 2);
    assert!(stderr.contains("there is no library `baseline`"), "{stderr}");
    assert!(stderr.contains("did you mean `baselines`?"), "{stderr}");
}

#[test]
fn a_run_writes_down_the_content_of_every_library() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml"], 0);
    let record = std::fs::read_to_string(folder.path("results/small/run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let recorded = record["libraries"].as_array().unwrap();
    for stem in ["baselines", "loaders", "metrics"] {
        let file = libraries().join(library_name(stem));
        let found = recorded.iter().find(|library| library["path"].as_str() == file.to_str()).unwrap();
        assert_eq!(format!("blake3:{}", found["blake3"].as_str().unwrap()), pin(&file), "{stem}");
    }
}
