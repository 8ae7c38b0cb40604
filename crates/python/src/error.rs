//! Errors as Python knows them.

use compflow_api::Code;
use compflow_engine::Error;
use compflow_engine::pipeline::Problem;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyRuntimeError, PyValueError};

/// What is wrong with a request or with data is a `ValueError`, too little memory a `MemoryError`, the rest a `RuntimeError`.
pub(crate) fn raised(error: Error) -> PyErr {
    match error {
        Error::Problems { problems, .. } => {
            let texts: Vec<String> = problems.iter().map(said).collect();
            PyValueError::new_err(texts.join("\n"))
        }
        Error::Request(text) => PyValueError::new_err(text),
        Error::Data(problem) => PyValueError::new_err(problem.to_string()),
        Error::Run(text) | Error::Library(text) => PyRuntimeError::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err("interrupted"),
        Error::Component(error) => {
            let is = |code: Code| error.problems().iter().any(|problem| problem.code == code);
            let text = error.to_string();
            if is(Code::Budget) {
                PyMemoryError::new_err(text)
            } else if is(Code::Internal) {
                PyRuntimeError::new_err(text)
            } else {
                PyValueError::new_err(text)
            }
        }
    }
}

/// A problem and what would help.
pub(crate) fn said(problem: &Problem) -> String {
    match &problem.help {
        Some(help) => format!("{}; {help}", problem.text),
        None => problem.text.clone(),
    }
}

/// A wrong argument.
pub(crate) fn wrong(text: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(text.to_string())
}
