//! How much memory a piece of work took, as far as one process can tell.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Between two looks at the process's size.
const INTERVAL: Duration = Duration::from_millis(5);

/// The largest sizes seen of all work under way.
type Peaks = Mutex<Vec<Weak<AtomicU64>>>;

/// Looks at the size of the process every now and then, for all cells of a run.
#[derive(Debug)]
pub(crate) struct Sampler {
    peaks: Arc<Peaks>,
    /// Dropped to end the thread that looks.
    _running: Sender<()>,
}

impl Sampler {
    pub(crate) fn start() -> Self {
        let peaks = Arc::new(Peaks::default());
        let (running, stopped) = channel::<()>();
        let shared = peaks.clone();
        // Where the system grants no thread, nothing is seen.
        let _ = std::thread::Builder::new().spawn(move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let mut peaks = shared.lock().unwrap_or_else(PoisonError::into_inner);
                peaks.retain(|peak| peak.strong_count() > 0);
                if peaks.is_empty() {
                    continue;
                }
                let now = resident();
                for peak in peaks.iter().filter_map(Weak::upgrade) {
                    peak.fetch_max(now, Ordering::Relaxed);
                }
            }
        });
        Self { peaks, _running: running }
    }

    /// Watches by how much the process grows from now on. Memory that the process already had is not seen, nor a peak
    /// shorter than the interval; what several pieces of work allocate at the same time counts for each of them.
    pub(crate) fn watch(&self) -> Watch {
        let start = resident();
        let peak = Arc::new(AtomicU64::new(start));
        self.peaks.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&peak));
        Watch { start, peak }
    }
}

/// A piece of work that is watched.
#[derive(Debug)]
pub(crate) struct Watch {
    start: u64,
    peak: Arc<AtomicU64>,
}

impl Watch {
    /// By how many bytes the process has grown at most.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed).max(resident()).saturating_sub(self.start)
    }
}

fn resident() -> u64 {
    memory_stats::memory_stats().map_or(0, |stats| stats.physical_mem as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_seen_by_everybody_who_watches_and_by_nobody_afterwards() {
        let sampler = Sampler::start();
        let (one, two) = (sampler.watch(), sampler.watch());
        let memory = vec![1u8; 64 << 20];
        std::thread::sleep(10 * INTERVAL);
        assert!(one.peak() > 32 << 20 && two.peak() > 32 << 20, "{} {}", one.peak(), two.peak());
        drop((memory, one, two));
        std::thread::sleep(10 * INTERVAL);
        assert!(sampler.peaks.lock().unwrap().is_empty());
    }
}
