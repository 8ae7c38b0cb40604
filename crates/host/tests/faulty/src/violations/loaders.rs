//! Loaders that break rules.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, RecordBatch, RecordBatchIterator};
use compflow_api::{Batches, Component, Flags, LoadRequest, Loader, NoParams, Result, Services, register};

use super::{calls, leak};

component!(loader Erratic, "erratic", "other data every time, in other columns, and memory is lost");

impl Loader for Erratic {
    fn load(&self, _request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Batches> {
        leak();
        let row = Some([Some(calls() as f32)]);
        let column: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>([row], 1));
        let batch = RecordBatch::try_from_iter([("surplus", column)])?;
        let schema = batch.schema();
        Ok(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
    }
}

component!(loader Brittle, "brittle", "panics whatever the file", Flags::NEEDS_PATH, Ok(Self));

impl Loader for Brittle {
    fn load(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Batches> {
        panic!("not {:?}", request.path)
    }
}
