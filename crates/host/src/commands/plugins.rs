//! `compflow plugins`: every library found; and where libraries are searched.

use std::path::{Path, PathBuf};

use compflow_engine::Registry;
use compflow_engine::pipeline::Pins;
use compflow_engine::plugin::{Answer, Asked, Content, Known, Scan, State, answered, trust};
use serde_json::{Value, json};

use super::{print, print_json};
use crate::failure::Failure;
use crate::terminal::clean::one_line;
use crate::terminal::to_stderr;

/// Runs the command.
///
/// # Errors
/// If a folder that was asked for does not exist.
pub(crate) fn run(plugins: &[PathBuf], as_json: bool) -> Result<i32, Failure> {
    let text = list(&registry(plugins)?, as_json);
    if as_json { print_json(&text) } else { print(&text) }
}

/// The components of all libraries on the search path.
///
/// # Errors
/// If a folder that was asked for does not exist.
pub(crate) fn registry(plugins: &[PathBuf]) -> Result<Registry, Failure> {
    Ok(scanned(&search_path(plugins)?, &Pins::new()))
}

/// The components of the libraries in some folders, each opened once it is needed.
pub(crate) fn scanned(folders: &[PathBuf], pins: &Pins) -> Registry {
    Registry::scan_beside(Vec::new(), folders, pins, scan().as_ref())
}

/// What a library offers, found out in a process of its own.
pub(crate) fn look_into(file: &Path) -> Answer {
    let asked = Asked { path: file.to_owned(), content: Content::Any };
    match scan() {
        Some(scan) => scan.look_into(&[asked]).pop().unwrap_or_else(|| Err("cannot be looked into".to_owned())),
        None => answered(&asked).answer,
    }
}

/// How libraries are looked into: by this very program.
fn scan() -> Option<Scan> {
    let program = std::env::current_exe().ok()?;
    Some(Scan { program, args: vec!["describe".into()], kept: cache_folder() })
}

/// Where what can be had again is kept: of the user, who may have none.
fn cache_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    caches.map(|folder| folder.join("compflow"))
}

/// The variable that names folders to search.
pub(crate) const VARIABLE: &str = "COMPFLOW_PLUGIN_PATH";

/// The folders that the user asks for, and with what.
pub(crate) fn asked(plugins: &[PathBuf]) -> Vec<(&'static str, PathBuf)> {
    let from_variable = std::env::var_os(VARIABLE).unwrap_or_default();
    let from_variable = std::env::split_paths(&from_variable).filter(|folder| folder != Path::new(""));
    let given = plugins.iter().map(|folder| ("--plugins", folder.clone()));
    given.chain(from_variable.map(|folder| (VARIABLE, folder))).collect()
}

/// The folders to search, the most specific first: `--plugins`, `COMPFLOW_PLUGIN_PATH`, `../lib/compflow` beside the
/// executable, the executable's own folder. Never the current folder.
///
/// # Errors
/// If a folder that was asked for does not exist, or somebody else could have made a link that leads to it.
pub(crate) fn search_path(plugins: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut folders = Vec::new();
    for (option, asked) in asked(plugins) {
        let folder = asked
            .canonicalize()
            .ok()
            .filter(|folder| folder.is_dir())
            .ok_or_else(|| Failure::request(format!("{option}: there is no folder {}", asked.display())))?;
        // What is wrong with the folder itself is said of every library in it; of the links to it nobody would hear.
        let by_links = trust::refusal(&asked).filter(|_| trust::refusal(&folder).is_none());
        if let Some(reason) = by_links {
            return Err(Failure::request(format!("{option}: {} is not searched: {reason}", asked.display())));
        }
        folders.push(folder);
    }
    for own in own_folders() {
        // Nobody has asked for this one, so it is not even looked into if somebody else could have made it.
        match trust::refusal(&own).filter(|_| own.ends_with("lib/compflow")) {
            None => folders.push(own),
            Some(reason) => to_stderr(&format!("warning: {} is not searched: {reason}", own.display())),
        }
    }
    let mut seen = std::collections::HashSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    Ok(folders)
}

/// The folders of the libraries that belong to this executable.
pub(crate) fn own_folders() -> Vec<PathBuf> {
    let folder = std::env::current_exe().ok().and_then(|exe| Some(exe.canonicalize().ok()?.parent()?.to_owned()));
    let installed = folder.iter().filter_map(|folder| folder.join("../lib/compflow").canonicalize().ok());
    installed.chain(folder.clone()).collect()
}

/// Lists every library found on the search path.
fn list(registry: &Registry, as_json: bool) -> String {
    if as_json {
        let libraries: Vec<Value> = registry
            .libraries
            .iter()
            .map(|file| {
                let path = file.path.display().to_string();
                match &file.state {
                    State::Known(Known { description: library, .. }) => json!({
                        "path": path,
                        "state": "loaded",
                        "name": library.name,
                        "version": library.version,
                        "blake3": file.hash().ok(),
                        "components": library.components.iter()
                            .map(|component| json!({ "kind": component.kind, "name": component.name }))
                            .collect::<Vec<_>>(),
                        "refused": library.refused,
                    }),
                    State::Refused(reason) => json!({ "path": path, "state": "refused", "reason": reason }),
                    State::Shadowed(by) => {
                        json!({ "path": path, "state": "shadowed", "by": by.display().to_string() })
                    }
                }
            })
            .collect();
        return format!("{:#}\n", Value::from(libraries));
    }
    let mut text = String::new();
    for file in registry.libraries.iter() {
        // None of these texts may pass for a line of the list.
        let path = one_line(&file.path.to_string_lossy());
        match &file.state {
            State::Refused(reason) => text += &format!("{path}\n  refused: {}\n", one_line(reason)),
            State::Shadowed(by) => {
                text += &format!("{path}\n  not used: {} comes first\n", one_line(&by.to_string_lossy()));
            }
            State::Known(Known { description: library, .. }) => {
                text += &format!("{path}\n  {} {}\n", one_line(&library.name), one_line(&library.version));
                for component in &library.components {
                    text += &format!(
                        "  {:9} {:12} {}\n",
                        component.kind.to_string(),
                        component.name,
                        one_line(&component.summary)
                    );
                }
                text.extend(library.refused.iter().map(|reason| format!("  refused: {}\n", one_line(reason))));
            }
        }
    }
    if registry.libraries.is_empty() {
        let folders: Vec<String> = registry.folders.iter().map(|folder| folder.display().to_string()).collect();
        text += &format!("no plugins in {}\n", folders.join(", "));
    }
    text
}
