//! The one way into a component: a panic becomes an error with its text, and the instance is not used again.

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crate::float_env::with_default_floats;
use crate::raw::hand_error;
use crate::{Error, Result, abi};

thread_local! {
    /// Where this thread last panicked, as the hook saw it.
    static LAST_PANIC: Cell<Option<String>> = const { Cell::new(None) };
}

/// Replaces the printing of panics, which would go to the terminal past the host, by remembering their place.
/// Every library has its own copy of the standard library and hence its own hook.
pub(crate) fn remember_panics_instead_of_printing() {
    std::panic::set_hook(Box::new(|info| {
        LAST_PANIC.set(info.location().map(ToString::to_string));
    }));
}

/// Runs `call`; a panic in it becomes an error with its text.
pub(crate) fn catch<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    LAST_PANIC.take();
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result,
        Err(payload) => Err(Error::new(panic_text(payload))),
    }
}

/// The text of a panic.
fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a value that is no text".to_owned()
    };
    let place = LAST_PANIC.take();
    // Its own drop may panic as well; the payload of that one is left alone.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(std::mem::forget);
    match place {
        Some(place) => format!("panicked at {place}: {text}"),
        None => format!("panicked: {text}"),
    }
}

/// What an instance pointer of this api points to.
pub(crate) struct Slot<T> {
    pub(crate) value: T,
    /// Why it is not used again.
    panic: OnceLock<Error>,
}

impl<T> Slot<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value, panic: OnceLock::new() }
    }

    /// Runs a method; refuses if an earlier one panicked.
    pub(crate) fn call<R>(&self, method: impl FnOnce(&T) -> Result<R>) -> Result<R> {
        if let Some(panic) = self.panic.get() {
            return Err(Error::new(format!("this instance is not used again since it {panic}")));
        }
        let mut panicked = true;
        let result = catch(|| {
            let result = method(&self.value);
            panicked = false;
            result
        });
        if let Err(panic) = &result
            && panicked
        {
            let _ = self.panic.set(panic.clone());
        }
        result
    }
}

/// Turns a result into a status, its problems into the caller's error sink.
///
/// # Safety
/// `host` is valid for the duration of the call, as [`abi`] promises.
pub(crate) unsafe fn report(host: *const abi::RawHost, result: Result<()>) -> i32 {
    match result {
        Ok(()) => abi::STATUS_OK,
        // SAFETY: the caller vouches for the table.
        Err(error) => unsafe { hand_error(&error, (*host).error, (*host).ctx) },
    }
}

/// Runs `call` on the instance behind an opaque pointer.
///
/// # Safety
/// `instance` came from [`into_raw`] with the same `T` and has not been destroyed; `host` is valid for the call.
pub(crate) unsafe fn enter<T>(
    instance: *mut c_void,
    host: *const abi::RawHost,
    call: impl FnOnce(&T) -> Result<()>,
) -> i32 {
    // SAFETY: the caller vouches for both pointers.
    unsafe { report(host, with_default_floats(|| (*instance.cast::<Slot<T>>()).call(call))) }
}

/// The opaque pointer for a new instance.
pub(crate) fn into_raw<T>(value: T) -> *mut c_void {
    Box::into_raw(Box::new(Slot::new(value))).cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_poisons_the_instance() {
        let slot = Slot::new(3);
        assert_eq!(slot.call(|value| Ok(*value)), Ok(3));
        let error = slot.call(|value| -> Result<()> { panic!("no {value} today") }).unwrap_err();
        assert!(error.to_string().ends_with(": no 3 today"), "{error}");
        let refused = slot.call(|value| Ok(*value)).unwrap_err();
        assert_eq!(refused.to_string(), format!("this instance is not used again since it {error}"));
    }

    #[test]
    fn an_error_does_not_poison() {
        let slot = Slot::new(());
        assert!(slot.call(|()| -> Result<()> { Err(Error::new("not now")) }).is_err());
        assert!(slot.call(|()| Ok(())).is_ok());
    }

    #[test]
    fn a_payload_whose_drop_panics_is_harmless() {
        struct Spiteful;
        impl Drop for Spiteful {
            fn drop(&mut self) {
                panic!("in drop");
            }
        }
        let error = catch(|| -> Result<()> { std::panic::panic_any(Spiteful) }).unwrap_err();
        assert!(error.to_string().ends_with("a value that is no text"), "{error}");
    }
}
