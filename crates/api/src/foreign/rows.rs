//! Our examples, as another library reads them.

use std::ffi::c_void;

use crate::abi::*;
use crate::guard::catch;
use crate::raw::hand_error;
use crate::{Error, Rows};

/// What [`on_pass`] is handed as its context: a pointer to this.
pub(super) type Examples<'a> = &'a dyn Rows;

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
    let examples: Examples<'_> = unsafe { *ctx.cast::<Examples<'_>>() };
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
