//! What the engine tells whoever called it while it works.

use std::sync::Arc;

use compflow_api::Level;

/// Is told what happens. All methods do nothing unless they are implemented; they are called from many threads.
pub trait Observer: Send + Sync {
    /// A line about something: a data set, a cell, a component. `about` may be empty.
    fn log(&self, _level: Level, _about: &str, _text: &str) {}

    /// Something failed, and the run goes on without it.
    fn error(&self, _about: &str, _text: &str) {}

    /// Tuning has chosen a point of a clusterer's grids: ` k=5 tol=0.1`.
    fn tuned(&self, _clusterer: &str, _choice: &str) {}

    /// Selection has chosen the parameters of a clusterer for the trials of a data set: `k=5 in 9 of 10 trials, k=4 in 1`.
    fn selected(&self, _data: &str, _clusterer: &str, _choices: &str) {}

    /// A number of things is about to be done, one after the other; [`Progress::advance`] counts them.
    fn count(&self, _what: Counted, _total: usize) -> Box<dyn Progress> {
        Box::new(Unseen)
    }

    /// A component starts a piece of work that it may report on.
    fn work(&self, _about: &str) -> Box<dyn Progress> {
        Box::new(Unseen)
    }

    /// A component is about to be called: `during` what, and which one of which library it is. What is returned is dropped
    /// when the call has ended; if that never happens, this is where the process did.
    fn calling(&self, _during: &str, _component: &str) -> Box<dyn Send> {
        Box::new(())
    }

    /// All cells of a run have ended, and nothing more is going to be logged about them.
    fn cells_ended(&self) {}
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Data sets that are read.
    Data,
    /// Cells that are computed, or found to be kept.
    Cells,
}

/// Is told how far a piece of work is; dropped when the work has ended.
pub trait Progress: Send + Sync {
    /// So much is done; `total` is 0 if unknown.
    fn advance(&self, _done: u64, _total: u64) {}

    /// About so long it will still take.
    fn seconds_left(&self, _seconds: f64) {}
}

/// Nobody looks.
#[derive(Debug, Clone, Copy)]
struct Unseen;

impl Progress for Unseen {}

/// An observer that looks away.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {}

impl Silent {
    /// Ready to be handed in.
    pub fn shared() -> Arc<dyn Observer> {
        Arc::new(Self)
    }
}
