//! A call that returns once. Whoever forks inside a call returns from it in two processes, and the second would go on as if it were
//! the first: answer in its place, and write what it writes.

/// Runs `call`, and returns in the process that has made the call, alone: another one that comes back from it ends, without a word
/// and without what libraries want to be done at an end, which is the first one's.
pub fn returning_once<R>(call: impl FnOnce() -> R) -> R {
    let process = std::process::id();
    let returned = call();
    #[cfg(unix)]
    if std::process::id() != process {
        // SAFETY: it needs nothing, and does not return.
        unsafe { libc::_exit(0) };
    }
    #[cfg(not(unix))]
    let _ = process;
    returned
}
