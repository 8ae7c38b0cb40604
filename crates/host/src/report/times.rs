//! Seconds per cell against the number of examples.

use maud::{Markup, html};

use super::Material;
use super::colour::Colour;
use super::svg::{Scale, cut, number, range, seconds, short};
use crate::summary::mean;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 570.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 290.0;
/// Lines of text are at least so far apart.
const LEADING: f64 = 14.0;

/// One method's mean seconds by n.
struct Line<'a> {
    clusterer: &'a str,
    colour: Colour,
    points: Vec<(f64, f64)>,
}

/// A line per method, both axes logarithmic.
pub(crate) fn section(material: &Material) -> Markup {
    let results = &material.results;
    let lines: Vec<Line<'_>> = results
        .clusterers()
        .into_iter()
        .enumerate()
        .map(|(at, clusterer)| {
            let mut points: Vec<(f64, f64)> = results
                .data()
                .into_iter()
                .filter_map(|data| {
                    let taken = results.seconds(data, clusterer);
                    let n = results.n(data)?;
                    // A clock may say that no time has passed, for which a logarithm has no place.
                    (!taken.is_empty()).then(|| (f64::from(n), mean(&taken).max(1e-6)))
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line { clusterer, colour: Colour::of(at), points }
        })
        .filter(|line| !line.points.is_empty())
        .collect();
    html! {
        section #time {
            h2 { "Time against n" }
            p.note { "Mean seconds of a cell on the machine of the run; both axes are logarithmic." }
            @if lines.is_empty() {
                p.note { "No data set has trials of one size." }
            } @else {
                div.figures.one { figure { (plot(&lines)) } }
            }
        }
    }
}

fn plot(lines: &[Line<'_>]) -> Markup {
    let all = || lines.iter().flat_map(|line| &line.points);
    let sizes = range(all().map(|point| point.0)).unwrap_or([1.0, 1.0]);
    let [fastest, slowest] = range(all().map(|point| point.1)).unwrap_or([1.0, 1.0]);
    let x = Scale::logarithmic(sizes, [LEFT + 16.0, RIGHT - 16.0]);
    let y = Scale::logarithmic([fastest / 1.5, slowest * 1.5], [BOTTOM, TOP]);
    let mut marks: Vec<f64> = all().map(|point| point.0).collect();
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    let labels = labels(lines, &y);
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label="Seconds per cell against n" {
            @for tick in y.ticks(0) {
                line.grid x1=(LEFT) x2=(RIGHT) y1=(number(y.at(tick))) y2=(number(y.at(tick))) {}
                text.axis.end x=(LEFT - 8.0) y=(number(y.at(tick) + 4.0)) { (seconds(tick)) }
            }
            @for mark in &marks {
                line.grid x1=(number(x.at(*mark))) x2=(number(x.at(*mark))) y1=(TOP) y2=(BOTTOM) {}
                text.axis.middle x=(number(x.at(*mark))) y=(BOTTOM + 18.0) { (short(*mark)) }
            }
            text.axis.middle x=(number((LEFT + RIGHT) / 2.0)) y=(BOTTOM + 36.0) { "n" }
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
                    path.leader d=(format!("M{} {}L{} {}", number(x.at(last.0) + 6.0), number(y.at(last.1)), number(RIGHT + 6.0), number(*label))) {}
                }
                text x=(RIGHT + 10.0) y=(number(label + 4.0)) {
                    (cut(line.clusterer, 9)) " " tspan.muted { (seconds(last.1)) } title { (line.clusterer) }
                }
            }
        }
    }
}

/// Where the names go: beside the ends of the lines, but not over one another.
fn labels(lines: &[Line<'_>], y: &Scale) -> Vec<f64> {
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
        let most = HEIGHT - 6.0 - LEADING * (order.len() - 1 - rank) as f64;
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
        let line = |taken: f64| Line { clusterer: "m", colour: Colour::of(0), points: vec![(10.0, taken)] };
        let lines: Vec<Line<'_>> = [1.0, 1.01, 0.99, 50.0].into_iter().map(line).collect();
        let mut places = labels(&lines, &Scale::logarithmic([0.5, 100.0], [BOTTOM, TOP]));
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LEADING - 1e-9), "{places:?}");
        assert!(places[3] <= HEIGHT);
    }
}
