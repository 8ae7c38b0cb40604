//! Files with a few bytes changed or repeated, or cut off somewhere: every one is read or refused, and none ends the process or panics,
//! which would be caught at the boundary and look like a refusal.

use std::fs::File;
use std::path::Path;

use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use compflow_api::{Component, LoadRequest, Loader, NoHost, Services};
use parquet::arrow::ArrowWriter;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::arrow::Arrow;
use crate::csv::Csv;
use crate::json::Json;
use crate::npy::Npy;
use crate::parquet::Parquet;
use crate::testing::{described, fruits, load_with};

/// Times six kinds of files.
const TRIALS: usize = 500;
/// Likewise: in how many places each is cut off.
const CUT: usize = 100;

/// Whether a file is read; that it is not is fine.
fn reads<L: Component + Loader>(path: &Path, columns: &[(&str, &str)]) -> bool {
    let request = LoadRequest { path: Some(path), columns };
    let services = Services { host: &NoHost, memory: 1 << 28, ..Services::none() };
    let described = described::<L>("{}", &request).err().map(|error| error.to_string());
    let loaded = load_with::<L>("{}", &request, &services).map_err(|error| error.to_string());
    let panic = described.into_iter().chain(loaded.as_ref().err().cloned()).find(|text| text.contains("panicked"));
    assert_eq!(panic, None, "{}", path.display());
    loaded.is_ok()
}

/// The content with something wrong in it.
fn mutated(content: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = content.to_vec();
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..6) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes[at] ^= 1 << random.random_range(0..8),
            2 => bytes[at] = random.random(),
            3 => bytes[at] = [0, 0x7f, 0x80, 0xff][random.random_range(0..4)],
            4 => {
                let end = (at + random.random_range(1..9)).min(bytes.len());
                bytes[at..end].fill(0xff);
            }
            _ => {
                let end = (at + random.random_range(1..64)).min(bytes.len());
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

fn tried<L: Component + Loader>(name: &str, content: &[u8], columns: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let mut random = ChaCha8Rng::seed_from_u64(name.len() as u64);
    std::fs::write(&path, content).unwrap();
    assert!(reads::<L>(&path, columns), "{name} as it should be");
    let mut refused = 0;
    for _ in 0..TRIALS {
        std::fs::write(&path, mutated(content, &mut random)).unwrap();
        refused += usize::from(!reads::<L>(&path, columns));
    }
    assert!(refused > TRIALS / 10, "{name}: {refused} refused");
    for cut in 0..CUT {
        std::fs::write(&path, &content[..cut * content.len() / CUT]).unwrap();
        reads::<L>(&path, columns);
    }
}

const COLUMNS: [(&str, &str); 3] = [("embedding", "vector"), ("truth", "sets"), ("trial", "fold")];

#[test]
fn mutated_parquet_files_are_read_or_refused() {
    let mut content = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut content, fruits().schema(), None).unwrap();
    writer.write(&fruits()).unwrap();
    writer.close().unwrap();
    tried::<Parquet>("fruits.parquet", &content, &COLUMNS);
}

#[test]
fn mutated_arrow_files_and_streams_are_read_or_refused() {
    let options = || IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole");
    let mut writer =
        FileWriter::try_new_with_options(File::create(&path).unwrap(), &fruits().schema(), options()).unwrap();
    writer.write(&fruits()).unwrap();
    writer.finish().unwrap();
    tried::<Arrow>("file.arrow", &std::fs::read(&path).unwrap(), &COLUMNS);
    let mut writer =
        StreamWriter::try_new_with_options(File::create(&path).unwrap(), &fruits().schema(), options()).unwrap();
    writer.write(&fruits()).unwrap();
    writer.finish().unwrap();
    tried::<Arrow>("stream.arrow", &std::fs::read(&path).unwrap(), &COLUMNS);
}

#[test]
fn mutated_npy_files_are_read_or_refused() {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 3), }";
    let mut content = b"\x93NUMPY\x01\x00".to_vec();
    content.extend((header.len() as u16).to_le_bytes());
    content.extend(header.as_bytes());
    content.extend([0; 12 * 3 * 4]);
    tried::<Npy>("array.npy", &content, &[("embedding", "embedding")]);
}

#[test]
fn mutated_csv_files_are_read_or_refused() {
    let mut content = "x,y,\"sets\",fold\n".to_owned();
    content.extend((0..12).map(|row| format!("{row}.5,-1e{row},\"a, {row}\",{}\r\n", row % 3)));
    let columns = [("column:x", "x"), ("column:y", "y"), ("truth", "sets"), ("trial", "fold")];
    tried::<Csv>("points.csv", content.as_bytes(), &columns);
}

#[test]
fn mutated_json_lines_are_read_or_refused() {
    let line =
        |row: u32| format!("{{\"vector\": [{row}, -0.5e1], \"sets\": [\"a\", \"{row}\"], \"fold\": {row}}}\n");
    let content: String = (0..10).map(line).collect();
    tried::<Json>("points.jsonl", content.as_bytes(), &COLUMNS);
}
