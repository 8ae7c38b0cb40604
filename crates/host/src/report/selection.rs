//! What was selected without labels: stability and worth against the value, a line per trial, what was chosen marked.

use compflow_engine::results::{Selected, SelectedValue};
use maud::{Markup, html};

use super::ReportData;
use super::colour::Colour;
use super::shown::best;
use super::svg::{Scale, labels, number, range, short};

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 124.0;

/// More methods than this are too long a list.
const MOST_METHODS: usize = 16;

/// A row of panels for every method whose parameters were selected.
pub(crate) fn section(report: &ReportData, selected: &[Selected]) -> Markup {
    let results = &report.results;
    let shown = best(results, MOST_METHODS);
    html! {
        section #selection {
            h2 { "Selection" }
            p.note {
                "Parameters that were selected for every trial, without labels. Stability is how much the clusterings of two \
                 random halves agree; worth is stability times what the clusters of one half say about the other beyond \
                 what they would say about evenly spread examples. A line per trial; a dot marks what was chosen: the fewest clusters \
                 that are worth as much as any up to the standard error."
            }
            (shown.note())
            @for (at, clusterer) in &shown.methods {
                @if selected.iter().any(|one| one.clusterer == *clusterer) {
                    h3 { (clusterer) }
                    div.figures {
                        @for data in results.data() {
                            @let here: Vec<&Selected> = selected.iter().filter(|one| one.clusterer == *clusterer && one.data == data).collect();
                            @if !here.is_empty() {
                                @for (name, measure) in MEASURES {
                                    figure {
                                        figcaption { b { (results.heading(data)) ", " (name) } span.muted { (choices(&here)) } }
                                        (panel(&here, measure, Colour::of(*at), &format!("{name} of {clusterer}, {}", results.heading(data))))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What is drawn against the value.
type Measure = fn(&SelectedValue) -> f64;

const MEASURES: [(&str, Measure); 2] = [("stability", |one| one.stability), ("worth", |one| one.worth)];

/// What was chosen how often: the most frequent first.
fn choices(selected: &[&Selected]) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for one in selected.iter().flat_map(|selected| &selected.candidates).filter(|one| one.chosen) {
        let text = one.params.trim_matches(['{', '}']).replace('"', "").replace(':', " = ").replace(',', ", ");
        match counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counts.push((text, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let texts = counts.iter().map(|(text, count)| format!("{text} in {count}"));
    format!("{} of {}", texts.collect::<Vec<_>>().join(", "), selected.len())
}

/// Where a candidate stands: at its value, or at its place in the list where several parameters were selected together.
fn place(at: usize, candidate: &SelectedValue) -> f64 {
    candidate.value.unwrap_or(at as f64 + 1.0)
}

fn panel(selected: &[&Selected], measure: Measure, colour: Colour, label: &str) -> Markup {
    let candidates = || selected.iter().flat_map(|one| one.candidates.iter().enumerate());
    let values = range(candidates().map(|(at, one)| place(at, one))).unwrap_or([0.0, 1.0]);
    let [low, high] = range(candidates().map(|(_, one)| measure(one))).unwrap_or([0.0, 1.0]);
    let x = Scale::linear(values, [LEFT + 6.0, WIDTH - 10.0]);
    let y = Scale::linear([low.min(0.0), high], [BOTTOM, 10.0]);
    let whole = candidates().all(|(at, one)| place(at, one).fract() == 0.0);
    let plural = candidates().any(|(_, one)| one.value.is_none());
    let marks = y.ticks(4);
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
            @for (tick, label) in marks.iter().zip(labels(&marks)) {
                line.grid x1=(LEFT) x2=(WIDTH - 8.0) y1=(number(y.at(*tick))) y2=(number(y.at(*tick))) {}
                text.axis.end x=(LEFT - 6.0) y=(number(y.at(*tick) + 4.0)) { (label) }
            }
            @for tick in x.ticks(8).into_iter().filter(|tick| !whole || tick.fract() == 0.0) {
                text.axis.middle x=(number(x.at(tick))) y=(BOTTOM + 17.0) { (short(tick)) }
            }
            @if plural { text.axis.end x=(WIDTH - 8.0) y="10" { "by place in the list" } }
            @for one in selected {
                @let points: Vec<(f64, f64, &SelectedValue)> = one.candidates.iter().enumerate()
                    .map(|(at, candidate)| (x.at(place(at, candidate)), y.at(measure(candidate)), candidate)).collect();
                path.trace d=(path(&points)) stroke=(colour.hex()) { title { "trial " (one.trial) } }
                @for (x, y, candidate) in points.iter().filter(|(_, _, candidate)| candidate.chosen) {
                    circle cx=(number(*x)) cy=(number(*y)) r="3.5" fill=(colour.hex()) {
                        title { "trial " (one.trial) ": " (candidate.params) }
                    }
                }
            }
        }
    }
}

fn path(points: &[(f64, f64, &SelectedValue)]) -> String {
    let places: Vec<String> = points.iter().map(|(x, y, _)| format!("{} {}", number(*x), number(*y))).collect();
    format!("M{}", places.join("L"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(chosen: usize) -> Selected {
        let candidate = |at: usize| SelectedValue {
            params: format!("{{\"k\":{}}}", at + 2),
            value: Some(at as f64 + 2.0),
            stability: 0.5,
            worth: 1.0,
            chosen: at == chosen,
            gap_chosen: false,
        };
        Selected {
            data: String::new(),
            trial: chosen as u32,
            clusterer: String::new(),
            candidates: (0..3).map(candidate).collect(),
        }
    }

    #[test]
    fn what_was_chosen_is_counted_and_marked_once_a_trial() {
        let all = [selected(1), selected(0), selected(1)];
        let all: Vec<&Selected> = all.iter().collect();
        assert_eq!(choices(&all), "k = 3 in 2, k = 2 in 1 of 3");
        let drawn = panel(&all, |one| one.stability, Colour::of(0), "").into_string();
        assert_eq!((drawn.matches("<circle").count(), drawn.matches("<path").count()), (3, 3));
    }
}
