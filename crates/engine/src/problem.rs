//! Problems with what the user wrote, and where. How they are shown is up to the caller.

use std::ops::Range;

use crate::causes::Cause;

/// A text in which problems can be found: the pipeline file, or an option of the command line.
#[derive(Debug, Clone)]
pub struct Source {
    /// What it is called in messages.
    pub name: String,
    /// The whole of it.
    pub text: String,
}

/// A place in a [`Source`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Index of the source; the pipeline file is the first.
    pub source: usize,
    /// Bytes of its text.
    pub span: Range<usize>,
}

/// Something that must be changed before a pipeline can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What it can be looked up under.
    pub cause: Cause,
    /// What is wrong: lower case, no full stop.
    pub text: String,
    /// `None` for what is wrong with the whole request.
    pub origin: Option<Origin>,
    /// What would do.
    pub help: Option<String>,
}

impl Problem {
    /// A problem at a place.
    pub fn new(cause: Cause, origin: &Origin, text: impl Into<String>) -> Self {
        Self { cause, text: text.into(), origin: Some(origin.clone()), help: None }
    }

    /// A problem with the whole.
    pub fn without_place(cause: Cause, text: impl Into<String>) -> Self {
        Self { cause, text: text.into(), origin: None, help: None }
    }

    /// Adds what would do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds which of the known names was probably meant, or which there are.
    #[must_use]
    pub fn suggest<'a>(self, name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Self {
        if let Some(near) = compflow_api::nearest(name, known.clone()) {
            return self.help(format!("did you mean `{near}`?"));
        }
        let known: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
        if known.is_empty() { self } else { self.help(format!("there are {}", known.join(", "))) }
    }

    /// To sort by: source and position; without a place last.
    pub(crate) fn place(&self) -> (usize, usize) {
        self.origin.as_ref().map_or((usize::MAX, 0), |origin| (origin.source, origin.span.start))
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}
