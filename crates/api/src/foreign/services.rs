//! What a call takes along: a table of functions that answer with the caller's services.

use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use crate::abi::*;
use crate::float_env::with_default_floats;
use crate::guard::catch;
use crate::locale::with_c_locale;
use crate::once::returning_once;
use crate::raw::{copy_problem, for_people, hand_error, lend, status_result, text};
use crate::{Error, Kind, Level, Problem, Result, Services};

/// What a [`RawHost`] made by [`call`] points to.
struct Sink<'a> {
    services: &'a Services<'a>,
    problems: Mutex<Vec<Problem>>,
}

/// Makes a call with a service table that answers with `services`, and turns its status into a result. Whatever the
/// callee does to the processor's floating-point mode ends with the call, and so do processes that it forks.
pub(super) fn call(services: &Services<'_>, function: impl FnOnce(*const RawHost) -> i32) -> Result<()> {
    let sink = Sink { services, problems: Mutex::default() };
    let host = RawHost {
        size: size_of::<RawHost>() as u32,
        threads: services.threads.try_into().unwrap_or(u32::MAX),
        seed: services.seed,
        memory: services.memory,
        cancel: services.host.cancel().as_ptr(),
        version: lend(services.host.version()),
        ctx: std::ptr::from_ref(&sink).cast_mut().cast(),
        error: on_error,
        log: on_log,
        progress: on_progress,
        input: on_input,
        create: on_create,
        content: Some(on_content),
    };
    let status = returning_once(|| with_c_locale(|| with_default_floats(|| function(&host))));
    let problems = sink.problems.into_inner().unwrap_or_else(PoisonError::into_inner);
    if status == STATUS_CANCELLED && services.host.cancel().load(Ordering::Relaxed) == 0 {
        return Err(Error::new("stopped as if it had been cancelled, and nobody has cancelled it"));
    }
    status_result(status, problems)
}

/// Runs a callback of the service table: a panic on this side must not unwind into the library either.
///
/// # Safety
/// `ctx` is that of a table made by [`call`], which has not returned.
unsafe fn answer<R>(ctx: *mut c_void, callback: impl FnOnce(&Sink<'_>) -> Result<R>) -> Result<R> {
    // SAFETY: the caller vouches for `ctx`; a `Sink` is only ever shared.
    let sink = unsafe { &*ctx.cast::<Sink<'_>>() };
    with_default_floats(|| catch(|| callback(sink)))
}

unsafe extern "C" fn on_error(ctx: *mut c_void, raw: *const RawError) {
    // SAFETY: `ctx` is ours and the problem is lent for the call.
    let _ = unsafe {
        answer(ctx, |sink| {
            let problem = copy_problem(raw);
            sink.problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
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
            sink.services.host.log(level, &for_people(raw));
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

unsafe extern "C" fn on_input(
    ctx: *mut c_void,
    path: RawStr,
    sink: TextFn,
    sink_ctx: *mut c_void,
    error: ErrorFn,
    error_ctx: *mut c_void,
) -> i32 {
    // SAFETY: as in `on_error`, and the sinks are the library's own.
    unsafe {
        let found = answer(ctx, |sink| {
            let found = sink.services.host.input(text(path)?)?;
            utf8(found)
        });
        match found {
            Ok(path) => {
                sink(sink_ctx, lend(&path));
                STATUS_OK
            }
            Err(reason) => hand_error(&reason, error, error_ctx),
        }
    }
}

fn utf8(path: PathBuf) -> Result<String> {
    path.into_os_string().into_string().map_err(|_| Error::new("a path is not UTF-8"))
}

unsafe extern "C" fn on_content(
    ctx: *mut c_void,
    path: RawStr,
    sink: FileFn,
    sink_ctx: *mut c_void,
    error: ErrorFn,
    error_ctx: *mut c_void,
) -> i32 {
    // SAFETY: as in `on_input`.
    unsafe {
        let found = answer(ctx, |sink| {
            let (found, content) = sink.services.host.content(text(path)?)?;
            Ok((utf8(found)?, content))
        });
        match found {
            Ok((path, content)) => {
                sink(sink_ctx, lend(&path), content.as_ptr(), content.len() as u64);
                STATUS_OK
            }
            Err(reason) => hand_error(&reason, error, error_ctx),
        }
    }
}

unsafe extern "C" fn on_create(
    ctx: *mut c_void,
    kind: u32,
    name: RawStr,
    params: RawStr,
    instance: *mut RawInstance,
    error: ErrorFn,
    error_ctx: *mut c_void,
) -> i32 {
    // SAFETY: as in `on_input`; `instance` is the library's own.
    unsafe {
        let made = answer(ctx, |sink| {
            let kind = Kind::from_raw(kind)
                .ok_or_else(|| Error::new(format!("there is no kind {kind} of components")))?;
            let made = sink.services.host.create(kind, text(name)?, text(params)?)?;
            instance.write(made.into_raw());
            Ok(())
        });
        match made {
            Ok(()) => STATUS_OK,
            Err(reason) => hand_error(&reason, error, error_ctx),
        }
    }
}
