//! A host for tests that looks on, and loses interest.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use compflow_api::{Host, Level};

/// Keeps log lines, and wants the work until progress was reported `patience` times.
pub(crate) struct Watcher {
    pub(crate) lines: Mutex<Vec<(Level, String)>>,
    pub(crate) reports: AtomicUsize,
    patience: usize,
    cancel: AtomicU32,
}

impl Watcher {
    pub(crate) fn new(patience: usize) -> Self {
        Self { lines: Mutex::default(), reports: AtomicUsize::new(0), patience, cancel: AtomicU32::new(0) }
    }
}

impl Host for Watcher {
    fn log(&self, level: Level, text: &str) {
        self.lines.lock().unwrap().push((level, text.to_owned()));
    }

    fn progress(&self, _done: u64, _total: u64) {
        if self.reports.fetch_add(1, Ordering::Relaxed) + 1 >= self.patience {
            self.cancel.store(1, Ordering::Relaxed);
        }
    }

    fn cancel(&self) -> &AtomicU32 {
        &self.cancel
    }
}
