//! What a call takes along: a table of functions that answer with the caller's services.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use crate::abi::*;
use crate::guard::catch;
use crate::raw::{lend, slice, text};
use crate::{Error, Kind, Level, Result, Services};

/// What a [`RawHost`] made by [`call`] points to.
struct Sink<'a> {
    services: &'a Services<'a>,
    errors: Mutex<Vec<String>>,
}

/// Makes a call with a service table that answers with `services`, and turns its status into a result.
pub(super) fn call(services: &Services<'_>, function: impl FnOnce(*const RawHost) -> i32) -> Result<()> {
    let sink = Sink { services, errors: Mutex::default() };
    let host = RawHost {
        size: size_of::<RawHost>() as u32,
        threads: services.threads as u32,
        seed: services.seed,
        memory: services.memory,
        cancel: services.host.cancel().as_ptr(),
        ctx: std::ptr::from_ref(&sink).cast_mut().cast(),
        error: on_error,
        log: on_log,
        progress: on_progress,
        input: on_input,
        create: on_create,
    };
    match function(&host) {
        STATUS_OK => Ok(()),
        STATUS_CANCELLED => Err(Error::Cancelled),
        status => {
            let errors = sink.errors.into_inner().unwrap_or_else(PoisonError::into_inner);
            if errors.is_empty() {
                return Err(Error::new(format!("failed with status {status} without saying why")));
            }
            Err(Error::Failed(errors.join("\n")))
        }
    }
}

/// Runs a callback of the service table: a panic on this side must not unwind into the library either.
///
/// # Safety
/// `ctx` is that of a table made by [`call`], which has not returned.
unsafe fn answer<R>(ctx: *mut c_void, callback: impl FnOnce(&Sink<'_>) -> Result<R>) -> Result<R> {
    // SAFETY: the caller vouches for `ctx`; a `Sink` is only ever shared.
    let sink = unsafe { &*ctx.cast::<Sink<'_>>() };
    catch(|| callback(sink))
}

unsafe extern "C" fn on_error(ctx: *mut c_void, raw: RawStr) {
    // SAFETY: `ctx` is ours and the text is lent for the call.
    let _ = unsafe {
        answer(ctx, |sink| {
            let text = String::from_utf8_lossy(slice(raw.ptr, raw.len)).into_owned();
            sink.errors.lock().unwrap_or_else(PoisonError::into_inner).push(text);
            Ok(())
        })
    };
}

unsafe extern "C" fn on_log(ctx: *mut c_void, level: u32, raw: RawStr) {
    let level = match level {
        LOG_DEBUG => Level::Debug,
        LOG_INFO => Level::Info,
        _ => Level::Warn,
    };
    // SAFETY: as in `on_error`.
    let _ = unsafe {
        answer(ctx, |sink| {
            sink.services.host.log(level, &String::from_utf8_lossy(slice(raw.ptr, raw.len)));
            Ok(())
        })
    };
}

unsafe extern "C" fn on_progress(ctx: *mut c_void, done: u64, total: u64) {
    // SAFETY: as in `on_error`.
    let _ = unsafe {
        answer(ctx, |sink| {
            sink.services.host.progress(done, total);
            Ok(())
        })
    };
}

/// Hands a result to a text sink: its text on success, the reason on failure.
///
/// # Safety
/// `sink` takes `sink_ctx`, as the service table's user promises.
pub(super) unsafe fn hand_over(result: Result<String>, sink: TextFn, sink_ctx: *mut c_void) -> i32 {
    let (status, text) = match result {
        Ok(text) => (STATUS_OK, text),
        Err(Error::Cancelled) => return STATUS_CANCELLED,
        Err(Error::Failed(text)) => (STATUS_ERROR, text),
    };
    // SAFETY: the caller vouches for the sink; the text is lent for the call.
    unsafe { sink(sink_ctx, lend(&text)) };
    status
}

unsafe extern "C" fn on_input(ctx: *mut c_void, path: RawStr, sink: TextFn, sink_ctx: *mut c_void) -> i32 {
    // SAFETY: as in `on_error`, and the sink is the library's own.
    unsafe {
        let found = answer(ctx, |sink| {
            let found = sink.services.host.input(text(path)?)?;
            found.into_os_string().into_string().map_err(|_| Error::new("a path is not UTF-8"))
        });
        hand_over(found, sink, sink_ctx)
    }
}

unsafe extern "C" fn on_create(
    ctx: *mut c_void,
    kind: u32,
    name: RawStr,
    params: RawStr,
    instance: *mut RawInstance,
    sink: TextFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: as in `on_input`; `instance` is the library's own.
    unsafe {
        let made = answer(ctx, |sink| {
            let kind = Kind::from_raw(kind)
                .ok_or_else(|| Error::new(format!("there is no kind {kind} of components")))?;
            let made = sink.services.host.create(kind, text(name)?, text(params)?)?;
            instance.write(made.into_raw());
            Ok(String::new())
        });
        hand_over(made, sink, sink_ctx)
    }
}
