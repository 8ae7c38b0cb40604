//! Files in a plugin folder that cannot be used: why, and what to do.

use std::path::Path;
use std::process::Command;

use crate::common::{Folder, SMALL, finished, libraries, library_name};
use crate::reliability::Tally;

/// Builds a dynamic library from a few lines of Rust that know nothing of the api.
fn build(folder: &Folder, stem: &str, source: &str) {
    let source = folder.write(&format!("{stem}.rs"), source);
    let to = folder.path("plugins").join(library_name(stem));
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let built = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", stem, "-o"])
        .args([&to, &source])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// A library with this descriptor in front of an entry function that returns null.
fn with_abi(magic: &str, version: u32, size: u32) -> String {
    format!(
        "#[repr(C)] pub struct Abi {{ magic: [u8; 8], version: u32, size: u32 }}
         #[unsafe(no_mangle)] pub static COMPFLOW_ABI: Abi =
             Abi {{ magic: *b\"{magic}\", version: {version}, size: {size} }};
         #[unsafe(no_mangle)] pub extern \"C\" fn compflow_library() -> *const u8 {{ std::ptr::null() }}"
    )
}

/// What `compflow plugins` says of the library.
fn refusal(folder: &Folder, stem: &str) -> String {
    let (stdout, _) = folder.run(&["--plugins", "plugins", "plugins"], 0);
    let mut lines = stdout.lines();
    lines.find(|line| line.ends_with(&library_name(stem))).unwrap();
    lines.next().unwrap().trim().to_owned()
}

#[test]
fn a_library_that_cannot_be_used_is_listed_with_the_reason() {
    let folder = Folder::new();
    folder.write(&format!("plugins/{}", library_name("text")), "this is no library");
    build(&folder, "stranger", "#[unsafe(no_mangle)] pub extern \"C\" fn hello() {}");
    build(&folder, "magic", &with_abi("wrongful", 1, 56));
    build(&folder, "old", &with_abi("compflow", 0, 56));
    build(&folder, "new", &with_abi("compflow", 2, 56));
    build(&folder, "short", &with_abi("compflow", 1, 24));
    build(&folder, "null", &with_abi("compflow", 1, 56));
    build(&folder, "headless", &with_abi("compflow", 1, 56).replace("compflow_library", "something_else"));
    let refused = |stem: &str| refusal(&folder, stem);
    assert!(refused("text").starts_with("refused: cannot be loaded: "), "{}", refused("text"));
    assert_eq!(refused("stranger"), "refused: is no compflow plugin: it does not export `COMPFLOW_ABI`");
    assert_eq!(
        refused("magic"),
        "refused: is no compflow plugin: `COMPFLOW_ABI` begins with \"wrongful\", not \"compflow\""
    );
    assert_eq!(
        refused("old"),
        "refused: was built for version 0 of the plugin interface, and this compflow has version 1: \
         rebuild the plugin with the newer compflow-api"
    );
    assert_eq!(
        refused("new"),
        "refused: was built for version 2 of the plugin interface, and this compflow has version 1: \
         rebuild compflow with the newer compflow-api"
    );
    assert_eq!(refused("short"), "refused: has a truncated descriptor: 24 bytes, at least 56 expected");
    assert_eq!(refused("null"), "refused: failed to describe its components:");
    assert_eq!(
        refused("headless"),
        "refused: is no complete compflow plugin: it does not export `compflow_library`"
    );

    // The good libraries are still there, and a run says what it does not use.
    folder.write("small.toml", SMALL);
    let (_, stderr) = folder.run(&["--plugins", "plugins", "run", "small.toml"], 0);
    assert!(stderr.contains("libcompflow_old.so was built for version 0"), "{stderr}");
    let (json, _) = folder.run(&["--plugins", "plugins", "plugins", "--json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let states: Vec<&str> =
        json.as_array().unwrap().iter().map(|found| found["state"].as_str().unwrap()).collect();
    assert_eq!(states.iter().filter(|state| **state == "refused").count(), 8);
    assert!(states.contains(&"loaded"));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::copy(from, to).unwrap();
}

#[test]
fn a_library_that_crashes_by_being_opened_costs_only_itself() {
    let folder = Folder::new();
    let constructor =
        "#[used] #[unsafe(link_section = \".init_array\")] static AT_ONCE: extern \"C\" fn() = at_once;
         extern \"C\" fn at_once() { BODY }";
    build(&folder, "aborts", &constructor.replace("BODY", "std::process::abort()"));
    build(&folder, "exits", &constructor.replace("BODY", "std::process::exit(0)"));
    build(&folder, "describes", &with_abi("compflow", 1, 56).replace("std::ptr::null()", "std::process::abort()"));
    let whole = std::fs::read(libraries().join(library_name("baselines"))).unwrap();
    std::fs::write(folder.path("plugins").join(library_name("cut")), &whole[..whole.len() / 4]).unwrap();
    let ends = "is not loaded: it ends the process that opens it, by";
    let expected = [
        ("aborts", format!("{ends} signal 6 (SIGABRT)")),
        ("exits", format!("{ends} exit 0")),
        ("describes", format!("{ends} signal 6 (SIGABRT)")),
        // Cut off anywhere else it may be no library at all.
        ("cut", String::new()),
    ];
    let tally = Tally::default();
    for (stem, why) in expected {
        // Said anew, or known from before.
        let refusal = refusal(&folder, stem);
        assert!(refusal.starts_with(&format!("refused: {why}")), "{refusal}");
        tally.survived(1);
    }
    folder.write("small.toml", SMALL);
    let (_, stderr) = folder.run(&["--plugins", "plugins", "run", "small.toml"], 0);
    assert!(stderr.contains("libcompflow_aborts.so is not loaded: it ends the process that opens it"), "{stderr}");
    let (stdout, _) = folder.run(&["test-plugin", &format!("plugins/{}", library_name("aborts"))], 1);
    assert!(stdout.contains("FAIL") && stdout.contains("it ends the process that opens it"), "{stdout}");
    tally.row("libraries that crash by being opened, or are cut off");
}

#[test]
fn a_library_that_leaves_a_process_behind_while_it_is_opened_keeps_nobody_waiting_and_is_remembered() {
    let folder = Folder::new();
    crate::silently_wrong::add_wrong(&folder);
    let plugins = |forks: &str| {
        let mut command = folder.compflow(&["--plugins", "wrong", "plugins"]);
        command.env("XDG_CACHE_HOME", folder.path("cache")).env(forks, "1");
        let started = std::time::Instant::now();
        let (stdout, _) = finished(command.output().unwrap(), 0);
        let took = started.elapsed();
        assert!(took < std::time::Duration::from_secs(25), "{took:?}");
        stdout
    };
    let refused = "is not loaded: it ends the process that opens it, by signal 6 (SIGABRT)";
    let stdout = plugins("WRONG_FORKS");
    assert!(stdout.contains(&format!("{refused}\n")), "{stdout}");
    // It is not opened again, until somebody says so.
    let stdout = plugins("NOTHING");
    assert!(stdout.contains(&format!("{refused}; remove {}", folder.path("cache").display())), "{stdout}");
    std::fs::remove_dir_all(folder.path("cache")).unwrap();
    assert!(!plugins("NOTHING").contains(refused));
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn what_is_known_of_a_library_is_kept_and_one_that_is_not_used_is_not_opened() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    // How many libraries are opened, in a helper and in the process itself.
    let check = |cache: &str| {
        let mut command = folder.compflow(&["check", "small.toml"]);
        let output = command.env("XDG_CACHE_HOME", folder.path(cache)).env("LD_DEBUG", "files").output().unwrap();
        let (_, loaded) = finished(output, 0);
        let ours = |line: &&str| line.contains("/fd/") || line.contains("compflow_");
        loaded.lines().filter(|line| line.contains("[0];  generating link map")).filter(ours).count()
    };
    let first = check("cache");
    let kept: Vec<_> = std::fs::read_dir(folder.path("cache/compflow/libraries")).unwrap().flatten().collect();
    let used = first - kept.len();
    assert!(kept.len() >= 7 && (1..kept.len()).contains(&used), "{first} opened, {} kept", kept.len());
    assert_eq!(check("cache"), used, "nobody else is opened");
    // What is damaged there is looked into again, and a folder that cannot be written to is no error.
    kept.iter().for_each(|file| std::fs::write(file.path(), "{").unwrap());
    assert_eq!(check("cache"), first);
    assert_eq!(check("small.toml"), first);
}

#[test]
fn two_libraries_with_the_same_component_are_an_error_that_names_both() {
    let folder = Folder::new();
    let original = libraries().join(library_name("baselines"));
    copy(&original, &folder.path("plugins").join(library_name("copy")));
    folder.write("small.toml", SMALL);
    let (_, stderr) = folder.run(&["--plugins", "plugins", "check", "small.toml"], 2);
    let expected = "error: clusterer `kmeans` is offered by more than one library: ";
    assert!(stderr.starts_with(expected), "{stderr}");
    assert!(
        stderr.contains("libcompflow_copy.so and ") && stderr.contains("libcompflow_baselines.so"),
        "{stderr}"
    );
}

#[test]
fn a_library_of_the_same_name_earlier_on_the_path_comes_first() {
    let folder = Folder::new();
    let name = library_name("baselines");
    copy(&libraries().join(&name), &folder.path("plugins").join(&name));
    folder.write("small.toml", SMALL);
    folder.run(&["--plugins", "plugins", "check", "small.toml"], 0);
    let (stdout, _) = folder.run(&["--plugins", "plugins", "plugins"], 0);
    assert!(
        stdout.contains("  not used: ") && stdout.contains("libcompflow_baselines.so comes first\n"),
        "{stdout}"
    );
}

#[test]
fn a_plugin_folder_that_does_not_exist_is_an_error() {
    let folder = Folder::new();
    let (_, stderr) = folder.run(&["--plugins", "nowhere", "plugins"], 2);
    assert_eq!(stderr, "error: --plugins: there is no folder nowhere\n");
}
