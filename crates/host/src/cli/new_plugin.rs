//! `compflow new-plugin`.

use clap::{Args, ValueEnum};
use compflow_api::Kind;

/// The language of a new plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Rust,
    C,
}

impl Language {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::C => "C",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct NewPluginArgs {
    /// Name of the component and of the folder.
    pub(crate) name: String,
    /// What it is to be.
    #[arg(long, value_parser = ["loader", "composer", "clusterer", "evaluator"])]
    kind: String,
    /// The language.
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    pub(crate) lang: Language,
    /// Where compflow-api comes from: a folder, a git address or a version [default: a copy beside the plugin].
    #[arg(long, value_name = "FROM")]
    pub(crate) api: Option<String>,
}

impl NewPluginArgs {
    pub(crate) fn kind(&self) -> Kind {
        Kind::ALL.into_iter().find(|kind| kind.to_string() == self.kind).unwrap_or(Kind::Clusterer)
    }
}
