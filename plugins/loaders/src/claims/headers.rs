//! The headers of the pages of a Parquet column: how large they are when they are decompressed, and how many values they have.
//! Decoders make room for what a dictionary claims, and some decompress without end.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use parquet::basic::{Compression, Type};
use parquet::file::metadata::ColumnChunkMetaData;

use super::check_size;
use super::walk::{FALSE, STRUCT, Walk};

/// Bytes that most headers fit in; those with long statistics are read again.
const WINDOW: u64 = 1 << 10;

/// The kinds of pages that are read.
const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_V2: i64 = 3;

/// Encodings whose pages begin with the lengths of texts.
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;

/// What the pages of a column claim.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Values of all of them, and places where there is none.
    pub(super) values: u64,
    /// Whether some have texts that begin with their lengths.
    pub(super) has_lengths: bool,
}

/// Goes through the headers.
///
/// # Errors
/// If a page claims what it cannot hold, or more than the memory.
pub(super) fn check_headers(mut file: &File, chunk: &ColumnChunkMetaData, memory: u64) -> Result<Claims, String> {
    let (mut at, length) = chunk.byte_range();
    let end = at.saturating_add(length);
    let mut claims = Claims::default();
    while at < end {
        let (header, length) = read(file, at, end - at)?;
        at += length;
        if header.compressed > end - at {
            return Err(format!("a page claims {} bytes, and {} are left", header.compressed, end - at));
        }
        check_size("a page", header.decompressed, header.compressed, memory)?;
        if header.is_compressed && can_exceed(chunk.compression(), header.compressed, memory) {
            file.seek(SeekFrom::Start(at + header.levels)).map_err(|error| error.to_string())?;
            let compressed = BufReader::new(file.take(header.compressed.saturating_sub(header.levels)));
            require_end(chunk.compression(), compressed, header.decompressed - header.levels)?;
        }
        match header.kind {
            DICTIONARY => check_dictionary(chunk, header.values, header.decompressed)?,
            _ => claims.values = claims.values.saturating_add(header.values),
        }
        claims.has_lengths |= header.has_lengths();
        at += header.compressed;
    }
    Ok(claims)
}

/// The header at a place, and its length.
fn read(mut file: &File, at: u64, left: u64) -> Result<(Header, u64), String> {
    let mut window = WINDOW.min(left);
    loop {
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.take(window).read_to_end(&mut bytes));
        read.map_err(|error| error.to_string())?;
        let mut walk = Walk::new(&bytes, "the header of a page");
        match Header::read(&mut walk) {
            Err(_) if window < left => window = window.saturating_mul(16).min(left),
            found => return found.map(|header| (header, (bytes.len() - walk.left()) as u64)),
        }
    }
}

/// What a header says.
#[derive(Debug, Default)]
struct Header {
    kind: i64,
    compressed: u64,
    decompressed: u64,
    values: u64,
    encoding: i64,
    /// Bytes of levels, which the second version of pages does not compress.
    levels: u64,
    is_compressed: bool,
}

impl Header {
    fn read(walk: &mut Walk<'_>) -> Result<Self, String> {
        let (mut header, mut of_kind) = (Self::default(), [None, None, None, None]);
        let mut field = 0;
        while let Some(kind) = walk.field(&mut field)? {
            match (field, kind) {
                (1, 4..=6) => header.kind = walk.zigzag()?,
                (2, 4..=6) => header.decompressed = size(walk.zigzag()?)?,
                (3, 4..=6) => header.compressed = size(walk.zigzag()?)?,
                (5, STRUCT) => of_kind[DATA as usize] = Some(OfKind::read(walk, 2)?),
                (7, STRUCT) => of_kind[DICTIONARY as usize] = Some(OfKind::read(walk, 2)?),
                (8, STRUCT) => {
                    let second = OfKind::read(walk, 4)?;
                    header.levels = second.levels;
                    of_kind[DATA_V2 as usize] = Some(second);
                }
                _ => walk.skip(kind, 0)?,
            }
        }
        let found = usize::try_from(header.kind).ok().and_then(|kind| of_kind.get_mut(kind)?.take());
        let found =
            found.ok_or_else(|| format!("a page is of the kind {}, or does not say what it has", header.kind))?;
        let is_compressed = header.kind != DATA_V2 || found.is_compressed;
        if header.levels > header.decompressed {
            return Err(format!(
                "a page of {} bytes claims {} bytes of levels",
                header.decompressed, header.levels
            ));
        }
        Ok(Self { values: found.values, encoding: found.encoding, is_compressed, ..header })
    }

    fn has_lengths(&self) -> bool {
        self.kind != DICTIONARY && matches!(self.encoding, DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY)
    }
}

/// The part of a header that is only there for its kind.
struct OfKind {
    values: u64,
    encoding: i64,
    levels: u64,
    is_compressed: bool,
}

impl OfKind {
    /// Encodings are not in the same field for all kinds.
    fn read(walk: &mut Walk<'_>, encoding: i64) -> Result<Self, String> {
        let mut found = Self { values: 0, encoding: 0, levels: 0, is_compressed: true };
        let is_second = encoding == 4;
        let mut field = 0;
        while let Some(kind) = walk.field(&mut field)? {
            match (field, kind) {
                (1, 4..=6) => found.values = size(walk.zigzag()?)?,
                (field, 4..=6) if field == encoding => found.encoding = walk.zigzag()?,
                (5 | 6, 4..=6) if is_second => found.levels += size(walk.zigzag()?)?,
                (7, kind) if is_second => {
                    found.is_compressed = kind != FALSE;
                    walk.skip(kind, 0)?;
                }
                _ => walk.skip(kind, 0)?,
            }
        }
        Ok(found)
    }
}

/// A size is a number of 32 bits.
fn size(number: i64) -> Result<u64, String> {
    i32::try_from(number)
        .ok()
        .and_then(|number| u64::try_from(number).ok())
        .ok_or_else(|| format!("a page claims a size of {number}"))
}

/// Whether a page may decompress to more than it claims and than the memory: the others end at what is claimed, or cannot.
fn can_exceed(compression: Compression, bytes: u64, memory: u64) -> bool {
    let times = match compression {
        Compression::GZIP(_) => 1032,
        Compression::BROTLI(_) => u64::MAX,
        Compression::LZ4 => 255,
        _ => return false,
    };
    bytes.saturating_mul(times) > memory
}

/// Refuses what goes on after so many bytes. What is wrong otherwise is for the decoder to say.
fn require_end(compression: Compression, compressed: impl Read, claimed: u64) -> Result<(), String> {
    let mut decoder: Box<dyn Read + '_> = match compression {
        Compression::GZIP(_) => Box::new(flate2::read::MultiGzDecoder::new(compressed)),
        Compression::BROTLI(_) => Box::new(brotli::Decompressor::new(compressed, 1 << 12)),
        _ => Box::new(lz4_flex::frame::FrameDecoder::new(compressed)),
    };
    match io::copy(&mut decoder.by_ref().take(claimed + 1), &mut io::sink()) {
        Ok(bytes) if bytes > claimed => Err(format!("a page claims {claimed} bytes, and more come out of it")),
        _ => Ok(()),
    }
}

/// The values of a dictionary are written one after the other.
fn check_dictionary(chunk: &ColumnChunkMetaData, values: u64, bytes: u64) -> Result<(), String> {
    let bits = match chunk.column_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 32,
        Type::INT64 | Type::DOUBLE => 64,
        Type::INT96 => 96,
        Type::FIXED_LEN_BYTE_ARRAY => u64::from(chunk.column_descr().type_length().max(1).unsigned_abs()) * 8,
    };
    match values.saturating_mul(bits) > bytes * 8 {
        true => Err(format!("a dictionary claims {values} values in {bytes} bytes")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Which is how some old programs have written pages that say LZ4.
    #[test]
    fn frames_of_lz4_end_where_they_claim() {
        let mut frame = lz4_flex::frame::FrameEncoder::new(Vec::new());
        frame.write_all(&[0; 1000]).unwrap();
        let frame = frame.finish().unwrap();
        assert_eq!(require_end(Compression::LZ4, &frame[..], 1000), Ok(()));
        let text = require_end(Compression::LZ4, &frame[..], 999).unwrap_err();
        assert_eq!(text, "a page claims 999 bytes, and more come out of it");
        assert_eq!(require_end(Compression::LZ4, &b"no frame"[..], 0), Ok(()));
    }
}
