//! The confusion table: how many examples of every true set got which inferred set.

use std::collections::{BTreeMap, BTreeSet};

use compflow_api::Sets;
use maud::{Markup, html};

use super::svg::{number, union};

const CELL: f64 = 20.0;
const LABEL: f64 = 74.0;
/// More rows or columns than this go into a last one together.
const MOST: usize = 30;

/// Counts, with rows and columns ordered so that what belongs together meets on the diagonal.
#[derive(Debug, PartialEq)]
struct Table {
    /// `None` stands for all others together.
    rows: Vec<Option<Vec<u32>>>,
    columns: Vec<Option<Vec<u32>>>,
    counts: Vec<Vec<usize>>,
}

impl Table {
    fn new(truth: &Sets, found: &Sets) -> Self {
        let mut counts: BTreeMap<(&[u32], &[u32]), usize> = BTreeMap::new();
        let (mut true_sizes, mut found_sizes) = (BTreeMap::new(), BTreeMap::new());
        for (truth, found) in truth.iter().zip(found.iter()) {
            *counts.entry((truth, found)).or_default() += 1;
            *true_sizes.entry(truth).or_insert(0usize) += 1;
            *found_sizes.entry(found).or_insert(0usize) += 1;
        }
        // True sets by their size and order, the smallest groups left out if there are too many.
        let mut rows: Vec<&[u32]> = true_sizes.keys().copied().collect();
        rows.sort_by_key(|set| (std::cmp::Reverse(true_sizes[set]), set.len(), *set));
        rows.truncate(MOST);
        rows.sort_by_key(|set| (set.len(), *set));
        // Greedily the inferred set that shares the most examples with a true one; the rest by size.
        let mut pairs: Vec<(usize, &[u32], &[u32])> =
            counts.iter().map(|((truth, found), count)| (*count, *truth, *found)).collect();
        pairs.sort_by_key(|(count, truth, found)| (std::cmp::Reverse(*count), *truth, *found));
        let mut partner: BTreeMap<&[u32], &[u32]> = BTreeMap::new();
        let mut taken: BTreeSet<&[u32]> = BTreeSet::new();
        for (_, truth, found) in pairs {
            if rows.contains(&truth) && !partner.contains_key(truth) && !taken.contains(found) {
                partner.insert(truth, found);
                taken.insert(found);
            }
        }
        let mut columns: Vec<&[u32]> = rows.iter().filter_map(|row| partner.get(row).copied()).collect();
        let mut rest: Vec<&[u32]> = found_sizes.keys().copied().filter(|set| !taken.contains(set)).collect();
        rest.sort_by_key(|set| (std::cmp::Reverse(found_sizes[set]), *set));
        columns.extend(rest);
        columns.truncate(MOST);
        let with_rest = |shown: Vec<&[u32]>, all: usize| -> Vec<Option<Vec<u32>>> {
            let more = (shown.len() < all).then_some(None);
            shown.into_iter().map(|set| Some(set.to_vec())).chain(more).collect()
        };
        let (rows, columns) = (with_rest(rows, true_sizes.len()), with_rest(columns, found_sizes.len()));
        let mut table = vec![vec![0; columns.len()]; rows.len()];
        for ((truth, found), count) in counts {
            let place = |list: &[Option<Vec<u32>>], set: &[u32]| {
                list.iter().position(|known| known.as_deref() == Some(set)).unwrap_or(list.len() - 1)
            };
            table[place(&rows, truth)][place(&columns, found)] += count;
        }
        Self { rows, columns, counts: table }
    }
}

/// The table as a heat map. `class` names a member of a true set, `cluster` one of an inferred set.
pub(crate) fn draw(
    truth: &Sets,
    found: &Sets,
    class: &dyn Fn(u32) -> String,
    cluster: &dyn Fn(u32) -> String,
    label: &str,
) -> Markup {
    let table = Table::new(truth, found);
    let name = |set: &Option<Vec<u32>>, of: &dyn Fn(u32) -> String| match set {
        None => vec!["other".to_owned()],
        Some(set) => set.iter().map(|member| of(*member)).collect(),
    };
    // In full, and as there is room for it.
    let labels = |sets: &[Option<Vec<u32>>], of: &dyn Fn(u32) -> String, most: usize| -> Vec<(String, String)> {
        let names = sets.iter().map(|set| name(set, of));
        names.map(|names| (names.join("∪"), union(&names, most))).collect()
    };
    let rows = labels(&table.rows, class, 11);
    let columns = labels(&table.columns, cluster, 7);
    let longest = columns.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
    let head = if longest <= 2 { 18.0 } else { 8.0 + 6.5 * longest as f64 };
    let (width, height) = (LABEL + CELL * columns.len() as f64 + 2.0, head + CELL * rows.len() as f64 + 2.0);
    let x = |column: usize| LABEL + CELL * column as f64;
    let y = |row: usize| head + CELL * row as f64;
    html! {
        // Cells have one size in all tables, so that several can be compared; on a small screen, one that can be read.
        svg.confusion viewBox=(format!("0 0 {} {}", number(width), number(height)))
            style=(format!("min-width:{}px;max-width:{}px", number(0.7 * width), number(width))) role="img" aria-label=(label) {
            @for (column, (whole, text)) in columns.iter().enumerate() {
                @let middle = number(x(column) + CELL / 2.0);
                @if longest <= 2 {
                    text.middle x=(middle) y=(number(head - 6.0)) { (text) }
                } @else {
                    text transform=(format!("translate({} {})rotate(-90)", number(x(column) + CELL / 2.0 + 4.0), number(head - 5.0))) {
                        (text) title { (whole) }
                    }
                }
            }
            @for (row, (whole, text)) in rows.iter().enumerate() {
                text.end x=(LABEL - 6.0) y=(number(y(row) + 14.0)) { (text) title { (whole) } }
                @let total = table.counts[row].iter().sum::<usize>().max(1);
                @for (column, count) in table.counts[row].iter().enumerate() {
                    @if *count > 0 {
                        @let share = *count as f64 / total as f64;
                        rect x=(number(x(column) + 0.5)) y=(number(y(row) + 0.5)) width=(CELL - 1.0) height=(CELL - 1.0) rx="2"
                            fill-opacity=(format!("{:.2}", 0.12 + 0.88 * share)) {
                            title { (count) " of " (total) " examples of " (whole) " in " (columns[column].0) }
                        }
                        text.middle.strong[share > 0.45] x=(number(x(column) + CELL / 2.0)) y=(number(y(row) + 14.0)) {
                            (count)
                        }
                    }
                }
            }
            rect.frame x=(LABEL) y=(number(head)) width=(number(CELL * columns.len() as f64)) height=(number(CELL * rows.len() as f64)) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_together_meets_on_the_diagonal() {
        let truth = Sets::from_iter([vec![0], vec![0], vec![1], vec![1], vec![0, 1], vec![0, 1]]);
        let found = Sets::from_iter([vec![7], vec![7], vec![3], vec![7], vec![3, 7], vec![5]]);
        let table = Table::new(&truth, &found);
        assert_eq!(table.rows, [Some(vec![0]), Some(vec![1]), Some(vec![0, 1])]);
        assert_eq!(table.columns, [Some(vec![7]), Some(vec![3]), Some(vec![3, 7]), Some(vec![5])]);
        assert_eq!(table.counts, [[2, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]);
    }

    #[test]
    fn too_many_sets_are_counted_together() {
        let truth = Sets::singletons(&(0..100).collect::<Vec<_>>());
        let found = Sets::singletons(&(0..100).map(|at| at % 50).collect::<Vec<_>>());
        let table = Table::new(&truth, &found);
        assert_eq!((table.rows.len(), table.columns.len()), (31, 31));
        assert_eq!(table.counts.iter().flatten().sum::<usize>(), 100);
        assert_eq!((table.rows[30].as_ref(), table.columns[30].as_ref()), (None, None));
    }

    #[test]
    fn names_are_escaped() {
        let sets = Sets::singletons(&[0]);
        let svg = draw(&sets, &sets, &|_| "<b>".to_owned(), &|member| member.to_string(), "x").into_string();
        assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"), "{svg}");
    }
}
