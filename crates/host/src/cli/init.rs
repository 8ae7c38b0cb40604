//! `compflow init`.

use std::path::PathBuf;

use clap::Args;

/// What is written if nobody says what.
pub(crate) const PIPELINE: &str = "pipeline.toml";

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Parquet, Arrow, CSV, TSV, JSON lines or npy files, each a data set; files that are parts of one are given as a folder or
    /// a pattern in quotes.
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<String>,
    /// The pipeline to write.
    #[arg(long, value_name = "FILE", default_value = PIPELINE)]
    pub(crate) out: PathBuf,
    /// The column of embeddings, or 'd*' for a column of every dimension [default: the one that holds lists of numbers, or
    /// columns that are numbered].
    #[arg(long, value_name = "COLUMN")]
    pub(crate) embedding: Option<String>,
    /// The column of true sets, or 'is_*' for a column of 0 and 1 for every label [default: one that is called labels, truth or
    /// the like, or the only one that holds lists]; `none` for data without.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) truth: Option<String>,
    /// Take texts of labels apart at this: with `,` the text "anna,ben" is a set of two.
    #[arg(long, value_name = "SEPARATOR")]
    pub(crate) split: Option<String>,
    /// Overwrite the pipeline if it is there.
    #[arg(long)]
    pub(crate) force: bool,
}
