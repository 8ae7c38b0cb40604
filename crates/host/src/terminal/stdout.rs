//! The program's own stdout. Libraries share the process, and what they print there would end up in the user's tables: so the
//! descriptor that they know leads to stderr, and nobody but the program has the real one.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The real one, once it has been taken away from everybody else.
static OWN: OnceLock<File> = OnceLock::new();

/// Leads what others print to stderr. Before any library is opened.
#[cfg(unix)]
pub(crate) fn take() {
    use std::os::fd::AsFd;
    // Without one of the two there is nothing to lead anywhere.
    if let Ok(own) = io::stdout().as_fd().try_clone_to_owned()
        && rustix::stdio::dup2_stdout(io::stderr()).is_ok()
    {
        let _ = OWN.set(own.into());
    }
}

/// Elsewhere it stays where it is.
#[cfg(not(unix))]
pub(crate) fn take() {}

/// A handle of its own on the real one.
#[cfg(unix)]
pub(crate) fn handle() -> io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::AsFd;
    match OWN.get() {
        Some(own) => own.as_fd().try_clone_to_owned(),
        None => io::stdout().as_fd().try_clone_to_owned(),
    }
}

/// A path under which the real one is, if that is what a path means: the names that the system has for it lead to stderr.
pub(crate) fn real(path: &Path) -> PathBuf {
    #[cfg(unix)]
    if let Some(own) = OWN.get()
        && ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
    {
        return PathBuf::from(format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(own)));
    }
    path.to_owned()
}

/// Whether the real one is a terminal.
pub(crate) fn is_terminal() -> bool {
    OWN.get().map_or_else(|| io::stdout().is_terminal(), File::is_terminal)
}

/// Writes to the real one.
///
/// # Errors
/// If it cannot be written to.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    match OWN.get() {
        Some(mut own) => own.write_all(bytes),
        None => {
            let mut stdout = io::stdout();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        }
    }
}
