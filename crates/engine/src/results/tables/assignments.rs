//! Tables with a row for every example: what it was given to, and how much it belongs to each singleton.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::ops::Range;

use compflow_api::Column as Extra;
use polars::prelude::*;

use super::Sink;
use super::batch::Batch;
use super::columns::{join_columns, lists};
use crate::data::Ids;
use crate::plan::Plan;
use crate::results::names;
use crate::run::Outcome;
use crate::run::row::Row;

/// The rows that a part of `assignments` has at most, as the table may be larger than everything else together.
const PART_ROWS: usize = 1 << 20;

/// Some examples of a cell.
type Piece<'a> = (&'a Row, &'a Outcome, Range<usize>);

/// The tables of examples.
pub(super) struct Assignments<'a> {
    plan: &'a Plan,
    /// Further columns by their names: one such as all clusterers give, or none if they give different ones.
    extra: BTreeMap<&'a str, Option<&'a Extra>>,
    /// Whether all identifiers are numbers; if some are texts, all become texts.
    numbers: bool,
    /// Whether there is a column of names.
    named: bool,
}

impl<'a> Assignments<'a> {
    /// Of all these rows, whatever batch they are in.
    pub(super) fn new(plan: &'a Plan, rows: &'a [Row]) -> Self {
        let finished = || rows.iter().filter_map(|row| Some((row, row.brief.as_ref()?)));
        let mut extra = BTreeMap::new();
        for (name, column) in finished().flat_map(|(_, brief)| &brief.extra) {
            let known = extra.entry(name.as_str()).or_insert(Some(column));
            *known = known.filter(|known| discriminant(*known) == discriminant(column));
        }
        let numbers = finished().all(|(row, _)| matches!(ids(plan, row), Ids::Numbers(_)));
        Self { plan, extra, numbers, named: names::are_there(plan) }
    }

    /// What the examples of some cells were given to.
    pub(super) fn write(&self, batch: &Batch<'_>, sink: Sink<'_>) -> PolarsResult<()> {
        parts(batch).iter().try_for_each(|part| sink(self.table(part)?))
    }

    /// How much they belong to each singleton.
    pub(super) fn write_memberships(&self, batch: &Batch<'_>, sink: Sink<'_>) -> PolarsResult<()> {
        parts(batch).iter().try_for_each(|part| sink(self.memberships(part)?))
    }

    fn table(&self, part: &[Piece<'_>]) -> PolarsResult<DataFrame> {
        let sets = || {
            part.iter().flat_map(|(_, outcome, range)| range.clone().map(|at| &outcome.clustering.assignments[at]))
        };
        let mut columns = join_columns(self.plan, part.iter().map(|(row, _, range)| (*row, range.len())));
        columns.push(self.ids(part));
        columns.push(lists("clusters", sets().map(Some)));
        if self.named {
            let of_pieces: Vec<Option<Vec<String>>> =
                part.iter().map(|(row, outcome, _)| names::of_cell(self.plan, row, &outcome.clustering)).collect();
            let of_rows = of_pieces
                .iter()
                .zip(part)
                .flat_map(|(names, (.., range))| range.clone().map(move |_| names.as_deref()));
            columns.push(names::lists(of_rows.zip(sets())));
        }
        columns.push(Column::new("composite".into(), sets().map(|set| set.len() > 1).collect::<Vec<_>>()));
        let distances: Vec<Option<f32>> = part
            .iter()
            .flat_map(|(_, outcome, range)| range.clone().map(|at| outcome.distances.get(at).copied()))
            // An example that belongs to no cluster is at no distance from it.
            .map(|distance| distance.filter(|distance| !distance.is_nan()))
            .collect();
        columns.push(Column::new("distance".into(), distances));
        columns.extend(self.extra.iter().map(|(name, kind)| extra_column(name, *kind, part)));
        DataFrame::new(sets().count(), columns)
    }

    /// The memberships of the same examples as those of [`table`](Self::table), null where the method is not soft.
    fn memberships(&self, part: &[Piece<'_>]) -> PolarsResult<DataFrame> {
        let mut columns = join_columns(self.plan, part.iter().map(|(row, _, range)| (*row, range.len())));
        columns.push(self.ids(part));
        let mut builder =
            ListPrimitiveChunkedBuilder::<Float32Type>::new("memberships".into(), 0, 0, DataType::Float32);
        let mut height = 0;
        for (_, outcome, range) in part {
            let clustering = &outcome.clustering;
            let width = clustering.memberships.len().checked_div(clustering.assignments.len()).unwrap_or(0);
            height += range.len();
            for at in range.clone() {
                let row = clustering.memberships.get(at * width..(at + 1) * width);
                builder.append_opt_slice(row.filter(|row| !row.is_empty()));
            }
        }
        columns.push(builder.finish().into_column());
        DataFrame::new(height, columns)
    }

    fn ids(&self, part: &[Piece<'_>]) -> Column {
        if self.numbers {
            let numbers = part.iter().flat_map(|(row, _, range)| match ids(self.plan, row) {
                Ids::Numbers(ids) => &ids[range.clone()],
                Ids::Texts(_) => &[],
            });
            return Column::new("id".into(), numbers.copied().collect::<Vec<_>>());
        }
        let texts = part.iter().flat_map(|(row, _, range)| match ids(self.plan, row) {
            Ids::Numbers(ids) => ids[range.clone()].iter().map(ToString::to_string).collect(),
            Ids::Texts(ids) => ids[range.clone()].to_vec(),
        });
        Column::new("id".into(), texts.collect::<Vec<_>>())
    }
}

/// All examples, cut into parts; one without any if there are none.
fn parts<'b>(batch: &'b Batch<'_>) -> Vec<Vec<Piece<'b>>> {
    let mut parts = vec![Vec::new()];
    let mut room = PART_ROWS;
    for (row, outcome) in batch.finished() {
        let (mut first, total) = (0, outcome.clustering.assignments.len());
        while first < total {
            if room == 0 {
                parts.push(Vec::new());
                room = PART_ROWS;
            }
            let end = total.min(first + room);
            parts.last_mut().into_iter().for_each(|part| part.push((row, outcome, first..end)));
            room -= end - first;
            first = end;
        }
    }
    parts
}

fn ids<'a>(plan: &'a Plan, row: &Row) -> &'a Ids {
    &row.cell.trial(plan).ids
}

/// A further column: of the type that all clusterers give it, or of texts if they differ.
fn extra_column(name: &str, kind: Option<&Extra>, part: &[Piece<'_>]) -> Column {
    /// One value for every example, from columns of one type.
    macro_rules! values {
        ($kind:ident, $value:expr) => {
            part.iter()
                .flat_map(|(_, outcome, range)| {
                    let found = outcome.clustering.extra.iter().find(|(known, _)| known == name);
                    range.clone().map(move |at| match found {
                        Some((_, Extra::$kind(values))) => $value(&values[at]),
                        _ => None,
                    })
                })
                .collect::<Vec<_>>()
        };
    }
    match kind {
        Some(Extra::Sets(_)) => lists(name, values!(Sets, Some).into_iter()),
        Some(Extra::Floats(_)) => {
            let number = |value: &f64| Some(*value).filter(|value| !value.is_nan());
            Column::new(name.into(), values!(Floats, number))
        }
        Some(Extra::Integers(_)) => Column::new(name.into(), values!(Integers, |value: &i64| Some(*value))),
        Some(Extra::Flags(_)) => Column::new(name.into(), values!(Flags, |value: &bool| Some(*value))),
        Some(Extra::Texts(_)) => Column::new(name.into(), values!(Texts, |value| Some(String::as_str(value)))),
        Some(Extra::Vectors { .. }) | None => {
            let texts = part.iter().flat_map(|(_, outcome, range)| {
                let found = outcome.clustering.extra.iter().find(|(known, _)| known == name);
                range.clone().map(move |at| found.map(|(_, column)| as_text(column, at)))
            });
            Column::new(name.into(), texts.collect::<Vec<Option<String>>>())
        }
    }
}

/// One value of a column that others have with another type.
fn as_text(column: &Extra, at: usize) -> String {
    match column {
        Extra::Sets(sets) => format!("{:?}", &sets[at]),
        Extra::Floats(values) => values[at].to_string(),
        Extra::Integers(values) => values[at].to_string(),
        Extra::Flags(values) => values[at].to_string(),
        Extra::Texts(values) => values[at].clone(),
        Extra::Vectors { width, values } => format!("{:?}", &values[at * width..][..*width]),
    }
}
