//! A clusterer of some library.

use super::composer::lend_composer;
use super::rows::{Examples, on_pass, on_reduce};
use super::services::call;
use super::{foreign, required};
use crate::abi::*;
use crate::raw::{collect_partial, lend_columns, lend_sets};
use crate::{
    Batch, Clusterer, Clustering, Error, Flags, Partial, Result, Services, Sets, Shape, StreamTask, Task,
};

foreign! {
    /// A [`Clusterer`] of some library.
    ForeignClusterer, Clusterer, RawClustererMethods
}

/// What an error begins with that is about what a component returned, in contrast to one that it reported itself.
pub const IMPOSSIBLE: &str = "an impossible result";

impl ForeignClusterer {
    /// Clusters, `embeddings` being those of `task` if they are in memory.
    fn run(&self, task: &StreamTask<'_>, embeddings: *const f32, services: &Services<'_>) -> Result<Clustering> {
        let (rows, elsewhere) = (task.rows.len(), task.rows.is_elsewhere());
        if elsewhere && !self.instance.flags()?.contains(Flags::HAS_PARTIAL) {
            return Err(Error::new("cannot cluster examples that are elsewhere"));
        }
        let counts = [
            ("preferences", task.preferences.map(<[f32]>::len)),
            ("weights", task.weights.map(<[f32]>::len)),
            ("true sets", task.truth.map(Sets::len)),
            ("known sets", task.seeds.map(Sets::len)),
            ("values of a further column", task.columns.first().map(|(_, column)| column.len())),
        ];
        require_for_each(rows, &counts)?;
        let composer = lend_composer(task.composer)?;
        let (truth, seeds) = (task.truth.map(lend_sets), task.seeds.map(lend_sets));
        let columns = lend_columns(task.columns)?;
        let examples = Examples::new(task.rows);
        let pointer = |numbers: Option<&[f32]>| numbers.map_or(std::ptr::null(), <[f32]>::as_ptr);
        let raw = RawTask {
            size: size_of::<RawTask>() as u32,
            degree: task.degree.try_into().unwrap_or(u32::MAX),
            rows: rows as u64,
            dim: task.rows.dim() as u64,
            embeddings,
            normalize: task.space.normalize as u32,
            distance: task.space.distance as u32,
            composer: composer.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            truth: truth.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            preferences: pointer(task.preferences),
            weights: pointer(task.weights),
            columns: columns.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            ctx: std::ptr::from_ref(&examples).cast_mut().cast(),
            pass: Some(on_pass),
            seeds: seeds.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            reduce: if elsewhere { Some(on_reduce) } else { None },
        };
        let cluster = required(self.methods.cluster, "cluster")?;
        let mut out = RawClustering::empty();
        call(services, |host| {
            // SAFETY: the arguments are as `RawClustererMethods::cluster` says.
            unsafe { cluster(self.instance.raw, &raw, host, &mut out) }
        })?;
        let flags = self.instance.flags()?;
        let none_allowed = flags.contains(Flags::ASSIGNS_NONE);
        let seeds = task.seeds.filter(|_| flags.contains(Flags::USES_SEEDS));
        let clustering = out.take(if elsewhere { 0 } else { rows }, services.memory);
        let checked = clustering.and_then(|clustering| {
            clustering.check_rows(task.rows, task.degree, none_allowed)?;
            seeds.map_or(Ok(()), |seeds| clustering.check_seeds(seeds)).map(|()| clustering)
        });
        checked.map_err(|error| error.context(IMPOSSIBLE))
    }
}

impl Clusterer for ForeignClusterer {
    fn memory(&self, shape: Shape, services: &Services<'_>) -> Result<u64> {
        let Some(memory) = self.methods.memory else { return Ok(0) };
        let raw = RawShape {
            size: size_of::<RawShape>() as u32,
            degree: shape.degree.try_into().unwrap_or(u32::MAX),
            rows: shape.rows as u64,
            dim: shape.dim as u64,
        };
        let mut bytes = 0;
        call(services, |host| {
            // SAFETY: the instance is alive.
            unsafe { memory(self.instance.raw, &raw, host, &mut bytes) }
        })?;
        Ok(bytes)
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        self.run(&task.stream(), task.embeddings.values().as_ptr(), services)
    }

    fn streams(&self) -> Result<bool> {
        let Some(streams) = self.methods.streams else { return Ok(false) };
        let mut answer = 0;
        call(&Services::none(), |host| {
            // SAFETY: the instance is alive.
            unsafe { streams(self.instance.raw, host, &mut answer) }
        })?;
        Ok(answer != 0)
    }

    fn cluster_stream(&self, task: &StreamTask<'_>, services: &Services<'_>) -> Result<Clustering> {
        self.run(task, std::ptr::null(), services)
    }

    fn partial(&self, state: &[u8], batch: &Batch<'_>, services: &Services<'_>) -> Result<Partial> {
        let Batch { first, examples, weights, seeds } = *batch;
        let (rows, dim, values) = (examples.len() as u64, examples.dim() as u64, examples.values().as_ptr());
        require_for_each(
            examples.len(),
            &[("weights", weights.map(<[f32]>::len)), ("known sets", seeds.map(Sets::len))],
        )?;
        let (instance, state, state_len) = (self.instance.raw, state.as_ptr(), state.len() as u64);
        let mut found: Option<Result<Partial>> = None;
        let sink = std::ptr::from_mut(&mut found).cast();
        match self.methods.partial_of {
            Some(partial_of) => {
                let seeds = seeds.map(lend_sets);
                let raw = RawBatch {
                    size: size_of::<RawBatch>() as u32,
                    reserved: 0,
                    first,
                    rows,
                    dim,
                    values,
                    weights: weights.map_or(std::ptr::null(), <[f32]>::as_ptr),
                    seeds: seeds.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
                };
                call(services, |host| {
                    // SAFETY: the arguments are as `RawClustererMethods::partial_of` says.
                    unsafe { partial_of(instance, state, state_len, &raw, host, collect_partial, sink) }
                })?;
            }
            None if weights.is_some() || seeds.is_some() => {
                let text = "its library is older than weights and seeds of examples that are elsewhere";
                return Err(Error::new(text).help("build it again with this version of compflow-api"));
            }
            None => {
                let partial = required(self.methods.partial, "partial")?;
                call(services, |host| {
                    // SAFETY: the arguments are as `RawClustererMethods::partial` says.
                    unsafe {
                        partial(instance, state, state_len, first, rows, dim, values, host, collect_partial, sink)
                    }
                })?;
            }
        }
        found.unwrap_or_else(|| Err(Error::new("`partial` returned nothing")))
    }
}

/// Refuses what is not there once for each of `rows` examples, if it is there at all.
fn require_for_each(rows: usize, counts: &[(&str, Option<usize>)]) -> Result<()> {
    for &(what, given) in counts {
        if let Some(given) = given.filter(|&given| given != rows) {
            return Err(Error::new(format!("{given} {what} were given for {rows} examples")));
        }
    }
    Ok(())
}
