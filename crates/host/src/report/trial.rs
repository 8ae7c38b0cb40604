//! The section of the chosen trials: the points, the composition graphs and the confusion tables of every method.

use compflow_api::{Embeddings, Sets};
use compflow_engine::data::{Ids, Trial};
use compflow_engine::results::{TrialAssignments, lead, score_text};
use maud::{Markup, html};

use super::ReportData;
use super::colour::{Colour, Majorities, of_singletons};
use super::graph::Graph;
use super::scatter::Placed;
use super::{confusion, pca};
use crate::failure::Failure;
use crate::output::latex::metric_name;

/// So many data sets are shown if the user does not choose.
const DEFAULT: usize = 4;

/// A trial to show.
pub(crate) struct Chosen {
    data: String,
    trial: u32,
}

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

/// The section, with a tab for each trial.
///
/// # Errors
/// If the table of assignments is missing or damaged.
pub(crate) fn section(report: &ReportData, chosen: &[Chosen]) -> Result<Markup, Failure> {
    let panels = chosen.iter().map(|chosen| panel(report, chosen)).collect::<Result<Vec<Markup>, Failure>>()?;
    let title = |chosen: &Chosen| format!("{}, trial {}", report.results.heading(&chosen.data), chosen.trial);
    Ok(html! {
        section #cell {
            h2 { "One trial, looked at" }
            // The radio buttons come first, so that style sheets can tell which panel is chosen.
            @for at in 0..chosen.len() {
                input.tab type="radio" name="cell" id=(format!("cell-{at}")) checked[at == 0];
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
    })
}

/// One method's clustering of the trial, ready to be drawn.
struct Method<'a> {
    found: &'a TrialAssignments,
    majorities: Option<Majorities>,
    colours: Vec<Colour>,
}

impl Method<'_> {
    /// A singleton: by the user's name if it has one.
    fn name(&self, member: u32) -> String {
        self.found.names.get(&member).cloned().unwrap_or_else(|| member.to_string())
    }
}

fn panel(report: &ReportData, chosen: &Chosen) -> Result<Markup, Failure> {
    let found = report.results.assignments(&chosen.data, chosen.trial)?;
    if found.is_empty() {
        return Ok(html! { p.note { "No clusterer finished this trial." } });
    }
    let dataset = report.data.get(&chosen.data).map(|again| &again.dataset);
    let trial: Result<(&Trial, usize, &[String]), String> = match dataset {
        Some(Ok(dataset)) => {
            let trial = dataset.trials.iter().find(|trial| trial.number == chosen.trial);
            let same = |trial: &&Trial| found.iter().all(|found| found.ids == texts(&trial.ids));
            trial
                .filter(same)
                .map(|trial| (trial, dataset.dim, dataset.classes.as_slice()))
                .ok_or_else(|| "the data now has other examples than when it was clustered".to_owned())
        }
        Some(Err(reason)) => Err(reason.clone()),
        None => Err("it is not in the recorded pipeline".to_owned()),
    };
    let truth = trial.as_ref().ok().and_then(|(trial, ..)| trial.truth.as_ref());
    let classes = trial.as_ref().map_or(&[][..], |(.., classes)| classes);
    let class = |number: u32| classes.get(number as usize).cloned().unwrap_or_else(|| number.to_string());
    let methods: Vec<Method<'_>> = found
        .iter()
        .map(|found| {
            let majorities = truth.map(|truth| Majorities::new(&found.sets, truth));
            let colours = of_singletons(&found.sets, majorities.as_ref());
            Method { found, majorities, colours }
        })
        .collect();
    let class_colours: Vec<Colour> = (0..classes.len()).map(Colour::of).collect();
    Ok(html! {
        h3 { "Where the points lie" }
        @match &trial {
            Err(reason) => { p.note { "No picture of the points, and no comparison with the truth: " (reason) "." } }
            Ok((trial, dim, _)) => { (points(report, chosen, trial, *dim, truth, &class_colours, &methods)) }
        }
        h3 { "Which singletons make which cluster" }
        (graphs(truth, &class_colours, &class, &methods))
        @if let Some(truth) = truth {
            h3 { "True sets against inferred sets" }
            p.note { "Rows are true sets, columns inferred ones; what shares the most examples meets on the diagonal." }
            div.figures.wide {
                @for method in &methods {
                    figure {
                        figcaption { b { (method.found.clusterer) } }
                        (confusion::draw(truth, &method.found.sets, &class, &|member| method.name(member), &format!("Confusion table of {}", method.found.clusterer)))
                    }
                }
            }
        }
    })
}

fn texts(ids: &Ids) -> Vec<String> {
    match ids {
        Ids::Numbers(ids) => ids.iter().map(ToString::to_string).collect(),
        Ids::Texts(ids) => ids.clone(),
    }
}

/// How many singletons and compositions occur.
fn counts(sets: &Sets) -> String {
    let distinct: std::collections::BTreeSet<&[u32]> = sets.iter().collect();
    let compositions = distinct.iter().filter(|set| set.len() > 1).count();
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let singletons = plural(distinct.len() - compositions, "singleton");
    if compositions == 0 { singletons } else { format!("{singletons}, {}", plural(compositions, "composition")) }
}

fn points(
    report: &ReportData,
    chosen: &Chosen,
    trial: &Trial,
    dim: usize,
    truth: Option<&Sets>,
    class_colours: &[Colour],
    methods: &[Method<'_>],
) -> Markup {
    let projection = pca::project(&report.space.points(Embeddings::new(&trial.embeddings, dim)), dim);
    let placed = Placed::new(&projection.points);
    let results = &report.results;
    let metric = lead(&results.metrics());
    let score = |clusterer: &str| {
        let metric = metric?;
        let value = *results.scores(&chosen.data, clusterer, metric).get(&(chosen.trial as usize))?;
        Some(format!("{} {} · ", metric_name(metric), score_text(results.unit(metric), value)))
    };
    html! {
        p.note {
            "First two principal components, " (format!("{:.0} %", 100.0 * projection.share)) " of the variance. "
            "Circles belong to singleton clusters, plusses to compositions: each bar has the colour of one member. "
            @if truth.is_some() {
                "A cluster has the colour of the true set of most of its examples; a circle in a mixed colour is a union that "
                "the method took for a cluster of its own. "
            }
            @if let Some(shown) = placed.sampled() { (shown) " of " (trial.size()) " points are drawn." }
        }
        div.figures.small {
            @if let Some(truth) = truth {
                figure.truth {
                    figcaption { b { "Truth" } span.muted { (counts(truth)) } }
                    (placed.panel(truth, class_colours, "The true sets"))
                }
            }
            @for method in methods {
                figure {
                    figcaption {
                        b { (method.found.clusterer) }
                        span.muted { (score(&method.found.clusterer).unwrap_or_default()) (counts(&method.found.sets)) }
                    }
                    (placed.panel(&method.found.sets, &method.colours, &format!("Clusters of {}", method.found.clusterer)))
                }
            }
        }
    }
}

fn graphs(
    truth: Option<&Sets>,
    class_colours: &[Colour],
    class: &dyn Fn(u32) -> String,
    methods: &[Method<'_>],
) -> Markup {
    // Where nothing truly is a union, none can be right, and that is no fault of the methods.
    let judged = truth.is_some_and(|truth| truth.iter().any(|set| set.len() > 1));
    let true_graph = truth.and_then(|truth| {
        Graph { sets: truth, colours: class_colours, majorities: None }.draw(class, "The true compositions")
    });
    let drawn: Vec<(&Method<'_>, Option<Markup>)> = methods
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
    let right = |method: &Method<'_>| {
        let distinct: std::collections::BTreeSet<&[u32]> =
            method.found.sets.iter().filter(|set| set.len() > 1).collect();
        let majorities = method.majorities.as_ref().filter(|_| judged)?;
        let right = distinct.iter().filter(|set| majorities.is_right(set)).count();
        Some(format!("{right} of {} compositions right", distinct.len()))
    };
    let without: Vec<String> = drawn
        .iter()
        .filter(|(_, graph)| graph.is_none())
        .map(|(method, _)| format!("{} ({})", method.found.clusterer, counts(&method.found.sets)))
        .collect();
    html! {
        p.note {
            "Left the singletons, right what they make; grey is the number of examples. "
            @if judged { "✓ means that most examples of a composition truly are that union." }
        }
        div.figures {
            @if let Some(graph) = &true_graph { figure.truth { figcaption { b { "Truth" } } (graph) } }
            @for (method, graph) in &drawn {
                @if let Some(graph) = graph {
                    figure {
                        figcaption { b { (method.found.clusterer) } span.muted { (right(method).unwrap_or_default()) } }
                        (graph)
                    }
                }
            }
        }
        @if !without.is_empty() { p.note { "Without compositions: " (without.join(", ")) "." } }
    }
}
