//! The columns that a loader is asked for, and how they become those that the engine reads.
//!
//! Sources differ in how they write the same thing: an embedding is a list, a text with numbers in it, or a column for every
//! dimension; a set is a list, a text with separators, or a column of 0 and 1 for every label. What a loader returns is made
//! lists here, so that every loader can read all of them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::builder::{Float32Builder, ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, Schema};
use compflow_api::{BatchReader, in_words};

use super::held::Held;
use super::values::{FURTHER, convert, faulty, is_text, list_parts, plain_bytes, shares_values, strings};
use crate::causes::Cause;
use crate::error::{Error, Result};
use crate::pipeline::Named;

/// What a loader is asked for, and what becomes of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// The name in the stream and the name in the source.
    asked: Vec<(String, String)>,
    /// The source's columns that are the numbers of an embedding; none if one column holds them all.
    dimensions: Vec<String>,
    /// For `truth` and `seed`, the source's columns that say for a label whether it is in the set; those whose sets are in one
    /// column are not here.
    indicators: Vec<(String, Vec<String>)>,
    /// Those of both that nobody asked for under their own names.
    dropped: BTreeSet<String>,
    /// What stands between the labels of one text.
    split: Option<String>,
    /// Whether what has no text is the empty set, and not unknown.
    pub(super) empty: bool,
}

impl Request {
    /// Columns by the name that the engine has for them, and what somebody calls them. `known` says which columns there are,
    /// if that matters; `about` is the source, for messages.
    ///
    /// # Errors
    /// If a pattern stands for no column, or `known` fails.
    pub(crate) fn new(
        columns: &[(String, Named)],
        split: Option<&str>,
        about: &str,
        known: impl Fn() -> Result<Vec<String>>,
    ) -> Result<Self> {
        let mut request = Self { split: split.map(str::to_owned), ..Self::default() };
        for (name, named) in columns {
            let found = resolve(name, named, about, &known)?;
            match (name.as_str(), found) {
                ("embedding", Found::Several(columns)) => request.dimensions = columns,
                ("truth" | "seed", Found::Several(columns)) => request.indicators.push((name.clone(), columns)),
                (_, Found::One(column)) => request.asked.push((name.clone(), column)),
                (_, Found::Several(_)) => {
                    return Err(Error::data(format!("`{name}` is one column, not several")));
                }
            }
        }
        let mut known = request.names();
        for column in parts(&request.dimensions, &request.indicators) {
            let name = format!("{FURTHER}{column}");
            if known.insert(name.clone()) {
                request.asked.push((name.clone(), column.clone()));
                request.dropped.insert(name);
            }
        }
        Ok(request)
    }

    /// Columns that are what they are, by name in the stream and in the source.
    pub(crate) fn plain(columns: Vec<(String, String)>) -> Self {
        Self { asked: columns, ..Self::default() }
    }

    /// Asks for further columns, unless that has been done.
    pub(crate) fn also(&mut self, columns: impl IntoIterator<Item = (String, String)>) {
        let mut known = self.names();
        for (name, column) in columns {
            self.dropped.remove(&name);
            if known.insert(name.clone()) {
                self.asked.push((name, column));
            }
        }
    }

    /// What is asked for. There may be tens of thousands, so that nobody looks through all for each.
    fn names(&self) -> HashSet<String> {
        self.asked.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Only those of this name: `embedding`, `truth`, `trial`.
    pub(crate) fn only(&self, wanted: &[&str]) -> Self {
        let mut dimensions = self.dimensions.clone();
        if !wanted.contains(&"embedding") {
            dimensions.clear();
        }
        let mut indicators = self.indicators.clone();
        indicators.retain(|(name, _)| wanted.contains(&name.as_str()));
        let parts = || parts(&dimensions, &indicators);
        let dropped: BTreeSet<String> = parts().map(|column| format!("{FURTHER}{column}")).collect();
        let asked =
            self.asked.iter().filter(|(name, _)| wanted.contains(&name.as_str()) || dropped.contains(name));
        let asked: Vec<(String, String)> = asked.cloned().collect();
        Self { asked, dimensions, indicators, dropped, split: self.split.clone(), empty: self.empty }
    }

    /// Without a column.
    pub(crate) fn remove(&mut self, name: &str) {
        self.asked.retain(|(asked, _)| asked != name);
    }

    /// Whether a column is asked for.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.asked.iter().any(|(asked, _)| asked == name)
            || (name == "embedding" && !self.dimensions.is_empty())
            || self.indicators.iter().any(|(known, _)| known == name)
    }

    /// How many numbers an embedding has, if each is a column.
    pub(crate) fn dim(&self) -> Option<usize> {
        Some(self.dimensions.len()).filter(|dim| *dim > 0)
    }

    /// As a loader is asked.
    pub(crate) fn asked(&self) -> Vec<(&str, &str)> {
        self.asked.iter().map(|(name, column)| (name.as_str(), column.as_str())).collect()
    }

    /// The key that a column of the loader's request is a part of.
    pub(crate) fn key_of<'a>(&'a self, name: &'a str) -> &'a str {
        let Some(column) = name.strip_prefix(FURTHER) else { return name };
        if self.dimensions.iter().any(|known| known == column) {
            return "embedding";
        }
        let sets = self.indicators.iter().find(|(_, columns)| columns.iter().any(|known| known == column));
        sets.map_or(name, |(key, _)| key)
    }

    /// The columns of a batch as the engine reads them. `first_row` is the number of its first row.
    ///
    /// # Errors
    /// Naming the row and column that are at fault.
    fn unify(&self, batch: RecordBatch, first_row: usize) -> Result<RecordBatch> {
        let batch = without_runs(batch)?;
        let schema = batch.schema();
        let mut columns: Vec<(FieldRef, ArrayRef)> = Vec::with_capacity(batch.num_columns());
        let made = |name: &str, array: ArrayRef| -> (FieldRef, ArrayRef) {
            (Arc::new(Field::new(name, array.data_type().clone(), true)), array)
        };
        let there = by_name(&batch);
        if !self.dimensions.is_empty() {
            columns.push(made("embedding", self.embedding(&there, batch.num_rows(), first_row)?));
        }
        for (name, labels) in &self.indicators {
            columns.push(made(name, sets(&there, batch.num_rows(), labels, name == "seed", first_row)?));
        }
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            // Of a column without any value a file of texts does not know what it holds.
            let texts = is_text(column.data_type()) || (self.empty && column.logical_null_count() == column.len());
            let split = self.split.as_deref().filter(|_| texts);
            match (field.name().as_str(), split) {
                (name, _) if self.dropped.contains(name) => {}
                ("embedding", _) if is_text(column.data_type()) => {
                    columns.push(made("embedding", parsed(column, first_row)?));
                }
                (name @ ("truth" | "seed"), Some(split)) => {
                    columns.push(made(name, taken_apart(column, split, self.empty)?))
                }
                _ => columns.push((field.clone(), column.clone())),
            }
        }
        let (fields, columns): (Vec<FieldRef>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
            .map_err(|error| Error::data(error.to_string()))
    }

    /// A vector of a number of every column.
    fn embedding(&self, there: &Columns<'_>, rows: usize, first_row: usize) -> Result<ArrayRef> {
        let dim = self.dimensions.len();
        if let [only] = &self.dimensions[..]
            && let column = part(there, only)?
            && list_parts(column).is_some()
        {
            return Ok(column.clone());
        }
        let mut values = vec![0.0; rows * dim];
        for (at, name) in self.dimensions.iter().enumerate() {
            let column = numbers(part(there, name)?, name, first_row)?;
            for (row, value) in column.values().iter().enumerate() {
                values[row * dim + at] = *value;
            }
        }
        let item = Arc::new(Field::new_list_field(DataType::Float32, false));
        let width = i32::try_from(dim).map_err(|_| Error::data(format!("{dim} dimensions are too many")))?;
        let vectors = FixedSizeListArray::try_new(item, width, Arc::new(Float32Array::from(values)), None);
        Ok(Arc::new(vectors.map_err(|error| Error::data(error.to_string()))?))
    }
}

/// The same columns, with a value for each row where a file has one for a run of rows.
fn without_runs(batch: RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    if !schema.fields().iter().any(|field| matches!(field.data_type(), DataType::RunEndEncoded(..))) {
        return Ok(batch);
    }
    let plain = |(field, column): (&FieldRef, &ArrayRef)| match field.data_type() {
        DataType::RunEndEncoded(_, values) => {
            let kind = values.data_type().clone();
            Ok((Arc::new(Field::new(field.name(), kind.clone(), true)), convert(column, &kind)?))
        }
        _ => Ok((field.clone(), column.clone())),
    };
    let columns = schema.fields().iter().zip(batch.columns()).map(plain).collect::<Result<Vec<_>>>()?;
    let (fields, columns): (Vec<FieldRef>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|error| Error::data(error.to_string()))
}

/// Refuses a batch that takes more than there may be once each row has a value of its own, which is how it is read: a file may have one
/// for a million rows.
fn require_room(batch: &RecordBatch, first_row: usize, memory: u64) -> Result<()> {
    let mut held = Held::of_at_most(memory);
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if shares_values(field.data_type()) {
            let name = field.name().trim_start_matches(FURTHER);
            held.add(&format!("the column `{name}`"), plain_bytes(column, 0..column.len()));
        }
    }
    let last_row = (first_row + batch.num_rows()).saturating_sub(1);
    held.check(|| format!("rows {first_row} to {last_row}: a value for each of them"))
}

/// All columns that something is made of.
fn parts<'a>(
    dimensions: &'a [String],
    indicators: &'a [(String, Vec<String>)],
) -> impl Iterator<Item = &'a String> {
    dimensions.iter().chain(indicators.iter().flat_map(|(_, columns)| columns))
}

/// The labels whose columns say that they are in the set. Where `unknown`, a row without any values is not known.
fn sets(there: &Columns<'_>, rows: usize, labels: &[String], unknown: bool, first_row: usize) -> Result<ArrayRef> {
    let columns = labels.iter().map(|name| part(there, name)).collect::<Result<Vec<&ArrayRef>>>()?;
    let nothing = |row: usize| {
        unknown && columns.iter().all(|column| column.logical_nulls().is_some_and(|nulls| nulls.is_null(row)))
    };
    let known: Vec<bool> = (0..rows).map(|row| !nothing(row)).collect();
    let flags: Vec<(&String, Vec<bool>)> = labels
        .iter()
        .zip(columns)
        .map(|(name, column)| Ok((name, flags(column, name, &known, unknown, first_row)?)))
        .collect::<Result<_>>()?;
    let mut lists = ListBuilder::new(StringBuilder::new());
    for (row, known) in known.into_iter().enumerate() {
        let members = flags.iter().filter(|(_, flags)| flags[row]);
        members.for_each(|(name, _)| lists.values().append_value(name));
        lists.append(known);
    }
    Ok(Arc::new(lists.finish()))
}

/// What is meant.
enum Found {
    One(String),
    Several(Vec<String>),
}

fn resolve(name: &str, named: &Named, about: &str, known: &impl Fn() -> Result<Vec<String>>) -> Result<Found> {
    let known = match named.has_patterns() {
        true => known()?,
        false => Vec::new(),
    };
    if let Named::One(column) = named
        && (!named.has_patterns() || known.contains(column))
    {
        return Ok(Found::One(column.clone()));
    }
    let mut columns: Vec<String> = Vec::new();
    for part in named.names() {
        if !part.contains(['*', '?', '[']) || known.contains(part) {
            columns.push(part.clone());
            continue;
        }
        let pattern = glob::Pattern::new(part).map_err(|error| {
            Error::fault(Cause::Column, format!("`{part}` is no pattern of columns: {}", error.msg))
        })?;
        let mut found: Vec<&String> = known.iter().filter(|column| pattern.matches(column)).collect();
        if found.is_empty() {
            let there = known.iter().map(String::as_str);
            return Err(compflow_api::Error::column(name, part, about, there).into());
        }
        // Whatever the order of columns in a file is, that of an embedding's numbers is always the same.
        found.sort_by_cached_key(|column| natural(column));
        columns.extend(found.into_iter().cloned());
    }
    // Who names a column twice means it once.
    let mut seen = std::collections::HashSet::new();
    columns.retain(|column| seen.insert(column.clone()));
    Ok(Found::Several(columns))
}

/// To sort names with numbers in them by these: `d2` comes before `d10`.
fn natural(name: &str) -> Vec<(String, u128, usize)> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (mut left, mut parts) = (name, Vec::new());
    while !left.is_empty() {
        let (word, rest) = left.split_at(left.find(|c: char| c.is_ascii_digit()).unwrap_or(left.len()));
        let (number, rest) = rest.split_at(digits(rest));
        parts.push((word.to_owned(), number.parse().unwrap_or(u128::MAX), number.len()));
        left = rest;
    }
    parts
}

/// The columns of a batch by name.
type Columns<'a> = HashMap<&'a str, &'a ArrayRef>;

fn by_name(batch: &RecordBatch) -> Columns<'_> {
    let names = batch.schema_ref().fields().iter().map(|field| field.name().as_str());
    // Of those of the same name, the first.
    names.zip(batch.columns()).rev().collect()
}

/// A column of the source that is a part of something.
fn part<'a>(there: &Columns<'a>, name: &str) -> Result<&'a ArrayRef> {
    let column = there.get(&format!("{FURTHER}{name}")[..]).copied();
    column.ok_or_else(|| Error::data(format!("the loader returned no column `{name}`")))
}

/// What would do in the place of `0,5`.
const DECIMAL_COMMAS: &str = "decimal commas are not read: write the file with points, as in 0.5";

/// The numbers of a dimension.
fn numbers(column: &ArrayRef, name: &str, first_row: usize) -> Result<Float32Array> {
    let kind = column.data_type();
    if is_text(kind) {
        let texts = strings(column)?;
        let wrong = texts.iter().position(|text| text.is_none_or(|text| text.trim().parse::<f32>().is_err()));
        if let Some(row) = wrong {
            let found = if texts.is_null(row) { "nothing" } else { texts.value(row) };
            let text = format!("row {}: `{found}` in the column `{name}` is no number", first_row + row);
            return Err(match found.trim().replacen(',', ".", 1).parse::<f32>() {
                Ok(_) => Error::fault(Cause::Embedding, text).help(DECIMAL_COMMAS),
                Err(_) => faulty(text),
            });
        }
    } else if !(kind.is_numeric() || *kind == DataType::Boolean) {
        let text = format!(
            "the column `{name}` holds {}, and the dimensions of an embedding are numbers",
            in_words(kind)
        );
        return Err(Error::fault(Cause::EmbeddingKind, text));
    }
    if let Some(row) = (0..column.len()).find(|&row| column.is_null(row)) {
        let text = format!("row {}: the embedding is null in the column `{name}`", first_row + row);
        return Err(faulty(text));
    }
    Ok(convert(column, &DataType::Float32)?.as_primitive::<Float32Type>().clone())
}

/// Whether a label is in each of the sets that are known.
fn flags(column: &ArrayRef, name: &str, known: &[bool], unknown: bool, first_row: usize) -> Result<Vec<bool>> {
    let kind = column.data_type();
    // Of a column without any value a file of texts does not know what it holds.
    let empty = column.logical_null_count() == column.len();
    if !(kind.is_numeric() || *kind == DataType::Boolean || empty) {
        let text =
            format!("the column `{name}` holds {}, and labels in columns of their own are 0 or 1", in_words(kind));
        return Err(Error::fault(Cause::LabelKind, text));
    }
    let wrong = |row: usize, found: &str, help: &str| {
        let text = format!("row {}: the column `{name}` is {found}, and labels are 0 or 1", first_row + row);
        Error::fault(Cause::LabelKind, text).help(help)
    };
    let numbers = cast(column, &DataType::Float64).map_err(|error| Error::data(error.to_string()))?;
    let numbers = numbers.as_primitive::<Float64Type>();
    let flag = |(row, known): (usize, &bool)| match numbers.is_valid(row).then(|| numbers.value(row)) {
        Some(0.0) => Ok(false),
        Some(1.0) => Ok(true),
        None if !known => Ok(false),
        None if unknown => Err(wrong(row, "null", "where a set is not known, leave all of its columns empty")),
        None => Err(wrong(row, "null", "write 0 where the label is not in the set")),
        Some(number) => {
            let help = "name only those that are labels, as in `spk_*` or a list";
            Err(wrong(row, &number.to_string(), help))
        }
    };
    known.iter().enumerate().map(flag).collect()
}

/// Without the brackets of a list around it.
fn unbracketed(text: &str) -> &str {
    let text = text.trim();
    let inner = [('[', ']'), ('{', '}'), ('(', ')')]
        .into_iter()
        .find_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close));
    inner.unwrap_or(text).trim()
}

/// The labels in texts, as lists; null stays null, unless it is `empty`.
fn taken_apart(column: &ArrayRef, split: &str, empty: bool) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for text in &strings(column)? {
        let labels = text.into_iter().flat_map(|text| unbracketed(text).split(split)).map(str::trim);
        let unquoted = labels.map(|label| {
            let inner = ['"', '\''].into_iter().find_map(|quote| label.strip_prefix(quote)?.strip_suffix(quote));
            inner.unwrap_or(label)
        });
        unquoted.filter(|label| !label.is_empty()).for_each(|label| lists.values().append_value(label));
        lists.append(empty || text.is_some());
    }
    Ok(Arc::new(lists.finish()))
}

/// The numbers in texts such as `[0.1, 0.2]` or `0.1 0.2`, as lists; null stays null.
fn parsed(column: &ArrayRef, first_row: usize) -> Result<ArrayRef> {
    let texts: StringArray = strings(column)?;
    let mut lists = ListBuilder::new(Float32Builder::new());
    for (row, text) in texts.iter().enumerate() {
        let numbers = text.map_or("", unbracketed).split(|c: char| c == ',' || c == ';' || c.is_whitespace());
        for number in numbers.filter(|number| !number.is_empty()) {
            let value = number.parse().map_err(|_| {
                let text =
                    format!("row {}: `{}` in the embedding is no number", first_row + row, shortened(number));
                let problem = Error::fault(Cause::Embedding, text);
                match number.contains("...") || number == "…" {
                    true => problem.help("it was shortened when it was printed: write all numbers of a vector"),
                    false => problem.help("a text can be an embedding if it is numbers, as in \"[0.1, 0.2]\""),
                }
            })?;
            lists.values().append_value(value);
        }
        lists.append(text.is_some());
    }
    Ok(Arc::new(lists.finish()))
}

/// So much of a text as a message can hold.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The batches of a loader, with the columns that the engine reads.
#[derive(Debug)]
pub(crate) struct UnifiedBatches {
    batches: BatchReader,
    request: Request,
    /// Bytes that a batch may take.
    memory: u64,
    row: usize,
}

impl UnifiedBatches {
    pub(crate) fn new(batches: BatchReader, request: Request, memory: u64) -> Self {
        Self { batches, request, memory, row: 0 }
    }

    /// The type of a column that the loader hands on, known before anything is read.
    pub(crate) fn kind(&self, column: &str) -> Option<DataType> {
        let schema = self.batches.schema();
        schema.column_with_name(column).map(|(_, field)| field.data_type().clone())
    }

    /// A batch of no rows, with the columns of the others.
    ///
    /// # Errors
    /// If columns are of the wrong kind.
    pub(crate) fn empty(&self) -> Result<RecordBatch> {
        self.request.unify(RecordBatch::new_empty(self.batches.schema().clone()), 0)
    }
}

impl Iterator for UnifiedBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.batches.next()? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error.into())),
        };
        let first_row = self.row;
        self.row += batch.num_rows();
        let room = require_room(&batch, first_row, self.memory);
        Some(room.and_then(|()| self.request.unify(batch, first_row)))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{
        BooleanArray, Float64Array, Int8Array, Int32Array, Int32DictionaryArray, Int64Array, LargeStringArray,
        RecordBatchIterator, RunArray,
    };
    use compflow_api::{Batches, Stream};

    use super::*;
    use crate::data::held::VALUE;
    use crate::data::values::value_bytes;

    fn several(names: &[&str]) -> Named {
        Named::Several(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn request(name: &str, named: Named, there: &[&str]) -> Result<Request> {
        let there: Vec<String> = there.iter().map(|name| (*name).to_owned()).collect();
        Request::new(&[(name.to_owned(), named)], Some(","), "x.csv", || Ok(there.clone()))
    }

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
            .unwrap()
    }

    fn members(batch: &RecordBatch, column: &str, row: usize) -> Vec<String> {
        let lists = batch.column_by_name(column).unwrap().as_list::<i32>().value(row);
        lists.as_string::<i32>().iter().flatten().map(str::to_owned).collect()
    }

    #[test]
    fn a_value_for_a_run_of_rows_is_one_for_each() {
        let request = request("truth", Named::One("who".to_owned()), &["who"]).unwrap();
        let runs: RunArray<Int32Type> = ["anna", "anna", "anna,ben"].into_iter().collect();
        let unified = request.unify(batch(vec![("truth", Arc::new(runs))]), 0).unwrap();
        let sets = [0, 1, 2].map(|row| members(&unified, "truth", row).join(" "));
        assert_eq!(sets, ["anna", "anna", "anna ben"]);
    }

    #[test]
    fn what_is_shared_by_many_rows_is_held_to_the_memory_before_each_has_its_own() {
        let request = request("truth", Named::One("who".to_owned()), &["who"]).unwrap();
        let read = |column: ArrayRef, memory| {
            let batch = batch(vec![("truth", column)]);
            let schema = batch.schema();
            let batches: Batches = Box::new(RecordBatchIterator::new([Ok(batch)], schema));
            let batches = Stream::from(batches).into_batches(memory).unwrap();
            UnifiedBatches::new(batches, request.clone(), memory).next().unwrap()
        };
        let long = "x".repeat(100_000);
        let text = LargeStringArray::from(vec![long.as_str()]);
        let runs = |rows| Arc::new(RunArray::try_new(&Int32Array::from(vec![rows]), &text).unwrap());
        let keys = |rows| Arc::new(Int32DictionaryArray::new(vec![0; rows].into(), Arc::new(text.clone())));
        let columns: [(ArrayRef, ArrayRef); 2] = [(runs(800_000), runs(100)), (keys(800_000), keys(100))];
        for (huge, small) in columns {
            let error = read(huge, 1 << 30).unwrap_err().to_string();
            let refused =
                "rows 0 to 799999: a value for each of them takes more than the memory budget of 1.00 GiB; ";
            assert!(error.starts_with(refused) && error.contains("is for the column `truth`"), "{error}");
            assert_eq!(read(small, 1 << 30).unwrap().num_rows(), 100);
        }
    }

    #[test]
    fn a_dictionary_without_any_value_is_nulls() {
        let request = request("truth", Named::One("who".to_owned()), &["who"]).unwrap();
        let values = Arc::new(StringArray::from(Vec::<&str>::new()));
        let column: ArrayRef = Arc::new(Int32DictionaryArray::new(Int32Array::from(vec![None, None]), values));
        let batch = batch(vec![("truth", column.clone())]);
        require_room(&batch, 0, 1000).unwrap();
        assert_eq!(value_bytes(&column), 2 * VALUE);
        assert_eq!(request.unify(batch, 0).unwrap().column(0).null_count(), 2);
    }

    #[test]
    fn columns_are_found_by_name_and_pattern_with_numbers_in_their_order() {
        let there = ["d10", "d2", "x*", "d1", "id"];
        let dimensions = |named| request("embedding", named, &there).unwrap().dimensions;
        assert_eq!(dimensions(Named::One("d*".to_owned())), ["d1", "d2", "d10"]);
        assert_eq!(dimensions(several(&["id", "d?", "d1"])), ["id", "d1", "d2"]);
        assert_eq!(
            request("embedding", Named::One("x*".to_owned()), &there).unwrap().asked(),
            [("embedding", "x*")],
            "a column of that very name"
        );
        let error = request("embedding", Named::One("e*".to_owned()), &there).unwrap_err().to_string();
        assert!(error.contains("`embedding` names the column `e*`, which is not in x.csv; "), "{error}");
    }

    #[test]
    fn a_column_for_every_dimension_becomes_vectors_and_is_kept_if_somebody_wants_it() {
        let columns = || {
            batch(vec![
                ("column:a", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
                ("column:b", Arc::new(Float64Array::from(vec![0.5, 1.5]))),
                ("id", Arc::new(Int8Array::from(vec![7, 8]))),
            ])
        };
        let mut request = request("embedding", several(&["a", "b"]), &[]).unwrap();
        let unified = request.unify(columns(), 0).unwrap();
        let vectors = unified.column_by_name("embedding").unwrap().as_fixed_size_list();
        assert_eq!(vectors.values().as_primitive::<Float32Type>().values()[..], [1.0, 0.5, 2.0, 1.5]);
        assert_eq!(unified.num_columns(), 2);
        request.also([("column:a".to_owned(), "a".to_owned())]);
        assert_eq!(request.asked().len(), 2, "asked for once");
        assert!(request.unify(columns(), 0).unwrap().column_by_name("column:a").is_some());
        assert_eq!(request.only(&["embedding"]).asked(), [("column:a", "a"), ("column:b", "b")]);
        assert_eq!(request.key_of("column:b"), "embedding");
    }

    #[test]
    fn dimensions_that_are_no_numbers_are_named_with_their_row() {
        let request = request("embedding", several(&["a"]), &[]).unwrap();
        let refused =
            |column: ArrayRef| request.unify(batch(vec![("column:a", column)]), 10).unwrap_err().to_string();
        let texts = StringArray::from(vec!["1.5", "N/A"]);
        assert!(refused(Arc::new(texts)).starts_with("row 11: `N/A` in the column `a` is no number; "));
        let commas = refused(Arc::new(StringArray::from(vec!["0,5"])));
        assert!(commas.starts_with("row 10: `0,5` in the column `a` is no number; decimal commas"), "{commas}");
        let nulls = Float64Array::from(vec![Some(1.0), None]);
        assert!(refused(Arc::new(nulls)).starts_with("row 11: the embedding is null in the column `a`; "));
    }

    #[test]
    fn texts_with_numbers_are_vectors() {
        let request = Request::plain(vec![("embedding".to_owned(), "e".to_owned())]);
        let unify = |text: &str| {
            let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
            request.unify(batch(vec![("embedding", texts)]), 3)
        };
        for text in ["[0.5, -1]", "0.5 -1", " [0.5\n -1.0 ] ", "(0.5;-1e0)"] {
            let unified = unify(text).unwrap();
            let vector = unified.column(0).as_list::<i32>().value(0);
            assert_eq!(vector.as_primitive::<Float32Type>().values()[..], [0.5, -1.0], "{text}");
        }
        let error = unify("[0.1 ... 0.2]").unwrap_err().to_string();
        assert!(error.starts_with("row 3: `...` in the embedding is no number; it was shortened"), "{error}");
    }

    #[test]
    fn texts_are_taken_apart_and_an_empty_one_is_the_empty_set() {
        let mut request = request("truth", Named::One("who".to_owned()), &[]).unwrap();
        let texts: ArrayRef =
            Arc::new(StringArray::from(vec![Some("b, a"), Some(""), Some("['x', \"y\"]"), Some("[]"), None]));
        let unified = request.unify(batch(vec![("truth", texts.clone())]), 0).unwrap();
        let sets: Vec<Vec<String>> = (0..4).map(|row| members(&unified, "truth", row)).collect();
        assert_eq!(sets, [vec!["b", "a"], vec![], vec!["x", "y"], vec![]]);
        assert!(unified.column(0).is_null(4));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![4]));
        let unified = request.unify(batch(vec![("truth", numbers.clone())]), 0).unwrap();
        assert_eq!(unified.column(0), &numbers, "numbers are labels already");
        request.empty = true;
        for column in [texts, Arc::new(Int64Array::from(vec![None; 5]))] {
            let unified = request.unify(batch(vec![("truth", column)]), 0).unwrap();
            assert!(unified.column(0).is_valid(4) && members(&unified, "truth", 4).is_empty());
        }
    }

    #[test]
    fn columns_of_flags_become_sets_and_anything_else_is_refused() {
        let columns = |b: Vec<i8>| {
            let a: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
            batch(vec![("column:a", a), ("column:b", Arc::new(Int8Array::from(b)))])
        };
        let request = request("truth", several(&["a", "b"]), &[]).unwrap();
        let unified = request.unify(columns(vec![1, 0]), 0).unwrap();
        assert_eq!(members(&unified, "truth", 0), ["a", "b"]);
        assert!(members(&unified, "truth", 1).is_empty());
        let error = request.unify(columns(vec![0, 41]), 100).unwrap_err().to_string();
        assert!(error.starts_with("row 101: the column `b` is 41, and labels are 0 or 1;"), "{error}");
    }

    #[test]
    fn a_row_without_flags_is_a_seed_that_is_not_known_and_no_truth() {
        let columns = |b: Vec<Option<i8>>| {
            let a: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
            batch(vec![("column:a", a), ("column:b", Arc::new(Int8Array::from(b)))])
        };
        let unify = |key: &str, b| request(key, several(&["a", "b"]), &[]).unwrap().unify(columns(b), 100);
        let unified = unify("seed", vec![Some(1), None]).unwrap();
        assert_eq!(members(&unified, "seed", 0), ["a", "b"]);
        assert!(unified.column_by_name("seed").unwrap().is_null(1));
        let error = unify("seed", vec![Some(1), Some(0)]).unwrap_err().to_string();
        assert!(
            error.starts_with("row 101: the column `a` is null") && error.contains("leave all of its"),
            "{error}"
        );
        let error = unify("truth", vec![Some(1), None]).unwrap_err().to_string();
        assert!(error.starts_with("row 101: the column `a` is null") && error.contains("write 0"), "{error}");
    }
}
