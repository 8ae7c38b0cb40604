//! `compflow test-plugin`: does a library behave as a plugin must?

use std::path::PathBuf;

use crate::cli::TestPluginArgs;
use crate::conformance;
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// If there is no such file, or a verdict cannot be printed.
pub(crate) fn run(plugins: &[PathBuf], args: &TestPluginArgs) -> Result<i32, Failure> {
    conformance::test_plugin(plugins, args)
}
