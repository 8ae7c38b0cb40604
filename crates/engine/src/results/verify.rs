//! Whether everything in a results folder is what was written.

use std::path::{Path, PathBuf};

use super::record::RunRecord;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::{display, plain};
use crate::run::cache::Cache;

/// What a look at every file of a results folder has shown.
#[derive(Debug, Default)]
pub struct Verified {
    /// How many tables are whole.
    pub tables: usize,
    /// How many kept cells are.
    pub cells: usize,
    /// What is not: the file, and what is wrong with it.
    pub damaged: Vec<(PathBuf, String)>,
}

/// Reads everything in a results folder.
///
/// # Errors
/// If it is none, cannot be read, or the end was requested.
pub fn verify(folder: &Path, cancel: &Cancel) -> Result<Verified> {
    let mut found = Verified::default();
    let cells = Cache::peek(folder).verify(cancel).map_err(|error| match error.kind() {
        std::io::ErrorKind::Interrupted => Error::Interrupted,
        _ => Error::run(format!("{}: {}", display(folder), plain(&error))),
    })?;
    let nothing = cells.0 + cells.1.len() == 0;
    match RunRecord::read(folder) {
        Err(error) if nothing => return Err(error),
        Err(error) => found.damaged.push((folder.join("run.json"), error.to_string())),
        Ok(record) => {
            let tables = record.tables(folder);
            for name in tables.hashes.keys() {
                match tables.open(name) {
                    Ok(_) => found.tables += 1,
                    Err(error) => found.damaged.push((folder.join(format!("{name}.parquet")), error.to_string())),
                }
            }
        }
    }
    found.cells = cells.0;
    let text = |path: &Path| format!("{} is damaged; the next run computes again what it kept", path.display());
    found.damaged.extend(cells.1.into_iter().map(|path| (path.clone(), text(&path))));
    Ok(found)
}
