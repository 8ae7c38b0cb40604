//! The files that results depend on, as they were when they were read first.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{hash_file, in_pieces, open_file};
use crate::cancel::Cancel;

/// A file that was read whole.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    /// Where it was, links resolved.
    pub(crate) path: PathBuf,
    pub(crate) hash: String,
    pub(crate) bytes: Arc<[u8]>,
}

#[derive(Debug, Default)]
struct Known {
    hashes: BTreeMap<PathBuf, String>,
    /// By the path that somebody asked for: a link that leads elsewhere later is still what it was.
    contents: BTreeMap<PathBuf, Content>,
}

/// The files that results depend on. Clones are the same list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inputs(Arc<Mutex<Known>>);

impl Inputs {
    /// With contents that somebody else has read, by the paths that were asked for.
    pub(crate) fn handed_on(contents: impl IntoIterator<Item = (PathBuf, PathBuf, Arc<[u8]>)>) -> Self {
        let mut known = Known::default();
        for (asked, path, bytes) in contents {
            let hash = blake3::hash(&bytes).to_hex().to_string();
            known.hashes.insert(path.clone(), hash.clone());
            known.contents.insert(asked, Content { path, hash, bytes });
        }
        Self(Arc::new(Mutex::new(known)))
    }

    /// The hash of a file, which from now on counts as an input.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn hash(&self, path: &Path, cancel: &Cancel) -> io::Result<String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hash) = known.hashes.get(path) {
            return Ok(hash.clone());
        }
        let hash = hash_file(path, cancel)?;
        known.hashes.insert(path.to_owned(), hash.clone());
        Ok(hash)
    }

    /// The content of a file of at most so many bytes, which from now on counts as an input: it is read once, and afterwards is
    /// what it was.
    ///
    /// # Errors
    /// If it cannot be read, is larger, or is not what was hashed before.
    pub(crate) fn content(&self, asked: &Path, most: u64, cancel: &Cancel) -> io::Result<Content> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(content) = known.contents.get(asked) {
            return Ok(content.clone());
        }
        let path = asked.canonicalize().unwrap_or_else(|_| asked.to_owned());
        let file = open_file(&path)?;
        let too_large = || io::Error::other(format!("has more than the {most} bytes that may be used"));
        let size = file.metadata()?.len();
        if size > most {
            return Err(too_large());
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size as usize).map_err(|_| io::ErrorKind::OutOfMemory)?;
        in_pieces(&file, cancel, |piece| {
            // It may grow meanwhile.
            if (bytes.len() + piece.len()) as u64 > most {
                return Err(too_large());
            }
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        let hash = blake3::hash(&bytes).to_hex().to_string();
        if *known.hashes.entry(path.clone()).or_insert_with(|| hash.clone()) != hash {
            return Err(io::Error::other("has changed since it was read first"));
        }
        let content = Content { path, hash, bytes: bytes.into() };
        known.contents.insert(asked.to_owned(), content.clone());
        Ok(content)
    }

    /// Whether an input still has the content that was hashed. Asked after somebody has read it, this says that it was read:
    /// neither times nor lengths do, which whoever writes to a file can set back.
    ///
    /// # Errors
    /// If it cannot be read any more.
    pub(crate) fn is_unchanged(&self, path: &Path, cancel: &Cancel) -> io::Result<bool> {
        let before = self.hash(path, cancel)?;
        Ok(hash_file(path, cancel)? == before)
    }

    /// The hashes of all inputs so far.
    pub(crate) fn all(&self) -> BTreeMap<PathBuf, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).hashes.clone()
    }

    /// Those that were read whole, by the paths that were asked for.
    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contents.clone()
    }

    /// How much memory these take.
    pub(crate) fn bytes(&self) -> u64 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.contents.values().map(|content| content.bytes.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_that_changes_is_noticed_whatever_its_length_and_times_say() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        std::fs::write(&path, "first").unwrap();
        let inputs = Inputs::default();
        let cancel = Cancel::new();
        let hash = inputs.hash(&path, &cancel).unwrap();
        assert!(inputs.is_unchanged(&path, &cancel).unwrap());
        let before = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::write(&path, "other").unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
        assert!(!inputs.is_unchanged(&path, &cancel).unwrap());
        assert_eq!(inputs.hash(&path, &cancel).unwrap(), hash, "what was hashed first is what counts");
        // Nor is it handed on as what was hashed.
        let text = inputs.content(&path, 10, &cancel).unwrap_err().to_string();
        assert_eq!(text, "has changed since it was read first");
    }

    #[test]
    fn a_content_is_what_it_was_when_it_was_read_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("weights");
        std::fs::write(&path, "first").unwrap();
        let (inputs, cancel) = (Inputs::default(), Cancel::new());
        let text = inputs.content(&path, 4, &cancel).unwrap_err().to_string();
        assert_eq!(text, "has more than the 4 bytes that may be used");
        let first = inputs.content(&path, 5, &cancel).unwrap();
        assert_eq!((&first.path, &*first.bytes), (&path, &b"first"[..]));
        assert_eq!(inputs.all()[&path], hash_file(&path, &cancel).unwrap());
        for change in [|path: &Path| std::fs::write(path, "other"), |path: &Path| std::fs::remove_file(path)] {
            change(&path).unwrap();
            let again = inputs.content(&path, 5, &cancel).unwrap();
            assert_eq!((again.bytes, again.hash), (first.bytes.clone(), first.hash.clone()));
        }
        // Whoever it is handed on to has neither read it nor can.
        let contents = inputs.contents().into_iter().map(|(asked, content)| (asked, content.path, content.bytes));
        let elsewhere = Inputs::handed_on(contents);
        assert_eq!(*elsewhere.content(&path, 5, &cancel).unwrap().bytes, *b"first");
        assert_eq!(elsewhere.all(), inputs.all());
    }

    #[test]
    fn a_file_that_says_itself_that_it_is_too_large_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let inputs = Inputs::default();
        let text = inputs.content(&path, 1 << 39, &Cancel::new()).unwrap_err().to_string();
        assert_eq!(text, "has more than the 549755813888 bytes that may be used");
        assert_eq!(inputs.bytes(), 0);
        File::create(&path).unwrap().set_len(7).unwrap();
        inputs.content(&path, 1 << 33, &Cancel::new()).unwrap();
        assert_eq!(inputs.bytes(), 7);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_that_leads_elsewhere_is_what_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other, link] = ["one", "other", "link"].map(|name| folder.path().join(name));
        std::fs::write(&one, "1").unwrap();
        std::fs::write(&other, "2").unwrap();
        std::os::unix::fs::symlink(&one, &link).unwrap();
        let (inputs, cancel) = (Inputs::default(), Cancel::new());
        let first = inputs.content(&link, 1, &cancel).unwrap();
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert_eq!(inputs.content(&link, 1, &cancel).unwrap().bytes, first.bytes);
        assert_eq!(*inputs.content(&other, 1, &cancel).unwrap().bytes, *b"2");
    }
}
