//! What a library exports of a composer.

use std::ffi::c_void;

use crate::abi::*;
use crate::guard::{Slot, enter};
use crate::raw::{slice, slice_mut};
use crate::{Component, Composer, Flags};

/// The functions of a composer.
pub(super) const fn methods<C: Component + Composer>() -> &'static RawComposerMethods {
    const {
        &RawComposerMethods {
            size: size_of::<RawComposerMethods>() as u32,
            reserved: 0,
            dim: Some(dim::<C>),
            compose: Some(compose::<C>),
            vjp: if C::FLAGS.contains(Flags::HAS_GRADIENTS) { Some(vjp::<C>) } else { None },
        }
    }
}

unsafe extern "C" fn dim<C: Component + Composer>(instance: *mut c_void) -> u64 {
    // SAFETY: the pointer came from `create`.
    let slot = unsafe { &*instance.cast::<Slot<C>>() };
    slot.call(|composer| Ok(composer.dim())).ok().flatten().unwrap_or(0) as u64
}

unsafe extern "C" fn compose<C: Component + Composer>(
    instance: *mut c_void,
    rows: u64,
    dim: u64,
    left: *const f32,
    right: *const f32,
    out: *mut f32,
    host: *const RawHost,
) -> i32 {
    let len = rows * dim;
    // SAFETY: the arguments are as `RawComposerMethods::compose` says.
    unsafe {
        enter::<C>(instance, host, |composer| {
            composer.compose(dim as usize, slice(left, len), slice(right, len), slice_mut(out, len))
        })
    }
}

unsafe extern "C" fn vjp<C: Component + Composer>(
    instance: *mut c_void,
    rows: u64,
    dim: u64,
    left: *const f32,
    right: *const f32,
    grad: *const f32,
    grad_left: *mut f32,
    grad_right: *mut f32,
    host: *const RawHost,
) -> i32 {
    let len = rows * dim;
    // SAFETY: the arguments are as `RawComposerMethods::vjp` says.
    unsafe {
        enter::<C>(instance, host, |composer| {
            composer.vjp(
                dim as usize,
                slice(left, len),
                slice(right, len),
                slice(grad, len),
                slice_mut(grad_left, len),
                slice_mut(grad_right, len),
            )
        })
    }
}
