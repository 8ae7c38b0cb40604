//! What a library exports of a loader.

use std::ffi::c_void;
use std::path::Path;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::services::with_services;
use crate::abi::*;
use crate::guard::{catch, enter};
use crate::raw::{optional_text, read_sized};
use crate::{Batches, Component, LoadRequest, Loader, Result};

/// The functions of a loader.
pub(super) const fn methods<C: Component + Loader>() -> &'static RawLoaderMethods {
    const { &RawLoaderMethods { size: size_of::<RawLoaderMethods>() as u32, reserved: 0, load: Some(load::<C>) } }
}

/// Passes batches on. The callbacks of an Arrow stream do not expect a panic, nor a NUL in an error's text, so neither
/// gets there; a stream that panicked has ended.
struct Guarded {
    batches: Option<Batches>,
    schema: SchemaRef,
}

impl Guarded {
    fn end(&mut self) {
        let batches = self.batches.take();
        // What goes wrong while it is being dropped has nobody to be told to.
        let _ = catch(|| {
            drop(batches);
            Ok(())
        });
    }
}

impl Iterator for Guarded {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.batches.as_mut()?;
        let error = match catch(|| Ok(batches.next())) {
            Ok(Some(Err(error))) => error.to_string(),
            Ok(next) => return next,
            Err(error) => {
                self.end();
                error.to_string()
            }
        };
        Some(Err(ArrowError::ComputeError(error.replace('\0', "\u{fffd}"))))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.end();
    }
}

impl RecordBatchReader for Guarded {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

unsafe extern "C" fn load<C: Component + Loader>(
    instance: *mut c_void,
    request: *const RawLoadRequest,
    host: *const RawHost,
    out: *mut FFI_ArrowArrayStream,
) -> i32 {
    // SAFETY: the arguments are as `RawLoaderMethods::load` says.
    unsafe {
        enter::<C>(instance, host, |loader| {
            let request = read_sized(request);
            let request = LoadRequest {
                path: optional_text(request.path)?.map(Path::new),
                embedding: optional_text(request.embedding)?,
                truth: optional_text(request.truth)?,
                trial: optional_text(request.trial)?,
                id: optional_text(request.id)?,
                preference: optional_text(request.preference)?,
            };
            let batches = with_services(host, |services| loader.load(&request, services))?;
            let schema = batches.schema();
            out.write(FFI_ArrowArrayStream::new(Box::new(Guarded { batches: Some(batches), schema })));
            Ok(())
        })
    }
}
