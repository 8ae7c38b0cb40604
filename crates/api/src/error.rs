//! The one error type of the api: problems for the user, or the news that the work was cancelled.

use std::fmt;

use crate::abi;

/// What comes back from everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call did not do what it was asked.
///
/// Any [`std::error::Error`] turns into it with `?`; for that reason it does not implement that trait itself.
#[derive(Clone, PartialEq, Eq)]
pub enum Error {
    /// At least one problem.
    Failed(Vec<Problem>),
    /// The user no longer wants the result.
    Cancelled,
}

/// What is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Code {
    /// None of the others: a fault of the component, or of something it uses.
    #[default]
    Internal = abi::ERROR_INTERNAL,
    /// A parameter.
    Parameter = abi::ERROR_PARAMETER,
    /// The data, whatever the parameters.
    Data = abi::ERROR_DATA,
    /// The memory budget.
    Budget = abi::ERROR_BUDGET,
    /// A column that a loader was asked for and the source does not have.
    Column = abi::ERROR_COLUMN,
}

impl Code {
    /// The code with this number on the boundary.
    pub(crate) fn from_raw(raw: u32) -> Self {
        let all = [Self::Parameter, Self::Data, Self::Budget, Self::Column];
        all.into_iter().find(|code| *code as u32 == raw).unwrap_or_default()
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is to blame.
    pub code: Code,
    /// The path of the parameter it is about, such as `base.params.k`; of a [column](Code::Column), its name in the request.
    pub parameter: Option<String>,
    /// For the user: lower case, no full stop, naming the thing, what was found and what would do. It does not repeat the
    /// parameter's name, which is put before it.
    pub text: String,
    /// What would help, if that is known: "did you mean `k`?".
    pub help: Option<String>,
}

impl Problem {
    /// What is wrong, with the parameter before it and without what would help.
    pub fn what(&self) -> String {
        match &self.parameter {
            Some(parameter) => format!("`{parameter}` {}", self.text),
            None => self.text.clone(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

impl Error {
    fn one(code: Code, parameter: Option<&str>, text: impl fmt::Display) -> Self {
        let parameter = parameter.map(str::to_owned);
        Self::Failed(vec![Problem { code, parameter, text: text.to_string(), help: None }])
    }

    /// A problem that none of the others describes.
    pub fn new(text: impl fmt::Display) -> Self {
        Self::one(Code::Internal, None, text)
    }

    /// A problem with a parameter: `Error::parameter("k", "must be at least 1, found 0")`.
    pub fn parameter(path: &str, text: impl fmt::Display) -> Self {
        Self::one(Code::Parameter, Some(path), text)
    }

    /// A problem with the data, whatever the parameters.
    pub fn data(text: impl fmt::Display) -> Self {
        Self::one(Code::Data, None, text)
    }

    /// More memory would be needed than there is.
    pub fn budget(text: impl fmt::Display) -> Self {
        Self::one(Code::Budget, None, text)
    }

    /// The same problems, with what would help.
    #[must_use]
    pub fn help(mut self, help: impl fmt::Display) -> Self {
        if let Self::Failed(problems) = &mut self {
            problems.iter_mut().for_each(|problem| problem.help = Some(help.to_string()));
        }
        self
    }

    /// The source lacks a column: `name` is what the request calls it, `source` what it looked for, `place` where, and
    /// `columns` are those that there are.
    pub fn column<'a>(
        name: &str,
        source: &str,
        place: impl fmt::Display,
        columns: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Self {
        let near = crate::nearest(source, columns.clone());
        let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        let columns: Vec<String> = columns.into_iter().map(|column| format!("`{column}`")).collect();
        let columns = match columns.is_empty() {
            true => "there are no columns".to_owned(),
            false => format!("there are {}", columns.join(", ")),
        };
        let text = format!("names the column `{source}`, which is not in {place}");
        Self::one(Code::Column, Some(name), text).help(format!("{near}{columns}"))
    }

    /// The problems; none if the work was cancelled.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Failed(problems) => problems,
            Self::Cancelled => &[],
        }
    }

    /// The same problems, with `what: ` before their texts.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        if let Self::Failed(problems) = &mut self {
            for problem in problems {
                // A text that begins with something else no longer follows the parameter's name.
                problem.text = format!("{what}: {}", problem.what());
                problem.parameter = None;
            }
        }
        self
    }

    /// The same problems, with parameters that are found below `path`: what `k` is to a component is `base.params.k` to
    /// whoever made it.
    #[must_use]
    pub fn below(mut self, path: &str) -> Self {
        if let Self::Failed(problems) = &mut self {
            for problem in problems.iter_mut().filter(|problem| problem.code == Code::Parameter) {
                problem.parameter = problem.parameter.take().map(|parameter| format!("{path}.{parameter}"));
            }
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::Cancelled {
            return f.write_str("cancelled");
        }
        for (at, problem) in self.problems().iter().enumerate() {
            write!(f, "{}{problem}", if at > 0 { "\n" } else { "" })?;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_stands_before_its_problem_and_can_be_moved_below_another() {
        let error = Error::parameter("k", "must be at least 1, found 0");
        assert_eq!(error.to_string(), "`k` must be at least 1, found 0");
        let below = error.clone().below("base.params");
        assert_eq!(below.problems()[0].parameter.as_deref(), Some("base.params.k"));
        assert_eq!(error.context("base").to_string(), "base: `k` must be at least 1, found 0");
    }
}
