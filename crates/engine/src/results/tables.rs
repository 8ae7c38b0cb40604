//! The tables of a run, as Polars dataframes written to Parquet.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use compflow_api::{Clustering, Column as Extra, Densities};
use polars::prelude::*;

use super::cell::sizes;
use super::names;
use super::summary::Summary;
use crate::data::Ids;
use crate::error::{Error, Result};
use crate::files::{Output, display, plain};
use crate::parallel;
use crate::plan::Plan;
use crate::run::Outcome;
use crate::run::generation::Generation;
use crate::run::row::Row;
use crate::run::selection::{Candidate, Selection};

/// Writes all tables; returns their hashes.
///
/// # Errors
/// Naming the table that could not be written.
pub(super) fn write(
    plan: &Plan,
    rows: &[Row],
    entries: &[Summary],
    next: &Generation,
    folder: &Path,
) -> Result<BTreeMap<String, String>> {
    let assignments = Assignments::new(plan, rows);
    let parts = assignments.parts();
    let mut tables: Vec<(&str, Writing<'_>)> = vec![
        ("runs", whole(|| runs(plan, rows))),
        ("metrics", whole(|| metrics(plan, rows))),
        ("summary", whole(|| summary(entries))),
        ("assignments", Box::new(|file| write_parts(file, parts.iter().map(|part| assignments.table(part))))),
        ("clusters", whole(|| clusters(plan, rows))),
        ("traces", whole(|| traces(plan, rows))),
        ("singletons", whole(|| singletons(plan, rows))),
        ("densities", whole(|| densities(plan, rows))),
        ("factors", whole(|| factors(plan, rows))),
        ("selection", whole(|| selection(plan, rows))),
    ];
    if plan.setting.memberships {
        let write: Writing<'_> =
            Box::new(|file| write_parts(file, parts.iter().map(|part| assignments.memberships(part))));
        tables.push(("memberships", write));
    }
    let write = |(name, write): (&'static str, Writing<'_>)| {
        let hash = next.write(&format!("{name}.parquet"), |file| write(file).map_err(std::io::Error::other));
        Ok((name.to_owned(), hash.map_err(|error| unwritable(folder, &format!("{name}.parquet"), &error))?))
    };
    // One takes as long as all others together, and all wait for the disk.
    let tables: Vec<Mutex<Option<_>>> = tables.into_iter().map(|table| Mutex::new(Some(table))).collect();
    let written = parallel::map(tables.len(), tables.len(), |at| {
        let table = tables[at].lock().unwrap_or_else(PoisonError::into_inner).take();
        let panicked = |_| Err(Error::run("compflow itself panicked while it wrote a table; please report this"));
        catch_unwind(AssertUnwindSafe(|| table.map(&write).transpose())).unwrap_or_else(panicked)
    })?;
    Ok(written.into_iter().flatten().collect())
}

/// Makes a table and writes it.
type Writing<'a> = Box<dyn FnOnce(&mut Output<'_>) -> PolarsResult<()> + Send + 'a>;

/// A table that is made as a whole.
fn whole<'a>(table: impl FnOnce() -> PolarsResult<DataFrame> + Send + 'a) -> Writing<'a> {
    Box::new(|file| write_parts(file, std::iter::once_with(table)))
}

/// Writes a table in parts with the same columns, at least one, each made when it is written.
fn write_parts(file: &mut Output<'_>, parts: impl Iterator<Item = PolarsResult<DataFrame>>) -> PolarsResult<()> {
    let mut writer = None;
    for part in parts {
        let part = part?;
        if writer.is_none() {
            writer = Some(ParquetWriter::new(&mut *file).batched(part.schema())?);
        }
        if let Some(writer) = &mut writer {
            writer.write_batch(&part)?;
        }
    }
    writer.map_or(Ok(()), |writer| writer.finish().map(|_| ()))
}

/// Why a file of the results cannot be written.
pub(super) fn unwritable(folder: &Path, name: &str, error: &std::io::Error) -> Error {
    Error::run(format!(
        "{}: {name} cannot be written: {}; finished cells are kept, run again to continue",
        display(folder),
        plain(error)
    ))
}

/// `data`, `trial` and `clusterer`, which join the tables; every row of `rows` as often as `times` says.
fn join_columns<'a>(plan: &'a Plan, rows: impl Iterator<Item = (&'a Row, usize)>) -> Vec<Column> {
    let (mut data, mut trial, mut clusterer) = (Vec::new(), Vec::new(), Vec::new());
    for (row, times) in rows {
        let loaded = &plan.data[row.cell.data];
        data.extend(std::iter::repeat_n(loaded.name.as_str(), times));
        trial.extend(std::iter::repeat_n(row.cell.trial(plan).number, times));
        clusterer.extend(std::iter::repeat_n(row.cell.label(plan), times));
    }
    vec![
        Column::new("data".into(), data),
        Column::new("trial".into(), trial),
        Column::new("clusterer".into(), clusterer),
    ]
}

fn runs(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let mut columns = join_columns(plan, rows.iter().map(|row| (row, 1)));
    let outcomes = || rows.iter().map(|row| row.outcome.as_ref());
    let diagnostics = || outcomes().map(|outcome| outcome.map(|outcome| &outcome.clustering.diagnostics));
    let counted = |several: bool| -> Vec<Option<u32>> {
        outcomes()
            .map(|outcome| {
                let assigned = &outcome?.clustering.assignments;
                let count = match several {
                    true => assigned.iter().filter(|set| set.len() > 1).collect::<HashSet<_>>().len(),
                    false => assigned.values().iter().collect::<HashSet<_>>().len(),
                };
                Some(count as u32)
            })
            .collect()
    };
    let dataset = |row: &Row| &plan.data[row.cell.data].dataset;
    let status = |row: &Row| match (&row.outcome, &row.error) {
        (_, Some(_)) => "failed",
        (Some(_), None) => "ok",
        (None, None) => "interrupted",
    };
    columns.extend([
        Column::new("params".into(), rows.iter().map(|row| row.params(plan)).collect::<Vec<_>>()),
        Column::new("n".into(), rows.iter().map(|row| row.cell.trial(plan).size() as u32).collect::<Vec<_>>()),
        Column::new("dim".into(), rows.iter().map(|row| dataset(row).dim as u32).collect::<Vec<_>>()),
        Column::new("seed".into(), rows.iter().map(|row| row.cell.seed(plan) as i64).collect::<Vec<_>>()),
        Column::new("seconds".into(), outcomes().map(|outcome| Some(outcome?.seconds)).collect::<Vec<_>>()),
        Column::new("peak_bytes".into(), outcomes().map(|outcome| Some(outcome?.peak_bytes)).collect::<Vec<_>>()),
        Column::new("iterations".into(), diagnostics().map(|found| Some(found?.iterations)).collect::<Vec<_>>()),
        Column::new("converged".into(), diagnostics().map(|found| Some(found?.converged)).collect::<Vec<_>>()),
        Column::new(
            "objective".into(),
            diagnostics()
                .map(|found| found.map(|found| found.objective).filter(|value| !value.is_nan()))
                .collect::<Vec<_>>(),
        ),
        Column::new("singletons".into(), counted(false)),
        Column::new("compositions".into(), counted(true)),
        Column::new("scalars".into(), outcomes().map(|outcome| scalars(&outcome?.clustering)).collect::<Vec<_>>()),
        Column::new("resolved".into(), rows.iter().map(|row| resolved(plan, row)).collect::<Vec<_>>()),
        Column::new("status".into(), rows.iter().map(status).collect::<Vec<_>>()),
        Column::new("error".into(), rows.iter().map(|row| row.error.as_deref()).collect::<Vec<_>>()),
    ]);
    DataFrame::new(rows.len(), columns)
}

/// Named numbers as a JSON object; `None` if there are none. One that is not finite has no form in JSON and is null.
fn scalars(clustering: &Clustering) -> Option<String> {
    let object: serde_json::Map<_, _> =
        clustering.scalars.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
    (!object.is_empty()).then(|| serde_json::Value::Object(object).to_string())
}

/// Parameters that were selected or that the method settled by itself, as a JSON object; `None` if there are none.
fn resolved(plan: &Plan, row: &Row) -> Option<String> {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_default();
    let selected = row.selection.iter().flat_map(|_| &row.cell.setup(plan).choices);
    let found = row.outcome.iter().flat_map(|outcome| &outcome.clustering.resolved);
    let object: serde_json::Map<_, _> =
        selected.chain(found).map(|(name, text)| (name.clone(), value(text))).collect();
    (!object.is_empty()).then(|| serde_json::Value::Object(object).to_string())
}

/// What was selected from, value by value; no rows if nothing was.
fn selection(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let selected: Vec<(&Row, &Selection)> =
        rows.iter().filter_map(|row| Some((row, row.selection.as_ref()?))).collect();
    let mut columns =
        join_columns(plan, selected.iter().map(|(row, selection)| (*row, selection.candidates.len())));
    // An option at a time: its number, what it is, and what it came to.
    let options = || {
        selected.iter().flat_map(|(row, selection)| {
            let setups = &row.cell.variant(plan).options;
            selection
                .candidates
                .iter()
                .zip(setups)
                .enumerate()
                .map(|(at, (candidate, setup))| (at, *selection, &setup.choices, candidate))
        })
    };
    let number = |name: &str, value: fn(&Candidate) -> f64| {
        let values = options().map(|(_, _, _, candidate)| candidate.as_ref().ok().map(value));
        Column::new(name.into(), values.collect::<Vec<Option<f64>>>())
    };
    let only = |choices: &[(String, String)]| match choices {
        [(_, value)] => value.parse::<f64>().ok(),
        _ => None,
    };
    let json = |choices: &[(String, String)]| {
        let value = |text: &str| serde_json::from_str(text).unwrap_or(serde_json::Value::Null);
        let object: serde_json::Map<_, _> =
            choices.iter().map(|(name, text)| (name.clone(), value(text))).collect();
        serde_json::Value::Object(object).to_string()
    };
    columns.extend([
        Column::new("params".into(), options().map(|(_, _, choices, _)| json(choices)).collect::<Vec<_>>()),
        Column::new("value".into(), options().map(|(_, _, choices, _)| only(choices)).collect::<Vec<_>>()),
        number("stability", |candidate| candidate.stability),
        number("stability_se", |candidate| candidate.stability_se),
        number("information", |candidate| candidate.information),
        number("null_stability", |candidate| candidate.null_stability),
        number("null_information", |candidate| candidate.null_information),
        number("worth", |candidate| candidate.worth),
        number("gap", |candidate| candidate.gap),
        number("gap_se", |candidate| candidate.gap_se),
        number("clusters", |candidate| candidate.clusters),
        Column::new("chosen".into(), options().map(|(at, of, _, _)| at == of.chosen).collect::<Vec<_>>()),
        Column::new("gap_chosen".into(), options().map(|(at, of, _, _)| at == of.by_gap).collect::<Vec<_>>()),
        Column::new(
            "error".into(),
            options()
                .map(|(_, _, _, candidate)| candidate.as_ref().err().cloned())
                .collect::<Vec<Option<String>>>(),
        ),
    ]);
    DataFrame::new(options().count(), columns)
}

/// What unions are composed from: the vectors of singletons before normalisation.
fn singletons(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let found =
        |row: &'_ Row| row.outcome.as_ref().map_or(0, |outcome| outcome.clustering.singletons.numbers.len());
    let mut columns = join_columns(plan, rows.iter().map(|row| (row, found(row))));
    let of = || rows.iter().filter_map(|row| Some(&row.outcome.as_ref()?.clustering.singletons));
    let numbers: Vec<u32> = of().flat_map(|singletons| singletons.numbers.iter().copied()).collect();
    let each = of().flat_map(|singletons| {
        let dim = singletons.vectors.len().checked_div(singletons.numbers.len()).unwrap_or(0).max(1);
        singletons.vectors.chunks_exact(dim)
    });
    let height = numbers.len();
    let each = vectors("vector", each);
    columns.push(Column::new("singleton".into(), numbers));
    if names::are_there(plan) {
        let of_cells: Vec<(Option<Vec<String>>, &[u32])> = rows
            .iter()
            .filter_map(|row| Some((row, &row.outcome.as_ref()?.clustering)))
            .map(|(row, found)| (names::of_cell(plan, row, found), &found.singletons.numbers[..]))
            .collect();
        columns.push(names::texts(of_cells.iter().flat_map(|(names, numbers)| {
            numbers.iter().map(move |at| names.as_ref()?.get(*at as usize).map(String::as_str))
        })));
    }
    columns.push(each);
    DataFrame::new(height, columns)
}

/// The densities of all cells that have some, with how many numbers each of a cell's vectors has.
fn with_densities(rows: &[Row]) -> impl Iterator<Item = (&Row, &Densities, usize)> + Clone {
    let found = rows.iter().filter_map(|row| Some((row, &row.outcome.as_ref()?.clustering.densities)));
    found.filter(|(_, found)| !found.sets.is_empty()).map(|(row, found)| {
        let dim = found.centres.len() / found.sets.len();
        (row, found, dim)
    })
}

/// How likely sets are at a point of the space: what new examples are assigned by.
fn densities(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let found = with_densities(rows);
    let mut columns = join_columns(plan, found.clone().map(|(row, found, _)| (row, found.sets.len())));
    columns.push(lists("clusters", found.clone().flat_map(|(_, found, _)| found.sets.iter().map(Some))));
    columns.push(vectors("centre", found.clone().flat_map(|(_, found, dim)| found.centres.chunks_exact(dim))));
    let of = || found.clone().map(|(_, found, _)| found);
    let offsets: Vec<f64> = of().flat_map(|found| found.offsets.iter().copied()).collect();
    let factors: Vec<u32> = of().flat_map(|found| found.factor_of.iter().copied()).collect();
    let height = offsets.len();
    columns.push(Column::new("offset".into(), offsets));
    columns.push(Column::new("factor".into(), factors));
    DataFrame::new(height, columns)
}

/// The triangular matrices that the densities refer to.
fn factors(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let found = with_densities(rows).map(|(row, found, dim)| (row, found, Densities::factor_len(dim)));
    let mut columns =
        join_columns(plan, found.clone().map(|(row, found, length)| (row, found.factors.len() / length)));
    let numbers: Vec<u32> =
        found.clone().flat_map(|(_, found, length)| 0..(found.factors.len() / length) as u32).collect();
    let height = numbers.len();
    columns.push(Column::new("factor".into(), numbers));
    columns.push(vectors("values", found.flat_map(|(_, found, length)| found.factors.chunks_exact(length))));
    DataFrame::new(height, columns)
}

/// A column of vectors.
fn vectors<'a>(name: &str, values: impl Iterator<Item = &'a [f32]>) -> Column {
    let mut builder = ListPrimitiveChunkedBuilder::<Float32Type>::new(name.into(), 0, 0, DataType::Float32);
    values.for_each(|vector| builder.append_slice(vector));
    builder.finish().into_column()
}

fn metrics(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let scores: Vec<Vec<(String, f64)>> = rows
        .iter()
        .map(|row| {
            let trial = row.cell.trial(plan);
            let outcome = row.outcome.iter();
            outcome.flat_map(|outcome| outcome.scores(&plan.setting, trial).cloned()).collect()
        })
        .collect();
    let mut columns = join_columns(plan, rows.iter().zip(&scores).map(|(row, scores)| (row, scores.len())));
    let flat = || scores.iter().flatten();
    columns.extend([
        Column::new("metric".into(), flat().map(|(name, _)| name.as_str()).collect::<Vec<_>>()),
        Column::new("value".into(), flat().map(|(_, value)| *value).collect::<Vec<_>>()),
    ]);
    DataFrame::new(flat().count(), columns)
}

/// The objective after every iteration; a method that has none has no rows.
fn traces(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let trace =
        |row: &Row| row.outcome.as_ref().map_or_else(Vec::new, |found| found.clustering.diagnostics.trace.clone());
    let traces: Vec<Vec<f64>> = rows.iter().map(trace).collect();
    let mut columns = join_columns(plan, rows.iter().zip(&traces).map(|(row, trace)| (row, trace.len())));
    let iterations: Vec<u32> = traces.iter().flat_map(|trace| 1..=trace.len() as u32).collect();
    let objectives = traces.iter().flatten().map(|value| Some(*value).filter(|value| !value.is_nan()));
    let height = iterations.len();
    columns.push(Column::new("iteration".into(), iterations));
    columns.push(Column::new("objective".into(), objectives.collect::<Vec<Option<f64>>>()));
    DataFrame::new(height, columns)
}

fn summary(entries: &[Summary]) -> PolarsResult<DataFrame> {
    DataFrame::new(
        entries.len(),
        vec![
            Column::new("data".into(), entries.iter().map(|entry| entry.data.as_str()).collect::<Vec<_>>()),
            Column::new(
                "clusterer".into(),
                entries.iter().map(|entry| entry.clusterer.as_str()).collect::<Vec<_>>(),
            ),
            Column::new("metric".into(), entries.iter().map(|entry| entry.metric.as_str()).collect::<Vec<_>>()),
            Column::new("trials".into(), entries.iter().map(|entry| entry.trials as u32).collect::<Vec<_>>()),
            Column::new("mean".into(), entries.iter().map(|entry| entry.mean).collect::<Vec<_>>()),
            Column::new("se".into(), entries.iter().map(|entry| entry.se).collect::<Vec<_>>()),
            Column::new("best".into(), entries.iter().map(|entry| entry.best).collect::<Vec<_>>()),
            Column::new("p_vs_best".into(), entries.iter().map(|entry| entry.p_vs_best).collect::<Vec<_>>()),
        ],
    )
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

/// A column of lists of numbers.
fn lists<'a>(name: &str, sets: impl Iterator<Item = Option<&'a [u32]>>) -> Column {
    let mut builder = ListPrimitiveChunkedBuilder::<UInt32Type>::new(name.into(), 0, 0, DataType::UInt32);
    sets.for_each(|set| builder.append_opt_slice(set));
    builder.finish().into_column()
}

/// The rows that a part of `assignments` has at most, as the table may be larger than everything else together.
const PART_ROWS: usize = 1 << 20;

/// Some examples of a cell.
type Piece<'a> = (&'a Row, &'a Outcome, Range<usize>);

/// The table of examples.
struct Assignments<'a> {
    plan: &'a Plan,
    finished: Vec<(&'a Row, &'a Outcome)>,
    /// Names of further columns, sorted.
    extra: Vec<&'a str>,
    /// Whether all identifiers are numbers; if some are texts, all become texts.
    numbers: bool,
    /// Whether there is a column of names.
    named: bool,
}

impl<'a> Assignments<'a> {
    fn new(plan: &'a Plan, rows: &'a [Row]) -> Self {
        let finished: Vec<_> = rows.iter().filter_map(|row| Some((row, row.outcome.as_ref()?))).collect();
        let columns = finished.iter().flat_map(|(_, outcome)| &outcome.clustering.extra);
        let mut extra: Vec<&str> = columns.map(|(name, _)| name.as_str()).collect();
        extra.sort_unstable();
        extra.dedup();
        let numbers = finished.iter().all(|(row, _)| matches!(ids(plan, row), Ids::Numbers(_)));
        Self { plan, finished, extra, numbers, named: names::are_there(plan) }
    }

    /// All examples, cut into parts; one without any if there are none.
    fn parts(&self) -> Vec<Vec<Piece<'a>>> {
        let mut parts = vec![Vec::new()];
        let mut room = PART_ROWS;
        for (row, outcome) in &self.finished {
            let (mut first, total) = (0, outcome.clustering.assignments.len());
            while first < total {
                if room == 0 {
                    parts.push(Vec::new());
                    room = PART_ROWS;
                }
                let end = total.min(first + room);
                parts.last_mut().into_iter().for_each(|part| part.push((*row, *outcome, first..end)));
                room -= end - first;
                first = end;
            }
        }
        parts
    }

    fn table(&self, part: &[Piece<'a>]) -> PolarsResult<DataFrame> {
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
        for name in &self.extra {
            columns.push(self.extra_column(name, part));
        }
        DataFrame::new(sets().count(), columns)
    }

    /// A further column: of the type that all clusterers give it, or of texts if they differ.
    fn extra_column(&self, name: &str, part: &[Piece<'a>]) -> Column {
        let of = |outcome: &'a Outcome| outcome.clustering.extra.iter().find(|(known, _)| known == name);
        let mut kinds = self.finished.iter().filter_map(|(_, outcome)| of(outcome)).map(|(_, column)| column);
        let first = kinds.next();
        let same = kinds.all(|column| first.map(std::mem::discriminant) == Some(std::mem::discriminant(column)));
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
        match first.filter(|_| same) {
            Some(Extra::Sets(_)) => lists(name, values!(Sets, Some).into_iter()),
            Some(Extra::Floats(_)) => {
                let number = |value: &f64| Some(*value).filter(|value| !value.is_nan());
                Column::new(name.into(), values!(Floats, number))
            }
            Some(Extra::Integers(_)) => Column::new(name.into(), values!(Integers, |value: &i64| Some(*value))),
            Some(Extra::Flags(_)) => Column::new(name.into(), values!(Flags, |value: &bool| Some(*value))),
            Some(Extra::Texts(_)) => {
                Column::new(name.into(), values!(Texts, |value: &'a String| Some(value.as_str())))
            }
            Some(Extra::Vectors { .. }) | None => {
                let texts = part.iter().flat_map(|(_, outcome, range)| {
                    let found = outcome.clustering.extra.iter().find(|(known, _)| known == name);
                    range.clone().map(move |at| found.map(|(_, column)| as_text(column, at)))
                });
                Column::new(name.into(), texts.collect::<Vec<Option<String>>>())
            }
        }
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

fn ids<'a>(plan: &'a Plan, row: &Row) -> &'a Ids {
    &row.cell.trial(plan).ids
}

fn clusters(plan: &Plan, rows: &[Row]) -> PolarsResult<DataFrame> {
    let finished: Vec<&Row> = rows.iter().filter(|row| row.outcome.is_some()).collect();
    let clusterings = || finished.iter().filter_map(|row| Some(&row.outcome.as_ref()?.clustering));
    let mut columns = join_columns(
        plan,
        finished
            .iter()
            .map(|row| (*row, row.outcome.as_ref().map_or(0, |outcome| outcome.clustering.clusters.len()))),
    );
    let sizes: Vec<u32> = clusterings().flat_map(sizes).collect();
    let total = sizes.len();
    columns.push(lists("clusters", clusterings().flat_map(|found| found.clusters.iter().map(Some))));
    if names::are_there(plan) {
        let of_cells: Vec<Option<Vec<String>>> =
            finished.iter().zip(clusterings()).map(|(row, found)| names::of_cell(plan, row, found)).collect();
        columns.push(names::lists(
            of_cells
                .iter()
                .zip(clusterings())
                .flat_map(|(names, found)| found.clusters.iter().map(move |set| (names.as_deref(), set))),
        ));
    }
    columns.push(Column::new("size".into(), sizes));
    columns.push(lists(
        "exemplars",
        clusterings()
            .flat_map(|found| (0..found.clusters.len()).map(|at| found.exemplars.get(at).map(Vec::as_slice))),
    ));
    columns.push(centroids(plan, &finished)?);
    DataFrame::new(total, columns)
}

/// Centroids: a fixed-size list if all data has the same dimension, a list otherwise.
fn centroids(plan: &Plan, finished: &[&Row]) -> PolarsResult<Column> {
    let mut builder = ListPrimitiveChunkedBuilder::<Float32Type>::new("centroid".into(), 0, 0, DataType::Float32);
    let mut dims: Vec<usize> = plan.data.iter().map(|data| data.dataset.dim).collect();
    for row in finished {
        let dim = plan.data[row.cell.data].dataset.dim;
        let Some(outcome) = &row.outcome else { continue };
        for at in 0..outcome.clustering.clusters.len() {
            builder.append_opt_slice(outcome.clustering.centroids.get(at * dim..(at + 1) * dim));
        }
    }
    let column = builder.finish().into_column();
    dims.dedup();
    match dims[..] {
        [dim] => column.cast(&DataType::Array(Box::new(DataType::Float32), dim)),
        _ => Ok(column),
    }
}
