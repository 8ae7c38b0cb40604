//! Seconds per cell as bars, for a run whose trials are all of one size.

use maud::{Markup, html};

use super::names;
use super::svg::{Scale, number, range, seconds};
use super::times::Line;

const WIDTH: f64 = 360.0;
const ROW: f64 = 22.0;
const FOOT: f64 = 24.0;
/// Room for a duration after the longest bar.
const VALUE: f64 = 56.0;

/// A bar for every method, on a logarithmic axis between powers of ten.
pub(crate) fn draw(lines: &[Line<'_>]) -> Markup {
    let rows: Vec<(&Line<'_>, f64)> =
        lines.iter().filter_map(|line| Some((line, line.points.first()?.1))).collect();
    let [fastest, slowest] = range(rows.iter().map(|row| row.1)).unwrap_or([1.0, 1.0]);
    // The shortest bar can still be seen.
    let ends = [(fastest / 1.5).log10().floor(), slowest.log10().ceil()].map(|power| 10f64.powf(power));
    let labels: Vec<String> = lines.iter().map(|line| line.label.clone()).collect();
    let left = names::width(&labels) + 8.0;
    let scale = Scale::logarithmic(ends, [left, WIDTH - VALUE]);
    let bottom = 6.0 + ROW * rows.len() as f64;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {}", number(bottom + FOOT))) role="img" aria-label="Seconds per cell" {
            @for tick in scale.ticks(0) {
                line.grid x1=(number(scale.at(tick))) x2=(number(scale.at(tick))) y1="2" y2=(number(bottom)) {}
                text.axis.middle x=(number(scale.at(tick))) y=(number(bottom + 15.0)) { (seconds(tick)) }
            }
            @for (at, (line, taken)) in rows.iter().enumerate() {
                @let middle = 6.0 + ROW * (at as f64 + 0.5);
                text.end x=(number(left - 8.0)) y=(number(middle + 4.0)) { (line.label) title { (line.clusterer) } }
                rect x=(number(left)) y=(number(middle - 6.0)) width=(number(scale.at(*taken) - left)) height="12" rx="2"
                    fill=(line.colour.hex()) { title { (line.clusterer) ": " (seconds(*taken)) } }
                text.muted x=(number(scale.at(*taken) + 5.0)) y=(number(middle + 4.0)) { (seconds(*taken)) }
            }
        }
    }
}
