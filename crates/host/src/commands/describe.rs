//! `compflow describe`: what libraries offer, opened in a process of their own. Not for people: a scan for libraries starts it.

use std::ffi::OsString;

use compflow_engine::plugin::{Asked, answered};

use super::print_json;
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// If nobody listens.
pub(crate) fn run(libraries: &[OsString]) -> Result<i32, Failure> {
    // Whoever has started this may be ended at any time, and a library may take for ever.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    for library in Asked::of_args(libraries) {
        let json = serde_json::to_string(&answered(&library)).map_err(|error| Failure::run(error.to_string()))?;
        print_json(&format!("{json}\n"))?;
    }
    Ok(0)
}
