//! What a run may use of the machine.

use serde::{Deserialize, Serialize};

pub(crate) use crate::machine::memory_budget;

/// What a run may use; what is not given is taken from the machine.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Resources {
    /// How many cells may run at the same time; the number of cores if not given.
    pub jobs: Option<usize>,
    /// How many threads a cell may use; the cores that the jobs leave if not given.
    pub threads: Option<usize>,
    /// How many bytes all cells may use together; three quarters of the machine's, or of its control group's, if not given.
    pub memory: Option<u64>,
}

impl Resources {
    /// All that is not given is what the machine has now, so that nobody looks it up again.
    #[must_use]
    pub fn settled(self) -> Self {
        Self {
            jobs: Some(self.jobs()),
            threads: Some(self.threads.unwrap_or_else(cores)),
            memory: Some(self.memory()),
        }
    }

    pub(super) fn jobs(&self) -> usize {
        self.jobs.unwrap_or_else(cores)
    }

    /// How many threads may be used while nothing else runs.
    pub(super) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(cores)
    }

    /// How many threads each of so many cells may use.
    pub(super) fn threads_of_a_cell(&self, jobs: usize) -> usize {
        self.threads.unwrap_or_else(|| (cores() / jobs).max(1))
    }

    pub(super) fn memory(&self) -> u64 {
        self.memory.unwrap_or_else(memory_budget)
    }
}

/// How many threads the machine runs at the same time.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
