//! The page: what is on it and in which order.

use compflow_api::Unit;
use compflow_engine::Results;
use compflow_engine::results::{lead, score_text};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    ReportData, composition, found, points, scores, script, selection, setup, t_tests, times, traces, trial,
};
use crate::failure::Failure;
use crate::output::latex::metric_name;

/// Everything in one file: no script, no font, nothing comes from elsewhere.
const STYLE: &str = include_str!("style.css");

/// What a page may take. Pictures of trials make way for the rest.
const MOST_BYTES: usize = 2_900_000;

/// The page of a run.
///
/// # Errors
/// If a cell that is to be shown does not exist, or a table is damaged.
pub(crate) fn page(report: &ReportData, cells: &[String]) -> Result<String, Failure> {
    let results = &report.results;
    let chosen = trial::choose(report, cells)?;
    let traces = results.traces()?;
    let selected = results.selected()?;
    let scored = !results.metrics().is_empty();
    let found = found::section(report)?;
    let there = |wanted: bool, section: &dyn Fn() -> Markup| wanted.then(section);
    let mut sections = vec![
        ("scores", "Scores", there(scored || found.is_none(), &|| scores::section(report))),
        ("trials", "Trials", there(scored, &|| points::section(report))),
        ("tests", "Tests", t_tests::section(report)),
        ("selection", "Selection", there(!selected.is_empty(), &|| selection::section(report, &selected))),
        ("time", "Time", Some(times::section(report))),
        ("convergence", "Convergence", Some(traces::section(report, &traces))),
        ("composition", "Composition", composition::section(report)),
        ("run", "What was run", Some(setup::section(report))),
    ];
    sections.insert(0, ("found", "Found", found));
    let taken: usize = sections.iter().flat_map(|(.., section)| section).map(|section| section.0.len()).sum();
    let room = MOST_BYTES.saturating_sub(taken + STYLE.len() + script::text().len());
    sections.insert(1, ("cell", "One trial", Some(trial::section(report, &chosen, room)?)));
    let sections: Vec<(&str, &str, Markup)> =
        sections.into_iter().filter_map(|(id, title, section)| Some((id, title, section?))).collect();
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
                    nav { @for (id, title, _) in &sections { a href=(format!("#{id}")) { (title) } } }
                }
                main {
                    (setup::failures(results))
                    @for (.., section) in &sections { (section) }
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
fn winners(results: &Results) -> Option<Markup> {
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
