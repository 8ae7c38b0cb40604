//! What the tests of several loaders share: a small table, and loading across the boundary.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt32Type};
use arrow_array::{ArrayRef, FixedSizeListArray, ListArray, RecordBatch, StringArray, UInt32Array};
use arrow_select::concat::concat_batches;
use compflow_api::{
    Component, Description, ForeignLoader, LoadRequest, Loader, NoHost, Registration, Result, Services, Sets,
};

/// Ten rows: `fold` (0 to 2), `kind`, `vector` (of two) and `sets`.
pub(crate) fn fruits() -> RecordBatch {
    let rows = 0..10_u32;
    let fold = UInt32Array::from_iter_values(rows.clone().map(|row| row / 4));
    let kind =
        StringArray::from_iter_values(rows.clone().map(|row| ["pear", "fig", "plum"][(row as usize + 2) % 3]));
    let vector = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        rows.clone().map(|row| Some([Some(row as f32), Some(-0.5)])),
        2,
    );
    let sets = ListArray::from_iter_primitive::<UInt32Type, _, _>(
        rows.map(|row| Some((0..row % 3 + 1).map(Some).collect::<Vec<_>>())),
    );
    RecordBatch::try_from_iter_with_nullable([
        ("fold", Arc::new(fold) as ArrayRef, true),
        ("kind", Arc::new(kind), true),
        ("vector", Arc::new(vector), true),
        ("sets", Arc::new(sets), true),
    ])
    .unwrap()
}

/// All columns of the fruits but the kind.
pub(crate) fn request(path: &Path) -> LoadRequest<'_> {
    LoadRequest { path: Some(path), columns: &[("embedding", "vector"), ("truth", "sets"), ("trial", "fold")] }
}

/// What a loader should make of a table.
pub(crate) fn ask(table: &RecordBatch, request: &LoadRequest<'_>) -> RecordBatch {
    let columns = request.columns.iter().map(|(name, source)| (*name, table[*source].clone(), true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// One batch of many.
pub(crate) fn concat(batches: &[RecordBatch]) -> RecordBatch {
    concat_batches(&batches[0].schema(), batches).unwrap()
}

/// Creates a loader and reads its stream, across the boundary.
pub(crate) fn load<L: Component + Loader>(
    params: &str,
    request: &LoadRequest<'_>,
    threads: usize,
) -> Result<Vec<RecordBatch>> {
    load_with::<L>(params, request, &Services { host: &NoHost, threads, ..Services::none() })
}

/// [`load`] with other services.
pub(crate) fn load_with<L: Component + Loader>(
    params: &str,
    request: &LoadRequest<'_>,
    services: &Services<'_>,
) -> Result<Vec<RecordBatch>> {
    let component = Registration::loader::<L>().component()?;
    let loader = ForeignLoader::try_from(component.create(params, services)?)?;
    let batches = loader.load(request, services)?.into_batches(u64::MAX)?;
    let schema = batches.schema().clone();
    let batches: Vec<RecordBatch> = batches.collect::<Result<_, _>>()?;
    assert!(batches.iter().all(|batch| batch.schema() == schema), "every batch has the schema of the stream");
    Ok(batches)
}

/// Why a loader refuses.
pub(crate) fn refusal<L: Component + Loader>(params: &str, request: &LoadRequest<'_>) -> String {
    load::<L>(params, request, 1).unwrap_err().to_string()
}

/// What a loader says that there is, across the boundary.
pub(crate) fn described<L: Component + Loader>(params: &str, request: &LoadRequest<'_>) -> Result<Description> {
    described_with::<L>(params, request, &Services::none())
}

/// [`described`] with other services.
pub(crate) fn described_with<L: Component + Loader>(
    params: &str,
    request: &LoadRequest<'_>,
    services: &Services<'_>,
) -> Result<Description> {
    let component = Registration::loader::<L>().component()?;
    let loader = ForeignLoader::try_from(component.create(params, services)?)?;
    Ok(loader.describe(request, services)?.unwrap())
}

/// A column of lists as sets.
pub(crate) fn sets_of(column: &ArrayRef) -> Sets {
    let lists = column.as_list::<i32>();
    lists.iter().map(|list| list.unwrap().as_primitive::<UInt32Type>().values().to_vec()).collect()
}
