//! The loader `disturbed`: the data of another loader, made harder in one way or another.
//!
//! Everything is decided trial by trial from a random stream for each purpose, so that the share of unions does not
//! change which examples become outliers of those that are left, and neither depends on the columns asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, ListArray, RecordBatch, RecordBatchIterator,
    RecordBatchOptions, Scalar, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::take::take;
use arrow_select::zip::zip;
use compflow_api::{
    Batches, Code, Component, Description, Error, ForeignLoader, Kind, LoadRequest, Loader, Result, Services,
    Stream,
};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The data of another loader, with examples left out or replaced: to see what a method makes of it.
///
/// First the examples of singletons that are never to occur alone are left out, then as many of the others as the share
/// of unions asks for, the same number of each set as far as possible; then outliers take the place of some. All of it
/// happens within each trial, at random from the seed. A source is in memory as a whole.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Params {
    /// Where the data comes from.
    of: Source,
    /// The source's column of true sets, for passes over the examples that do not ask for them: what is left out
    /// depends on them all the same. By default the one that is asked for.
    truth: Option<String>,
    /// How many singletons never occur alone: the first in the order of their names.
    never_alone: usize,
    /// The share of unions among the examples: there are too many of them, or of the others, and these are left out.
    #[schemars(range(min = 0.0, max = 1.0))]
    unions: Option<f64>,
    /// The share of outliers. An outlier has the place of an example, but is drawn from a normal distribution with the
    /// trial's mean and its standard deviation times `spread` in each dimension, and its true set is empty.
    #[schemars(range(min = 0.0, max = 1.0))]
    outliers: f64,
    /// How far outliers lie apart, in standard deviations of the data.
    #[schemars(range(min = 0.0))]
    spread: f64,
    /// Replaces the seed of the run.
    seed: Option<u64>,
}

/// A loader, as in `{ use = "parquet", path = "embeddings.parquet" }`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Source {
    /// Its name.
    r#use: String,
    /// The file, for those that read one; relative to the pipeline file.
    path: Option<String>,
    /// Its parameters.
    params: Map<String, Value>,
}

impl Default for Source {
    fn default() -> Self {
        Self { r#use: "synthetic".to_owned(), path: None, params: Map::new() }
    }
}

impl Default for Params {
    fn default() -> Self {
        Self {
            of: Source::default(),
            truth: None,
            never_alone: 0,
            unions: None,
            outliers: 0.0,
            spread: 2.0,
            seed: None,
        }
    }
}

struct Disturbed {
    params: Params,
    source: ForeignLoader,
    path: Option<std::path::PathBuf>,
}
compflow_api::register!(loader Disturbed);

impl Component for Disturbed {
    const NAME: &'static str = "disturbed";
    const SUMMARY: &'static str = "the data of another loader with unequal sizes, hidden singletons or outliers";
    type Params = Params;

    fn new(params: Params, services: &Services<'_>) -> Result<Self> {
        let Source { r#use: name, path, params: source } = &params.of;
        let source = services
            .host
            .create(Kind::Loader, name, &Value::Object(source.clone()).to_string())
            .and_then(ForeignLoader::try_from)
            .map_err(|error| explain(error, name))?;
        let path = path.as_deref().map(|path| services.input(path)).transpose();
        let path = path.map_err(|error| Error::parameter("of.path", format!("cannot be used: {error}")))?;
        Ok(Self { source, path, params })
    }
}

/// What a loader said when it was made, about our parameters.
fn explain(error: Error, name: &str) -> Error {
    let about_parameters = error.problems().iter().all(|problem| problem.code == Code::Parameter);
    match error {
        Error::Cancelled => Error::Cancelled,
        error if about_parameters => error.below("of.params"),
        error => Error::parameter("of", format!("`{name}`: {error}")),
    }
}

impl Loader for Disturbed {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Stream> {
        let columns = self.with_truth(request)?;
        let wanted = LoadRequest { path: self.path.as_deref(), columns: &columns };
        let batches = self.source.load(&wanted, services)?.into_batches(services.memory)?;
        let schema = batches.schema().clone();
        let batches = batches.collect::<Result<Vec<RecordBatch>>>()?;
        let table = concat_batches(&schema, &batches)?;
        drop(batches);
        let changed = self.disturb(&table, self.params.seed.unwrap_or(services.seed))?;
        // Without the truth if only we have asked for it.
        let changed = changed.project(&(0..request.columns.len()).collect::<Vec<_>>())?;
        let schema = changed.schema();
        let batches: Batches = Box::new(RecordBatchIterator::new([Ok(changed)], schema));
        Ok(batches.into())
    }

    fn describe(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Option<Description>> {
        let columns = self.with_truth(request)?;
        let wanted = LoadRequest { path: self.path.as_deref(), columns: &columns };
        let found = self.source.describe(&wanted, services)?;
        // How many rows are left is known when all are read.
        Ok(found.map(|found| Description { rows: None, ..found }))
    }
}

impl Disturbed {
    /// The columns that are asked for, and the true sets behind them where it takes these to know what is left out.
    fn with_truth<'a>(&'a self, request: &LoadRequest<'a>) -> Result<Vec<(&'a str, &'a str)>> {
        let mut columns = request.columns.to_vec();
        let (asked, named) = (request.column("truth"), self.params.truth.as_deref());
        match (asked, named) {
            (Some(asked), Some(named)) if asked != named => {
                let text = format!("= `{named}`, but the true sets that are asked for are those of `{asked}`");
                return Err(Error::parameter("truth", text));
            }
            (None, _) if !columns.is_empty() && (self.params.unions.is_some() || self.params.never_alone > 0) => {
                columns.push(("truth", named.unwrap_or("truth")));
            }
            _ => {}
        }
        Ok(columns)
    }

    /// The rows that are left, with outliers in the place of some.
    fn disturb(&self, table: &RecordBatch, seed: u64) -> Result<RecordBatch> {
        let truth = table.column_by_name("truth").map(sets).transpose()?;
        let mut kept: Vec<Kept> = Vec::new();
        for (trial, rows) in trials(table)?.into_iter().enumerate() {
            let mut left = match &truth {
                Some(truth) => self.left(rows, truth, &mut generator(seed, trial, Purpose::Sizes))?,
                None => rows,
            };
            left.shuffle(&mut generator(seed, trial, Purpose::Outliers));
            let outliers = (self.params.outliers * left.len() as f64).round() as usize;
            kept.extend(left.into_iter().enumerate().map(|(at, row)| Kept { row, trial, outlier: at < outliers }));
        }
        kept.sort_unstable_by_key(|kept| kept.row);
        let rows = UInt64Array::from_iter_values(kept.iter().map(|kept| kept.row as u64));
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (field, column) in table.schema().fields().iter().zip(table.columns()) {
            let column = match (field.name().as_str(), self.params.outliers > 0.0) {
                ("truth", true) => emptied(&take(&sets(column)?, &rows, None)?, &kept)?,
                ("seed", true) => forgotten(&take(column, &rows, None)?, &kept)?,
                ("embedding", true) => self.replaced(&take(column, &rows, None)?, &kept, seed)?,
                _ => take(column, &rows, None)?,
            };
            fields.push(Field::new(
                field.name(),
                column.data_type().clone(),
                field.is_nullable() || column.null_count() > 0,
            ));
            columns.push(column);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(kept.len()));
        Ok(RecordBatch::try_new_with_options(Schema::new(fields).into(), columns, &options)?)
    }

    /// Those of a trial's rows that are left, in any order.
    fn left(&self, rows: Vec<usize>, truth: &ArrayRef, generator: &mut ChaCha8Rng) -> Result<Vec<usize>> {
        let shown = ArrayFormatter::try_new(truth, &FormatOptions::new())?;
        let size = |row: usize| truth.as_list::<i32>().value_length(row);
        let mut sets: BTreeMap<(bool, String), Vec<usize>> = BTreeMap::new();
        for row in rows {
            sets.entry((size(row) > 1, shown.value(row).to_string())).or_default().push(row);
        }
        let alone = sets.keys().filter(|(union, _)| !union).take(self.params.never_alone).cloned();
        for hidden in alone.collect::<Vec<_>>() {
            sets.remove(&hidden);
        }
        let (unions, others): (Vec<_>, Vec<_>) = sets.into_iter().partition(|((union, _), _)| *union);
        let [mut unions, mut others] =
            [unions, others].map(|sets| in_turn(sets.into_iter().map(|(_, rows)| rows), generator));
        // Where one of the two is missing, nothing makes up for it.
        if let Some(share) = self.params.unions.filter(|_| !unions.is_empty() && !others.is_empty()) {
            // How many make up a share beside so many others.
            let beside = |share: f64, others: usize| (share / (1.0 - share) * others as f64).round() as usize;
            let wanted = beside(share, others.len());
            match wanted <= unions.len() {
                true => unions.truncate(wanted),
                false => others.truncate(beside(1.0 - share, unions.len())),
            }
        }
        unions.extend(others);
        Ok(unions)
    }

    /// Embeddings with outliers in the place of some.
    fn replaced(&self, column: &ArrayRef, kept: &[Kept], seed: u64) -> Result<ArrayRef> {
        let length = match column.data_type() {
            DataType::FixedSizeList(_, length) => *length,
            DataType::List(_) if !column.is_empty() => column.as_list::<i32>().value_length(0),
            _ => {
                return Err(Error::data(format!(
                    "expected lists of numbers as embeddings, found {}",
                    column.data_type()
                )));
            }
        };
        let item: Arc<Field> = Field::new_list_field(DataType::Float32, true).into();
        let column = cast(column, &DataType::FixedSizeList(item.clone(), length))?;
        let values = column.as_fixed_size_list().values().as_primitive::<Float32Type>();
        let (dim, mut values) = (length as usize, values.values().to_vec());
        for trial in 0..=kept.iter().map(|kept| kept.trial).max().unwrap_or(0) {
            let of = |outlier| move |(_, kept): &(usize, &Kept)| kept.trial == trial && kept.outlier == outlier;
            let rows: Vec<usize> = kept.iter().enumerate().filter(of(false)).map(|(at, _)| at).collect();
            let moments: Vec<(f64, f64)> =
                (0..dim).map(|j| moments(rows.iter().map(|at| values[at * dim + j]))).collect();
            let mut generator = generator(seed, trial, Purpose::Places);
            for (at, _) in kept.iter().enumerate().filter(of(true)) {
                for (value, (mean, deviation)) in values[at * dim..][..dim].iter_mut().zip(&moments) {
                    let drawn: f64 = StandardNormal.sample(&mut generator);
                    *value = (mean + self.params.spread * deviation * drawn) as f32;
                }
            }
        }
        let values = Arc::new(Float32Array::from(values));
        Ok(Arc::new(FixedSizeListArray::try_new(item, length, values, None)?))
    }
}

/// A row that is left.
struct Kept {
    row: usize,
    /// Trials are numbered as they appear.
    trial: usize,
    outlier: bool,
}

/// What is random in a trial.
#[derive(Clone, Copy)]
enum Purpose {
    Sizes,
    Outliers,
    Places,
}

/// The generator for one purpose in one trial.
fn generator(seed: u64, trial: usize, purpose: Purpose) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream((trial as u64) << 2 | purpose as u64);
    generator
}

/// The rows of each trial, in the order in which trials appear; all are one where there is no such column.
fn trials(table: &RecordBatch) -> Result<Vec<Vec<usize>>> {
    let Some(column) = table.column_by_name("trial") else { return Ok(vec![(0..table.num_rows()).collect()]) };
    let shown = ArrayFormatter::try_new(column, &FormatOptions::new())?;
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut trials: Vec<Vec<usize>> = Vec::new();
    for row in 0..table.num_rows() {
        let next = numbers.len();
        let number = *numbers.entry(shown.value(row).to_string()).or_insert(next);
        if number == next {
            trials.push(Vec::new());
        }
        trials[number].push(row);
    }
    Ok(trials)
}

/// True sets as lists: single labels are sets of one.
fn sets(column: &ArrayRef) -> Result<ArrayRef> {
    match column.data_type() {
        DataType::List(_) => Ok(column.clone()),
        DataType::LargeList(item) => Ok(cast(column, &DataType::List(item.clone()))?),
        label => {
            let item = Field::new_list_field(label.clone(), true);
            let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(1, column.len()));
            Ok(Arc::new(ListArray::try_new(item.into(), offsets, column.clone(), None)?))
        }
    }
}

/// True sets with those of outliers empty.
fn emptied(sets: &ArrayRef, kept: &[Kept]) -> Result<ArrayRef> {
    let DataType::List(item) = sets.data_type() else { return Ok(sets.clone()) };
    let nothing = arrow_array::new_empty_array(item.data_type());
    let empty = ListArray::try_new(item.clone(), OffsetBuffer::from_lengths([0]), nothing, None)?;
    let mask: BooleanArray = kept.iter().map(|kept| Some(kept.outlier)).collect();
    Ok(zip(&mask, &Scalar::new(empty), sets)?)
}

/// Known sets with those of outliers null.
fn forgotten(sets: &ArrayRef, kept: &[Kept]) -> Result<ArrayRef> {
    let mask: BooleanArray = kept.iter().map(|kept| Some(kept.outlier)).collect();
    Ok(zip(&mask, &Scalar::new(arrow_array::new_null_array(sets.data_type(), 1)), sets)?)
}

/// All rows of some sets, such that the first few are equally many of each: the first of every set, the second of
/// every set, and so on, both in random order.
fn in_turn(sets: impl Iterator<Item = Vec<usize>>, generator: &mut ChaCha8Rng) -> Vec<usize> {
    let mut sets: Vec<Vec<usize>> = sets.collect();
    sets.iter_mut().for_each(|rows| rows.shuffle(generator));
    sets.shuffle(generator);
    let rounds = sets.iter().map(Vec::len).max().unwrap_or(0);
    (0..rounds).flat_map(|round| sets.iter().filter_map(move |rows| rows.get(round)).copied()).collect()
}

/// Mean and standard deviation.
fn moments(values: impl Iterator<Item = f32> + Clone) -> (f64, f64) {
    let n = values.clone().count().max(1) as f64;
    let mean = values.clone().map(f64::from).sum::<f64>() / n;
    let variance = values.map(|value| (f64::from(value) - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests;
