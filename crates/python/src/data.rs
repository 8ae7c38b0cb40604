//! Examples that are in memory: embeddings, and what else is known of them.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, UInt32Array};
use arrow_buffer::ScalarBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat;
use compflow_api::in_words;
use compflow_engine::files::write_whole;
use numpy::{PyArray2, PyReadonlyArray1};
use parquet::arrow::ArrowWriter;
use pyo3::prelude::*;

use crate::error::wrong;
use crate::lend;
use crate::memory::TABLES;

/// Examples, as long as this object lives.
#[pyclass(frozen, module = "compflow._engine")]
pub(crate) struct Data {
    number: u64,
    rows: usize,
    dim: usize,
    columns: Vec<String>,
}

/// The embeddings of some examples.
pub(crate) struct Matrix {
    pub(crate) values: ScalarBuffer<f32>,
    pub(crate) rows: usize,
    pub(crate) dim: usize,
}

/// Sets as Python lists them: `None` where nothing is known.
#[derive(FromPyObject)]
enum Sets {
    Numbers(Vec<Option<Vec<i64>>>),
    Texts(Vec<Option<Vec<String>>>),
}

#[pymethods]
impl Data {
    /// Examples of a C-contiguous float32 matrix, which is not copied, or of anything with an Arrow interface.
    #[new]
    #[pyo3(signature = (embeddings, *, weights=None, seeds=None, truth=None, trials=None, column=None))]
    fn new(
        embeddings: &Bound<'_, PyAny>,
        weights: Option<PyReadonlyArray1<'_, f32>>,
        seeds: Option<Sets>,
        truth: Option<Sets>,
        trials: Option<PyReadonlyArray1<'_, u32>>,
        column: Option<&str>,
    ) -> PyResult<Self> {
        let matrix = Matrix::new(embeddings, column)?;
        let (rows, dim) = (matrix.rows, matrix.dim);
        let mut columns: Vec<(&str, ArrayRef)> = vec![("embedding", matrix.into_lists()?)];
        if let Some(weights) = weights {
            columns.push(("weight", Arc::new(Float32Array::from(weights.as_slice()?.to_vec()))));
        }
        if let Some(trials) = trials {
            columns.push(("trial", Arc::new(UInt32Array::from(trials.as_slice()?.to_vec()))));
        }
        columns.extend(seeds.map(|seeds| ("seed", lists(seeds))));
        columns.extend(truth.map(|truth| ("truth", lists(truth))));
        if let Some((name, column)) = columns.iter().find(|(_, column)| column.len() != rows) {
            return Err(wrong(format!("there are {rows} examples, and {} entries of `{name}`", column.len())));
        }
        let fields: Vec<Field> =
            columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
        let names = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(wrong)?;
        Ok(Self { number: TABLES.put(vec![batch]), rows, dim, columns: names })
    }

    /// The number that the loader `memory` is told.
    #[getter]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Examples and dimensions.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.dim)
    }

    /// Writes the examples to a Parquet file.
    fn write_parquet(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let batch = self.batch()?;
        py.detach(|| {
            // Whole or not at all, and through no link.
            write_whole(&path, false, |file| {
                let mut writer = ArrowWriter::try_new(file, batch.schema(), None)?;
                writer.write(&batch)?;
                writer.close()?;
                Ok(())
            })?;
            Ok(())
        })
    }

    /// The columns that there are.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }
}

impl Data {
    /// The examples as a table.
    pub(crate) fn batch(&self) -> PyResult<RecordBatch> {
        let gone = || wrong("the examples are no longer in memory");
        TABLES.get(self.number).and_then(|table| table.first().cloned()).ok_or_else(gone)
    }

    /// The embeddings, not copied.
    pub(crate) fn matrix(&self) -> PyResult<Matrix> {
        let batch = self.batch()?;
        let lists = batch.column(0).as_fixed_size_list();
        let values = lists.values().as_primitive::<Float32Type>().values().clone();
        Ok(Matrix { values, rows: self.rows, dim: self.dim })
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        TABLES.remove(self.number);
    }
}

impl Matrix {
    fn new(embeddings: &Bound<'_, PyAny>, column: Option<&str>) -> PyResult<Self> {
        if let Ok(array) = embeddings.cast::<PyArray2<f32>>() {
            let (values, [rows, dim]) = lend::matrix(array)?;
            return Ok(Self { values, rows, dim });
        }
        let arrays = lend::arrays(embeddings)?;
        let pieces: Vec<Self> =
            arrays.iter().map(|array| Self::of_array(array, column)).collect::<PyResult<_>>()?;
        Self::join(pieces)
    }

    /// From a column of lists, or a table with one, or a table of numbers.
    fn of_array(array: &ArrayRef, column: Option<&str>) -> PyResult<Self> {
        let Some(table) = array.as_struct_opt() else { return Self::of_lists(array) };
        let is_list = |kind: &DataType| {
            matches!(kind, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
        };
        let names: Vec<&str> = table.column_names();
        if let Some(name) = column {
            let found = table.column_by_name(name);
            return Self::of_lists(
                found.ok_or_else(|| {
                    wrong(format!("there is no column `{name}`; there are {}", names.join(", ")))
                })?,
            );
        }
        let lists: Vec<usize> = (0..names.len()).filter(|&at| is_list(table.column(at).data_type())).collect();
        match lists[..] {
            [] => Self::of_numbers(table.columns(), &names),
            [at] => Self::of_lists(table.column(at)),
            _ => {
                let names: Vec<&str> = lists.iter().map(|&at| names[at]).collect();
                Err(wrong(format!("several columns hold lists: {}; say which with `column`", names.join(", "))))
            }
        }
    }

    fn of_lists(array: &ArrayRef) -> PyResult<Self> {
        if array.null_count() > 0
            && let Some(row) = (0..array.len()).find(|&row| array.is_null(row))
        {
            return Err(wrong(format!("row {row}: the embedding is null")));
        }
        let (values, dim) = if let Some(lists) = array.as_fixed_size_list_opt() {
            let dim = lists.value_length() as usize;
            (lists.values().slice(0, lists.len() * dim), dim)
        } else if let Some(lists) = array.as_list_opt::<i32>() {
            let ends = lists.value_offsets();
            let dim = width(ends.windows(2).map(|ends| (ends[1] - ends[0]) as usize))?;
            (lists.values().slice(ends[0] as usize, lists.len() * dim), dim)
        } else if let Some(lists) = array.as_list_opt::<i64>() {
            let ends = lists.value_offsets();
            let dim = width(ends.windows(2).map(|ends| (ends[1] - ends[0]) as usize))?;
            (lists.values().slice(ends[0] as usize, lists.len() * dim), dim)
        } else {
            return Err(wrong(format!("expected lists of numbers, found {}", in_words(array.data_type()))));
        };
        Ok(Self { values: floats(&values, "the embeddings")?, rows: array.len(), dim })
    }

    /// From a column for every dimension.
    fn of_numbers(columns: &[ArrayRef], names: &[&str]) -> PyResult<Self> {
        let columns: Vec<ScalarBuffer<f32>> = columns
            .iter()
            .zip(names)
            .map(|(column, name)| floats(column, &format!("the column `{name}`")))
            .collect::<PyResult<_>>()?;
        let (rows, dim) = (columns.first().map_or(0, |column| column.len()), columns.len());
        let values: Vec<f32> = (0..rows).flat_map(|row| columns.iter().map(move |column| column[row])).collect();
        Ok(Self { values: values.into(), rows, dim })
    }

    /// One matrix; a single piece is not copied.
    fn join(mut pieces: Vec<Self>) -> PyResult<Self> {
        pieces.retain(|piece| piece.rows > 0);
        let dim = pieces.first().map_or(0, |piece| piece.dim);
        if let Some(other) = pieces.iter().find(|piece| piece.dim != dim) {
            return Err(wrong(format!("some embeddings have {dim} numbers, and others {}", other.dim)));
        }
        let rows = pieces.iter().map(|piece| piece.rows).sum();
        let values = match pieces.len() {
            1 => pieces.swap_remove(0).values,
            _ => pieces.iter().flat_map(|piece| piece.values.iter().copied()).collect(),
        };
        Ok(Self { values, rows, dim })
    }

    fn into_lists(self) -> PyResult<ArrayRef> {
        let Self { values, rows, dim } = self;
        if rows == 0 || dim == 0 {
            return Err(wrong(format!(
                "there are {rows} examples of {dim} numbers; at least one of one is needed"
            )));
        }
        let width = i32::try_from(dim).map_err(|_| wrong(format!("{dim} dimensions are too many")))?;
        let item = Arc::new(Field::new_list_field(DataType::Float32, false));
        let values = Arc::new(Float32Array::new(values, None));
        Ok(Arc::new(FixedSizeListArray::try_new(item, width, values, None).map_err(wrong)?))
    }
}

/// The length that all lists have.
fn width(mut lengths: impl Iterator<Item = usize>) -> PyResult<usize> {
    let first = lengths.next().unwrap_or(0);
    match lengths.position(|length| length != first) {
        None => Ok(first),
        Some(at) => {
            Err(wrong(format!("row {}: the embedding has another length than those before it, {first}", at + 1)))
        }
    }
}

/// Numbers as float32, without a copy if they are that.
fn floats(array: &ArrayRef, what: &str) -> PyResult<ScalarBuffer<f32>> {
    if !array.data_type().is_numeric() {
        return Err(wrong(format!("{what} must be numbers, found {}", in_words(array.data_type()))));
    }
    if array.null_count() > 0
        && let Some(at) = (0..array.len()).find(|&at| array.is_null(at))
    {
        return Err(wrong(format!("{what} must not be null, as at {at}")));
    }
    let array = cast(array, &DataType::Float32).map_err(wrong)?;
    Ok(array.as_primitive::<Float32Type>().values().clone())
}

/// A column of sets.
fn lists(sets: Sets) -> ArrayRef {
    match sets {
        Sets::Numbers(sets) => {
            let mut builder = ListBuilder::new(Int64Builder::new());
            for set in sets {
                set.iter().flatten().for_each(|value| builder.values().append_value(*value));
                builder.append(set.is_some());
            }
            Arc::new(builder.finish())
        }
        Sets::Texts(sets) => {
            let mut builder = ListBuilder::new(StringBuilder::new());
            for set in sets {
                set.iter().flatten().for_each(|value| builder.values().append_value(value));
                builder.append(set.is_some());
            }
            Arc::new(builder.finish())
        }
    }
}

/// Several arrays as one.
pub(crate) fn joined(arrays: &[ArrayRef]) -> PyResult<ArrayRef> {
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    concat(&arrays).map_err(wrong)
}
