//! Examples in shards: what everybody does that takes part, as functions of bytes, so that any `map` can send them anywhere.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use compflow_engine::data::{ENDINGS, loader_of, named_files};
use compflow_engine::shards::{Job, Kit, Layout, Model, Shard, Worker, seed};
use compflow_engine::{Cancel, Error, Resources, Result, Silent};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::assigner::Assigner;
use crate::error::raised;
use crate::fitted::{flat, rows};
use crate::registry::registry;
use crate::watch::Watch;
use crate::work::{call, work};

/// The loader that reads a file of such a name, if there is one; and what files are called that have one.
#[pyfunction]
pub(crate) fn shard_loader(file: PathBuf) -> (Option<&'static str>, &'static str) {
    (loader_of(&file), ENDINGS)
}

/// The files that a run would read for a path, a pattern or a folder; none if it is a pattern that nothing matches. Links are not
/// followed: on another machine they may lead elsewhere, or be none.
#[pyfunction]
pub(crate) fn shard_files(py: Python<'_>, path: PathBuf, loader: Option<&str>) -> PyResult<Vec<PathBuf>> {
    let loader = loader.map(str::to_owned);
    let files = work(py, &Watch::new(false), None, move |_, cancel| {
        named_files(&path, loader.as_deref(), cancel).map_err(Error::request)
    });
    Ok(files?.into_iter().map(std::path::absolute).collect::<std::io::Result<_>>()?)
}

/// The seed that a fit or a run gives to a clusterer.
#[pyfunction]
pub(crate) fn shard_seed(seed_of_pipeline: u64, data: &str, clusterer: &str) -> u64 {
    seed(seed_of_pipeline, data, 0, clusterer)
}

/// Whoever did the last job in this process: passes of one job come one after the other, and components take time to make.
static LAST: Mutex<Option<Made>> = Mutex::new(None);

/// A job, with how many threads, and who does it.
type Made = (Vec<u8>, usize, Arc<Worker>);

fn worker(job: &[u8], threads: usize) -> PyResult<Arc<Worker>> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, _, worker)) = last.as_ref().filter(|(known, count, _)| known == job && *count == threads) {
        return Ok(worker.clone());
    }
    let made = Worker::new(
        Job::from_bytes(job).map_err(raised)?,
        &registry()?,
        Resources { threads: Some(threads), ..Resources::default() },
        &Silent::shared(),
        &Cancel::new(),
    );
    let made = Arc::new(made.map_err(raised)?);
    *last = Some((job.to_vec(), threads, made.clone()));
    Ok(made)
}

/// How many examples files have, how long these are, and the shards that they are cut into.
#[pyfunction]
pub(crate) fn shard_layout<'py>(
    py: Python<'py>,
    job: &[u8],
    files: Vec<PathBuf>,
    shards: usize,
) -> PyResult<(u64, usize, Vec<Bound<'py, PyBytes>>)> {
    let Layout { rows, dim, shards } = py.detach(|| worker(job, 1)?.layout(&files, shards).map_err(raised))?;
    Ok((rows, dim, shards.iter().map(|shard| PyBytes::new(py, &shard.to_bytes())).collect()))
}

/// What the examples of a shard add up to.
#[pyfunction]
pub(crate) fn shard_partial<'py>(
    py: Python<'py>,
    job: &[u8],
    state: &[u8],
    shard: &[u8],
    dim: usize,
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let found = py.detach(|| {
        let shard = Shard::from_bytes(shard).map_err(raised)?;
        worker(job, threads)?.partial(state, &shard, dim).map_err(raised)
    })?;
    Ok(PyBytes::new(py, &found))
}

/// Clusters all examples. `map(state)` returns what every shard adds up to, in any order; what it raises ends the work.
#[pyfunction]
#[pyo3(signature = (job, layout, map, *, threads=None, listener=None))]
pub(crate) fn shard_fit<'py>(
    py: Python<'py>,
    job: &[u8],
    layout: (u64, usize, Vec<Vec<u8>>),
    map: Py<PyAny>,
    threads: Option<usize>,
    listener: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (rows, dim, shards) = layout;
    let shards = shards.iter().map(|shard| Shard::from_bytes(shard)).collect::<Result<Vec<Shard>>>();
    let layout = Layout { rows, dim, shards: shards.map_err(raised)? };
    let (job, registry) = (Job::from_bytes(job).map_err(raised)?, py.detach(registry)?);
    let failure: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let kept = failure.clone();
    let found = work(py, &Watch::new(false), listener.as_ref(), move |observer, cancel| {
        let resources = Resources { threads, ..Resources::default() };
        let driver = Worker::new(job, &registry, resources, observer, cancel)?;
        let pass = |state: &[u8], _: &[Shard]| {
            let found = call(|py| map.bind(py).call1((PyBytes::new(py, state),))?.extract::<Vec<Vec<u8>>>());
            // An interpreter that ends takes no more calls.
            found.unwrap_or_else(|| Err(PyErr::new::<pyo3::exceptions::PyKeyboardInterrupt, _>(()))).map_err(
                |error| {
                    let text = error.to_string();
                    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    Error::run(text)
                },
            )
        };
        driver.fit(&layout, &pass).map(|model| model.to_bytes())
    });
    match failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(error),
        None => Ok(PyBytes::new(py, &found?)),
    }
}

/// What a model's labels are made with here, for [`shard_assign`].
#[pyfunction]
pub(crate) fn shard_kit<'py>(py: Python<'py>, model: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let kit = py.detach(|| {
        let model = Model::from_bytes(model).map_err(raised)?;
        Ok::<_, PyErr>(worker(&model.job.to_bytes(), 1)?.kit().to_bytes())
    })?;
    Ok(PyBytes::new(py, &kit))
}

/// Labels the examples of a shard with what the driver has; returns how many.
#[pyfunction]
pub(crate) fn shard_assign(
    py: Python<'_>,
    model: &[u8],
    kit: &[u8],
    shard: &[u8],
    out: PathBuf,
    threads: usize,
) -> PyResult<u64> {
    py.detach(|| {
        let (model, shard) =
            (Model::from_bytes(model).map_err(raised)?, Shard::from_bytes(shard).map_err(raised)?);
        let worker = worker(&model.job.to_bytes(), threads)?;
        Kit::from_bytes(kit).and_then(|driver| worker.kit().require(&driver)).map_err(raised)?;
        worker.assign(&model, &shard, &out).map_err(raised)
    })
}

/// What gives examples to the clusters of a model.
#[pyfunction]
#[pyo3(signature = (model, *, threads=None))]
pub(crate) fn shard_assigner(py: Python<'_>, model: &[u8], threads: Option<usize>) -> PyResult<Assigner> {
    let (model, assigner) = py.detach(|| {
        let model = Model::from_bytes(model).map_err(raised)?;
        let assigner = worker(&model.job.to_bytes(), 1)?.assigner(&model).map_err(raised)?;
        Ok::<_, PyErr>((model, assigner))
    })?;
    Ok(Assigner::new(assigner, &model.clustering.clusters, threads))
}

/// What a model says.
#[pyfunction]
pub(crate) fn shard_facts<'py>(py: Python<'py>, model: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let Model { job, rows: count, dim, clustering: found, names } = Model::from_bytes(model).map_err(raised)?;
    let last = found.clusters.values().iter().chain(&found.singletons.numbers).max();
    let facts = PyDict::new(py);
    facts.set_item("job", PyBytes::new(py, &job.to_bytes()))?;
    facts.set_item("shape", (count, dim))?;
    facts.set_item("singletons", last.map_or(0, |last| u64::from(*last) + 1))?;
    facts.set_item("singleton_numbers", PyArray1::from_slice(py, &found.singletons.numbers))?;
    facts.set_item("singleton_vectors", rows(py, &found.singletons.vectors, dim)?)?;
    facts.set_item("clusters", flat(py, &found.clusters))?;
    facts.set_item("centroids", rows(py, &found.centroids, dim)?)?;
    facts.set_item("converged", found.diagnostics.converged)?;
    facts.set_item("iterations", found.diagnostics.iterations)?;
    facts.set_item("objective", found.diagnostics.objective)?;
    facts.set_item("trace", PyArray1::from_slice(py, &found.diagnostics.trace))?;
    facts.set_item("scalars", found.scalars)?;
    facts.set_item("resolved", found.resolved)?;
    facts.set_item("names", names)?;
    Ok(facts)
}
