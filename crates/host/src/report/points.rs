//! Every trial's score as a point, the mean and its standard error over them.

use compflow_api::Unit;
use compflow_engine::results::statistics::{Scores, mean, standard_error};
use compflow_engine::results::{Trivial, score_text, shown};
use maud::{Markup, html};

use super::colour::Colour;
use super::shown::{Shown, best};
use super::svg::{Scale, labels as axis_labels, number, range, short};
use super::{ReportData, names};
use crate::output::latex::metric_name;

const WIDTH: f64 = 360.0;
const ROW: f64 = 22.0;
const FOOT: f64 = 24.0;

/// More methods than this are a wall of points.
const MOST: usize = 40;

/// A panel for every data set and metric; a row of panels for every metric if there are several data sets.
pub(crate) fn section(report: &ReportData) -> Markup {
    let results = &report.results;
    let data = results.data();
    let methods = best(results, MOST);
    let panels: Vec<(&str, Vec<(&str, Markup)>)> = results
        .metrics_by_lead()
        .into_iter()
        .filter_map(|metric| {
            let scores = |data: &&str| {
                let each =
                    methods.names().into_iter().flat_map(|name| results.scores(data, name, metric).into_values());
                each.collect::<Vec<f64>>()
            };
            let ends = range(data.iter().flat_map(scores))?.map(|value| shown(results.unit(metric), value));
            let panels = data.iter().map(|data| (*data, panel(report, &methods, data, metric, ends)));
            Some((metric, panels.collect()))
        })
        .collect();
    let title = |metric: &str| {
        format!("{}{}", metric_name(metric), if results.unit(metric) == Unit::Share { " in %" } else { "" })
    };
    let figure = |title: &str, panel: &Markup| html! { figure { figcaption { b { (title) } } (panel) } };
    html! {
        section #trials {
            h2 { "Every trial" }
            p.note {
                "A point is a trial, the upright bar its mean, the line the standard error. Dashed: what the trivial "
                "clusterings score, where that is in view."
            }
            (methods.note())
            @if data.len() == 1 {
                div.figures {
                    @for (metric, panels) in &panels { @for (_, panel) in panels { (figure(&title(metric), panel)) } }
                }
            } @else {
                @for (metric, panels) in &panels {
                    h3 { (title(metric)) }
                    div.figures { @for (data, panel) in panels { (figure(&results.heading(data), panel)) } }
                }
            }
        }
    }
}

fn panel(report: &ReportData, methods: &Shown<'_>, data: &str, metric: &str, [low, high]: [f64; 2]) -> Markup {
    let results = &report.results;
    let unit = results.unit(metric);
    // Scores that hardly differ are not drawn as if they did.
    let least = if unit == Unit::Share { 1.0 } else { 0.01 * high.abs().max(low.abs()).max(1e-9) };
    let extent = (high - low).max(least);
    let room = (extent - (high - low)) / 2.0 + 0.04 * extent;
    let (low, high) = (low - room, high + room);
    let labels = names::brief(&methods.names());
    let left = names::width(&labels) + 8.0;
    let scale = Scale::linear([low, high], [left, WIDTH - 14.0]);
    let bottom = 6.0 + ROW * methods.methods.len() as f64;
    // No share is above 100 %, though there is room for the points.
    let marks: Vec<f64> =
        scale.ticks(5).into_iter().filter(|tick| unit != Unit::Share || *tick <= 100.0).collect();
    let trivial = Trivial::ALL.into_iter().filter_map(|which| {
        let value = shown(unit, report.trivial(data, which, metric)?);
        (low..=high).contains(&value).then_some((which, value))
    });
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {}", number(bottom + FOOT))) role="img"
            aria-label=(format!("{} of every trial, {}", metric_name(metric), results.heading(data))) {
            @for (tick, label) in marks.iter().zip(axis_labels(&marks)) {
                line.grid x1=(number(scale.at(*tick))) x2=(number(scale.at(*tick))) y1="2" y2=(number(bottom)) {}
                text.axis.middle x=(number(scale.at(*tick))) y=(number(bottom + 15.0)) { (label) }
            }
            @for (which, value) in trivial {
                line.trivial x1=(number(scale.at(value))) x2=(number(scale.at(value))) y1="2" y2=(number(bottom)) {
                    title { (which.name()) ": " (short(value)) }
                }
            }
            @for (row_at, ((at, clusterer), label)) in methods.methods.iter().zip(&labels).enumerate() {
                @let middle = 6.0 + ROW * (row_at as f64 + 0.5);
                @let best = results.entry(data, clusterer, metric).is_some_and(|entry| entry.best);
                text.end.strong[best] x=(number(left - 8.0)) y=(number(middle + 4.0)) { (label) title { (clusterer) } }
                (row(&results.scores(data, clusterer, metric), unit, &scale, middle, Colour::of(*at)))
            }
        }
    }
}

fn row(scores: &Scores, unit: Unit, scale: &Scale, middle: f64, colour: Colour) -> Markup {
    let values: Vec<f64> = scores.values().map(|value| shown(unit, *value)).collect();
    let centre = shown(unit, mean(scores));
    let se = standard_error(&values).unwrap_or(0.0);
    html! {
        @if !values.is_empty() {
            g fill=(colour.hex()) stroke=(colour.hex()) {
                @for (trial, value) in scores {
                    circle.trial cx=(number(scale.at(shown(unit, *value)))) cy=(number(middle)) r="4" {
                        title { "trial " (trial) ": " (score_text(unit, *value)) }
                    }
                }
                line.error x1=(number(scale.at(centre - se))) x2=(number(scale.at(centre + se))) y1=(number(middle)) y2=(number(middle)) {}
                line.mean x1=(number(scale.at(centre))) x2=(number(scale.at(centre))) y1=(number(middle - 8.0)) y2=(number(middle + 8.0)) {
                    title { (score_text(unit, mean(scores))) @if let Some(se) = standard_error(&scores.values().copied().collect::<Vec<_>>()) { " (" (score_text(unit, se)) ")" } }
                }
            }
        }
    }
}
