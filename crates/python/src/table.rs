//! Tables for Python: Arrow streams, so that every library of tables can take them without a copy.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_cast::cast;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::data::joined;
use crate::error::wrong;

/// A table in memory.
#[pyclass(frozen, module = "compflow._engine")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }
}

/// Reads a table that a run has left.
#[pyfunction]
pub(crate) fn read_table(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
    py.detach(|| {
        let named = |error: &dyn std::fmt::Display| wrong(format!("{}: {error}", path.display()));
        let file = std::fs::File::open(&path).map_err(|error| named(&error))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| named(&error))?;
        let reader = reader.with_batch_size(1 << 16).build().map_err(|error| named(&error))?;
        let schema = arrow_array::RecordBatchReader::schema(&reader);
        let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|error| named(&error))?;
        Ok(Table { schema, batches })
    })
}

#[pymethods]
impl Table {
    /// The table as a stream that pyarrow, Polars, pandas and DuckDB read.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer that cannot convert hand over what it has.
        drop(requested_schema);
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The columns as Python lists, for those who have no library of tables.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (at, field) in self.schema.fields().iter().enumerate() {
            let pieces: Vec<ArrayRef> = self.batches.iter().map(|batch| batch.column(at).clone()).collect();
            let list = match pieces.is_empty() {
                true => PyList::empty(py),
                false => values(py, &joined(&pieces)?)?,
            };
            columns.set_item(field.name(), list)?;
        }
        Ok(columns)
    }
}

/// The values of a column as Python's.
fn values<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let convert = |to: &DataType| cast(array, to).map_err(wrong);
    match array.data_type() {
        kind if kind.is_integer() => {
            convert(&DataType::Int64)?
                .as_primitive::<Int64Type>()
                .iter()
                .try_for_each(|value| list.append(value))?;
        }
        kind if kind.is_floating() => {
            let values = convert(&DataType::Float64)?;
            values.as_primitive::<Float64Type>().iter().try_for_each(|value| list.append(value))?;
        }
        DataType::Boolean => array.as_boolean().iter().try_for_each(|value| list.append(value))?,
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
            let item = |at: usize| -> Option<ArrayRef> {
                if array.is_null(at) {
                    return None;
                }
                let small = || array.as_list_opt::<i32>().map(|lists| lists.value(at));
                let large = || array.as_list_opt::<i64>().map(|lists| lists.value(at));
                array.as_fixed_size_list_opt().map(|lists| lists.value(at)).or_else(small).or_else(large)
            };
            for at in 0..array.len() {
                list.append(item(at).map(|item| values(py, &item)).transpose()?)?;
            }
        }
        _ => convert(&DataType::Utf8)?.as_string::<i32>().iter().try_for_each(|value| list.append(value))?,
    }
    Ok(list)
}

/// A table of these columns.
pub(crate) fn of_columns(columns: Vec<(&str, ArrayRef)>) -> PyResult<Table> {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column): (&str, Arc<dyn Array>)| (name, column, true)),
    );
    batch.map(Table::new).map_err(wrong)
}
