//! What a library exports of a loader.

use std::ffi::c_void;
use std::mem::offset_of;
use std::path::Path;

use super::services::with_services;
use crate::abi::*;
use crate::arrow::{ArrowArrayStream, ArrowSchema};
use crate::guard::enter;
use crate::raw::{optional_text, read_sized, require_reserved, slice, text};
use crate::{Component, Description, Error, LoadRequest, Loader, Result};

/// The functions of a loader.
pub(super) const fn methods<C: Component + Loader>() -> &'static RawLoaderMethods {
    const {
        &RawLoaderMethods {
            size: size_of::<RawLoaderMethods>() as u32,
            reserved: 0,
            load: Some(load::<C>),
            describe: Some(describe::<C>),
        }
    }
}

/// Lets `call` see the request.
///
/// # Safety
/// `request` is as `RawLoaderMethods::load` says.
unsafe fn with_request<R>(
    request: *const RawLoadRequest,
    call: impl FnOnce(&LoadRequest<'_>) -> Result<R>,
) -> Result<R> {
    // SAFETY: the caller vouches for the request and its texts.
    unsafe {
        let raw = read_sized(request)?;
        require_reserved("the load request", raw.reserved)?;
        let columns = slice(raw.columns, raw.column_count)?.iter();
        let columns: Vec<(&str, &str)> =
            columns.map(|column| Ok((text(column.name)?, text(column.source)?))).collect::<Result<_>>()?;
        call(&LoadRequest { path: optional_text(raw.path)?.map(Path::new), columns: &columns })
    }
}

unsafe extern "C" fn load<C: Component + Loader>(
    instance: *mut c_void,
    request: *const RawLoadRequest,
    host: *const RawHost,
    out: *mut ArrowArrayStream,
) -> i32 {
    // SAFETY: the arguments are as `RawLoaderMethods::load` says.
    unsafe {
        enter::<C>(instance, host, |loader| {
            let load = |request: &LoadRequest<'_>| with_services(host, |services| loader.load(request, services));
            out.write(with_request(request, load)?.into_raw());
            Ok(())
        })
    }
}

unsafe extern "C" fn describe<C: Component + Loader>(
    instance: *mut c_void,
    request: *const RawLoadRequest,
    host: *const RawHost,
    out: *mut RawDescription,
) -> i32 {
    // SAFETY: the arguments are as `RawLoaderMethods::describe` says.
    unsafe {
        enter::<C>(instance, host, |loader| {
            let describe =
                |request: &LoadRequest<'_>| with_services(host, |services| loader.describe(request, services));
            let Some(Description { rows, dim, columns }) = with_request(request, describe)? else { return Ok(()) };
            let size = (*out).size as usize;
            if size < offset_of!(RawDescription, columns) + size_of::<ArrowSchema>() {
                return Err(Error::new(format!("the description is truncated: {size} bytes")));
            }
            // All of these are fields of the first release; the caller's structure may be longer than ours.
            (*out).rows = rows.unwrap_or(ROWS_UNKNOWN);
            (*out).dim = dim.unwrap_or(0) as u64;
            std::ptr::addr_of_mut!((*out).columns).cast::<ArrowSchema>().write(columns);
            Ok(())
        })
    }
}
