//! Loading a library runs its code: which ones are, which ones are not, and what is written down about them.

use std::path::Path;

use crate::common::{Folder, SMALL, executable, finished, libraries, library_name};

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
    let refused = |path: &Path| {
        let path = path.canonicalize().unwrap();
        format!("is not loaded: anyone may write to {0}; chmod o-w {0}", path.display())
    };
    assert_eq!(state(), format!("refused: {}", refused(&copy)));
    chmod(&copy, 0o755);
    chmod(&folder.path("plugins"), 0o1777);
    assert_eq!(state(), format!("refused: {}", refused(&folder.path("plugins"))));
    let (stdout, _) = folder.run(&["test-plugin", copy.to_str().unwrap()], 1);
    assert!(stdout.contains(&format!("handshake: {}", refused(&folder.path("plugins")))), "{stdout}");
    chmod(&folder.path("plugins"), 0o755);
    assert!(state().starts_with("compflow-metrics"), "{}", state());
    // A link into such a folder is no way around.
    chmod(&folder.path("plugins"), 0o777);
    std::fs::create_dir_all(folder.path("links")).unwrap();
    std::os::unix::fs::symlink(&copy, folder.path("links").join(library_name("copy"))).unwrap();
    let (stdout, _) = folder.run(&["--plugins", "links", "plugins"], 0);
    assert!(stdout.contains(&refused(&folder.path("plugins"))), "{stdout}");
}

/// Where the link leads is judged later; who could have made it lead there shows only from the path as it was given.
#[test]
#[cfg(unix)]
fn a_folder_is_not_searched_by_a_link_that_somebody_else_could_have_made() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
    let folder = Folder::new();
    let (own, links) = (folder.path("own"), folder.path("links"));
    let copy = own.join(library_name("copy"));
    std::fs::create_dir_all(&own).unwrap();
    std::fs::create_dir_all(&links).unwrap();
    std::fs::copy(libraries().join(library_name("metrics")), &copy).unwrap();
    symlink(&own, links.join("there")).unwrap();
    let with = |mode, code| {
        std::fs::set_permissions(&links, std::fs::Permissions::from_mode(mode)).unwrap();
        folder.run(&["--plugins", "links/there", "plugins"], code)
    };
    for mode in [0o755, 0o1777] {
        assert!(with(mode, 0).0.contains("compflow_copy"), "{mode:o}");
    }
    let (_, stderr) = with(0o777, 2);
    let real = links.canonicalize().unwrap();
    let refused = format!("anyone may write to {0}; chmod o-w {0}", real.display());
    assert_eq!(stderr, format!("error: --plugins: links/there is not searched: {refused}\n"));
    let by_link = format!("links/there/{}", library_name("copy"));
    let (stdout, _) = folder.run(&["test-plugin", &by_link], 1);
    assert!(stdout.contains(&format!("handshake: is not loaded: {refused}")), "{stdout}");
    // Only root can give a link away.
    if own.metadata().unwrap().uid() == 0 {
        lchown(links.join("there"), Some(12_345), None).unwrap();
        let (_, stderr) = with(0o1777, 2);
        assert!(stderr.contains("links/there belongs to 12345, who is neither you nor root"), "{stderr}");
    }
}

/// Somebody who may write beside a shared folder of programs puts libraries where an installed compflow would have its own.
#[test]
#[cfg(unix)]
fn a_folder_that_anyone_could_have_made_is_not_searched_beside_the_program() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("shared/bin")).unwrap();
    std::fs::create_dir_all(folder.path("shared/lib/compflow")).unwrap();
    let program = folder.path("shared/bin/compflow");
    std::fs::copy(executable(), &program).unwrap();
    let planted = folder.path("shared/lib/compflow").join(library_name("metrics"));
    std::fs::copy(libraries().join(library_name("metrics")), &planted).unwrap();
    let listed = |mode| {
        let lib = folder.path("shared/lib");
        std::fs::set_permissions(&lib, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = std::process::Command::new(&program);
        command.arg("plugins").env_remove("COMPFLOW_PLUGIN_PATH");
        finished(command.env("XDG_CACHE_HOME", crate::common::build_folder("test-cache")).output().unwrap(), 0)
    };
    let (stdout, stderr) = listed(0o755);
    assert!(stdout.contains("compflow-metrics") && stderr.is_empty(), "{stdout}{stderr}");
    let (stdout, stderr) = listed(0o777);
    assert!(stdout.starts_with("no plugins in "), "{stdout}");
    assert!(stderr.contains("lib/compflow is not searched: anyone may write to "), "{stderr}");
    assert!(stderr.contains("shared/lib; chmod o-w "), "{stderr}");
    // Where all that there is may not be loaded, a run says why.
    std::fs::set_permissions(&planted, std::fs::Permissions::from_mode(0o777)).unwrap();
    let pipeline = folder.write("small.toml", SMALL);
    let mut command = std::process::Command::new(&program);
    command.arg("run").arg(&pipeline).current_dir(folder.path(".")).env_remove("COMPFLOW_PLUGIN_PATH");
    command.arg("--plugins").arg(planted.parent().unwrap());
    command.env("XDG_CACHE_HOME", crate::common::build_folder("test-cache"));
    std::fs::set_permissions(folder.path("shared/lib"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (_, stderr) = finished(command.output().unwrap(), 2);
    assert!(stderr.starts_with("error: no plugins that may be loaded in "), "{stderr}");
    let name = library_name("metrics");
    assert!(stderr.contains(&format!("/{name} is not loaded: anyone may write to ")), "{stderr}");
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
    // What nobody can have is not had by that library either: its code does not run while the pipeline is wrong.
    for malformed in [format!("\"{}\"", pin(&file).to_uppercase()), "\"\"".to_owned(), "5".to_owned()] {
        folder.write("malformed.toml", &with(&format!("baselines = {malformed}")));
        let (_, stderr) = folder.run(&["check", "malformed.toml"], 2);
        assert!(stderr.contains("`baselines` must be "), "{stderr}");
        assert!(stderr.contains("there is no clusterer named `kmeans`"), "{stderr}");
        assert!(!stderr.contains("library `baselines` is "), "{stderr}");
    }
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

/// One that needs libraries beside it can only be opened by its name, under which another may lie by then.
#[test]
#[cfg(target_os = "linux")]
fn a_pinned_library_is_loaded_by_itself_or_not_at_all() {
    let folder = Folder::new();
    let helper = folder.write("helper.c", "int help(void) { return 0; }\n");
    crate::silently_wrong::add_library(&folder, "helper", &helper, &[]);
    let beside = ["-Wl,--no-as-needed", "-L.", "-lcompflow_helper", "-Wl,-rpath,$ORIGIN"];
    let wrong = crate::common::repository().join("crates/host/tests/e2e/silently_wrong/wrong.c");
    crate::silently_wrong::add_library(&folder, "wrong", &wrong, &beside);
    let text = SMALL.replace("use = \"kmeans\"\nparams = { k = 6, restarts = 3 }", "use = \"wrong\"");
    folder.write("free.toml", &text);
    let args = |pipeline| ["--plugins", "wrong", "check", pipeline];
    folder.run(&args("free.toml"), 0);
    let file = folder.path("wrong").join(library_name("wrong"));
    folder.write("pinned.toml", &format!("{text}\n[plugins]\nrequire = {{ wrong = \"{}\" }}\n", pin(&file)));
    let (_, stderr) = folder.run(&args("pinned.toml"), 2);
    assert!(stderr.contains("loaded alone, and not with libraries that lie beside it"), "{stderr}");
}

/// Between hashing and opening, the name may come to lead to another file.
#[test]
#[cfg(target_os = "linux")]
fn what_was_hashed_is_what_is_opened() {
    let folder = Folder::new();
    let path = folder.path(&library_name("swapped"));
    std::fs::copy(libraries().join(library_name("metrics")), &path).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let other = folder.path("other.so");
    std::fs::copy(libraries().join(library_name("composers")), &other).unwrap();
    std::fs::rename(&other, &path).unwrap();
    let opened = compflow_engine::plugin::library::open(&path, file, true).unwrap();
    assert_eq!(opened.name, "compflow-metrics");
}
