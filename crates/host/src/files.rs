//! Files: content hashes, and writing that leaves a file whole or not at all.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::interrupt;

/// BLAKE3 of a file's content, in hexadecimal.
///
/// # Errors
/// If it cannot be read, or the user wants to stop.
pub(crate) fn hash_file(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            length => hasher.update(&buffer[..length]),
        };
        if interrupt::requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
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

/// A file that is written but does not have its name yet; gone if it never gets it.
#[derive(Debug)]
pub(crate) struct Staged {
    temporary: PathBuf,
    path: PathBuf,
}

impl Staged {
    /// Writes a file under a temporary name. `durable` waits until it is on the disk, so that the file is whole even
    /// if the power fails.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(
        path: &Path,
        durable: bool,
        write: impl FnOnce(&mut io::BufWriter<&File>) -> io::Result<()>,
    ) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let unique = format!("{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let staged = Self { temporary: path.with_added_extension(unique), path: path.to_owned() };
        let file = File::create(&staged.temporary)?;
        let mut writer = io::BufWriter::new(&file);
        write(&mut writer)?;
        writer.flush()?;
        drop(writer);
        if durable {
            file.sync_all()?;
        }
        Ok(staged)
    }

    /// Gives the file its name, in the place of one that may have had it.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub(crate) fn commit(self) -> io::Result<()> {
        std::fs::rename(&self.temporary, &self.path)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // After a commit there is nothing to remove; after a failure the error that led here says more.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// Writes a file so that it appears whole or not at all.
///
/// # Errors
/// If it cannot be written; the file that was there before is still there then.
pub(crate) fn write_whole(
    path: &Path,
    durable: bool,
    write: impl FnOnce(&mut io::BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    Staged::write(path, durable, write)?.commit()
}

/// How a file is called in messages: relative to the current folder if it is inside.
pub(crate) fn display(path: &Path) -> String {
    let current = std::env::current_dir().ok().and_then(|folder| folder.canonicalize().ok());
    let relative = current.and_then(|folder| path.strip_prefix(folder).ok().map(Path::to_owned));
    match relative {
        Some(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
        Some(relative) => relative.display().to_string(),
        None => path.display().to_string(),
    }
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
