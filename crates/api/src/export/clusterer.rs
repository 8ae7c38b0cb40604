//! What a library exports of a clusterer.

use std::ffi::c_void;
use std::mem::offset_of;

use super::rows::CallersRows;
use super::services::with_services;
use crate::abi::*;
use crate::foreign::borrow_composer;
use crate::guard::enter;
use crate::raw::{area, borrow_sets, copy_columns, lend_partial, read_sized, slice, space};
use crate::{
    Batch, Clusterer, Clustering, Component, Composer, Embeddings, Error, Result, Sets, Shape, StreamTask, Task,
};

/// The functions of a clusterer.
pub(super) const fn methods<C: Component + Clusterer>() -> &'static RawClustererMethods {
    const {
        &RawClustererMethods {
            size: size_of::<RawClustererMethods>() as u32,
            reserved: 0,
            memory: Some(memory::<C>),
            cluster: Some(cluster::<C>),
            streams: Some(streams::<C>),
            partial: Some(partial::<C>),
            partial_of: Some(partial_of::<C>),
        }
    }
}

unsafe extern "C" fn memory<C: Component + Clusterer>(
    instance: *mut c_void,
    shape: *const RawShape,
    host: *const RawHost,
    bytes: *mut u64,
) -> i32 {
    // SAFETY: the arguments are as `RawClustererMethods::memory` says.
    unsafe {
        enter::<C>(instance, host, |clusterer| {
            let raw = read_sized(shape)?;
            let shape = Shape { rows: raw.rows as usize, dim: raw.dim as usize, degree: raw.degree as usize };
            bytes.write(with_services(host, |services| clusterer.memory(shape, services))?);
            Ok(())
        })
    }
}

unsafe extern "C" fn streams<C: Component + Clusterer>(
    instance: *mut c_void,
    host: *const RawHost,
    streams: *mut u32,
) -> i32 {
    // SAFETY: the arguments are as `RawClustererMethods::streams` says.
    unsafe {
        enter::<C>(instance, host, |clusterer| {
            streams.write(clusterer.streams()?.into());
            Ok(())
        })
    }
}

unsafe extern "C" fn cluster<C: Component + Clusterer>(
    instance: *mut c_void,
    task: *const RawTask,
    host: *const RawHost,
    out: *mut RawClustering,
) -> i32 {
    // SAFETY: the arguments are as `RawClustererMethods::cluster` says.
    unsafe {
        enter::<C>(instance, host, |clusterer| {
            let raw = read_sized(task)?;
            // A caller that keeps its promise has examples; one that does not must not make clusterers divide by zero.
            if raw.rows == 0 || raw.dim == 0 || raw.degree == 0 {
                return Err(Error::data("there are no examples to cluster"));
            }
            let (rows, space, degree) = (raw.rows, space(raw.normalize, raw.distance)?, raw.degree as usize);
            let composer = raw.composer.as_ref().map(|raw| borrow_composer(*raw)).transpose()?;
            let composer = composer.as_deref().map(|composer| composer as &dyn Composer);
            let truth = raw.truth.as_ref().map(|raw| borrow_sets(raw)).transpose()?;
            let truth = truth.as_ref();
            let seeds = raw.seeds.as_ref().map(|raw| borrow_sets(raw)).transpose()?;
            let seeds = seeds.as_ref();
            require_known_of_all(seeds, rows)?;
            let numbers = |ptr: *const f32| (!ptr.is_null()).then(|| slice(ptr, rows)).transpose();
            let (preferences, weights) = (numbers(raw.preferences)?, numbers(raw.weights)?);
            let columns = &copy_columns(raw.columns, rows)?;
            let found = with_services(host, |services| {
                if raw.embeddings.is_null() {
                    let pass = raw.pass.ok_or_else(|| Error::new("the task has neither embeddings nor passes"))?;
                    let rows = &CallersRows::new(raw.ctx, pass, rows, raw.dim).or_elsewhere(raw.reduce);
                    let task =
                        StreamTask { rows, space, degree, composer, truth, preferences, weights, seeds, columns };
                    return clusterer.cluster_stream(&task, services);
                }
                let values = slice(raw.embeddings, area(rows, raw.dim)?)?;
                let embeddings = Embeddings::new(values, raw.dim as usize);
                let task =
                    Task { embeddings, space, degree, composer, truth, preferences, weights, seeds, columns };
                clusterer.cluster(&task, services)
            })?;
            hand_back(found, out)
        })
    }
}

unsafe extern "C" fn partial<C: Component + Clusterer>(
    instance: *mut c_void,
    state: *const u8,
    state_len: u64,
    first: u64,
    rows: u64,
    dim: u64,
    values: *const f32,
    host: *const RawHost,
    sink: PartialFn,
    sink_ctx: *mut c_void,
) -> i32 {
    let size = size_of::<RawBatch>() as u32;
    let (weights, seeds) = (std::ptr::null(), std::ptr::null());
    let batch = RawBatch { size, reserved: 0, first, rows, dim, values, weights, seeds };
    // SAFETY: the arguments are as `RawClustererMethods::partial` says, and so the batch is as `partial_of` wants it.
    unsafe { partial_of::<C>(instance, state, state_len, &batch, host, sink, sink_ctx) }
}

unsafe extern "C" fn partial_of<C: Component + Clusterer>(
    instance: *mut c_void,
    state: *const u8,
    state_len: u64,
    batch: *const RawBatch,
    host: *const RawHost,
    sink: PartialFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the arguments are as `RawClustererMethods::partial_of` says.
    unsafe {
        enter::<C>(instance, host, |clusterer| {
            let raw = read_sized(batch)?;
            let (rows, dim) = (raw.rows, raw.dim);
            if rows == 0 || dim == 0 {
                return Err(Error::data("there are no examples in the batch"));
            }
            let state = slice(state, state_len)?;
            let examples = Embeddings::new(slice(raw.values, area(rows, dim)?)?, dim as usize);
            let weights = (!raw.weights.is_null()).then(|| slice(raw.weights, rows)).transpose()?;
            let seeds = raw.seeds.as_ref().map(|raw| borrow_sets(raw)).transpose()?;
            let seeds = seeds.as_ref();
            require_known_of_all(seeds, rows)?;
            let batch = Batch { first: raw.first, examples, weights, seeds };
            let found = with_services(host, |services| clusterer.partial(state, &batch, services))?;
            sink(sink_ctx, &lend_partial(&found));
            Ok(())
        })
    }
}

/// Refuses known sets that are not one for each example.
fn require_known_of_all(seeds: Option<&Sets>, rows: u64) -> Result<()> {
    match seeds.map(Sets::len).filter(|given| *given as u64 != rows) {
        None => Ok(()),
        Some(given) => Err(Error::new(format!("{given} known sets were given for {rows} examples"))),
    }
}

/// Assigns the fields of a result that the caller has.
///
/// # Safety
/// `out` is as `RawClustererMethods::cluster` says.
unsafe fn hand_back(clustering: Clustering, out: *mut RawClustering) -> Result<()> {
    let found = RawClustering::try_from(clustering)?;
    // SAFETY: the caller vouches for `out`, whose size comes first.
    let size = unsafe { (*out).size } as usize;
    if size < offset_of!(RawClustering, singletons) + size_of::<RawTable>() {
        return Err(Error::new(format!("the result is truncated: {size} bytes")));
    }
    // SAFETY: all of these are fields of the first release, which `size` covers; it may be longer than ours. Those that came
    // later are assigned if it covers them.
    unsafe {
        (*out).converged = found.converged;
        (*out).iterations = found.iterations;
        (*out).objective = found.objective;
        (*out).assignments = found.assignments;
        (*out).clusters = found.clusters;
        (*out).trace = found.trace;
        (*out).scalars = found.scalars;
        (*out).resolved = found.resolved;
        (*out).singletons = found.singletons;
        if size >= offset_of!(RawClustering, factors) + size_of::<RawTable>() {
            (*out).densities = found.densities;
            (*out).factors = found.factors;
        }
    }
    Ok(())
}
