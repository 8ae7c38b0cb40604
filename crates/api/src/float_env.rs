//! The processor's floating-point mode, which every library of the process shares: a rounding mode or a flush-to-zero
//! that one leaves behind (as one built with `-ffast-math` does by being loaded) would change what all others compute.

/// Runs `call` in the default mode (round to nearest, keep small numbers), and puts the mode back that was there before,
/// whatever `call` did to it.
pub fn with_default_floats<R>(call: impl FnOnce() -> R) -> R {
    struct Restore(control::Mode);
    impl Drop for Restore {
        fn drop(&mut self) {
            control::set(self.0);
        }
    }
    let _restore = Restore(control::get());
    control::set(control::DEFAULT);
    call()
}

#[cfg(target_arch = "x86_64")]
mod control {
    pub(super) type Mode = u32;

    /// All exceptions masked, round to nearest, no flush to zero, denormals as they are.
    pub(super) const DEFAULT: Mode = 0x1f80;

    /// The bits that say what happened, not what to do.
    const FLAGS: Mode = 0x3f;

    pub(super) fn get() -> Mode {
        let mut mode: Mode = 0;
        // SAFETY: stores the register into a variable of its size.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut mode, options(nostack, preserves_flags)) };
        mode & !FLAGS
    }

    pub(super) fn set(mode: Mode) {
        if get() != mode {
            // SAFETY: loads the register with a value it had, or its default.
            unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &mode, options(nostack, preserves_flags, readonly)) };
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod control {
    pub(super) type Mode = u64;

    /// No exceptions trapped, round to nearest, no flush to zero.
    pub(super) const DEFAULT: Mode = 0;

    pub(super) fn get() -> Mode {
        let mode: Mode;
        // SAFETY: reads a register that user code may read.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) mode, options(nomem, nostack, preserves_flags)) };
        mode
    }

    pub(super) fn set(mode: Mode) {
        if get() != mode {
            // SAFETY: writes a register that user code may write with a value it had, or its default.
            unsafe { std::arch::asm!("msr fpcr, {}", in(reg) mode, options(nomem, nostack, preserves_flags)) };
        }
    }
}

/// Elsewhere there is nothing known to be shared.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod control {
    pub(super) type Mode = ();

    pub(super) const DEFAULT: Mode = ();

    pub(super) fn get() -> Mode {}

    pub(super) fn set((): Mode) {}
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Round towards zero, and flush to zero.
    const STRANGE: u32 = 0x1f80 | 0x6000 | 0x8000;

    #[test]
    fn a_mode_that_is_left_behind_is_put_back() {
        with_default_floats(|| control::set(STRANGE));
        assert_eq!(control::get(), control::DEFAULT);
        control::set(STRANGE);
        let inside = with_default_floats(control::get);
        let after = control::get();
        control::set(control::DEFAULT);
        assert_eq!((inside, after), (control::DEFAULT, STRANGE));
    }
}
