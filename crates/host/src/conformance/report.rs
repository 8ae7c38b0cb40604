//! What a worker tells the process that started it.

use compflow_api::{Code, Error, Problem, Result};
use serde::{Deserialize, Serialize};

use crate::terminal::as_is_to_stderr;

/// Stands before every event on stderr; no text that a plugin prints has it.
pub(crate) const MARK: char = '\u{1e}';

/// One line from a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// A point is being looked at; if nothing more is heard, this is where it ended.
    Begin(String),
    End(Verdict),
}

/// How a point came out.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    Pass,
    Fail(String),
    /// Could not be tried, and why.
    Skip(String),
}

fn send(event: &Event) {
    if let Ok(json) = serde_json::to_string(event) {
        as_is_to_stderr(&format!("{MARK}{json}"));
    }
}

/// Looks at one point; an error is a failure.
pub(crate) fn point(name: &str, look: impl FnOnce() -> Result<Verdict>) {
    send(&Event::Begin(name.to_owned()));
    let verdict = look().unwrap_or_else(|error| Verdict::Fail(error.to_string()));
    send(&Event::End(verdict));
}

/// A failure unless something holds.
pub(crate) fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::new(otherwise())) }
}

/// For input that a component may refuse: it must say why, and what is to blame. What goes wrong in it, by a panic or with
/// an impossible result, is of the code that blames the component itself, so it is no refusal.
pub(crate) fn survived<T>(outcome: &Result<T>) -> Result<()> {
    let Err(error) = outcome else { return Ok(()) };
    require(*error != Error::Cancelled, || "says that it was cancelled, and it was not".to_owned())?;
    for problem in error.problems() {
        require(!problem.text.trim().is_empty(), || "refuses it without saying why".to_owned())?;
        require(problem.code != Code::Internal, || format!("fails with the code of its own faults: {problem}"))?;
    }
    Ok(())
}

/// For input that a component must refuse: a problem of it with this code, about this parameter or column.
pub(crate) fn refused<T>(outcome: Result<T>, what: &str, code: Code, parameter: &str) -> Result<Problem> {
    survived(&outcome)?;
    let Err(error) = outcome else { return Err(Error::new(format!("accepts {what}"))) };
    let below =
        |found: &str| found.strip_prefix(parameter).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let problem = error
        .problems()
        .iter()
        .find(|problem| problem.code == code && problem.parameter.as_deref().is_some_and(below))
        .ok_or_else(|| {
            Error::new(format!("refuses {what} without the code and the name `{parameter}`: {error}"))
        })?;
    Ok(problem.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusing_is_fine_and_panicking_is_not() {
        assert!(survived(&Ok(())).is_ok());
        assert!(survived::<()>(&Err(Error::parameter("k", "is more than the examples"))).is_ok());
        assert!(survived::<()>(&Err(Error::data("there are too few"))).is_ok());
        for bad in [Error::new("panicked at lib.rs:1: no"), Error::data(" "), Error::Cancelled] {
            assert!(survived::<()>(&Err(bad.clone())).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_must_be_refused_is_refused_by_code_and_name() {
        let of =
            |outcome: Result<()>| refused(outcome, "0", Code::Parameter, "k").map_err(|error| error.to_string());
        assert!(of(Err(Error::parameter("k", "is 0"))).is_ok());
        assert!(of(Err(Error::parameter("k.least", "is 0"))).is_ok());
        assert_eq!(of(Ok(())), Err("accepts 0".to_owned()));
        assert!(of(Err(Error::parameter("kind", "is 0"))).is_err());
        assert!(of(Err(Error::data("is 0"))).is_err());
    }
}
