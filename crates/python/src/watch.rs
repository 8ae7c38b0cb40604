//! What the engine tells, for the thread that waits for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use compflow_engine::{Counted, Level, Observer, Progress};
use pyo3::prelude::*;

/// Collects lines and remembers how far the work is.
#[derive(Default)]
pub(crate) struct Watch {
    lines: Mutex<Vec<(Level, String)>>,
    /// Of the work that is counted: cells of a run, or the iterations of a fit.
    progress: Arc<Done>,
    /// Whether cells are counted, so that what a component reports of one of them is not shown.
    counts_cells: bool,
}

#[derive(Default)]
struct Done {
    done: AtomicU64,
    total: AtomicU64,
}

impl Watch {
    /// For a fit, which counts what its component reports; or for a run, which counts cells.
    pub(crate) fn new(counts_cells: bool) -> Arc<Self> {
        Arc::new(Self { counts_cells, ..Self::default() })
    }

    /// Hands lines to `log(level, text)` and progress to `advance(done, total)`, in the thread that has Python.
    pub(crate) fn tell(&self, py: Python<'_>, listener: Option<&Py<PyAny>>) -> PyResult<()> {
        let lines = std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(listener) = listener.map(|listener| listener.bind(py)) else { return Ok(()) };
        for (level, text) in lines {
            let level = match level {
                Level::Warn => 30,
                Level::Info => 20,
                _ => 10,
            };
            listener.call_method1("log", (level, text))?;
        }
        let (done, total) =
            (self.progress.done.load(Ordering::Relaxed), self.progress.total.load(Ordering::Relaxed));
        if total > 0 {
            listener.call_method1("advance", (done, total))?;
        }
        Ok(())
    }

    fn push(&self, level: Level, about: &str, text: &str) {
        let text = if about.is_empty() { text.to_owned() } else { format!("{about}: {text}") };
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push((level, text));
    }
}

impl Observer for Watch {
    fn log(&self, level: Level, about: &str, text: &str) {
        self.push(level, about, text);
    }

    fn error(&self, about: &str, text: &str) {
        self.push(Level::Warn, about, text);
    }

    fn count(&self, what: Counted, _total: usize) -> Box<dyn Progress> {
        self.followed(self.counts_cells && what == Counted::Cells)
    }

    fn work(&self, _about: &str) -> Box<dyn Progress> {
        self.followed(!self.counts_cells)
    }
}

impl Watch {
    fn followed(&self, followed: bool) -> Box<dyn Progress> {
        Box::new(Followed(followed.then(|| self.progress.clone())))
    }
}

struct Followed(Option<Arc<Done>>);

impl Progress for Followed {
    fn advance(&self, done: u64, total: u64) {
        if let Some(progress) = &self.0 {
            progress.done.store(done, Ordering::Relaxed);
            progress.total.store(total, Ordering::Relaxed);
        }
    }
}
