//! What commands on a pipeline have in common.

use std::path::PathBuf;

use clap::Args;

use super::values::{parse_count, parse_size};

/// What `run` and `plan` have in common.
#[derive(Debug, Default, Args)]
pub(crate) struct PipelineArgs {
    /// The pipeline file; `-` is standard input.
    pub(crate) file: PathBuf,
    /// The results folder [default: results/NAME].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Lay a value over the pipeline, e.g. clusterer.NAME.k=12; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Only this clusterer or this data; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// How many cells to run at the same time [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(crate) jobs: Option<u32>,
    /// How many threads a cell may use [default: the cores that the jobs leave].
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(crate) threads: Option<u32>,
    /// How much memory all cells may use together, e.g. 8GB [default: three quarters of the machine's, or of what a container or job has].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
}
