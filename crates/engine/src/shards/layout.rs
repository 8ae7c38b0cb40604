//! Where examples are: files, cut into shards at multiples of a batch. Messages name them by their whole paths: whoever reads them
//! may be in another folder, or look for the path of the shard.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use compflow_api::BATCH_ROWS;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::plain;

/// Some rows of a file, and how the file was when the shards were made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The file.
    pub path: PathBuf,
    /// The first of its rows.
    pub first: u64,
    /// How many.
    pub rows: u64,
    stamp: Stamp,
}

/// What tells a file from what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    length: u64,
    /// Nanoseconds since 1970; 0 where that is not known.
    modified: u64,
}

impl Stamp {
    /// Of a file as it is now.
    ///
    /// # Errors
    /// If it is not there.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let metadata = std::fs::metadata(path)
            .map_err(|error| Error::data(format!("{}: {}", path.display(), plain(&error))))?;
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |elapsed| elapsed.as_nanos() as u64);
        Ok(Self { length: metadata.len(), modified })
    }

    /// Fails if the file is no longer what it was before something, saying what that means.
    ///
    /// # Errors
    /// Naming the file.
    pub(super) fn require(self, path: &Path, since: &str) -> Result<()> {
        match Self::of(path)? == self {
            true => Ok(()),
            false => Err(Error::data(format!("{} has changed {since}", path.display()))),
        }
    }
}

impl Piece {
    /// Fails if the file is no longer what it was.
    ///
    /// # Errors
    /// Naming the file.
    pub(super) fn require_unchanged(&self) -> Result<()> {
        let since = "since the first pass: what was summed up before is of other examples";
        self.stamp.require(&self.path, since)
    }

    /// How it is called in messages.
    pub(super) fn about(&self) -> String {
        format!("{}, rows {} to {}", self.path.display(), self.first, self.first + self.rows - 1)
    }
}

/// Some of all examples, one after the other: whole batches, but for the last of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// The number of its first example among all, a multiple of the rows of a batch.
    pub first: u64,
    /// Where they are.
    pub pieces: Vec<Piece>,
}

impl Shard {
    /// How many examples.
    pub fn rows(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.rows).sum()
    }

    /// As bytes, to be sent to others.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| Error::request(format!("these bytes are no shard: {error}")))
    }
}

/// A file, and what was found when its rows were counted.
#[derive(Debug, Clone)]
pub(super) struct Counted {
    pub(super) path: PathBuf,
    pub(super) rows: u64,
    pub(super) stamp: Stamp,
}

/// All examples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// How many.
    pub rows: u64,
    /// How long each is.
    pub dim: usize,
    /// In order; as many as were asked for, or as there are batches.
    pub shards: Vec<Shard>,
}

impl Layout {
    /// Cuts files, read as if they were one.
    pub(super) fn new(files: &[Counted], dim: usize, shards: usize) -> Result<Self> {
        let rows: u64 = files.iter().map(|file| file.rows).sum();
        if rows == 0 {
            return Err(Error::data("there are no examples in these files"));
        }
        let batches = batches(rows);
        let shards = (shards as u64).clamp(1, batches);
        let begin = |shard: u64| (shard * batches / shards * BATCH_ROWS as u64).min(rows);
        let cut = |shard: u64| {
            let (start, end) = (begin(shard), begin(shard + 1));
            let (mut pieces, mut before) = (Vec::new(), 0);
            for Counted { path, rows, stamp } in files {
                let (from, to) = (start.clamp(before, before + rows), end.clamp(before, before + rows));
                if from < to {
                    let (path, stamp) = (path.clone(), *stamp);
                    pieces.push(Piece { path, first: from - before, rows: to - from, stamp });
                }
                before += rows;
            }
            Shard { first: start, pieces }
        };
        Ok(Self { rows, dim, shards: (0..shards).map(cut).collect() })
    }
}

/// How many batches so many rows are.
pub(super) fn batches(rows: u64) -> u64 {
    rows.div_ceil(BATCH_ROWS as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(path: &Path, rows: u64) -> Counted {
        Counted { path: path.to_owned(), rows, stamp: Stamp::of(path).unwrap() }
    }

    #[test]
    fn shards_are_whole_batches_whatever_files_they_are_in() {
        let folder = tempfile::tempdir().unwrap();
        let files = [100_000, 7, 250_000, 65_536].map(|rows| {
            let path = folder.path().join(format!("{rows}"));
            std::fs::write(&path, "x").unwrap();
            counted(&path, rows)
        });
        for wanted in [1, 2, 3, 6, 7, 100] {
            let layout = Layout::new(&files, 4, wanted).unwrap();
            assert_eq!((layout.rows, layout.shards.len()), (415_543, wanted.min(7)));
            let mut next = 0;
            for shard in &layout.shards {
                assert_eq!((shard.first, shard.first % BATCH_ROWS as u64), (next, 0));
                assert!(shard.rows() > 0);
                next += shard.rows();
            }
            assert_eq!(next, 415_543);
            // Every row of every file once, in order.
            for Counted { path, rows, .. } in &files {
                let pieces = layout.shards.iter().flat_map(|shard| &shard.pieces);
                let end = pieces.filter(|piece| piece.path == *path).fold(0, |end, piece| {
                    assert_eq!(piece.first, end);
                    end + piece.rows
                });
                assert_eq!(end, *rows);
            }
        }
        assert!(Layout::new(&[], 4, 2).is_err());
    }

    #[test]
    fn a_file_that_has_changed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        std::fs::write(&path, "one").unwrap();
        let file = counted(&path, 10);
        let layout = Layout::new(std::slice::from_ref(&file), 4, 1).unwrap();
        let piece = &layout.shards[0].pieces[0];
        piece.require_unchanged().unwrap();
        std::fs::write(&path, "other").unwrap();
        let text = piece.require_unchanged().unwrap_err().to_string();
        assert!(text.contains("a.parquet has changed since the first pass"), "{text}");
        let text = file.stamp.require(&path, "while its rows were counted").unwrap_err().to_string();
        assert!(text.ends_with("a.parquet has changed while its rows were counted"), "{text}");
        std::fs::remove_file(&path).unwrap();
        assert!(piece.require_unchanged().unwrap_err().to_string().ends_with("there is no such file"));
    }
}
