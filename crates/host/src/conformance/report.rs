//! What a worker tells the process that started it.

use compflow_api::{Error, IMPOSSIBLE, Result};
use serde::{Deserialize, Serialize};

use crate::terminal::to_stderr;

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
        to_stderr(&format!("{MARK}{json}"));
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

/// For input that a component may refuse: it must say why, itself, and not by a panic.
pub(crate) fn survived<T>(outcome: &Result<T>) -> Result<()> {
    let Err(error) = outcome else { return Ok(()) };
    let text = error.to_string();
    require(*error != Error::Cancelled, || "says that it was cancelled, and it was not".to_owned())?;
    require(!text.contains("panicked"), || text.clone())?;
    require(!text.starts_with(IMPOSSIBLE), || text.clone())?;
    require(!text.trim().is_empty() && !text.ends_with("without saying why"), || {
        "refuses it without saying why".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusing_is_fine_and_panicking_is_not() {
        assert!(survived(&Ok(())).is_ok());
        assert!(survived::<()>(&Err(Error::new("`k` is more than the examples"))).is_ok());
        for bad in
            ["panicked at lib.rs:1: no", "", "failed with status 1 without saying why", "an impossible result: x"]
        {
            assert!(survived::<()>(&Err(Error::new(bad))).is_err(), "{bad}");
        }
        assert!(survived::<()>(&Err(Error::Cancelled)).is_err());
    }
}
