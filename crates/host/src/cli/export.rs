//! `compflow export`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What `export` can write.
#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// Who speaks when, as RTTM: a line for every turn of a speaker. The data needs `file`, `start` and `end`.
    Rttm(RttmArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RttmArgs {
    /// The results folder.
    #[arg(value_name = "RUN")]
    pub(crate) folder: PathBuf,
    /// What was found in this data [default: the only one].
    #[arg(long, value_name = "NAME")]
    pub(crate) data: Option<String>,
    /// Only this trial [default: all, if no recording is in two of them].
    #[arg(long, value_name = "N")]
    pub(crate) trial: Option<u32>,
    /// What this clusterer found [default: the only one].
    #[arg(long, value_name = "NAME")]
    pub(crate) clusterer: Option<String>,
    /// The file to write; `-` is stdout.
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
}
