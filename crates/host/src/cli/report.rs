//! `compflow report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Results folders; a page shows one, Markdown any number.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// The file to write [default: DIR/report.html; Markdown goes to stdout].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Open the page when it is made.
    #[arg(long)]
    pub(crate) open: bool,
    /// Begin with this trial's points, e.g. n150/3; may be given several times [default: the first of every data set].
    #[arg(long, value_name = "DATA/TRIAL")]
    pub(crate) cell: Vec<String>,
    /// A TOML file of numbers to stand beside ours, such as a paper's (Markdown only).
    #[arg(long, value_name = "FILE")]
    pub(crate) reference: Option<PathBuf>,
    /// Write the matched-pair tests between all methods of each run to DIR/NAME.csv (Markdown only).
    #[arg(long, value_name = "DIR")]
    pub(crate) tests: Option<PathBuf>,
    /// What to make.
    #[arg(long, value_enum, default_value_t = Pages::Html)]
    pub(crate) format: Pages,
    /// What Markdown holds.
    #[arg(long, value_enum, default_value_t = Layout::Page)]
    pub(crate) layout: Layout,
}

/// What `report --format md` can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// A page: a table for every data set, and what is different from the reference.
    Page,
    /// A table for each run: a row for every method, a group of columns for every data set.
    Wide,
    /// A table for each run: a row for every data set and method.
    Long,
}

/// What `report` can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pages {
    /// A page with figures.
    Html,
    /// Tables in Markdown.
    Md,
}
