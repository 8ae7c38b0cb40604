//! `compflow assign`.

use std::path::PathBuf;

use clap::Args;

use super::values::parse_count;

#[derive(Debug, Args)]
pub(crate) struct AssignArgs {
    /// The results folder.
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// New examples: .parquet, .arrow, .csv, .tsv, .jsonl or .npy files, a folder or a quoted pattern of them, read as if they
    /// were one.
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<String>,
    /// The Parquet file to write: a row for every example.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Whose clusters [default: the only clusterer of the run].
    #[arg(long, value_name = "NAME")]
    pub(crate) clusterer: Option<String>,
    /// On which of the run's data they were found [default: the only one].
    #[arg(long = "data", value_name = "NAME")]
    pub(crate) of: Option<String>,
    /// In which trial of that data [default: the only one].
    #[arg(long, value_name = "N")]
    pub(crate) trial: Option<u32>,
    /// The largest union considered, also of clusters that were never seen together [default: as in the run].
    #[arg(long, value_name = "D")]
    pub(crate) degree: Option<usize>,
    /// Consider only sets that occur in the run.
    #[arg(long)]
    pub(crate) seen_only: bool,
    /// Leave examples unassigned that are farther from their cluster than this share of the run's own, e.g. 0.99.
    #[arg(long, value_name = "SHARE")]
    pub(crate) novel: Option<f64>,
    /// The column of embeddings, or 'd*' for a column of every dimension [default: as in the run's data].
    #[arg(long, value_name = "COLUMN")]
    pub(crate) embedding: Option<String>,
    /// The column of identifiers [default: that of the run's data, if it is there, else the rows are numbered].
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,
    /// Further columns to copy, e.g. file,start,end.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Only examples with this value in this column; may be given several times.
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub(crate) filter: Vec<String>,
    /// How many threads to use [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(crate) threads: Option<u32>,
    /// Show nothing but errors.
    #[arg(long)]
    pub(crate) quiet: bool,
}
