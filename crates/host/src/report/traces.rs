//! The objective after every iteration: one panel per method and data set, a line per trial.

use compflow_engine::results::Trace;
use maud::{Markup, html};

use super::ReportData;
use super::colour::Colour;
use super::shown::best;
use super::svg::{Scale, labels, number, range};

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 130.0;
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 108.0;
/// A line of more points than this looks the same.
const MOST: usize = 120;

/// More methods than this are too long a list.
const MOST_METHODS: usize = 16;

/// A row of panels for every method that reported its objective.
pub(crate) fn section(report: &ReportData, traces: &[Trace]) -> Markup {
    let results = &report.results;
    let shown = best(results, MOST_METHODS);
    let drawable: Vec<&Trace> =
        traces.iter().filter(|trace| trace.points.len() > 1 && shown.contains(&trace.clusterer)).collect();
    let silent: Vec<&str> = shown
        .names()
        .into_iter()
        .filter(|clusterer| !drawable.iter().any(|trace| trace.clusterer == *clusterer))
        .collect();
    html! {
        section #convergence {
            h2 { "Convergence" }
            @if drawable.is_empty() {
                p.note { "No method left the objective of more than one iteration." }
            } @else {
                p.note { "The objective after every iteration as the method reports it, less its last value; a line per trial." }
            }
            (shown.note())
            @for (at, clusterer) in &shown.methods {
                @if drawable.iter().any(|trace| trace.clusterer == *clusterer) {
                    h3 { (clusterer) }
                    div.figures.small[results.data().len() > 3] {
                        @for data in results.data() {
                            @let here: Vec<&Trace> = drawable.iter().copied().filter(|trace| trace.clusterer == *clusterer && trace.data == data).collect();
                            @if !here.is_empty() {
                                figure {
                                    figcaption { b { (results.heading(data)) } span.muted { (converged(report, data, clusterer)) } }
                                    (panel(&here, Colour::of(*at), &format!("Objective of {clusterer}, {}", results.heading(data))))
                                }
                            }
                        }
                    }
                }
            }
            @if !drawable.is_empty() && !silent.is_empty() { p.note { "Without a trace: " (silent.join(", ")) "." } }
        }
    }
}

fn converged(report: &ReportData, data: &str, clusterer: &str) -> String {
    let flags: Vec<bool> = report.results.runs_of(data, clusterer).filter_map(|run| run.converged).collect();
    let done = flags.iter().filter(|converged| **converged).count();
    if done == flags.len() { "all converged".to_owned() } else { format!("{done} of {} converged", flags.len()) }
}

fn panel(traces: &[&Trace], colour: Colour, label: &str) -> Markup {
    let last = traces.iter().flat_map(|trace| &trace.points).map(|point| point.0).max().unwrap_or(1);
    let ways = traces.iter().flat_map(|trace| trace.points.iter().map(|point| point.1 - end(trace)));
    let range = range(ways).unwrap_or([0.0, 1.0]);
    let x = Scale::linear([1.0, f64::from(last)], [LEFT, WIDTH - 8.0]);
    let y = Scale::linear(range, [BOTTOM, 8.0]);
    let marks = y.ticks(3);
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
            @for (tick, label) in marks.iter().zip(labels(&marks)) {
                line.grid x1=(LEFT) x2=(WIDTH - 8.0) y1=(number(y.at(*tick))) y2=(number(y.at(*tick))) {}
                text.axis.end x=(LEFT - 6.0) y=(number(y.at(*tick) + 4.0)) { (label) }
            }
            text.axis x=(LEFT) y=(BOTTOM + 17.0) { "1" }
            text.axis.end x=(WIDTH - 8.0) y=(BOTTOM + 17.0) { (last) }
            text.axis.middle x=((LEFT + WIDTH) / 2.0) y=(BOTTOM + 17.0) { "iteration" }
            @for trace in traces {
                path.trace d=(path(trace, &x, &y)) stroke=(colour.hex()) { title { "trial " (trace.trial) } }
            }
        }
    }
}

/// The last value: trials end at different ones, and how they get there is what is compared.
fn end(trace: &Trace) -> f64 {
    trace.points.last().map_or(0.0, |point| point.1)
}

/// The line, thinned so that its first and last points stay.
fn path(trace: &Trace, x: &Scale, y: &Scale) -> String {
    let count = trace.points.len();
    let shown = count.min(MOST);
    let places: Vec<String> = (0..shown)
        .map(|at| {
            let (iteration, objective) = trace.points[at * (count - 1) / (shown - 1).max(1)];
            format!("{} {}", number(x.at(f64::from(iteration))), number(y.at(objective - end(trace))))
        })
        .collect();
    format!("M{}", places.join("L"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_thinned_and_keeps_its_ends() {
        let points: Vec<(u32, f64)> = (1..=1000).map(|at| (at, f64::from(at))).collect();
        let trace = Trace { data: String::new(), trial: 0, clusterer: String::new(), points };
        let scale = Scale::linear([1.0, 1000.0], [0.0, 999.0]);
        let path = path(&trace, &scale, &scale);
        assert!(path.starts_with("M0 -1000L") && path.ends_with("L999 -1"), "{path}");
        assert_eq!(path.matches('L').count(), MOST - 1);
    }
}
