//! Files: content hashes, writing that leaves a file whole or not at all, and words for messages about them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::cancel::Cancel;

pub use self::staged::{Output, write_whole};
pub(crate) use self::staged::{Staged, UNFINISHED, sync_folder, write_new};

mod staged;

/// BLAKE3 of a file's content, in hexadecimal.
///
/// # Errors
/// If it cannot be read, or is no longer wanted.
pub(crate) fn hash_file(path: &Path, cancel: &Cancel) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            length => hasher.update(&buffer[..length]),
        };
        if cancel.requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
    }
}

/// BLAKE3 of a sequence of parts, in hexadecimal; parts cannot run into one another.
pub(crate) fn hash_parts<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex().to_string()
}

/// The hashes of the files that results depend on, each computed once unless the file changes. Clones are the same list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inputs(Arc<Mutex<BTreeMap<PathBuf, Input>>>);

/// A file as it was when it was hashed.
#[derive(Debug, Clone)]
struct Input {
    hash: String,
    length: u64,
    modified: Option<SystemTime>,
}

impl Inputs {
    /// The hash of a file, which from now on counts as an input.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn hash(&self, path: &Path, cancel: &Cancel) -> io::Result<String> {
        let metadata = std::fs::metadata(path)?;
        let (length, modified) = (metadata.len(), metadata.modified().ok());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(input) = known.get(path).filter(|input| (input.length, input.modified) == (length, modified)) {
            return Ok(input.hash.clone());
        }
        let hash = hash_file(path, cancel)?;
        known.insert(path.to_owned(), Input { hash: hash.clone(), length, modified });
        Ok(hash)
    }

    /// All inputs so far.
    pub(crate) fn all(&self) -> BTreeMap<PathBuf, String> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().map(|(path, input)| (path.clone(), input.hash.clone())).collect()
    }
}

/// How a file is called in messages: relative to the current folder if it is inside.
pub fn display(path: &Path) -> String {
    let current = std::env::current_dir().ok().and_then(|folder| folder.canonicalize().ok());
    let relative = current.and_then(|folder| path.strip_prefix(folder).ok().map(Path::to_owned));
    match relative {
        Some(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
        Some(relative) => relative.display().to_string(),
        None => path.display().to_string(),
    }
}

/// An I/O error in words that name what would do, without the operating system's number.
pub fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "is a folder, not a file".to_owned(),
        io::ErrorKind::InvalidData => "is not UTF-8 text".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_lowercase()
        }
    }
}

/// A number of bytes with two decimals in the largest unit that it fills: `1.46 KiB`.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut amount, mut unit) = (bytes as f64, None);
    for name in UNITS {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = Some(name);
    }
    unit.map_or_else(|| format!("{bytes} B"), |unit| format!("{amount:.2} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit() {
        assert_eq!([15, 1_500, 1_500_000_000].map(human_bytes), ["15 B", "1.46 KiB", "1.40 GiB"]);
    }
}
