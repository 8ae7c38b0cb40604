//! A clusterer of some library.

use std::ffi::c_void;

use super::composer::lend_composer;
use super::services::{call, hand_over};
use super::{foreign, required};
use crate::abi::*;
use crate::guard::catch;
use crate::raw::lend_sets;
use crate::{Clusterer, Clustering, Error, Result, Rows, Services, Sets, StreamTask, Task};

foreign! {
    /// A [`Clusterer`] of some library.
    ForeignClusterer, Clusterer, RawClustererMethods
}

/// What an error begins with that is about what a component returned, in contrast to one that it reported itself.
pub const IMPOSSIBLE: &str = "an impossible result";

/// Takes over a clustering, found to be one of these examples.
fn possible(out: RawClustering, examples: &dyn Rows) -> Result<Clustering> {
    let clustering = Clustering::try_from(out);
    let checked = clustering.and_then(|clustering| clustering.check_rows(examples).map(|()| clustering));
    checked.map_err(|error| error.context(IMPOSSIBLE))
}

impl Clusterer for ForeignClusterer {
    fn memory(&self, rows: usize, dim: usize, degree: usize) -> u64 {
        let Some(memory) = self.methods().memory else { return 0 };
        // SAFETY: the instance is alive.
        unsafe { memory(self.0.raw, rows as u64, dim as u64, degree as u32) }
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let rows = task.embeddings.len();
        for (what, given) in
            [("preferences", task.preferences.map(<[f32]>::len)), ("true sets", task.truth.map(Sets::len))]
        {
            if let Some(given) = given.filter(|&given| given != rows) {
                return Err(Error::new(format!("{given} {what} were given for {rows} examples")));
            }
        }
        let composer = lend_composer(task.composer)?;
        let truth = task.truth.map(lend_sets);
        let raw = RawTask {
            size: size_of::<RawTask>() as u32,
            degree: task.degree as u32,
            rows: task.embeddings.len() as u64,
            dim: task.embeddings.dim() as u64,
            embeddings: task.embeddings.values().as_ptr(),
            normalize: task.space.normalize as u32,
            distance: task.space.distance as u32,
            composer: composer.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            truth: truth.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            preferences: task.preferences.map_or(std::ptr::null(), <[f32]>::as_ptr),
        };
        let cluster = required(self.methods().cluster, "cluster")?;
        let mut out = RawClustering::empty();
        call(services, |host| {
            // SAFETY: the arguments are as `RawClustererMethods::cluster` says.
            unsafe { cluster(self.0.raw, &raw, host, &mut out) }
        })?;
        possible(out, &task.embeddings)
    }

    fn streams(&self) -> bool {
        let methods = self.methods();
        let Some(streams) = methods.streams.filter(|_| methods.cluster_stream.is_some()) else { return false };
        // SAFETY: the instance is alive.
        unsafe { streams(self.0.raw) != 0 }
    }

    fn cluster_stream(&self, task: &StreamTask<'_>, services: &Services<'_>) -> Result<Clustering> {
        let composer = lend_composer(task.composer)?;
        let raw = RawStreamTask {
            size: size_of::<RawStreamTask>() as u32,
            degree: task.degree as u32,
            rows: task.rows.len() as u64,
            dim: task.rows.dim() as u64,
            normalize: task.space.normalize as u32,
            distance: task.space.distance as u32,
            composer: composer.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            ctx: std::ptr::from_ref(&task.rows).cast_mut().cast(),
            pass: on_pass,
        };
        let cluster_stream = required(self.methods().cluster_stream, "cluster_stream")?;
        let mut out = RawClustering::empty();
        call(services, |host| {
            // SAFETY: the arguments are as `RawClustererMethods::cluster_stream` says.
            unsafe { cluster_stream(self.0.raw, &raw, host, &mut out) }
        })?;
        possible(out, task.rows)
    }
}

unsafe extern "C" fn on_pass(
    ctx: *mut c_void,
    each: BatchFn,
    each_ctx: *mut c_void,
    sink: TextFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: `ctx` is that of `cluster_stream`, which has not returned.
    let rows: &dyn Rows = unsafe { *ctx.cast::<&dyn Rows>() };
    let mut ended = STATUS_OK;
    let passed = catch(|| {
        rows.pass(&mut |batch| {
            // SAFETY: the library hands over a function together with its context; the rows are lent for the call.
            ended = unsafe { each(each_ctx, batch.len() as u64, batch.values().as_ptr()) };
            if ended == STATUS_OK { Ok(()) } else { Err(Error::Cancelled) }
        })
    });
    if ended != STATUS_OK {
        return ended;
    }
    // SAFETY: the sink is the library's own.
    unsafe { hand_over(passed.map(|()| String::new()), sink, sink_ctx) }
}
