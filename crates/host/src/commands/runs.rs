//! `compflow runs`: all results folders, with pipeline, age, best method and state.

use std::path::Path;

use compflow_engine::results::{Listed, RunState, list_runs};
use serde_json::json;

use super::{print, print_json};
use crate::failure::Failure;
use crate::output::{Grid, duration, table};

/// Runs the command.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn run(folder: &Path, json: bool) -> Result<i32, Failure> {
    let listed = list_runs(folder)?;
    if json {
        return print_json(&format!("{}\n", json!(listed)));
    }
    if listed.is_empty() {
        return print(&format!("there are no results in {}\n", folder.display()));
    }
    let header = ["folder", "pipeline", "age", "cells", "best", "state"].map(str::to_owned).to_vec();
    let rows = listed.iter().map(row).collect();
    print(&table::render(&Grid { title: String::new(), header, rows, numbers: false }))
}

fn row(listed: &Listed) -> Vec<String> {
    let state = match listed.state {
        RunState::Finished if listed.failed > 0 => "finished, some failed",
        RunState::Finished => "finished",
        RunState::Running => "running",
        RunState::Interrupted => "interrupted: run again to continue",
        RunState::Unfinished => "not finished: run again to continue",
        RunState::Damaged => "damaged: run again to mend it",
    };
    let cells = match listed.failed {
        0 => listed.cells.to_string(),
        failed => format!("{} ({failed} failed)", listed.cells),
    };
    vec![
        listed.folder.display().to_string(),
        listed.file.clone(),
        duration(listed.age.max(0.0)),
        cells,
        listed
            .best
            .as_ref()
            .map_or_else(String::new, |best| format!("{} ({} {})", best.clusterer, best.metric, best.shown)),
        state.to_owned(),
    ]
}
