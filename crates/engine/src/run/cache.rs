//! Finished cells, kept in the results folder under a key of everything they depend on.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::stability::Stability;
use crate::files::write_whole;

/// First bytes of a kept cell; the number changes when [`Outcome`] does.
const HEADER: &[u8] = b"compflow cell 3\n";
/// Likewise of [`Stability`].
const STABILITY: &[u8] = b"compflow stability 1\n";
/// Likewise of why there is none.
const FAILURE: &[u8] = b"compflow failure 1\n";

/// How the names of kept cells end.
const CELL: &str = "cell";
/// And those that say why there is none.
const FAILED: &str = "failed";

/// What failed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) about: String,
    pub(super) error: String,
}

/// The keys in a folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) kept: HashSet<String>,
    pub(super) failed: HashSet<String>,
}

/// A folder of finished cells.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The cells of a results folder.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(crate) fn open(results: &Path) -> io::Result<Self> {
        let folder = results.join("cells");
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// The cells of a results folder that may not exist yet.
    pub(crate) fn peek(results: &Path) -> Self {
        Self { folder: results.join("cells") }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.{CELL}"))
    }

    /// Whether a cell is kept, without reading it.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.path(key).exists()
    }

    /// A kept cell; one that is damaged counts as missing and is computed again.
    pub(crate) fn load(&self, key: &str) -> Option<Outcome> {
        load(&self.path(key), HEADER)
    }

    /// How stable something was found to be.
    pub(super) fn load_stability(&self, key: &str) -> Option<Stability> {
        load(&self.stability(key), STABILITY)
    }

    /// Keeps how stable something is.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn store_stability(&self, key: &str, stability: &Stability) -> io::Result<()> {
        store(&self.stability(key), STABILITY, stability)
    }

    /// Why what would be kept under a key is not there, if it was tried and failed.
    pub(super) fn failure(&self, key: &str) -> Option<Failure> {
        load(&self.failed(key), FAILURE)
    }

    /// Remembers for others who look into the folder that something failed. Nobody depends on it: what failed is tried again.
    pub(super) fn note_failure(&self, key: &str, about: &str, error: &str) {
        let failure = Failure { about: about.to_owned(), error: error.to_owned() };
        let _ = store(&self.failed(key), FAILURE, &failure);
    }

    /// Forgets that something failed.
    pub(super) fn forget_failure(&self, key: &str) {
        let _ = std::fs::remove_file(self.failed(key));
    }

    fn failed(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.{FAILED}"))
    }

    /// The keys of all that is kept, or failed, without reading any of it: two sets.
    pub(super) fn listing(&self) -> Listing {
        let mut listing = Listing::default();
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some((key, ending)) = name.to_str().and_then(|name| name.split_once('.')) else { continue };
            match ending {
                CELL => listing.kept.insert(key.to_owned()),
                FAILED => listing.failed.insert(key.to_owned()),
                _ => false,
            };
        }
        listing
    }

    fn stability(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.stability"))
    }

    /// Keeps a cell. The checksum stands in for waiting until it is on the disk: a cell that was torn by a power
    /// failure is noticed and computed again.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn store(&self, key: &str, outcome: &Outcome) -> io::Result<()> {
        store(&self.path(key), HEADER, outcome)
    }
}

fn load<T: DeserializeOwned>(path: &Path, header: &[u8]) -> Option<T> {
    let bytes = std::fs::read(path).ok()?;
    let (hash, payload) = bytes.strip_prefix(header)?.split_at_checked(blake3::OUT_LEN)?;
    if blake3::hash(payload).as_bytes() != hash {
        return None;
    }
    postcard::from_bytes(payload).ok()
}

fn store<T: Serialize>(path: &Path, header: &[u8], value: &T) -> io::Result<()> {
    let payload = postcard::to_stdvec(value).map_err(io::Error::other)?;
    write_whole(path, false, |file| {
        file.write_all(header)?;
        file.write_all(blake3::hash(&payload).as_bytes())?;
        file.write_all(&payload)
    })
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

        let path = cache.path("a");
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(cache.load("a").is_none());
        std::fs::write(&path, &bytes[..20]).unwrap();
        assert!(cache.load("a").is_none());
    }

    #[test]
    fn what_failed_is_told_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path()).unwrap();
        cache.note_failure("b", "made trial 0 KM", "no");
        std::fs::write(folder.path().join("cells/c.cell.17-0.tmp"), "half").unwrap();
        let failure = Failure { about: "made trial 0 KM".to_owned(), error: "no".to_owned() };
        assert_eq!(cache.failure("b"), Some(failure));
        let listing = cache.listing();
        assert!(listing.failed.contains("b") && listing.kept.is_empty(), "{listing:?}");
        cache.forget_failure("b");
        assert_eq!(cache.failure("b"), None);
    }
}
