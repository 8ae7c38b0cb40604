//! `compflow plugins`: every library found; and where libraries are searched.

use std::path::{Path, PathBuf};

use compflow_engine::Registry;
use compflow_engine::plugin::{State, trust};
use serde_json::{Value, json};

use super::{print, print_json};
use crate::failure::Failure;
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
    Ok(Registry::scan(&search_path(plugins)?))
}

/// The folders to search, the most specific first: `--plugins`, `COMPFLOW_PLUGIN_PATH`, `../lib/compflow` beside the
/// executable, the executable's own folder. Never the current folder.
///
/// # Errors
/// If a folder that was asked for does not exist.
pub(crate) fn search_path(plugins: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut folders = Vec::new();
    let from_variable = std::env::var_os("COMPFLOW_PLUGIN_PATH").unwrap_or_default();
    let asked = plugins.iter().map(|folder| ("--plugins", folder.clone())).chain(
        std::env::split_paths(&from_variable)
            .filter(|folder| folder != Path::new(""))
            .map(|folder| ("COMPFLOW_PLUGIN_PATH", folder)),
    );
    for (option, folder) in asked {
        let folder = folder
            .canonicalize()
            .ok()
            .filter(|folder| folder.is_dir())
            .ok_or_else(|| Failure::request(format!("{option}: there is no folder {}", folder.display())))?;
        folders.push(folder);
    }
    if let Some(own) =
        std::env::current_exe().ok().and_then(|exe| Some(exe.canonicalize().ok()?.parent()?.to_owned()))
    {
        // Nobody has asked for this one, so it is not even looked into if somebody else could have made it.
        if let Ok(installed) = own.join("../lib/compflow").canonicalize() {
            match trust::refusal(&installed) {
                None => folders.push(installed),
                Some(reason) => {
                    to_stderr(&format!("warning: {} is not searched: {reason}", installed.display()));
                }
            }
        }
        folders.push(own);
    }
    let mut seen = std::collections::HashSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    Ok(folders)
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
                    State::Loaded(library) => json!({
                        "path": path,
                        "state": "loaded",
                        "name": library.name,
                        "version": library.version,
                        "blake3": file.hash().ok(),
                        "components": library.components.iter()
                            .map(|component| json!({ "kind": component.kind, "name": component.name }))
                            .collect::<Vec<_>>(),
                        "refused": library.refused.iter().map(ToString::to_string).collect::<Vec<_>>(),
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
        let path = file.path.display();
        match &file.state {
            State::Refused(reason) => text += &format!("{path}\n  refused: {reason}\n"),
            State::Shadowed(by) => text += &format!("{path}\n  not used: {} comes first\n", by.display()),
            State::Loaded(library) => {
                text += &format!("{path}\n  {} {}\n", library.name, library.version);
                for component in &library.components {
                    text += &format!(
                        "  {:9} {:12} {}\n",
                        component.kind.to_string(),
                        component.name,
                        component.summary
                    );
                }
                text.extend(library.refused.iter().map(|reason| format!("  refused: {reason}\n")));
            }
        }
    }
    if registry.libraries.is_empty() {
        let folders: Vec<String> = registry.folders.iter().map(|folder| folder.display().to_string()).collect();
        text += &format!("no plugins in {}\n", folders.join(", "));
    }
    text
}
