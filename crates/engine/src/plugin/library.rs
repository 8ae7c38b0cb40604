//! From a file to what it offers: all code that opens libraries, and all unsafe code of the engine.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use arrow_buffer::Buffer;
use bytes::Bytes;
use compflow_api::abi::{ABI_SYMBOL, ABI_VERSION, ENTRY_SYMBOL, EntryFn, MAGIC, MIN_LIBRARY_SIZE, RawAbi};
use compflow_api::{ForeignLibrary, Problem, collect_problem, returning_once, with_default_floats};
use libloading::{Library, Symbol};

use crate::error::{Error, Result};

/// Opens a library, which is this file and has this absolute path, and reads its descriptor. The library is never closed again:
/// its components, and threads and destructors it may have left behind, need its code until the process ends. One that is `pinned` is
/// this very file or nothing.
///
/// # Errors
/// Why it is not used, naming versions where they matter; the caller names the file.
pub fn open(path: &Path, file: File, pinned: bool) -> Result<ForeignLibrary> {
    #[cfg(unix)]
    crate::files::umask::remember();
    // SAFETY: loading runs the library's constructors. That is what a user asks for who puts a library named
    // `libcompflow_*` into a plugin folder; nothing can be said about foreign code beyond that.
    let library = foreign(|| unsafe { Library::new(lasting_name(path, file)) })
        // Libraries beside it are found by the folder that is in its path, which may lead to another file by now.
        .or_else(|error| match pinned {
            true => Err(error),
            // SAFETY: as above.
            false => foreign(|| unsafe { Library::new(path) }),
        })
        .map_err(|error| {
            refused(format!("cannot be loaded: {}{}", cause(&error), if pinned { ALONE } else { "" }))
        })?;
    // It must stay loaded even if it is refused below: its constructors have run.
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: the datum is only read as 16 bytes of plain integers, which is what the symbol stands for.
    let abi: Symbol<'_, *const RawAbi> = unsafe { library.get(ABI_SYMBOL) }
        .map_err(|_| refused(format!("is no compflow plugin: it does not export `{ABI_SYMBOL}`")))?;
    // SAFETY: the address of an exported datum is valid as long as the library is loaded; it may be unaligned if
    // the library was not made by our api.
    let abi = unsafe { abi.read_unaligned() };
    check_abi(&abi)?;
    // SAFETY: the magic says that the symbol is ours, hence of this type.
    let entry: Symbol<'_, EntryFn> = unsafe { library.get(ENTRY_SYMBOL) }
        .map_err(|_| refused(format!("is no complete compflow plugin: it does not export `{ENTRY_SYMBOL}`")))?;
    let mut problems: Vec<Problem> = Vec::new();
    // SAFETY: the ABI version has been checked, and the library is never closed; the sink is as `collect_problem` expects.
    let described = foreign(|| unsafe { entry(collect_problem, std::ptr::from_mut(&mut problems).cast()) });
    if described.is_null() {
        let reasons: Vec<String> = problems.iter().map(Problem::to_string).collect();
        return Err(refused(format!("failed to describe its components: {}", reasons.join("; "))));
    }
    // SAFETY: as above.
    unsafe { ForeignLibrary::from_raw(described) }.map_err(|error| refused(format!("cannot be used: {error}")))
}

/// What follows where a library cannot be loaded that has to be a certain file.
pub(super) const ALONE: &str =
    "; what a pipeline requires is loaded alone, and not with libraries that lie beside it";

/// Runs code of a library: constructors may change how the processor rounds, as those of a library built with -ffast-math do, and
/// may fork.
fn foreign<R>(call: impl FnOnce() -> R) -> R {
    returning_once(|| with_default_floats(call))
}

/// A name of an open file that leads to it whatever becomes of its own, where there are such names. The file stays open: what
/// has the same name as something loaded before is taken for that.
#[cfg(target_os = "linux")]
fn lasting_name(_path: &Path, file: File) -> PathBuf {
    use std::os::fd::IntoRawFd;
    // By number and not as `self`, so that a debugger finds it, too.
    format!("/proc/{}/fd/{}", std::process::id(), file.into_raw_fd()).into()
}

/// Elsewhere there are none.
#[cfg(not(target_os = "linux"))]
fn lasting_name(path: &Path, _file: File) -> PathBuf {
    path.to_owned()
}

fn refused(reason: String) -> Error {
    Error::Library(reason)
}

fn check_abi(abi: &RawAbi) -> Result<()> {
    if abi.magic != MAGIC {
        let found = String::from_utf8_lossy(&abi.magic).escape_debug().to_string();
        return Err(refused(format!(
            "is no compflow plugin: `{ABI_SYMBOL}` begins with \"{found}\", not \"compflow\""
        )));
    }
    if abi.abi_version != ABI_VERSION {
        let older = if abi.abi_version < ABI_VERSION { "the plugin" } else { "compflow" };
        return Err(refused(format!(
            "was built for version {} of the plugin interface, and this compflow has version {ABI_VERSION}: \
             rebuild {older} with the newer compflow-api",
            abi.abi_version
        )));
    }
    if abi.size < MIN_LIBRARY_SIZE {
        return Err(refused(format!(
            "has a truncated descriptor: {} bytes, at least {MIN_LIBRARY_SIZE} expected",
            abi.size
        )));
    }
    Ok(())
}

/// The loader's own words; the error itself only says that dlopen failed.
fn cause(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// The content of a file that nobody writes to any more, without reading it; nobody can write to what is returned either.
///
/// # Errors
/// If it cannot be mapped.
pub(crate) fn map(file: &File) -> io::Result<Buffer> {
    // SAFETY: the file has no name, and the process that has made it is done with it: nobody changes or shortens it.
    let mapped = unsafe { memmap2::Mmap::map(file) }?;
    Ok(Buffer::from(Bytes::from_owner(mapped)))
}

/// Calls a function when the process crashes, on the thread that does, before it ends as it would have. The function must
/// keep to what handlers of signals may do.
#[cfg(unix)]
pub fn on_crash(handler: extern "C" fn(libc::c_int)) {
    for signal in [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV] {
        // SAFETY: an action of zeros is one without flags, and all of its fields that matter are set; the handler is a
        // function of the signature that is called without `SA_SIGINFO`.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as libc::sighandler_t;
            // On a stack of its own, as the thread's may be full; once, so that the same signal then ends the process.
            action.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND | libc::SA_NODEFER;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Calls a function when somebody ends the process by `exit`.
#[cfg(unix)]
pub fn on_exit(handler: extern "C" fn()) {
    // SAFETY: the function lives as long as the process.
    unsafe { libc::atexit(handler) };
}

/// The stream that C calls stdout.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn c_stdout() -> *mut libc::FILE {
    unsafe extern "C" {
        #[cfg_attr(target_os = "macos", link_name = "__stdoutp")]
        static stdout: *mut libc::FILE;
    }
    // SAFETY: the C library declares it so, and sets it before any code runs.
    unsafe { stdout }
}

/// Lets what libraries print leave the process line by line, as on a terminal: it ends without their being asked to finish.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub fn print_lines() {
    // SAFETY: the stream is open, or it refuses; it brings a buffer of its own.
    unsafe { libc::setvbuf(c_stdout(), std::ptr::null_mut(), libc::_IOLBF, 0) };
}

/// Lets what libraries have printed leave the process, whole lines or not.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub fn flush_stdout() {
    // SAFETY: the stream is open, or it refuses.
    unsafe { libc::fflush(c_stdout()) };
}

/// Elsewhere the stream has no name that is known.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn print_lines() {}

/// Likewise.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn flush_stdout() {}

/// Ends the process at once, without what libraries want to be done before.
#[cfg(unix)]
pub(crate) fn exit(code: libc::c_int) -> ! {
    // SAFETY: it needs nothing, and does not return.
    unsafe { libc::_exit(code) }
}

/// Bytes that all libraries and the host have allocated and not freed, where the allocator counts them: a sanitizer's if
/// one stands in, or glibc's.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn allocated() -> Option<usize> {
    use libloading::os::unix::{Library, Symbol};
    // SAFETY: the sanitizers' interface declares the symbol so: <sanitizer/allocator_interface.h>.
    let sanitizer: Result<Symbol<unsafe extern "C" fn() -> usize>, _> =
        unsafe { Library::this().get("__sanitizer_get_current_allocated_bytes") };
    if let Ok(allocated_bytes) = sanitizer {
        // SAFETY: it only reads a counter, as does the other.
        return Some(unsafe { allocated_bytes() });
    }
    // SAFETY: as above.
    let info = unsafe { libc::mallinfo2() };
    Some(info.uordblks + info.hblkhd)
}

/// Elsewhere nobody counts.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn allocated() -> Option<usize> {
    None
}

/// Who runs this program, as a number.
#[cfg(unix)]
pub(super) fn user() -> u32 {
    // SAFETY: it only reads a number of the process, and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_mismatch_names_both_numbers_and_which_side_to_rebuild() {
        let refused =
            |abi_version, size| check_abi(&RawAbi { magic: MAGIC, abi_version, size }).unwrap_err().to_string();
        assert!(check_abi(&RawAbi { magic: MAGIC, abi_version: ABI_VERSION, size: 4096 }).is_ok());
        assert_eq!(
            refused(0, 56),
            "was built for version 0 of the plugin interface, and this compflow has version 1: \
             rebuild the plugin with the newer compflow-api"
        );
        assert!(refused(9, 56).contains("rebuild compflow with"));
        assert_eq!(refused(1, 16), "has a truncated descriptor: 16 bytes, at least 56 expected");
    }
}
