//! The same work on many things at the same time; what comes of it depends on nothing but the things.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The results of `work` on 0..count, in that order; or the error of the first that failed.
pub(crate) fn map<T: Send, E: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<T, E>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let run = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = done.get(at) else { break };
            let result = work(at);
            let failed = result.is_err();
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            if failed {
                // Nobody starts anything more; what comes before this one has been started.
                next.store(count, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, count.max(1)) {
            // The others, and this thread, do the work of one that the system does not grant.
            if std::thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    done.into_iter().filter_map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_of_errors_the_first() {
        for threads in [0, 1, 3] {
            let squares = map(100, threads, |at| Ok::<_, ()>(at * at)).unwrap();
            assert_eq!(squares, (0..100).map(|at| at * at).collect::<Vec<usize>>());
            assert_eq!(map(100, threads, |at| if at % 7 == 6 { Err(at) } else { Ok(()) }), Err(6));
            assert_eq!(map(0, threads, |_| Ok::<(), ()>(())), Ok(vec![]));
        }
    }
}
