//! From a loader's record batches to trials, every value checked once.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::atomic::AtomicBool;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::ScalarBuffer;
use compflow_api::{Column, Sets, Table};

use super::dataset::{Dataset, Ids, Trial, content_key, dataset_key, truth_key};
use super::held::{Held, NAME, TRIAL, VALUE};
use super::label_sets::{Labels, Values, wrong_kind};
use super::seeds::{SeedRows, Seeds};
use super::segments::{require_apart, segments};
use super::values::{
    FURTHER, Width, append_further, list_parts, numbers_of, trial_numbers, value_bytes, weights_of,
};
use crate::cancel::Cancel;
use crate::causes::Cause;
use crate::error::{Error, Result};
use crate::files::human_bytes;

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
    /// Bytes that all of it takes, and may take.
    held: Held,
}

/// What has been read of one trial.
#[derive(Debug, Default)]
struct TrialRows {
    embeddings: Pieces,
    /// Of embeddings that are not kept; the others are hashed when they are whole. There may be a million trials, and a hasher takes
    /// two thousand bytes.
    hasher: Option<Box<blake3::Hasher>>,
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

impl Builder {
    /// A builder of data that may take this much memory.
    pub(crate) fn new(keep: Keep, memory: u64) -> Self {
        Self { keep, held: Held::of_at_most(memory), ..Self::default() }
    }

    /// How many rows were read.
    pub(crate) fn rows(&self) -> usize {
        self.rows
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
            return Err(Error::fault(Cause::Unequal, "has other columns than the files before it"));
        }
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            if !["embedding", "trial"].contains(&field.name().as_str()) {
                let name = field.name().trim_start_matches(FURTHER);
                self.held.add(&format!("the column `{name}`"), value_bytes(column));
            }
        }
        self.held.add("the rows", VALUE * batch.num_rows() as u64);
        self.held.check(|| upto((first_row + batch.num_rows()).saturating_sub(1)))?;
        let numbers = match batch.column_by_name("trial") {
            None => vec![0; batch.num_rows()],
            Some(column) => trial_numbers(column, first_row)?,
        };
        if let Some(column) = batch.column_by_name("truth") {
            Labels::append(&mut self.truth, column, "truth", first_row)?;
        }
        if let Some(column) = batch.column_by_name("id") {
            // An identifier is one value, which no list is.
            if list_parts(column).is_some() {
                return Err(wrong_kind("id", column.data_type()));
            }
            Labels::append(&mut self.ids, column, "id", first_row)?;
        }
        if let Some(column) = batch.column_by_name("preference") {
            let preferences = self.preferences.get_or_insert_default();
            preferences.extend(numbers_of(column, "preference", first_row)?);
        }
        if let Some(column) = batch.column_by_name("weight") {
            self.weights.get_or_insert_default().extend(weights_of(column, first_row)?);
        }
        if let Some(column) = batch.column_by_name("seed") {
            self.seeds.get_or_insert_default().append(column, first_row, self.rows)?;
        }
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            if let Some(name) = field.name().strip_prefix(FURTHER) {
                append_further(&mut self.further, name, column, first_row)?;
            }
        }
        let values = match self.keep {
            Keep::Nothing => None,
            _ => Some(self.embeddings(batch, first_row)?),
        };
        let dim = self.width.dim;
        if let (Some(seeds), Some(values)) = (&mut self.seeds, &values) {
            seeds.place(values, dim, self.rows);
        }
        // Rows of one trial usually come together, so they are copied together.
        let mut row = 0;
        while row < numbers.len() {
            let end = (row..numbers.len()).find(|&at| numbers[at] != numbers[row]).unwrap_or(numbers.len());
            if !self.trials.contains_key(&numbers[row]) {
                let hasher = if self.keep == Keep::Streamed { size_of::<blake3::Hasher>() as u64 } else { 0 };
                self.held.add("the trials", TRIAL + hasher);
                self.held.check(|| upto(first_row + row))?;
            }
            let trial = self.trials.entry(numbers[row]).or_default();
            match (&values, self.keep) {
                (Some(values), Keep::Matrix) => trial.embeddings.add(values.slice(row * dim, (end - row) * dim)),
                (Some(values), _) => {
                    let rows = bytemuck::cast_slice(&values[row * dim..end * dim]);
                    trial.hasher.get_or_insert_default().update(rows);
                }
                (None, _) => {}
            }
            trial.rows.extend(self.rows + row..self.rows + end);
            row = end;
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    /// The embeddings of a batch, if there is room for them.
    fn embeddings(&mut self, batch: &RecordBatch, first_row: usize) -> Result<ScalarBuffer<f32>> {
        let column =
            batch.column_by_name("embedding").ok_or_else(|| Error::data("the loader returned no embeddings"))?;
        let values = self.width.values(column, first_row)?;
        let dim = self.width.dim;
        if self.keep == Keep::Matrix {
            if 4 * (dim * (self.rows + batch.num_rows())) as u64 > self.held.most() {
                let budget = human_bytes(self.held.most());
                let text = format!(
                    "the embeddings take more than the memory budget of {budget}; a run may use more with --memory, and needs \
                     less with `stream = true` of `ckm`"
                );
                return Err(Error::fault(Cause::Memory, text));
            }
            self.held.add("the embeddings", 4 * values.len() as u64);
            self.held.check(|| upto((first_row + batch.num_rows()).saturating_sub(1)))?;
        }
        Ok(values.values().clone())
    }

    /// The trials, by number.
    ///
    /// # Errors
    /// If there are no rows, more distinct labels than there is room for, or a trial has an identifier twice, or known sets that
    /// contradict each other.
    pub(crate) fn finish(mut self) -> Result<Dataset> {
        if self.rows == 0 {
            return Err(Error::fault(Cause::Empty, "there are no rows"));
        }
        self.truth.as_ref().map_or(Ok(()), |labels| labels.require_plain("truth", |row| row))?;
        self.seeds.as_ref().map_or(Ok(()), SeedRows::require_plain)?;
        let names = |held: &mut Held, what: &str, distinct: usize| {
            held.add(&format!("the labels of the column `{what}`"), NAME * distinct as u64);
            held.check(|| "what is read".to_owned())
        };
        let (truth, classes) = self
            .truth
            .map(|truth| truth.number(|distinct| names(&mut self.held, "truth", distinct)))
            .transpose()?
            .unzip();
        let seeds = self
            .seeds
            .map(|seeds| seeds.number(|distinct| names(&mut self.held, "seed", distinct)))
            .transpose()?
            .flatten();
        let mut ids = self.ids.map(Labels::into_values);
        let mut trials = Vec::new();
        for (number, TrialRows { embeddings, hasher, rows }) in self.trials {
            let numbered = ids.is_none();
            // A row belongs to one trial: what is its own moves there.
            let ids = match &mut ids {
                None => Ids::Numbers(rows.iter().map(|row| *row as i64).collect()),
                Some(Values::Numbers(ids)) => Ids::Numbers(rows.iter().map(|row| ids[*row]).collect()),
                Some(Values::Texts(ids)) => {
                    Ids::Texts(rows.iter().map(|row| std::mem::take(&mut ids[*row])).collect())
                }
            };
            match &ids {
                // Row numbers cannot repeat.
                Ids::Numbers(_) if numbered => {}
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
                self.further.iter_mut().map(|(name, column)| (name.clone(), take_rows(column, &rows))).collect();
            if self.segments {
                require_apart(&segments(&columns)?, &rows)?;
            }
            let embeddings = embeddings.join();
            let mut hasher = hasher.map_or_else(blake3::Hasher::new, |hasher| *hasher);
            hasher.update(bytemuck::cast_slice(&embeddings));
            let key = content_key(hasher, preferences.as_deref(), weights.as_deref());
            let numbers_key = content_key(blake3::Hasher::new(), preferences.as_deref(), weights.as_deref());
            let truth_key = truth.as_ref().map(truth_key).unwrap_or_default();
            let seeds_key = seeds.as_ref().map(|seeds: &Seeds| seeds.keys().0).unwrap_or_default();
            trials.push(Trial {
                number,
                embeddings,
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
        Ok(Dataset { dim, classes, trials, content, bytes: self.held.bytes() })
    }
}

fn require_distinct<T: Eq + Hash + std::fmt::Display>(ids: &[T], rows: &[usize], trial: u32) -> Result<()> {
    let mut seen: HashMap<&T, usize> = HashMap::with_capacity(ids.len());
    for (id, row) in ids.iter().zip(rows) {
        if let Some(first) = seen.insert(id, *row) {
            let text = format!("rows {first} and {row} of trial {trial} have the same id {id}");
            let help = "name the column of trials if there are several, or leave `id` out, and rows are numbered";
            return Err(Error::fault(Cause::Identifier, text).help(help));
        }
    }
    Ok(())
}

/// Where in the data it is too much.
fn upto(row: usize) -> String {
    format!("row {row}: what is read up to this one")
}

/// Some rows of a further column, which nobody takes again.
fn take_rows(column: &mut Column, rows: &[usize]) -> Column {
    match column {
        Column::Integers(values) => Column::Integers(rows.iter().map(|row| values[*row]).collect()),
        Column::Floats(values) => Column::Floats(rows.iter().map(|row| values[*row]).collect()),
        Column::Texts(values) => Column::Texts(rows.iter().map(|row| std::mem::take(&mut values[*row])).collect()),
        // No other is read.
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, ListArray};
    use arrow_schema::{DataType, Field};

    use super::*;

    /// A thousand embeddings of one number, and another column.
    fn batch(name: &str, column: ArrayRef) -> RecordBatch {
        let item = Arc::new(Field::new_list_field(DataType::Float32, false));
        let numbers = Arc::new(Float32Array::from_iter_values((0..1000).map(|at| at as f32)));
        let embeddings: ArrayRef = Arc::new(FixedSizeListArray::new(item, 1, numbers, None));
        RecordBatch::try_from_iter([("embedding", embeddings), (name, column)]).unwrap()
    }

    fn read(keep: Keep, memory: u64, batch: &RecordBatch) -> Result<Dataset> {
        let mut builder = Builder::new(keep, memory);
        builder.read([Ok(batch.clone())], &Cancel::new())?;
        builder.finish()
    }

    fn trials(of: i64) -> RecordBatch {
        batch("trial", Arc::new(Int64Array::from_iter_values((0..1000).map(|row| row % of))))
    }

    #[test]
    fn what_is_read_beside_embeddings_is_held_to_the_memory_as_well() {
        let list = |distinct: i64| -> RecordBatch {
            let rows = (0..1000).map(|row| Some((0..10).map(move |at| Some((row * 10 + at) % distinct))));
            batch("truth", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows)))
        };
        for (of, small, most) in [
            ("the trials", &trials(1000), 200_000),
            ("the column `truth`", &list(10), 200_000),
            ("the labels of the column `truth`", &list(10_000), 1_000_000),
        ] {
            let error = read(Keep::Matrix, most, small).unwrap_err().to_string();
            assert!(error.contains("takes more than the memory budget of "), "{of}: {error}");
            assert!(error.contains(&format!("most of it is for {of}")), "{of}: {error}");
            let dataset = read(Keep::Matrix, 10 * most, small).unwrap();
            assert!((most..10 * most).contains(&dataset.bytes), "{of}: {}", dataset.bytes);
        }
        assert!(read(Keep::Matrix, 200_000, &trials(10)).is_ok());
    }

    #[test]
    fn a_trial_has_the_same_key_whether_its_embeddings_are_kept_or_not() {
        let keys = |keep| -> Vec<String> {
            let dataset = read(keep, 1 << 30, &trials(3)).unwrap();
            dataset.trials.into_iter().map(|trial| trial.key).collect()
        };
        let kept = keys(Keep::Matrix);
        assert!(kept[0] != kept[1] && kept.len() == 3);
        assert_eq!(kept, keys(Keep::Streamed));
        assert!(read(Keep::Matrix, 1 << 30, &trials(3)).unwrap().trials.iter().all(Trial::is_intact));
    }
}
