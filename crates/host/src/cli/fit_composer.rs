//! `compflow fit-composer`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::values::parse_count;

#[derive(Debug, Args)]
pub(crate) struct FitComposerArgs {
    /// Labelled embeddings: files, or quoted patterns whose files are read as if they were one. Labels of different trials, or of
    /// different DATA with trials, are different labels.
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<String>,
    /// The weights to write, for `[composer] use = "bilinear"`.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The names of the columns, e.g. embedding=vec,truth=tags,trial=session,weight=w; `trial=` for none, embedding='d*' for a
    /// column of every dimension, truth='is_*' or truth=anna,ben for columns of 0 and 1 [default: embedding=embedding,truth=labels, and
    /// trial=trial if there is one; all examples count the same].
    #[arg(long, value_name = "COLUMN=NAME,...", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Take texts of labels apart at this: with `,` the text "anna,ben" is a set of two.
    #[arg(long, value_name = "SEPARATOR")]
    pub(crate) split: Option<String>,
    /// What the pipeline's `space` will do to vectors before distances are taken.
    #[arg(long, value_enum, default_value_t = Normalization::None)]
    pub(crate) normalize: Normalization,
    /// The loader [default: by the ending of the file].
    #[arg(long, value_name = "NAME")]
    pub(crate) loader: Option<String>,
    /// The loader's parameters, a JSON object [default for npy: {"labels": "{stem}-labels.npy"}, beside the data].
    #[arg(long, value_name = "JSON")]
    pub(crate) params: Option<String>,
    /// Judge this composer, too, e.g. bilinear='{"weights": "trained.safetensors"}'; may be given several times.
    #[arg(long, value_name = "NAME[=JSON]")]
    pub(crate) composer: Vec<String>,
    /// Which g the file holds: the fitted one, or c·(a + b) as weights with W₁ = c·I.
    #[arg(long, value_enum, default_value_t = Weights::Fitted)]
    pub(crate) write: Weights,
    /// The source of randomness, where not everything can be tried.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// How many threads to use [default: all cores]; no result depends on it.
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(crate) threads: Option<u32>,
    /// Print everything that was found out as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show nothing but errors and the judgement.
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// What a space does to vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Normalization {
    /// Nothing.
    None,
    /// Division by their Euclidean norm.
    L2,
}

/// What a file of weights can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Weights {
    /// The fitted g.
    Fitted,
    /// c·(a + b).
    ScaledSum,
}
