//! `compflow run`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use compflow_engine::run::{Part, Phase};

use super::pipeline::PipelineArgs;
use super::values::parse_seconds;
use crate::output::Format;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArgs,
    /// Compute everything again, whatever is kept.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Treat a method that did not converge as failed.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Run all cells in processes of their own, so that a component that crashes costs only its cell [default: if one is of a
    /// library that did not come with compflow].
    #[arg(long)]
    pub(crate) isolate: bool,
    /// End a cell that takes longer, e.g. 90 or 2.5; it has failed. Cells then run in processes of their own.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Format of the results on stdout.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Show nothing but errors and the results.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Compute only a share of the cells, e.g. 2/8, and write no tables; all parts may run at the same time, on machines that
    /// share the results folder. A run without it then finds them and writes the tables.
    #[arg(long, value_name = "I/N", conflicts_with = "format")]
    pub(crate) part: Option<Part>,
    /// The phase that the part belongs to, if the pipeline tunes [default: the one that the results folder is in].
    #[arg(long, value_enum, requires = "part")]
    pub(crate) phase: Option<PhaseName>,
}

/// What cells are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PhaseName {
    /// They settle grids.
    Tune,
    /// They are the experiment itself; tuning must have ended.
    Test,
}

impl PhaseName {
    pub(crate) fn phase(self) -> Phase {
        match self {
            Self::Tune => Phase::Tune,
            Self::Test => Phase::Test,
        }
    }
}
