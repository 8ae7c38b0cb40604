//! `compflow status`: how far the parts of a run are.

use compflow_api::plural;
use compflow_engine::pipeline::Options;
use compflow_engine::run::{Phase, PhaseStatus, Status};

use super::{folder_of, print, print_json, variables};
use crate::cli::StatusArgs;
use crate::failure::Failure;
use crate::output::{Grid, duration, table};

/// A part that was heard of less than so many seconds ago is taken to be well.
const RECENT: f64 = 5.0;
/// So many parts that fell silent are named; of a machine that failed there may be hundreds.
const NAMED: usize = 5;

/// Runs the command.
///
/// # Errors
/// If the pipeline cannot be read, or none of its parts has begun.
pub(crate) fn run(args: &StatusArgs) -> Result<i32, Failure> {
    let options = Options { set: args.set.clone(), only: args.only.clone(), variables: variables() };
    let pipeline = super::load(&args.file, &options)?;
    let status = Status::read(&pipeline, &folder_of(args.out.as_ref(), pipeline.name()))?;
    if args.json {
        let json = serde_json::to_string_pretty(&status).map_err(|error| Failure::run(error.to_string()))?;
        return print_json(&format!("{json}\n"));
    }
    print(&describe(&status))
}

fn describe(status: &Status) -> String {
    let rows = status.phases.iter().map(|phase| {
        let PhaseStatus { phase: name, cells, done, running, failed } = phase;
        let name = match name {
            Phase::Tune => "tuning",
            Phase::Test => "test",
        };
        vec![name.to_owned(), cells.to_string(), done.to_string(), running.to_string(), failed.to_string()]
    });
    let header = ["phase", "cells", "done", "running", "failed"].map(str::to_owned).to_vec();
    let grid = Grid { title: String::new(), header, rows: rows.collect(), numbers: true };
    let mut text = if status.phases.is_empty() { String::new() } else { table::render(&grid) };
    let left: usize = status.phases.iter().map(PhaseStatus::left).sum();
    let silent = status.heard_seconds_ago.filter(|ago| *ago > RECENT);
    let silent = silent.map(|ago| format!("last heard of {} ago", duration(ago.round())));
    let at_work = match (status.parts, silent) {
        (0, _) => "no part is at work".to_owned(),
        (1, None) => "1 part is at work".to_owned(),
        (1, Some(silent)) => format!("1 part is at work ({silent})"),
        (parts, None) => format!("{parts} parts are at work"),
        (parts, Some(silent)) => format!("{parts} parts are at work (one of them {silent})"),
    };
    if status.run_at_work {
        text += "a run without --part is at work; how far it is, only it can say, and `compflow plan`, given the same, counts what it has kept\n";
    }
    text += &match (left, status.seconds_left) {
        (0, _) if status.phases.is_empty() => String::new(),
        (0, _) if status.tables => "all cells have ended, and the tables are written\n".to_owned(),
        (0, _) => "all cells have ended: a run without --part writes the tables\n".to_owned(),
        (_, Some(seconds)) => format!("{at_work}, about {} left\n", duration(seconds)),
        (_, None) => format!("{at_work}, {} left\n", plural(left, "cell")),
    };
    for part in status.silent.iter().take(NAMED) {
        text += &format!("part {part} has fallen silent: if it was killed, run it again\n");
    }
    if let more @ 1.. = status.silent.len().saturating_sub(NAMED) {
        text += &format!("{} more have fallen silent: --json names all of them\n", plural(more, "part"));
    }
    for failure in &status.failures {
        text += &format!("failed: {failure}\n");
    }
    let unused = if status.phases.is_empty() { "in the folder" } else { "also in the folder, and not used" };
    for other in &status.others {
        let cells = if other.kept == 1 { "cell" } else { "cells" };
        text += &format!("{unused}: {} {cells} of {}\n", other.kept, other.of);
    }
    text
}
