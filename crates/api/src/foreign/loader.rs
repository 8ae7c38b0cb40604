//! A loader of some library.

use super::services::call;
use super::{foreign, required};
use crate::abi::*;
use crate::arrow::{ArrowArrayStream, ArrowSchema, Stream};
use crate::raw::{lend, lend_optional};
use crate::{Description, Error, LoadRequest, Loader, Result, Services};

foreign! {
    /// A [`Loader`] of some library.
    ForeignLoader, Loader, RawLoaderMethods
}

/// Lets `call` hand the request to the other side.
fn with_request<R>(request: &LoadRequest<'_>, call: impl FnOnce(&RawLoadRequest) -> Result<R>) -> Result<R> {
    let path = match request.path {
        None => None,
        Some(path) => {
            Some(path.to_str().ok_or_else(|| Error::new(format!("the path {} is not UTF-8", path.display())))?)
        }
    };
    let columns = request.columns.iter();
    let columns: Vec<RawColumn> =
        columns.map(|(name, source)| RawColumn { name: lend(name), source: lend(source) }).collect();
    call(&RawLoadRequest {
        size: size_of::<RawLoadRequest>() as u32,
        reserved: 0,
        path: lend_optional(path),
        columns: columns.as_ptr(),
        column_count: columns.len() as u64,
    })
}

impl Loader for ForeignLoader {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Stream> {
        let load = required(self.methods.load, "load")?;
        with_request(request, |request| {
            let mut stream = ArrowArrayStream::empty();
            call(services, |host| {
                // SAFETY: the arguments are as `RawLoaderMethods::load` says.
                unsafe { load(self.instance.raw, request, host, &mut stream) }
            })?;
            // SAFETY: a loader's stream follows the Arrow C stream interface.
            unsafe { Stream::from_raw(stream) }
        })
    }

    fn describe(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Option<Description>> {
        let Some(describe) = self.methods.describe else { return Ok(None) };
        with_request(request, |request| {
            let mut out = RawDescription {
                size: size_of::<RawDescription>() as u32,
                reserved: 0,
                rows: ROWS_UNKNOWN,
                dim: 0,
                columns: ArrowSchema::empty(),
            };
            call(services, |host| {
                // SAFETY: the arguments are as `RawLoaderMethods::describe` says.
                unsafe { describe(self.instance.raw, request, host, &mut out) }
            })?;
            let RawDescription { rows, dim, columns, .. } = out;
            let described = Description {
                rows: Some(rows).filter(|rows| *rows != ROWS_UNKNOWN),
                dim: Some(dim as usize).filter(|dim| *dim > 0),
                columns,
            };
            Ok(Some(described).filter(|described| !described.columns.is_released()))
        })
    }
}
