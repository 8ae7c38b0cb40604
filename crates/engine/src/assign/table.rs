//! What became of examples, as a table.

use std::fs::File;
use std::io::BufWriter;

use arrow_array::{Array, ArrayRef};
use compflow_api::Column as Further;
use polars::prelude::*;

use super::assigner::{Assigned, Choice};
use crate::data::dataset::further_column;
use crate::error::{Error, Result};

/// The columns that are written beside the identifier and those that were asked for.
pub(super) const COLUMNS: [&str; 7] =
    ["id", "clusters", "distance", "runner_up", "runner_up_distance", "margin", "posterior"];

/// The identifiers of a batch: row numbers if the source has none.
///
/// # Errors
/// If they are neither integers nor strings.
pub(super) fn ids(column: Option<&ArrayRef>, first: u64, first_of_file: usize, count: usize) -> Result<Column> {
    let Some(column) = column else {
        return Ok(Column::new("id".into(), (first as i64..first as i64 + count as i64).collect::<Vec<i64>>()));
    };
    if column.data_type().is_floating() {
        let kind = column.data_type();
        return Err(Error::data(format!("the id column must hold integers or strings, found {kind}")));
    }
    further("id", column, first_of_file)
}

/// A column that is copied.
///
/// # Errors
/// If it holds something that a table of results cannot.
pub(super) fn further(name: &str, column: &ArrayRef, first_of_file: usize) -> Result<Column> {
    let name: PlSmallStr = name.into();
    Ok(match further_column(&name, column, first_of_file)? {
        Further::Integers(values) => Column::new(name, values),
        Further::Texts(values) => Column::new(name, values),
        Further::Floats(values) => Column::new(
            name,
            values.into_iter().map(|value| Some(value).filter(|v| !v.is_nan())).collect::<Vec<_>>(),
        ),
        _ => return Err(Error::data(format!("the column `{name}` must hold integers, floats or strings"))),
    })
}

/// The columns of an assignment behind those that say which example it is.
///
/// # Errors
/// If columns are not equally long.
pub(super) fn table(mut columns: Vec<Column>, assigned: &Assigned<'_>) -> Result<DataFrame> {
    let count = assigned.len();
    let single = |name: &str, value: fn(&Choice) -> f64| {
        let values = assigned.choices.iter().map(|choice| Some(value(choice) as f32).filter(|v| !v.is_nan()));
        Column::new(name.into(), values.collect::<Vec<Option<f32>>>())
    };
    columns.push(sets("clusters", (0..count).map(|at| Some(assigned.set(at)))));
    columns.push(single("distance", |choice| choice.distance));
    columns.push(sets("runner_up", (0..count).map(|at| assigned.runner_up(at))));
    columns.push(single("runner_up_distance", |choice| choice.runner_up_distance));
    columns.push(single("margin", |choice| choice.margin));
    columns.push(single("posterior", |choice| choice.posterior));
    DataFrame::new(count, columns).map_err(|error| unfit(&error))
}

/// Writes a table in parts with the same columns, each made when it is written.
///
/// # Errors
/// Those of the parts, and that they cannot be written.
pub(super) fn write(file: &mut BufWriter<&File>, parts: impl Iterator<Item = Result<DataFrame>>) -> Result<()> {
    let failed = |error: PolarsError| Error::run(format!("the table cannot be written: {error}"));
    let mut writer = None;
    for part in parts {
        let part = part?;
        if writer.is_none() {
            // Most of it is distances, which no compression makes smaller; sets become short by their dictionary.
            let table = ParquetWriter::new(&mut *file).with_compression(ParquetCompression::Snappy);
            writer = Some(table.batched(part.schema()).map_err(failed)?);
        }
        if let Some(writer) = &mut writer {
            writer.write_batch(&part).map_err(failed)?;
        }
    }
    writer.map_or(Ok(()), |writer| writer.finish().map(|_| ()).map_err(failed))
}

/// Parts that do not belong to one table: files whose columns are of different types.
pub(super) fn unfit(error: &PolarsError) -> Error {
    let text = error.to_string();
    Error::data(format!("the files have columns of different types: {}", text.lines().next().unwrap_or_default()))
}

fn sets<'a>(name: &str, sets: impl ExactSizeIterator<Item = Option<&'a [u32]>>) -> Column {
    let count = sets.len();
    let mut builder =
        ListPrimitiveChunkedBuilder::<UInt32Type>::new(name.into(), count, 2 * count, DataType::UInt32);
    sets.for_each(|set| builder.append_opt_slice(set));
    builder.finish().into_column()
}
