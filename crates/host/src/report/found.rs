//! What was found in data that has no true sets to compare with: the first thing on the page then.

use compflow_engine::Results;
use compflow_engine::results::Found;
use maud::{Markup, html};

use super::ReportData;
use super::shown::best;
use crate::failure::Failure;
use crate::output::Output;
use crate::output::found::RunTable;
use crate::output::summary::SummaryTable;

/// More methods than this are too long a list.
const MOST: usize = 40;

/// The section; nothing if everything is compared with a truth.
///
/// # Errors
/// If the table of clusters is missing or damaged.
pub(crate) fn section(report: &ReportData) -> Result<Option<Markup>, Failure> {
    let results = &report.results;
    let unscored = |data: &str| results.data().contains(&data) && !compared(report, results, data);
    if !results.data().iter().any(|data| unscored(data)) {
        return Ok(None);
    }
    let shown = best(results, MOST);
    let found: Vec<Found> =
        results.found(&unscored)?.into_iter().filter(|found| shown.contains(&found.clusterer)).collect();
    let scores = SummaryTable { entries: &[], heading: &str::to_owned };
    let settled = results.settled();
    let table = RunTable { scores, found: &found, settled: &settled };
    let grids = table.grids();
    Ok((!grids.is_empty()).then(|| {
        html! {
            section #found {
                h2 { "What was found" }
                p.note { "There are no true sets to compare with: this is what every method made of the examples." }
                (shown.note())
                div.figures.fit { @for grid in &grids {
                    figure tabindex="0" {
                        table.found.words[!grid.numbers] {
                            caption { (grid.title) }
                            thead { tr { @for name in &grid.header { th scope="col" { (name) } } } }
                            tbody { @for row in &grid.rows {
                                tr { @for (at, cell) in row.iter().enumerate() {
                                    @if at == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                                } }
                            } }
                        }
                    }
                } }
                @for note in table.notes() { p.note { (note) } }
            }
        }
    }))
}

/// Whether a data set has scores, and true sets as far as is known.
fn compared(report: &ReportData, results: &Results, data: &str) -> bool {
    let scored = results.summary.iter().any(|entry| entry.data == data);
    let untrue = report
        .data
        .get(data)
        .and_then(|again| again.dataset.as_ref().ok())
        .is_some_and(|dataset| dataset.trials.iter().all(|trial| trial.truth.is_none()));
    scored && !untrue
}
