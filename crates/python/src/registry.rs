//! The components that are there: those of libraries in the folders that the package names, and our own.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use compflow_api::{Flags, ForeignComponent, ForeignLibrary, Registration};
use compflow_engine::Registry;
use compflow_engine::pipeline::Pins;
use compflow_engine::plugin::State;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::error::wrong;
use crate::function::PythonComposer;
use crate::memory::Memory;

/// The folders to search, and what is there once somebody has asked.
struct Known {
    folders: Vec<PathBuf>,
    registry: Option<Registry>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { folders: Vec::new(), registry: None });

/// Says where libraries are searched, the most specific folder first.
#[pyfunction]
pub(crate) fn use_folders(folders: Vec<PathBuf>) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known = Known { folders, registry: None };
}

/// The folders that are searched.
pub(crate) fn folders() -> Vec<PathBuf> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).folders.clone()
}

/// All components; libraries are opened once.
pub(crate) fn registry() -> PyResult<Registry> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(registry) = &known.registry {
        return Ok(registry.clone());
    }
    let registry = pinned(&known.folders, &Pins::new())?;
    known.registry = Some(registry.clone());
    Ok(registry)
}

/// The components of libraries with the content that a pipeline requires.
pub(crate) fn pinned(folders: &[PathBuf], pins: &Pins) -> PyResult<Registry> {
    let own = [Registration::loader::<Memory>(), Registration::composer::<PythonComposer>()];
    let components: Result<Vec<ForeignComponent>, _> = own.iter().map(Registration::component).collect();
    let library = ForeignLibrary {
        name: "python".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        components: components.map_err(wrong)?,
        refused: Vec::new(),
    };
    Ok(Registry::scan_beside(vec![library], folders, pins, None))
}

/// All components and all libraries that were refused, as JSON.
#[pyfunction]
pub(crate) fn components(py: Python<'_>) -> PyResult<String> {
    let registry = py.detach(registry)?;
    let described: Vec<Value> = registry
        .entries()
        .map(|entry| {
            let ForeignComponent { kind, name, summary, documentation, schema, .. } = entry.component;
            let flags = entry.component.flags();
            let schema: Value = serde_json::from_str(schema).unwrap_or_default();
            json!({
                "kind": kind,
                "name": name,
                "library": registry.libraries[entry.library].path,
                "summary": summary,
                "documentation": documentation,
                "schema": schema,
                "needs_truth": flags.contains(Flags::NEEDS_TRUTH),
                "needs_embeddings": flags.contains(Flags::NEEDS_EMBEDDINGS),
                "needs_composer": flags.contains(Flags::NEEDS_COMPOSER) || flags.contains(Flags::NEEDS_GRADIENTS),
                "uses_weights": flags.contains(Flags::USES_WEIGHTS),
                "uses_seeds": flags.contains(Flags::USES_SEEDS),
            })
        })
        .collect();
    let refused: Vec<Value> = registry
        .libraries
        .iter()
        .filter_map(|file| match &file.state {
            State::Refused(reason) => Some(json!({ "library": file.path, "reason": reason })),
            _ => None,
        })
        .collect();
    Ok(json!({ "components": described, "refused": refused }).to_string())
}
