//! Ctrl-C: raises a flag that all work looks at; a second one ends the process at once.

use std::sync::atomic::{AtomicU32, Ordering};

static INTERRUPTED: AtomicU32 = AtomicU32::new(0);

/// Exit code of an interrupted run, as shells have it for SIGINT.
pub(crate) const EXIT_CODE: i32 = 130;

/// Non-zero once the user wants to stop.
pub(crate) fn flag() -> &'static AtomicU32 {
    &INTERRUPTED
}

/// Whether the user wants to stop.
pub(crate) fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed) != 0
}

/// From now on Ctrl-C raises the flag.
///
/// # Errors
/// If the operating system does not let us.
pub(crate) fn listen() -> Result<(), String> {
    ctrlc::set_handler(|| {
        if INTERRUPTED.fetch_add(1, Ordering::Relaxed) > 0 {
            std::process::exit(EXIT_CODE);
        }
    })
    .map_err(|error| format!("cannot listen for Ctrl-C: {error}"))
}
