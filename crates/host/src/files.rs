//! Files: content hashes, and writing that leaves a file whole or not at all.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// BLAKE3 of a file's content, in hexadecimal.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn hash_file(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// The hashes of the files that results depend on, each computed once.
#[derive(Debug, Default)]
pub(crate) struct Inputs(Mutex<BTreeMap<PathBuf, String>>);

impl Inputs {
    /// The hash of a file, which from now on counts as an input.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn hash(&self, path: &Path) -> io::Result<String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hash) = known.get(path) {
            return Ok(hash.clone());
        }
        let hash = hash_file(path)?;
        known.insert(path.to_owned(), hash.clone());
        Ok(hash)
    }

    /// All inputs so far.
    pub(crate) fn all(&self) -> BTreeMap<PathBuf, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Writes a file under a temporary name and renames it, so that it appears whole or not at all. `durable` waits until
/// it is on the disk, so that this holds even if the power fails.
///
/// # Errors
/// If it cannot be written; the file that was there before is still there then.
pub(crate) fn write_whole(
    path: &Path,
    durable: bool,
    write: impl FnOnce(&mut io::BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = path.with_added_extension("tmp");
    let result = (|| {
        let file = File::create(&temporary)?;
        let mut writer = io::BufWriter::new(&file);
        write(&mut writer)?;
        writer.flush()?;
        drop(writer);
        if durable {
            file.sync_all()?;
        }
        std::fs::rename(&temporary, path)
    })();
    if result.is_err() {
        // Best effort: the error that led here says more than a failure to clean up.
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

/// How a file is called in messages: relative to the current folder if it is inside.
pub(crate) fn display(path: &Path) -> String {
    let current = std::env::current_dir().ok().and_then(|folder| folder.canonicalize().ok());
    current.and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.parquet");
        write_whole(&path, true, |file| file.write_all(b"old")).unwrap();
        let failed = write_whole(&path, true, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "disk full");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
