//! The folder that results go to.

use std::collections::BTreeMap;
use std::fs::{DirEntry, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::generation::{RECORD, is_passing, place, read_record, require_places, sweep};
use super::manifest::name_in;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::{display, hash_file, make_folders, open_file, plain, sealed};

/// The file that whoever writes tables locks.
const LOCK: &str = ".lock";
/// How long somebody may hold the lock who only looks whether it is held.
const GLANCE: Duration = Duration::from_millis(100);
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
        let lock = open_lock(folder).map_err(|error| unwritable(folder, &error))?;
        let deadline = Instant::now() + GLANCE;
        let mut locked = lock.try_lock();
        while matches!(locked, Err(TryLockError::WouldBlock)) && Instant::now() < deadline {
            std::thread::sleep(GLANCE / 20);
            locked = lock.try_lock();
        }
        match locked {
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

/// The hashes of files that went along, by name; those that cannot be read are left out.
pub(crate) fn kept_inputs(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder.join(INPUTS)).into_iter().flatten().flatten();
    let hashed = |entry: DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name, hash_file(&entry.path(), &Cancel::new()).ok()?))
    };
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).filter_map(hashed).collect()
}

/// Whether a run is at work in a folder.
pub(crate) fn is_in_use(folder: &Path) -> bool {
    let lock = open_file(&folder.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The file that is locked: no link, which might lead to somebody else's file, and nothing in it is lost.
fn open_lock(folder: &Path) -> io::Result<File> {
    #[cfg(unix)]
    crate::files::umask::restore();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options.open(folder.join(LOCK)).map_err(|error| match error.raw_os_error() {
        #[cfg(unix)]
        Some(libc::ELOOP) => io::Error::other(format!("{LOCK} is a link, and no link of ours: remove it")),
        #[cfg(unix)]
        Some(libc::EISDIR) => io::Error::other(format!("{LOCK} is a folder, and no file of ours: remove it")),
        _ => error,
    })
}

/// A folder inside the results folder, made if it is missing. A link might lead to files of somebody else, among which ours
/// would be written, and which would be taken for ours.
///
/// # Errors
/// If it cannot be made, or something else has its name.
pub(super) fn inside(results: &Path, name: &str) -> io::Result<PathBuf> {
    require_own(results, name)?;
    let folder = results.join(name);
    make_folders(&folder)?;
    Ok(folder)
}

/// Refuses what has the name of a folder of ours and is none.
fn require_own(results: &Path, name: &str) -> io::Result<()> {
    let what = match std::fs::symlink_metadata(results.join(name)) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(found) if found.is_symlink() => "a link",
        Ok(_) => "a file",
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let text = format!("{name} is {what}, and no folder of ours: remove it, or choose another folder with --out");
    Err(io::Error::other(text))
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
    let earlier = earlier.map(|earlier| earlier.name);
    // Parts leave no record, and what one of another pipeline computed would be refused when all have ended.
    if let Some(name) = earlier.clone().or_else(|| name_in(folder)).filter(|name| name != pipeline) {
        return Err(about(format!(
            "holds the results of the pipeline `{name}`, and this is `{pipeline}`: choose another folder with --out",
        )));
    }
    match earlier {
        Some(_) => {}
        // Cells are ours whatever became of the record: they know themselves what they belong to.
        None if folder.join(CELLS).is_dir() => {}
        None if place(folder, RECORD).exists() => {
            return Err(about("holds a run.json that is not ours: choose another folder with --out".to_owned()));
        }
        None => {
            let others = std::fs::read_dir(folder).into_iter().flatten().flatten();
            // A run that was killed early leaves these behind, and parts of one that has not begun.
            let ours = |name: &str| [LOCK, INPUTS, PARTS, SLURM].contains(&name);
            let is_ours = |entry: &DirEntry| ours(&entry.file_name().to_string_lossy()) || is_passing(entry);
            if let Some(foreign) = others.into_iter().find(|entry| !is_ours(entry)) {
                return Err(about(format!(
                    "is no results folder: it holds {}; choose another folder with --out",
                    foreign.file_name().to_string_lossy()
                )));
            }
        }
    }
    let own = [CELLS, INPUTS, PARTS, SLURM].iter().try_for_each(|name| require_own(folder, name));
    own.and_then(|()| make_folders(folder)).map_err(|error| unwritable(folder, &error))
}

/// Why nothing can be written to a folder.
pub(crate) fn unwritable(folder: &Path, error: &std::io::Error) -> Error {
    Error::run(format!("cannot write to {}: {}", display(folder), plain(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `compflow runs` looks into folders in which runs begin at that moment.
    #[test]
    fn somebody_who_only_looks_keeps_no_run_from_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let lock = open_lock(folder.path()).unwrap();
        lock.lock_shared().unwrap();
        let looking = std::thread::spawn(move || {
            std::thread::sleep(GLANCE / 4);
            drop(lock);
        });
        let run = ResultsFolder::open(folder.path(), "p").unwrap();
        looking.join().unwrap();
        let error = ResultsFolder::open(folder.path(), "p").unwrap_err().to_string();
        assert!(error.ends_with("is in use by another run of compflow"), "{error}");
        drop(run);
        assert!(ResultsFolder::open(folder.path(), "p").is_ok());
    }
}
