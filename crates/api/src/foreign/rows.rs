//! Our examples, as another library reads them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::*;
use crate::guard::catch;
use crate::raw::{hand_error, lend_partial, slice};
use crate::{Error, Rows};

/// What [`on_pass`] is handed as its context: a pointer to this.
pub(super) struct Examples<'a> {
    rows: &'a dyn Rows,
    /// Whether a pass is under way.
    busy: AtomicBool,
}

impl<'a> Examples<'a> {
    pub(super) fn new(rows: &'a dyn Rows) -> Self {
        Self { rows, busy: AtomicBool::new(false) }
    }
}

/// A [`PassFn`] over the [`Examples`] behind `ctx`.
///
/// # Safety
/// `ctx` points to `Examples` that outlive the call; the functions take their contexts.
pub(super) unsafe extern "C" fn on_pass(
    ctx: *mut c_void,
    each: BatchFn,
    each_ctx: *mut c_void,
    error: ErrorFn,
    error_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the caller vouches for `ctx`.
    let Examples { rows: examples, busy } = unsafe { &*ctx.cast::<Examples<'_>>() };
    if busy.swap(true, Ordering::Acquire) {
        let reason = Error::new("a pass over the examples was asked for while another is under way");
        // SAFETY: the sink is the library's own.
        return unsafe { hand_error(&reason, error, error_ctx) };
    }
    let (mut ended, mut handed) = (STATUS_OK, 0);
    let passed = catch(|| {
        examples.pass(&mut |batch| {
            // The other side knows one length only.
            if batch.dim() != examples.dim() {
                let (found, dim) = (batch.dim(), examples.dim());
                return Err(Error::new(format!("a batch has examples of length {found}, the others of {dim}")));
            }
            handed += batch.len();
            // SAFETY: the library hands over a function together with its context; the rows are lent for the call.
            ended = unsafe { each(each_ctx, batch.len() as u64, batch.values().as_ptr()) };
            if ended == STATUS_OK { Ok(()) } else { Err(Error::Cancelled) }
        })
    });
    busy.store(false, Ordering::Release);
    let passed = passed.and_then(|()| match handed == examples.len() {
        true => Ok(()),
        false => Err(Error::new(format!("{handed} examples were read, and there are {}", examples.len()))),
    });
    match passed {
        _ if ended != STATUS_OK => ended,
        Ok(()) => STATUS_OK,
        // SAFETY: the sink is the library's own.
        Err(reason) => unsafe { hand_error(&reason, error, error_ctx) },
    }
}

/// A [`ReduceFn`] over the [`Examples`] behind `ctx`.
///
/// # Safety
/// `ctx` points to `Examples` that outlive the call; the state is valid for it; the functions take their contexts.
pub(super) unsafe extern "C" fn on_reduce(
    ctx: *mut c_void,
    state: *const u8,
    state_len: u64,
    sink: PartialFn,
    sink_ctx: *mut c_void,
    error: ErrorFn,
    error_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the caller vouches for `ctx` and the state.
    let reduced = unsafe {
        let Examples { rows: examples, .. } = &*ctx.cast::<Examples<'_>>();
        catch(|| examples.reduce(slice(state, state_len)?))
    };
    match reduced {
        Ok(partial) => {
            // SAFETY: the sink is the library's own; the numbers are lent for the call.
            unsafe { sink(sink_ctx, &lend_partial(&partial)) };
            STATUS_OK
        }
        // SAFETY: the sink is the library's own.
        Err(reason) => unsafe { hand_error(&reason, error, error_ctx) },
    }
}
