//! Files that anybody may have written: for `fuzz/`, and for the tests, which replay what it has found.

use std::io::Write;
use std::path::Path;

use compflow_api::{Component, LoadRequest, Loader, Result, Services};
use serde_json::{Value, json};

use crate::arrow::Arrow;
use crate::csv::Csv;
use crate::json::Json;
use crate::npy::Npy;
use crate::npy_labels::Labels;
use crate::parquet::Parquet;

/// How many bytes a loader may use.
const MEMORY: u64 = 1 << 28;

/// Reads a Parquet file.
pub fn parquet(bytes: &[u8]) {
    table::<Parquet>(bytes);
}

/// Reads an Arrow IPC file or stream.
pub fn arrow(bytes: &[u8]) {
    table::<Arrow>(bytes);
}

/// Reads a CSV file.
pub fn csv(bytes: &[u8]) {
    table::<Csv>(bytes);
}

/// Reads JSON lines.
pub fn json(bytes: &[u8]) {
    table::<Json>(bytes);
}

/// Reads a NumPy array, as embeddings and as labels.
pub fn npy(bytes: &[u8]) {
    let file = written(bytes);
    caught(read::<Npy>(file.path(), &["embedding"], json!({})));
    caught(Labels::open(file.path(), file.path(), 3).and_then(|mut labels| labels.read(0..3)).map(|_| ()));
}

/// Reads all columns of a table, and once more those rows in which the first column is 1.
fn table<L: Component + Loader>(bytes: &[u8]) {
    let file = written(bytes);
    let names = caught(described::<L>(file.path()));
    let names: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
    caught(read::<L>(file.path(), &names, json!({})));
    if let Some(first) = names.first() {
        caught(read::<L>(file.path(), &names, json!({ "where": { *first: 1 } })));
    }
}

fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("there is room for a file");
    file.write_all(bytes).expect("there is room for its content");
    file
}

/// What was read; an error is fine, but not one that a panic was turned into.
fn caught<T>(result: Result<T>) -> Option<T> {
    let panic = result.as_ref().err().map(ToString::to_string).filter(|text| text.starts_with("panicked"));
    assert_eq!(panic, None);
    result.ok()
}

fn services() -> Services<'static> {
    Services { memory: MEMORY, ..Services::none() }
}

/// The names of all columns.
fn described<L: Component + Loader>(path: &Path) -> Result<Vec<String>> {
    let loader = L::new(serde_json::from_value(json!({}))?, &services())?;
    let found = loader.describe(&LoadRequest { path: Some(path), columns: &[] }, &services())?;
    found.expect("files are described").names()
}

fn read<L: Component + Loader>(path: &Path, columns: &[&str], params: Value) -> Result<()> {
    let columns: Vec<(&str, &str)> = columns.iter().map(|name| (*name, *name)).collect();
    let request = LoadRequest { path: Some(path), columns: &columns };
    let batches = L::new(serde_json::from_value(params)?, &services())?.load(&request, &services())?;
    batches.into_batches(MEMORY)?.try_for_each(|batch| batch.map(|_| ()))?;
    Ok(())
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;
    use super::*;

    #[test]
    fn parquet_files_that_fuzzing_has_found_are_read_or_refused() {
        replay("parquet", parquet);
    }

    #[test]
    fn arrow_files_that_fuzzing_has_found_are_read_or_refused() {
        replay("arrow", arrow);
    }

    #[test]
    fn csv_files_that_fuzzing_has_found_are_read_or_refused() {
        replay("csv", csv);
    }

    #[test]
    fn json_lines_that_fuzzing_has_found_are_read_or_refused() {
        replay("json", json);
    }

    #[test]
    fn npy_files_that_fuzzing_has_found_are_read_or_refused() {
        replay("npy", npy);
    }
}
