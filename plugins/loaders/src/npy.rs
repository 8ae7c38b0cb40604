//! The loader `npy`: embeddings from one NumPy array, true sets from another.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, FixedSizeListArray, PrimitiveArray, RecordBatch, RecordBatchIterator, RecordBatchOptions,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use compflow_api::{Batches, Component, Description, Error, Flags, LoadRequest, Loader, Result, Services, Stream};
use half::f16;
use npyz::TypeChar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::npy_file::NpyFile;
use crate::npy_labels::Labels;
use crate::select::all;
use crate::source::{damaged, in_stream, most_at_once, path, rows_per_batch, too_long};

/// Reads embeddings from an npy file: a NumPy array with one row per example, of 16, 32 or 64-bit floating-point
/// numbers, or of integers, in any order and byte order.
///
/// Such a file has no named columns: the name asked for as embedding does not matter, true sets come from a second file,
/// and other columns cannot be asked for.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// An npy file with the true sets, relative to the pipeline file; `{stem}` stands for the name of the data file
    /// without its ending, as in `labels = "labels/{stem}.npy"`. It holds one integer or string per example, or one
    /// row of 0 and 1 (or false and true) per example, which says for every label whether it is in the set.
    labels: Option<String>,
}

pub(crate) struct Npy(Params);
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
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Stream> {
        let path = path(request)?;
        self.require_columns(request, path)?;
        let file = NpyFile::open(path)?;
        let labels = match request.column("truth") {
            Some(_) => Some(Labels::open(&self.labels(path, services)?, path, file.rows)?),
            None => None,
        };
        let wanted = request.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let reader = Reader::new(file, wanted, labels, services.memory)?;
        let schema = reader.schema.clone();
        let batches: Batches = Box::new(RecordBatchIterator::new(reader, schema));
        Ok(batches.into())
    }

    /// From the headers.
    fn describe(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Option<Description>> {
        let path = path(request)?;
        self.require_columns(request, path)?;
        let file = NpyFile::open(path)?;
        let Numbers { item, dim, .. } = Numbers::new(&file)?;
        let mut fields = vec![Field::new("embedding", DataType::FixedSizeList(item, dim), false)];
        if self.0.labels.is_some() {
            let Labels { kind, .. } = Labels::open(&self.labels(path, services)?, path, file.rows)?;
            fields.push(Field::new("truth", kind, false));
        }
        Description::from_schema(&Schema::new(fields), Some(file.rows as u64), Some(file.columns)).map(Some)
    }
}

impl Npy {
    /// Refuses the columns that an array does not have, all at once.
    fn require_columns(&self, request: &LoadRequest<'_>, path: &Path) -> Result<()> {
        let others = request.columns.iter().filter(|(name, _)| !["embedding", "truth"].contains(name));
        all(others.map(|(name, column)| Error::column(name, column, path.display(), [])))
    }

    /// Where the labels of a data file are.
    fn labels(&self, data: &Path, services: &Services<'_>) -> Result<PathBuf> {
        let labels = self.0.labels.as_ref();
        let labels = labels
            .ok_or_else(|| Error::parameter("labels", "is missing: npy files have no column of true sets"))?;
        let stem = data.file_stem().unwrap_or_default().to_string_lossy();
        services.input(&labels.replace("{stem}", &stem)).map_err(|error| {
            let why = format!("{} has no columns, so its true sets are in a file of their own", data.display());
            Error::data(format!("{error}; {why}, which the loader's parameter `labels` names"))
        })
    }
}

/// Makes an array of the little-endian bytes of its numbers.
type Decode = fn(&[u8]) -> ArrayRef;

/// How the numbers of a file are read.
struct Numbers {
    item: FieldRef,
    dim: i32,
    decode: Decode,
}

impl Numbers {
    fn new(file: &NpyFile) -> Result<Self> {
        let expected = || file.unexpected("one row of numbers, of at most 64 bits, per example");
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
            (2, TypeChar::Int, 1) => (DataType::Int8, |bytes| decoded::<Int8Type, 1>(bytes, i8::from_le_bytes)),
            (2, TypeChar::Int, 2) => (DataType::Int16, |bytes| decoded::<Int16Type, 2>(bytes, i16::from_le_bytes)),
            (2, TypeChar::Int, 4) => (DataType::Int32, |bytes| decoded::<Int32Type, 4>(bytes, i32::from_le_bytes)),
            (2, TypeChar::Int, 8) => (DataType::Int64, |bytes| decoded::<Int64Type, 8>(bytes, i64::from_le_bytes)),
            (2, TypeChar::Uint, 1) => (DataType::UInt8, |bytes| decoded::<UInt8Type, 1>(bytes, u8::from_le_bytes)),
            (2, TypeChar::Uint, 2) => {
                (DataType::UInt16, |bytes| decoded::<UInt16Type, 2>(bytes, u16::from_le_bytes))
            }
            (2, TypeChar::Uint, 4) => {
                (DataType::UInt32, |bytes| decoded::<UInt32Type, 4>(bytes, u32::from_le_bytes))
            }
            (2, TypeChar::Uint, 8) => {
                (DataType::UInt64, |bytes| decoded::<UInt64Type, 8>(bytes, u64::from_le_bytes))
            }
            _ => return Err(expected()),
        };
        let dim = i32::try_from(file.columns).ok().filter(|dim| *dim > 0).ok_or_else(expected)?;
        Ok(Self { item: Field::new_list_field(number, false).into(), dim, decode })
    }
}

/// What is read at once has less than 2³¹ bytes, as Arrow wants it of texts.
const MOST_AT_ONCE: usize = 1 << 30;

/// The file in batches.
struct Reader {
    file: NpyFile,
    labels: Option<Labels>,
    schema: SchemaRef,
    numbers: Numbers,
    batch_rows: usize,
    /// Rows that have been read.
    done: usize,
}

impl Reader {
    fn new(file: NpyFile, wanted: Vec<String>, labels: Option<Labels>, memory: u64) -> Result<Self> {
        let numbers = Numbers::new(&file)?;
        let fields: Vec<Field> = wanted
            .into_iter()
            .map(|name| {
                let kind = match labels.as_ref().filter(|_| name == "truth") {
                    Some(labels) => labels.kind.clone(),
                    None => DataType::FixedSizeList(numbers.item.clone(), numbers.dim),
                };
                Field::new(name, kind, false)
            })
            .collect();
        let most = most_at_once(memory).min(MOST_AT_ONCE);
        let mut batch_rows = rows_per_batch(file.row_bytes());
        for file in [&file].into_iter().chain(labels.as_ref().map(|labels| &labels.file)) {
            if file.row_bytes() > most {
                return Err(Error::data(too_long(format!("a row of {}", file.path().display()), most)));
            }
            // A member of a set may be a byte in the file, and takes eight while it is read.
            batch_rows = batch_rows.min(most / 8 / file.row_bytes().max(1)).max(1);
        }
        Ok(Self { file, labels, schema: Schema::new(fields).into(), numbers, batch_rows, done: 0 })
    }

    fn batch(&mut self, rows: std::ops::Range<usize>) -> Result<RecordBatch, ArrowError> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        for field in self.schema.fields() {
            columns.push(match self.labels.as_mut().filter(|_| field.name() == "truth") {
                Some(labels) => labels.read(rows.clone()).map_err(in_stream)?,
                None => {
                    let bytes = self.file.read(rows.clone()).map_err(|error| damaged(self.file.path(), error))?;
                    let Numbers { item, dim, decode } = &self.numbers;
                    Arc::new(FixedSizeListArray::try_new(item.clone(), *dim, decode(&bytes), None)?)
                }
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}

fn decoded<T: ArrowPrimitiveType, const BYTES: usize>(
    bytes: &[u8],
    from_le_bytes: fn([u8; BYTES]) -> T::Native,
) -> ArrayRef {
    let numbers = bytes.as_chunks::<BYTES>().0.iter().map(|number| from_le_bytes(*number));
    Arc::new(PrimitiveArray::<T>::from_iter_values(numbers))
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.done..(self.done + self.batch_rows).min(self.file.rows);
        self.done = rows.end;
        (!rows.is_empty()).then(|| self.batch(rows))
    }
}

#[cfg(test)]
mod tests;
