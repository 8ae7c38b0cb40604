//! `compflow test-plugin`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct TestPluginArgs {
    /// The library file.
    pub(crate) library: PathBuf,
    /// Only this component; may be given several times [default: all].
    #[arg(long, value_name = "NAME")]
    pub(crate) component: Vec<String>,
    /// Parameters to test with, a JSON object, e.g. kmeans='{"k": 4}'; needed where some must be given.
    #[arg(long, value_name = "NAME=JSON")]
    pub(crate) params: Vec<String>,
    /// A file for loaders that read files; NAME=FILE for one of several.
    #[arg(long, value_name = "FILE")]
    pub(crate) path: Vec<String>,
    /// The columns to ask loaders for, e.g. embedding=vec,truth=labels; NAME:COLUMN=SOURCE,... for one of several
    /// [default: those of compflow's own names that the source has].
    #[arg(long, value_name = "COLUMN=SOURCE,...")]
    pub(crate) columns: Vec<String>,
    /// The number of a component: a test of its own, which reports to the one that started it.
    #[arg(long, hide = true, value_name = "N")]
    pub(crate) worker: Option<usize>,
}
