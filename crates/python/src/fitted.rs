//! Fitting one clusterer to examples in memory.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arrow_array::builder::{Float32Builder, ListBuilder, UInt32Builder};
use arrow_array::{ArrayRef, Int64Array, UInt32Array};
use compflow_api::Sets;
use compflow_engine::assign::AssignOptions;
use compflow_engine::fitted::Setting;
use compflow_engine::{Options, Pipeline, Resources};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::assigner::Assigner;
use crate::error::{raised, wrong};
use crate::labels::Labels;
use crate::registry::registry;
use crate::run::variables;
use crate::table::{Table, of_columns};
use crate::watch::Watch;
use crate::work::work;

/// What the machine has: small fits would spend more time looking it up than on anything else.
static MACHINE: OnceLock<Resources> = OnceLock::new();

/// What a clusterer found.
#[pyclass(frozen, module = "compflow._engine")]
pub(crate) struct Fitted {
    fitted: Arc<compflow_engine::fitted::Fitted>,
    pipeline: Arc<Pipeline>,
    threads: Option<usize>,
}

/// Sets as two arrays: where each ends, and all members.
pub(crate) type Flat<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

pub(crate) fn flat<'py>(py: Python<'py>, sets: &Sets) -> Flat<'py> {
    let offsets = sets.offsets().iter().map(|offset| *offset as i64);
    let values = sets.values().iter().map(|value| i64::from(*value));
    (PyArray1::from_iter(py, offsets), PyArray1::from_iter(py, values))
}

pub(crate) fn rows<'py>(py: Python<'py>, values: &[f32], dim: usize) -> PyResult<Bound<'py, PyArray2<f32>>> {
    PyArray1::from_slice(py, values).reshape([values.len() / dim.max(1), dim])
}

/// Reads a pipeline in JSON.
pub(crate) fn pipeline(json: &str, folder: &std::path::Path) -> PyResult<Pipeline> {
    let value: serde_json::Value = serde_json::from_str(json).map_err(wrong)?;
    Pipeline::from_json(&value, folder, &Options { variables: variables(), ..Options::default() }).map_err(raised)
}

/// Fits the only clusterer of a pipeline to its only data.
#[pyfunction]
#[pyo3(signature = (json, folder, *, threads=None, memory=None, listener=None))]
pub(crate) fn fit(
    py: Python<'_>,
    json: &str,
    folder: PathBuf,
    threads: Option<usize>,
    memory: Option<u64>,
    listener: Option<Py<PyAny>>,
) -> PyResult<Fitted> {
    let pipeline = Arc::new(pipeline(json, &folder)?);
    let registry = py.detach(registry)?;
    let machine = MACHINE.get_or_init(|| Resources { jobs: Some(1), ..Resources::default() }.settled());
    let resources =
        Resources { jobs: Some(1), threads: threads.or(machine.threads), memory: memory.or(machine.memory) };
    let planned = pipeline.clone();
    let fitted = work(py, &Watch::new(false), listener.as_ref(), move |observer, cancel| {
        planned.plan(&registry, &resources, observer, cancel)?.fit(observer, cancel)
    })?;
    Ok(Fitted::new(fitted, pipeline, threads))
}

impl Fitted {
    fn new(fitted: compflow_engine::fitted::Fitted, pipeline: Arc<Pipeline>, threads: Option<usize>) -> Self {
        Self { fitted: Arc::new(fitted), pipeline, threads }
    }
}

#[pymethods]
impl Fitted {
    /// The sets of the examples.
    fn sets<'py>(&self, py: Python<'py>) -> Flat<'py> {
        flat(py, &self.fitted.clustering().assignments)
    }

    /// The labels of the examples.
    fn labels<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let assignments = &self.fitted.clustering().assignments;
        let labels = Labels::new(assignments, None);
        PyArray1::from_iter(py, assignments.iter().map(|set| labels.of(set)))
    }

    /// The clusters: label, set, size, and what represents it.
    fn clusters(&self) -> PyResult<Table> {
        let found = self.fitted.clustering();
        let labels = Labels::new(&found.assignments, Some(&found.clusters));
        let mut counts: HashMap<&[u32], u32> = HashMap::new();
        found.assignments.iter().for_each(|set| *counts.entry(set).or_default() += 1);
        let of = |set: &[u32]| labels.of(set);
        let mut order: Vec<usize> = (0..found.clusters.len()).collect();
        order.sort_by_key(|&at| of(&found.clusters[at]));
        let numbers: Vec<i64> = order.iter().map(|&at| of(&found.clusters[at])).collect();
        let size = |at: &usize| counts.get(&found.clusters[*at]).copied().unwrap_or(0);
        let sizes: Vec<u32> = order.iter().map(size).collect();
        let mut sets = ListBuilder::new(UInt32Builder::new());
        let mut exemplars = ListBuilder::new(UInt32Builder::new());
        let mut centroids = ListBuilder::new(Float32Builder::new());
        let (_, dim) = self.fitted.shape();
        for &at in &order {
            sets.values().append_slice(&found.clusters[at]);
            sets.append(true);
            let rows = found.exemplars.get(at);
            exemplars.values().append_slice(rows.map_or(&[], Vec::as_slice));
            exemplars.append(rows.is_some());
            let point = found.centroids.get(at * dim..(at + 1) * dim);
            centroids.values().append_slice(point.unwrap_or_default());
            centroids.append(point.is_some());
        }
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("label", Arc::new(Int64Array::from(numbers))),
            ("clusters", Arc::new(sets.finish())),
            ("size", Arc::new(UInt32Array::from(sizes))),
            ("exemplars", Arc::new(exemplars.finish())),
            ("centroid", Arc::new(centroids.finish())),
        ];
        of_columns(columns)
    }

    /// Everything else that was found.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = self.fitted.clustering();
        let (n, dim) = self.fitted.shape();
        let facts = PyDict::new(py);
        let count = found.assignments.values().iter().chain(found.clusters.values());
        let count = count.chain(&found.singletons.numbers).max().map_or(0, |last| u64::from(*last) + 1);
        facts.set_item("shape", (n, dim))?;
        facts.set_item("singletons", count)?;
        let singletons = self.fitted.singletons();
        facts.set_item("singleton_numbers", PyArray1::from_slice(py, &singletons.numbers))?;
        facts.set_item("singleton_vectors", rows(py, &singletons.vectors, dim)?)?;
        facts.set_item("converged", found.diagnostics.converged)?;
        facts.set_item("iterations", found.diagnostics.iterations)?;
        facts.set_item("objective", found.diagnostics.objective)?;
        facts.set_item("trace", PyArray1::from_slice(py, &found.diagnostics.trace))?;
        facts.set_item("distances", PyArray1::from_slice(py, self.fitted.distances()))?;
        facts.set_item("seconds", self.fitted.seconds())?;
        facts.set_item("warnings", self.fitted.warnings())?;
        facts.set_item("params", self.fitted.params())?;
        facts.set_item("names", self.fitted.names())?;
        facts.set_item("scalars", found.scalars.clone())?;
        facts.set_item("resolved", found.resolved.clone())?;
        facts.set_item("selection", serde_json::to_string(self.fitted.selected()).map_err(wrong)?)?;
        Ok(facts)
    }

    /// Gives new examples to the clusters.
    #[pyo3(signature = (*, degree=None, seen_only=false, novel=None))]
    fn assigner(
        &self,
        py: Python<'_>,
        degree: Option<usize>,
        seen_only: bool,
        novel: Option<f64>,
    ) -> PyResult<Assigner> {
        let (fitted, pipeline) = (self.fitted.clone(), self.pipeline.clone());
        let registry = py.detach(registry)?;
        let options = AssignOptions { degree, seen_only, novel };
        let assigner = work(py, &Watch::new(false), None, move |observer, cancel| {
            let setting = Setting { pipeline: &pipeline, registry: &registry, observer, cancel };
            fitted.assigner(&setting, &options)
        })?;
        Ok(Assigner::new(assigner, &self.fitted.clustering().assignments, self.threads))
    }

    /// Writes the results folder of a run of `json`, whose data are the same examples in files, with this result in it.
    fn save(&self, py: Python<'_>, json: &str, folder: PathBuf, out: PathBuf) -> PyResult<()> {
        let pipeline = pipeline(json, &folder)?;
        let (fitted, registry) = (self.fitted.clone(), py.detach(registry)?);
        work(py, &Watch::new(true), None, move |observer, cancel| {
            let resources = Resources { jobs: Some(1), ..Resources::default() };
            let plan = pipeline.plan(&registry, &resources, observer, cancel)?;
            fitted.keep(&plan, &out)?;
            plan.run(&out, compflow_engine::RunOptions::default(), observer, cancel).map(|_| ())
        })
    }

    /// Everything, to be kept elsewhere.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.fitted.to_bytes().map(|bytes| PyBytes::new(py, &bytes)).map_err(raised)
    }

    /// What `to_bytes` made bytes of, with the pipeline that it was fitted with.
    #[staticmethod]
    #[pyo3(signature = (bytes, json, folder, *, threads=None))]
    fn from_bytes(bytes: &[u8], json: &str, folder: PathBuf, threads: Option<usize>) -> PyResult<Self> {
        let fitted = compflow_engine::fitted::Fitted::from_bytes(bytes).map_err(raised)?;
        Ok(Self::new(fitted, Arc::new(pipeline(json, &folder)?), threads))
    }
}
