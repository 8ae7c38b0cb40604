//! `compflow plan`: the cells of a pipeline, which of them are kept, and the memory they need.

use std::path::PathBuf;

use compflow_api::plural;
use compflow_engine::files::human_bytes;
use compflow_engine::run::Preview;

use super::{prepare, print, results_folder};
use crate::cli::PipelineArgs;
use crate::failure::Failure;
use crate::output::{Grid, table};
use crate::terminal::{Terminal, interrupt};

/// Runs the command.
///
/// # Errors
/// If the pipeline is wrong.
pub(crate) fn run(plugins: &[PathBuf], args: &PipelineArgs) -> Result<i32, Failure> {
    let cancel = interrupt::listen()?;
    let plan = prepare(plugins, args, &Terminal::shared(false), &cancel)?;
    print(&describe(&plan.preview(&results_folder(args, &plan))))
}

fn describe(preview: &Preview) -> String {
    let rows = preview.groups.iter().map(|group| {
        vec![
            group.data.clone(),
            group.clusterer.clone(),
            group.n.to_string(),
            group.dim.to_string(),
            group.cells.to_string(),
            if group.selects > 1 { group.selects.to_string() } else { String::new() },
            group.kept.map_or_else(|| "after tuning".to_owned(), |kept| kept.to_string()),
            group.memory.map_or_else(|| "unknown".to_owned(), human_bytes),
        ]
    });
    let header =
        ["data", "clusterer", "n", "dim", "cells", "values", "kept", "memory"].map(str::to_owned).to_vec();
    let grid = Grid { title: String::new(), header, rows: rows.collect(), numbers: true };
    let selecting = match preview.halves() {
        0 => String::new(),
        halves => format!(", after {halves} clusterings of halves that select values"),
    };
    let (cells, to_compute) = (preview.cells(), preview.to_compute());
    format!("{}{}, {to_compute} to compute{selecting}\n", table::render(&grid), plural(cells, "cell"))
}
