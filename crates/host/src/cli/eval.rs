//! `compflow eval`.

use clap::Args;

use crate::output::Format;

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// Predicted sets: FILE or FILE:COLUMN, the column being `clusters` if not named. It holds lists, or single labels;
    /// FILE:'spk_*' and FILE:anna,ben are columns of 0 and 1, one for each label.
    pub(crate) pred: String,
    /// True sets: FILE or FILE:COLUMN, the column being `labels` if not named; as for the predictions.
    pub(crate) truth: String,
    /// Take strings apart at this: with `,` the string "anna,ben" is a set of two.
    #[arg(long, value_name = "SEPARATOR")]
    pub(crate) split: Option<String>,
    /// Match rows by this column of both files [default: `id`, if both have it].
    #[arg(long, value_name = "COLUMN", conflicts_with = "order")]
    pub(crate) id: Option<String>,
    /// Match rows by their order, even if both files have a column `id`.
    #[arg(long)]
    pub(crate) order: bool,
    /// Score the trials in this column of both files one by one [default: `trial`, if both have it]; '' scores all rows as one.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) trial: Option<String>,
    /// Only predictions with this value in this column; may be given several times.
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub(crate) filter: Vec<String>,
    /// Only this evaluator; may be given several times [default: all].
    #[arg(long, value_name = "NAME")]
    pub(crate) evaluator: Vec<String>,
    /// Format of the scores on stdout.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}
