//! Why a command did not do what it was asked, and the exit code that says so.

pub(crate) use compflow_engine::Error as Failure;

use crate::terminal::{as_is_to_stderr, interrupt, problems, to_stderr};

/// 1 a cell or a write failed, 2 the request was wrong, 130 interrupted.
pub(crate) fn exit_code(failure: &Failure) -> i32 {
    match failure {
        Failure::Problems { .. }
        | Failure::Request(_)
        | Failure::Library(_)
        | Failure::Data(_)
        | Failure::Component(_) => 2,
        Failure::Run(_) => 1,
        Failure::Interrupted => interrupt::EXIT_CODE,
    }
}

/// Says it on stderr.
pub(crate) fn show(failure: &Failure) {
    match failure {
        Failure::Problems { problems, sources } => as_is_to_stderr(&problems::render(problems, sources)),
        Failure::Interrupted => to_stderr("interrupted"),
        Failure::Data(problem) => {
            let help = problem.help.as_ref().map_or_else(String::new, |help| format!("\n  = help: {help}"));
            to_stderr(&format!("error[{}]: {}{help}", problem.cause.code(), problem.text));
        }
        other => to_stderr(&format!("error: {other}")),
    }
}
