//! From a loader's record batches to trials, every value checked once.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::atomic::AtomicBool;

use arrow_array::{Array, RecordBatch};
use arrow_buffer::ScalarBuffer;
use compflow_api::{Column, Sets, Table};

use super::dataset::{Dataset, Ids, Trial, content_key, dataset_key, truth_key};
use super::label_sets::{Labels, Values, wrong_kind};
use super::seeds::{SeedRows, Seeds};
use super::segments::{require_apart, segments};
use super::values::{
    FURTHER, Width, append_further, list_parts, numbers_of, text_bytes, trial_numbers, weights_of,
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
    /// Bytes that the embeddings may take.
    memory: u64,
    /// Bytes that texts have taken so far.
    texts: u64,
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

impl Builder {
    /// A builder of data whose embeddings, and whose texts, may take this much memory.
    pub(crate) fn new(keep: Keep, memory: u64) -> Self {
        Self { keep, memory, ..Self::default() }
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
            self.texts = self.texts.saturating_add(text_bytes(column));
            if self.texts > self.memory {
                let (column, budget) = (field.name().trim_start_matches(FURTHER), human_bytes(self.memory));
                let text = format!(
                    "row {}: the texts up to this one take more than the memory budget of {budget}",
                    first_row + batch.num_rows() - 1
                );
                let help =
                    format!("a run may use more with --memory; or look at what is in the column `{column}`");
                return Err(Error::fault(Cause::Memory, text).help(help));
            }
        }
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
        if self.keep != Keep::Nothing {
            let column = batch
                .column_by_name("embedding")
                .ok_or_else(|| Error::data("the loader returned no embeddings"))?;
            let values = self.width.values(column, first_row)?;
            let dim = self.width.dim;
            let bytes = 4 * (dim * (self.rows + batch.num_rows())) as u64;
            if self.keep == Keep::Matrix && bytes > self.memory {
                let budget = human_bytes(self.memory);
                let text = format!(
                    "the embeddings take more than the memory budget of {budget}; a run may use more with --memory, and needs \
                     less with `stream = true` of `ckm`"
                );
                return Err(Error::fault(Cause::Memory, text));
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
            return Err(Error::fault(Cause::Empty, "there are no rows"));
        }
        self.truth.as_ref().map_or(Ok(()), |labels| labels.require_plain("truth", |row| row))?;
        self.seeds.as_ref().map_or(Ok(()), SeedRows::require_plain)?;
        let (truth, classes) = self.truth.map(Labels::number).unzip();
        let seeds = self.seeds.and_then(SeedRows::number);
        let mut trials = Vec::new();
        for (number, TrialRows { embeddings, hasher, rows }) in self.trials {
            let ids = match self.ids.as_ref().map(Labels::values) {
                None => Ids::Numbers(rows.iter().map(|row| *row as i64).collect()),
                Some(Values::Numbers(ids)) => Ids::Numbers(rows.iter().map(|row| ids[*row]).collect()),
                Some(Values::Texts(ids)) => Ids::Texts(rows.iter().map(|row| ids[*row].clone()).collect()),
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
