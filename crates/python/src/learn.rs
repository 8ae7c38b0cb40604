//! Learning a composer from examples in memory.

use std::path::PathBuf;

use compflow_api::Normalize;
use compflow_engine::fit::{FitColumns, FitData, FitRequest, LibraryComposer, Trials, Written, fit_composer};
use pyo3::prelude::*;

use crate::data::Data;
use crate::error::wrong;
use crate::registry::registry;
use crate::watch::Watch;
use crate::work::work;

/// Learns g, writes its weights to `out`, and returns the judgement as JSON.
#[pyfunction]
#[pyo3(signature = (data, out, *, normalize, composers, seed, threads=None, scaled_sum=false, listener=None))]
#[expect(clippy::too_many_arguments, reason = "named ones, as Python has them")]
pub(crate) fn learn_composer(
    py: Python<'_>,
    data: &Data,
    out: PathBuf,
    normalize: &str,
    composers: Vec<String>,
    seed: u64,
    threads: Option<usize>,
    scaled_sum: bool,
    listener: Option<Py<PyAny>>,
) -> PyResult<String> {
    let has_trials = data.batch()?.schema().column_with_name("trial").is_some();
    let table = FitData {
        path: "the examples".to_owned(),
        loader: Some("memory".to_owned()),
        params: Some(serde_json::json!({ "table": data.number() })),
        columns: FitColumns {
            embedding: "embedding".to_owned(),
            truth: "truth".to_owned(),
            trial: if has_trials { Trials::Column("trial".to_owned()) } else { Trials::No },
            weight: None,
            split: None,
        },
    };
    let composers = composers.into_iter().map(|component| LibraryComposer { component, params: None });
    let request = FitRequest {
        data: vec![table],
        normalize: match normalize {
            "l2" => Normalize::L2,
            _ => Normalize::None,
        },
        composers: composers.collect(),
        seed,
        threads,
    };
    let registry = py.detach(registry)?;
    let folder = std::env::current_dir()?;
    let written = if scaled_sum { Written::ScaledSum } else { Written::Fitted };
    let judgement = work(py, &Watch::new(false), listener.as_ref(), move |observer, cancel| {
        let mut fitted = fit_composer(&request, &registry, &folder, observer, cancel)?;
        fitted.write(&out, written)?;
        Ok(serde_json::to_string(fitted.judgement()))
    })?;
    judgement.map_err(wrong)
}
