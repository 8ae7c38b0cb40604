//! Matched-pair tests between methods.

use maud::{Markup, html};

use super::scores::{p_text, pair};
use super::shown::best;
use super::{ReportData, names};
use crate::output::latex::metric_name;

/// A matrix of more methods than this cannot be read.
const MOST: usize = 24;

/// A matrix for every metric and data set, folded; nothing if there is nothing to test.
pub(crate) fn section(report: &ReportData) -> Option<Markup> {
    let results = &report.results;
    let shown = best(results, MOST);
    let clusterers = shown.names();
    // A single trial tells nothing about luck.
    let trials = |data: &&str| clusterers.iter().any(|name| results.runs_of(data, name).nth(1).is_some());
    let metrics = results.metrics_by_lead();
    if clusterers.len() < 2 || metrics.is_empty() || !results.data().iter().any(trials) {
        return None;
    }
    let labels = names::brief(&clusterers);
    // Columns are as wide as a p; longer names stand upright.
    let upright = labels.iter().any(|label| label.chars().count() > 7);
    Some(html! {
        section #tests {
            h2 { "Tests" }
            p.note {
                "Matched-pair t-tests over trials: p of the row against the column. " span.key.better { "Green" }
                ": the row is significantly better; " span.key.worse { "red" } ": significantly worse."
            }
            (shown.note())
            @for metric in &metrics {
                details {
                    summary { (metric_name(metric)) }
                    div.figures.fit {
                        @for data in results.data() {
                            figure tabindex="0" {
                                table.pairs.upright[upright] {
                                    thead { tr {
                                        th scope="col" { (results.heading(data)) }
                                        @for (other, label) in clusterers.iter().zip(&labels) { th scope="col" title=(other) { (label) } }
                                    } }
                                    tbody { @for (clusterer, label) in clusterers.iter().zip(&labels) { tr {
                                        th scope="row" title=(clusterer) { (label) }
                                        @for other in &clusterers {
                                            @match pair(results, data, metric, clusterer, other) {
                                                None => { td {} }
                                                Some(pair) => {
                                                    td.better[pair.significant() && pair.better]
                                                        .worse[pair.significant() && !pair.better] { (p_text(pair.p)) }
                                                }
                                            }
                                        }
                                    } } }
                                }
                            }
                        }
                    }
                }
            }
        }
    })
}
