//! Making components.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use compflow_api::{Error, Instance, Kind, Result, Services};

use super::registry::Registry;
use super::services::ComponentHost;
use crate::cancel::Cancel;
use crate::files::{Inputs, display, hash_parts};
use crate::observer::Observer;

/// How many components may be made inside one another.
const MAX_DEPTH: usize = 16;

/// Makes components, and has what they may ask for.
#[derive(Clone)]
pub(crate) struct Factory {
    pub(crate) registry: Registry,
    /// Paths in parameters are relative to this folder.
    pub(crate) folder: PathBuf,
    pub(crate) inputs: Inputs,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) cancel: Cancel,
    /// Bytes that a component may use.
    pub(crate) memory: u64,
    /// The libraries of all components that were made, by their kinds: indices in the registry.
    pub(crate) used: Arc<Mutex<BTreeSet<(Kind, usize)>>>,
}

/// A component that was made, and a key that changes whenever what it computes might.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) instance: Instance,
    pub(crate) key: String,
    /// The files that it asked for, with those of the components that it asked for.
    pub(crate) inputs: Vec<PathBuf>,
}

impl Factory {
    pub(crate) fn new(
        registry: &Registry,
        folder: &Path,
        observer: &Arc<dyn Observer>,
        cancel: &Cancel,
        memory: u64,
    ) -> Self {
        Self {
            registry: registry.clone(),
            folder: folder.to_owned(),
            inputs: Inputs::default(),
            observer: observer.clone(),
            cancel: cancel.clone(),
            memory,
            used: Arc::default(),
        }
    }

    /// Tells the observer that a component is called during something, until what is returned is dropped.
    pub(crate) fn calling(&self, during: &str, kind: Kind, name: &str) -> Box<dyn Send> {
        self.observer.calling(during, &self.full_name(kind, name))
    }

    /// A component and the file that it is from.
    pub(crate) fn full_name(&self, kind: Kind, name: &str) -> String {
        match self.registry.find(kind, name) {
            Ok(entry) => format!("{kind} `{name}` of {}", self.registry.libraries[entry.library].path.display()),
            Err(_) => format!("{kind} `{name}`"),
        }
    }

    /// The same with another observer and another token.
    pub(crate) fn watched_by(&self, observer: &Arc<dyn Observer>, cancel: &Cancel) -> Self {
        Self { observer: observer.clone(), cancel: cancel.clone(), ..self.clone() }
    }

    /// Makes a component. `about` is how the work is called in messages.
    ///
    /// # Errors
    /// If there is none of that name, or it refuses the parameters.
    pub(crate) fn create(&self, kind: Kind, name: &str, params: &str, about: &str) -> Result<Created> {
        self.create_inside(kind, name, params, about, 0)
    }

    /// Makes a component that another one asked for, which is so many levels deep.
    pub(super) fn create_inside(
        &self,
        kind: Kind,
        name: &str,
        params: &str,
        about: &str,
        depth: usize,
    ) -> Result<Created> {
        if depth > MAX_DEPTH {
            return Err(Error::new(format!(
                "components ask for one another more than {MAX_DEPTH} deep: {kind} `{name}` was not made"
            )));
        }
        let entry = self.registry.find(kind, name).map_err(|problem| {
            let error = Error::new(problem.text);
            problem.help.into_iter().fold(error, Error::help)
        })?;
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert((kind, entry.library));
        if let Some(rehearsed) = self.registry.rehearsed.as_ref().filter(|_| depth == 0) {
            let asked = (kind, name.to_owned(), params.to_owned());
            rehearsed.make(&self.registry.libraries[entry.library].path, asked, &self.folder, self.memory)?;
        }
        let _calling = self.calling("its creation", kind, name);
        let host = ComponentHost::new(self, about).inside(depth);
        let services = Services { host: &host, memory: self.memory, ..Services::none() };
        let instance = entry.component.create(params, &services)?;
        host.check_inputs()?;
        let library = &self.registry.libraries[entry.library];
        let hash = library.hash().map_err(|error| Error::new(format!("{}: {error}", library.path.display())))?;
        let mut key = vec![hash.to_owned(), kind.to_string(), name.to_owned(), params.to_owned()];
        let (dependencies, inputs) = host.into_dependencies();
        key.extend(dependencies);
        Ok(Created { instance, key: hash_parts(key.iter().map(String::as_bytes)), inputs })
    }

    /// Makes sure that files which a component has asked for still are what was hashed: it may have read them until now, and what
    /// it made of them is kept under their hashes.
    ///
    /// # Errors
    /// Naming the file that somebody has written to meanwhile.
    pub(crate) fn check_inputs(&self, inputs: &[PathBuf]) -> Result<()> {
        for path in inputs {
            match self.inputs.is_unchanged(path, &self.cancel) {
                Ok(true) => {}
                _ if self.cancel.requested() => return Err(Error::Cancelled),
                _ => return Err(Error::data(format!("{} has changed since it was read first", display(path)))),
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Factory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Factory")
            .field("folder", &self.folder)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}
