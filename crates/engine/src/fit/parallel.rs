//! The same work on many things at the same time; what comes of it depends on nothing but the things.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::observer::Progress;

/// The results of `work` on 0..count, in that order; or an error of one of them.
pub(super) fn map<T: Send>(
    count: usize,
    threads: usize,
    cancel: &Cancel,
    progress: &dyn Progress,
    work: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Mutex<Vec<Option<Result<T>>>> = Mutex::new((0..count).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    let result = if cancel.requested() { Err(Error::Interrupted) } else { work(at) };
                    let failed = result.is_err();
                    results.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(result);
                    progress.advance(done.fetch_add(1, Ordering::Relaxed) as u64 + 1, count as u64);
                    if failed {
                        next.store(count, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    // What was not begun was not begun because something else failed.
    results.into_iter().flatten().collect()
}
