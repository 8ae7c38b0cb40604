//! True sets from an npy file: one label per example, as a number or a string, or an indicator matrix.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray, UInt64Array};
use arrow_schema::DataType;
use compflow_api::{Error, Result, Sets};
use npyz::TypeChar;

use crate::npy_file::NpyFile;
use crate::source::{lists, set_item};

/// Labels or sets of examples, read some rows at a time: an indicator matrix may be larger than the embeddings.
pub(crate) struct Labels {
    pub(crate) file: NpyFile,
    /// What they are as a column.
    pub(crate) kind: DataType,
}

impl Labels {
    /// Opens those of `rows` examples of the file `data`.
    ///
    /// # Errors
    /// If there are more or fewer, or the array is of another kind.
    pub(crate) fn open(path: &Path, data: &Path, rows: usize) -> Result<Self> {
        let file = NpyFile::open(path)?;
        if file.rows != rows {
            let (path, data) = (path.display(), data.display());
            return Err(Error::data(format!("{path} has {} rows, but {data} has {rows}", file.rows)));
        }
        let kind = match (file.axes, file.kind()) {
            (1, TypeChar::Int) if file.item <= 8 => DataType::Int64,
            (1, TypeChar::Uint) if file.item <= 8 => DataType::UInt64,
            (1, TypeChar::UnicodeStr) => DataType::Utf8,
            (2, TypeChar::Bool | TypeChar::Int | TypeChar::Uint) => DataType::List(set_item()),
            _ => {
                return Err(
                    file.unexpected("one integer or string per example, or an indicator matrix of 0 and 1")
                );
            }
        };
        Ok(Self { file, kind })
    }

    /// Reads those of some rows.
    ///
    /// # Errors
    /// If a value is neither a label nor 0 or 1.
    pub(crate) fn read(&mut self, rows: Range<usize>) -> Result<ArrayRef> {
        let Self { file, kind } = self;
        let bytes =
            file.read(rows.clone()).map_err(|error| Error::data(format!("{}: {error}", file.path().display())))?;
        let values = bytes.chunks_exact(file.item);
        Ok(match kind {
            DataType::Int64 => {
                let values = values.map(|value| i64::from_le_bytes(widened(value, true)));
                Arc::new(Int64Array::from_iter_values(values))
            }
            DataType::UInt64 => {
                let values = values.map(|value| u64::from_le_bytes(widened(value, false)));
                Arc::new(UInt64Array::from_iter_values(values))
            }
            DataType::Utf8 => Arc::new(strings(values, rows.start, file.path())?),
            _ => Arc::new(lists(&indicated(file, rows, values)?)?),
        })
    }
}

/// An integer of up to 64 bits as one of 64.
fn widened(value: &[u8], signed: bool) -> [u8; 8] {
    let negative = signed && value.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    wide[..value.len()].copy_from_slice(value);
    wide
}

/// Strings of 32-bit characters, padded with zeros, from a row on.
fn strings<'a>(values: impl Iterator<Item = &'a [u8]>, first_row: usize, path: &Path) -> Result<StringArray> {
    let decoded: Result<Vec<String>> = (first_row..)
        .zip(values)
        .map(|(row, value)| {
            let characters = value.as_chunks::<4>().0.iter().map(|unit| char::from_u32(u32::from_le_bytes(*unit)));
            let text: Option<String> = characters.collect();
            let text =
                text.ok_or_else(|| Error::data(format!("{}: row {row} is not a valid string", path.display())))?;
            Ok(text.trim_end_matches('\0').to_owned())
        })
        .collect();
    Ok(decoded?.into())
}

/// The set of each row: its columns that hold 1.
fn indicated<'a>(file: &NpyFile, rows: Range<usize>, mut values: impl Iterator<Item = &'a [u8]>) -> Result<Sets> {
    let mut sets = Sets::with_capacity(rows.len(), rows.len());
    let mut set = Vec::new();
    for row in rows {
        set.clear();
        for (column, value) in values.by_ref().take(file.columns).enumerate() {
            match value {
                [0, rest @ ..] if rest.iter().all(|byte| *byte == 0) => {}
                [1, rest @ ..] if rest.iter().all(|byte| *byte == 0) => set.push(column as u32),
                _ => {
                    let path = file.path().display();
                    return Err(Error::data(format!(
                        "{path}: column {column} of row {row} holds neither 0 nor 1; an array with two axes is an \
                         indicator matrix, and labels have one axis"
                    )));
                }
            }
        }
        sets.push(&set);
    }
    Ok(sets)
}
