//! How much memory a piece of work took, as far as one process can tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Between two looks at the process's size.
const INTERVAL: Duration = Duration::from_millis(5);

/// Watches by how much the process grows. Memory that the process already had is not seen, nor a peak shorter than
/// the interval; what several pieces of work allocate at the same time counts for each of them.
#[derive(Debug)]
pub(crate) struct Watch {
    start: u64,
    peak: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    watcher: std::thread::JoinHandle<()>,
}

impl Watch {
    pub(crate) fn start() -> Self {
        let start = resident();
        let peak = Arc::new(AtomicU64::new(start));
        let stopped = Arc::new(AtomicBool::new(false));
        let watcher = std::thread::spawn({
            let (peak, stopped) = (peak.clone(), stopped.clone());
            move || {
                while !stopped.load(Ordering::Acquire) {
                    peak.fetch_max(resident(), Ordering::Relaxed);
                    std::thread::park_timeout(INTERVAL);
                }
            }
        });
        Self { start, peak, stopped, watcher }
    }

    /// By how many bytes the process has grown at most.
    pub(crate) fn stop(self) -> u64 {
        self.stopped.store(true, Ordering::Release);
        self.watcher.thread().unpark();
        // The watcher does not panic; if it could not be joined, its last number still stands.
        let _ = self.watcher.join();
        self.peak.load(Ordering::Relaxed).max(resident()).saturating_sub(self.start)
    }
}

fn resident() -> u64 {
    memory_stats::memory_stats().map_or(0, |stats| stats.physical_mem as u64)
}
