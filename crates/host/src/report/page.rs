//! The page: what is on it and in which order.

use compflow_api::Unit;
use compflow_engine::Results;
use compflow_engine::results::{lead, score_text};
use maud::{DOCTYPE, PreEscaped, html};

use super::{
    ReportData, composition, found, points, scores, script, selection, setup, t_tests, times, traces, trial,
};
use crate::failure::Failure;
use crate::output::latex::metric_name;

/// Everything in one file: no script, no font, nothing comes from elsewhere.
const STYLE: &str = include_str!("style.css");

/// The sections in their order, as the links at the top name them.
const SECTIONS: [(&str, &str); 10] = [
    ("found", "Found"),
    ("cell", "One trial"),
    ("scores", "Scores"),
    ("trials", "Trials"),
    ("tests", "Tests"),
    ("selection", "Selection"),
    ("time", "Time"),
    ("convergence", "Convergence"),
    ("composition", "Composition"),
    ("run", "What was run"),
];

/// The page of a run.
///
/// # Errors
/// If a cell that is to be shown does not exist, or a table is damaged.
pub(crate) fn page(report: &ReportData, cells: &[String]) -> Result<String, Failure> {
    let results = &report.results;
    let chosen = trial::choose(report, cells)?;
    let traces = results.traces()?;
    let selected = results.selected()?;
    let cell = trial::section(report, &chosen)?;
    let scored = !results.metrics().is_empty();
    let composition = composition::section(report);
    let (found, tests) = (found::section(report)?, t_tests::section(report));
    let there = |id: &str| match id {
        "found" => found.is_some(),
        "tests" => tests.is_some(),
        "scores" => scored || found.is_none(),
        "trials" => scored,
        "composition" => composition.is_some(),
        "selection" => !selected.is_empty(),
        _ => true,
    };
    let sections = SECTIONS.iter().filter(|(id, _)| there(id));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(script::policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(format!("compflow {}", env!("CARGO_PKG_VERSION")));
                title { (results.record.name) " · compflow" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (results.record.name) }
                    p.lead { (subtitle(results)) }
                    @if let Some(winners) = winners(results) { p.winners { (winners) } }
                    nav { @for (id, title) in sections { a href=(format!("#{id}")) { (title) } } }
                }
                main {
                    (setup::failures(results))
                    @if let Some(found) = &found { (found) }
                    (cell)
                    @if there("scores") { (scores::section(report)) }
                    @if scored { (points::section(report)) }
                    @if let Some(tests) = &tests { (tests) }
                    @if !selected.is_empty() { (selection::section(report, &selected)) }
                    (times::section(report))
                    (traces::section(report, &traces))
                    @if let Some(composition) = &composition { (composition) }
                    (setup::section(report))
                }
                script { (PreEscaped(script::text())) }
            }
        }
    };
    Ok(page.into_string())
}

fn subtitle(results: &Results) -> String {
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let trials = results.data().iter().map(|data| results.trials(data).len()).max().unwrap_or(0);
    [
        count(results.clusterers().len(), "clusterer"),
        count(results.data().len(), "data set"),
        count(trials, "trial"),
        format!("seed {}", results.record.seed),
        setup::moment(results.record.started),
    ]
    .join(" · ")
}

/// Who is best by the leading metric, data set by data set.
fn winners(results: &Results) -> Option<maud::Markup> {
    if results.clusterers().len() < 2 {
        return None;
    }
    let metric = lead(&results.metrics())?;
    let best: Vec<_> = results
        .data()
        .into_iter()
        .filter_map(|data| {
            results.summary.iter().find(|entry| entry.data == data && entry.metric == metric && entry.best)
        })
        .collect();
    Some(html! {
        @for entry in best {
            span.winner {
                span.muted { "best " (metric_name(metric)) ", " (results.heading(&entry.data)) }
                b { (entry.clusterer) " " (score_text(entry.unit, entry.mean)) @if entry.unit == Unit::Share { small { " %" } } }
            }
        }
    })
}
