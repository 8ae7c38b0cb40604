//! Streams from and to arrow-rs, for loaders that use it and for the engine.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

use super::stream::Produce;
use super::{ArrowArray, ArrowSchema, Stream, check};
use crate::guard::catch;
use crate::{Description, Error, Result};

/// arrow-rs' reader of record batches, which may be used by another thread.
pub type Batches = Box<dyn RecordBatchReader + Send>;

/// Batches and the type that they were declared to have.
struct Declared {
    batches: Batches,
    schema: SchemaRef,
}

impl Produce for Declared {
    fn schema(&mut self) -> Result<ArrowSchema> {
        own_schema(&self.schema)
    }

    fn next(&mut self) -> Result<Option<ArrowArray>> {
        let Some(batch) = self.batches.next().transpose().map_err(own_words)? else { return Ok(None) };
        let types = |schema: &Schema| -> Vec<(String, DataType)> {
            schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
        };
        let (found, declared) = (types(&batch.schema()), types(&self.schema));
        if found != declared {
            let list = |columns: Vec<(String, DataType)>| {
                columns.iter().map(|(name, of)| format!("`{name}` {of}")).collect::<Vec<_>>().join(", ")
            };
            let (found, declared) = (list(found), list(declared));
            return Err(Error::new(format!(
                "a batch has the columns {found}, and the stream declared {declared}"
            )));
        }
        let (array, _) = to_ffi(&StructArray::from(batch).into_data())?;
        // SAFETY: both are `struct ArrowArray` of the specification.
        Ok(Some(unsafe { std::mem::transmute::<FFI_ArrowArray, ArrowArray>(array) }))
    }
}

/// arrow-rs' schema as a structure of this crate.
fn own_schema(schema: &Schema) -> Result<ArrowSchema> {
    let schema = FFI_ArrowSchema::try_from(schema)?;
    // SAFETY: both are `struct ArrowSchema` of the specification.
    Ok(unsafe { std::mem::transmute::<FFI_ArrowSchema, ArrowSchema>(schema) })
}

impl Description {
    /// What a source holds whose columns are these.
    ///
    /// # Errors
    /// If a column is of a type that Arrow's C data interface does not have.
    pub fn from_schema(schema: &Schema, rows: Option<u64>, dim: Option<usize>) -> Result<Self> {
        Ok(Self { rows, dim, columns: own_schema(schema)? })
    }
}

/// An error without the kind that arrow-rs puts before its text.
fn own_words(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(error) => Error::data(error),
        ArrowError::ComputeError(text)
        | ArrowError::CastError(text)
        | ArrowError::ParseError(text)
        | ArrowError::SchemaError(text)
        | ArrowError::IpcError(text)
        | ArrowError::CDataInterface(text)
        | ArrowError::ParquetError(text)
        | ArrowError::InvalidArgumentError(text)
        | ArrowError::IoError(text, _) => Error::data(text),
        other => Error::data(other),
    }
}

impl From<Batches> for Stream {
    fn from(batches: Batches) -> Self {
        let schema = batches.schema();
        Self::producing(Box::new(Declared { batches, schema }))
    }
}

impl Stream {
    /// The stream as arrow-rs reads it, every batch found well-formed before it is handed on. `budget` is how many bytes
    /// its producer may allocate for a batch.
    ///
    /// # Errors
    /// If it does not say what its batches look like.
    pub fn into_batches(mut self, budget: u64) -> Result<BatchReader> {
        let schema = catch(|| Ok(Arc::new(Schema::try_from(foreign(self.schema()?))?)))?;
        Ok(BatchReader { stream: self, schema, budget, ended: false })
    }
}

fn foreign(schema: &ArrowSchema) -> &FFI_ArrowSchema {
    // SAFETY: both are `struct ArrowSchema` of the specification.
    unsafe { &*std::ptr::from_ref(schema).cast() }
}

/// The record batches of a [`Stream`]. An error ends them.
#[derive(Debug)]
pub struct BatchReader {
    stream: Stream,
    schema: SchemaRef,
    budget: u64,
    ended: bool,
}

impl BatchReader {
    /// What all batches look like.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        let array = self.stream.next_array()?;
        if array.is_released() {
            return Ok(None);
        }
        let budget = self.budget;
        let schema = self.stream.schema()?;
        // SAFETY: both are of one stream, which follows Arrow's interfaces.
        unsafe { check(schema, &array, budget) }.map_err(|error| error.context("a batch cannot be read"))?;
        // Arrow asserts what it expects of a structure's shape, and trusts its content.
        catch(|| {
            // SAFETY: both are `struct ArrowArray` of the specification.
            let array = unsafe { std::mem::transmute::<ArrowArray, FFI_ArrowArray>(array) };
            // SAFETY: the structure has been checked; its content is validated next.
            let mut data = unsafe { from_ffi(array, foreign(schema)) }?;
            data.align_buffers();
            data.validate_full()?;
            match data.data_type() {
                DataType::Struct(_) => Ok(Some(RecordBatch::from(StructArray::from(data)))),
                other => Err(Error::new(format!("batches must be structs, found {other}"))),
            }
        })
    }
}

impl Iterator for BatchReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read();
        self.ended = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}
