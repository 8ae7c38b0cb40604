//! Parquet: what is at the end of a file, and the pages of a row group, held against what they can hold.
//!
//! Footers say in a few bytes how many members a list or a group has, or put one group into another; runs say how often a value is
//! repeated. Decoders make room for all of it first, or recurse.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use arrow_schema::{ArrowError, DataType};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::Type;
use parquet::file::metadata::ColumnChunkMetaData;

use super::headers::check_headers;
use super::pages::{Records, Texts, pages};
use super::walk::{Kind, Seen, Shape, Walk};
use super::{check_memory, check_size};
use crate::source::{most_at_once, rows_of_batch, too_long};

/// Groups inside one another that a schema may have; a list takes two.
const MOST_LEVELS: usize = 64;
/// How much more memory than bytes of the file what a footer says may take, and an element of the schema takes.
const TIMES: u64 = 32;
const ELEMENT_BYTES: u64 = 512;

/// Version and schema, with the fields of an element before and behind the number of its members. What comes behind the schema
/// changes nothing of it.
const FOOTER: Shape = &[(1, Kind::Number), (2, Kind::Structures(ELEMENT))];
const ELEMENT: Shape = &[
    (1, Kind::Number),
    (2, Kind::Number),
    (3, Kind::Number),
    (4, Kind::Bytes),
    (5, Kind::Number),
    (6, Kind::Number),
    (7, Kind::Number),
    (8, Kind::Number),
    (9, Kind::Number),
    (10, Kind::Structure(LOGICAL_TYPE)),
];
const LOGICAL_TYPE: Shape = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Kind::Structure(&[(1, Kind::Number), (2, Kind::Number)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Kind::Structure(&[(1, Kind::Byte), (2, Kind::Truth)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Kind::Structure(&[(1, Kind::Byte)])),
    (17, Kind::Structure(&[(1, Kind::Bytes)])),
    (18, Kind::Structure(&[(1, Kind::Bytes), (2, Kind::Number)])),
    (19, EMPTY),
];
const EMPTY: Kind = Kind::Structure(&[]);
const TIME: Kind =
    Kind::Structure(&[(1, Kind::Truth), (2, Kind::Structure(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))]);

/// Refuses footers that may take more than the memory, with lists that are longer than themselves, or a schema that is nested too
/// deep. What is wrong otherwise is for the decoder to say.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_footer(mut file: &File, memory: u64) -> Result<(), String> {
    let mut tail = [0; 8];
    let Ok(end) = file.seek(SeekFrom::End(-8)).and_then(|end| file.read_exact(&mut tail).map(|()| end)) else {
        return Ok(());
    };
    let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    let Some(start) = end.checked_sub(length).filter(|_| tail.ends_with(b"PAR1")) else {
        return Ok(());
    };
    check_memory("its footer", length.saturating_mul(TIMES), memory)?;
    let mut footer = Vec::new();
    match file.seek(SeekFrom::Start(start)).and_then(|_| file.take(length).read_to_end(&mut footer)) {
        Ok(_) => check_schema(&footer, memory),
        Err(_) => Ok(()),
    }
}

fn check_schema(footer: &[u8], memory: u64) -> Result<(), String> {
    let mut members = Vec::new();
    let mut of_this = 0;
    let mut seen = |path: &[i64], seen: Seen| match (path, seen) {
        ([2, 5], Seen::Number(number)) => of_this = number,
        ([2], Seen::End) => members.push(std::mem::take(&mut of_this)),
        _ => {}
    };
    Walk::new(footer, "its footer").structure(FOOTER, &mut Vec::new(), &mut seen)?;
    check_memory("its schema", ELEMENT_BYTES.saturating_mul(members.len() as u64), memory)?;
    let mut open: Vec<i64> = Vec::new();
    for (at, count) in members.iter().enumerate() {
        let follow = members.len() - at - 1;
        if !(0..=follow as i64).contains(count) {
            return Err(format!("a group of its schema claims {count} members, and {follow} follow"));
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

/// Bytes of the levels that are held for every value of a list.
const LEVELS: u64 = 4;

/// Bytes that a value takes beside what a text has.
pub(super) fn width(chunk: &ColumnChunkMetaData) -> u64 {
    match chunk.column_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
        Type::FIXED_LEN_BYTE_ARRAY => u64::from(chunk.column_descr().type_length().max(1).unsigned_abs()),
        Type::BYTE_ARRAY => 32,
    }
}

/// How many rows of a row group may be read at once: a text that many rows share is in the file once, and in a batch as often as
/// there are rows; a run of values may be one row of a list.
///
/// # Errors
/// If its pages are not what they claim, lists decode to more than their bytes can stand for, or a row takes more than the memory
/// allows.
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
    let (mut all, mut longest) = (0_u64, 0_u64);
    for (at, chunk) in group.columns().iter().enumerate() {
        let root = schema.get_column_root_idx(at);
        if !roots.contains(&root) {
            continue;
        }
        let name = format!("column `{}`", chunk.column_path());
        let data_type = metadata.schema().fields().get(root).map_or(&DataType::Null, |field| field.data_type());
        let taken = taken(file, chunk, data_type, rows, memory).map_err(|error| match error {
            ArrowError::ParquetError(text) => ArrowError::ParquetError(format!("{name}: {text}")),
            other => other,
        })?;
        let most = most_at_once(memory);
        if taken.longest > most as u64 {
            let what = if chunk.column_type() == Type::BYTE_ARRAY { "a text of" } else { "a row of" };
            return Err(ArrowError::ParquetError(too_long(format!("{what} {name}"), most)));
        }
        all = all.saturating_add(taken.all);
        longest = longest.saturating_add(taken.longest);
    }
    Ok(rows_of_batch(all, rows, usize::try_from(longest).unwrap_or(usize::MAX), memory))
}

/// Refuses to test more rows of a row group than there is room for what comes of it, a bit for each.
///
/// # Errors
/// With both numbers.
pub(crate) fn check_tested(rows: usize, memory: u64) -> Result<(), String> {
    check_memory("testing the rows of a row group", rows as u64 / 8, memory)
}

/// What a column takes when it is decoded.
struct Taken {
    all: u64,
    /// By the longest row; 0 if it does not matter, since there is room for all of them.
    longest: u64,
}

fn taken(
    file: &File,
    chunk: &ColumnChunkMetaData,
    data_type: &DataType,
    rows: usize,
    memory: u64,
) -> Result<Taken, ArrowError> {
    let refused = |text| ArrowError::ParquetError(text);
    let claims = check_headers(file, chunk, memory).map_err(refused)?;
    if chunk.column_descr().max_rep_level() == 0 && claims.values != rows as u64 {
        return Err(refused(format!("its pages have {} rows, and its row group says {rows}", claims.values)));
    }
    let is_text = chunk.column_type() == Type::BYTE_ARRAY;
    let mut texts = Texts::default();
    // Half-precision numbers may have lengths, too.
    if is_text || claims.has_lengths {
        for page in pages(file, chunk, rows)? {
            texts.add(&page?, chunk, memory).map_err(refused)?;
        }
    }
    let texts = if is_text { texts } else { Texts::default() };
    let width = width(chunk);
    // A place without a value may be a list of a fixed length.
    let each = width.saturating_mul(fixed_length(below_lists(data_type))).saturating_add(texts.longest);
    let all = claims.values.saturating_mul(width).saturating_add(texts.total);
    let empty = width.saturating_mul(fixed_length(data_type));
    if chunk.column_descr().max_rep_level() == 0 {
        return Ok(Taken { all, longest: if is_text { each } else { empty } });
    }
    check_size("its content", all.saturating_sub(texts.total), chunk.byte_range().1, u64::MAX).map_err(refused)?;
    let each = each.saturating_add(LEVELS);
    if claims.values.saturating_mul(each) <= most_at_once(memory) as u64 {
        return Ok(Taken { all, longest: empty });
    }
    let mut records = Records::default();
    for page in pages(file, chunk, rows)? {
        records.add(&page?, chunk).map_err(refused)?;
    }
    Ok(Taken { all, longest: records.longest.saturating_mul(each).max(empty) })
}

/// How many values a row without any stands for: lists of a fixed length have them all the same.
fn fixed_length(data_type: &DataType) -> u64 {
    match data_type {
        DataType::FixedSizeList(field, length) => {
            u64::from(length.unsigned_abs()).saturating_mul(fixed_length(field.data_type()))
        }
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
            fixed_length(field.data_type())
        }
        DataType::Struct(fields) => fields.iter().map(|field| fixed_length(field.data_type())).max().unwrap_or(1),
        _ => 1,
    }
}

/// What is inside lists of any length.
fn below_lists(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => field.data_type(),
        DataType::FixedSizeList(field, _) => below_lists(field.data_type()),
        _ => &DataType::Null,
    }
}
