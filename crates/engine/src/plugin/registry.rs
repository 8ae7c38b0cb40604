//! Which components there are: the libraries on the search path, opened once.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use compflow_api::{ForeignComponent, ForeignLibrary, Kind};

use super::rehearsal::{Rehearsal, Rehearsed};
use super::scan::{Answer, Asked, CHANGED, Content, Description, Scan};
use super::{library, trust};
use crate::cancel::Cancel;
use crate::causes::Cause;
use crate::error::{Error, Result};
use crate::files::{hash_file, hash_of, plain};
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
    /// Whether the pipeline requires a certain content.
    pinned: bool,
}

/// What became of a library file.
#[derive(Debug)]
pub enum State {
    /// Its components can be used.
    Known(Known),
    /// It is not used; the reason continues a sentence that begins with the file.
    Refused(String),
    /// A library of the same file name came earlier on the search path.
    Shadowed(PathBuf),
}

/// A library that is known, and opened once somebody needs it.
#[derive(Debug)]
pub struct Known {
    /// What it offers.
    pub description: Description,
    opened: OnceLock<Result<ForeignLibrary>>,
}

impl Known {
    /// One that is open.
    fn open(library: ForeignLibrary) -> Self {
        Self { description: Description::from(&library), opened: OnceLock::from(Ok(library)) }
    }
}

impl LibraryFile {
    /// The library, opened if it is not; `None` if it is not used.
    fn opened(&self) -> Option<Result<&ForeignLibrary, &Error>> {
        let State::Known(known) = &self.state else { return None };
        Some(known.opened.get_or_init(|| self.open()).as_ref())
    }

    /// Hash of the file's content: of a library that was opened, what it was before.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn hash(&self) -> Result<&str, &Error> {
        let hash = |path| hash_file(path, &Cancel::new()).map_err(|error| Error::Library(plain(&error)));
        self.hash.get_or_init(|| hash(&self.path)).as_deref()
    }

    /// Its hash, if it may be opened.
    fn may_open(&self, pins: &Pins) -> Result<&str> {
        if let Some(reason) = trust::refusal(&self.path) {
            return Err(Error::Library(format!("is not loaded: {reason}")));
        }
        let content = self.hash().map_err(Clone::clone)?;
        let hash = format!("{PREFIX}{content}");
        let pin = trust::stem(&self.path).and_then(|name| pins.get(name));
        if let Some(pin) = pin.filter(|pin| **pin != hash) {
            let pin = if pin.is_empty() { "another" } else { pin };
            return Err(Error::Library(format!("is not loaded: the pipeline requires {pin}, and it is {hash}")));
        }
        Ok(content)
    }

    /// Opens it. What was hashed is what is opened: the name may lead to another file by now.
    fn open(&self) -> Result<ForeignLibrary> {
        let unreadable = |error: std::io::Error| Error::Library(plain(&error));
        let file = File::open(&self.path).map_err(unreadable)?;
        let content = hash_of(&file, &Cancel::new()).map_err(unreadable)?;
        if content != self.hash().map_err(Clone::clone)? {
            return Err(Error::Library(CHANGED.to_owned()));
        }
        library::open(&self.path, file, self.pinned)
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

/// By kind and name of components, the libraries that have one: indices in [`Registry::libraries`].
type Components = BTreeMap<(Kind, String), Vec<usize>>;

/// What libraries offer that may be opened; `None` for others.
fn look_into(libraries: &[LibraryFile], may_open: &[Option<&str>], scan: &Scan) -> Vec<Option<Answer>> {
    let mut found: Vec<Option<Answer>> = may_open.iter().map(|hash| scan.recall((*hash)?)).collect();
    let unknown: Vec<usize> =
        (0..libraries.len()).filter(|at| may_open[*at].is_some() && found[*at].is_none()).collect();
    let asked = |at: &usize| {
        let LibraryFile { path, pinned, .. } = &libraries[*at];
        let hash = may_open[*at].unwrap_or_default().to_owned();
        Asked { path: path.clone(), content: if *pinned { Content::Required(hash) } else { Content::Found(hash) } }
    };
    let asked: Vec<Asked> = unknown.iter().map(asked).collect();
    for (at, looked) in unknown.into_iter().zip(scan.look(&asked)) {
        if let Some(hash) = may_open[at] {
            scan.keep(hash, &looked);
        }
        found[at] = Some(looked.answer);
    }
    found
}

/// What becomes of libraries; `None` of those of which it is known.
fn states(libraries: &[LibraryFile], pins: &Pins, scan: Option<&Scan>) -> Vec<Option<State>> {
    let refused = |reason: String| Some(State::Refused(reason));
    let may_open = libraries.iter().map(|file| match file.state {
        State::Shadowed(_) => None,
        _ => Some(file.may_open(pins)),
    });
    let may_open: Vec<Option<Result<&str>>> = may_open.collect();
    let hashes: Vec<Option<&str>> = may_open.iter().map(|may| may.as_ref()?.as_ref().ok().copied()).collect();
    let mut found = scan.map(|scan| look_into(libraries, &hashes, scan).into_iter());
    let state = |(file, may): (&LibraryFile, Option<Result<&str>>)| {
        let answer = found.as_mut().and_then(Iterator::next).flatten();
        match (may?, answer) {
            (Err(error), _) => refused(error.to_string()),
            (Ok(_), Some(Err(reason))) => refused(reason),
            (Ok(_), Some(Ok(description))) => Some(State::Known(Known { description, opened: OnceLock::new() })),
            (Ok(_), None) => match file.open() {
                Ok(library) => Some(State::Known(Known::open(library))),
                Err(error) => refused(error.to_string()),
            },
        }
    };
    libraries.iter().zip(may_open).map(state).collect()
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
    /// How libraries were looked into that are not open yet.
    scan: Option<Arc<Scan>>,
    /// Where components of other people's libraries are made first.
    pub(super) rehearsed: Option<Rehearsed>,
}

impl Registry {
    /// Opens every library in the folders that is named like a plugin.
    pub fn scan(folders: &[PathBuf]) -> Self {
        Self::scan_pinned(folders, &Pins::new())
    }

    /// Likewise, but a library that is pinned to another content is refused, before any of its code could run.
    pub fn scan_pinned(folders: &[PathBuf], pins: &Pins) -> Self {
        Self::scan_beside(Vec::new(), folders, pins, None)
    }

    /// Likewise, beside components that the program itself has: a library that is no file.
    /// With a `scan`, libraries are opened once they are needed.
    pub fn scan_beside(own: Vec<ForeignLibrary>, folders: &[PathBuf], pins: &Pins, scan: Option<&Scan>) -> Self {
        let mut libraries: Vec<LibraryFile> = Vec::new();
        for library in own {
            let hash = OnceLock::from(Ok(format!("{} {}", library.name, library.version)));
            let path = PathBuf::from(&library.name);
            libraries.push(LibraryFile { path, state: State::Known(Known::open(library)), hash, pinned: false });
        }
        let own = libraries.len();
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
                let state = match names.get(&name) {
                    Some(first) => State::Shadowed(first.clone()),
                    None => State::Refused(String::new()),
                };
                names.entry(name).or_insert_with(|| path.clone());
                let pinned = trust::stem(&path).is_some_and(|name| pins.contains_key(name));
                libraries.push(LibraryFile { path, state, hash: OnceLock::new(), pinned });
            }
        }
        let states = states(&libraries[own..], pins, scan);
        for (file, state) in libraries[own..].iter_mut().zip(states) {
            if let Some(state) = state {
                file.state = state;
            }
        }
        let mut components = Components::new();
        for (at, file) in libraries.iter().enumerate() {
            let State::Known(Known { description, .. }) = &file.state else { continue };
            for component in &description.components {
                components.entry((component.kind, component.name.clone())).or_default().push(at);
            }
        }
        Self {
            folders: folders.into(),
            libraries: libraries.into(),
            components: components.into(),
            scan: scan.cloned().map(Arc::new),
            rehearsed: None,
        }
    }

    /// Likewise; components of other people's libraries are made in a helper process first.
    #[must_use]
    pub fn rehearsed(self, rehearsal: Option<Rehearsal>) -> Self {
        Self { rehearsed: rehearsal.map(Rehearsed::new), ..self }
    }

    /// Ends what was started to make components in, as far as nothing needs it.
    pub(crate) fn rest(&self) {
        self.rehearsed.iter().for_each(Rehearsed::rest);
    }

    /// Whether the library at `path` has the content of another.
    pub(crate) fn same_content(&self, file: &LibraryFile, path: &Path) -> bool {
        let other = self.libraries.iter().find(|other| other.path == path);
        other.is_some_and(|other| matches!((file.hash(), other.hash()), (Ok(a), Ok(b)) if a == b))
    }

    /// Whether there are no components at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.components.is_empty()
    }

    /// All components, by kind and name. Opens all libraries.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let entry = |kind: Kind, name: &str, at: usize| self.entry(kind, name, at).ok();
        self.components
            .iter()
            .flat_map(move |((kind, name), at)| at.iter().filter_map(move |at| entry(*kind, name, *at)))
    }

    /// The component of a library, which is opened if it is not.
    fn entry(&self, kind: Kind, name: &str, at: usize) -> Result<Entry, Problem> {
        let file = &self.libraries[at];
        let unusable = |reason: String| {
            Problem::without_place(Cause::NoComponent, format!("{} {reason}", file.path.display()))
        };
        let library = match file.opened() {
            Some(Ok(library)) => library,
            Some(Err(error)) => return Err(unusable(error.to_string())),
            None => return Err(unusable("is not used".to_owned())),
        };
        let component =
            library.components.iter().find(|component| (component.kind, component.name) == (kind, name));
        let gone = || {
            // What was kept of it is not so, and would be said again and again.
            self.scan.iter().zip(file.hash()).for_each(|(scan, hash)| scan.forget(hash));
            unusable(format!("no longer offers the {kind} `{name}`, as it did when it was looked at; run again"))
        };
        Ok(Entry { component: *component.ok_or_else(gone)?, library: at })
    }

    /// The names of all components of a kind.
    pub fn names(&self, kind: Kind) -> impl Iterator<Item = &str> + Clone {
        self.components.keys().filter(move |(of, _)| *of == kind).map(|(_, name)| name.as_str())
    }

    /// The name of the library that an entry is from: `cap` for `libcompflow_cap.so`.
    pub fn library_of(&self, entry: &Entry) -> &str {
        self.stem(entry.library)
    }

    fn stem(&self, at: usize) -> &str {
        trust::stem(&self.libraries[at].path).unwrap_or_default()
    }

    /// The component of that kind and name; `library:name` is that of a certain library.
    ///
    /// # Errors
    /// A problem, still without a place, that says what there is instead.
    pub fn find(&self, kind: Kind, name: &str) -> Result<Entry, Problem> {
        if let Some((library, component)) = name.split_once(':') {
            let all = self.components.get(&(kind, component.to_owned())).into_iter().flatten();
            if let Some(at) = all.clone().find(|at| self.stem(**at) == library) {
                return self.entry(kind, component, *at);
            }
            return Err({
                let known: Vec<String> = all.map(|at| format!("{}:{component}", self.stem(*at))).collect();
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
            Some([at]) => self.entry(kind, name, *at),
            Some(all) => {
                let names: Vec<String> = all.iter().map(|at| format!("`{}:{name}`", self.stem(*at))).collect();
                let files: Vec<String> =
                    all.iter().map(|at| self.libraries[*at].path.display().to_string()).collect();
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
                    State::Known(known) => known.description.refused.clone(),
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
