//! Making components.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compflow_api::{Error, Instance, Kind, Result, Services};

use super::registry::Registry;
use super::services::ComponentHost;
use crate::cancel::Cancel;
use crate::files::{Inputs, hash_parts};
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
}

/// A component that was made, and a key that changes whenever what it computes might.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) instance: Instance,
    pub(crate) key: String,
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
        let host = ComponentHost::new(self, about).inside(depth);
        let services = Services { host: &host, memory: self.memory, ..Services::none() };
        let instance = entry.component.create(params, &services)?;
        host.check_inputs()?;
        let library = &self.registry.libraries[entry.library];
        let hash = library.hash().map_err(|error| Error::new(format!("{}: {error}", library.path.display())))?;
        let mut key = vec![hash.to_owned(), kind.to_string(), name.to_owned(), params.to_owned()];
        key.extend(host.into_dependencies());
        Ok(Created { instance, key: hash_parts(key.iter().map(String::as_bytes)) })
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
