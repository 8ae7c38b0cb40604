//! The folder that results go to.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::{Error, Result};
use crate::files::plain;

/// Where in a results folder data is put that was in memory.
pub const INPUTS: &str = "inputs";

/// The results folder, ours alone while this lives.
#[derive(Debug)]
pub(crate) struct ResultsFolder {
    _lock: File,
}

impl ResultsFolder {
    /// Makes the folder if it is missing, and locks it.
    ///
    /// # Errors
    /// If it holds something else, is in use, or cannot be written to.
    pub(crate) fn open(folder: &Path, pipeline: &str) -> Result<Self> {
        let about = |text: String| Error::request(format!("{} {text}", folder.display()));
        match std::fs::read(folder.join("run.json")) {
            Ok(bytes) => {
                let earlier: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
                let Some(name) = earlier.get("name").and_then(serde_json::Value::as_str) else {
                    return Err(about(
                        "holds a run.json that is not ours: choose another folder with --out".to_owned(),
                    ));
                };
                if name != pipeline {
                    return Err(about(format!(
                        "holds the results of the pipeline `{name}`, and this is `{pipeline}`: choose another folder with --out",
                    )));
                }
            }
            Err(_) => {
                let others = std::fs::read_dir(folder).into_iter().flatten().flatten();
                // A run that was killed early leaves these behind.
                let ours = |name: &str| [".lock", "cells", INPUTS].contains(&name) || name.ends_with(".tmp");
                let foreign = others.map(|entry| entry.file_name()).find(|name| !ours(&name.to_string_lossy()));
                if let Some(name) = foreign {
                    return Err(about(format!(
                        "is no results folder: it holds {}; choose another folder with --out",
                        name.to_string_lossy()
                    )));
                }
            }
        }
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        let lock = File::create(folder.join(".lock")).map_err(|error| unwritable(folder, &error))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(about("is in use by another run of compflow".to_owned()));
            }
            // A file system without locks: better to run unprotected than not at all.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        Ok(Self { _lock: lock })
    }
}

/// Why nothing can be written to a folder.
pub(crate) fn unwritable(folder: &Path, error: &std::io::Error) -> Error {
    Error::run(format!("cannot write to {}: {}", folder.display(), plain(error)))
}
