//! `compflow explain`: what a code in a message means, and what to do.

use compflow_engine::causes::{Cause, Explanation};

use super::print;
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// If there is no such code.
pub(crate) fn run(code: Option<&str>) -> Result<i32, Failure> {
    let Some(code) = code else {
        let line = |cause: &Cause| {
            let Explanation { code, title, .. } = cause.explanation();
            format!("{code}  {title}\n")
        };
        return print(&Cause::ALL.iter().map(line).collect::<String>());
    };
    let cause = Cause::find(code).ok_or_else(|| {
        Failure::request(format!("there is no code `{code}`; `compflow explain` without one lists them all"))
    })?;
    let Explanation { code, title, text } = cause.explanation();
    print(&format!("{code}: {title}\n\n{text}\n"))
}
