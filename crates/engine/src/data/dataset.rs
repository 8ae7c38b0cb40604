//! From a loader's record batches to trials: a matrix, true sets and identifiers each, every value checked once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::atomic::AtomicBool;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float32Array, Int64Array, RecordBatch, StringArray};
use arrow_buffer::ScalarBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType};
use compflow_api::{Column, Sets, Table};
use serde::{Deserialize, Serialize};

use super::seeds::{SeedRows, Seeds};
use super::segments::{Segment, require_apart, segments};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::{hash_parts, human_bytes};
use crate::pipeline::keys::SEGMENT_KEYS;

/// A set of examples, split into trials.
#[derive(Debug)]
pub struct Dataset {
    /// How many numbers an embedding has.
    pub dim: usize,
    /// What the source calls the members of the true sets, by their number.
    pub classes: Vec<String>,
    /// By number.
    pub trials: Vec<Trial>,
    /// Hash of all that was read, but for further columns that only components want: it tells whether the data is that of an earlier run.
    pub content: String,
}

/// The examples that are clustered together.
#[derive(Debug, Serialize, Deserialize)]
pub struct Trial {
    /// As the source counts.
    pub number: u32,
    /// Row-major; empty if the data is read batch by batch. Those that came in one piece are where the loader has them.
    #[serde(skip, default = "no_embeddings")]
    pub embeddings: ScalarBuffer<f32>,
    /// The true sets, if the source has them.
    pub truth: Option<Sets>,
    /// How gladly each example becomes an exemplar, if the source says so.
    pub preferences: Option<Vec<f32>>,
    /// How much each example counts, if the source says so.
    pub weights: Option<Vec<f32>>,
    /// The sets that are known beforehand, if there are any.
    pub seeds: Option<Seeds>,
    /// The further columns that components asked for, by the source's names.
    pub columns: Table,
    /// One for each example.
    pub ids: Ids,
    /// Hash of the embeddings, preferences and weights.
    pub(crate) key: String,
    /// Hash of the preferences and weights alone.
    pub(crate) numbers_key: String,
    /// Hash of the true sets.
    pub(crate) truth_key: String,
    /// Hash of the known sets, without their names; empty if there are none.
    pub(crate) seeds_key: String,
    /// Whether somebody has written into what components are only lent.
    #[serde(skip)]
    pub(crate) damaged: AtomicBool,
}

/// They are handed on by themselves, if at all.
fn no_embeddings() -> ScalarBuffer<f32> {
    Vec::new().into()
}

/// Identifiers as the source has them; row numbers if it has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ids {
    /// All are numbers.
    Numbers(Vec<i64>),
    /// All are texts.
    Texts(Vec<String>),
}

impl Ids {
    /// All of them as texts.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::Numbers(ids) => ids.iter().map(ToString::to_string).collect(),
            Self::Texts(ids) => ids.clone(),
        }
    }

    /// One of them, for people.
    pub(crate) fn shown(&self, at: usize) -> String {
        match self {
            Self::Numbers(ids) => ids[at].to_string(),
            Self::Texts(ids) => ids[at].clone(),
        }
    }
}

impl Trial {
    /// How many examples.
    pub fn size(&self) -> usize {
        match &self.ids {
            Ids::Numbers(ids) => ids.len(),
            Ids::Texts(ids) => ids.len(),
        }
    }

    /// The [`key`](Self::key) of embeddings that have been hashed.
    pub(crate) fn key_of(&self, embeddings: blake3::Hasher) -> String {
        content_key(embeddings, self.preferences.as_deref(), self.weights.as_deref())
    }

    /// Whether everything that components are handed is still what it was when it was read: one that writes into it
    /// changes what all others get.
    pub(crate) fn is_intact(&self) -> bool {
        let mut embeddings = blake3::Hasher::new();
        embeddings.update(bytemuck::cast_slice(&self.embeddings));
        // Embeddings that are not kept cannot be written to.
        let streamed = self.embeddings.is_empty();
        (streamed || self.key_of(embeddings) == self.key)
            && content_key(blake3::Hasher::new(), self.preferences.as_deref(), self.weights.as_deref())
                == self.numbers_key
            && self.truth.as_ref().map(truth_key).unwrap_or_default() == self.truth_key
            && self.seeds.as_ref().map(|seeds| seeds.keys().0).unwrap_or_default() == self.seeds_key
    }

    /// Hash of a column that a component asked for; `None` if it was not read.
    pub(crate) fn column_key(&self, name: &str) -> Option<String> {
        let columns = self.columns(&[name.to_owned()]).ok()?;
        let bytes = postcard::to_stdvec(&columns).ok()?;
        Some(blake3::hash(&bytes).to_hex().to_string())
    }

    /// Where in recordings the examples are.
    ///
    /// # Errors
    /// If the data does not say, or they have no place in time that is their own.
    pub fn segments(&self) -> Result<Vec<Segment>> {
        let segments = segments(&self.columns)?;
        require_apart(&segments, &(0..segments.len()).collect::<Vec<usize>>())?;
        Ok(segments)
    }

    /// The columns that a component asked for, the identifiers among them.
    ///
    /// # Errors
    /// If one was not read.
    pub(crate) fn columns(&self, names: &[String]) -> Result<Table> {
        let column = |name: &String| {
            let column = match (name.as_str(), &self.ids) {
                ("id", Ids::Numbers(ids)) => Some(Column::Integers(ids.clone())),
                ("id", Ids::Texts(ids)) => Some(Column::Texts(ids.clone())),
                _ => self.columns.iter().find(|(known, _)| known == name).map(|(_, column)| column.clone()),
            };
            column
                .map(|column| (name.clone(), column))
                .ok_or_else(|| Error::data(format!("there is no column `{name}`")))
        };
        names.iter().map(column).collect()
    }
}

fn content_key(mut embeddings: blake3::Hasher, preferences: Option<&[f32]>, weights: Option<&[f32]>) -> String {
    for (what, numbers) in [("preferences", preferences), ("weights", weights)] {
        if let Some(numbers) = numbers {
            embeddings.update(what.as_bytes()).update(bytemuck::cast_slice(numbers));
        }
    }
    embeddings.finalize().to_hex().to_string()
}

fn dataset_key(dim: usize, classes: &[String], trials: &[Trial], segments: bool) -> String {
    let mut parts = vec![dim.to_string()];
    parts.extend_from_slice(classes);
    for trial in trials {
        let Trial { number, ids, key, truth_key, seeds, .. } = trial;
        parts.extend([number.to_string(), key.clone(), truth_key.clone()]);
        parts.extend(seeds.as_ref().map(Seeds::keys).into_iter().flat_map(|(sets, names)| [sets, names]));
        if segments {
            parts.extend(SEGMENT_KEYS.iter().flat_map(|name| trial.column_key(name)));
        }
        parts.push(match ids {
            Ids::Numbers(ids) => hash_parts(std::iter::once(bytemuck::cast_slice(ids))),
            Ids::Texts(ids) => hash_parts(ids.iter().map(String::as_bytes)),
        });
    }
    hash_parts(parts.iter().map(String::as_bytes))
}

fn truth_key(truth: &Sets) -> String {
    hash_parts([bytemuck::cast_slice(truth.offsets()), bytemuck::cast_slice(truth.values())].into_iter())
}

/// What becomes of embeddings that have been read and checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Keep {
    /// They are kept.
    #[default]
    Matrix,
    /// They will be read again, batch by batch.
    Streamed,
    /// There are none: the data is only scored.
    Nothing,
}

/// Collects batches, file after file.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    width: Width,
    rows: usize,
    trials: BTreeMap<u32, TrialRows>,
    truth: Option<Labels>,
    ids: Option<Labels>,
    preferences: Option<Vec<f32>>,
    weights: Option<Vec<f32>>,
    seeds: Option<SeedRows>,
    /// Further columns, by the source's names.
    further: Table,
    /// Which columns the first file had; the others must have the same.
    columns: Option<Vec<String>>,
    /// Whether the further columns say where in a recording the examples are.
    pub(crate) segments: bool,
    keep: Keep,
    /// Bytes that the embeddings may take.
    memory: u64,
}

/// What has been read of one trial.
#[derive(Debug, Default)]
struct TrialRows {
    embeddings: Pieces,
    hasher: blake3::Hasher,
    /// Positions of its rows among all rows.
    rows: Vec<usize>,
}

/// Numbers that come piece by piece. The first is not copied: data in memory is one piece.
#[derive(Debug, Default)]
enum Pieces {
    #[default]
    None,
    One(ScalarBuffer<f32>),
    More(Vec<f32>),
}

impl Pieces {
    fn add(&mut self, piece: ScalarBuffer<f32>) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(piece),
            Self::One(first) => {
                let mut all = Vec::with_capacity(2 * (first.len() + piece.len()));
                all.extend_from_slice(&first);
                all.extend_from_slice(&piece);
                Self::More(all)
            }
            Self::More(mut all) => {
                all.extend_from_slice(&piece);
                Self::More(all)
            }
        };
    }

    fn join(self) -> ScalarBuffer<f32> {
        match self {
            Self::None => ScalarBuffer::default(),
            Self::One(piece) => piece,
            Self::More(all) => all.into(),
        }
    }
}

/// Values that are all numbers or all texts.
#[derive(Debug)]
pub(super) enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<String>),
}

/// A set of values per row.
#[derive(Debug)]
pub(super) struct Labels {
    offsets: Vec<u64>,
    values: Values,
}

impl Builder {
    /// A builder of data whose embeddings may take this much memory.
    pub(crate) fn new(keep: Keep, memory: u64) -> Self {
        Self { keep, memory, ..Self::default() }
    }

    /// Reads a file's batches to the end.
    ///
    /// # Errors
    /// Naming the row (of this file, from 0) and what is wrong with it, or [`Error::Interrupted`].
    pub(crate) fn read(
        &mut self,
        batches: impl IntoIterator<Item = Result<RecordBatch>>,
        cancel: &Cancel,
    ) -> Result<()> {
        let mut first_row = 0;
        for batch in batches {
            if cancel.requested() {
                return Err(Error::Interrupted);
            }
            let batch = batch?;
            self.add(&batch, first_row)?;
            first_row += batch.num_rows();
        }
        Ok(())
    }

    fn add(&mut self, batch: &RecordBatch, first_row: usize) -> Result<()> {
        let schema = batch.schema();
        let mut columns: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        columns.sort();
        if *self.columns.get_or_insert_with(|| columns.clone()) != columns {
            return Err(Error::data("has other columns than the files before it"));
        }
        let numbers = match batch.column_by_name("trial") {
            None => vec![0; batch.num_rows()],
            Some(column) => trial_numbers(column, first_row)?,
        };
        if let Some(column) = batch.column_by_name("truth") {
            Labels::append(&mut self.truth, column, "truth", first_row)?;
        }
        if let Some(column) = batch.column_by_name("id") {
            if matches!(
                column.data_type(),
                DataType::List(_) | DataType::FixedSizeList(..) | DataType::LargeList(_)
            ) {
                return Err(Error::data(format!(
                    "the id column must hold integers or strings, found {}",
                    column.data_type()
                )));
            }
            Labels::append(&mut self.ids, column, "id", first_row)?;
        }
        if let Some(column) = batch.column_by_name("preference") {
            let preferences = self.preferences.get_or_insert_default();
            preferences.extend(numbers_of(column, "preference", first_row)?);
        }
        if let Some(column) = batch.column_by_name("weight") {
            let weights = numbers_of(column, "weight", first_row)?;
            if let Some(row) = weights.iter().position(|weight| *weight < 0.0) {
                let (row, weight) = (first_row + row, weights[row]);
                return Err(Error::data(format!("row {row}: the weight {weight} is below 0")));
            }
            self.weights.get_or_insert_default().extend(weights);
        }
        if let Some(column) = batch.column_by_name("seed") {
            self.seeds.get_or_insert_default().append(column, first_row, self.rows)?;
        }
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            if let Some(name) = field.name().strip_prefix(FURTHER) {
                append_further(&mut self.further, name, column, first_row)?;
            }
        }
        if self.keep != Keep::Nothing {
            let column = batch
                .column_by_name("embedding")
                .ok_or_else(|| Error::data("the loader returned no embeddings"))?;
            let values = self.width.values(column, first_row)?;
            let dim = self.width.dim;
            let bytes = 4 * (dim * (self.rows + batch.num_rows())) as u64;
            if self.keep == Keep::Matrix && bytes > self.memory {
                return Err(Error::data(format!(
                    "the embeddings take more than the memory budget of {}; see --memory, or `stream = true` of `ckm`",
                    human_bytes(self.memory)
                )));
            }
            if let Some(seeds) = &mut self.seeds {
                seeds.place(values.values(), dim, self.rows);
            }
            // Rows of one trial usually come together, so they are copied together.
            let mut row = 0;
            while row < numbers.len() {
                let end = (row..numbers.len()).find(|&at| numbers[at] != numbers[row]).unwrap_or(numbers.len());
                let trial = self.trials.entry(numbers[row]).or_default();
                let rows = &values.values()[row * dim..end * dim];
                trial.hasher.update(bytemuck::cast_slice(rows));
                if self.keep == Keep::Matrix {
                    trial.embeddings.add(values.values().slice(row * dim, rows.len()));
                }
                row = end;
            }
        }
        for (at, number) in numbers.iter().enumerate() {
            self.trials.entry(*number).or_default().rows.push(self.rows + at);
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    /// The trials, by number.
    ///
    /// # Errors
    /// If there are no rows, or a trial has an identifier twice, or known sets that contradict each other.
    pub(crate) fn finish(self) -> Result<Dataset> {
        if self.rows == 0 {
            return Err(Error::data("there are no rows"));
        }
        let (truth, classes) = self.truth.map(Labels::number).unzip();
        let seeds = self.seeds.and_then(SeedRows::number);
        let mut trials = Vec::new();
        for (number, TrialRows { embeddings, hasher, rows }) in self.trials {
            let ids = match &self.ids {
                None => Ids::Numbers(rows.iter().map(|row| *row as i64).collect()),
                Some(Labels { values: Values::Numbers(ids), .. }) => {
                    Ids::Numbers(rows.iter().map(|row| ids[*row]).collect())
                }
                Some(Labels { values: Values::Texts(ids), .. }) => {
                    Ids::Texts(rows.iter().map(|row| ids[*row].clone()).collect())
                }
            };
            match &ids {
                // Row numbers cannot repeat.
                Ids::Numbers(_) if self.ids.is_none() => {}
                Ids::Numbers(ids) => require_distinct(ids, &rows, number)?,
                Ids::Texts(ids) => require_distinct(ids, &rows, number)?,
            }
            let truth: Option<Sets> = truth.as_ref().map(|truth| rows.iter().map(|row| &truth[*row]).collect());
            let preferences: Option<Vec<f32>> =
                self.preferences.as_ref().map(|all| rows.iter().map(|row| all[*row]).collect());
            let weights: Option<Vec<f32>> =
                self.weights.as_ref().map(|all| rows.iter().map(|row| all[*row]).collect());
            let seeds = seeds.as_ref().map(|known| known.of_trial(&rows, number)).transpose()?.flatten();
            let columns: Table =
                self.further.iter().map(|(name, column)| (name.clone(), select_rows(column, &rows))).collect();
            if self.segments {
                require_apart(&segments(&columns)?, &rows)?;
            }
            let key = content_key(hasher, preferences.as_deref(), weights.as_deref());
            let numbers_key = content_key(blake3::Hasher::new(), preferences.as_deref(), weights.as_deref());
            let truth_key = truth.as_ref().map(truth_key).unwrap_or_default();
            let seeds_key = seeds.as_ref().map(|seeds: &Seeds| seeds.keys().0).unwrap_or_default();
            trials.push(Trial {
                number,
                embeddings: embeddings.join(),
                truth,
                preferences,
                weights,
                seeds,
                columns,
                ids,
                key,
                numbers_key,
                truth_key,
                seeds_key,
                damaged: AtomicBool::new(false),
            });
        }
        let (dim, classes) = (self.width.dim, classes.unwrap_or_default());
        let content = dataset_key(dim, &classes, &trials, self.segments);
        Ok(Dataset { dim, classes, trials, content })
    }
}

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
            return Err(Error::data(format!("row {}: the embedding is null", first_row + row)));
        }
        let (values, lengths) =
            list_parts(column).filter(|(values, _)| values.data_type().is_floating()).ok_or_else(|| {
                Error::data(format!(
                    "the embedding column must hold lists of floats, found {}",
                    column.data_type()
                ))
            })?;
        for (row, length) in lengths.iter().enumerate() {
            let row = first_row + row;
            if *length == 0 {
                return Err(Error::data(format!("row {row}: the embedding is empty")));
            }
            if self.dim == 0 {
                self.dim = *length;
            }
            if *length != self.dim {
                return Err(Error::data(format!(
                    "row {row}: the embedding has {length} numbers, those before it have {}",
                    self.dim
                )));
            }
        }
        if values.null_count() > 0
            && let Some(at) = (0..values.len()).find(|&at| values.is_null(at))
        {
            let (row, dimension) = (first_row + at / self.dim, at % self.dim);
            return Err(Error::data(format!("row {row}: the embedding is null in dimension {dimension}")));
        }
        let original = values;
        let values = convert(&original, &DataType::Float32)?;
        let values = values.as_primitive::<Float32Type>().clone();
        if let Some(at) = values.values().iter().position(|value| !value.is_finite()) {
            let (row, dimension) = (first_row + at / self.dim, at % self.dim);
            let wide = original.as_primitive_opt::<Float64Type>().map(|wide| wide.value(at));
            if let Some(wide) = wide.filter(|wide| wide.is_finite()) {
                return Err(Error::data(format!(
                    "row {row}: {wide:e} in dimension {dimension} is too large for 32 bits"
                )));
            }
            return Err(Error::data(format!(
                "row {row}: the embedding is {} in dimension {dimension}",
                values.value(at)
            )));
        }
        Ok(values)
    }
}

fn require_distinct<T: Eq + Hash + std::fmt::Display>(ids: &[T], rows: &[usize], trial: u32) -> Result<()> {
    let mut seen: HashMap<&T, usize> = HashMap::with_capacity(ids.len());
    for (id, row) in ids.iter().zip(rows) {
        if let Some(first) = seen.insert(id, *row) {
            return Err(Error::data(format!("rows {first} and {row} of trial {trial} have the same id {id}")));
        }
    }
    Ok(())
}

/// The numbers of a trial column.
pub(crate) fn trial_numbers(column: &ArrayRef, first_row: usize) -> Result<Vec<u32>> {
    if !column.data_type().is_integer() {
        return Err(Error::data(format!("the trial column must hold integers, found {}", column.data_type())));
    }
    let numbers = convert(column, &DataType::Int64)?;
    let numbers: &Int64Array = numbers.as_primitive::<Int64Type>();
    (0..numbers.len())
        .map(|row| {
            if numbers.is_null(row) {
                return Err(Error::data(format!("row {}: the trial is null", first_row + row)));
            }
            u32::try_from(numbers.value(row)).map_err(|_| {
                let (row, number) = (first_row + row, numbers.value(row));
                Error::data(format!("row {row}: the trial {number} is not between 0 and 2^32"))
            })
        })
        .collect()
}

/// What the name of a further column begins with in a stream.
pub(crate) const FURTHER: &str = "column:";

/// Appends a further column: integers, floats or strings.
fn append_further(table: &mut Table, name: &str, column: &ArrayRef, first_row: usize) -> Result<()> {
    let is_text = |kind: &DataType| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let of_type = match column.data_type() {
        kind if kind.is_integer() => DataType::Int64,
        kind if kind.is_floating() => DataType::Float64,
        kind if is_text(kind) => DataType::Utf8,
        DataType::Dictionary(_, kind) if is_text(kind) => DataType::Utf8,
        kind => {
            return Err(Error::data(format!(
                "the column `{name}` must hold integers, floats or strings, found {kind}"
            )));
        }
    };
    // A float that is missing is no number; nothing stands for another value that is.
    if of_type != DataType::Float64
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
        _ => Column::Texts(values.as_string::<i32>().iter().flatten().map(str::to_owned).collect()),
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

/// Some rows of a further column.
fn select_rows(column: &Column, rows: &[usize]) -> Column {
    match column {
        Column::Integers(values) => Column::Integers(rows.iter().map(|row| values[*row]).collect()),
        Column::Floats(values) => Column::Floats(rows.iter().map(|row| values[*row]).collect()),
        Column::Texts(values) => Column::Texts(rows.iter().map(|row| values[*row].clone()).collect()),
        // No other is read.
        other => other.clone(),
    }
}

/// The numbers of a column of preferences or weights.
fn numbers_of(column: &ArrayRef, what: &str, first_row: usize) -> Result<Vec<f32>> {
    if !column.data_type().is_numeric() {
        return Err(Error::data(format!("the {what} column must hold numbers, found {}", column.data_type())));
    }
    let numbers = convert(column, &DataType::Float32)?;
    let numbers: &Float32Array = numbers.as_primitive();
    (0..numbers.len())
        .map(|row| match numbers.is_valid(row).then(|| numbers.value(row)) {
            Some(number) if number.is_finite() => Ok(number),
            Some(number) => Err(Error::data(format!("row {}: the {what} is {number}", first_row + row))),
            None => Err(Error::data(format!("row {}: the {what} is null", first_row + row))),
        })
        .collect()
}

/// The values of a list column, without those that no row refers to, and every row's number of values.
pub(super) fn list_parts(column: &ArrayRef) -> Option<(ArrayRef, Vec<usize>)> {
    fn of_offsets<O: arrow_array::OffsetSizeTrait>(
        list: &arrow_array::GenericListArray<O>,
    ) -> (ArrayRef, Vec<usize>) {
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

fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &strict).map_err(|error| {
        let text = match error {
            ArrowError::CastError(text) | ArrowError::ParseError(text) | ArrowError::ComputeError(text) => text,
            other => other.to_string(),
        };
        Error::data(text)
    })
}

impl Labels {
    /// Appends a column of values, or of lists of values.
    pub(super) fn append(
        labels: &mut Option<Self>,
        column: &ArrayRef,
        what: &str,
        first_row: usize,
    ) -> Result<()> {
        if let Some(row) = (0..column.len()).find(|&row| column.is_null(row)) {
            return Err(Error::data(format!("row {}: the {what} is null", first_row + row)));
        }
        let (values, lengths) = list_parts(column).unwrap_or_else(|| (column.clone(), vec![1; column.len()]));
        // A true set may be empty: "none of them". An identifier is one value, which no list is.
        if let Some(at) = (0..values.len()).find(|&at| values.is_null(at)) {
            let mut end = 0;
            let row = lengths.iter().position(|length| {
                end += length;
                at < end
            });
            return Err(Error::data(format!("row {}: the {what} has a null in it", first_row + row.unwrap_or(0))));
        }
        let is_text = |kind: &DataType| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let texts = match values.data_type() {
            kind if kind.is_integer() => false,
            kind if is_text(kind) => true,
            DataType::Dictionary(_, kind) if is_text(kind) => true,
            // Nothing but empty sets: whatever the others hold.
            _ if values.is_empty() => {
                labels.as_ref().is_some_and(|labels| matches!(labels.values, Values::Texts(_)))
            }
            kind => {
                return Err(Error::data(format!("the {what} column must hold integers or strings, found {kind}")));
            }
        };
        let labels = labels.get_or_insert_with(|| Self {
            offsets: vec![0],
            values: if texts { Values::Texts(Vec::new()) } else { Values::Numbers(Vec::new()) },
        });
        match &mut labels.values {
            Values::Numbers(numbers) if !texts => {
                let values = convert(&values, &DataType::Int64)?;
                numbers.extend_from_slice(values.as_primitive::<Int64Type>().values());
            }
            Values::Texts(all) if texts => {
                let values = convert(&values, &DataType::Utf8)?;
                let values: &StringArray = values.as_string();
                all.extend(values.iter().flatten().map(str::to_owned));
            }
            _ => {
                return Err(Error::data(format!(
                    "the {what} column holds integers in one file and strings in another"
                )));
            }
        }
        let mut end = labels.offsets[labels.offsets.len() - 1];
        labels.offsets.extend(lengths.iter().map(|length| {
            end += *length as u64;
            end
        }));
        Ok(())
    }

    /// Numbers the distinct values in their order; also says what they are.
    pub(super) fn number(self) -> (Sets, Vec<String>) {
        fn of<T: Ord + Hash + std::fmt::Display>(values: &[T], offsets: &[u64]) -> (Sets, Vec<String>) {
            let mut distinct: Vec<&T> = values.iter().collect::<HashSet<_>>().into_iter().collect();
            distinct.sort();
            let names = distinct.iter().map(ToString::to_string).collect();
            let numbers: HashMap<&T, u32> = distinct.into_iter().zip(0..).collect();
            let mut sets = Sets::with_capacity(offsets.len(), values.len());
            let mut set = Vec::new();
            for ends in offsets.windows(2) {
                set.clear();
                set.extend(values[ends[0] as usize..ends[1] as usize].iter().map(|value| numbers[value]));
                sets.push(&set);
            }
            (sets, names)
        }
        match self.values {
            Values::Numbers(values) => of(&values, &self.offsets),
            Values::Texts(values) => of(&values, &self.offsets),
        }
    }
}
