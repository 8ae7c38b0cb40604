//! Ctrl-C: requests the end of all work; a second one ends the process at once, and so does the first while there is no work
//! that could be lost: components are made and files are read by then, which may take any time and hear nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use compflow_engine::Cancel;

use crate::failure::Failure;

/// Exit code of an interrupted run, as shells have it for SIGINT.
pub(crate) const EXIT_CODE: i32 = 130;

/// Ends the process at once. Threads of a component that does not look whether it is cancelled may still be running, in
/// code and on memory that an orderly exit would take away from under them.
pub(crate) fn exit(code: i32) -> ! {
    #[cfg(unix)]
    signal_hook::low_level::exit(code);
    #[cfg(not(unix))]
    std::process::exit(code)
}

/// Whether there is work that should come to an end in order.
static WORKING: AtomicBool = AtomicBool::new(false);

/// From now on there is work that should come to an end in order.
pub(crate) fn working() {
    WORKING.store(true, Ordering::Relaxed);
}

/// From now on Ctrl-C requests the end of the work that is given this token.
///
/// # Errors
/// If the operating system does not let us.
pub(crate) fn listen() -> Result<Cancel, Failure> {
    let cancel = Cancel::new();
    let pressed = cancel.clone();
    ctrlc::set_handler(move || {
        let again = pressed.request() > 0;
        let working = WORKING.load(Ordering::Relaxed);
        if !working {
            #[cfg(unix)]
            super::crash::say(b"interrupted\n");
        }
        if again || !working {
            exit(EXIT_CODE);
        }
    })
    .map_err(|error| Failure::run(format!("cannot listen for Ctrl-C: {error}")))?;
    Ok(cancel)
}
