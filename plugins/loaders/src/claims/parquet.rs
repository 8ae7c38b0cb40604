//! Parquet: the footer's lists and the depth of its schema, and how many values the pages of a column claim.
//!
//! The footer is Thrift in the compact protocol. It is walked without being decoded: a list of 2³¹ elements, or of 20,000
//! groups inside one another, is a few bytes long.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_schema::ArrowError;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::{Encoding, Type};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::check_size;
use super::headers::check_headers;
use super::pages::Pages;
use super::walk::{I32, LIST, STRUCT, Walk};
use crate::source::{most_at_once, too_long};

/// Groups inside one another that a schema may have; a list takes two.
const MOST_LEVELS: usize = 64;
/// The fields of the footer and of an element of the schema that are looked at.
const SCHEMA: i64 = 2;
const CHILDREN: i64 = 5;

/// Refuses footers with lists that are longer than themselves, or a schema that is nested too deep. What is wrong otherwise
/// is for the decoder to say.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_footer(mut file: &File) -> Result<(), String> {
    let mut tail = [0; 8];
    let read = |file: &mut &File, tail: &mut [u8]| -> io::Result<Vec<u8>> {
        let end = file.seek(SeekFrom::End(-8))?;
        file.read_exact(tail)?;
        let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        let start = end.checked_sub(length).ok_or(io::ErrorKind::InvalidData)?;
        let mut footer = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        (*file).take(length).read_to_end(&mut footer)?;
        Ok(footer)
    };
    match read(&mut file, &mut tail) {
        Ok(footer) if tail.ends_with(b"PAR1") => check_schema(&footer),
        _ => Ok(()),
    }
}

fn check_schema(footer: &[u8]) -> Result<(), String> {
    let mut walk = Walk::new(footer, "its footer");
    let mut children = Vec::new();
    let mut field = 0;
    while let Some(kind) = walk.field(&mut field)? {
        if (field, kind) == (SCHEMA, LIST) {
            let (count, of) = walk.list()?;
            for _ in 0..count {
                children.push(if of == STRUCT { members(&mut walk)? } else { walk.skip(of, 0).map(|()| 0)? });
            }
        } else {
            walk.skip(kind, 0)?;
        }
    }
    let mut open: Vec<i64> = Vec::new();
    for (at, count) in children.iter().enumerate() {
        if *count > (children.len() - at) as i64 {
            return Err(format!(
                "a group of its schema claims {count} members, and {} follow",
                children.len() - at - 1
            ));
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        if *count > 0 {
            open.push(*count);
        }
        if open.len() > MOST_LEVELS {
            return Err(format!("its schema is nested more than {MOST_LEVELS} deep"));
        }
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    Ok(())
}

/// How many members an element of the schema says it has.
fn members(walk: &mut Walk<'_>) -> Result<i64, String> {
    let (mut field, mut members) = (0, 0);
    while let Some(kind) = walk.field(&mut field)? {
        match (field, kind) {
            (CHILDREN, I32) => members = walk.zigzag()?,
            _ => walk.skip(kind, 0)?,
        }
    }
    Ok(members)
}

/// Refuses a row group with pages that are not what they claim, or whose lists decode to more than its bytes can stand for or
/// than the memory allows: one row can hold them all. Columns without lists come out a batch at a time, however many rows
/// there are. What is in pages of texts is left to [`rows_at_once`].
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_columns(
    file: &File,
    metadata: &ArrowReaderMetadata,
    group: usize,
    roots: &[usize],
    memory: u64,
) -> Result<(), ArrowError> {
    let schema = metadata.parquet_schema();
    let group = metadata.metadata().row_group(group);
    let rows = usize::try_from(group.num_rows()).unwrap_or(0);
    for (at, chunk) in group.columns().iter().enumerate() {
        if !roots.contains(&schema.get_column_root_idx(at)) {
            continue;
        }
        let wrong = |text| ArrowError::ParquetError(format!("column `{}`: {text}", chunk.column_path()));
        let claims = check_headers(file, chunk, memory).map_err(wrong)?;
        // Half-precision numbers are such, too.
        if claims.has_lengths && chunk.column_type() == Type::FIXED_LEN_BYTE_ARRAY {
            pages(file, chunk, rows, memory)?.try_for_each(|page| page.map(|_| ()))?;
        }
        if chunk.column_descr().max_rep_level() == 0 {
            continue;
        }
        let bytes = match chunk.column_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => chunk.column_descr().type_length().max(1) as u64,
            Type::BYTE_ARRAY => 16,
        };
        let (claimed, from) = (claims.values.saturating_mul(bytes), chunk.compressed_size().max(0) as u64);
        // Where rows are even, batches are small, and data larger than the memory can be read.
        let each = (claims.values / rows.max(1) as u64).saturating_mul(bytes);
        let most = if each > memory { memory } else { u64::MAX };
        check_size(&format!("column `{}`", chunk.column_path()), claimed, from, most)
            .map_err(ArrowError::ParquetError)?;
    }
    Ok(())
}

/// The pages of a column, each looked at before it comes out.
fn pages(
    file: &File,
    chunk: &ColumnChunkMetaData,
    rows: usize,
    memory: u64,
) -> Result<Pages<SerializedPageReader<File>>, ArrowError> {
    let pages = SerializedPageReader::new(Arc::new(file.try_clone()?), chunk, rows, None)?;
    Ok(Pages::new(pages, chunk.column_descr_ptr(), memory))
}

/// Rows whose texts are looked at together; and of such as are written as what they have in common with the one before, which have
/// to be put together.
const TEXTS: usize = 64;
const SHARED_TEXTS: usize = 4;

/// How many rows of a row group may be read at once, as far as texts decide: one that many rows share is in the file once, and in
/// a batch as often as there are rows.
///
/// # Errors
/// If one is longer than the memory allows.
pub(crate) fn rows_at_once(
    file: &File,
    metadata: &ArrowReaderMetadata,
    group: usize,
    roots: &[usize],
    memory: u64,
) -> Result<usize, ArrowError> {
    let schema = metadata.parquet_schema();
    let group = metadata.metadata().row_group(group);
    let rows = usize::try_from(group.num_rows()).unwrap_or(0);
    let most = most_at_once(memory);
    let mut at_once = usize::MAX;
    for (at, chunk) in group.columns().iter().enumerate() {
        if !roots.contains(&schema.get_column_root_idx(at)) {
            continue;
        }
        let longest = longest_text(file, chunk, rows, memory)?;
        if longest > most {
            let text = too_long(format!("a text of column `{}`", chunk.column_path()), most);
            return Err(ArrowError::ParquetError(text));
        }
        at_once = at_once.min(most / longest.max(1));
    }
    Ok(at_once.max(1))
}

/// Bytes of the longest text of a column, or of some rows of lists of them; or of one that is too long for the memory.
fn longest_text(file: &File, chunk: &ColumnChunkMetaData, rows: usize, memory: u64) -> Result<usize, ArrowError> {
    let column = chunk.column_descr_ptr();
    if chunk.column_type() == Type::FIXED_LEN_BYTE_ARRAY {
        return Ok(usize::try_from(column.type_length()).unwrap_or(0));
    }
    let pages = pages(file, chunk, rows, memory)?;
    let most = most_at_once(memory);
    let has_lists = column.max_rep_level() > 0;
    let ColumnReader::ByteArrayColumnReader(mut reader) = get_column_reader(column, Box::new(pages)) else {
        return Ok(0);
    };
    let is_shared = chunk.encodings().any(|encoding| encoding == Encoding::DELTA_BYTE_ARRAY);
    let count = if is_shared { SHARED_TEXTS } else { TEXTS };
    let (mut texts, mut defined, mut repeated) = (Vec::<ByteArray>::new(), Vec::new(), Vec::new());
    let mut longest = 0;
    while longest <= most {
        texts.clear();
        defined.clear();
        repeated.clear();
        let (records, ..) = reader.read_records(count, Some(&mut defined), Some(&mut repeated), &mut texts)?;
        if records == 0 {
            break;
        }
        let lengths = texts.iter().map(ByteArray::len);
        longest = longest.max(if has_lists { lengths.sum() } else { lengths.max().unwrap_or(0) });
    }
    Ok(longest)
}
