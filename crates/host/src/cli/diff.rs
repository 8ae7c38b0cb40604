//! `compflow diff`.

use std::path::PathBuf;

use clap::Args;

use crate::output::Format;

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The results folder to start from.
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The results folder to compare with it.
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Format of the comparison on stdout.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}
