//! Which components there are: the libraries on the search path, opened once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use compflow_api::{ForeignComponent, ForeignLibrary, Kind};

use crate::diagnostics::Problem;
use crate::environment::plain;
use crate::files::hash_file;
use crate::library;
use crate::trust::{self, PREFIX, Pins};

/// A library file and what became of it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) state: State,
    hash: OnceLock<Result<String, String>>,
}

#[derive(Debug)]
pub(crate) enum State {
    Loaded(ForeignLibrary),
    /// The reason.
    Refused(String),
    /// A library of the same file name came earlier on the search path.
    Shadowed(PathBuf),
}

impl Found {
    /// Hash of the file's content, computed when it is first asked for.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn hash(&self) -> Result<&str, &str> {
        let hash = self.hash.get_or_init(|| hash_file(&self.path).map_err(|error| plain(&error)));
        hash.as_deref().map_err(String::as_str)
    }

    /// Opens it, if it may be.
    fn open(&self, pins: &Pins) -> Result<ForeignLibrary, String> {
        if let Some(reason) = trust::writable_by_anyone(&self.path) {
            return Err(reason);
        }
        if let Some(pin) = trust::stem(&self.path).and_then(|name| pins.get(name)) {
            let hash = format!("{PREFIX}{}", self.hash()?);
            if hash != *pin {
                return Err(format!("is not loaded: the pipeline requires {pin}, and it is {hash}"));
            }
        }
        library::open(&self.path)
    }
}

/// A component and the library it is from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) component: ForeignComponent,
    /// Index in [`Registry::libraries`].
    pub(crate) library: usize,
}

/// Every library found, and every component in them.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) libraries: Vec<Found>,
    /// Several entries under one name are an error when that name is used.
    components: BTreeMap<(Kind, String), Vec<Entry>>,
}

/// The folders to search, the most specific first: `--plugins`, `COMPFLOW_PLUGIN_PATH`, `../lib/compflow` beside the
/// executable, the executable's own folder. Never the current folder.
///
/// # Errors
/// If a folder that was asked for does not exist.
pub(crate) fn search_path(plugins: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
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
            .ok_or_else(|| format!("{option}: there is no folder {}", folder.display()))?;
        folders.push(folder);
    }
    if let Some(own) =
        std::env::current_exe().ok().and_then(|exe| Some(exe.canonicalize().ok()?.parent()?.to_owned()))
    {
        folders.extend(own.join("../lib/compflow").canonicalize());
        folders.push(own);
    }
    let mut seen = std::collections::HashSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    Ok(folders)
}

impl Registry {
    /// Opens every library in the folders that is named like a plugin.
    pub(crate) fn scan(folders: &[PathBuf]) -> Self {
        Self::scan_pinned(folders, &Pins::new())
    }

    /// Likewise, but a library that is pinned to another content is refused, before any of its code could run.
    pub(crate) fn scan_pinned(folders: &[PathBuf], pins: &Pins) -> Self {
        let mut registry = Self { libraries: Vec::new(), components: BTreeMap::new() };
        let mut names: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
        for folder in folders {
            let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| trust::stem(path).is_some())
                .collect();
            files.sort();
            for path in files {
                let name = path.file_name().unwrap_or_default().to_owned();
                let mut found = Found { path, state: State::Refused(String::new()), hash: OnceLock::new() };
                found.state = match names.get(&name) {
                    Some(first) => State::Shadowed(first.clone()),
                    None => found.open(pins).map_or_else(State::Refused, State::Loaded),
                };
                names.entry(name).or_insert_with(|| found.path.clone());
                if let State::Loaded(library) = &found.state {
                    for component in &library.components {
                        let entry = Entry { component: *component, library: registry.libraries.len() };
                        let key = (component.kind, component.name.to_owned());
                        registry.components.entry(key).or_default().push(entry);
                    }
                }
                registry.libraries.push(found);
            }
        }
        registry
    }

    /// All components, by kind and name.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.components.values().flatten()
    }

    /// The names of all components of a kind.
    pub(crate) fn names(&self, kind: Kind) -> impl Iterator<Item = &str> + Clone {
        self.components.keys().filter(move |(of, _)| *of == kind).map(|(_, name)| name.as_str())
    }

    /// The component of that kind and name.
    ///
    /// # Errors
    /// A problem, still without a place, that says what there is instead.
    pub(crate) fn find(&self, kind: Kind, name: &str) -> Result<Entry, Problem> {
        match self.components.get(&(kind, name.to_owned())).map(Vec::as_slice) {
            Some([entry]) => Ok(*entry),
            Some(entries) => {
                let files: Vec<String> =
                    entries.iter().map(|entry| self.libraries[entry.library].path.display().to_string()).collect();
                Err(Problem::without_place(format!(
                    "{kind} `{name}` is offered by more than one library: {}",
                    files.join(" and ")
                ))
                .help("remove one of them, or search another folder"))
            }
            None => Err(self.missing(kind, name)),
        }
    }

    fn missing(&self, kind: Kind, name: &str) -> Problem {
        let problem = Problem::without_place(format!("there is no {kind} named `{name}`"));
        let refused: Vec<String> = self
            .libraries
            .iter()
            .filter_map(|found| match &found.state {
                State::Refused(reason) => Some(format!("{} {reason}", found.path.display())),
                _ => None,
            })
            .collect();
        let known: Vec<&str> = self.names(kind).collect();
        if compflow_api::nearest(name, known.iter().copied()).is_none() && !refused.is_empty() {
            return problem.help(format!("a library was refused: {}", refused.join("; ")));
        }
        if known.is_empty() {
            return problem.help("no library offers any; `compflow plugins` lists what was searched");
        }
        problem.suggest(name, known)
    }
}
