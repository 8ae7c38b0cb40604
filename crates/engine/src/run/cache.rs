//! Finished cells, kept in the results folder under a key of everything they depend on.

use std::collections::HashSet;
use std::fmt;
use std::fs::DirEntry;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compflow_api::Level;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::folder::{CELLS, inside};
use super::outcome::Outcome;
use super::stability::Measured;
use crate::cancel::Cancel;
use crate::files::{display, read_end, read_file, write_file};
use crate::observer::Observer;

/// A kind of files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sort {
    /// How their names end, after the key.
    pub(crate) ending: &'static str,
    /// Their first bytes.
    pub(crate) header: &'static str,
    /// What follows; it changes when what is in them does.
    pub(crate) version: &'static str,
}

impl Sort {
    /// A value under a key: the header, a checksum, the value.
    pub(crate) fn bytes<T: Serialize>(self, key: &str, value: &T) -> io::Result<Vec<u8>> {
        let payload = postcard::to_stdvec(value).map_err(io::Error::other)?;
        let checksum = checksum(key, &payload);
        Ok([self.header.as_bytes(), self.version.as_bytes(), checksum.as_bytes(), &payload].concat())
    }

    /// The value of [`bytes`](Self::bytes), if they are whole.
    pub(crate) fn value<T: DeserializeOwned>(self, key: &str, bytes: &[u8]) -> Option<T> {
        match self.content(bytes, key) {
            Content::Payload(payload) => postcard::from_bytes(payload).ok(),
            Content::Foreign | Content::Damaged => None,
        }
    }

    /// What stands in a file under a key.
    fn content<'b>(self, bytes: &'b [u8], key: &str) -> Content<'b> {
        let Some(rest) = bytes.strip_prefix(self.header.as_bytes()) else { return Content::Damaged };
        let Some(rest) = rest.strip_prefix(self.version.as_bytes()) else {
            let number = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let is_number = number > 0 && rest.get(number) == Some(&b'\n');
            // No other version has both this layout and this checksum: the number itself is what is damaged.
            let is_ours = is_number && whole(&rest[number + 1..], key).is_some();
            return if is_number && !is_ours { Content::Foreign } else { Content::Damaged };
        };
        whole(rest, key).map_or(Content::Damaged, Content::Payload)
    }
}

/// An [`Outcome`].
const CELL: Sort = Sort { ending: "cell", header: "compflow cell ", version: "4\n" };
/// A [`Stability`](super::stability::Stability), or why there is none.
const STABILITY: Sort = Sort { ending: "stability", header: "compflow stability ", version: "3\n" };
/// A [`Failure`].
const FAILURE: Sort = Sort { ending: "failed", header: "compflow failure ", version: "2\n" };

/// How many bytes at the end of a cell have all of its scores, as a rule.
const END: u64 = 1 << 14;

/// Whether a name is that of a file that is kept here: a key, which is a hash, and what it is.
pub(super) fn is_kept(name: &str) -> bool {
    let sorts = [CELL, STABILITY, FAILURE];
    name.split_once('.').is_some_and(|(key, ending)| {
        key.len() == 64
            && key.bytes().all(|byte| byte.is_ascii_hexdigit())
            && sorts.iter().any(|sort| sort.ending == ending)
    })
}

/// What a file in the folder is.
#[derive(Debug, PartialEq, Eq)]
enum Content<'b> {
    /// What was written under its name.
    Payload(&'b [u8]),
    /// Of another version.
    Foreign,
    /// Neither.
    Damaged,
}

/// What failed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) about: String,
    pub(super) error: String,
}

/// What a look at all files has shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    /// How many are what was written.
    pub(crate) whole: usize,
    /// How many are of other versions of compflow, which this one does not use.
    pub(crate) foreign: usize,
    /// Those that are neither.
    pub(crate) damaged: Vec<PathBuf>,
}

/// The keys in a folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) kept: HashSet<String>,
    pub(super) measured: HashSet<String>,
    pub(super) failed: HashSet<String>,
}

/// A folder of finished cells.
#[derive(Clone)]
pub(crate) struct Cache {
    /// `None` if nothing is kept.
    folder: Option<PathBuf>,
    /// Is told of files that are damaged.
    observer: Option<Arc<dyn Observer>>,
}

impl Cache {
    /// The cells of a results folder.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(crate) fn open(results: &Path, observer: &Arc<dyn Observer>) -> io::Result<Self> {
        Ok(Self { folder: Some(inside(results, CELLS)?), observer: Some(observer.clone()) })
    }

    /// The cells of a results folder that may not exist yet.
    pub(crate) fn peek(results: &Path) -> Self {
        Self { folder: Some(results.join(CELLS)), observer: None }
    }

    /// Has nothing, and keeps nothing.
    pub(super) fn nowhere() -> Self {
        Self { folder: None, observer: None }
    }

    fn path(&self, key: &str, sort: Sort) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{key}.{}", sort.ending)))
    }

    /// What is in the folder.
    fn entries(&self) -> impl Iterator<Item = DirEntry> {
        self.folder.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
    }

    /// Whether a cell is kept, without reading it.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.path(key, CELL).is_some_and(|path| path.exists())
    }

    /// Whether a kept cell has these scores. They stand at its end, so that of many examples next to nothing is read.
    pub(super) fn has_scores(&self, key: &str, scores: &[String]) -> bool {
        let Some(end) = self.path(key, CELL).and_then(|path| read_end(&path, END).ok()) else { return false };
        // With its length in front, no key is taken for the beginning of another.
        let is_in = |score: &String| {
            let written = postcard::to_stdvec(score).unwrap_or_default();
            end.windows(written.len().max(1)).rev().any(|bytes| bytes == written)
        };
        if scores.iter().all(is_in) {
            return true;
        }
        // So many scores that they do not end there.
        let is_all = (end.len() as u64) < END;
        !is_all && self.load(key).is_some_and(|outcome| scores.iter().all(|key| outcome.scores.contains_key(key)))
    }

    /// A kept cell; one that is damaged counts as missing, and the observer is told.
    pub(crate) fn load(&self, key: &str) -> Option<Outcome> {
        self.read(key, CELL)
    }

    /// How stable something was found to be, or why it was refused.
    pub(super) fn load_stability(&self, key: &str) -> Option<Measured> {
        self.read(key, STABILITY)
    }

    /// Keeps how stable something is, or why it is refused.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn store_stability(&self, key: &str, stability: &Measured) -> io::Result<()> {
        self.write(key, STABILITY, stability)
    }

    /// Why what would be kept under a key is not there, if it was tried and failed.
    pub(super) fn failure(&self, key: &str) -> Option<Failure> {
        self.read(key, FAILURE)
    }

    /// Remembers for others who look into the folder that something failed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn note_failure(&self, key: &str, about: &str, error: &str) -> io::Result<()> {
        let failure = Failure { about: about.to_owned(), error: error.to_owned() };
        self.write(key, FAILURE, &failure)
    }

    /// Forgets that something failed.
    pub(super) fn forget_failure(&self, key: &str) {
        let _ = self.path(key, FAILURE).map(std::fs::remove_file);
    }

    /// The keys of all that is kept, measured, or failed, without reading any of it.
    pub(super) fn listing(&self) -> Listing {
        let mut listing = Listing::default();
        for entry in self.entries() {
            let name = entry.file_name();
            let Some((key, ending)) = name.to_str().and_then(|name| name.split_once('.')) else { continue };
            if ending == CELL.ending {
                listing.kept.insert(key.to_owned());
            } else if ending == STABILITY.ending {
                listing.measured.insert(key.to_owned());
            } else if ending == FAILURE.ending {
                listing.failed.insert(key.to_owned());
            }
        }
        listing
    }

    /// Keeps a cell. The checksum stands in for waiting until it is on the disk: a cell that was torn by a power
    /// failure is noticed and computed again.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn store(&self, key: &str, outcome: &Outcome) -> io::Result<()> {
        self.write(key, CELL, outcome)
    }

    fn read<T: DeserializeOwned>(&self, key: &str, sort: Sort) -> Option<T> {
        let path = self.path(key, sort)?;
        let value = match read_file(&path, u64::MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => None,
            Ok(bytes) => match sort.content(&bytes, key) {
                Content::Foreign => return None,
                Content::Damaged => None,
                Content::Payload(payload) => postcard::from_bytes(payload).ok(),
            },
        };
        if let (None, Some(observer)) = (&value, &self.observer) {
            observer.log(Level::Warn, &display(&path), "is damaged; what it kept is computed again");
        }
        value
    }

    fn write<T: Serialize>(&self, key: &str, sort: Sort, value: &T) -> io::Result<()> {
        let Some(path) = self.path(key, sort) else { return Ok(()) };
        let bytes = sort.bytes(key, value)?;
        write_file(&path, |file| file.write_all(&bytes))
    }

    /// Looks at every file.
    ///
    /// # Errors
    /// If the end was requested.
    pub(crate) fn verify(&self, cancel: &Cancel) -> io::Result<Looked> {
        let mut looked = Looked::default();
        for entry in self.entries() {
            let path = entry.path();
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('.'));
            let sorts = [CELL, STABILITY, FAILURE];
            let Some((key, sort)) =
                name.and_then(|(key, end)| Some((key, sorts.into_iter().find(|sort| sort.ending == end)?)))
            else {
                continue;
            };
            if cancel.requested() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match read_file(&path, u64::MAX).as_ref().map(|bytes| sort.content(bytes, key)) {
                Ok(Content::Payload(_)) => looked.whole += 1,
                Ok(Content::Foreign) => looked.foreign += 1,
                // Nobody has written it, or it is gone since.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {}
                Ok(Content::Damaged) | Err(_) => looked.damaged.push(path),
            }
        }
        looked.damaged.sort();
        Ok(looked)
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// For fuzzing: reads bytes as a file of every sort, and as what stands in one behind a checksum that is right.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_anything(bytes: &[u8]) {
    const KEY: &str = "k";
    fn read<T: Serialize + DeserializeOwned>(sort: Sort, bytes: &[u8]) -> Option<T> {
        sort.value::<T>(KEY, bytes);
        let value: T = postcard::from_bytes(bytes).ok()?;
        let whole = sort.bytes(KEY, &value).expect("what was just read");
        Some(sort.value(KEY, &whole).expect("what was just written"))
    }
    if let Some(outcome) = read::<Outcome>(CELL, bytes) {
        let _ = format!("{outcome:?}");
    }
    read::<Measured>(STABILITY, bytes);
    read::<Failure>(FAILURE, bytes);
}

/// What follows a checksum that is right for it.
fn whole<'b>(bytes: &'b [u8], key: &str) -> Option<&'b [u8]> {
    let (hash, payload) = bytes.split_at_checked(blake3::OUT_LEN)?;
    (checksum(key, payload).as_bytes() == hash).then_some(payload)
}

/// Of what is kept under a key: a file under another's name is no better than a damaged one.
fn checksum(key: &str, payload: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update(key.as_bytes()).update(payload).finalize()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use compflow_api::Clustering;

    use super::*;
    use crate::observer::Silent;

    fn observer() -> Arc<dyn Observer> {
        Arc::new(Silent)
    }

    #[test]
    fn a_cell_comes_back_whole_and_a_damaged_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), &observer()).unwrap();
        let outcome = Outcome {
            clustering: Clustering::from_labels(&[1, 0, 1]),
            distances: vec![0.5, 0.25, 0.0],
            seconds: 1.5,
            peak_bytes: 7,
            warnings: vec!["careful".to_owned()],
            scores: BTreeMap::from([("k".to_owned(), vec![("cri".to_owned(), 0.75)])]),
        };
        assert!(cache.load("a").is_none() && !cache.has_scores("a", &[]));
        cache.store("a", &outcome).unwrap();
        let back = cache.load("a").unwrap();
        assert_eq!(back.clustering.assignments, outcome.clustering.assignments);
        assert_eq!((back.distances, back.scores), (outcome.distances.clone(), outcome.scores.clone()));

        // Under another's name it is not what was computed there.
        std::fs::copy(cache.path("a", CELL).unwrap(), cache.path("b", CELL).unwrap()).unwrap();
        assert!(cache.load("b").is_none());
        let damaged = vec![cache.path("b", CELL).unwrap()];
        let looked = cache.verify(&Cancel::default()).unwrap();
        assert_eq!(looked, Looked { whole: 1, foreign: 0, damaged: damaged.clone() });

        // A file of another version is none of ours, and one whose number alone has changed is damaged.
        let of_another = |text: &[u8]| std::fs::write(&damaged[0], text).unwrap();
        of_another(b"compflow cell 3\nwhatever it had there, which was more than a checksum is long");
        let looked = cache.verify(&Cancel::default()).unwrap();
        assert_eq!(looked, Looked { whole: 1, foreign: 1, damaged: Vec::new() });
        for digit in b"012356789" {
            let mut bytes = CELL.bytes("b", &outcome).unwrap();
            bytes[CELL.header.len()] = *digit;
            of_another(&bytes);
            assert_eq!(cache.verify(&Cancel::default()).unwrap().damaged, damaged, "{digit}");
        }

        let path = cache.path("a", CELL).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(cache.load("a").is_none());
        std::fs::write(&path, &bytes[..20]).unwrap();
        assert!(cache.load("a").is_none());
    }

    #[test]
    fn scores_are_found_without_reading_what_is_before_them() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), &observer()).unwrap();
        let key = |number: usize| format!("evaluator {number:03} of these truths");
        for (examples, count) in [(3, 2), (90_000, 2), (3, 900)] {
            let scores = (0..count).map(|number| (key(number), vec![("cri".to_owned(), 0.75)])).collect();
            let clustering = Clustering::from_labels(&vec![0; examples]);
            cache.store("a", &Outcome { clustering, scores, ..Outcome::default() }).unwrap();
            assert!(cache.has_scores("a", &[key(0), key(1)]), "{examples} {count}");
            assert!(!cache.has_scores("a", &[key(0), key(999)]), "{examples} {count}");
            // The beginning of a key is another key.
            assert!(!cache.has_scores("a", &["evaluator 000".to_owned()]), "{examples} {count}");
        }
    }

    #[test]
    fn what_failed_is_told_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), &observer()).unwrap();
        cache.note_failure("b", "made trial 0 KM", "no").unwrap();
        std::fs::write(folder.path().join("cells/c.cell.17-0.tmp"), "half").unwrap();
        let failure = Failure { about: "made trial 0 KM".to_owned(), error: "no".to_owned() };
        assert_eq!(cache.failure("b"), Some(failure));
        let listing = cache.listing();
        assert!(listing.failed.contains("b") && listing.kept.is_empty(), "{listing:?}");
        cache.forget_failure("b");
        assert_eq!(cache.failure("b"), None);
        // Others wait for what is told, so it must not get lost unnoticed.
        std::fs::remove_dir_all(folder.path().join(CELLS)).unwrap();
        assert!(cache.note_failure("b", "made trial 0 KM", "no").is_err());
    }
}
