//! What components are made in and what answers them: the host's side of the service table.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, PoisonError};

use compflow_api::{Error, Host, Instance, Kind, Level, Result, Services};
use indicatif::ProgressBar;

use crate::files::{Inputs, display};
use crate::interrupt;
use crate::registry::Registry;
use crate::terminal::Terminal;

/// What all work of one command shares.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) registry: Registry,
    /// Paths in the pipeline are relative to this folder.
    pub(crate) folder: PathBuf,
    pub(crate) inputs: Inputs,
    pub(crate) terminal: Terminal,
    /// Bytes that everything together may use.
    pub(crate) memory: u64,
}

/// An instance, and a key that changes whenever what it computes might.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) instance: Instance,
    pub(crate) key: String,
}

impl Environment {
    /// Makes a component.
    ///
    /// # Errors
    /// If there is none of that name, or it refuses the parameters.
    pub(crate) fn make(&self, kind: Kind, name: &str, params: &str, about: &str) -> Result<Made> {
        let entry = self.registry.find(kind, name).map_err(|problem| {
            Error::new(match problem.help {
                Some(help) => format!("{}; {help}", problem.text),
                None => problem.text,
            })
        })?;
        let answers = Answers::new(self, about);
        let services = Services { host: &answers, memory: self.memory, ..Services::none() };
        let instance = entry.component.create(params, &services)?;
        let library = &self.registry.libraries[entry.library];
        let hash = library.hash().map_err(|error| Error::new(format!("{}: {error}", library.path.display())))?;
        let mut key = vec![hash.to_owned(), kind.to_string(), name.to_owned(), params.to_owned()];
        key.extend(answers.dependencies.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(Made { instance, key: hash_parts(key.iter().map(String::as_bytes)) })
    }
}

/// BLAKE3 of a sequence of parts, in hexadecimal; parts cannot run into one another.
pub(crate) fn hash_parts<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex().to_string()
}

/// Answers one component during one piece of work.
#[derive(Debug)]
pub(crate) struct Answers<'a> {
    environment: &'a Environment,
    /// How the work is called in messages.
    about: &'a str,
    /// Where progress is shown.
    pub(crate) bar: Option<ProgressBar>,
    /// Hashes of what the component asked for: files and other components.
    dependencies: Mutex<Vec<String>>,
    /// Warnings so far, which are kept with the result.
    pub(crate) warnings: Mutex<Vec<String>>,
    /// Whether results are kept under a key that is already made, so that they can depend on nothing more.
    sealed: bool,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(environment: &'a Environment, about: &'a str) -> Self {
        Self {
            environment,
            about,
            bar: None,
            dependencies: Mutex::default(),
            warnings: Mutex::default(),
            sealed: false,
        }
    }

    /// For work whose result is kept: everything that it depends on had to be asked for before.
    pub(crate) fn sealed(environment: &'a Environment, about: &'a str) -> Self {
        Self { sealed: true, ..Self::new(environment, about) }
    }

    fn may_depend(&self) -> Result<()> {
        if self.sealed {
            return Err(Error::new(
                "a component must ask for files and other components when it is created: \
                 results are kept under what they depend on",
            ));
        }
        Ok(())
    }

    fn depends_on(&self, hash: String) {
        self.dependencies.lock().unwrap_or_else(PoisonError::into_inner).push(hash);
    }
}

impl Host for Answers<'_> {
    fn log(&self, level: Level, text: &str) {
        if level == Level::Warn {
            self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        }
        self.environment.terminal.log(level, self.about, text);
    }

    fn progress(&self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            Terminal::advance(bar, done, total);
        }
    }

    fn cancel(&self) -> &AtomicU32 {
        interrupt::flag()
    }

    fn input(&self, path: &str) -> Result<PathBuf> {
        self.may_depend()?;
        let absolute = self.environment.folder.join(Path::new(path));
        let absolute = absolute.canonicalize().unwrap_or(absolute);
        let hash = self
            .environment
            .inputs
            .hash(&absolute)
            .map_err(|error| Error::new(format!("{}: {}", display(&absolute), plain(&error))))?;
        self.depends_on(hash);
        Ok(absolute)
    }

    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        self.may_depend()?;
        let made = self.environment.make(kind, name, params, self.about)?;
        self.depends_on(made.key);
        Ok(made.instance)
    }
}

/// An I/O error in words that name what would do, without the operating system's number.
pub(crate) fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::IsADirectory => "is a folder, not a file".to_owned(),
        std::io::ErrorKind::InvalidData => "is not UTF-8 text".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_lowercase()
        }
    }
}
