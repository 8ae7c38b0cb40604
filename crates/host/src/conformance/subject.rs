//! The component under test, and the host that watches it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use compflow_api::{Error, ForeignComponent, Host, Instance, Kind, Result, Services};
use compflow_engine::Registry;
use serde_json::{Map, Value};

/// How many bytes a piece of work may allocate.
pub(crate) const MEMORY: u64 = 4 << 30;

/// The component under test.
pub(crate) struct Subject {
    pub(crate) component: ForeignComponent,
    /// Its siblings in the same library, which it may ask for.
    pub(crate) siblings: Vec<ForeignComponent>,
    /// Everything else that it may ask for.
    pub(crate) registry: Registry,
    pub(crate) schema: Value,
    /// What it is tested with: those that must be given.
    pub(crate) params: Map<String, Value>,
    /// What loaders read.
    pub(crate) path: Option<PathBuf>,
    /// What they are asked for, by its name in the stream and in the source, if the user says.
    pub(crate) columns: Option<Vec<(String, String)>>,
}

impl Subject {
    /// A host that watches one piece of work.
    pub(crate) fn watch(&self) -> Watch<'_> {
        Watch { subject: self, cancel: AtomicU32::new(0), reports: AtomicUsize::new(0), odd: AtomicUsize::new(0) }
    }

    /// Makes an instance from the parameters it is tested with.
    ///
    /// # Errors
    /// Its own.
    pub(crate) fn make<I: TryFrom<Instance, Error = Error>>(&self) -> Result<I> {
        self.make_with(&self.params)
    }

    /// Makes an instance from these parameters.
    ///
    /// # Errors
    /// Its own.
    pub(crate) fn make_with<I: TryFrom<Instance, Error = Error>>(&self, params: &Map<String, Value>) -> Result<I> {
        I::try_from(self.instance(params)?)
    }

    /// Likewise, whatever its kind.
    ///
    /// # Errors
    /// Its own.
    pub(crate) fn instance(&self, params: &Map<String, Value>) -> Result<Instance> {
        let watch = self.watch();
        self.component.create(&Value::Object(params.clone()).to_string(), &watch.services(0, 1))
    }

    /// The parameters that it is tested with, and every other at its default, written out.
    pub(crate) fn written_out(&self) -> Map<String, Value> {
        let properties = self.schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let mut all: Map<String, Value> = properties
            .filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone())))
            .filter(|(_, default)| !default.is_null())
            .collect();
        all.extend(self.params.clone());
        all
    }
}

/// A host that counts what it is told.
pub(crate) struct Watch<'a> {
    subject: &'a Subject,
    pub(crate) cancel: AtomicU32,
    /// Reports of progress.
    pub(crate) reports: AtomicUsize,
    /// Those that said more was done than there is.
    pub(crate) odd: AtomicUsize,
}

impl Watch<'_> {
    pub(crate) fn services(&self, seed: u64, threads: usize) -> Services<'_> {
        Services { host: self, seed, threads, memory: MEMORY }
    }
}

impl Host for Watch<'_> {
    fn progress(&self, done: u64, total: u64) {
        self.reports.fetch_add(1, Ordering::Relaxed);
        self.odd.fetch_add(usize::from(total > 0 && done > total), Ordering::Relaxed);
    }

    fn cancel(&self) -> &AtomicU32 {
        &self.cancel
    }

    fn input(&self, path: &str) -> Result<PathBuf> {
        std::path::absolute(path)
            .and_then(|path| path.canonicalize())
            .map_err(|error| Error::data(format!("{path}: {error}")))
    }

    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        let own = self.subject.siblings.iter().find(|sibling| sibling.kind == kind && sibling.name == name);
        let component = match own {
            Some(component) => *component,
            None => self.subject.registry.find(kind, name).map_err(|problem| Error::new(problem.text))?.component,
        };
        component.create(params, &self.services(0, 1))
    }
}
