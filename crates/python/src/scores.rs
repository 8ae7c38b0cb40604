//! Scoring sets.

use std::collections::HashMap;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;
use compflow_api::{Column, Kind, Sets};
use compflow_engine::results::Scorer;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::data::joined;
use crate::error::{said, wrong};
use crate::fitted;
use crate::lend;
use crate::registry::registry;
use crate::watch::Watch;
use crate::work::work;

/// Sets as two arrays: where each ends, and all members, numbers from 0.
type Flat<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>);

/// The sets, whatever order members are given in, and however often.
fn sets((offsets, values): &Flat<'_>) -> PyResult<Sets> {
    let values: Result<Vec<u32>, _> = values.as_slice()?.iter().map(|value| u32::try_from(*value)).collect();
    let values = values.map_err(|_| wrong("members of sets are numbered from 0, with 32 bits"))?;
    let set = |ends: &[i64]| -> Option<Vec<u32>> {
        let (start, end) = (usize::try_from(*ends.first()?).ok()?, usize::try_from(*ends.last()?).ok()?);
        let mut set = values.get(start..end)?.to_vec();
        set.sort_unstable();
        set.dedup();
        Some(set)
    };
    let sets: Option<Sets> = offsets.as_slice()?.windows(2).map(set).collect();
    sets.ok_or_else(|| wrong("the ends of sets must ascend, up to the number of members"))
}

/// A column that an evaluator may ask for.
#[derive(FromPyObject)]
pub(crate) enum Values {
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

/// The scores of predicted against true sets by an evaluator: metrics and values.
#[pyfunction]
#[pyo3(signature = (evaluator, params, truth, predicted, columns))]
pub(crate) fn score(
    py: Python<'_>,
    evaluator: String,
    params: String,
    truth: Flat<'_>,
    predicted: Flat<'_>,
    columns: HashMap<String, Values>,
) -> PyResult<Vec<(String, f64)>> {
    let (truth, predicted) = (sets(&truth)?, sets(&predicted)?);
    if truth.len() != predicted.len() {
        let text = format!("there are {} true and {} predicted sets", truth.len(), predicted.len());
        return Err(wrong(text));
    }
    let columns = columns
        .into_iter()
        .map(|(name, values)| match values {
            Values::Floats(values) => (name, Column::Floats(values)),
            Values::Texts(values) => (name, Column::Texts(values)),
        })
        .collect();
    let registry = py.detach(registry)?;
    registry.find(Kind::Evaluator, &evaluator).map_err(|problem| wrong(said(&problem)))?;
    work(py, &Watch::new(false), None, move |observer, cancel| {
        let scorer = Scorer::new(&registry, Path::new("."), observer, cancel);
        scorer.score_by((&evaluator, &params), &truth, &predicted, &columns)
    })
}

/// The sets of an Arrow column of lists, or of single values: where each ends, and the members as numbers from 0.
#[pyfunction]
pub(crate) fn sets_of_arrow<'py>(py: Python<'py>, object: &Bound<'py, PyAny>) -> PyResult<fitted::Flat<'py>> {
    let mut column = joined(&lend::arrays(object)?)?;
    if let Some(table) = column.as_struct_opt() {
        let &[only] = &table.columns() else {
            return Err(wrong(format!("expected one column of sets, found {}", table.num_columns())));
        };
        column = only.clone();
    }
    if column.null_count() > 0 {
        return Err(wrong("a set must not be null"));
    }
    let (values, offsets): (ArrayRef, Vec<i64>) = if let Some(lists) = column.as_list_opt::<i32>() {
        (lists.values().clone(), lists.value_offsets().iter().map(|offset| i64::from(*offset)).collect())
    } else if let Some(lists) = column.as_list_opt::<i64>() {
        (lists.values().clone(), lists.value_offsets().to_vec())
    } else if let Some(lists) = column.as_fixed_size_list_opt() {
        let width = i64::from(lists.value_length());
        (lists.values().clone(), (0..=lists.len() as i64).map(|row| row * width).collect())
    } else {
        let rows = column.len() as i64;
        (column, (0..=rows).collect())
    };
    let mut numbers: HashMap<String, i64> = HashMap::new();
    let numbered: Vec<i64> = if values.data_type().is_integer() {
        // Names do not matter, only which are the same.
        let values = cast(&values, &DataType::Int64).map_err(wrong)?;
        let mut known: HashMap<i64, i64> = HashMap::new();
        let mut number = |value: i64| {
            let next = known.len() as i64;
            *known.entry(value).or_insert(next)
        };
        values.as_primitive::<Int64Type>().values().iter().map(|value| number(*value)).collect()
    } else {
        let values = cast(&values, &DataType::Utf8).map_err(wrong)?;
        let mut number = |value: &str| {
            let next = numbers.len() as i64;
            *numbers.entry(value.to_owned()).or_insert(next)
        };
        values.as_string::<i32>().iter().map(|value| number(value.unwrap_or_default())).collect()
    };
    Ok((PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, numbered)))
}
