//! Whether everything in a results folder is what was written.

use std::path::{Path, PathBuf};

use compflow_api::Level;

use super::record::RunRecord;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::{display, hash_file, plain, read_file, sealed};
use crate::observer::Observer;
use crate::run::cache::Cache;
use crate::run::folder::{INPUTS, PARTS};
use crate::run::generation::{RECORD, belongs, place};

/// What a look at every file of a results folder has shown.
#[derive(Debug, Default)]
pub struct Verified {
    /// How many tables are whole.
    pub tables: usize,
    /// How many kept cells are.
    pub cells: usize,
    /// How many kept cells are of other versions of compflow, which this one does not use, and cannot judge.
    pub foreign: usize,
    /// How many files are whole in which parts tell of themselves.
    pub parts: usize,
    /// How many files are whole that went along, as examples that were in memory.
    pub inputs: usize,
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
    for path in told_by_parts(folder) {
        match read_file(&path, u64::MAX).is_ok_and(|bytes| sealed::is_intact(&bytes) == Some(true)) {
            true => found.parts += 1,
            false => {
                let text = format!("{} is damaged; run a part again, and it is written anew", path.display());
                found.damaged.push((path, text));
            }
        }
    }
    let nothing = cells.whole + cells.foreign + cells.damaged.len() + found.parts + found.damaged.len() == 0;
    match RunRecord::read_with_tables(folder) {
        Err(error) if nothing => return Err(error),
        // Parts leave cells, and the run that makes tables of them is still to come.
        Err(_) if !has_tables(folder) => {}
        Err(error) => found.damaged.push((folder.join(RECORD), error.to_string())),
        Ok((record, tables)) => {
            for (name, expected) in &record.kept_inputs {
                let path = folder.join(INPUTS).join(name);
                match hash_file(&path, cancel) {
                    Ok(hash) if hash == *expected => found.inputs += 1,
                    _ if cancel.requested() => return Err(Error::Interrupted),
                    _ => {
                        let text = format!("{} is not what it was when the run ended", path.display());
                        found.damaged.push((path, text));
                    }
                }
            }
            for name in tables.hashes.keys() {
                match tables.open(name) {
                    Ok(_) => found.tables += 1,
                    Err(error) => found.damaged.push((folder.join(format!("{name}.parquet")), error.to_string())),
                }
            }
        }
    }
    (found.cells, found.foreign) = (cells.whole, cells.foreign);
    let text = |path: &Path| format!("{} is damaged; the next run computes again what it kept", path.display());
    found.damaged.extend(cells.damaged.into_iter().map(|path| (path.clone(), text(&path))));
    Ok(found)
}

/// Where a file is now that a run wrote, if the record beside it says so: a run may be putting it in its place.
///
/// # Errors
/// If it is not what the run wrote.
pub fn own_table(path: &Path, observer: &dyn Observer) -> Result<Option<PathBuf>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| belongs(name)) else {
        return Ok(None);
    };
    let table = name.trim_end_matches(".parquet");
    match RunRecord::read_with_tables(folder) {
        Ok((_, tables)) if tables.has(table) => {
            tables.open(table)?;
            Ok(Some(place(folder, name)))
        }
        Ok(_) => Ok(None),
        Err(error) => {
            if place(folder, RECORD).exists() {
                let text = format!("whether it is what a run wrote is not known: {error}");
                observer.log(Level::Warn, &display(path), &text);
            }
            Ok(None)
        }
    }
}

/// The files in which parts tell of themselves.
fn told_by_parts(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join(PARTS)).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension() == Some("json".as_ref())).collect();
    files.sort();
    files
}

/// Whether there is a record, in whatever state, or a table that one must have been for.
fn has_tables(folder: &Path) -> bool {
    let record = place(folder, RECORD).symlink_metadata().is_ok();
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    record || entries.any(|path| path.extension() == Some("parquet".as_ref()))
}
