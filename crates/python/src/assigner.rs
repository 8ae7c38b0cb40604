//! New examples for clusters that were found: by a fit, or by a run on the disk.

use std::path::PathBuf;

use compflow_api::{Embeddings, Sets};
use compflow_engine::assign::{AssignOptions, Cell, CellRequest};
use compflow_engine::results::RecordedRun;
use compflow_engine::{Registry, Results};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::data::Data;
use crate::error::raised;
use crate::fitted::flat;
use crate::labels::Labels;
use crate::registry::folders;
use crate::run::variables;
use crate::watch::Watch;
use crate::work::work;

/// Rows that a thread takes at a time.
const ROWS: usize = 4096;

/// Gives examples to clusters.
#[pyclass(frozen, module = "compflow._engine")]
pub(crate) struct Assigner {
    assigner: compflow_engine::assign::Assigner,
    labels: Labels,
    threads: usize,
}

/// Opens a cell of a run.
#[pyfunction]
#[pyo3(signature = (results, *, data=None, trial=None, clusterer=None, degree=None, seen_only=false, novel=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "named ones, as Python has them")]
pub(crate) fn open_run(
    py: Python<'_>,
    results: PathBuf,
    data: Option<String>,
    trial: Option<u32>,
    clusterer: Option<String>,
    degree: Option<usize>,
    seen_only: bool,
    novel: Option<f64>,
    threads: Option<usize>,
) -> PyResult<(Assigner, (String, u32, String))> {
    let (assigner, assignments, cell) = work(py, &Watch::new(false), None, move |observer, cancel| {
        let results = Results::open(&results)?;
        let run = RecordedRun::new(
            &results.record,
            |pins| Registry::scan_pinned(&folders(), pins),
            variables(),
            observer,
            cancel,
        );
        let request = CellRequest { data: data.as_deref(), trial, clusterer: clusterer.as_deref() };
        let cell = Cell::choose(&results, &request)?;
        let options = AssignOptions { degree, seen_only, novel };
        let assigner = compflow_engine::assign::Assigner::open(&results, &run, &cell, &options)?;
        let assignments = results.assignments(&cell.data, cell.trial)?.into_iter();
        let assignments = assignments.filter(|found| found.clusterer == cell.clusterer).map(|found| found.sets);
        Ok((assigner, assignments.collect::<Vec<Sets>>(), cell))
    })?;
    let assignments = assignments.into_iter().next().unwrap_or_default();
    Ok((Assigner::new(assigner, &assignments, threads), (cell.data, cell.trial, cell.clusterer)))
}

impl Assigner {
    pub(crate) fn new(
        assigner: compflow_engine::assign::Assigner,
        assignments: &Sets,
        threads: Option<usize>,
    ) -> Self {
        let labels = Labels::new(assignments, Some(assigner.sets()));
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Self { assigner, labels, threads: threads.unwrap_or_else(cores).max(1) }
    }
}

#[pymethods]
impl Assigner {
    /// The set of every label, those of unions that nobody has seen included.
    fn label_sets(&self) -> Vec<Vec<u32>> {
        self.labels.sets.clone()
    }

    /// How many numbers an example has.
    #[getter]
    fn dim(&self) -> usize {
        self.assigner.dim()
    }

    /// What examples are given to, and how well.
    fn assign<'py>(&self, py: Python<'py>, data: &Data) -> PyResult<Bound<'py, PyDict>> {
        let matrix = data.matrix()?;
        let assign = |part: Embeddings<'_>| self.assigner.assign(part).map(|assigned| self.given(&assigned));
        let found = py.detach(|| in_parallel(&matrix.values, matrix.dim, self.threads, assign)).map_err(raised)?;
        let mut sets = Sets::with_capacity(matrix.rows, matrix.rows);
        found.iter().flatten().for_each(|given| sets.push(given.set));
        let given = || found.iter().flatten();
        let number = |value: fn(&Given<'_>) -> f64| PyArray1::from_iter(py, given().map(value));
        let columns = PyDict::new(py);
        columns.set_item("sets", flat(py, &sets))?;
        columns.set_item("labels", PyArray1::from_iter(py, given().map(|given| given.label)))?;
        columns.set_item("distance", number(|given| given.distance))?;
        columns.set_item("margin", number(|given| given.margin))?;
        columns.set_item("posterior", number(|given| given.posterior))?;
        columns.set_item("score", number(|given| given.score))?;
        Ok(columns)
    }

    /// The distances of examples from the point of every label's set.
    fn transform<'py>(&self, py: Python<'py>, data: &Data) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let matrix = data.matrix()?;
        let sets = self.assigner.sets();
        let mut position = vec![usize::MAX; self.labels.sets.len()];
        for (at, set) in sets.iter().enumerate() {
            if let Some(place) =
                usize::try_from(self.labels.of(set)).ok().and_then(|label| position.get_mut(label))
            {
                *place = at;
            }
        }
        let transform = |part: Embeddings<'_>| self.assigner.transform(part);
        let found =
            py.detach(|| in_parallel(&matrix.values, matrix.dim, self.threads, transform)).map_err(raised)?;
        // A cluster that only the fit knows has no point.
        let rows = found.iter().flat_map(|part| part.chunks_exact(sets.len().max(1)));
        let found: Vec<f32> =
            rows.flat_map(|row| position.iter().map(|at| row.get(*at).copied().unwrap_or(f32::NAN))).collect();
        PyArray1::from_vec(py, found).reshape([matrix.rows, position.len()])
    }
}

/// What became of one example.
struct Given<'a> {
    set: &'a [u32],
    label: i64,
    distance: f64,
    margin: f64,
    posterior: f64,
    score: f64,
}

impl Assigner {
    fn given<'a>(&'a self, assigned: &compflow_engine::assign::Assigned<'a>) -> Vec<Given<'a>> {
        let given = |at: usize| Given {
            set: assigned.set(at),
            label: self.labels.of(assigned.set(at)),
            distance: assigned.distance(at),
            margin: assigned.margin(at),
            posterior: assigned.posterior(at),
            score: assigned.score(at),
        };
        (0..assigned.len()).map(given).collect()
    }
}

/// Does something with all rows, some at a time, on several threads; what comes of them is in their order.
fn in_parallel<T: Send>(
    values: &[f32],
    dim: usize,
    threads: usize,
    each: impl Fn(Embeddings<'_>) -> compflow_engine::Result<T> + Sync,
) -> compflow_engine::Result<Vec<T>> {
    let parts: Vec<&[f32]> = values.chunks(ROWS * dim.max(1)).collect();
    let work = |share: &[&[f32]]| share.iter().map(|part| each(Embeddings::new(part, dim))).collect::<Vec<_>>();
    if parts.len() <= 1 || threads == 1 {
        return work(&parts).into_iter().collect();
    }
    let work = &work;
    std::thread::scope(|scope| {
        let shares = parts.chunks(parts.len().div_ceil(threads));
        let workers: Vec<_> = shares.map(|share| scope.spawn(move || work(share))).collect();
        let panicked = |_| vec![Err(compflow_engine::Error::run("compflow itself panicked; please report this"))];
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(panicked)).collect()
    })
}
