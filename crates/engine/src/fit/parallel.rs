//! Work on many things at the same time that says how far it is, and stops if it is no longer wanted.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::observer::Progress;
use crate::parallel;

/// The results of `work` on 0..count, in that order; or the error of the first that failed.
pub(super) fn map<T: Send>(
    count: usize,
    threads: usize,
    cancel: &Cancel,
    progress: &dyn Progress,
    work: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let done = AtomicUsize::new(0);
    parallel::map(count, threads, |at| {
        if cancel.requested() {
            return Err(Error::Interrupted);
        }
        let result = work(at);
        progress.advance(done.fetch_add(1, Ordering::Relaxed) as u64 + 1, count as u64);
        result
    })
}
