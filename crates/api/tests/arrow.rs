//! Streams from and to arrow-rs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, SchemaRef};
use compflow_api::*;

fn batch(name: &str, column: impl Array + 'static) -> RecordBatch {
    RecordBatch::try_from_iter([(name, Arc::new(column) as ArrayRef)]).unwrap()
}

fn stream(batches: Vec<Result<RecordBatch, ArrowError>>, schema: SchemaRef) -> Stream {
    let batches: Batches = Box::new(RecordBatchIterator::new(batches, schema));
    Stream::from(batches)
}

#[test]
fn batches_cross_and_come_back() {
    let (one, two) = (batch("id", Int32Array::from(vec![1, 2])), batch("id", Int32Array::from(vec![3])));
    let batches = vec![Ok(one.clone()), Ok(two.slice(0, 1))];
    let reader = stream(batches, one.schema()).into_batches(u64::MAX).unwrap();
    assert_eq!(reader.schema().fields(), one.schema().fields());
    assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), [one, two]);
}

#[test]
fn an_error_keeps_its_own_words_and_ends_the_stream() {
    let good = batch("id", Int32Array::from(vec![1]));
    let failed = Err(ArrowError::ComputeError("row 7: is odd".to_owned()));
    let mut reader =
        stream(vec![Ok(good.clone()), failed, Ok(good.clone())], good.schema()).into_batches(1000).unwrap();
    assert!(reader.next().unwrap().is_ok());
    assert_eq!(reader.next().unwrap().unwrap_err(), Error::data("row 7: is odd"));
    assert!(reader.next().is_none());
}

#[test]
fn a_batch_of_another_type_than_declared_is_refused_before_it_crosses() {
    let declared = batch("id", Int32Array::from(vec![1]));
    let other = batch("id", StringArray::from(vec!["one"]));
    let mut reader = stream(vec![Ok(other)], declared.schema()).into_batches(u64::MAX).unwrap();
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert_eq!(error, "a batch has the columns `id` Utf8, and the stream declared `id` Int32");
}

#[test]
fn more_than_the_budget_is_not_read() {
    let large = batch("id", Int32Array::from(vec![0; 1000]));
    let mut reader = stream(vec![Ok(large.clone())], large.schema()).into_batches(1000).unwrap();
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("`id`: claims 1000 values, more than the memory budget holds"), "{error}");
}
