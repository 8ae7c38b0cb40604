//! Files: content hashes, writing that leaves a file whole or not at all, and words for messages about them.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::cancel::Cancel;

pub(crate) use self::inputs::Inputs;
pub use self::staged::{Output, write_file, write_whole};
pub(crate) use self::staged::{RANDOM, Staged, is_random, replaceable, sync_folder, unfinished, write_new};

mod inputs;
pub(crate) mod pattern;
pub(crate) mod sealed;
mod staged;
#[cfg(unix)]
pub(crate) mod umask;

/// Makes a folder and those above it, as far as they are missing, for those whom the user lets into new folders.
///
/// # Errors
/// If one cannot be made.
pub fn make_folders(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    umask::restore();
    std::fs::create_dir_all(path)
}

/// BLAKE3 of a file's content, in hexadecimal.
///
/// # Errors
/// If it cannot be read, or is no longer wanted.
pub(crate) fn hash_file(path: &Path, cancel: &Cancel) -> io::Result<String> {
    hash_of(&open_file(path)?, cancel)
}

/// BLAKE3 of the content of a file that is open, in hexadecimal.
///
/// # Errors
/// If it cannot be read, or is no longer wanted.
pub(crate) fn hash_of(file: &File, cancel: &Cancel) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    in_pieces(file, cancel, |piece| {
        hasher.update(piece);
        Ok(())
    })?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Hands on a file piece by piece, as long as it is wanted.
fn in_pieces(mut file: &File, cancel: &Cancel, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            length => each(&buffer[..length])?,
        }
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

/// Refuses what is no file: opening a pipe waits for somebody who writes to it, and reading a device may never end.
///
/// # Errors
/// Naming what it is.
pub(crate) fn require_file(path: &Path) -> io::Result<Metadata> {
    a_file(std::fs::metadata(path)?)
}

fn a_file(found: Metadata) -> io::Result<Metadata> {
    match found.is_file() {
        true => Ok(found),
        false if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        false => Err(io::Error::other("is a pipe or a device, not a file")),
    }
}

/// Opens a file, and nothing else: waits for nobody, even if it becomes something else meanwhile.
///
/// # Errors
/// If it cannot be opened, or is no file.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    require_file(path)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    a_file(file.metadata()?)?;
    Ok(file)
}

/// The last bytes of a file, at most so many.
///
/// # Errors
/// If it cannot be read, or is no file.
pub(crate) fn read_end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open_file(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The content of a file of at most so many bytes.
///
/// # Errors
/// If it cannot be read, is no file, or is larger.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_file(path)?;
    let size = file.metadata()?.len();
    if size > most {
        return Err(too_large(most));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size as usize).map_err(|_| io::ErrorKind::OutOfMemory)?;
    read_rest(file, bytes, most)
}

/// All of something that is read, at most so many bytes.
///
/// # Errors
/// If it cannot be read, or is more.
pub(crate) fn read_all(input: impl Read, most: u64) -> io::Result<Vec<u8>> {
    read_rest(input, Vec::new(), most)
}

fn read_rest(input: impl Read, mut bytes: Vec<u8>, most: u64) -> io::Result<Vec<u8>> {
    input.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

fn too_large(most: u64) -> io::Error {
    io::Error::other(format!("has more than {most} bytes"))
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
        io::ErrorKind::FileTooLarge => {
            "the file would be larger than the limit on the size of files (ulimit -f)".to_owned()
        }
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
    #[cfg(target_os = "linux")]
    fn nothing_but_a_file_is_read_and_no_more_than_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_file(&path, 5).unwrap(), b"12345");
        assert_eq!(read_file(&path, 4).unwrap_err().to_string(), "has more than 4 bytes");
        let text = read_file(Path::new("/dev/zero"), 4).unwrap_err().to_string();
        assert_eq!(text, "is a pipe or a device, not a file");
        assert_eq!(read_file(folder.path(), 4).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        // Files that say that they are empty.
        assert!(!read_file(Path::new("/proc/self/stat"), 1 << 20).unwrap().is_empty());
        assert!(read_file(Path::new("/proc/self/stat"), 4).is_err());
    }

    #[test]
    fn bytes_have_a_unit() {
        assert_eq!([15, 1_500, 1_500_000_000].map(human_bytes), ["15 B", "1.46 KiB", "1.40 GiB"]);
    }
}
