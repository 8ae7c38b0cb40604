//! `compflow run`: a pipeline, from the file to its tables.

use std::path::PathBuf;

use compflow_engine::RunOptions;
use compflow_engine::results::heading;

use super::{prepare, print_table, results_folder};
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::output::summary::SummaryTable;
use crate::terminal::clean::clean;
use crate::terminal::{Terminal, interrupt, to_stderr};

/// Runs the command.
///
/// # Errors
/// If the pipeline is wrong, a cell failed, the tables cannot be written, or the user stopped it.
pub(crate) fn run(plugins: &[PathBuf], args: &RunArgs) -> Result<i32, Failure> {
    let cancel = interrupt::listen()?;
    let terminal = Terminal::shared(args.quiet);
    let plan = prepare(plugins, &args.pipeline, &terminal, &cancel)?;
    let out = results_folder(&args.pipeline, &plan);
    let options = RunOptions { fresh: args.fresh, strict: args.strict };
    let mut finished = plan.run(&out, options, &terminal, &cancel)?;
    finished.summary.retain(|entry| !plan.tunes(&entry.data));
    let sizes = plan.sizes();
    let table = SummaryTable { entries: &finished.summary, heading: &|data: &str| heading(data, &sizes) };
    let printed = print_table(args.format, &args.format.render(&table));
    let (total, failed) = (finished.cells(), finished.failed());
    let folder = clean(&out.display().to_string()).into_owned();
    let cells = if total == 1 { "cell" } else { "cells" };
    if finished.interrupted {
        let done = finished.done();
        to_stderr(&format!("{done} of {total} {cells} are kept in {folder}; run again to continue"));
        return Err(Failure::Interrupted);
    }
    if failed > 0 {
        return Err(Failure::run(format!("{failed} of {total} {cells} failed; {folder}/runs.parquet says why")));
    }
    if !args.quiet {
        let kept = finished.kept();
        to_stderr(&format!("{total} {cells}, {kept} of them kept from before, tables in {folder}"));
    }
    printed
}
