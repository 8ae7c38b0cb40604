//! Why a command did not do what it was asked, and the exit code that says so.

use crate::interrupt;

/// How a command ends that does not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request was wrong: problems, already rendered.
    Problems(String),
    /// The request was wrong.
    Request(String),
    /// The request was right, and it failed.
    Run(String),
    /// The user stopped it.
    Interrupted,
}

impl Failure {
    pub(crate) fn request(text: impl Into<String>) -> Self {
        Self::Request(text.into())
    }

    pub(crate) fn run(text: impl Into<String>) -> Self {
        Self::Run(text.into())
    }

    /// 1 a cell or a write failed, 2 the request was wrong, 130 interrupted.
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Self::Problems(_) | Self::Request(_) => 2,
            Self::Run(_) => 1,
            Self::Interrupted => interrupt::EXIT_CODE,
        }
    }

    /// What to print.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Problems(text) => text.clone(),
            Self::Request(text) | Self::Run(text) => format!("error: {text}"),
            Self::Interrupted => "interrupted".to_owned(),
        }
    }
}
