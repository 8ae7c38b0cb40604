//! `compflow completions`: a script with which a shell completes.

use clap::CommandFactory;
use clap_complete::Shell;

use super::print;
use crate::cli::Cli;
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// If it cannot be printed.
pub(crate) fn run(shell: Shell) -> Result<i32, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "compflow", &mut script);
    print(&String::from_utf8_lossy(&script))
}
