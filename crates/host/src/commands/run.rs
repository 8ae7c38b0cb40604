//! `compflow run`: a pipeline, from the file to its tables.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use compflow_engine::results::heading;
use compflow_engine::run::{Isolation, Part, PartOptions, Phase};
use compflow_engine::{Cancel, Observer, Plan, Results, RunOptions};

use super::place::Place;
use super::worker::isolation;
use super::{prepare, print_table, results_folder};
use crate::cli::{PhaseName, RunArgs};
use crate::failure::Failure;
use crate::output::found::RunTable;
use crate::output::summary::SummaryTable;
#[cfg(unix)]
use crate::terminal::crash;
use crate::terminal::{Terminal, interrupt, to_stderr};

/// Runs the command.
///
/// # Errors
/// If the pipeline is wrong, a cell failed, the tables cannot be written, or the user stopped it.
pub(crate) fn run(plugins: &[PathBuf], args: &RunArgs) -> Result<i32, Failure> {
    let cancel = interrupt::listen()?;
    let terminal = Terminal::shared(args.quiet);
    let plan = prepare(plugins, &args.pipeline, &terminal, &cancel)?;
    #[cfg(unix)]
    crash::begin();
    interrupt::working();
    let out = Place::new(&results_folder(&args.pipeline, &plan));
    let isolation = isolation(plugins, args);
    if let Some(part) = args.part {
        return run_part(&plan, &out, args, part, isolation, &terminal, &cancel);
    }
    let options = RunOptions { fresh: args.fresh, strict: args.strict, isolation };
    let mut finished = plan.run(&out.path, options, &terminal, &cancel)?;
    finished.summary.retain(|entry| !plan.tunes(&entry.data));
    let sizes = plan.sizes();
    let results = Results::open(&out.path)?;
    let scored: BTreeSet<&str> = finished.summary.iter().map(|entry| entry.data.as_str()).collect();
    // Data that nothing compares with a truth.
    let unscored = |data: &str| !(plan.tunes(data) || plan.has_truth(data) && scored.contains(data));
    let found = if sizes.iter().any(|(data, _)| unscored(data)) { results.found(&unscored)? } else { Vec::new() };
    let scores = SummaryTable { entries: &finished.summary, heading: &|data: &str| heading(data, &sizes) };
    let table = RunTable { scores, found: &found, settled: &results.settled() };
    let printed = print_table(args.format, &table);
    let (total, failed) = (finished.cells(), finished.failed());
    let folder = out.shown.display();
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

/// Runs a part. It has done its work when its cells have ended: those that failed are noted in the folder, and the run that
/// writes the tables reports them. So jobs that wait for the part are not held up by a point of a grid that cannot work.
fn run_part(
    plan: &Arc<Plan>,
    out: &Place,
    args: &RunArgs,
    part: Part,
    isolation: Option<Isolation>,
    terminal: &Arc<dyn Observer>,
    cancel: &Cancel,
) -> Result<i32, Failure> {
    let phase = args.phase.map(PhaseName::phase);
    let options = PartOptions { part, phase, fresh: args.fresh, strict: args.strict, isolation };
    let finished = plan.run_part(&out.path, options, terminal, cancel)?;
    let folder = out.shown.display();
    let cells = if finished.cells == 1 { "cell" } else { "cells" };
    if finished.interrupted {
        let done = finished.kept + finished.computed;
        to_stderr(&format!("{done} of {} {cells} are kept in {folder}; run again to continue", finished.cells));
        return Err(Failure::Interrupted);
    }
    if let Some(why) = &finished.lost_why {
        let (lost, all) = (finished.lost, finished.cells);
        return Err(Failure::run(format!(
            "{lost} of {all} {cells} cannot be kept in {folder}: {why}; run the part again when it can be written to"
        )));
    }
    if !args.quiet {
        let failed = if finished.failed > 0 { format!(", {} failed", finished.failed) } else { String::new() };
        let next = match (finished.phase, phase) {
            (Phase::Tune, Some(_)) => "--phase test comes when all parts have tuned",
            (Phase::Tune, None) => "when all parts have tuned, run them again to test",
            (Phase::Test, _) => "when all parts have ended, a run without --part writes the tables",
        };
        to_stderr(&format!(
            "part {part} of phase {}: {} {cells}, {} of them kept from before{failed}; {next}",
            finished.phase, finished.cells, finished.kept
        ));
    }
    Ok(0)
}
