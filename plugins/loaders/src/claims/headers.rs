//! The headers of the pages of a Parquet column: how large they are when they are decompressed, and how many values they have.
//! Decoders make room for what a dictionary claims, and some decompress without end.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use parquet::basic::{Compression, Type};
use parquet::file::metadata::ColumnChunkMetaData;

use super::check_memory;
use super::parquet::width;
use super::walk::{Kind, Seen, Shape, Walk};

/// Bytes that most headers fit in; those with long statistics are read again, as far as any header goes.
const WINDOW: u64 = 1 << 10;
const LONGEST_HEADER: u64 = 1 << 24;

/// The kinds of pages that are read.
const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_V2: i64 = 3;

/// Encodings whose pages begin with the lengths of texts.
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;

const HEADER: Shape = &[
    (1, Kind::Number),
    (2, Kind::Number),
    (3, Kind::Number),
    (4, Kind::Number),
    // Of pages of data: values, encoding, encodings of levels. Statistics are skipped.
    (5, Kind::Structure(&[(1, Kind::Number), (2, Kind::Number), (3, Kind::Number), (4, Kind::Number)])),
    (6, Kind::Structure(&[])),
    // Of dictionaries: values, encoding, whether they are sorted.
    (7, Kind::Structure(&[(1, Kind::Number), (2, Kind::Number), (3, Kind::Truth)])),
    // Of the second version: values, nulls, rows, encoding, bytes of levels, whether the rest is compressed.
    (
        8,
        Kind::Structure(&[
            (1, Kind::Number),
            (2, Kind::Number),
            (3, Kind::Number),
            (4, Kind::Number),
            (5, Kind::Number),
            (6, Kind::Number),
            (7, Kind::Truth),
        ]),
    ),
];

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
    let (end, size) = (at.saturating_add(length), file.metadata().map_err(|error| error.to_string())?.len());
    if end > size {
        return Err(format!("its pages end at byte {end} of a file of {size}"));
    }
    let mut claims = Claims::default();
    while at < end {
        let (header, length) = read(file, at, end - at)?;
        at += length;
        if header.compressed > end - at {
            return Err(format!("a page claims {} bytes, and {} are left", header.compressed, end - at));
        }
        check_memory("a page", header.decompressed, memory)?;
        if header.is_compressed && can_exceed(chunk.compression(), header.compressed, memory) {
            file.seek(SeekFrom::Start(at + header.levels)).map_err(|error| error.to_string())?;
            let compressed = BufReader::new(file.take(header.compressed.saturating_sub(header.levels)));
            require_end(chunk.compression(), compressed, header.decompressed - header.levels)?;
        }
        match header.kind {
            DICTIONARY => check_dictionary(chunk, header.values, header.decompressed, memory)?,
            _ => claims.values = claims.values.saturating_add(header.values),
        }
        claims.has_lengths |= header.has_lengths;
        at += header.compressed;
    }
    Ok(claims)
}

/// The header at a place, and its length.
fn read(mut file: &File, at: u64, left: u64) -> Result<(Header, u64), String> {
    let most = LONGEST_HEADER.min(left);
    let mut window = WINDOW.min(most);
    loop {
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.take(window).read_to_end(&mut bytes));
        read.map_err(|error| error.to_string())?;
        let mut walk = Walk::new(&bytes, "the header of a page");
        match Header::read(&mut walk) {
            Err(_) if walk.ran_out && window < most => window = window.saturating_mul(16).min(most),
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
    /// Bytes of levels, which the second version of pages does not compress.
    levels: u64,
    is_compressed: bool,
    has_lengths: bool,
}

impl Header {
    fn read(walk: &mut Walk<'_>) -> Result<Self, String> {
        let mut numbers = Vec::new();
        let mut seen = |path: &[i64], seen: Seen| {
            if let Seen::Number(number) = seen {
                numbers.push((path.to_vec(), number));
            }
        };
        walk.structure(HEADER, &mut Vec::new(), &mut seen)?;
        let number = |path: &[i64]| numbers.iter().find(|(at, _)| at == path).map(|(_, number)| *number);
        let size_at = |path: &[i64]| number(path).map_or(Ok(0), size);
        let kind = number(&[1]).unwrap_or(-1);
        let (values, encoding) = match kind {
            DATA => (number(&[5, 1]), number(&[5, 2])),
            DICTIONARY => (number(&[7, 1]), None),
            DATA_V2 => (number(&[8, 1]), number(&[8, 4])),
            _ => (None, None),
        };
        let values = values.ok_or_else(|| format!("a page is of the kind {kind}, or does not say what it has"))?;
        let is_second = kind == DATA_V2;
        let levels = if is_second { size_at(&[8, 5])? + size_at(&[8, 6])? } else { 0 };
        let decompressed = size_at(&[2])?;
        if levels > decompressed {
            return Err(format!("a page of {decompressed} bytes claims {levels} bytes of levels"));
        }
        Ok(Self {
            kind,
            compressed: size_at(&[3])?,
            decompressed,
            values: size(values)?,
            levels,
            is_compressed: !is_second || number(&[8, 7]) != Some(0),
            has_lengths: matches!(encoding, Some(DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY)),
        })
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

/// The values of a dictionary are written one after the other, texts behind their lengths.
fn check_dictionary(chunk: &ColumnChunkMetaData, values: u64, bytes: u64, memory: u64) -> Result<(), String> {
    let held = values.saturating_mul(width(chunk));
    let written = match chunk.column_type() {
        Type::BOOLEAN => values.div_ceil(8),
        Type::BYTE_ARRAY => values.saturating_mul(4),
        _ => held,
    };
    if written > bytes {
        return Err(format!("a dictionary claims {values} values in {bytes} bytes"));
    }
    check_memory("a dictionary", held, memory)
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

    /// Fields are numbered relative to the one before, and numbers doubled.
    const PLAIN: &[u8] = &[0x15, 0, 0x15, 80, 0x15, 80, 0x2c, 0x15, 20, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0];

    fn header(bytes: &[u8]) -> Result<Header, String> {
        Header::read(&mut Walk::new(bytes, "the header of a page"))
    }

    #[test]
    fn a_header_is_read_as_decoders_read_it_or_not_at_all() {
        let found = header(PLAIN).unwrap();
        assert_eq!((found.kind, found.compressed, found.decompressed, found.values), (DATA, 40, 40, 10));
        // Numbers of other widths are written alike.
        let wide: Vec<u8> = PLAIN.iter().map(|byte| if *byte == 0x15 { 0x16 } else { *byte }).collect();
        assert_eq!(header(&wide).unwrap().values, 10);
        // The size once more, as a text, which a decoder takes for a number; likewise, behind the others, by a number of 17 bits.
        let again = [&PLAIN[..6], &[0x08, 6, 0], &PLAIN[6..]].concat();
        assert_eq!(header(&again).unwrap_err(), "the header of a page has a field 3 behind a field 3");
        let text = [&PLAIN[..4], &[0x18, 80], &PLAIN[6..]].concat();
        assert_eq!(header(&text).unwrap_err(), "the header of a page has a field 3 of the type 8");
        let far = [&PLAIN[..PLAIN.len() - 1], &[0x05, 0x86, 0x80, 0x08, 2, 0]].concat();
        assert_eq!(header(&far).unwrap_err(), "the header of a page has a field 65539 behind a field 5");
        // What decoders do not know they skip, but not lists of what is true.
        let statistics = [&PLAIN[..15], &[0x1c, 0x18, 2, 7, 7, 0], &PLAIN[15..]].concat();
        assert_eq!(header(&statistics).unwrap().values, 10);
        let truths = [&PLAIN[..15], &[0x19, 0x21, 1, 1], &PLAIN[15..]].concat();
        assert_eq!(header(&truths).unwrap_err(), "the header of a page has a list of truth values");
    }

    #[test]
    fn a_bad_header_is_not_looked_for_in_all_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        std::fs::write(&path, PLAIN).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        assert_eq!(read(&file, 0, 1 << 40).unwrap().1, PLAIN.len() as u64);
        // Zeros end a header at once; bytes that a text claims are looked for as far as any header goes.
        let text = read(&file, 1 << 20, (1 << 40) - (1 << 20)).unwrap_err();
        assert!(text.starts_with("a page is of the kind -1"), "{text}");
        std::fs::write(&path, [0xf8, 0xff, 0xff, 0xff, 0xff, 0x7f]).unwrap();
        file.set_len(1 << 40).unwrap();
        let text = read(&file, 0, 1 << 40).unwrap_err();
        assert!(text.contains("claims 34359738367 bytes and has 16777"), "{text}");
    }
}
