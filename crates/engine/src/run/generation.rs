//! The tables of a run and its record are one unit.
//!
//! They are written into a folder of their own, which gets the name [`COMMITTED`] by one rename when everything in it is on
//! the disk: from then on it is what the results folder holds. What follows only puts the files where people look for them. If it
//! is interrupted, whoever looks into the results folder finds the new files where they are, and the next run goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirEntry, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::cache::is_kept;
use super::folder::{CELLS, LARGEST};
use crate::error::{Error, Result};
use crate::files::{
    Output, RANDOM, is_random, open_file, plain, read_file, replaceable, sync_folder, unfinished, write_new,
};

/// Where a finished generation is until its files have their places.
const COMMITTED: &str = ".committed";
/// How the names of folders begin that hold one that is not finished.
const UNCOMMITTED: &str = ".next-";
/// The record, which is put in its place last.
pub(crate) const RECORD: &str = "run.json";

/// The page that a report is, if nobody says where it goes.
const PAGE: &str = "report.html";

/// All tables that there can be.
const TABLES: [&str; 11] = [
    "assignments",
    "clusters",
    "densities",
    "factors",
    "memberships",
    "metrics",
    "runs",
    "selection",
    "singletons",
    "summary",
    "traces",
];

/// Whether a file belongs to a generation; nothing else is put anywhere.
pub(crate) fn belongs(name: &str) -> bool {
    name == RECORD || name.strip_suffix(".parquet").is_some_and(|table| TABLES.contains(&table))
}

/// Files that are written and not yet seen.
#[derive(Debug)]
pub(crate) struct Generation {
    results: PathBuf,
    folder: TempDir,
}

impl Generation {
    /// Begins one in a results folder.
    pub(crate) fn begin(results: &Path) -> io::Result<Self> {
        settle(results)?;
        #[cfg(unix)]
        crate::files::umask::restore();
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNCOMMITTED).rand_bytes(RANDOM);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        Ok(Self { results: results.to_owned(), folder: builder.tempdir_in(results)? })
    }

    /// Writes a file; returns its hash.
    pub(crate) fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut Output<'_>) -> io::Result<()>,
    ) -> io::Result<String> {
        if !belongs(name) {
            return Err(io::Error::other(format!("{name} is none of the files of a generation")));
        }
        Ok(write_new(&self.folder.path().join(name), write)?.to_hex().to_string())
    }

    /// Makes it what the results folder holds.
    pub(crate) fn commit(self) -> io::Result<()> {
        sync_folder(self.folder.path())?;
        std::fs::rename(self.folder.path(), self.results.join(COMMITTED))?;
        // The folder has another name now, and is not to be removed.
        let _ = self.folder.keep();
        sync_folder(&self.results)?;
        settle(&self.results)
    }
}

/// Puts the files of a finished generation where people look for them, and takes away tables of earlier ones that it lacks.
fn settle(results: &Path) -> io::Result<()> {
    let Some(committed) = committed(results)? else { return Ok(()) };
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(&committed)? {
        let (entry, no_file) = (entry?, |name: &str| {
            io::Error::other(format!("{COMMITTED}/{name} is no file of a run: see whose it is, and remove it"))
        });
        let name = entry.file_name().into_string().map_err(|name| no_file(&name.to_string_lossy()))?;
        if !belongs(&name) || !entry.file_type()?.is_file() {
            return Err(no_file(&name));
        }
        can_have(results, &name)?;
        names.insert(name);
    }
    if names.contains(RECORD) {
        let before = tables_of(&results.join(RECORD));
        let now = tables_of(&committed.join(RECORD));
        for name in before.difference(&now).filter(|name| TABLES.contains(&name.as_str())) {
            match std::fs::remove_file(results.join(format!("{name}.parquet"))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    let (record, tables): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name == RECORD);
    for name in tables.into_iter().chain(record) {
        std::fs::rename(committed.join(&name), results.join(&name))?;
    }
    sync_folder(results)?;
    std::fs::remove_dir(&committed)
}

/// Makes sure that the files of a generation can take their places, before anything is computed for them.
pub(super) fn require_places(results: &Path) -> io::Result<()> {
    committed(results)?;
    let tables = TABLES.iter().map(|name| format!("{name}.parquet"));
    tables.chain([RECORD.to_owned()]).try_for_each(|name| can_have(results, &name))
}

/// Whether a file can have its place: nothing but a file is replaced.
fn can_have(results: &Path, name: &str) -> io::Result<()> {
    replaceable(&results.join(name)).map_err(|error| io::Error::other(format!("{name} {}", plain(&error))))
}

/// The folder with a finished generation whose files are not all in their places. A link is none: it might lead to files of
/// somebody else, which would be put among the results.
fn committed(results: &Path) -> io::Result<Option<PathBuf>> {
    let path = results.join(COMMITTED);
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => Ok(Some(path)),
        Ok(_) => {
            Err(io::Error::other(format!("{COMMITTED} is a link or a file, and no folder of ours: remove it")))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names of the tables that a record tells of.
fn tables_of(record: &Path) -> BTreeSet<String> {
    let record = read_file(record, LARGEST).unwrap_or_default();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap_or_default();
    let tables = record.get("tables").and_then(serde_json::Value::as_object);
    tables.into_iter().flat_map(|tables| tables.keys()).cloned().collect()
}

/// A cell that was not finished after this time will not be. Parts of a run write cells at any time, on any machine, and lock
/// nothing; neither a process number nor a lock would tell here whether somebody there is still writing. They are small.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

/// Removes what runs that were killed have left behind, and nothing that another name, or other content, says is somebody
/// else's. Only for who has locked the folder; parts write cells beside it.
pub(super) fn sweep(results: &Path) {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    // What cannot be removed does no harm.
    for entry in entries(results) {
        if is_uncommitted(&entry) {
            let _ = std::fs::remove_dir_all(entry.path());
        } else if is_unfinished(&entry, |name| name == PAGE) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    for entry in entries(&results.join(CELLS)).filter(|entry| is_unfinished(entry, is_kept)) {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        if modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > ABANDONED)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether this is a file that was to get a name of ours.
fn is_unfinished(entry: &DirEntry, is_ours: impl FnOnce(&str) -> bool) -> bool {
    let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
    is_file && entry.file_name().to_str().and_then(unfinished).is_some_and(is_ours)
}

/// Whether this is a generation that is not finished: a folder that is called like one, and holds files of one alone.
fn is_uncommitted(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let is_called = name.to_str().and_then(|name| name.strip_prefix(UNCOMMITTED)).is_some_and(is_random);
    let is_ours = |entry: io::Result<DirEntry>| {
        entry.is_ok_and(|entry| {
            entry.file_type().is_ok_and(|kind| kind.is_file()) && entry.file_name().to_str().is_some_and(belongs)
        })
    };
    is_called
        && entry.file_type().is_ok_and(|kind| kind.is_dir())
        && std::fs::read_dir(entry.path()).is_ok_and(|mut entries| entries.all(is_ours))
}

/// Whether something in a results folder is there for the time being only.
pub(crate) fn is_passing(entry: &DirEntry) -> bool {
    entry.file_name() == COMMITTED || is_uncommitted(entry) || is_unfinished(entry, |name| name == PAGE)
}

/// Where a file of a results folder is now.
pub(crate) fn place(results: &Path, name: &str) -> PathBuf {
    let committed = committed(results).ok().flatten().map(|folder| folder.join(name));
    committed.filter(|path| path.exists()).unwrap_or_else(|| results.join(name))
}

/// Opens a file of a results folder where it is now, even if it is being put in its place.
fn open(results: &Path, name: &str) -> io::Result<File> {
    if let Some(folder) = committed(results).ok().flatten() {
        match open_file(&folder.join(name)) {
            // It may have left meanwhile; it does not come back.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
    }
    open_file(&results.join(name))
}

/// The bytes of the record of a results folder.
pub(crate) fn read_record(results: &Path) -> io::Result<Vec<u8>> {
    let (mut bytes, mut file) = (Vec::new(), open(results, RECORD)?.take(LARGEST));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The highest number of a file that is held open: a process may have a thousand or so, and they are numbered from below.
#[cfg(unix)]
const MOST_HELD: i32 = 256;

/// A table that stays what it is, whatever takes its place.
#[derive(Debug)]
struct Held(File);

impl Held {
    /// `None` if there are enough of them, or it cannot be opened.
    fn open(results: &Path, name: &str) -> Option<Self> {
        let file = open(results, name).ok()?;
        #[cfg(unix)]
        if std::os::fd::AsRawFd::as_raw_fd(&file) > MOST_HELD {
            return None;
        }
        Some(Self(file))
    }

    /// The same file once more, with a position of its own.
    fn again(&self) -> io::Result<File> {
        #[cfg(target_os = "linux")]
        return File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.0)));
        #[cfg(not(target_os = "linux"))]
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The tables of a results folder, and what their content must be.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) folder: PathBuf,
    /// BLAKE3 of each.
    pub(crate) hashes: BTreeMap<String, String>,
    /// Those that were opened when this was made: a run may replace them at any time.
    held: Arc<BTreeMap<String, Held>>,
}

impl Tables {
    /// Of a results folder whose record has these hashes. What cannot be opened is noticed by whoever reads it.
    pub(crate) fn open_all(folder: &Path, hashes: &BTreeMap<String, String>) -> Self {
        let held = |name: &String| Some((name.clone(), Held::open(folder, &format!("{name}.parquet"))?));
        Self {
            folder: folder.to_owned(),
            hashes: hashes.clone(),
            held: Arc::new(
                hashes.keys().filter(|name| TABLES.contains(&name.as_str())).filter_map(held).collect(),
            ),
        }
    }

    /// Whether the run has such a table.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.hashes.contains_key(name)
    }

    /// A table's file, if its content is what the run wrote, and what to call it.
    ///
    /// # Errors
    /// If it is missing, or was changed or damaged since.
    pub(crate) fn open(&self, name: &str) -> Result<(File, PathBuf)> {
        let path = self.folder.join(format!("{name}.parquet"));
        let Some(known) = self.hashes.get(name) else {
            let text = "the run has no such table; has it finished?";
            return Err(Error::request(format!("{}: {text}", path.display())));
        };
        let unreadable = |error: io::Error| Error::request(format!("{}: {}", path.display(), plain(&error)));
        let held = self.held.get(name).and_then(|held| held.again().ok());
        let opened = held.map_or_else(|| open(&self.folder, &format!("{name}.parquet")), Ok);
        let mut file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let text = "is missing; run the pipeline again, finished cells are kept";
                Error::request(format!("{} {text}", path.display()))
            }
            _ => unreadable(error),
        })?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer).map_err(unreadable)? {
                0 => break,
                length => hasher.update(&buffer[..length]),
            };
        }
        if hasher.finalize().to_hex().as_str() != known {
            let text = "is not what the run wrote: it was damaged or changed since; run the pipeline again, finished cells are kept";
            return Err(Error::request(format!("{} {text}", path.display())));
        }
        file.rewind().map_err(unreadable)?;
        Ok((file, path))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn generation(results: &Path, text: &str, names: &[&str]) -> Generation {
        let next = Generation::begin(results).unwrap();
        let tables: BTreeMap<&str, &str> = names.iter().map(|&name| (name, "")).collect();
        for name in names {
            next.write(&format!("{name}.parquet"), |file| file.write_all(text.as_bytes())).unwrap();
        }
        let record = serde_json::json!({ "name": text, "tables": tables });
        next.write(RECORD, |file| write!(file, "{record}")).unwrap();
        next
    }

    fn names(results: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(results).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn one_that_is_not_committed_leaves_nothing() {
        let results = tempfile::tempdir().unwrap();
        drop(generation(results.path(), "first", &["runs"]));
        assert!(names(results.path()).is_empty());
        let killed = generation(results.path(), "first", &["runs"]).folder.keep();
        assert!(
            killed.exists() && std::fs::read_dir(results.path()).unwrap().all(|entry| is_passing(&entry.unwrap()))
        );
        sweep(results.path());
        assert!(names(results.path()).is_empty());
    }

    #[test]
    fn nothing_is_swept_that_is_not_ours() {
        let results = tempfile::tempdir().unwrap();
        let key = blake3::hash(b"").to_hex().to_string();
        let write = |name: &str| {
            let path = results.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = File::create(&path).unwrap();
            file.set_modified(std::time::SystemTime::now() - 2 * ABANDONED).unwrap();
        };
        let theirs = [
            "thesis.tmp".to_owned(),
            "thesis.abc123.tmp".to_owned(),
            ".next-chapter/one".to_owned(),
            ".next-abc123/runs.parquet".to_owned(),
            ".next-abc123/one".to_owned(),
            ".next-abc124".to_owned(),
            "cells/experiment.tmp".to_owned(),
            "cells/experiment.cell.abc123.tmp".to_owned(),
            format!("cells/{key}.cell"),
            format!("cells/{key}.draft.abc123.tmp"),
        ];
        let ours = [
            "report.html.abc123.tmp".to_owned(),
            ".next-abc125/runs.parquet".to_owned(),
            format!("cells/{key}.cell.abc123.tmp"),
            format!("cells/{key}.failed.abc123.tmp"),
        ];
        theirs.iter().chain(&ours).for_each(|name| write(name));
        sweep(results.path());
        for name in &theirs {
            assert!(results.path().join(name).exists(), "{name} is gone");
        }
        for name in &ours {
            assert!(!results.path().join(name).exists(), "{name} is there");
        }
    }

    #[test]
    fn wherever_it_is_interrupted_the_whole_of_one_generation_is_seen() {
        let read = |results: &Path, name: &str| std::fs::read_to_string(place(results, name)).unwrap();
        // How many files had their place before the end.
        for moved in 0..=3 {
            let results = tempfile::tempdir().unwrap();
            let folder = results.path();
            generation(folder, "first", &["metrics", "runs"]).commit().unwrap();
            let next = generation(folder, "second", &["metrics", "runs"]);
            std::fs::rename(next.folder.keep(), folder.join(COMMITTED)).unwrap();
            for name in ["metrics.parquet", "runs.parquet", RECORD].iter().take(moved) {
                std::fs::rename(folder.join(COMMITTED).join(name), folder.join(name)).unwrap();
            }
            for name in ["metrics.parquet", "runs.parquet"] {
                assert_eq!(read(folder, name), "second", "{moved} of 3");
            }
            assert!(read(folder, RECORD).contains("second"));
            settle(folder).unwrap();
            assert_eq!(names(folder), ["metrics.parquet", "run.json", "runs.parquet"]);
            assert_eq!(read(folder, "runs.parquet"), "second");
        }
    }

    #[test]
    fn a_table_that_is_no_longer_made_is_gone() {
        let results = tempfile::tempdir().unwrap();
        generation(results.path(), "first", &["memberships", "runs"]).commit().unwrap();
        generation(results.path(), "second", &["runs"]).commit().unwrap();
        assert_eq!(names(results.path()), ["run.json", "runs.parquet"]);
    }

    #[test]
    fn a_changed_table_is_not_read() {
        let results = tempfile::tempdir().unwrap();
        let next = Generation::begin(results.path()).unwrap();
        let hash = next.write("runs.parquet", |file| file.write_all(b"content")).unwrap();
        next.commit().unwrap();
        let hashes = BTreeMap::from([("runs".to_owned(), hash)]);
        let tables = Tables::open_all(results.path(), &hashes);
        let (mut file, _) = tables.open("runs").unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
        // One that takes its place is for those who come later.
        let next = Generation::begin(results.path()).unwrap();
        next.write("runs.parquet", |file| file.write_all(b"another")).unwrap();
        next.commit().unwrap();
        assert!(tables.open("runs").is_ok());
        let tables = || Tables::open_all(results.path(), &hashes);
        assert!(tables().open("runs").unwrap_err().to_string().contains("is not what the run wrote"));
        std::fs::remove_file(results.path().join("runs.parquet")).unwrap();
        let tables = tables();
        assert!(tables.open("runs").unwrap_err().to_string().contains("is missing"));
        assert!(tables.open("metrics").unwrap_err().to_string().contains("has it finished?"));
    }
}
