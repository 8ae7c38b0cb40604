//! The section of the chosen trials: the points, the composition graphs and the confusion tables of every method.

use compflow_engine::results::AssignmentTable;
use maud::{Markup, PreEscaped, html};

use super::graph::Graph;
use super::looked::{Chosen, Examples, Looked, Method, counts};
use super::scatter::Placed;
use super::shown::{Shown, best};
use super::{ReportData, confusion, look};
use crate::failure::Failure;

/// So many data sets are shown if the user does not choose.
const DEFAULT: usize = 4;
/// So many methods are drawn side by side, and fewer if that takes too much room.
const MOST: usize = 16;

/// Bytes of the section that are neither pictures nor data.
const REST: usize = 20_000;

/// The trials that `--cell` names; the first of every data set if it names none.
///
/// # Errors
/// If there is no such trial.
pub(crate) fn choose(report: &ReportData, wanted: &[String]) -> Result<Vec<Chosen>, Failure> {
    let results = &report.results;
    let data = results.data();
    let first =
        |data: &str| Chosen { data: data.to_owned(), trial: results.trials(data).first().copied().unwrap_or(0) };
    if wanted.is_empty() {
        return Ok(data.into_iter().take(DEFAULT).map(first).collect());
    }
    wanted
        .iter()
        .map(|wanted| {
            if data.contains(&wanted.as_str()) {
                return Ok(first(wanted));
            }
            let parts = wanted.rsplit_once('/').and_then(|(data, trial)| Some((data, trial.parse::<u32>().ok()?)));
            let known = parts.filter(|(name, trial)| data.contains(name) && results.trials(name).contains(trial));
            let (data, trial) = known.ok_or_else(|| {
                let list: Vec<String> = data
                    .iter()
                    .map(|data| {
                        let trials = results.trials(data);
                        let [first, last] =
                            [trials.first(), trials.last()].map(|trial| trial.copied().unwrap_or(0));
                        if first == last {
                            format!("{data}/{first}")
                        } else {
                            format!("{data}/{first} to {data}/{last}")
                        }
                    })
                    .collect();
                Failure::request(format!("--cell: there is no `{wanted}`; there are {}", list.join(", ")))
            })?;
            Ok(Chosen { data: data.to_owned(), trial })
        })
        .collect()
}

/// The section, with a tab for each trial, and what a script needs to show more than that. It takes no more than `room` bytes if
/// that can be had by showing fewer methods.
///
/// # Errors
/// If the table of assignments is missing or damaged.
pub(crate) fn section(report: &ReportData, chosen: &[Chosen], room: usize) -> Result<Markup, Failure> {
    let table = report.results.assignment_table()?;
    let mut most = MOST;
    loop {
        let shown = best(&report.results, most);
        let section = drawn(report, &table, &shown, chosen, room)?;
        if section.0.len() <= room || most == 1 {
            return Ok(section);
        }
        most /= 2;
    }
}

fn drawn(
    report: &ReportData,
    table: &AssignmentTable,
    shown: &Shown<'_>,
    chosen: &[Chosen],
    room: usize,
) -> Result<Markup, Failure> {
    let looked = |chosen: &Chosen| Looked::new(report, table, shown, chosen);
    let trials = chosen.iter().map(looked).collect::<Result<Vec<Looked<'_>>, Failure>>()?;
    let panels: Vec<Markup> = trials.iter().map(panel).collect();
    let taken: usize = panels.iter().map(|panel| panel.0.len()).sum();
    let data = look::data(report, &trials, &others(report, chosen), looked, room.saturating_sub(taken + REST))?;
    let title = |chosen: &Chosen| format!("{}, trial {}", report.results.heading(&chosen.data), chosen.trial);
    Ok(html! {
        section #cell {
            h2 { "One trial, looked at" }
            (shown.note())
            div #explore hidden {}
            div #static {
                // The radio buttons come first, so that style sheets can tell which panel is chosen.
                @for (at, chosen) in chosen.iter().enumerate() {
                    input.tab type="radio" name="cell" id=(format!("cell-{at}")) aria-label=(title(chosen)) checked[at == 0];
                }
                @if chosen.len() > 1 {
                    div.tabs {
                        @for (at, chosen) in chosen.iter().enumerate() { label for=(format!("cell-{at}")) { (title(chosen)) } }
                    }
                }
                style {
                    @for at in 0..chosen.len() {
                        "#cell-" (at) ":checked~#panel-" (at) "{display:block}#cell-" (at) ":checked~.tabs label[for=cell-" (at)
                        "]{background:var(--raised);color:var(--text);box-shadow:0 1px 3px #0003}#cell-" (at)
                        ":focus-visible~.tabs label[for=cell-" (at) "]{outline:2px solid var(--accent)}"
                    }
                }
                @for (at, (chosen, panel)) in chosen.iter().zip(&panels).enumerate() {
                    div.panel id=(format!("panel-{at}")) {
                        p.lead { (title(chosen)) }
                        (panel)
                    }
                }
            }
            script #data type="application/json" { (PreEscaped(data)) }
        }
    })
}

/// The other trials, the first ones of all data sets first: as many of them as there is room for can be chosen on the page.
fn others(report: &ReportData, chosen: &[Chosen]) -> Vec<Chosen> {
    let results = &report.results;
    let mut all: Vec<(usize, Chosen)> = results
        .data()
        .into_iter()
        .flat_map(|data| {
            let trials = results.trials(data).into_iter().enumerate();
            trials.map(move |(rank, trial)| (rank, Chosen { data: data.to_owned(), trial }))
        })
        .filter(|(_, other)| !chosen.contains(other))
        .collect();
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, other)| other).collect()
}

fn panel(looked: &Looked<'_>) -> Markup {
    if looked.methods.is_empty() {
        return html! { p.note { "No clusterer finished this trial." } };
    }
    html! {
        h3 { "Where the points lie" }
        @match &looked.examples {
            Err(reason) => { p.note { "No picture of the points, and no comparison with the truth: " (reason) "." } }
            Ok(examples) => { (points(looked, examples)) }
        }
        h3 { "Which singletons make which cluster" }
        (graphs(looked))
        @if let Some(truth) = looked.truth() {
            h3 { "True sets against inferred sets" }
            p.note { "Rows are true sets, columns inferred ones; what shares the most examples meets on the diagonal." }
            div.figures.wide {
                @for method in &looked.methods {
                    @let (name, sets) = (&method.found.clusterer, &method.found.sets);
                    figure tabindex="0" {
                        figcaption { b { (name) } }
                        (confusion::draw(truth, sets, &|class| looked.class(class), &|member| method.name(member), &format!("Confusion table of {name}")))
                    }
                }
            }
        }
    }
}

fn points(looked: &Looked<'_>, examples: &Examples<'_>) -> Markup {
    let placed = Placed::new(&examples.plane.points);
    html! {
        p.note {
            "First two principal components, " (format!("{:.0} %", 100.0 * examples.plane.share)) " of the variance. "
            "Circles belong to singleton clusters, plusses to compositions: each bar has the colour of one member. "
            @if looked.truth().is_some() {
                "A cluster has the colour of the true set of most of its examples; a circle in a mixed colour is a union that "
                "the method took for a cluster of its own. "
            }
            @if let Some(shown) = placed.sampled() { (shown) " of " (examples.trial.size()) " points are drawn." }
        }
        div.figures.small {
            @if let Some(truth) = looked.truth() {
                figure.truth {
                    figcaption { b { "Truth" } span.muted { (counts(truth)) } }
                    (placed.panel(truth, &looked.class_colours(), "The true sets"))
                }
            }
            @for method in &looked.methods {
                figure {
                    figcaption {
                        b { (method.found.clusterer) }
                        span.muted { @if let Some(score) = &method.score { (score) " · " } (counts(&method.found.sets)) }
                    }
                    (placed.panel(&method.found.sets, &method.colours, &format!("Clusters of {}", method.found.clusterer)))
                }
            }
        }
    }
}

fn graphs(looked: &Looked<'_>) -> Markup {
    let judged = looked.judged();
    let true_graph = looked.truth().and_then(|truth| {
        let colours = looked.class_colours();
        let graph = Graph { sets: truth, colours: &colours, majorities: None };
        graph.draw(&|class| looked.class(class), "The true compositions")
    });
    let drawn: Vec<(&Method, Option<Markup>)> = looked
        .methods
        .iter()
        .map(|method| {
            let graph = Graph {
                sets: &method.found.sets,
                colours: &method.colours,
                majorities: method.majorities.as_ref().filter(|_| judged),
            };
            let label = format!("Compositions inferred by {}", method.found.clusterer);
            (method, graph.draw(&|member| method.name(member), &label))
        })
        .collect();
    let without: Vec<String> = drawn
        .iter()
        .filter(|(_, graph)| graph.is_none())
        .map(|(method, _)| format!("{} ({})", method.found.clusterer, counts(&method.found.sets)))
        .collect();
    html! {
        p.note {
            "Left the singletons, right what they make; grey is the number of examples. "
            @if judged {
                "✓ means that most examples of a composition truly are that union, if singletons are matched one to one with "
                "true ones."
            }
        }
        div.figures {
            @if let Some(graph) = &true_graph { figure.truth { figcaption { b { "Truth" } } (graph) } }
            @for (method, graph) in &drawn {
                @if let Some(graph) = graph {
                    figure {
                        figcaption { b { (method.found.clusterer) } span.muted { (method.right(looked.truth()).unwrap_or_default()) } }
                        (graph)
                    }
                }
            }
        }
        @if !without.is_empty() { p.note { "Without compositions: " (without.join(", ")) "." } }
    }
}
