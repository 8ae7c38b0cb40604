//! `compflow demo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The bundled examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoName {
    /// Handwritten digits, one or two over one another, as raw pixels.
    Digits,
    /// Recordings of one or two people.
    Speech,
    /// Documents about one topic or two.
    Topics,
}

impl DemoName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Digits => "digits",
            Self::Speech => "speech",
            Self::Topics => "topics",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Which example.
    #[arg(value_enum, default_value_t = DemoName::Digits)]
    pub(crate) name: DemoName,
    /// The folder for its data, its pipeline and its results [default: compflow-demo/NAME].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Open the report when it is done.
    #[arg(long)]
    pub(crate) open: bool,
}
