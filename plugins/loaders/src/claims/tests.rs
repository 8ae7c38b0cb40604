//! Crafted files of a few hundred bytes that would take all memory or overflow the stack.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, ListArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};
use compflow_api::{Component, LoadRequest, Loader, NoHost, Services};
use parquet::arrow::ArrowWriter;

use crate::arrow::Arrow;
use crate::npy::Npy;
use crate::parquet::Parquet;
use crate::testing::{described, load_with};

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
fn footer(folder: &Path, members: &[u64]) -> PathBuf {
    // version = 1; schema = [...], no rows, no row groups.
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    footer.extend(varint(members.len() as u64));
    for members in members {
        // repetition_type = required, name = "g", num_children.
        footer.extend([0x35, 0x00, 0x18, 0x01, b'g']);
        if *members > 0 {
            footer.push(0x15);
            footer.extend(varint(members << 1));
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
    for encoding in [None, Some(parquet::basic::Encoding::DELTA_BYTE_ARRAY)] {
        let texts = arrow_array::StringArray::from_iter_values((0..1000).map(|_| &long));
        let batch = RecordBatch::try_from_iter([("embedding", Arc::new(texts) as ArrayRef)]).unwrap();
        let properties = parquet::file::properties::WriterProperties::builder();
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
    assert!(text.contains("is damaged: column `\"embedding.list.item\"` claims 80000000 bytes"), "{text}");
    write(1000, 100);
    assert_eq!(said::<Parquet>(&path), "1 batches");
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
