//! What became of examples, as a table.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, Float32Array, Int64Array, ListArray, RecordBatch, UInt32Array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::assigner::{Assigned, Choice};
use crate::causes::Cause;
use crate::data::label_sets::wrong_kind;
use crate::data::values::is_text;
use crate::error::{Error, Result};
use crate::files::Output;

/// The columns that are written beside those that were asked for.
pub(super) const COLUMNS: [&str; 7] =
    ["id", "clusters", "distance", "runner_up", "runner_up_distance", "margin", "posterior"];

/// Those that are written besides if clusters have names.
pub(super) const NAMES: [&str; 2] = ["names", "runner_up_names"];

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 20;

/// Identifiers for examples that have none: the numbers of their rows.
pub(crate) fn row_numbers(first: u64, count: usize) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values((first..first + count as u64).map(|row| row as i64)))
}

/// Identifiers as the run's tables have them: integers of 64 bits, or texts.
///
/// # Errors
/// Naming the row without one, or the type that is none.
pub(crate) fn identifiers(column: &ArrayRef, first_row: usize) -> Result<ArrayRef> {
    let kind = column.data_type();
    if !kind.is_integer() && !is_text(kind) {
        return Err(wrong_kind("id", kind));
    }
    if column.null_count() > 0
        && let Some(row) = (0..column.len()).find(|&row| column.is_null(row))
    {
        return Err(Error::fault(Cause::Identifier, format!("row {}: the id is null", first_row + row)));
    }
    if is_text(kind) {
        return Ok(column.clone());
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let wide = cast_with_options(column, &DataType::Int64, &strict);
    wide.map_err(|error| Error::data(format!("an id does not fit into 64 bits: {error}")))
}

/// The table of some examples; `columns` say which they are.
///
/// # Errors
/// If columns are not equally long.
pub(crate) fn table(columns: Vec<(String, ArrayRef)>, assigned: &Assigned<'_>) -> Result<RecordBatch> {
    let count = assigned.len();
    let numbers = |value: fn(&Choice) -> f64| -> ArrayRef {
        let values: Vec<f32> = assigned.choices.iter().map(|choice| value(choice) as f32).collect();
        let there: NullBuffer = values.iter().map(|value| !value.is_nan()).collect::<Vec<bool>>().into();
        Arc::new(Float32Array::new(values.into(), Some(there)))
    };
    let mut all = columns;
    let mut push = |name: &str, array: ArrayRef| all.push((name.to_owned(), array));
    push("clusters", sets((0..count).map(|at| Some(assigned.set(at))))?);
    if assigned.are_named() {
        push(NAMES[0], names((0..count).map(|at| assigned.names(Some(assigned.set(at))))));
    }
    push("distance", numbers(|choice| choice.distance));
    push("runner_up", sets((0..count).map(|at| assigned.runner_up(at)))?);
    if assigned.are_named() {
        push(NAMES[1], names((0..count).map(|at| assigned.names(assigned.runner_up(at)))));
    }
    push("runner_up_distance", numbers(|choice| choice.runner_up_distance));
    push("margin", numbers(|choice| choice.margin));
    push("posterior", numbers(|choice| choice.posterior));
    // Every batch has the same columns, whether or not one of it has a null.
    let fields: Vec<Field> =
        all.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), name != "clusters")).collect();
    let arrays = all.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(|error| Error::data(error.to_string()))
}

/// A column of the names of sets, null where there is none.
fn names<'a>(sets: impl Iterator<Item = Option<impl Iterator<Item = &'a str>>>) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for names in sets {
        let there = names.is_some();
        names.into_iter().flatten().for_each(|name| lists.values().append_value(name));
        lists.append(there);
    }
    Arc::new(lists.finish())
}

/// A column of sets, null where there is none.
fn sets<'a>(sets: impl ExactSizeIterator<Item = Option<&'a [u32]>>) -> Result<ArrayRef> {
    let (mut lengths, mut values) = (Vec::with_capacity(sets.len()), Vec::with_capacity(2 * sets.len()));
    let mut there = Vec::with_capacity(sets.len());
    for set in sets {
        lengths.push(set.map_or(0, <[u32]>::len));
        there.push(set.is_some());
        values.extend_from_slice(set.unwrap_or_default());
    }
    let item = Arc::new(Field::new_list_field(DataType::UInt32, false));
    let there = Some(NullBuffer::from(there)).filter(|there| there.null_count() > 0);
    let offsets = OffsetBuffer::from_lengths(lengths);
    let lists = ListArray::try_new(item, offsets, Arc::new(UInt32Array::from(values)), there);
    Ok(Arc::new(lists.map_err(|error| Error::data(error.to_string()))?))
}

/// Writes a table in parts with the same columns, each made when it is written.
///
/// # Errors
/// Those of the parts, that they differ in their columns, and that they cannot be written.
pub(crate) fn write(file: &mut Output<'_>, parts: impl Iterator<Item = Result<RecordBatch>>) -> Result<()> {
    let failed =
        |error: parquet::errors::ParquetError| Error::run(format!("the table cannot be written: {error}"));
    let mut parts = parts.peekable();
    let schema = match parts.peek() {
        Some(Ok(part)) => part.schema(),
        Some(Err(_)) => return parts.next().map_or(Ok(()), |part| part.map(|_| ())),
        None => return Err(Error::fault(Cause::Empty, "there are no rows")),
    };
    // Few sets stand for many examples; of numbers hardly two are equal.
    let few = ["clusters", "names", "runner_up"].map(|name| ColumnPath::from(format!("{name}.list.item")));
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(false);
    let properties = few
        .into_iter()
        .fold(properties, |properties, column| properties.set_column_dictionary_enabled(column, true));
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties.build())).map_err(failed)?;
    for part in parts {
        let part = part?;
        if part.schema() != schema {
            return Err(Error::data("the files have columns of different types; assign each kind by itself"));
        }
        writer.write(&part).map_err(failed)?;
    }
    writer.close().map(|_| ()).map_err(failed)
}
