//! What was found out about composition when the run's weights were fitted.

use compflow_engine::fit::{Judgement, judgements};
use maud::{Markup, html};

use super::ReportData;
use crate::commands::composers;

/// The section, if the run used weights that `fit-composer` wrote and that have not changed.
pub(crate) fn section(report: &ReportData) -> Option<Markup> {
    let judgements = judgements(&report.results.record);
    (!judgements.is_empty()).then(|| {
        html! {
            section #composition {
                h2 { "Composition" }
                @for (path, judgement) in &judgements { (one(&path.display().to_string(), judgement)) }
            }
        }
    })
}

fn one(path: &str, judgement: &Judgement) -> Markup {
    let grid = composers(judgement);
    let unseen = if judgement.labels_unseen { "none of whose labels was seen" } else { "that were not seen" };
    html! {
        p {
            code { (path) } " holds the " (judgement.written) ", learned from " (judgement.data.join(", ")) ": "
            (judgement.unions) " unions of " (judgement.labels) " labels. All are judged on unions " (unseen) "."
        }
        @for warning in &judgement.warnings { p.warning { (warning) } }
        table.composers {
            thead { tr { @for name in &grid.header { th scope="col" { (name) } } } }
            tbody { @for row in &grid.rows {
                tr { @for (at, cell) in row.iter().enumerate() {
                    @if at == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                } }
            } }
        }
        p.muted {
            "Miss is how far unions lie from where they are predicted, in units of their own spread; explained is the share of what \
             distinguishes unions that is predicted; nearest is the share of unions whose own prediction is the nearest of all sets; \
             accuracy is the share of examples given to their own set if one example of every label is known."
        }
    }
}
