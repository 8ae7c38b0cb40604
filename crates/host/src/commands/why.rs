//! `compflow why`: what a run would compute, and which changed input is the reason.

use std::path::PathBuf;

use compflow_engine::results::Why;

use super::{prepare, print, print_json, results_folder};
use crate::cli::WhyArgs;
use crate::failure::Failure;
use crate::terminal::{Terminal, interrupt};

/// Runs the command.
///
/// # Errors
/// If the pipeline is wrong, or has no such cells.
pub(crate) fn run(plugins: &[PathBuf], args: &WhyArgs) -> Result<i32, Failure> {
    let cancel = interrupt::listen()?;
    let plan = prepare(plugins, &args.pipeline, &Terminal::shared(false), &cancel)?;
    let mut all = plan.why(&results_folder(&args.pipeline, &plan));
    if let Some(cell) = &args.cell {
        let known: Vec<String> = all.iter().map(name).collect();
        all.retain(|one| name(one) == *cell || one.data == *cell || one.clusterer == *cell);
        if all.is_empty() {
            return Err(Failure::request(format!("there are no cells `{cell}`, only {}", known.join(", "))));
        }
    }
    if args.json {
        let json = serde_json::to_string_pretty(&all).map_err(|error| Failure::run(error.to_string()))?;
        return print_json(&format!("{json}\n"));
    }
    print(&describe(&all))
}

fn name(why: &Why) -> String {
    format!("{}/{}", why.data, why.clusterer)
}

/// Groups that have the same reasons are told together.
fn describe(all: &[Why]) -> String {
    let (mut text, mut kept, mut total) = (String::new(), 0, 0);
    let mut told: Vec<(&[String], Vec<&Why>)> = Vec::new();
    for why in all {
        kept += why.kept.unwrap_or(0);
        total += why.cells;
        match told.iter_mut().find(|(reasons, _)| *reasons == why.reasons) {
            Some((_, members)) => members.push(why),
            None => told.push((&why.reasons, vec![why])),
        }
    }
    for (reasons, members) in told.iter().filter(|(reasons, _)| !reasons.is_empty()) {
        for why in members {
            let left = why.cells - why.kept.unwrap_or(0);
            text += &format!("{}: {left} of {} to compute\n", name(why), why.cells);
        }
        for reason in *reasons {
            text += &format!("  because {reason}\n");
        }
    }
    text + &format!("{kept} of {total} cells are kept, {} to compute\n", total - kept)
}
