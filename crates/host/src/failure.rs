//! Why a command did not do what it was asked, and the exit code that says so.

pub(crate) use compflow_engine::Error as Failure;

use crate::terminal::clean::clean;
use crate::terminal::{interrupt, problems};

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

/// What to print.
pub(crate) fn text(failure: &Failure) -> String {
    match failure {
        Failure::Problems { problems, sources } => problems::render(problems, sources),
        Failure::Interrupted => "interrupted".to_owned(),
        Failure::Data(problem) => {
            let help =
                problem.help.as_ref().map_or_else(String::new, |help| format!("\n  = help: {}", clean(help)));
            format!("error[{}]: {}{help}", problem.cause.code(), clean(&problem.text))
        }
        other => format!("error: {}", clean(&other.to_string())),
    }
}
