//! Finished cells, kept in the results folder under a key of everything they depend on.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::outcome::Outcome;
use super::stability::Stability;
use crate::files::write_whole;

/// First bytes of a kept cell; the number changes when [`Outcome`] does.
const HEADER: &[u8] = b"compflow cell 3\n";
/// Likewise of [`Stability`].
const STABILITY: &[u8] = b"compflow stability 1\n";

/// A folder of finished cells.
#[derive(Debug)]
pub(crate) struct Cache {
    /// `None` if nothing is kept.
    folder: Option<PathBuf>,
}

impl Cache {
    /// The cells of a results folder.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(crate) fn open(results: &Path) -> io::Result<Self> {
        let folder = results.join("cells");
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder: Some(folder) })
    }

    /// The cells of a results folder that may not exist yet.
    pub(crate) fn peek(results: &Path) -> Self {
        Self { folder: Some(results.join("cells")) }
    }

    /// Has nothing, and keeps nothing.
    pub(super) fn nowhere() -> Self {
        Self { folder: None }
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{key}.cell")))
    }

    /// Whether a cell is kept, without reading it.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.path(key).is_some_and(|path| path.exists())
    }

    /// A kept cell; one that is damaged counts as missing and is computed again.
    pub(crate) fn load(&self, key: &str) -> Option<Outcome> {
        load(&self.path(key)?, HEADER)
    }

    /// How stable something was found to be.
    pub(super) fn load_stability(&self, key: &str) -> Option<Stability> {
        load(&self.stability(key)?, STABILITY)
    }

    /// Keeps how stable something is.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn store_stability(&self, key: &str, stability: &Stability) -> io::Result<()> {
        store(self.stability(key), STABILITY, stability)
    }

    fn stability(&self, key: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{key}.stability")))
    }

    /// Keeps a cell. The checksum stands in for waiting until it is on the disk: a cell that was torn by a power
    /// failure is noticed and computed again.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn store(&self, key: &str, outcome: &Outcome) -> io::Result<()> {
        store(self.path(key), HEADER, outcome)
    }
}

fn load<T: DeserializeOwned>(path: &Path, header: &[u8]) -> Option<T> {
    from_payload(header, &std::fs::read(path).ok()?)
}

fn store<T: Serialize>(path: Option<PathBuf>, header: &[u8], value: &T) -> io::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let bytes = to_payload(header, value)?;
    write_whole(&path, false, |file| file.write_all(&bytes))
}

/// A value as bytes: the header, a checksum, the value.
pub(crate) fn to_payload<T: Serialize>(header: &[u8], value: &T) -> io::Result<Vec<u8>> {
    let payload = postcard::to_stdvec(value).map_err(io::Error::other)?;
    Ok([header, blake3::hash(&payload).as_bytes(), &payload].concat())
}

/// The value of [`to_payload`]; `None` if the header is another or anything is damaged.
pub(crate) fn from_payload<T: DeserializeOwned>(header: &[u8], bytes: &[u8]) -> Option<T> {
    let (hash, payload) = bytes.strip_prefix(header)?.split_at_checked(blake3::OUT_LEN)?;
    if blake3::hash(payload).as_bytes() != hash {
        return None;
    }
    postcard::from_bytes(payload).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use compflow_api::Clustering;

    use super::*;

    #[test]
    fn a_cell_comes_back_whole_and_a_damaged_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path()).unwrap();
        let outcome = Outcome {
            clustering: Clustering::from_labels(&[1, 0, 1]),
            distances: vec![0.5, 0.25, 0.0],
            seconds: 1.5,
            peak_bytes: 7,
            warnings: vec!["careful".to_owned()],
            scores: BTreeMap::from([("k".to_owned(), vec![("cri".to_owned(), 0.75)])]),
        };
        assert!(cache.load("a").is_none());
        cache.store("a", &outcome).unwrap();
        let back = cache.load("a").unwrap();
        assert_eq!(back.clustering.assignments, outcome.clustering.assignments);
        assert_eq!((back.distances, back.scores), (outcome.distances, outcome.scores));

        let path = cache.path("a").unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(cache.load("a").is_none());
        std::fs::write(&path, &bytes[..20]).unwrap();
        assert!(cache.load("a").is_none());
    }
}
