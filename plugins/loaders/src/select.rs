//! Which columns and rows of a table are wanted: the request's columns under their new names, and the rows that the
//! parameter `where` admits. Used by the loaders whose files have named columns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, Scalar, StringArray,
    UInt64Array,
};
use arrow_buffer::BooleanBuffer;
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_ord::cmp::eq;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::filter::{filter_record_batch, prep_null_mask_filter};
use compflow_api::{Code, Error, LoadRequest, Problem, Result};
use serde_json::Value;

/// The value that each named column must have.
pub(crate) type Where = BTreeMap<String, Value>;

/// Refuses conditions that no column can meet.
///
/// # Errors
/// One line per condition.
pub(crate) fn check_where(conditions: &Where) -> Result<()> {
    all(conditions.iter().filter(|(_, value)| constant(value).is_none()).map(|(name, value)| {
        let text = format!("must be a string, a number, true or false, found {value}");
        Error::parameter(&format!("where.{name}"), text)
    }))
}

/// All problems of all errors in one; nothing if there are none.
pub(crate) fn all(errors: impl IntoIterator<Item = Error>) -> Result<()> {
    let problems: Vec<Problem> = errors.into_iter().flat_map(|error| error.problems().to_vec()).collect();
    if problems.is_empty() { Ok(()) } else { Err(Error::Failed(problems)) }
}

/// A scalar as an array of one.
fn constant(value: &Value) -> Option<ArrayRef> {
    Some(match value {
        Value::Bool(value) => Arc::new(BooleanArray::from(vec![*value])),
        Value::String(value) => Arc::new(StringArray::from(vec![value.as_str()])),
        Value::Number(number) => {
            if let Some(value) = number.as_i64() {
                Arc::new(Int64Array::from(vec![value]))
            } else if let Some(value) = number.as_u64() {
                Arc::new(UInt64Array::from(vec![value]))
            } else {
                Arc::new(Float64Array::from(vec![number.as_f64()?]))
            }
        }
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    })
}

/// A request and conditions, found in the schema of one file. Columns are numbered as in the file.
#[derive(Debug)]
pub(crate) struct Selection {
    /// Of the batches that come out.
    schema: SchemaRef,
    /// The source of each field of `schema`.
    columns: Vec<usize>,
    conditions: Vec<(usize, Scalar<ArrayRef>)>,
}

impl Selection {
    /// Finds the columns.
    ///
    /// # Errors
    /// A problem per column that is missing or cannot have the value asked for.
    pub(crate) fn new(source: &Schema, request: &LoadRequest<'_>, wanted: &Where, path: &Path) -> Result<Self> {
        let (mut fields, mut columns, mut conditions, mut problems) = (vec![], vec![], vec![], vec![]);
        // A request may be for tens of thousands of columns, so nobody looks through all of them for each.
        let mut known: HashMap<&str, Vec<usize>> = HashMap::new();
        let names = source.fields().iter().map(|field| field.name().as_str()).enumerate();
        names.for_each(|(index, name)| known.entry(name).or_default().push(index));
        let find = |column: &str| known.get(column)?.first().map(|&index| (index, source.field(index)));
        let named = request.columns.iter().map(|(_, column)| *column).chain(wanted.keys().map(String::as_str));
        for column in named.collect::<BTreeSet<&str>>() {
            let count = known.get(column).map_or(0, Vec::len);
            if count > 1 {
                let text = format!(
                    "{} has {count} columns that are called `{column}`: give each a name of its own",
                    path.display()
                );
                problems.push(Error::data(text));
            }
        }
        for (name, column) in request.columns {
            match find(column) {
                None => problems.push(no_column(name, column, source, path)),
                Some((index, field)) => {
                    fields.push(field.clone().with_name(*name));
                    columns.push(index);
                }
            }
        }
        for (column, value) in wanted {
            match find(column) {
                None => {
                    let mut missing = no_column(&format!("where.{column}"), column, source, path);
                    // Not one of the request's: the user wrote it among the parameters.
                    if let Error::Failed(problems) = &mut missing {
                        problems.iter_mut().for_each(|problem| problem.code = Code::Parameter);
                    }
                    problems.push(missing);
                }
                Some((index, field)) => match as_type_of(field, value) {
                    Some(constant) => conditions.push((index, Scalar::new(constant))),
                    None => {
                        let (path, holds) = (path.display(), compflow_api::in_words(field.data_type()));
                        let text = format!("is {value}, but column `{column}` of {path} holds {holds}");
                        problems.push(Error::parameter(&format!("where.{column}"), text));
                    }
                },
            }
        }
        all(problems)?;
        Ok(Self { schema: Schema::new(fields).into(), columns, conditions })
    }

    /// Of the batches that come out.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The columns that come out, ascending.
    pub(crate) fn emitted(&self) -> Vec<usize> {
        ascending(self.columns.iter().copied())
    }

    /// The columns that conditions look at, ascending.
    pub(crate) fn tested(&self) -> Vec<usize> {
        ascending(self.conditions.iter().map(|(column, _)| *column))
    }

    /// Both, ascending.
    pub(crate) fn read(&self) -> Vec<usize> {
        ascending(self.emitted().into_iter().chain(self.tested()))
    }

    /// Which rows of a batch of the columns `read` meet all conditions.
    pub(crate) fn mask(&self, batch: &RecordBatch, read: &[usize]) -> Result<BooleanArray, ArrowError> {
        let mut mask = BooleanBuffer::new_set(batch.num_rows());
        for (column, wanted) in &self.conditions {
            let equal = eq(batch.column(position(read, *column)), wanted)?;
            // A null is not equal to anything, and must not hide what other conditions say.
            let equal = if equal.null_count() > 0 { prep_null_mask_filter(&equal) } else { equal };
            mask = &mask & equal.values();
        }
        Ok(BooleanArray::new(mask, None))
    }

    /// The wanted columns of a batch of the columns `read`, under their new names.
    pub(crate) fn rename(&self, batch: &RecordBatch, read: &[usize]) -> Result<RecordBatch, ArrowError> {
        let columns = self.columns.iter().map(|column| batch.column(position(read, *column)).clone()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema(), columns, &options)
    }

    /// The wanted rows and columns of a batch of the columns [`read`](Self::read).
    pub(crate) fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let read = self.read();
        let renamed = self.rename(batch, &read)?;
        if self.conditions.is_empty() {
            return Ok(renamed);
        }
        filter_record_batch(&renamed, &self.mask(batch, &read)?)
    }
}

fn ascending(columns: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut columns: Vec<usize> = columns.collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

fn position(read: &[usize], column: usize) -> usize {
    read.partition_point(|other| *other < column)
}

/// The constant in the column's type; none if no value of that type is equal to it.
fn as_type_of(field: &Field, value: &Value) -> Option<ArrayRef> {
    let constant = constant(value)?;
    let wanted = match field.data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    let comparable = match constant.data_type() {
        DataType::Boolean => wanted == &DataType::Boolean,
        DataType::Utf8 => matches!(wanted, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
        _ => wanted.is_numeric(),
    };
    if !comparable {
        return None;
    }
    let converted =
        cast_with_options(&constant, wanted, &CastOptions { safe: false, ..Default::default() }).ok()?;
    // 0.1 is meant to be found among f32, where it is another number; 1.5 is not meant to be found among integers.
    let exact = wanted.is_floating() || cast(&converted, constant.data_type()).ok()?.as_ref() == constant.as_ref();
    exact.then_some(converted)
}

fn no_column(name: &str, column: &str, schema: &Schema, path: &Path) -> Error {
    Error::column(name, column, path.display(), schema.fields().iter().map(|field| field.name().as_str()))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, Float32Array, UInt32Array};
    use serde_json::json;

    use super::*;

    fn table() -> RecordBatch {
        let colour: DictionaryArray<Int32Type> = ["red", "blue", "red", "red"].into_iter().collect();
        RecordBatch::try_from_iter_with_nullable([
            ("n", Arc::new(UInt32Array::from(vec![Some(3), Some(3), None, Some(3)])) as ArrayRef, true),
            ("x", Arc::new(Float32Array::from(vec![0.1, 0.1, 0.1, 0.2])), true),
            ("colour", Arc::new(colour), true),
            ("good", Arc::new(BooleanArray::from(vec![true, true, true, true])), true),
            ("row", Arc::new(UInt32Array::from(vec![0, 1, 2, 3])), true),
        ])
        .unwrap()
    }

    /// The rows for which all conditions hold.
    fn rows(conditions: Value) -> Result<Vec<u32>> {
        let conditions: Where = serde_json::from_value(conditions)?;
        check_where(&conditions)?;
        let table = table();
        let request = LoadRequest { path: None, columns: &[("id", "row")] };
        let selection = Selection::new(&table.schema(), &request, &conditions, Path::new("t"))?;
        let found = selection.apply(&table.project(&selection.read())?)?;
        assert_eq!(found.schema(), selection.schema());
        assert_eq!(found.num_columns(), 1);
        Ok(found["id"].as_primitive::<arrow_array::types::UInt32Type>().values().to_vec())
    }

    #[test]
    fn rows_that_meet_all_conditions_are_kept() {
        assert_eq!(rows(json!({})).unwrap(), [0, 1, 2, 3]);
        assert_eq!(rows(json!({"n": 3})).unwrap(), [0, 1, 3]);
        assert_eq!(rows(json!({"n": 3.0, "x": 0.1})).unwrap(), [0, 1]);
        assert_eq!(rows(json!({"colour": "red", "good": true, "row": 2})).unwrap(), [2]);
        assert_eq!(rows(json!({"n": 4})).unwrap(), [0; 0]);
    }

    #[test]
    fn a_value_that_the_column_cannot_have_is_refused() {
        let refused = |conditions| rows(conditions).unwrap_err().to_string();
        assert_eq!(refused(json!({"n": -1})), "`where.n` is -1, but column `n` of t holds whole numbers");
        assert_eq!(refused(json!({"n": 1.5})), "`where.n` is 1.5, but column `n` of t holds whole numbers");
        assert_eq!(refused(json!({"n": "3"})), "`where.n` is \"3\", but column `n` of t holds whole numbers");
        assert_eq!(refused(json!({"good": 1})), "`where.good` is 1, but column `good` of t holds true and false");
        assert_eq!(
            refused(json!({"n": [3], "x": null})),
            "`where.n` must be a string, a number, true or false, found [3]\n\
             `where.x` must be a string, a number, true or false, found null"
        );
    }

    #[test]
    fn every_missing_column_is_reported_with_what_there_is() {
        let columns = [("embedding", "colours"), ("id", "identifier"), ("column:n", "m")];
        let request = LoadRequest { path: None, columns: &columns };
        let conditions = Where::from([("goot".to_owned(), json!(true))]);
        let path = Path::new("/data/t.parquet");
        let error = Selection::new(&table().schema(), &request, &conditions, path).unwrap_err();
        let codes: Vec<Code> = error.problems().iter().map(|problem| problem.code).collect();
        assert_eq!(codes, [Code::Column, Code::Column, Code::Column, Code::Parameter]);
        let (text, lacks) = (error.to_string(), "which is not in /data/t.parquet");
        let there = "there are `n`, `x`, `colour`, `good`, `row`";
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                format!("`embedding` names the column `colours`, {lacks}; did you mean `colour`? {there}"),
                format!("`id` names the column `identifier`, {lacks}; {there}"),
                format!("`column:n` names the column `m`, {lacks}; did you mean `n`? {there}"),
                format!("`where.goot` names the column `goot`, {lacks}; did you mean `good`? {there}"),
            ]
        );
    }
}
