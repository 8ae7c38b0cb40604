//! A loader of some library.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::services::call;
use super::{foreign, required};
use crate::abi::*;
use crate::guard::catch;
use crate::raw::lend_optional;
use crate::{Batches, Error, LoadRequest, Loader, Result, Services};

foreign! {
    /// A [`Loader`] of some library.
    ForeignLoader, Loader, RawLoaderMethods
}

impl Loader for ForeignLoader {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Batches> {
        let path = match request.path {
            None => None,
            Some(path) => Some(
                path.to_str().ok_or_else(|| Error::new(format!("the path {} is not UTF-8", path.display())))?,
            ),
        };
        let raw = RawLoadRequest {
            size: size_of::<RawLoadRequest>() as u32,
            reserved: 0,
            path: lend_optional(path),
            embedding: lend_optional(request.embedding),
            truth: lend_optional(request.truth),
            trial: lend_optional(request.trial),
            id: lend_optional(request.id),
            preference: lend_optional(request.preference),
        };
        let load = required(self.methods().load, "load")?;
        let mut stream = FFI_ArrowArrayStream::empty();
        call(services, |host| {
            // SAFETY: the arguments are as `RawLoaderMethods::load` says.
            unsafe { load(self.0.raw, &raw, host, &mut stream) }
        })?;
        Ok(Box::new(Checked(catch(|| Ok(StreamReader::try_new(stream)?))?)))
    }
}

/// Arrow's reader of streams, under the name that all versions have.
#[expect(clippy::allow_attributes, reason = "an expectation would not be met by all versions")]
#[allow(deprecated, reason = "the other name is from version 60.1")]
type StreamReader = arrow_array::ffi_stream::ArrowArrayStreamReader;

/// Batches of another library, each found well-formed before it is handed on.
struct Checked(StreamReader);

impl Iterator for Checked {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Arrow asserts what it expects of a structure's shape, and trusts its content.
        let next = catch(|| {
            let batch = self.0.next().transpose()?;
            for column in batch.iter().flat_map(RecordBatch::columns) {
                column.to_data().validate_full()?;
            }
            Ok(batch)
        });
        next.map_err(|error| ArrowError::ComputeError(error.to_string())).transpose()
    }
}

impl RecordBatchReader for Checked {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}
