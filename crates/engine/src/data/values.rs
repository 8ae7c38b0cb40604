//! The values of columns: what kinds are taken, converted to the one the engine has, and what is wrong with them.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, ArrayRef, Float32Array, Int64Array, OffsetSizeTrait, StringArray};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType};
use compflow_api::{Column, Table, in_words, plural};

use super::held::VALUE;
use crate::causes::Cause;
use crate::error::{Error, Result};

/// What the name of a further column begins with in a stream.
pub(crate) const FURTHER: &str = "column:";

/// Checks that all embeddings have the same length: that of the first.
#[derive(Debug, Default)]
pub(crate) struct Width {
    /// 0 before the first row.
    pub(crate) dim: usize,
}

impl Width {
    /// The numbers of an embedding column, row after row.
    ///
    /// # Errors
    /// Naming the row that has another length, a null, or something that is no number.
    pub(crate) fn values(&mut self, column: &ArrayRef, first_row: usize) -> Result<Float32Array> {
        if column.null_count() > 0
            && let Some(row) = (0..column.len()).find(|&row| column.is_null(row))
        {
            return Err(faulty(format!("row {}: the embedding is null", first_row + row)));
        }
        let are_numbers = |kind: &DataType| kind.is_numeric() || *kind == DataType::Boolean;
        let (values, lengths) =
            list_parts(column).filter(|(values, _)| are_numbers(values.data_type())).ok_or_else(|| {
                let found = in_words(column.data_type());
                let problem = Error::fault(
                    Cause::EmbeddingKind,
                    format!("the embedding column must hold lists of numbers, found {found}"),
                );
                match are_numbers(column.data_type()) {
                    true => {
                        problem.help("if every dimension has a column, name all of them: `embedding = \"d*\"`")
                    }
                    false => problem,
                }
            })?;
        for (row, length) in lengths.iter().enumerate() {
            let row = first_row + row;
            if *length == 0 {
                return Err(faulty(format!("row {row}: the embedding is empty")));
            }
            if self.dim == 0 {
                self.dim = *length;
            }
            if *length != self.dim {
                let numbers = plural(*length, "number");
                let text = format!("row {row}: the embedding has {numbers}, those before it have {}", self.dim);
                return Err(faulty(text)
                    .help("all must be from one model: leave the others out, or make them data of their own"));
            }
        }
        if values.null_count() > 0
            && let Some(at) = (0..values.len()).find(|&at| values.is_null(at))
        {
            let (row, dimension) = (first_row + at / self.dim, at % self.dim);
            return Err(faulty(format!("row {row}: the embedding is null in dimension {dimension}")));
        }
        let original = values;
        let values = convert(&original, &DataType::Float32)?;
        let values = values.as_primitive::<Float32Type>().clone();
        if let Some(at) = values.values().iter().position(|value| !value.is_finite()) {
            let (row, dimension) = (first_row + at / self.dim, at % self.dim);
            let wide = original.as_primitive_opt::<Float64Type>().map(|wide| wide.value(at));
            if let Some(wide) = wide.filter(|wide| wide.is_finite()) {
                return Err(faulty(format!(
                    "row {row}: {wide:e} in dimension {dimension} is too large for 32 bits"
                )));
            }
            let value = values.value(at);
            return Err(faulty(format!("row {row}: the embedding is {value} in dimension {dimension}")));
        }
        Ok(values)
    }
}

/// The numbers of a trial column.
pub(crate) fn trial_numbers(column: &ArrayRef, first_row: usize) -> Result<Vec<u32>> {
    if !column.data_type().is_integer() {
        let text = format!("the trial column must hold whole numbers, found {}", in_words(column.data_type()));
        return Err(no_trial(text));
    }
    let numbers = convert(column, &DataType::Int64)?;
    let numbers: &Int64Array = numbers.as_primitive::<Int64Type>();
    (0..numbers.len())
        .map(|row| {
            if numbers.is_null(row) {
                return Err(no_trial(format!("row {}: the trial is null", first_row + row)));
            }
            u32::try_from(numbers.value(row)).map_err(|_| {
                let (row, number) = (first_row + row, numbers.value(row));
                no_trial(format!("row {row}: the trial {number} is not between 0 and 2^32"))
            })
        })
        .collect()
}

/// That a trial has no number.
fn no_trial(text: String) -> Error {
    Error::fault(Cause::TrialNumber, text)
        .help("give every trial a whole number, as pandas.factorize does; without `trial` in `columns` all examples are one")
}

/// Columns of paths that are read if a source has them, for who looks at examples.
pub const MEDIA: [&str; 2] = ["image", "audio"];

/// Appends a further column: integers, floats or strings.
pub(super) fn append_further(table: &mut Table, name: &str, column: &ArrayRef, first_row: usize) -> Result<()> {
    let of_type = match column.data_type() {
        kind if kind.is_integer() => DataType::Int64,
        kind if kind.is_floating() => DataType::Float64,
        kind if is_text(kind) => DataType::Utf8,
        kind => {
            let found = in_words(kind);
            return Err(Error::data(format!("the column `{name}` must hold numbers or text, found {found}")));
        }
    };
    // A float that is missing is no number, a path that is missing is an empty one; nothing stands for another value that is.
    if of_type != DataType::Float64
        && !MEDIA.contains(&name)
        && let Some(row) = (0..column.len()).find(|&row| column.is_null(row))
    {
        return Err(Error::data(format!("row {}: the column `{name}` is null", first_row + row)));
    }
    let values = convert(column, &of_type)?;
    let read = match of_type {
        DataType::Int64 => Column::Integers(values.as_primitive::<Int64Type>().values().to_vec()),
        DataType::Float64 => {
            let values = values.as_primitive::<Float64Type>();
            Column::Floats(values.iter().map(|value| value.unwrap_or(f64::NAN)).collect())
        }
        _ => Column::Texts(
            values.as_string::<i32>().iter().map(|text| text.unwrap_or_default().to_owned()).collect(),
        ),
    };
    let Some((_, known)) = table.iter_mut().find(|(known, _)| known == name) else {
        table.push((name.to_owned(), read));
        return Ok(());
    };
    match (known, read) {
        (Column::Integers(known), Column::Integers(read)) => known.extend(read),
        (Column::Floats(known), Column::Floats(read)) => known.extend(read),
        (Column::Texts(known), Column::Texts(read)) => known.extend(read),
        _ => return Err(Error::data(format!("the column `{name}` is of another type than in the files before"))),
    }
    Ok(())
}

/// The numbers of a column of preferences or weights.
pub(super) fn numbers_of(column: &ArrayRef, what: &str, first_row: usize) -> Result<Vec<f32>> {
    if !column.data_type().is_numeric() {
        let text = format!("the {what} column must hold numbers, found {}", in_words(column.data_type()));
        return Err(Error::fault(Cause::Number, text));
    }
    let numbers = convert(column, &DataType::Float32)?;
    let numbers: &Float32Array = numbers.as_primitive();
    (0..numbers.len())
        .map(|row| match numbers.is_valid(row).then(|| numbers.value(row)) {
            Some(number) if number.is_finite() => Ok(number),
            Some(number) => {
                Err(Error::fault(Cause::Number, format!("row {}: the {what} is {number}", first_row + row)))
            }
            None => Err(Error::fault(Cause::Number, format!("row {}: the {what} is null", first_row + row))),
        })
        .collect()
}

/// A column of weights.
pub(crate) fn weights_of(column: &ArrayRef, first_row: usize) -> Result<Vec<f32>> {
    let weights = numbers_of(column, "weight", first_row)?;
    match weights.iter().position(|weight| *weight < 0.0) {
        None => Ok(weights),
        Some(row) => {
            let (row, weight) = (first_row + row, weights[row]);
            Err(Error::fault(Cause::Number, format!("row {row}: the weight {weight} is below 0")))
        }
    }
}

/// The values of a list column, without those that no row refers to, and every row's number of values.
pub(super) fn list_parts(column: &ArrayRef) -> Option<(ArrayRef, Vec<usize>)> {
    fn of_offsets<O: OffsetSizeTrait>(list: &arrow_array::GenericListArray<O>) -> (ArrayRef, Vec<usize>) {
        let offsets = list.offsets();
        let (first, last) = (offsets[0].as_usize(), offsets[list.len()].as_usize());
        let lengths = offsets.windows(2).map(|ends| ends[1].as_usize() - ends[0].as_usize()).collect();
        (list.values().slice(first, last - first), lengths)
    }
    if let Some(list) = column.as_fixed_size_list_opt() {
        let width = list.value_length() as usize;
        // `values` of a fixed-size list are already those of its slice.
        return Some((list.values().slice(0, list.len() * width), vec![width; list.len()]));
    }
    let small = column.as_list_opt::<i32>().map(of_offsets);
    small.or_else(|| column.as_list_opt::<i64>().map(of_offsets))
}

/// The same values in another type, each of which has to fit.
pub(super) fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &strict).map_err(|error| {
        let text = match error {
            ArrowError::CastError(text) | ArrowError::ParseError(text) | ArrowError::ComputeError(text) => text,
            other => other.to_string(),
        };
        Error::data(text)
    })
}

/// Whether a column holds texts.
pub(crate) fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// How many bytes the values of a column take once they are read, those of its lists included.
pub(super) fn value_bytes(column: &ArrayRef) -> u64 {
    // Lists of lists have no name that would be read.
    let inner = list_parts(column).map_or(0, |(values, _)| VALUE * values.len() as u64);
    VALUE * column.len() as u64 + inner + text_bytes(column)
}

/// How many bytes the letters of a column, or of its lists, take once each text has its own.
fn text_bytes(column: &ArrayRef) -> u64 {
    let sum = |lengths: &mut dyn Iterator<Item = usize>| lengths.map(|length| length as u64).sum();
    match column.data_type() {
        DataType::Utf8 => sum(&mut column.as_string::<i32>().iter().flatten().map(str::len)),
        DataType::LargeUtf8 => sum(&mut column.as_string::<i64>().iter().flatten().map(str::len)),
        DataType::Utf8View => sum(&mut column.as_string_view().iter().flatten().map(str::len)),
        DataType::Dictionary(_, values) if is_text(values) => {
            let dictionary = column.as_any_dictionary();
            let values = dictionary.values();
            if values.is_empty() {
                return 0;
            }
            let lengths: Vec<u64> = (0..values.len()).map(|at| text_bytes(&values.slice(at, 1))).collect();
            let keys = dictionary.normalized_keys();
            let used = (0..column.len()).filter(|row| column.is_valid(*row));
            used.filter_map(|row| lengths.get(keys[row])).sum()
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            // Only texts in lists: what is nested deeper has no name that would be read.
            let texts = list_parts(column).filter(|(values, _)| is_text(values.data_type()));
            texts.map_or(0, |(values, _)| text_bytes(&values))
        }
        _ => 0,
    }
}

/// What begins and ends a text or a list.
const ENDS: u64 = 8;

/// Whether several rows of a column, or of its lists, may share a value: as a run of them, or by a dictionary.
pub(super) fn shares_values(kind: &DataType) -> bool {
    match kind {
        DataType::RunEndEncoded(..) | DataType::Dictionary(..) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            shares_values(item.data_type())
        }
        _ => false,
    }
}

/// How many bytes some rows of a column take once each has a value of its own.
pub(super) fn plain_bytes(column: &ArrayRef, rows: Range<usize>) -> u64 {
    fn between<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, rows: &Range<usize>) -> Range<usize> {
        offsets[rows.start].as_usize()..offsets[rows.end].as_usize()
    }
    let kind = column.data_type();
    let ends = ENDS * rows.len() as u64;
    let inside = match kind {
        _ if rows.is_empty() => 0,
        DataType::Null | DataType::Boolean => 0,
        DataType::Utf8 => between(column.as_string::<i32>().offsets(), &rows).len() as u64,
        DataType::LargeUtf8 => between(column.as_string::<i64>().offsets(), &rows).len() as u64,
        // The lower half of a view is how long it is.
        DataType::Utf8View => {
            column.as_string_view().views()[rows].iter().map(|view| u64::from(*view as u32)).sum()
        }
        DataType::List(_) => {
            let list = column.as_list::<i32>();
            plain_bytes(list.values(), between(list.offsets(), &rows))
        }
        DataType::LargeList(_) => {
            let list = column.as_list::<i64>();
            plain_bytes(list.values(), between(list.offsets(), &rows))
        }
        DataType::FixedSizeList(..) => {
            let list = column.as_fixed_size_list();
            let width = list.value_length() as usize;
            plain_bytes(list.values(), rows.start * width..rows.end * width)
        }
        DataType::Dictionary(..) => keyed_bytes(&column.slice(rows.start, rows.len())),
        DataType::RunEndEncoded(ends, _) => {
            let runs = column.slice(rows.start, rows.len());
            match ends.data_type() {
                DataType::Int16 => run_bytes::<Int16Type>(&runs),
                DataType::Int32 => run_bytes::<Int32Type>(&runs),
                _ => run_bytes::<Int64Type>(&runs),
            }
        }
        // What nobody reads is no more than all of it for each row.
        _ => match kind.primitive_width() {
            Some(width) => return (width as u64).saturating_mul(rows.len() as u64),
            None => (column.get_array_memory_size() as u64).saturating_mul(rows.len() as u64),
        },
    };
    inside.saturating_add(ends)
}

/// [`plain_bytes`] of all rows of a dictionary.
fn keyed_bytes(column: &ArrayRef) -> u64 {
    let dictionary = column.as_any_dictionary();
    let values = dictionary.values();
    if values.is_empty() {
        return 0;
    }
    let keys = dictionary.normalized_keys().into_iter().enumerate();
    let used = keys.filter(|(row, _)| column.is_valid(*row));
    used.map(|(_, key)| plain_bytes(values, key..key + 1)).fold(0, u64::saturating_add)
}

/// [`plain_bytes`] of all rows of runs.
fn run_bytes<E: RunEndIndexType>(column: &ArrayRef) -> u64 {
    let runs = column.as_run::<E>();
    let (values, mut begin) = (runs.values_slice(), 0);
    let lengths = runs.run_ends().sliced_values().map(|end| {
        let length = end.as_usize() - begin;
        begin = end.as_usize();
        length as u64
    });
    let bytes = lengths.enumerate().map(|(run, length)| length.saturating_mul(plain_bytes(&values, run..run + 1)));
    bytes.fold(0, u64::saturating_add)
}

/// Texts, however they are kept.
pub(super) fn strings(column: &ArrayRef) -> Result<StringArray> {
    Ok(convert(column, &DataType::Utf8)?.as_string().clone())
}

/// What is wrong with an embedding.
pub(super) fn faulty(text: String) -> Error {
    Error::fault(Cause::Embedding, text).help("leave such examples out, or compute their embeddings again")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int32Array, ListArray, RunArray, StringArray, StringViewArray};
    use arrow_schema::Field;

    use super::*;

    #[test]
    fn texts_count_as_often_as_there_are_rows_however_they_are_kept() {
        let texts = StringArray::from(vec![Some("ab"), None, Some("cde")]);
        let lists = ListArray::new(
            Arc::new(Field::new_list_field(DataType::Utf8, true)),
            OffsetBuffer::from_lengths([1, 1]),
            Arc::new(texts.slice(0, 2)),
            None,
        );
        let shared: DictionaryArray<Int8Type> =
            ["long", "x", "long"].into_iter().map(Some).chain([None]).collect();
        let views = StringViewArray::from(vec!["a text that is longer than twelve letters", ""]);
        let all: [ArrayRef; 5] = [
            Arc::new(texts),
            Arc::new(lists),
            Arc::new(shared),
            Arc::new(views),
            Arc::new(Int64Array::from(vec![1])),
        ];
        assert_eq!(all.each_ref().map(text_bytes), [5, 2, 9, 41, 0]);
        // Three texts; two lists of two in all; four; two; one number.
        let values = [3, 2 + 2, 4, 2, 1].map(|values| values * VALUE);
        let bytes: Vec<u64> =
            values.iter().zip([5, 2, 9, 41, 0]).map(|(values, letters)| values + letters).collect();
        assert_eq!(all.each_ref().map(value_bytes)[..], bytes);
    }

    #[test]
    fn a_value_for_many_rows_counts_for_each_of_them() {
        let all = |column: &ArrayRef| plain_bytes(column, 0..column.len());
        let ends = Int32Array::from(vec![3, 1_000_000]);
        let texts = StringArray::from(vec!["abcd", "0123456789"]);
        let runs: ArrayRef = Arc::new(RunArray::try_new(&ends, &texts).unwrap());
        assert_eq!(all(&runs), 3 * 4 + 999_997 * 10 + 999_998 * 8 + 2 * 8 + 1_000_000 * 8);
    }
}
