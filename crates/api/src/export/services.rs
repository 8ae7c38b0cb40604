//! The caller's services, from the table of functions that came with a call.

use std::path::PathBuf;
use std::sync::atomic::AtomicU32;

use crate::abi::*;
use crate::foreign::Instance;
use crate::raw::{collect_text, lend};
use crate::{Error, Host, Kind, Level, Result, Services};

/// The caller's service table, as a [`Host`].
struct Caller(*const RawHost);

// SAFETY: the functions of a `RawHost` may be called from any thread, and its fields are not written.
unsafe impl Send for Caller {}
// SAFETY: as above.
unsafe impl Sync for Caller {}

impl Host for Caller {
    fn log(&self, level: Level, line: &str) {
        // SAFETY: the table is valid for the call in which this exists; the text is lent.
        unsafe { ((*self.0).log)((*self.0).ctx, level as u32, lend(line)) }
    }

    fn progress(&self, done: u64, total: u64) {
        // SAFETY: as in `log`.
        unsafe { ((*self.0).progress)((*self.0).ctx, done, total) }
    }

    fn cancel(&self) -> &AtomicU32 {
        // SAFETY: the caller promises a valid, aligned `u32` that everybody accesses atomically.
        unsafe { AtomicU32::from_ptr((*self.0).cancel.cast_mut()) }
    }

    fn input(&self, path: &str) -> Result<PathBuf> {
        let mut answer = String::new();
        let sink = std::ptr::from_mut(&mut answer).cast();
        // SAFETY: as in `log`; the sink is a `String`, as `collect_text` expects.
        let status = unsafe { ((*self.0).input)((*self.0).ctx, lend(path), collect_text, sink) };
        match status {
            STATUS_OK => Ok(answer.into()),
            STATUS_CANCELLED => Err(Error::Cancelled),
            _ => Err(Error::Failed(answer)),
        }
    }

    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        let mut answer = String::new();
        let mut instance = RawInstance { instance: std::ptr::null_mut(), component: std::ptr::null() };
        // SAFETY: as in `input`.
        let status = unsafe {
            ((*self.0).create)(
                (*self.0).ctx,
                kind as u32,
                lend(name),
                lend(params),
                &mut instance,
                collect_text,
                std::ptr::from_mut(&mut answer).cast(),
            )
        };
        match status {
            // SAFETY: on success the table hands over an instance with its component.
            STATUS_OK => unsafe { Instance::from_raw(instance) },
            STATUS_CANCELLED => Err(Error::Cancelled),
            _ => Err(Error::Failed(answer)),
        }
    }
}

/// Lets `call` use the caller's services.
///
/// # Safety
/// `host` is valid for the duration of the call.
pub(super) unsafe fn with_services<R>(host: *const RawHost, call: impl FnOnce(&Services<'_>) -> R) -> R {
    let caller = Caller(host);
    // SAFETY: the caller vouches for `host`.
    let (seed, threads, memory) = unsafe { ((*host).seed, (*host).threads, (*host).memory) };
    call(&Services { host: &caller, seed, threads: (threads as usize).max(1), memory })
}
