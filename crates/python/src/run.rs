//! Running whole pipelines.

use std::path::PathBuf;

use compflow_engine::pipeline::Variables;
use compflow_engine::{Options, Pipeline, Resources, RunOptions};
use pyo3::prelude::*;

use crate::error::{raised, wrong};
use crate::registry::{folders, pinned};
use crate::watch::Watch;
use crate::work::work;

/// `${NAME}` in paths is an environment variable.
pub(crate) fn variables() -> Variables {
    Variables::new(|name| std::env::var(name).ok())
}

/// Runs a pipeline, given as a file or as JSON; returns where the tables are and how many cells failed.
#[pyfunction]
#[pyo3(signature = (*, file=None, json=None, folder, out=None, set=vec![], only=vec![], jobs=None, threads=None, memory=None, fresh=false, strict=false, listener=None))]
#[expect(clippy::too_many_arguments, reason = "named ones, as Python has them")]
pub(crate) fn run(
    py: Python<'_>,
    file: Option<PathBuf>,
    json: Option<&str>,
    folder: PathBuf,
    out: Option<PathBuf>,
    set: Vec<String>,
    only: Vec<String>,
    jobs: Option<usize>,
    threads: Option<usize>,
    memory: Option<u64>,
    fresh: bool,
    strict: bool,
    listener: Option<Py<PyAny>>,
) -> PyResult<(PathBuf, usize, usize)> {
    let options = Options { set, only, variables: variables() };
    let pipeline = match (&file, json) {
        (Some(file), _) => Pipeline::load(file, &options),
        (None, json) => {
            let value = serde_json::from_str(json.unwrap_or("{}")).map_err(wrong)?;
            Pipeline::from_json(&value, &folder, &options)
        }
    }
    .map_err(raised)?;
    let registry = py.detach(|| pinned(&folders(), &pipeline.pins()))?;
    let out = out.unwrap_or_else(|| PathBuf::from("results").join(pipeline.name()));
    let resources = Resources { jobs, threads, memory };
    let to = out.clone();
    let (cells, failed) = work(py, &Watch::new(true), listener.as_ref(), move |observer, cancel| {
        let plan = pipeline.plan(&registry, &resources, observer, cancel)?;
        let finished = plan.run(&to, RunOptions { fresh, strict, isolation: None }, observer, cancel)?;
        if finished.interrupted {
            return Err(compflow_engine::Error::Interrupted);
        }
        Ok((finished.cells(), finished.failed()))
    })?;
    Ok((out, cells, failed))
}
