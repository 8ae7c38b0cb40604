//! What the loaders that read a file share: finding it, opening it, and saying what is wrong with it.

use std::fmt::Display;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ListArray, RecordBatch, UInt32Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema};
use compflow_api::{Error, LoadRequest, Result, Sets};

/// The memory that a batch should take: large enough to amortise its overhead, small enough to stay in a core's cache until it is
/// used, and to be given out again by the allocator instead of going back to the system.
const BATCH_BYTES: usize = 1 << 20;

/// The file that a request names.
pub(crate) fn path<'a>(request: &LoadRequest<'a>) -> Result<&'a Path> {
    request.path.ok_or_else(|| Error::new("no `path`: this loader reads a file"))
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> Result<File> {
    // A folder can be opened, and fails only when it is read, with a text about neither; opening a pipe waits for somebody
    // who writes to it.
    let found = path.metadata().map_err(|error| cannot_open(path, error))?;
    if !found.is_file() {
        let what = if found.is_dir() { "a folder" } else { "no file but a pipe or a device" };
        return Err(Error::data(format!("{} is {what}, expected a file", path.display())));
    }
    File::open(path).map_err(|error| cannot_open(path, error))
}

fn cannot_open(path: &Path, error: std::io::Error) -> Error {
    Error::data(format!("cannot open {}: {error}", path.display()))
}

/// A fault found in the middle of a stream, with the file named.
pub(crate) fn damaged(path: &Path, what: impl Display) -> ArrowError {
    in_stream(format!("{} is damaged: {what}", path.display()))
}

/// A text as the error of a stream.
pub(crate) fn in_stream(text: impl Display) -> ArrowError {
    ArrowError::from_external_error(text.to_string().into())
}

/// Runs a decoder; what went wrong comes back as a text. Decoders of Arrow and Parquet panic on some damaged files,
/// which says no more about the loader than an error does.
pub(crate) fn decode<T>(call: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(text),
        Err(panic) => Err(match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => (*text).to_owned(),
            (_, Some(text)) => text.clone(),
            _ => "the decoder gave up".to_owned(),
        }),
    }
}

/// The error without the name of its kind.
fn text(error: ArrowError) -> String {
    match error {
        ArrowError::ParquetError(text) => text.trim_start_matches("Parquet error: ").to_owned(),
        ArrowError::ParseError(text)
        | ArrowError::IpcError(text)
        | ArrowError::JsonError(text)
        | ArrowError::CsvError(text)
        | ArrowError::IoError(text, _)
        | ArrowError::InvalidArgumentError(text) => text,
        other => other.to_string(),
    }
}

/// The batches of a reader of this file, each passed through `select`, until one fails.
pub(crate) fn decoded(
    path: PathBuf,
    mut reader: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    select: impl Fn(&RecordBatch) -> Result<RecordBatch, ArrowError>,
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
    until_failure(std::iter::from_fn(move || {
        let next = decode(|| reader.next().map(|batch| select(&batch?)).transpose());
        next.map_err(|text| damaged(&path, text)).transpose()
    }))
}

/// The batches up to the first error.
pub(crate) fn until_failure(
    mut batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
    // Not `map_while`, which would ask a reader that failed once more.
    let mut failed = false;
    std::iter::from_fn(move || {
        let batch = if failed { None } else { batches.next() };
        failed = batch.as_ref().is_none_or(Result::is_err);
        batch
    })
}

/// True sets as a column.
///
/// # Errors
/// If a batch has more members than a list of Arrow.
pub(crate) fn lists(sets: &Sets) -> Result<ListArray, ArrowError> {
    let offsets = sets.offsets().iter().map(|&end| i32::try_from(end)).collect::<Result<Vec<i32>, _>>();
    let offsets = offsets.map_err(|_| in_stream("more members than a batch can have"))?;
    let values = UInt32Array::from(sets.values().to_vec());
    ListArray::try_new(set_item(), OffsetBuffer::new(offsets.into()), Arc::new(values), None)
}

/// What the lists of [`lists`] hold.
pub(crate) fn set_item() -> FieldRef {
    Field::new_list_field(DataType::UInt32, false).into()
}

/// The length of the embeddings, if the type of the wanted column says it.
pub(crate) fn dim(schema: &Schema, request: &LoadRequest<'_>) -> Option<usize> {
    match schema.field_with_name(request.column("embedding")?).ok()?.data_type() {
        DataType::FixedSizeList(_, dim) => usize::try_from(*dim).ok(),
        _ => None,
    }
}

/// Bytes that one record of text, or one value, may take: parsed and in a batch it is there several times.
pub(crate) fn most_at_once(memory: u64) -> usize {
    usize::try_from(memory / 8).unwrap_or(usize::MAX).max(1 << 16)
}

/// What would do about a record that takes more than [`most_at_once`].
pub(crate) fn too_long(what: impl Display, most: usize) -> String {
    format!(
        "{what} takes more than {most} bytes, which is what may be used for one; if it is meant to be so long, a run may \
         use more with --memory"
    )
}

/// How many rows make a batch, if so many bytes are in so many rows, and so many at most in one.
pub(crate) fn rows_of_batch(bytes: u64, rows: usize, longest: usize, memory: u64) -> usize {
    let average = usize::try_from(bytes / rows.max(1) as u64).unwrap_or(usize::MAX);
    rows_per_batch(average).min(most_at_once(memory) / longest.max(1)).max(1)
}

/// How many rows of this size make a batch.
pub(crate) fn rows_per_batch(bytes_per_row: usize) -> usize {
    (BATCH_BYTES / bytes_per_row.max(1)).clamp(1, 1 << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none.parquet");
        let text = open(&missing).unwrap_err().to_string();
        assert!(text.starts_with(&format!("cannot open {}: ", missing.display())), "{text}");
        let text = open(folder.path()).unwrap_err().to_string();
        assert_eq!(text, format!("{} is a folder, expected a file", folder.path().display()));
    }

    #[test]
    fn a_decoder_that_fails_or_panics_ends_the_stream_with_the_file_named() {
        let batch = || RecordBatch::new_empty(arrow_schema::Schema::empty().into());
        let refuse = |_: &RecordBatch| Err(ArrowError::ParseError("odd".to_owned()));
        let panics = |_: &RecordBatch| panic!("odd");
        let ends = |batches: &mut dyn Iterator<Item = Result<RecordBatch, ArrowError>>| {
            let text = batches.next().unwrap().unwrap_err().to_string();
            assert_eq!(text, "External error: t is damaged: odd");
            assert!(batches.next().is_none());
        };
        ends(&mut decoded("t".into(), [Ok(batch()), Ok(batch())].into_iter(), refuse));
        ends(&mut decoded("t".into(), [Ok(batch()), Ok(batch())].into_iter(), panics));
    }

    #[test]
    fn batches_have_a_size_in_bytes_and_a_limit_in_rows() {
        assert_eq!(rows_per_batch(32 * 4), 1 << 13);
        assert_eq!(rows_per_batch(1 << 18), 4);
        assert_eq!(rows_per_batch(1 << 30), 1);
        assert_eq!(rows_per_batch(0), 1 << 16);
    }
}
