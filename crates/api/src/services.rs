//! What a caller offers to a component during a call: seed, budgets, log, progress, cancellation, files, and
//! other components.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::foreign::Instance;
use crate::{Error, ForeignClusterer, ForeignComposer, Kind, Result, abi};

/// How much a log line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// Of interest when looking for a fault.
    Debug = abi::LOG_DEBUG,
    /// Of interest to a curious user.
    Info = abi::LOG_INFO,
    /// The result is usable, the user should know something about it.
    Warn = abi::LOG_WARN,
}

/// The other end of [`Services`]: implemented by the host, and by tests that call components directly.
///
/// The defaults offer nothing, so that [`NoHost`] is enough where nothing is asked for.
pub trait Host: Sync {
    /// Takes a line for the user.
    fn log(&self, _level: Level, _text: &str) {}

    /// Takes how much of the work is done; `total` is 0 if unknown.
    fn progress(&self, _done: u64, _total: u64) {}

    /// Non-zero once the work is no longer wanted.
    fn cancel(&self) -> &AtomicU32 {
        static NEVER: AtomicU32 = AtomicU32::new(0);
        &NEVER
    }

    /// Name and version of the program, for people.
    fn version(&self) -> &str {
        concat!("compflow-api ", env!("CARGO_PKG_VERSION"))
    }

    /// Resolves a path as the user wrote it and notes that the result depends on the file's content.
    ///
    /// # Errors
    /// If there is no such file.
    fn input(&self, path: &str) -> Result<PathBuf> {
        Ok(PathBuf::from(path))
    }

    /// Like [`input`](Self::input), with the content of the file.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be read.
    fn content(&self, path: &str) -> Result<(PathBuf, Vec<u8>)> {
        read_input(self, path)
    }

    /// Creates another component.
    ///
    /// # Errors
    /// If there is none of that kind and name, or it refuses the parameters.
    fn create(&self, kind: Kind, name: &str, _params: &str) -> Result<Instance> {
        Err(Error::new(format!("no {kind} named `{name}`: there are no other components here")))
    }
}

/// For a host that resolves paths and no more.
///
/// # Errors
/// If there is no such file, or it cannot be read.
pub(crate) fn read_input(host: &(impl Host + ?Sized), path: &str) -> Result<(PathBuf, Vec<u8>)> {
    let path = host.input(path)?;
    match std::fs::read(&path) {
        Ok(content) => Ok((path, content)),
        Err(error) => Err(Error::data(format!("{}: {error}", path.display()))),
    }
}

/// A [`Host`] that offers nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoHost;

impl Host for NoHost {}

/// What a component may use during one call.
#[derive(Clone, Copy)]
pub struct Services<'a> {
    /// Who answers.
    pub host: &'a dyn Host,
    /// The source of all randomness: the same seed gives the same result.
    pub seed: u64,
    /// How many threads may be kept busy, the calling one included. Results do not depend on it.
    pub threads: usize,
    /// How many bytes may be allocated; see [`require_memory`](Self::require_memory).
    pub memory: u64,
}

impl Services<'_> {
    /// Seed 0, one thread, no memory limit and [`NoHost`]: for tests and for calls that need nothing.
    pub fn none() -> Services<'static> {
        Services { host: &NoHost, seed: 0, threads: 1, memory: u64::MAX }
    }

    /// Hands a line to the user's log.
    pub fn log(&self, level: Level, text: impl std::fmt::Display) {
        self.host.log(level, &text.to_string());
    }

    /// Says how much of the work is done (`total` is 0 if unknown), and stops it if it is no longer wanted.
    ///
    /// # Errors
    /// [`Error::Cancelled`], to be passed on with `?`.
    pub fn progress(&self, done: usize, total: usize) -> Result<()> {
        self.host.progress(done as u64, total as u64);
        self.check_cancelled()
    }

    /// Stops the work if it is no longer wanted; cheap enough for inner loops.
    ///
    /// # Errors
    /// [`Error::Cancelled`], to be passed on with `?`.
    pub fn check_cancelled(&self) -> Result<()> {
        match self.host.cancel().load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(Error::Cancelled),
        }
    }

    /// Refuses work that would allocate more than the budget.
    ///
    /// # Errors
    /// With both numbers and `remedy`, the parameter that would help.
    pub fn require_memory(&self, bytes: u64, remedy: &str) -> Result<()> {
        if bytes <= self.memory {
            return Ok(());
        }
        Err(Error::budget(format!(
            "needs {} of memory, over the budget of {}; {remedy}",
            in_units(bytes),
            in_units(self.memory)
        )))
    }

    /// Resolves a path that the user wrote in a parameter, relative to the pipeline file. Results are kept under the
    /// content of the files named this way, so clusterers, composers and evaluators ask in
    /// [`Component::new`](crate::Component::new), and the host refuses later.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn input(&self, path: &str) -> Result<PathBuf> {
        self.host.input(path)
    }

    /// Like [`input`](Self::input), with the content of the file, which is read once in a run: every instance is handed the
    /// same, also if somebody writes to the file meanwhile. For files such as weights, which are small beside the data.
    ///
    /// # Errors
    /// If there is no such file, it cannot be read, or is larger than the memory that may be used.
    pub fn content(&self, path: &str) -> Result<(PathBuf, Vec<u8>)> {
        self.host.content(path)
    }

    /// Creates a clusterer, of this library or any other, from its parameters as a JSON object. Like files, other
    /// components are asked for in [`Component::new`](crate::Component::new).
    ///
    /// # Errors
    /// If there is none of that name, or it refuses the parameters.
    pub fn clusterer(&self, name: &str, params: &str) -> Result<ForeignClusterer> {
        ForeignClusterer::try_from(self.host.create(Kind::Clusterer, name, params)?)
    }

    /// Creates a composer, likewise.
    ///
    /// # Errors
    /// If there is none of that name, or it refuses the parameters.
    pub fn composer(&self, name: &str, params: &str) -> Result<ForeignComposer> {
        ForeignComposer::try_from(self.host.create(Kind::Composer, name, params)?)
    }
}

/// A number of bytes, rounded up, in a unit in which it has at most four digits.
fn in_units(bytes: u64) -> String {
    let (unit, size) = [("KiB", 1u64 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)]
        .into_iter()
        .find(|(_, size)| bytes.div_ceil(*size) < 10_000)
        .unwrap_or(("PiB", 1 << 50));
    format!("{} {unit}", bytes.div_ceil(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_memory_is_an_error_with_both_numbers_and_the_remedy() {
        let services = Services { memory: 10 << 20, ..Services::none() };
        assert!(services.require_memory(10 << 20, "").is_ok());
        assert_eq!(
            services.require_memory((10 << 20) + 1, "lower `k`").unwrap_err().to_string(),
            "needs 11 MiB of memory, over the budget of 10 MiB; lower `k`"
        );
    }
}
