//! `compflow why`.

use clap::Args;

use super::pipeline::PipelineArgs;

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArgs,
    /// Only these cells: DATA/CLUSTERER, a clusterer or a data set.
    pub(crate) cell: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
