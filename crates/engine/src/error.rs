//! The one error of the engine.

use std::fmt;

use crate::causes::Cause;
use crate::problem::{Problem, Source};

/// What comes back from everything in the engine that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not done.
#[derive(Debug, Clone)]
pub enum Error {
    /// The pipeline is wrong: every problem that could be found, in the order of their places.
    Problems {
        /// Each once; those without a place are last.
        problems: Vec<Problem>,
        /// The texts that the problems' places are in.
        sources: Vec<Source>,
    },
    /// What was asked for cannot be done; nothing was tried.
    Request(String),
    /// It was tried and failed.
    Run(String),
    /// A library is not used, and why. Who reports it names the file.
    Library(String),
    /// Data cannot be used: names the row where one is at fault.
    Data(Box<Problem>),
    /// A component's own words.
    Component(compflow_api::Error),
    /// Somebody [requested](crate::Cancel::request) the end.
    Interrupted,
}

impl Error {
    /// A wrong request.
    pub fn request(text: impl Into<String>) -> Self {
        Self::Request(text.into())
    }

    /// A right request that failed.
    pub fn run(text: impl Into<String>) -> Self {
        Self::Run(text.into())
    }

    /// What is wrong with data, if nothing else can be said of its cause.
    pub(crate) fn data(text: impl Into<String>) -> Self {
        Self::fault(Cause::Data, text)
    }

    /// What is wrong with data.
    pub(crate) fn fault(cause: Cause, text: impl Into<String>) -> Self {
        Self::Data(Box::new(Problem::without_place(cause, text)))
    }

    /// Adds what would do to an error about data.
    #[must_use]
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        match self {
            Self::Data(problem) => Self::Data(Box::new(problem.help(help))),
            other => other,
        }
    }

    /// All problems of a pipeline, sorted by place, each once.
    pub(crate) fn problems(mut problems: Vec<Problem>, sources: &[Source]) -> Self {
        problems.sort_by_key(Problem::place);
        problems.dedup();
        Self::Problems { problems, sources: sources.to_vec() }
    }

    /// Puts `what: ` before the text of an error about data or a component.
    #[must_use]
    pub(crate) fn context(self, what: impl fmt::Display) -> Self {
        match self {
            Self::Data(mut problem) => {
                problem.text = format!("{what}: {}", problem.text);
                Self::Data(problem)
            }
            Self::Component(error) => Self::Component(error.context(what)),
            other => other,
        }
    }

    /// The same error as a component sees it that asked for something.
    pub(crate) fn into_component(self) -> compflow_api::Error {
        match self {
            Self::Interrupted => compflow_api::Error::Cancelled,
            Self::Component(error) => error,
            other => compflow_api::Error::data(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problems { problems, .. } => {
                let texts: Vec<&str> = problems.iter().map(|problem| problem.text.as_str()).collect();
                f.write_str(&texts.join("; "))
            }
            Self::Request(text) | Self::Run(text) | Self::Library(text) => f.write_str(text),
            Self::Data(problem) => write!(f, "{problem}"),
            Self::Component(error) => write!(f, "{error}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

impl From<compflow_api::Error> for Error {
    fn from(error: compflow_api::Error) -> Self {
        match error {
            compflow_api::Error::Cancelled => Self::Interrupted,
            failed => Self::Component(failed),
        }
    }
}
