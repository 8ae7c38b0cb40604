//! The loader `npy`: embeddings from one NumPy array, true sets from another.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{ArrayRef, FixedSizeListArray, PrimitiveArray, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use compflow_api::{Batches, Component, Error, Flags, LoadRequest, Loader, Result, Services};
use half::f16;
use npyz::TypeChar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::npy_file::NpyFile;
use crate::npy_labels::read_labels;
use crate::source::{damaged, path, rows_per_batch};

/// Reads embeddings from an npy file: a NumPy array with one row per example, of 16, 32 or 64-bit floating-point
/// numbers in any order and byte order.
///
/// Such a file has no named columns: the name asked for as embedding does not matter, trials and identifiers cannot be
/// asked for, and true sets come from a second file.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Params {
    /// An npy file with the true sets, relative to the pipeline file; `{stem}` stands for the name of the data file
    /// without its ending, as in `labels = "labels/{stem}.npy"`. It holds one integer or string per example, or one
    /// row of 0 and 1 (or false and true) per example, which says for every label whether it is in the set.
    labels: Option<String>,
}

struct Npy(Params);
compflow_api::register!(loader Npy);

impl Component for Npy {
    const NAME: &'static str = "npy";
    const SUMMARY: &'static str = "NumPy arrays";
    const FLAGS: Flags = Flags::NEEDS_PATH;
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }
}

impl Loader for Npy {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Batches> {
        let path = path(request)?;
        for (name, column) in [("trial", request.trial), ("id", request.id), ("preference", request.preference)] {
            if let Some(column) = column {
                let path = path.display();
                return Err(Error::new(format!(
                    "no `{name}` column `{column}` in {path}: npy files have no columns"
                )));
            }
        }
        let file = NpyFile::open(path)?;
        let labels = match &self.0.labels {
            Some(labels) => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                let labels = services.input(&labels.replace("{stem}", &stem))?;
                Some(read_labels(&labels, path, file.rows)?)
            }
            None if request.truth.is_some() => {
                return Err(Error::new("`labels` is missing: npy files have no column of true sets"));
            }
            None => None,
        };
        let stream = Stream::new(file, labels)?;
        let schema = stream.schema.clone();
        Ok(Box::new(RecordBatchIterator::new(stream, schema)))
    }
}

/// Makes an array of the little-endian bytes of its numbers.
type Decode = fn(&[u8]) -> ArrayRef;

/// The file in batches.
struct Stream {
    file: NpyFile,
    labels: Option<ArrayRef>,
    schema: SchemaRef,
    item: FieldRef,
    decode: Decode,
    batch_rows: usize,
    /// Rows that have been read.
    done: usize,
}

impl Stream {
    fn new(file: NpyFile, labels: Option<ArrayRef>) -> Result<Self> {
        let expected = || file.unexpected("one row of 16, 32 or 64-bit floating-point numbers per example");
        let (number, decode): (_, Decode) = match (file.axes, file.kind(), file.item) {
            (2, TypeChar::Float, 2) => {
                (DataType::Float16, |bytes| decoded::<Float16Type, 2>(bytes, f16::from_le_bytes))
            }
            (2, TypeChar::Float, 4) => {
                (DataType::Float32, |bytes| decoded::<Float32Type, 4>(bytes, f32::from_le_bytes))
            }
            (2, TypeChar::Float, 8) => {
                (DataType::Float64, |bytes| decoded::<Float64Type, 8>(bytes, f64::from_le_bytes))
            }
            _ => return Err(expected()),
        };
        let dim = i32::try_from(file.columns).ok().filter(|dim| *dim > 0).ok_or_else(expected)?;
        let item: FieldRef = Field::new_list_field(number, false).into();
        let mut fields = vec![Field::new("embedding", DataType::FixedSizeList(item.clone(), dim), false)];
        fields.extend(labels.as_ref().map(|labels| Field::new("truth", labels.data_type().clone(), false)));
        let batch_rows = rows_per_batch(file.columns * file.item);
        Ok(Self { file, labels, schema: Schema::new(fields).into(), item, decode, batch_rows, done: 0 })
    }

    fn batch(&mut self, rows: std::ops::Range<usize>) -> Result<RecordBatch, ArrowError> {
        let bytes = self.file.read(rows.clone()).map_err(|error| damaged(self.file.path(), error))?;
        let numbers = (self.decode)(&bytes);
        // `new` has checked that the dimension is an i32.
        let matrix = FixedSizeListArray::try_new(self.item.clone(), self.file.columns as i32, numbers, None)?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(matrix)];
        columns.extend(self.labels.as_ref().map(|labels| labels.slice(rows.start, rows.len())));
        RecordBatch::try_new(self.schema.clone(), columns)
    }
}

fn decoded<T: ArrowPrimitiveType, const BYTES: usize>(
    bytes: &[u8],
    from_le_bytes: fn([u8; BYTES]) -> T::Native,
) -> ArrayRef {
    let numbers = bytes.as_chunks::<BYTES>().0.iter().map(|number| from_le_bytes(*number));
    Arc::new(PrimitiveArray::<T>::from_iter_values(numbers))
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.done..(self.done + self.batch_rows).min(self.file.rows);
        self.done = rows.end;
        (!rows.is_empty()).then(|| self.batch(rows))
    }
}

#[cfg(test)]
mod tests;
