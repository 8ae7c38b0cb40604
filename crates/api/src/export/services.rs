//! The caller's services, from the table of functions that came with a call.

use std::path::PathBuf;
use std::sync::atomic::AtomicU32;

use crate::abi::*;
use crate::foreign::Instance;
use crate::raw::{File, collect_file, collect_problem, collect_text, lend, read_sized, status_result, text};
use crate::services::read_input;
use crate::{Error, Host, Kind, Level, Problem, Result, Services};

/// The caller's service table, as a [`Host`].
struct Caller(RawHost);

// SAFETY: the functions of a `RawHost` may be called from any thread, and its fields are not written.
unsafe impl Send for Caller {}
// SAFETY: as above.
unsafe impl Sync for Caller {}

impl Host for Caller {
    fn log(&self, level: Level, line: &str) {
        // SAFETY: the table is valid for the call in which this exists; the text is lent.
        unsafe { (self.0.log)(self.0.ctx, level as u32, lend(line)) }
    }

    fn progress(&self, done: u64, total: u64) {
        // SAFETY: as in `log`.
        unsafe { (self.0.progress)(self.0.ctx, done, total) }
    }

    fn cancel(&self) -> &AtomicU32 {
        // SAFETY: the caller promises a valid, aligned `u32` that everybody accesses atomically.
        unsafe { AtomicU32::from_ptr(self.0.cancel.cast_mut()) }
    }

    fn version(&self) -> &str {
        // SAFETY: the text is lent for the call in which this exists.
        unsafe { text(self.0.version) }.unwrap_or_default()
    }

    fn input(&self, path: &str) -> Result<PathBuf> {
        let (mut found, mut problems) = (String::new(), Vec::<Problem>::new());
        // SAFETY: as in `log`; the sinks are as `collect_text` and `collect_problem` expect.
        let status = unsafe {
            let (found, problems) = (std::ptr::from_mut(&mut found), std::ptr::from_mut(&mut problems));
            (self.0.input)(self.0.ctx, lend(path), collect_text, found.cast(), collect_problem, problems.cast())
        };
        status_result(status, problems).map(|()| found.into())
    }

    fn content(&self, path: &str) -> Result<(PathBuf, Vec<u8>)> {
        let Some(content) = self.0.content else {
            return read_input(self, path);
        };
        let (mut found, mut problems) = (File::None, Vec::<Problem>::new());
        // SAFETY: as in `input`.
        let status = unsafe {
            let (found, problems) = (std::ptr::from_mut(&mut found), std::ptr::from_mut(&mut problems));
            content(self.0.ctx, lend(path), collect_file, found.cast(), collect_problem, problems.cast())
        };
        status_result(status, problems)?;
        found.unwrap_or_else(|| Err(Error::new(format!("no content came of {path}"))))
    }

    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        let mut problems = Vec::<Problem>::new();
        let mut instance = RawInstance { instance: std::ptr::null_mut(), component: std::ptr::null() };
        // SAFETY: as in `input`.
        let status = unsafe {
            (self.0.create)(
                self.0.ctx,
                kind as u32,
                lend(name),
                lend(params),
                &mut instance,
                collect_problem,
                std::ptr::from_mut(&mut problems).cast(),
            )
        };
        status_result(status, problems)?;
        // SAFETY: on success the table hands over an instance with its component.
        unsafe { Instance::take(instance) }
    }
}

/// Lets `call` use the caller's services.
///
/// # Errors
/// Those of `call`, and a service table that is none.
///
/// # Safety
/// `host` is valid for the duration of the call.
pub(super) unsafe fn with_services<R>(
    host: *const RawHost,
    call: impl FnOnce(&Services<'_>) -> Result<R>,
) -> Result<R> {
    // SAFETY: the caller vouches for `host`.
    let raw = unsafe { read_sized(host) }?;
    let RawHost { seed, threads, memory, .. } = raw;
    call(&Services { host: &Caller(raw), seed, threads: (threads as usize).max(1), memory })
}
