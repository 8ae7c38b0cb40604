//! The one error type of the api: a text for the user, or the news that the work was cancelled.

use std::fmt;

/// What comes back from everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call did not do what it was asked.
///
/// Any [`std::error::Error`] turns into it with `?`; for that reason it does not implement that trait itself.
#[derive(Clone, PartialEq, Eq)]
pub enum Error {
    /// A text for the user: lower case, no full stop, naming the thing, what was found and what would do.
    /// A text about a parameter begins with its name in backticks; several lines are several problems.
    Failed(String),
    /// The user no longer wants the result.
    Cancelled,
}

impl Error {
    /// An error with this text.
    pub fn new(text: impl fmt::Display) -> Self {
        Self::Failed(text.to_string())
    }

    /// The same error, with `what: ` before its text.
    #[must_use]
    pub fn context(self, what: impl fmt::Display) -> Self {
        match self {
            Self::Failed(text) => Self::Failed(format!("{what}: {text}")),
            Self::Cancelled => Self::Cancelled,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) => f.write_str(text),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}
