//! A host for tests that looks on, and loses interest.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use compflow_api::{Host, Level};

/// Keeps log lines and notes progress, for a while.
pub struct Watcher {
    /// Every line of the log.
    pub lines: Mutex<Vec<(Level, String)>>,
    /// What was done of what there was to do, every time it was said.
    pub reports: Mutex<Vec<(u64, u64)>>,
    patience: usize,
    cancel: AtomicU32,
}

impl Watcher {
    /// Wants the work until progress was reported this many times.
    pub fn new(patience: usize) -> Self {
        Self { lines: Mutex::default(), reports: Mutex::default(), patience, cancel: AtomicU32::new(0) }
    }

    /// The lines that are warnings.
    pub fn warnings(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|(level, _)| *level == Level::Warn).map(|(_, line)| line.clone()).collect()
    }
}

impl Host for Watcher {
    fn log(&self, level: Level, text: &str) {
        self.lines.lock().unwrap().push((level, text.to_owned()));
    }

    fn progress(&self, done: u64, total: u64) {
        let mut reports = self.reports.lock().unwrap();
        reports.push((done, total));
        if reports.len() >= self.patience {
            self.cancel.store(1, Ordering::Relaxed);
        }
    }

    fn cancel(&self) -> &AtomicU32 {
        &self.cancel
    }
}
