//! Columns that several tables have.

use polars::prelude::*;

use crate::plan::Plan;
use crate::run::row::Row;

/// `data`, `trial` and `clusterer`, which join the tables; every row of `rows` as often as `times` says.
pub(super) fn join_columns<'a>(plan: &'a Plan, rows: impl Iterator<Item = (&'a Row, usize)>) -> Vec<Column> {
    let (mut data, mut trial, mut clusterer) = (Vec::new(), Vec::new(), Vec::new());
    for (row, times) in rows {
        let loaded = &plan.data[row.cell.data];
        data.extend(std::iter::repeat_n(loaded.name.as_str(), times));
        trial.extend(std::iter::repeat_n(row.cell.trial(plan).number, times));
        clusterer.extend(std::iter::repeat_n(row.cell.label(plan), times));
    }
    vec![
        Column::new("data".into(), data),
        Column::new("trial".into(), trial),
        Column::new("clusterer".into(), clusterer),
    ]
}

/// A column of vectors.
pub(super) fn vectors<'a>(name: &str, values: impl Iterator<Item = &'a [f32]>) -> Column {
    let mut builder = ListPrimitiveChunkedBuilder::<Float32Type>::new(name.into(), 0, 0, DataType::Float32);
    values.for_each(|vector| builder.append_slice(vector));
    builder.finish().into_column()
}

/// A column of lists of numbers.
pub(super) fn lists<'a>(name: &str, sets: impl Iterator<Item = Option<&'a [u32]>>) -> Column {
    let mut builder = ListPrimitiveChunkedBuilder::<UInt32Type>::new(name.into(), 0, 0, DataType::UInt32);
    sets.for_each(|set| builder.append_opt_slice(set));
    builder.finish().into_column()
}
