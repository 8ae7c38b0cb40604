//! `compflow rehearse`: makes components of other people's libraries in a process of its own. Not for people: planning starts it.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use compflow_engine::files::plain;
use compflow_engine::pipeline::Pins;
use compflow_engine::plugin::{Rehearsal, rehearse};

use super::plugins::{own_folders, scanned, search_path};
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// If nobody has started it who says what to make.
#[cfg(unix)]
pub(crate) fn run(plugins: &[PathBuf]) -> Result<i32, Failure> {
    // As in `describe`.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let unusable = |error: std::io::Error| Failure::request(format!("nobody has started this: {}", plain(&error)));
    let answers = File::from(crate::terminal::stdout::handle().map_err(unusable)?);
    let folders = search_path(plugins)?;
    let told = BufReader::new(told().map_err(unusable)?);
    rehearse(told, answers, |pins| scanned(&folders, pins)).map_err(unusable)?;
    Ok(0)
}

/// The real stdin: a component that reads the one that it knows would wait for what is said to this process, and take it away.
#[cfg(unix)]
fn told() -> std::io::Result<File> {
    use std::os::fd::AsFd;
    let own = std::io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(own.into())
}

/// Elsewhere nobody starts it.
#[cfg(not(unix))]
pub(crate) fn run(_plugins: &[PathBuf]) -> Result<i32, Failure> {
    Err(Failure::request("components are not made in processes of their own on this system"))
}

/// How planning starts it: this very program, with the same plugins.
pub(crate) fn rehearsal(plugins: &[PathBuf], pins: Pins) -> Option<Rehearsal> {
    let mut args = Vec::new();
    for folder in plugins {
        args.extend(["--plugins".into(), folder.clone().into_os_string()]);
    }
    args.push("rehearse".into());
    let program = std::env::current_exe().ok().filter(|_| cfg!(unix))?;
    Some(Rehearsal { program, args, trusted: own_folders(), pins })
}
