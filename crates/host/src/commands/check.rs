//! `compflow check`: everything short of running.

use std::path::{Path, PathBuf};

use compflow_engine::Cancel;

use super::{prepare, print};
use crate::cli::PipelineArgs;
use crate::failure::{self, Failure};
use crate::terminal::Terminal;

/// Runs the command.
///
/// # Errors
/// If a verdict cannot be printed.
pub(crate) fn run(plugins: &[PathBuf], files: &[PathBuf], set: &[String]) -> Result<i32, Failure> {
    let mut code = 0;
    for file in files {
        match check(plugins, file, set) {
            Ok(()) => code = code.max(print(&format!("{}: ok\n", file.display()))?),
            Err(failure) => {
                failure::show(&failure);
                code = failure::exit_code(&failure);
            }
        }
    }
    Ok(code)
}

fn check(plugins: &[PathBuf], file: &Path, set: &[String]) -> Result<(), Failure> {
    let args = PipelineArgs { file: file.to_owned(), set: set.to_vec(), ..PipelineArgs::default() };
    prepare(plugins, &args, &Terminal::shared(false), &Cancel::new()).map(|_| ())
}
