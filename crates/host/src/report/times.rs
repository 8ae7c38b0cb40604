//! Seconds per cell against the number of examples.

use std::collections::BTreeMap;

use compflow_engine::Results;
use maud::{Markup, html};

use super::colour::Colour;
use super::shown::best;
use super::svg::{Scale, number, range, seconds, short};
use super::{ReportData, bars, names};

const WIDTH: f64 = 720.0;
/// Less high the lines are flat; many names need more.
const LEAST_HEIGHT: f64 = 330.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 12.0;
const FOOT: f64 = 40.0;
/// Room for a duration after the longest name, and for the gap before it.
const VALUE: f64 = 70.0;
/// Lines of text are at least so far apart.
const LEADING: f64 = 14.0;

/// More lines than this cannot be told apart.
const MOST: usize = 40;

/// One method's mean seconds by n.
pub(crate) struct Line<'a> {
    pub(crate) clusterer: &'a str,
    /// Its brief name.
    pub(crate) label: String,
    pub(crate) colour: Colour,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A line per method, both axes logarithmic; bars if there is one size only.
pub(crate) fn section(report: &ReportData) -> Markup {
    let results = &report.results;
    let shown = best(results, MOST);
    let lines: Vec<Line<'_>> = shown
        .methods
        .iter()
        .zip(names::brief(&shown.names()))
        .map(|((at, clusterer), label)| Line {
            clusterer,
            label,
            colour: Colour::of(*at),
            points: points(results, clusterer),
        })
        .filter(|line| !line.points.is_empty())
        .collect();
    let mut sizes: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|point| point.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    html! {
        section #time {
            @if let [n] = sizes[..] { h2 { "Time at n = " (n) } } @else { h2 { "Time against n" } }
            p.note { "Mean seconds of a cell on the machine of the run, over all data sets of a size, on a logarithmic scale." }
            (shown.note())
            @match sizes.len() {
                0 => { p.note { "No data set has trials of one size." } }
                1 => { div.figures { figure { (bars::draw(&lines)) } } }
                _ => { div.figures.one { figure tabindex="0" { (plot(&lines, &sizes)) } } }
            }
        }
    }
}

/// A point for every size, whichever data sets have it.
fn points(results: &Results, clusterer: &str) -> Vec<(f64, f64)> {
    let mut taken: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for data in results.data() {
        if let Some(n) = results.n(data) {
            taken.entry(n).or_default().extend(results.seconds(data, clusterer).values());
        }
    }
    taken
        .into_iter()
        .filter(|(_, taken)| !taken.is_empty())
        // A clock may say that no time has passed, for which a logarithm has no place.
        .map(|(n, taken)| (f64::from(n), (taken.iter().sum::<f64>() / taken.len() as f64).max(1e-6)))
        .collect()
}

fn plot(lines: &[Line<'_>], sizes: &[f64]) -> Markup {
    let times = lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let [fastest, slowest] = range(times).unwrap_or([1.0, 1.0]);
    let names: Vec<String> = lines.iter().map(|line| line.label.clone()).collect();
    let right = WIDTH - VALUE - names::width(&names);
    let height = LEAST_HEIGHT.max(2.0 * TOP + LEADING * lines.len() as f64);
    let bottom = height - FOOT;
    let x = Scale::logarithmic(range(sizes.iter().copied()).unwrap_or([1.0, 1.0]), [LEFT + 16.0, right - 16.0]);
    let y = Scale::logarithmic([fastest / 1.5, slowest * 1.5], [bottom, TOP]);
    let labels = labels(lines, &y, height);
    html! {
        svg.times viewBox=(format!("0 0 {WIDTH} {}", number(height))) role="img" aria-label="Seconds per cell against n" {
            @for tick in y.ticks(0) {
                line.grid x1=(LEFT) x2=(number(right)) y1=(number(y.at(tick))) y2=(number(y.at(tick))) {}
                text.axis.end x=(LEFT - 8.0) y=(number(y.at(tick) + 4.0)) { (seconds(tick)) }
            }
            @for mark in sizes {
                line.grid x1=(number(x.at(*mark))) x2=(number(x.at(*mark))) y1=(TOP) y2=(number(bottom)) {}
                text.axis.middle x=(number(x.at(*mark))) y=(number(bottom + 18.0)) { (short(*mark)) }
            }
            text.axis.middle x=(number((LEFT + right) / 2.0)) y=(number(bottom + 34.0)) { "n" }
            @for (line, label) in lines.iter().zip(&labels) {
                @let path: Vec<String> = line.points.iter().map(|(n, s)| format!("{} {}", number(x.at(*n)), number(y.at(*s)))).collect();
                @let last = line.points.last().copied().unwrap_or_default();
                g stroke=(line.colour.hex()) fill=(line.colour.hex()) {
                    path.line d=(format!("M{}", path.join("L"))) {}
                    @for (n, taken) in &line.points {
                        circle cx=(number(x.at(*n))) cy=(number(y.at(*taken))) r="3.5" {
                            title { (line.clusterer) ", n = " (n) ": " (seconds(*taken)) }
                        }
                    }
                    path.leader d=(format!("M{} {}L{} {}", number(x.at(last.0) + 6.0), number(y.at(last.1)), number(right + 6.0), number(*label))) {}
                }
                text x=(number(right + 10.0)) y=(number(label + 4.0)) {
                    (line.label) " " tspan.muted { (seconds(last.1)) } title { (line.clusterer) }
                }
            }
        }
    }
}

/// Where the names go: beside the ends of the lines, but not over one another.
fn labels(lines: &[Line<'_>], y: &Scale, height: f64) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (at, line.points.last().map_or(0.0, |point| y.at(point.1))))
        .collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut places = vec![0.0; lines.len()];
    let mut lowest = TOP - LEADING / 2.0;
    for (rank, (at, wanted)) in order.iter().enumerate() {
        // Room is left below for those that come after.
        let most = height - 6.0 - LEADING * (order.len() - 1 - rank) as f64;
        lowest = wanted.min(most).max(lowest + LEADING);
        places[*at] = lowest;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_lie_over_one_another() {
        let line = |taken: f64| Line {
            clusterer: "m",
            label: "m".to_owned(),
            colour: Colour::of(0),
            points: vec![(10.0, taken)],
        };
        let lines: Vec<Line<'_>> = [1.0, 1.01, 0.99, 50.0].into_iter().map(line).collect();
        let mut places = labels(&lines, &Scale::logarithmic([0.5, 100.0], [290.0, TOP]), 330.0);
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LEADING - 1e-9), "{places:?}");
        assert!(places[3] <= 330.0);
    }
}
