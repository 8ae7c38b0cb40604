//! The paper's Figure 4: a trial's points in the plane, circles for singletons and plusses for compositions.
//!
//! Points of one colour are one path, drawn with round or butt ends, so that a page with thousands of them stays small.
//! Every bar of a plus has the colour of one member.

use std::collections::BTreeMap;
use std::fmt::Write;

use compflow_api::Sets;
use maud::{Markup, html};

use super::colour::Colour;
use super::svg::range;

/// Side of a panel; coordinates are whole.
const SIDE: f64 = 400.0;
const MARGIN: f64 = 14.0;
/// Half the length of a plus's bars.
const ARM: i32 = 6;
/// More points than this are only ink.
pub(crate) const MOST: usize = 1500;

/// The rows that are drawn of so many: all, or a fair sample of at most `most`.
pub(crate) fn sample(n: usize, most: usize) -> Vec<usize> {
    let shown = n.min(most);
    // Rows come in no order, so every k-th will do.
    (0..shown).map(|at| at * n / shown).collect()
}

/// Where the points of a trial lie in every panel.
pub(crate) struct Placed {
    points: Vec<(i32, i32)>,
}

impl Placed {
    /// Fits points into a panel, both axes on one scale.
    pub(crate) fn new(points: &[[f64; 2]]) -> Self {
        let span = |axis: usize| range(points.iter().map(|point| point[axis])).unwrap_or([0.0, 0.0]);
        let ([left, right], [bottom, top]) = (span(0), span(1));
        let room = SIDE - 2.0 * MARGIN;
        let extent = (right - left).max(top - bottom);
        let scale = if extent > 0.0 { room / extent } else { 0.0 };
        let place = |value: f64, low: f64, high: f64| (value - (low + high) / 2.0) * scale + SIDE / 2.0;
        let points = points
            .iter()
            .map(|[x, y]| (place(*x, left, right).round() as i32, (SIDE - place(*y, bottom, top)).round() as i32))
            .collect();
        Self { points }
    }

    /// How many of the points are drawn, if not all.
    pub(crate) fn sampled(&self) -> Option<usize> {
        (self.points.len() > MOST).then_some(MOST)
    }

    /// The points with what a method made of them.
    pub(crate) fn panel(&self, sets: &Sets, colours: &[Colour], label: &str) -> Markup {
        let mut dots: BTreeMap<Colour, String> = BTreeMap::new();
        let mut bars: BTreeMap<Colour, String> = BTreeMap::new();
        for row in sample(self.points.len(), MOST) {
            let ((x, y), set) = (self.points[row], &sets[row]);
            if let [member] = set {
                // A line of no length with round ends is a dot.
                let _ = write!(dots.entry(colours[*member as usize]).or_default(), "M{x} {y}h0");
                continue;
            }
            for (bar, member) in set.iter().enumerate() {
                let path = bars.entry(colours[*member as usize]).or_default();
                let angle = std::f64::consts::PI * bar as f64 / set.len() as f64;
                let (dx, dy) =
                    ((angle.cos() * f64::from(ARM)).round() as i32, (angle.sin() * f64::from(ARM)).round() as i32);
                let _ = match (dx, dy) {
                    (_, 0) => write!(path, "M{} {y}h{}", x - dx, 2 * dx),
                    (0, _) => write!(path, "M{x} {}v{}", y - dy, 2 * dy),
                    _ => write!(path, "M{} {}l{} {}", x - dx, y - dy, 2 * dx, 2 * dy),
                };
            }
        }
        html! {
            svg.scatter viewBox="0 0 400 400" role="img" aria-label=(label) {
                @for (colour, path) in &dots { path.dot d=(path) stroke=(colour.hex()) {} }
                @for (colour, path) in &bars { path.bar d=(path) stroke=(colour.hex()) {} }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singletons_are_dots_and_unions_are_plusses_of_two_colours() {
        let placed = Placed::new(&[[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]);
        let sets = Sets::from_iter([vec![0], vec![1], vec![0, 1]]);
        let svg = placed.panel(&sets, &[Colour::of(0), Colour::of(1)], "a <b>").into_string();
        assert_eq!(svg.matches("class=\"dot\"").count(), 2, "{svg}");
        assert_eq!(svg.matches("class=\"bar\"").count(), 2, "{svg}");
        assert!(svg.contains("h12") && svg.contains("v12"), "{svg}");
        assert!(svg.contains("a &lt;b&gt;"), "{svg}");
    }

    #[test]
    fn both_axes_have_one_scale_and_up_is_up() {
        let placed = Placed::new(&[[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]]);
        assert_eq!(placed.points, [(14, 293), (386, 293), (14, 107)]);
    }

    #[test]
    fn a_single_point_and_a_large_trial_are_drawn() {
        assert_eq!(Placed::new(&[[3.0, 3.0]]).points, [(200, 200)]);
        let many: Vec<[f64; 2]> = (0..4000).map(|at| [f64::from(at), 0.0]).collect();
        let placed = Placed::new(&many);
        assert_eq!(placed.sampled(), Some(1500));
        let svg = placed.panel(&Sets::singletons(&vec![0; 4000]), &[Colour::of(0)], "").into_string();
        assert_eq!(svg.matches("h0").count(), 1500);
    }
}
