//! The caller's examples, read batch by batch.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::*;
use crate::guard::catch;
use crate::raw::{area, collect_partial, collect_problem, slice, status_result};
use crate::{Embeddings, Error, Partial, Problem, Result, Rows};

/// The caller's examples, as [`Rows`].
pub(super) struct CallersRows {
    pub(super) ctx: *mut c_void,
    pub(super) pass: PassFn,
    pub(super) len: usize,
    pub(super) dim: usize,
    /// What takes the place of passes if they are elsewhere.
    reduce: Option<ReduceFn>,
    /// Whether a pass is under way.
    busy: AtomicBool,
}

// SAFETY: `pass` is called by one thread at a time, and the context is the caller's own.
unsafe impl Send for CallersRows {}
// SAFETY: as above.
unsafe impl Sync for CallersRows {}

impl CallersRows {
    pub(super) fn new(ctx: *mut c_void, pass: PassFn, len: u64, dim: u64) -> Self {
        Self { ctx, pass, len: len as usize, dim: dim as usize, reduce: None, busy: AtomicBool::new(false) }
    }

    /// The same where they may be elsewhere.
    pub(super) fn or_elsewhere(self, reduce: Option<ReduceFn>) -> Self {
        Self { reduce, ..self }
    }
}

/// What a pass calls for every batch, and why that ended the pass.
struct Each<'a> {
    each: &'a mut dyn FnMut(Embeddings<'_>) -> Result<()>,
    dim: usize,
    rows: usize,
    failed: Option<Error>,
}

unsafe extern "C" fn take_batch(sink_ctx: *mut c_void, rows: u64, values: *const f32) -> i32 {
    // SAFETY: `CallersRows::pass` hands this function over together with an `Each` that nobody else uses meanwhile.
    let each = unsafe { &mut *sink_ctx.cast::<Each<'_>>() };
    let taken = catch(|| {
        // SAFETY: the rows are lent for the call.
        let values = unsafe { slice(values, area(rows, each.dim as u64)?) }?;
        each.rows += rows as usize;
        (each.each)(Embeddings::new(values, each.dim))
    });
    match taken {
        Ok(()) => STATUS_OK,
        Err(error) => {
            each.failed = Some(error);
            STATUS_ERROR
        }
    }
}

/// Says that a pass is over, however it ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Rows for CallersRows {
    fn len(&self) -> usize {
        self.len
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn pass(&self, each: &mut dyn FnMut(Embeddings<'_>) -> Result<()>) -> Result<()> {
        // Waiting for a pass inside of which this one was asked for would take for ever.
        if self.busy.swap(true, Ordering::Acquire) {
            return Err(Error::new("a pass over the examples was asked for while another is under way"));
        }
        let _over = Over(&self.busy);
        let mut each = Each { each, dim: self.dim, rows: 0, failed: None };
        let mut problems = Vec::<Problem>::new();
        // SAFETY: the task is valid for the call in which this exists; the sinks are as the functions expect.
        let status = unsafe {
            let (each, problems) = (std::ptr::from_mut(&mut each), std::ptr::from_mut(&mut problems));
            (self.pass)(self.ctx, take_batch, each.cast(), collect_problem, problems.cast())
        };
        match each.failed {
            Some(error) => return Err(error),
            None => status_result(status, problems)?,
        }
        if each.rows != self.len {
            return Err(Error::new(format!("a pass over {} examples handed over {}", self.len, each.rows)));
        }
        Ok(())
    }

    fn is_elsewhere(&self) -> bool {
        self.reduce.is_some()
    }

    fn reduce(&self, state: &[u8]) -> Result<Partial> {
        let reduce = self.reduce.ok_or_else(|| Error::new("the examples are here, to be read in passes"))?;
        let (mut found, mut problems) = (None::<Result<Partial>>, Vec::<Problem>::new());
        // SAFETY: the task is valid for the call in which this exists; the sinks are as the functions expect.
        let status = unsafe {
            let (found, problems) = (std::ptr::from_mut(&mut found), std::ptr::from_mut(&mut problems));
            let (state, len) = (state.as_ptr(), state.len() as u64);
            reduce(self.ctx, state, len, collect_partial, found.cast(), collect_problem, problems.cast())
        };
        status_result(status, problems)?;
        found.unwrap_or_else(|| Err(Error::new("nothing was handed over that the examples add up to")))
    }
}
