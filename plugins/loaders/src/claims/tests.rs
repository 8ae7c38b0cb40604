//! Crafted files of a few hundred bytes that would take all memory or overflow the stack.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, ListArray, RecordBatch, StringArray};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};
use compflow_api::{Component, LoadRequest, Loader, NoHost, Services};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::arrow::Arrow;
use crate::npy::Npy;
use crate::parquet::Parquet;
use crate::testing::{concat, described, load_with};

const EMBEDDING: [(&str, &str); 1] = [("embedding", "embedding")];

/// What a loader says of a file, when it is asked what the file holds and when it reads it.
fn said<L: Component + Loader>(path: &Path) -> String {
    let request = LoadRequest { path: Some(path), columns: &EMBEDDING };
    let services = Services { host: &NoHost, memory: 1 << 30, ..Services::none() };
    let loaded = load_with::<L>("{}", &request, &services).map(|batches| batches.len());
    // Asking must not be dangerous either.
    let _ = described::<L>("{}", &request);
    loaded.map_or_else(|error| error.to_string(), |batches| format!("{batches} batches"))
}

/// Variable-length numbers of Thrift.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A Parquet file that is nothing but a footer: a schema of groups with so many members each.
fn footer(folder: &Path, members: &[i64]) -> PathBuf {
    // version = 1; schema = [...], no rows, no row groups.
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    footer.extend(varint(members.len() as u64));
    for members in members {
        // repetition_type = required, name = "g", num_children.
        footer.extend([0x35, 0x00, 0x18, 0x01, b'g']);
        if *members != 0 {
            footer.push(0x15);
            footer.extend(varint((members << 1 ^ members >> 63) as u64));
        } else {
            // A leaf has a type, which comes first.
            let at = footer.len() - 5;
            footer.splice(at..at + 1, [0x15, 0x08, 0x25]);
        }
        footer.push(0x00);
    }
    footer.extend([0x16, 0x00, 0x19, 0x0c, 0x00]);
    let mut file = b"PAR1".to_vec();
    file.extend(&footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(b"PAR1");
    let path = folder.join("footer.parquet");
    std::fs::write(&path, file).unwrap();
    path
}

#[test]
fn a_parquet_schema_of_20000_levels_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut members = vec![1; 20_000];
    members.push(0);
    let text = said::<Parquet>(&footer(folder.path(), &members));
    assert!(text.ends_with("is not a Parquet file: its schema is nested more than 64 deep"), "{text}");
    // The same with few levels is read: only the column is missing.
    let text = said::<Parquet>(&footer(folder.path(), &[1, 1, 1, 0]));
    assert!(text.contains("names the column `embedding`, which is not in"), "{text}");
}

#[test]
fn groups_and_lists_of_a_parquet_footer_have_what_they_claim() {
    let folder = tempfile::tempdir().unwrap();
    let text = said::<Parquet>(&footer(folder.path(), &[1 << 31, 0]));
    assert!(text.ends_with("a group of its schema claims 2147483648 members, and 1 follow"), "{text}");
    let path = footer(folder.path(), &[1, 0]);
    let mut bytes = std::fs::read(&path).unwrap();
    // The schema's list of two elements claims 2^31.
    let at = bytes.iter().position(|byte| *byte == 0xfc).unwrap();
    bytes.splice(at + 1..at + 2, varint(1 << 31));
    let footer = (bytes.len() - 12) as u32;
    let end = bytes.len() - 8;
    bytes.splice(end..end + 4, footer.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    let text = said::<Parquet>(&path);
    assert!(text.contains("a list of its footer claims 2147483648 elements in "), "{text}");
}

/// One text that is in the file once, and would be in a batch as often as there are rows.
#[test]
fn a_long_text_that_many_rows_share_comes_out_a_few_rows_at_a_time_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.parquet");
    let long = "x".repeat(1 << 18);
    for encoding in [None, Some(Encoding::DELTA_BYTE_ARRAY)] {
        let texts = StringArray::from_iter_values((0..1000).map(|_| &long));
        let batch = RecordBatch::try_from_iter([("embedding", Arc::new(texts) as ArrayRef)]).unwrap();
        let properties = WriterProperties::builder();
        let properties = match encoding {
            None => properties,
            Some(encoding) => properties.set_dictionary_enabled(false).set_encoding(encoding),
        };
        let mut writer =
            ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let request = LoadRequest { path: Some(&path), columns: &EMBEDDING };
        let load =
            |memory| load_with::<Parquet>("{}", &request, &Services { host: &NoHost, memory, ..Services::none() });
        let batches = load(1 << 24).unwrap();
        assert!(batches.iter().all(|batch| batch.num_rows() <= 8), "{encoding:?}");
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1000);
        let text = load(1 << 20).unwrap_err().to_string();
        assert!(text.contains("texts.parquet is damaged: a text of column"), "{text}");
        assert!(text.contains("takes more than 131072 bytes"), "{text}");
    }
}

/// A Parquet file of these texts, a hundred of each, uncompressed and so that what pages say can be found.
fn texts(path: &Path, encoding: Option<Encoding>) -> Vec<u8> {
    let texts = StringArray::from_iter_values((0..1000).map(|at| format!("text {}", at % 100)));
    let batch = RecordBatch::try_from_iter([("embedding", Arc::new(texts) as ArrayRef)]).unwrap();
    let properties = WriterProperties::builder().set_dictionary_enabled(encoding.is_none());
    let properties = match encoding {
        None => properties,
        Some(encoding) => properties.set_encoding(encoding),
    };
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert_eq!(said::<Parquet>(path), "1 batches", "{encoding:?}");
    std::fs::read(path).unwrap()
}

/// Where these bytes stand in others.
fn places(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    (0..bytes.len()).filter(|at| bytes[*at..].starts_with(wanted)).collect()
}

#[test]
fn a_parquet_page_has_as_many_texts_as_its_lengths_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lengths.parquet");
    for (encoding, lists) in [(Encoding::DELTA_LENGTH_BYTE_ARRAY, 1), (Encoding::DELTA_BYTE_ARRAY, 2)] {
        let bytes = texts(&path, Some(encoding));
        // Blocks of 128 in four parts, a thousand values.
        let header = [&[0x80, 0x01, 0x04][..], &varint(1000)].concat();
        let found = places(&bytes, &header);
        assert_eq!(found.len(), lists, "{encoding}");
        for at in found {
            for claimed in [1001, 100_000_000_000_000_000] {
                let mut bytes = bytes.clone();
                let claim = varint(claimed);
                bytes[at + 3..at + 3 + claim.len()].copy_from_slice(&claim);
                std::fs::write(&path, bytes).unwrap();
                let text = said::<Parquet>(&path);
                assert!(text.contains(&format!("a page of 1000 texts claims {claimed} lengths")), "{text}");
            }
            let mut bytes = bytes.clone();
            // No parts.
            bytes[at + 2] = 0;
            std::fs::write(&path, bytes).unwrap();
            let text = said::<Parquet>(&path);
            assert!(text.contains("the lengths of a page are in blocks of nothing"), "{text}");
        }
    }
}

#[test]
fn a_parquet_dictionary_has_the_values_that_it_claims() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dictionary.parquet");
    let mut bytes = texts(&path, None);
    // The seventh field, a structure with a number first: a hundred, which is doubled as it is written.
    let found = places(&bytes, &[&[0x4c, 0x15][..], &varint(200)].concat());
    let [at] = found[..] else { panic!("{found:?}") };
    bytes[at + 2..at + 4].copy_from_slice(&varint(2 * 8191));
    std::fs::write(&path, bytes).unwrap();
    let text = said::<Parquet>(&path);
    assert!(text.contains("a dictionary claims 8191 values in 1090 bytes"), "{text}");
}

#[test]
fn a_parquet_page_decompresses_to_what_it_claims_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.parquet");
    let values: ArrayRef = Arc::new(Float32Array::from_iter_values((0..10_000).map(|at| (at % 3000) as f32)));
    let batch = RecordBatch::try_from_iter([("embedding", values)]).unwrap();
    for (compression, can_exceed) in [
        (Compression::BROTLI(BrotliLevel::default()), true),
        (Compression::GZIP(GzipLevel::default()), true),
        (Compression::LZ4_RAW, false),
        (Compression::SNAPPY, false),
        (Compression::ZSTD(ZstdLevel::default()), false),
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties = WriterProperties::builder()
                .set_compression(compression)
                .set_writer_version(version)
                .set_dictionary_enabled(false)
                .set_encoding(Encoding::PLAIN);
            let file = File::create(&path).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            let said = |bytes: &[u8]| {
                std::fs::write(&path, bytes).unwrap();
                let request = LoadRequest { path: Some(&path), columns: &EMBEDDING };
                let services = Services { host: &NoHost, memory: 1 << 20, ..Services::none() };
                let loaded = load_with::<Parquet>("{}", &request, &services);
                loaded.map_or_else(
                    |error| error.to_string(),
                    |batches| format!("{} rows", concat(&batches).num_rows()),
                )
            };
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(said(&bytes), "10000 rows", "{compression:?}");
            // The first page begins with its kind; the sizes follow, doubled as they are written.
            let at = 7;
            assert_eq!([bytes[4], bytes[6]], [0x15, 0x15]);
            let size = |at: usize| {
                let length = bytes[at..].iter().position(|byte| *byte < 0x80).unwrap() + 1;
                let number =
                    bytes[at..at + length].iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f));
                (number / 2, length)
            };
            let (decompressed, length) = size(at);
            let next = at + length + 1;
            let (compressed, short) = size(next);
            assert!(decompressed >= 40_000 && length == 3, "{decompressed}");
            // Less than comes out of it.
            let mut less = bytes.clone();
            less[at..at + length].copy_from_slice(&varint(2 * (decompressed - 1)));
            let text = said(&less);
            let expected =
                ["bytes, and more come out of it", "pages.parquet is damaged: "][usize::from(!can_exceed)];
            assert!(text.contains(expected), "{compression:?}: {text}");
            // More than can come out of it, and two bytes less follow.
            let mut more = bytes.clone();
            let claim = varint(2 * (1 << 30));
            more[next..next + short].copy_from_slice(&varint(2 * (compressed - 2)));
            more.splice(at..at + length, claim);
            let text = said(&more);
            assert!(text.contains("a page needs 1073741824 bytes, more than the"), "{compression:?}: {text}");
            // More than there is in the file.
            let mut past = bytes.clone();
            let most = (1 << (7 * short - 1)) - 1;
            past[next..next + short].copy_from_slice(&varint(2 * most));
            let text = said(&past);
            assert!(text.contains(&format!("a page claims {most} bytes, and {compressed} are left")), "{text}");
        }
    }
}

#[test]
fn one_row_of_a_parquet_file_that_decodes_to_all_memory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.parquet");
    let write = |rows: usize, length: usize| {
        let values = Arc::new(Float32Array::from(vec![0.0; rows * length]));
        let item = Arc::new(Field::new_list_field(DataType::Float32, false));
        let lists = ListArray::new(item, OffsetBuffer::from_lengths(vec![length; rows]), values, None);
        let batch = RecordBatch::try_from_iter([("embedding", Arc::new(lists) as ArrayRef)]).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        std::fs::metadata(&path).unwrap().len()
    };
    let length = write(1, 20_000_000);
    assert!(length < 2000, "{length}");
    let text = said::<Parquet>(&path);
    assert!(
        text.contains("is damaged: column `\"embedding.list.item\"`: its content claims 80000000 bytes"),
        "{text}"
    );
    write(1000, 100);
    assert_eq!(said::<Parquet>(&path), "1 batches");
}

/// Lists of zeros and ones of these lengths, and how much the loader says that one row, or the largest of its batches, takes.
fn lists_of(path: &Path, lengths: &[usize], memory: u64) -> Result<usize, String> {
    let values = Arc::new(Float32Array::from_iter_values((0..lengths.iter().sum()).map(|at| (at % 2) as f32)));
    let item = Arc::new(Field::new_list_field(DataType::Float32, false));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths(lengths.iter().copied()), values, None);
    let batch = RecordBatch::try_from_iter([("embedding", Arc::new(lists) as ArrayRef)]).unwrap();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let properties = WriterProperties::builder().set_writer_version(version).build();
        let mut writer =
            ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let batches = within(path, memory)?;
        assert_eq!(concat(&batches), batch);
    }
    Ok(within(path, memory)?.iter().map(RecordBatch::num_rows).max().unwrap())
}

/// What is read with so much memory.
fn within(path: &Path, memory: u64) -> Result<Vec<RecordBatch>, String> {
    let request = LoadRequest { path: Some(path), columns: &EMBEDDING };
    let services = Services { host: &NoHost, memory, ..Services::none() };
    load_with::<Parquet>("{}", &request, &services).map_err(|error| error.to_string())
}

#[test]
fn a_row_of_a_parquet_file_is_held_to_the_memory_however_many_empty_ones_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.parquet");
    let mut lengths = vec![0; 100_000];
    lengths[70_000] = 1_000_000;
    let text = lists_of(&path, &lengths, 1 << 24).unwrap_err();
    assert!(text.contains("a row of column `\"embedding.list.item\"` takes more than 2097152 bytes"), "{text}");
    assert!(lists_of(&path, &lengths, 1 << 30).unwrap() > 1000);
    // As large as the whole of it, and even.
    assert!(lists_of(&path, &[50; 20_000], 1 << 24).unwrap() > 1000);
}

#[test]
fn batches_of_a_parquet_file_are_as_large_when_they_are_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bits.parquet");
    // A megabyte, whatever little the file has for them.
    assert_eq!(lists_of(&path, &[2048; 1000], 1 << 30).unwrap(), 128);
}

#[test]
fn lists_of_a_fixed_length_that_are_null_take_their_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("null.parquet");
    let none = (0..300).map(|_| None::<Vec<Option<f32>>>);
    let embedding: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(none, 10_000));
    let batch = RecordBatch::try_from_iter_with_nullable([("embedding", embedding, true)]).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let batches = within(&path, 1 << 24).unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() <= 52), "{}", batches[0].num_rows());
    let text = within(&path, 1 << 18).map(|batches| batches.len());
    assert_eq!(text, Ok(300), "one at a time, where there is hardly room for it");
}

#[test]
fn texts_of_one_row_that_share_what_they_begin_with_are_held_to_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.parquet");
    let long = "x".repeat(1 << 16);
    let texts = Arc::new(StringArray::from_iter_values((0..100).map(|_| &long)));
    let item = Arc::new(Field::new_list_field(DataType::Utf8, false));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths([100]), texts, None);
    let batch = RecordBatch::try_from_iter([("embedding", Arc::new(lists) as ArrayRef)]).unwrap();
    let properties = WriterProperties::builder().set_dictionary_enabled(false);
    let properties = properties.set_encoding(Encoding::DELTA_BYTE_ARRAY).build();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let text = within(&path, 1 << 24).unwrap_err();
    assert!(text.contains("a text of column `\"embedding.list.item\"` takes more than 2097152 bytes"), "{text}");
    assert_eq!(concat(&within(&path, 1 << 27).unwrap()), batch);
}

#[test]
fn a_parquet_footer_is_held_to_the_memory_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.parquet");
    let file = File::create(&path).unwrap();
    file.set_len(5 << 30).unwrap();
    let mut file = File::options().append(true).open(&path).unwrap();
    file.write_all(&[0xf0, 0xff, 0xff, 0xff]).and_then(|()| file.write_all(b"PAR1")).unwrap();
    let text = within(&path, 1 << 28).unwrap_err();
    assert!(text.contains("its footer needs 137438952960 bytes, more than the 268435456"), "{text}");
}

#[test]
fn a_parquet_file_whose_rows_are_counted_differently_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let values: ArrayRef = Arc::new(Float32Array::from_iter_values((0..1000).map(|at| at as f32)));
    let batch = RecordBatch::try_from_iter([("embedding", values)]).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    // As numbers of 64 bits, doubled: of the file, of its values, and of the row group.
    let found = places(&bytes, &[&[0x16][..], &varint(2000)].concat());
    assert!(found.len() >= 3, "{found:?}");
    let said = |changed: &[usize]| {
        let mut bytes = bytes.clone();
        changed.iter().for_each(|at| bytes[at + 1..at + 3].copy_from_slice(&varint(1998)));
        std::fs::write(&path, bytes).unwrap();
        said::<Parquet>(&path)
    };
    assert_eq!(said(&[]), "1 batches");
    let (first, last) = (found[0], found[found.len() - 1]);
    let text = said(&[first]);
    assert!(text.contains("it says that it has 999 rows, and its row groups have 1000"), "{text}");
    let text = said(&[last]);
    assert!(text.contains("it says that it has 1000 rows, and its row groups have 999"), "{text}");
    let text = said(&[first, last]);
    assert!(text.contains("its pages have 1000 rows, and its row group says 999"), "{text}");
}

#[test]
fn a_parquet_page_that_is_not_what_its_checksum_says_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checksum.parquet");
    let mut bytes = include_bytes!("../../tests/fixtures/checksum.parquet").to_vec();
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(said::<Parquet>(&path), "1 batches");
    let [at] = places(&bytes, &5_f32.to_le_bytes())[..] else { panic!() };
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let text = said::<Parquet>(&path);
    assert!(text.contains("checksum") && text.contains("is damaged"), "{text}");
}

/// Decoders do not look at the types of fields, so those that say another one hide what is behind them from who does.
#[test]
fn a_parquet_schema_is_read_as_its_decoder_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = footer(folder.path(), &[1, 1, 0]);
    let bytes = std::fs::read(&path).unwrap();
    let said = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        said::<Parquet>(&path)
    };
    // The schema as a set; the number of members as a text.
    for (from, to, what) in [(0x19, 0x1a, "2 of the type 10"), (0x15, 0x18, "of the type 8")] {
        let mut wrong = bytes.clone();
        let at = wrong.iter().enumerate().position(|(at, byte)| at > 5 && *byte == from).unwrap();
        wrong[at] = to;
        let text = said(&wrong);
        assert!(text.contains("its footer has a field ") && text.contains(what), "{text}");
    }
    // Members as a number of 64 bits, of which a decoder takes 32.
    let text = said(&std::fs::read(footer(folder.path(), &[(1 << 32) + 1, 0])).unwrap());
    assert!(text.contains("a group of its schema claims 4294967297 members, and 1 follow"), "{text}");
    let text = said(&std::fs::read(footer(folder.path(), &[-(1 << 32) + 1, 0])).unwrap());
    assert!(text.contains("a group of its schema claims -4294967295 members, and 1 follow"), "{text}");
}

#[test]
fn a_compressed_arrow_buffer_that_claims_more_than_there_is_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("claims.arrow");
    let rows = (0..1000).map(|_| Some([Some(0.0), Some(0.0)]));
    let embedding: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2));
    let batch = RecordBatch::try_from_iter([("embedding", embedding)]).unwrap();
    for stream in [false, true] {
        for compression in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
            let options = IpcWriteOptions::default().try_with_compression(Some(compression)).unwrap();
            let file = File::create(&path).unwrap();
            if stream {
                let mut writer = StreamWriter::try_new_with_options(file, &batch.schema(), options).unwrap();
                writer.write(&batch).unwrap();
                writer.finish().unwrap();
            } else {
                let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options).unwrap();
                writer.write(&batch).unwrap();
                writer.finish().unwrap();
            }
            assert_eq!(said::<Arrow>(&path), "1 batches");
            let mut bytes = std::fs::read(&path).unwrap();
            let length = 8000_i64.to_le_bytes();
            let at = bytes.windows(8).position(|window| window == length).unwrap();
            for (claimed, expected) in [
                (100_000_000_000_000_000_i64, "a compressed buffer claims 100000000000000000 bytes, and "),
                (i64::MAX, "a compressed buffer claims 9223372036854775807 bytes, and "),
                (8001, "is damaged: "),
            ] {
                bytes[at..at + 8].copy_from_slice(&claimed.to_le_bytes());
                std::fs::write(&path, &bytes).unwrap();
                let text = said::<Arrow>(&path);
                assert!(text.contains(expected), "{stream} {compression:?}: {text}");
            }
        }
    }
}

#[test]
fn an_npy_header_of_20000_levels_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.npy");
    let write = |header: String, claimed: u32| {
        let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
        bytes.extend(claimed.to_le_bytes());
        bytes.extend(header.into_bytes());
        std::fs::write(&path, bytes).unwrap();
        said::<Npy>(&path)
    };
    for bracket in ["[", "(", "{"] {
        let header = format!("{{'descr': {}", bracket.repeat(20_000));
        let text = write(header.clone(), header.len() as u32);
        assert!(text.ends_with("is not an npy file: its header is nested more than 6 deep"), "{text}");
    }
    let text = write("{}".to_owned(), u32::MAX);
    assert!(text.ends_with("its header claims 4294967295 bytes, more than 1048576"), "{text}");
}

#[test]
#[cfg(unix)]
fn what_is_no_file_is_not_waited_for() {
    for path in ["/dev/zero", "/dev/null"] {
        let texts =
            [said::<Parquet>(Path::new(path)), said::<Arrow>(Path::new(path)), said::<Npy>(Path::new(path))];
        for text in texts {
            assert_eq!(text, format!("{path} is no file but a pipe or a device, expected a file"));
        }
    }
}
