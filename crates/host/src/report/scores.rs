//! The paper's tables, one per metric, the leading one first; and how two methods compare.

use compflow_engine::Results;
use compflow_engine::results::statistics::{matched_pairs, mean};
use compflow_engine::results::{Summary, Trivial, score_text};
use maud::{Markup, html};

use super::ReportData;
use super::shown::best;
use crate::output::latex::{SIGNIFICANT, metric_name};

/// More methods than this are for programs to read.
const MOST: usize = 400;

/// How two methods compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    pub(crate) p: f64,
    /// Whether the first of the two has the better mean.
    pub(crate) better: bool,
}

impl Pair {
    pub(crate) fn significant(self) -> bool {
        self.p < SIGNIFICANT
    }
}

/// The matched-pair test of one method against another; `None` for the same method or without two common trials.
pub(crate) fn pair(results: &Results, data: &str, metric: &str, a: &str, b: &str) -> Option<Pair> {
    if a == b {
        return None;
    }
    let (first, second) = (results.scores(data, a, metric), results.scores(data, b, metric));
    let p = matched_pairs(&first, &second)?;
    Some(Pair { p, better: (mean(&first) > mean(&second)) == results.larger_is_better(metric) })
}

/// `.03`, or `<.001`.
pub(crate) fn p_text(p: f64) -> String {
    if p < 0.001 { "<.001".to_owned() } else { format!("{p:.3}").trim_start_matches('0').to_owned() }
}

/// The tables.
pub(crate) fn section(report: &ReportData) -> Markup {
    let results = &report.results;
    let metrics = results.metrics_by_lead();
    html! {
        section #scores {
            h2 { "Scores" }
            @if metrics.is_empty() {
                p.note { "The run has no scores: its pipeline has no [[evaluator]], or no cell has finished." }
            } @else {
                p.note {
                    "Mean (s.e.) over trials, shares in %. " b { "Bold" } " is the best of its column; † is not significantly worse "
                    "(matched-pair t-test over trials, p ≥ " (SIGNIFICANT) "). "
                    @if !results.record.oracles.is_empty() { i { "Italic" } " methods are given the truth and do not compete. " }
                    @if has_seeds(report) { "Examples with a seed are not compared with the truth." }
                }
                (best(results, MOST).note())
                div.figures.fit { @for metric in &metrics { (table(report, metric)) } }
            }
            @if let Some(reason) = missing_trivial(report) {
                p.note { "The trivial clusterings could not be scored: " (reason) "." }
            }
        }
    }
}

fn has_seeds(report: &ReportData) -> bool {
    let trials =
        report.data.values().filter_map(|again| again.dataset.as_ref().ok()).flat_map(|data| &data.trials);
    trials.into_iter().any(|trial| trial.seeds.is_some())
}

fn missing_trivial(report: &ReportData) -> Option<&String> {
    let scored = !report.results.metrics().is_empty();
    report
        .data
        .values()
        .flat_map(|again| &again.trivial)
        .find_map(|(_, scores)| scores.as_ref().err())
        .filter(|_| scored)
}

fn table(report: &ReportData, metric: &str) -> Markup {
    let results = &report.results;
    let (data, clusterers) = (results.data(), best(results, MOST).names());
    let known = |which: Trivial| data.iter().any(|data| report.trivial(data, which, metric).is_some());
    html! {
        figure tabindex="0" {
            table.scores {
                thead { tr { th scope="col" { (metric_name(metric)) } @for data in &data { th scope="col" { (results.heading(data)) } } } }
                tbody {
                    @for clusterer in &clusterers {
                        tr.oracle[results.is_oracle(clusterer)] {
                            th scope="row" { (clusterer) }
                            @for data in &data {
                                td { @match results.entry(data, clusterer, metric) {
                                    Some(entry) => { (entry_text(entry, results, clusterers.len())) }
                                    None => { span.muted { "–" } }
                                } }
                            }
                        }
                    }
                }
                tbody.trivial {
                    @for which in Trivial::ALL.into_iter().filter(|which| known(*which)) {
                        tr {
                            th scope="row" { (which.name()) }
                            @for data in &data {
                                td { @match report.trivial(data, which, metric) {
                                    Some(value) => { (score_text(results.unit(metric), value)) }
                                    None => { "–" }
                                } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn entry_text(entry: &Summary, results: &Results, methods: usize) -> Markup {
    let close = entry.p_vs_best.is_some_and(|p| p >= SIGNIFICANT);
    let trials = results.trials(&entry.data).len();
    let hint = match entry.p_vs_best {
        Some(p) => format!("p = {p:.4} against the best"),
        None if entry.best => "the best".to_owned(),
        None => String::new(),
    };
    html! {
        // Being the best of one says nothing.
        span.best[entry.best && methods > 1] title=(hint) { (score_text(entry.unit, entry.mean)) }
        @if let Some(se) = entry.se { small { " (" (score_text(entry.unit, se)) ")" } }
        span.mark { @if close { "†" } }
        @if entry.trials < trials { small.bad { " " (entry.trials) "/" (trials) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_is_written_as_in_papers() {
        assert_eq!([p_text(0.0), p_text(0.0312), p_text(1.0)], ["<.001", ".031", "1.000"]);
    }
}
