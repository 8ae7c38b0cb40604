//! The folder that results go to.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use serde::Deserialize;

use super::generation::{RECORD, is_passing, place, read_record, require_places, sweep};
use crate::error::{Error, Result};
use crate::files::{display, open_file, plain, sealed};

/// The folder inside, with finished cells.
pub(super) const CELLS: &str = "cells";
/// The folder inside, with data that was in memory.
pub const INPUTS: &str = "inputs";
/// The folder inside, with what parts tell of themselves.
pub(crate) const PARTS: &str = "parts";
/// The folder inside, with scripts that run parts.
const SLURM: &str = "slurm";

/// More bytes than a record, or what a part tells of itself, ever has.
pub(super) const LARGEST: u64 = 1 << 30;

/// What says whose results they are.
#[derive(Deserialize)]
struct Named {
    name: String,
}

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
        make(folder, pipeline)?;
        let lock = open_lock(&folder.join(".lock")).map_err(|error| unwritable(folder, &error))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(Error::request(format!("{} is in use by another run of compflow", display(folder))));
            }
            // A file system without locks: better to run unprotected than not at all.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        require_places(folder).map_err(|error| unwritable(folder, &error))?;
        sweep(folder);
        Ok(Self { _lock: lock })
    }
}

/// Whether a run is at work in a folder.
pub(crate) fn is_in_use(folder: &Path) -> bool {
    let lock = open_file(&folder.join(".lock"));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The file that is locked: no link, which might lead to somebody else's file, and nothing in it is lost.
fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options.open(path).map_err(|error| match error.raw_os_error() {
        #[cfg(unix)]
        Some(libc::ELOOP) => io::Error::other(".lock is a link, and no link of ours: remove it"),
        _ => error,
    })
}

/// Makes the folder if it is missing. Several may do so at the same time, and write cells into it.
///
/// # Errors
/// If it holds something else, or cannot be made.
pub(super) fn make(folder: &Path, pipeline: &str) -> Result<()> {
    let about = |text: String| Error::request(format!("{} {text}", display(folder)));
    let record = read_record(folder).ok();
    // The name of one that is damaged may be another than it was.
    let earlier: Option<Named> = record.iter().find_map(|bytes| sealed::from_json(bytes));
    match earlier.map(|earlier| earlier.name) {
        Some(name) if name != pipeline => {
            return Err(about(format!(
                "holds the results of the pipeline `{name}`, and this is `{pipeline}`: choose another folder with --out",
            )));
        }
        Some(_) => {}
        // Cells are ours whatever became of the record: they know themselves what they belong to.
        None if folder.join(CELLS).is_dir() => {}
        None if place(folder, RECORD).exists() => {
            return Err(about("holds a run.json that is not ours: choose another folder with --out".to_owned()));
        }
        None => {
            let others = std::fs::read_dir(folder).into_iter().flatten().flatten();
            // A run that was killed early leaves these behind, and parts of one that has not begun.
            let ours = |name: &str| [".lock", INPUTS, PARTS, SLURM].contains(&name) || is_passing(name);
            let foreign = others.map(|entry| entry.file_name()).find(|name| !ours(&name.to_string_lossy()));
            if let Some(name) = foreign {
                return Err(about(format!(
                    "is no results folder: it holds {}; choose another folder with --out",
                    name.to_string_lossy()
                )));
            }
        }
    }
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))
}

/// Why nothing can be written to a folder.
pub(crate) fn unwritable(folder: &Path, error: &std::io::Error) -> Error {
    Error::run(format!("cannot write to {}: {}", display(folder), plain(error)))
}
