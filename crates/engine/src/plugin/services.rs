//! What answers a component during one piece of work: the engine's side of the service table.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use compflow_api::{Error, Host, Instance, Kind, Level, Result};

use super::factory::Factory;
use crate::files::{display, plain};
use crate::observer::Progress;

/// How many warnings, and how many other lines, a component may log during one piece of work.
const MOST_LINES: u64 = 100;

/// The lines that a component logs during one piece of work. Warnings are counted by themselves, so that no other lines hide
/// them.
struct Lines<'a> {
    factory: &'a Factory,
    about: &'a str,
    warnings: AtomicU64,
    others: AtomicU64,
}

impl Lines<'_> {
    fn count(&self, level: Level) -> &AtomicU64 {
        if level == Level::Warn { &self.warnings } else { &self.others }
    }

    /// Whether another one is one too many.
    fn is_flood(&self, level: Level) -> bool {
        self.count(level).fetch_add(1, Ordering::Relaxed) >= MOST_LINES
    }

    /// What is to be said of those that were left out, if any were.
    fn left_out(&self, level: Level) -> Option<String> {
        let more = self.count(level).load(Ordering::Relaxed).saturating_sub(MOST_LINES);
        let what = if level == Level::Warn { "warnings" } else { "lines of its log" };
        (more > 0).then(|| format!("{more} further {what} were left out"))
    }
}

impl Drop for Lines<'_> {
    fn drop(&mut self) {
        for level in [Level::Warn, Level::Info] {
            if let Some(text) = self.left_out(level) {
                self.factory.observer.log(level, self.about, &text);
            }
        }
    }
}

/// Answers one component during one piece of work.
pub(crate) struct ComponentHost<'a> {
    factory: &'a Factory,
    /// How the work is called in messages.
    about: &'a str,
    lines: Lines<'a>,
    /// Who is told about progress.
    progress: Option<Box<dyn Progress>>,
    /// Hashes of what the component asked for: files and other components.
    dependencies: Mutex<Vec<String>>,
    /// The files among them.
    inputs: Mutex<Vec<PathBuf>>,
    /// Warnings so far, which are kept with the result.
    warnings: Mutex<Vec<String>>,
    /// How many components the one is inside of.
    depth: usize,
    /// Whether the key is already made under which the result is kept, so that it must depend on nothing more.
    sealed: bool,
}

impl<'a> ComponentHost<'a> {
    pub(crate) fn new(factory: &'a Factory, about: &'a str) -> Self {
        Self {
            factory,
            about,
            lines: Lines { factory, about, warnings: AtomicU64::new(0), others: AtomicU64::new(0) },
            progress: None,
            dependencies: Mutex::default(),
            inputs: Mutex::default(),
            warnings: Mutex::default(),
            depth: 0,
            sealed: false,
        }
    }

    /// For work whose result is kept: everything that it depends on had to be asked for before.
    pub(crate) fn sealed(factory: &'a Factory, about: &'a str) -> Self {
        Self { sealed: true, ..Self::new(factory, about) }
    }

    /// For a component that is made inside so many others.
    #[must_use]
    pub(super) fn inside(self, depth: usize) -> Self {
        Self { depth, ..self }
    }

    /// The observer is told about progress.
    #[must_use]
    pub(crate) fn with_progress(mut self) -> Self {
        self.progress = Some(self.factory.observer.work(self.about));
        self
    }

    /// Hashes of what the component asked for, and the files among it.
    pub(super) fn into_dependencies(self) -> (Vec<String>, Vec<PathBuf>) {
        let (dependencies, inputs) = (self.dependencies.into_inner(), self.inputs.into_inner());
        (dependencies.unwrap_or_else(PoisonError::into_inner), inputs.unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes sure that the component has read what was hashed, once it has read it.
    ///
    /// # Errors
    /// Naming the file that somebody has written to meanwhile.
    pub(super) fn check_inputs(&self) -> Result<()> {
        self.factory.check_inputs(&self.inputs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the component warned of.
    pub(crate) fn into_warnings(self) -> Vec<String> {
        let mut warnings = self.warnings.into_inner().unwrap_or_else(PoisonError::into_inner);
        warnings.extend(self.lines.left_out(Level::Warn));
        warnings
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

impl Host for ComponentHost<'_> {
    fn log(&self, level: Level, text: &str) {
        if self.lines.is_flood(level) {
            return;
        }
        if level == Level::Warn {
            self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        }
        self.factory.observer.log(level, self.about, text);
    }

    fn progress(&self, done: u64, total: u64) {
        if let Some(progress) = &self.progress {
            progress.advance(done, total);
        }
    }

    fn cancel(&self) -> &AtomicU32 {
        self.factory.cancel.flag()
    }

    fn version(&self) -> &str {
        concat!("compflow ", env!("CARGO_PKG_VERSION"))
    }

    fn input(&self, path: &str) -> Result<PathBuf> {
        self.may_depend()?;
        let absolute = self.factory.folder.join(Path::new(path));
        let absolute = absolute.canonicalize().unwrap_or(absolute);
        let hash = self
            .factory
            .inputs
            .hash(&absolute, &self.factory.cancel)
            .map_err(|error| Error::data(format!("{}: {}", display(&absolute), plain(&error))))?;
        self.depends_on(hash);
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).push(absolute.clone());
        Ok(absolute)
    }

    fn content(&self, path: &str) -> Result<(PathBuf, Vec<u8>)> {
        self.may_depend()?;
        let Factory { folder, inputs, memory, cancel, .. } = self.factory;
        let asked = folder.join(Path::new(path));
        let found = inputs
            .content(&asked, *memory, cancel)
            .map_err(|error| Error::data(format!("{}: {}", display(&asked), plain(&error))))?;
        self.depends_on(found.hash);
        Ok((found.path, found.bytes.to_vec()))
    }

    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        self.may_depend()?;
        let created = self.factory.create_inside(kind, name, params, self.about, self.depth + 1)?;
        self.depends_on(created.key);
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).extend(created.inputs);
        Ok(created.instance)
    }
}
