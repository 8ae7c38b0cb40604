//! What a library exports of a composer.

use std::ffi::c_void;

use super::services::with_services;
use crate::abi::*;
use crate::guard::enter;
use crate::raw::{area, borrow_sets, slice, slice_mut};
use crate::{Component, Composer, Embeddings, Error, Flags, Result, Sets};

/// The functions of a composer.
pub(super) const fn methods<C: Component + Composer>() -> &'static RawComposerMethods {
    const {
        let (gradients, sets) = (C::FLAGS.contains(Flags::HAS_GRADIENTS), C::FLAGS.contains(Flags::COMPOSES_SETS));
        &RawComposerMethods {
            size: size_of::<RawComposerMethods>() as u32,
            reserved: 0,
            dim: Some(dim::<C>),
            compose: Some(compose::<C>),
            vjp: if gradients { Some(vjp::<C>) } else { None },
            compose_sets: if sets { Some(compose_sets::<C>) } else { None },
            compose_sets_vjp: if sets && gradients { Some(compose_sets_vjp::<C>) } else { None },
        }
    }
}

unsafe extern "C" fn dim<C: Component + Composer>(
    instance: *mut c_void,
    host: *const RawHost,
    dim: *mut u64,
) -> i32 {
    // SAFETY: the arguments are as `RawComposerMethods::dim` says.
    unsafe {
        enter::<C>(instance, host, |composer| {
            dim.write(composer.dim().unwrap_or(0) as u64);
            Ok(())
        })
    }
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
    // SAFETY: the arguments are as `RawComposerMethods::compose` says.
    unsafe {
        enter::<C>(instance, host, |composer| {
            let len = area(rows, dim)?;
            let (left, right, out) = (slice(left, len)?, slice(right, len)?, slice_mut(out, len)?);
            with_services(host, |services| composer.compose(dim as usize, left, right, out, services))
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
    // SAFETY: the arguments are as `RawComposerMethods::vjp` says.
    unsafe {
        enter::<C>(instance, host, |composer| {
            let len = area(rows, dim)?;
            let (left, right, grad) = (slice(left, len)?, slice(right, len)?, slice(grad, len)?);
            let (grad_left, grad_right) = (slice_mut(grad_left, len)?, slice_mut(grad_right, len)?);
            with_services(host, |services| {
                composer.vjp(dim as usize, left, right, grad, grad_left, grad_right, services)
            })
        })
    }
}

/// The vectors and the sets of their rows.
///
/// # Safety
/// The arguments are as `RawComposerMethods::compose_sets` says, and outlive the result.
unsafe fn vectors_and_sets<'a>(
    rows: u64,
    dim: u64,
    vectors: *const f32,
    sets: *const RawSets,
) -> Result<(Embeddings<'a>, Sets)> {
    // SAFETY: the caller vouches for the arguments.
    let (vectors, sets) = unsafe {
        let sets = sets.as_ref().ok_or_else(|| Error::new("the sets are null"))?;
        (slice(vectors, area(rows, dim)?)?, borrow_sets(sets)?)
    };
    if dim == 0 || sets.iter().any(|set| set.last().is_none_or(|&last| u64::from(last) >= rows)) {
        return Err(Error::new(format!("a set is empty or names a row that {rows} rows of {dim} do not have")));
    }
    Ok((Embeddings::new(vectors, dim as usize), sets))
}

unsafe extern "C" fn compose_sets<C: Component + Composer>(
    instance: *mut c_void,
    rows: u64,
    dim: u64,
    vectors: *const f32,
    sets: *const RawSets,
    out: *mut f32,
    host: *const RawHost,
) -> i32 {
    // SAFETY: the arguments are as `RawComposerMethods::compose_sets` says.
    unsafe {
        enter::<C>(instance, host, |composer| {
            let (vectors, sets) = vectors_and_sets(rows, dim, vectors, sets)?;
            let out = slice_mut(out, area(sets.len() as u64, dim)?)?;
            with_services(host, |services| composer.sets(vectors, &sets, out, services))
        })
    }
}

unsafe extern "C" fn compose_sets_vjp<C: Component + Composer>(
    instance: *mut c_void,
    rows: u64,
    dim: u64,
    vectors: *const f32,
    sets: *const RawSets,
    grad: *const f32,
    grad_vectors: *mut f32,
    host: *const RawHost,
) -> i32 {
    // SAFETY: the arguments are as `RawComposerMethods::compose_sets_vjp` says.
    unsafe {
        enter::<C>(instance, host, |composer| {
            let (vectors, sets) = vectors_and_sets(rows, dim, vectors, sets)?;
            let grad = slice(grad, area(sets.len() as u64, dim)?)?;
            let grad_vectors = slice_mut(grad_vectors, area(rows, dim)?)?;
            with_services(host, |services| composer.sets_vjp(vectors, &sets, grad, grad_vectors, services))
        })
    }
}
