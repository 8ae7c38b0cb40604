//! The composition graph: which singletons make which cluster, and how large they are.

use std::collections::BTreeMap;

use compflow_api::Sets;
use maud::{Markup, html};

use super::colour::{Colour, Majorities};
use super::svg::{cut, number, union};

const ROW: f64 = 19.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 236.0;
const WIDTH: f64 = 360.0;
/// More compositions than this are not looked at; the largest are drawn.
const MOST: usize = 24;

/// What is drawn of one clustering.
pub(crate) struct Graph<'a> {
    pub(crate) sets: &'a Sets,
    pub(crate) colours: &'a [Colour],
    /// What the method's sets stand for; `None` for the truth itself, or if it is not known.
    pub(crate) majorities: Option<&'a Majorities>,
}

impl Graph<'_> {
    /// The graph; `None` if there are no compositions. `name` is that of a singleton.
    pub(crate) fn draw(&self, name: &dyn Fn(u32) -> String, label: &str) -> Option<Markup> {
        let mut sizes: BTreeMap<&[u32], usize> = BTreeMap::new();
        self.sets.iter().for_each(|set| *sizes.entry(set).or_default() += 1);
        let mut compositions: Vec<(&[u32], usize)> =
            sizes.iter().filter(|(set, _)| set.len() > 1).map(|(set, size)| (*set, *size)).collect();
        if compositions.is_empty() {
            return None;
        }
        let all = compositions.len();
        compositions.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let smaller: usize = compositions.iter().skip(MOST).map(|(_, size)| size).sum();
        compositions.truncate(MOST);
        let mut members: Vec<u32> = compositions.iter().flat_map(|(set, _)| set.iter().copied()).collect();
        members.sort_unstable();
        members.dedup();
        // Sets beside their members: fewer lines cross.
        let place = |set: &[u32]| -> usize {
            let ranks = set.iter().map(|member| members.binary_search(member).unwrap_or(0));
            ranks.sum::<usize>() * 1000 / set.len()
        };
        compositions.sort_by_key(|(set, _)| (place(set), *set));
        let alone = sizes.keys().filter(|set| set.len() == 1 && members.binary_search(&set[0]).is_err()).count();
        let height = ROW * compositions.len().max(members.len()) as f64 + 8.0;
        let y = |at: usize, of: usize| (at as f64 + 0.5) * height / of as f64;
        let member_y = |member: u32| y(members.binary_search(&member).unwrap_or(0), members.len());
        let largest = sizes.values().copied().max().unwrap_or(1) as f64;
        let radius = |size: usize| 2.5 + 6.0 * (size as f64 / largest).sqrt();
        let own = |member: u32| sizes.get(&[member][..]).copied().unwrap_or(0);
        let colour = |member: u32| self.colours[member as usize].hex();
        let right = |set: &[u32]| self.majorities.and_then(|majorities| majorities.is_right(set));
        let names = |set: &[u32]| set.iter().map(|member| name(*member)).collect::<Vec<_>>();
        Some(html! {
            svg.graph viewBox=(format!("0 0 {WIDTH} {}", number(height))) role="img" aria-label=(label) {
                @for (at, (set, size)) in compositions.iter().enumerate() {
                    @for member in *set {
                        path d=(edge(member_y(*member), y(at, compositions.len()))) stroke=(colour(*member))
                            stroke-width=(number(1.0 + 3.0 * *size as f64 / largest)) {}
                    }
                }
                @for member in &members {
                    circle cx=(LEFT) cy=(number(member_y(*member))) r=(number(radius(own(*member)))) fill=(colour(*member)) {}
                    text.end x=(LEFT - 13.0) y=(number(member_y(*member) + 4.0)) {
                        (cut(&name(*member), 9)) " " tspan.muted { (own(*member)) }
                        title { (name(*member)) }
                    }
                }
                @for (at, (set, size)) in compositions.iter().enumerate() {
                    (plus(RIGHT, y(at, compositions.len()), radius(*size), set, self.colours))
                    text x=(RIGHT + 13.0) y=(number(y(at, compositions.len()) + 4.0)) {
                        (union(&names(set), 13)) " " tspan.muted { (size) }
                        @match right(set) {
                            Some(true) => { tspan.good { " ✓" } }
                            Some(false) => { tspan.bad { " ✗" } }
                            None => {}
                        }
                        title { (names(set).join("∪")) }
                    }
                }
            }
            @if all > compositions.len() {
                p.note { "The " (compositions.len()) " largest of " (all) " compositions; the others have " (smaller) " examples." }
            }
            @if alone > 0 { p.note { (alone) @if alone == 1 { " further singleton." } @else { " further singletons." } } }
        })
    }
}

fn edge(from: f64, to: f64) -> String {
    let [start, end] = [LEFT, RIGHT].map(number);
    let [near, far] = [LEFT + 55.0, RIGHT - 55.0].map(number);
    format!("M{start} {0}C{near} {0} {far} {1} {end} {1}", number(from), number(to))
}

/// A plus whose bars have the members' colours.
fn plus(x: f64, y: f64, radius: f64, set: &[u32], colours: &[Colour]) -> Markup {
    let bars = set.iter().enumerate().map(|(bar, member)| {
        let angle = std::f64::consts::PI * bar as f64 / set.len() as f64;
        let (dx, dy) = (angle.cos() * radius, angle.sin() * radius);
        let path = format!("M{} {}l{} {}", number(x - dx), number(y - dy), number(2.0 * dx), number(2.0 * dy));
        (path, colours[*member as usize].hex())
    });
    html! { @for (path, colour) in bars { path.arm d=(path) stroke=(colour) {} } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compositions_are_joined_to_their_members() {
        let sets = Sets::from_iter([vec![0], vec![1], vec![2], vec![0, 1], vec![0, 1]]);
        let colours: Vec<Colour> = (0..3).map(Colour::of).collect();
        let truth = sets.clone();
        let majorities = Majorities::new(&sets, &truth);
        let graph = Graph { sets: &sets, colours: &colours, majorities: Some(&majorities) };
        let svg = graph.draw(&|member| format!("<{member}>"), "graph").unwrap().into_string();
        assert_eq!(svg.matches("<circle").count(), 2, "singleton 2 is in no composition: {svg}");
        assert!(svg.contains("&lt;0&gt;∪&lt;1&gt;") && !svg.contains("<0>"), "{svg}");
        assert!(svg.contains("✓") && svg.contains("1 further singleton."), "{svg}");
    }

    #[test]
    fn a_clustering_without_compositions_has_no_graph() {
        let sets = Sets::singletons(&[0, 1]);
        let colours = [Colour::of(0), Colour::of(1)];
        let graph = Graph { sets: &sets, colours: &colours, majorities: None };
        assert!(graph.draw(&|member| member.to_string(), "").is_none());
    }
}
