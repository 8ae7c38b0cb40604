//! `compflow worker`: cells of a run, in a process of their own. Not for people: a run starts it.

use std::path::PathBuf;

use compflow_engine::run::Isolation;

use super::plugins::{own_folders, scanned, search_path};
use crate::cli::RunArgs;
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// If nobody has started it who says what to do.
#[cfg(unix)]
pub(crate) fn run(plugins: &[PathBuf]) -> Result<i32, Failure> {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use compflow_engine::files::plain;

    let unusable = |error: std::io::Error| Failure::request(format!("nobody has started this: {}", plain(&error)));
    let channel = crate::terminal::stdout::handle().map_err(unusable)?;
    let data = std::io::stdin().as_fd().try_clone_to_owned().map_err(unusable)?;
    let libraries = |pins: &_| Ok(scanned(&search_path(plugins)?, pins));
    compflow_engine::run::serve(UnixStream::from(channel), &data.into(), libraries, super::variables())?;
    Ok(0)
}

/// Elsewhere no run starts it.
#[cfg(not(unix))]
pub(crate) fn run(_plugins: &[PathBuf]) -> Result<i32, Failure> {
    Err(Failure::request("there are no worker processes on this system"))
}

/// How a run starts it: this very program, with the same plugins.
pub(crate) fn isolation(plugins: &[PathBuf], args: &RunArgs) -> Option<Isolation> {
    let mut words = Vec::new();
    for folder in plugins {
        words.extend(["--plugins".into(), folder.clone().into_os_string()]);
    }
    words.push("worker".into());
    Some(Isolation {
        program: std::env::current_exe().ok()?,
        args: words,
        trusted: own_folders(),
        isolate: args.isolate.then_some(true),
        timeout: args.timeout,
    })
}
