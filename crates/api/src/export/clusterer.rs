//! What a library exports of a clusterer.

use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::{Mutex, PoisonError};

use super::services::with_services;
use crate::abi::*;
use crate::foreign::borrow_composer;
use crate::guard::{Slot, catch, enter};
use crate::raw::{collect_text, copy_sets, read_sized, slice};
use crate::{
    Clusterer, Clustering, Component, Composer, Distance, Embeddings, Error, Normalize, Result, Rows, Space,
    StreamTask, Task,
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
            cluster_stream: Some(cluster_stream::<C>),
        }
    }
}

unsafe extern "C" fn memory<C: Component + Clusterer>(
    instance: *mut c_void,
    rows: u64,
    dim: u64,
    degree: u32,
) -> u64 {
    // SAFETY: the pointer came from `create`.
    let slot = unsafe { &*instance.cast::<Slot<C>>() };
    slot.call(|clusterer| Ok(clusterer.memory(rows as usize, dim as usize, degree as usize))).unwrap_or(0)
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
            let task = read_sized(task);
            require_examples(task.rows, task.dim)?;
            let composer = task.composer.as_ref().map(|raw| borrow_composer(*raw)).transpose()?;
            let truth = task.truth.as_ref().map(|raw| copy_sets(raw)).transpose()?;
            let (rows, dim) = (task.rows, task.dim);
            let task = Task {
                embeddings: Embeddings::new(slice(task.embeddings, rows * dim), dim as usize),
                space: space(task.normalize, task.distance)?,
                degree: task.degree as usize,
                composer: composer.as_deref().map(|composer| composer as &dyn Composer),
                truth: truth.as_ref(),
                preferences: (!task.preferences.is_null()).then(|| slice(task.preferences, rows)),
            };
            let clustering = with_services(host, |services| clusterer.cluster(&task, services))?;
            hand_back(clustering, out)
        })
    }
}

/// A caller that keeps its promise has examples; one that does not must not make every clusterer divide by zero.
fn require_examples(rows: u64, dim: u64) -> Result<()> {
    if rows > 0 && dim > 0 { Ok(()) } else { Err(Error::new("there are no examples to cluster")) }
}

/// # Safety
/// `out` is as `RawClustererMethods::cluster` says.
unsafe fn hand_back(clustering: Clustering, out: *mut RawClustering) -> Result<()> {
    let found = RawClustering::try_from(clustering)?;
    // SAFETY: the caller vouches for `out`; it is written field by field as it may be longer than ours.
    unsafe {
        (*out).converged = found.converged;
        (*out).iterations = found.iterations;
        (*out).objective = found.objective;
        (*out).assignments = found.assignments;
        (*out).clusters = found.clusters;
        (*out).trace = found.trace;
    }
    Ok(())
}

fn space(normalize: u32, distance: u32) -> Result<Space> {
    Ok(Space {
        normalize: match normalize {
            NORMALIZE_NONE => Normalize::None,
            NORMALIZE_L2 => Normalize::L2,
            other => return Err(Error::new(format!("normalisation {other} is not known here"))),
        },
        distance: match distance {
            DISTANCE_SQEUCLIDEAN => Distance::SqEuclidean,
            DISTANCE_EUCLIDEAN => Distance::Euclidean,
            other => return Err(Error::new(format!("distance {other} is not known here"))),
        },
    })
}

unsafe extern "C" fn streams<C: Component + Clusterer>(instance: *mut c_void) -> u32 {
    // SAFETY: the pointer came from `create`.
    let slot = unsafe { &*instance.cast::<Slot<C>>() };
    slot.call(|clusterer| Ok(clusterer.streams())).unwrap_or(false).into()
}

/// The caller's examples, as [`Rows`].
struct CallersRows {
    ctx: *mut c_void,
    pass: PassFn,
    len: usize,
    dim: usize,
    /// One pass at a time.
    turn: Mutex<()>,
}

// SAFETY: `pass` is called by one thread at a time, and the context is the caller's own.
unsafe impl Send for CallersRows {}
// SAFETY: as above.
unsafe impl Sync for CallersRows {}

/// What a pass calls for every batch, and why that ended the pass.
struct Each<'a> {
    each: &'a mut dyn FnMut(Embeddings<'_>) -> Result<()>,
    dim: u64,
    failed: Option<Error>,
}

unsafe extern "C" fn take_batch(sink_ctx: *mut c_void, rows: u64, values: *const f32) -> i32 {
    // SAFETY: `CallersRows::pass` hands this function over together with an `Each` that nobody else uses meanwhile,
    // and the rows are lent for the call.
    let (each, values) = unsafe {
        let each = &mut *sink_ctx.cast::<Each<'_>>();
        let values = slice(values, rows * each.dim);
        (each, values)
    };
    let dim = each.dim as usize;
    match catch(|| (each.each)(Embeddings::new(values, dim))) {
        Ok(()) => STATUS_OK,
        Err(error) => {
            each.failed = Some(error);
            STATUS_ERROR
        }
    }
}

impl Rows for CallersRows {
    fn len(&self) -> usize {
        self.len
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn pass(&self, each: &mut dyn FnMut(Embeddings<'_>) -> Result<()>) -> Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut each = Each { each, dim: self.dim as u64, failed: None };
        let mut why = String::new();
        // SAFETY: the task is valid for the call in which this exists; the sinks are as the functions expect.
        let status = unsafe {
            let (each, why) = (std::ptr::from_mut(&mut each).cast(), std::ptr::from_mut(&mut why).cast());
            (self.pass)(self.ctx, take_batch, each, collect_text, why)
        };
        match (status, each.failed) {
            (_, Some(error)) => Err(error),
            (STATUS_OK, None) => Ok(()),
            (STATUS_CANCELLED, None) => Err(Error::Cancelled),
            (_, None) => Err(Error::Failed(why)),
        }
    }
}

unsafe extern "C" fn cluster_stream<C: Component + Clusterer>(
    instance: *mut c_void,
    task: *const RawStreamTask,
    host: *const RawHost,
    out: *mut RawClustering,
) -> i32 {
    // SAFETY: the arguments are as `RawClustererMethods::cluster_stream` says.
    unsafe {
        enter::<C>(instance, host, |clusterer| {
            // Up to what all zeroes would not do for.
            if ((*task).size as usize) < offset_of!(RawStreamTask, pass) + size_of::<PassFn>() {
                return Err(Error::new("the task is truncated"));
            }
            let raw = read_sized(task);
            require_examples(raw.rows, raw.dim)?;
            let composer = raw.composer.as_ref().map(|raw| borrow_composer(*raw)).transpose()?;
            let (len, dim) = (raw.rows as usize, raw.dim as usize);
            let rows = CallersRows { ctx: raw.ctx, pass: raw.pass, len, dim, turn: Mutex::new(()) };
            let task = StreamTask {
                rows: &rows,
                space: space(raw.normalize, raw.distance)?,
                degree: raw.degree as usize,
                composer: composer.as_deref().map(|composer| composer as &dyn Composer),
            };
            let clustering = with_services(host, |services| clusterer.cluster_stream(&task, services))?;
            hand_back(clustering, out)
        })
    }
}
