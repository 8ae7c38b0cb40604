//! `compflow status`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The pipeline file.
    pub(crate) file: PathBuf,
    /// The results folder [default: results/NAME].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// As the parts were given it; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// As the parts were given it; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
