//! Files that appear whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempPath};

/// How the names of files end that are not finished.
const UNFINISHED: &str = ".tmp";
/// How many random letters and digits stand before that.
pub(crate) const RANDOM: usize = 6;

/// The name that an unfinished file would have got, if it is called as we call them.
pub(crate) fn unfinished(name: &str) -> Option<&str> {
    let (name, random) = name.strip_suffix(UNFINISHED)?.rsplit_once('.')?;
    is_random(random).then_some(name)
}

/// Whether this is what stands in a name so that nobody can guess it.
pub(crate) fn is_random(text: &str) -> bool {
    text.len() == RANDOM && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A file that is being written. It knows its content's hash, and what first went wrong: writers of tables wrap that in errors
/// that say something else.
#[derive(Debug)]
pub struct Output<'f>(BufWriter<Tracked<'f>>);

#[derive(Debug)]
struct Tracked<'f> {
    file: &'f File,
    hasher: blake3::Hasher,
    failure: Option<io::Error>,
}

impl Write for Tracked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write(bytes) {
            Ok(written) => {
                self.hasher.update(&bytes[..written]);
                Ok(written)
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::Interrupted && self.failure.is_none() {
                    self.failure = error.raw_os_error().map(io::Error::from_raw_os_error);
                }
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<'f> Output<'f> {
    /// Writes all of a file; returns its hash.
    fn write_to(
        file: &'f File,
        durable: bool,
        write: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<blake3::Hash> {
        let tracked = Tracked { file, hasher: blake3::Hasher::new(), failure: None };
        let mut output = Self(BufWriter::new(tracked));
        let written = write(&mut output).and_then(|()| output.flush());
        let (tracked, _) = output.0.into_parts();
        match (written, tracked.failure) {
            (Ok(()), _) => {}
            (Err(_), Some(failure)) => return Err(failure),
            (Err(error), None) => return Err(error),
        }
        if durable {
            file.sync_all()?;
        }
        Ok(tracked.hasher.finalize())
    }
}

/// Writes a file that is not there yet, and waits until it is on the disk; returns its hash. Half of it stays behind if that fails.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write_new(
    path: &Path,
    write: impl FnOnce(&mut Output<'_>) -> io::Result<()>,
) -> io::Result<blake3::Hash> {
    #[cfg(unix)]
    super::umask::restore();
    Output::write_to(&File::create_new(path)?, true, write)
}

/// A file that is written but does not have its name yet; gone if it never gets it.
#[derive(Debug)]
pub(crate) struct Staged {
    temporary: TempPath,
    path: PathBuf,
    durable: bool,
}

impl Staged {
    /// Writes a file under a temporary name that cannot be guessed. `durable` waits until it is on the disk, so that the file is
    /// whole even if the power fails.
    ///
    /// # Errors
    /// If it cannot be written, or something other than a file has its name.
    pub(crate) fn write(
        path: &Path,
        durable: bool,
        write: impl FnOnce(&mut Output<'_>) -> io::Result<()>,
    ) -> io::Result<Self> {
        replaceable(path)?;
        #[cfg(unix)]
        super::umask::restore();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = Builder::new();
        let name = format!("{}.", path.file_name().unwrap_or_default().to_string_lossy());
        builder.prefix(&name).rand_bytes(RANDOM).suffix(UNFINISHED);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let (file, temporary) = builder.tempfile_in(folder)?.into_parts();
        Output::write_to(&file, durable, write)?;
        Ok(Self { temporary, path: path.to_owned(), durable })
    }

    /// Gives the file its name, in the place of one that may have had it.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub(crate) fn commit(self) -> io::Result<()> {
        std::fs::rename(&self.temporary, &self.path)?;
        // The file has another name now, and is not to be removed.
        let _ = self.temporary.keep();
        match self.path.parent() {
            Some(folder) if self.durable => sync_folder(folder),
            _ => Ok(()),
        }
    }
}

/// Writes a file so that it appears whole or not at all. What is no file, such as a pipe or a terminal, is written to as it is.
///
/// # Errors
/// If it cannot be written; the file that was there before is still there then.
pub fn write_whole(
    path: &Path,
    durable: bool,
    write: impl FnOnce(&mut Output<'_>) -> io::Result<()>,
) -> io::Result<()> {
    if is_stream(path) {
        return Output::write_to(&OpenOptions::new().write(true).open(path)?, false, write).map(|_| ());
    }
    Staged::write(path, durable, write)?.commit()
}

/// The same for what nobody but us has given its name: a pipe there is not ours, and nobody may ever read from it.
///
/// # Errors
/// If it cannot be written, or something other than a file has its name.
pub fn write_file(path: &Path, write: impl FnOnce(&mut Output<'_>) -> io::Result<()>) -> io::Result<()> {
    Staged::write(path, false, write)?.commit()
}

/// Whether a path is something to write to that is neither a file nor a folder. Links to such things are followed only where the
/// system has its own: anywhere else somebody may have put one there that leads to a disk.
fn is_stream(path: &Path) -> bool {
    let is_own = |folder: &Path| ["/dev", "/dev/fd", "/proc/self/fd"].iter().any(|own| folder == Path::new(own));
    let found = match path.parent().is_some_and(is_own) {
        true => std::fs::metadata(path),
        false => std::fs::symlink_metadata(path),
    };
    found.is_ok_and(|found| !found.is_file() && !found.is_dir() && !found.is_symlink())
}

/// Nothing but files is replaced, and no link is followed: somebody else may have put it there.
pub(crate) fn replaceable(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(found) if found.is_file() => Ok(()),
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if found.is_symlink() => {
            Err(io::Error::other("is a link; name the file that it points to, or remove it"))
        }
        Ok(_) => Err(io::Error::other("is no file, and is not replaced by one")),
    }
}

/// Waits until the names in a folder are on the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems know no such thing.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        done => done,
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
            Err(io::Error::other("given up"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "given up");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_not_finished_is_known_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let staged = Staged::write(&folder.path().join("a.cell"), false, |file| file.write_all(b"x")).unwrap();
        let name = staged.temporary.file_name().unwrap().to_str().unwrap();
        assert_eq!(unfinished(name), Some("a.cell"));
        for name in ["a.cell", "thesis.tmp", "a.cell.tmp", "a.cell.12345.tmp", "a.cell.12-456.tmp", ".tmp"] {
            assert_eq!(unfinished(name), None, "{name}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn links_and_folders_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let failed = write_whole(&link, false, |file| file.write_all(b"new")).unwrap_err();
        assert!(failed.to_string().starts_with("is a link"), "{failed}");
        assert_eq!(std::fs::read(&target).unwrap(), b"precious");
        // Nor is a link to something that is no file written through.
        let device = folder.path().join("device");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        let failed = write_whole(&device, false, |file| file.write_all(b"new")).unwrap_err();
        assert!(failed.to_string().starts_with("is a link"), "{failed}");
        write_whole(Path::new("/dev/null"), false, |file| file.write_all(b"new")).unwrap();
        let failed = write_whole(folder.path(), false, |file| file.write_all(b"new")).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_what_is_said_and_a_device_stays_one() {
        use std::os::unix::fs::FileTypeExt;
        let failed = write_whole(Path::new("/dev/full"), false, |file| {
            // As a writer of tables does, which turns every error into one of its own.
            file.write_all(&vec![0; 1 << 20]).map_err(|_| io::Error::other("invalid thrift"))
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(std::fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    }

    #[test]
    #[cfg(unix)]
    fn others_may_read_what_the_umask_lets_them() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("ours"), folder.path().join("plain"));
        write_whole(&ours, false, |file| file.write_all(b"x")).unwrap();
        std::fs::write(&plain, "x").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
