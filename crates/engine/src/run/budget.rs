//! The memory that cells may use together.
//!
//! Every cell has a share of it. One whose clusterer says that it needs more gives its share back and waits until so much is
//! free; whoever comes after it waits behind it, so that its turn comes.

use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use compflow_api::{Error, Level, Result};

use crate::cancel::Cancel;
use crate::files::human_bytes;
use crate::observer::Observer;

/// Between two looks whether the end was requested.
const INTERVAL: Duration = Duration::from_millis(50);

/// Where a cell gets memory beyond its share.
pub(crate) trait Room: Debug + Sync {
    /// Makes room for so many bytes in the place of what the cell has; waits for it if need be.
    ///
    /// # Errors
    /// If the end was requested meanwhile.
    fn make(&self, bytes: u64, about: &str) -> Result<()>;
}

/// What all cells may use together.
#[derive(Debug)]
pub(crate) struct Budget {
    total: u64,
    queue: Mutex<Queue>,
    moved: Condvar,
    /// Whether somebody has waited already.
    waited: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    taken: u64,
    /// Of who comes next, and of who is first in the queue.
    ticket: u64,
    first: u64,
}

impl Budget {
    pub(crate) fn new(total: u64) -> Self {
        Self { total, queue: Mutex::default(), moved: Condvar::new(), waited: AtomicBool::new(false) }
    }

    /// Takes so many bytes when they are free, and says once if they are not yet.
    fn take(&self, bytes: u64, cancel: &Cancel, mut waits: impl FnMut()) -> Result<()> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = queue.ticket;
        queue.ticket += 1;
        let mut said = false;
        while queue.first != ticket || (queue.taken > 0 && queue.taken.saturating_add(bytes) > self.total) {
            if cancel.requested() {
                // So do all others in the queue.
                return Err(Error::Cancelled);
            }
            if !said {
                waits();
                said = true;
            }
            (queue, _) = self.moved.wait_timeout(queue, INTERVAL).unwrap_or_else(PoisonError::into_inner);
        }
        queue.taken += bytes;
        queue.first += 1;
        self.moved.notify_all();
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.taken -= bytes;
        self.moved.notify_all();
    }
}

/// What one cell has of it, until it is dropped.
pub(crate) struct Place<'b> {
    budget: &'b Budget,
    bytes: AtomicU64,
    observer: &'b dyn Observer,
    cancel: &'b Cancel,
}

impl<'b> Place<'b> {
    /// A place with a share.
    ///
    /// # Errors
    /// If the end was requested before there was one.
    pub(crate) fn take(
        budget: &'b Budget,
        share: u64,
        observer: &'b dyn Observer,
        cancel: &'b Cancel,
    ) -> Result<Self> {
        budget.take(share, cancel, || {})?;
        Ok(Self { budget, bytes: AtomicU64::new(share), observer, cancel })
    }
}

impl Debug for Place<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Room for Place<'_> {
    fn make(&self, bytes: u64, about: &str) -> Result<()> {
        // Two that waited with what they have would wait for one another.
        self.budget.give_back(self.bytes.swap(0, Ordering::Relaxed));
        self.budget.take(bytes, self.cancel, || {
            let (needs, total) = (human_bytes(bytes), human_bytes(self.budget.total));
            let text =
                format!("needs {needs} of the {total} that all cells have, and waits until so much is free");
            // The first says why things are slow; a line for each would say no more.
            let is_first = !self.budget.waited.swap(true, Ordering::Relaxed);
            self.observer.log(if is_first { Level::Warn } else { Level::Info }, about, &text);
        })?;
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, RecvTimeoutError, Sender};
    use std::thread;

    use super::*;

    /// Passes on what is logged.
    struct Heard(Mutex<Sender<String>>);

    impl Observer for Heard {
        fn log(&self, level: Level, about: &str, text: &str) {
            self.0.lock().unwrap().send(format!("{level:?}: {about} {text}")).unwrap();
        }

        fn error(&self, _about: &str, _text: &str) {}
    }

    #[test]
    fn cells_wait_until_they_fit_together_and_one_line_says_so() {
        let (budget, cancel) = (Budget::new(100 << 20), Cancel::new());
        let (sender, heard) = mpsc::channel();
        let observer = Heard(Mutex::new(sender));
        let place = || Place::take(&budget, 50 << 20, &observer, &cancel).unwrap();
        let waits = |level| {
            format!(
                "{level}: large needs 80.00 MiB of the 100.00 MiB that all cells have, and waits until so much is free"
            )
        };
        let small = place();
        thread::scope(|scope| {
            let (ended, end) = mpsc::channel();
            let (first, second) = (ended.clone(), ended);
            scope.spawn(|| {
                let large = place();
                large.make(80 << 20, "large").unwrap();
                first.send("large").unwrap();
                drop((large, first));
            });
            assert_eq!(heard.recv().unwrap(), waits("Warn"));
            // It would fit beside the small one, and comes after the large one all the same.
            scope.spawn(|| {
                let later = place();
                second.send("later").unwrap();
                drop((later, second));
            });
            assert_eq!(end.recv_timeout(2 * INTERVAL), Err(RecvTimeoutError::Timeout));
            drop(small);
            assert_eq!((end.recv().unwrap(), end.recv().unwrap()), ("large", "later"));
        });
        assert!(heard.try_recv().is_err(), "it is said once");
        let small = place();
        thread::scope(|scope| {
            scope.spawn(|| place().make(80 << 20, "large").unwrap());
            assert_eq!(heard.recv().unwrap(), waits("Info"));
            drop(small);
        });
        assert_eq!(budget.queue.lock().unwrap().taken, 0);
    }

    #[test]
    fn waiting_ends_with_the_run() {
        let (budget, cancel) = (Budget::new(100), Cancel::new());
        let observer = crate::observer::Silent;
        let _held = Place::take(&budget, 60, &observer, &cancel).unwrap();
        cancel.request();
        assert!(matches!(Place::take(&budget, 60, &observer, &cancel), Err(Error::Cancelled)));
    }
}
