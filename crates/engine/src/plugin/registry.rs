//! Which components there are: the libraries on the search path, opened once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use compflow_api::{ForeignComponent, ForeignLibrary, Kind};

use super::{library, trust};
use crate::cancel::Cancel;
use crate::causes::Cause;
use crate::error::{Error, Result};
use crate::files::{hash_file, plain};
use crate::pipeline::Pins;
use crate::pipeline::pins::PREFIX;
use crate::problem::Problem;

/// A library file and what became of it.
#[derive(Debug)]
pub struct LibraryFile {
    /// Where it is.
    pub path: PathBuf,
    /// What became of it.
    pub state: State,
    hash: OnceLock<Result<String>>,
}

/// What became of a library file.
#[derive(Debug)]
pub enum State {
    /// Its components can be used.
    Loaded(ForeignLibrary),
    /// It is not used; the reason continues a sentence that begins with the file.
    Refused(String),
    /// A library of the same file name came earlier on the search path.
    Shadowed(PathBuf),
}

impl LibraryFile {
    /// Hash of the file's content: of a library that was opened, what it was before.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn hash(&self) -> Result<&str, &Error> {
        let hash = |path| hash_file(path, &Cancel::new()).map_err(|error| Error::Library(plain(&error)));
        self.hash.get_or_init(|| hash(&self.path)).as_deref()
    }

    /// Opens it, if it may be.
    fn open(&self, pins: &Pins) -> Result<ForeignLibrary> {
        if let Some(reason) = trust::writable_by_anyone(&self.path) {
            return Err(Error::Library(reason));
        }
        let hash = format!("{PREFIX}{}", self.hash().map_err(Clone::clone)?);
        let pin = trust::stem(&self.path).and_then(|name| pins.get(name));
        if let Some(pin) = pin.filter(|pin| **pin != hash) {
            return Err(Error::Library(format!("is not loaded: the pipeline requires {pin}, and it is {hash}")));
        }
        library::open(&self.path)
    }
}

/// A component and the library it is from.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The component.
    pub component: ForeignComponent,
    /// Index in [`Registry::libraries`].
    pub library: usize,
}

/// Components by kind and name.
type Components = BTreeMap<(Kind, String), Vec<Entry>>;

/// Adds the components of a library, which is the one at this index.
fn list(library: &ForeignLibrary, at: usize, components: &mut Components) {
    for component in &library.components {
        let key = (component.kind, component.name.to_owned());
        components.entry(key).or_default().push(Entry { component: *component, library: at });
    }
}

/// Every library found, and every component in them. Clones share them.
#[derive(Debug, Clone)]
pub struct Registry {
    /// The folders that were searched.
    pub folders: Arc<[PathBuf]>,
    /// In the order in which they were found.
    pub libraries: Arc<[LibraryFile]>,
    /// Several entries under one name are an error when that name is used.
    components: Arc<Components>,
}

impl Registry {
    /// Opens every library in the folders that is named like a plugin.
    pub fn scan(folders: &[PathBuf]) -> Self {
        Self::scan_pinned(folders, &Pins::new())
    }

    /// Likewise, but a library that is pinned to another content is refused, before any of its code could run.
    pub fn scan_pinned(folders: &[PathBuf], pins: &Pins) -> Self {
        Self::scan_beside(Vec::new(), folders, pins)
    }

    /// Likewise, beside components that the program itself has: a library that is no file.
    pub fn scan_beside(own: Vec<ForeignLibrary>, folders: &[PathBuf], pins: &Pins) -> Self {
        let mut libraries: Vec<LibraryFile> = Vec::new();
        let mut components = Components::new();
        for library in own {
            list(&library, libraries.len(), &mut components);
            let hash = OnceLock::from(Ok(format!("{} {}", library.name, library.version)));
            let path = PathBuf::from(&library.name);
            libraries.push(LibraryFile { path, state: State::Loaded(library), hash });
        }
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
                let mut file = LibraryFile { path, state: State::Refused(String::new()), hash: OnceLock::new() };
                file.state = match names.get(&name) {
                    Some(first) => State::Shadowed(first.clone()),
                    None => file.open(pins).map_or_else(|error| State::Refused(error.to_string()), State::Loaded),
                };
                names.entry(name).or_insert_with(|| file.path.clone());
                if let State::Loaded(library) = &file.state {
                    list(library, libraries.len(), &mut components);
                }
                libraries.push(file);
            }
        }
        Self { folders: folders.into(), libraries: libraries.into(), components: components.into() }
    }

    /// Whether the library at `path` has the content of another.
    pub(crate) fn same_content(&self, file: &LibraryFile, path: &Path) -> bool {
        let other = self.libraries.iter().find(|other| other.path == path);
        other.is_some_and(|other| matches!((file.hash(), other.hash()), (Ok(a), Ok(b)) if a == b))
    }

    /// All components, by kind and name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.components.values().flatten()
    }

    /// The names of all components of a kind.
    pub fn names(&self, kind: Kind) -> impl Iterator<Item = &str> + Clone {
        self.components.keys().filter(move |(of, _)| *of == kind).map(|(_, name)| name.as_str())
    }

    /// The name of the library that an entry is from: `cap` for `libcompflow_cap.so`.
    pub fn library_of(&self, entry: &Entry) -> &str {
        trust::stem(&self.libraries[entry.library].path).unwrap_or_default()
    }

    /// The component of that kind and name; `library:name` is that of a certain library.
    ///
    /// # Errors
    /// A problem, still without a place, that says what there is instead.
    pub fn find(&self, kind: Kind, name: &str) -> Result<Entry, Problem> {
        if let Some((library, component)) = name.split_once(':') {
            let entries = self.components.get(&(kind, component.to_owned())).into_iter().flatten();
            let found = entries.clone().find(|entry| self.library_of(entry) == library);
            return found.copied().ok_or_else(|| {
                let known: Vec<String> =
                    entries.map(|entry| format!("{}:{component}", self.library_of(entry))).collect();
                let stems = || self.libraries.iter().filter_map(|file| trust::stem(&file.path));
                match known.is_empty() {
                    true if !stems().any(|stem| stem == library) => Problem::without_place(
                        Cause::NoComponent,
                        format!("there is no library `{library}` for {kind} `{name}`"),
                    )
                    .suggest(library, stems().collect::<Vec<_>>()),
                    true => self.missing(kind, component),
                    false => {
                        Problem::without_place(Cause::NoComponent, format!("there is no {kind} named `{name}`"))
                            .suggest(name, known.iter().map(String::as_str).collect::<Vec<_>>())
                    }
                }
            });
        }
        match self.components.get(&(kind, name.to_owned())).map(Vec::as_slice) {
            Some([entry]) => Ok(*entry),
            Some(entries) => {
                let names: Vec<String> =
                    entries.iter().map(|entry| format!("`{}:{name}`", self.library_of(entry))).collect();
                let files: Vec<String> =
                    entries.iter().map(|entry| self.libraries[entry.library].path.display().to_string()).collect();
                Err(Problem::without_place(
                    Cause::NoComponent,
                    format!("{kind} `{name}` is offered by more than one library: {}", files.join(" and ")),
                )
                .help(format!("say which: {}", names.join(" or "))))
            }
            None => Err(self.missing(kind, name)),
        }
    }

    fn missing(&self, kind: Kind, name: &str) -> Problem {
        let problem = Problem::without_place(Cause::NoComponent, format!("there is no {kind} named `{name}`"));
        let refused: Vec<String> = self
            .libraries
            .iter()
            .flat_map(|file| {
                let reasons: Vec<String> = match &file.state {
                    State::Refused(reason) => vec![reason.clone()],
                    State::Loaded(library) => library.refused.iter().map(ToString::to_string).collect(),
                    State::Shadowed(_) => Vec::new(),
                };
                reasons.into_iter().map(|reason| format!("{} {reason}", file.path.display()))
            })
            .collect();
        let known: Vec<&str> = self.names(kind).collect();
        if compflow_api::nearest(name, known.iter().copied()).is_none() && !refused.is_empty() {
            return problem.help(format!("refused: {}", refused.join("; ")));
        }
        if known.is_empty() {
            return problem.help("no library offers any; `compflow plugins` lists what was searched");
        }
        problem.suggest(name, known)
    }
}
