//! The locale of a thread: which sign stands before decimals, for one. `setlocale` changes that of the whole process, and so
//! what other libraries read and print; a thread that has a locale of its own does not hear of it.

/// Runs `call` in the locale that every program begins with, and puts the thread's own back, whatever `call` did to either.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) fn with_c_locale<R>(call: impl FnOnce() -> R) -> R {
    use std::sync::OnceLock;

    struct Lasting(libc::locale_t);
    // SAFETY: it is never changed and never freed.
    unsafe impl Send for Lasting {}
    // SAFETY: as above.
    unsafe impl Sync for Lasting {}
    static C: OnceLock<Lasting> = OnceLock::new();

    struct Restore(libc::locale_t);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: it was this thread's before, and whoever gave it that has had no occasion to free it.
            unsafe { libc::uselocale(self.0) };
        }
    }
    let c = C.get_or_init(|| {
        // SAFETY: a name that ends in zero, and no locale to begin from.
        Lasting(unsafe { libc::newlocale(libc::LC_ALL_MASK, c"C".as_ptr(), std::ptr::null_mut()) })
    });
    // SAFETY: a locale that is never freed. None, if there was no memory for one, leaves the thread's as it is.
    let _restore = Restore(unsafe { libc::uselocale(c.0) });
    call()
}

/// Elsewhere threads have none of their own.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(crate) fn with_c_locale<R>(call: impl FnOnce() -> R) -> R {
    call()
}
