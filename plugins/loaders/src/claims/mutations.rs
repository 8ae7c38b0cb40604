//! Files with a few bytes changed or repeated, or cut off somewhere: every one is read or refused. None ends the process, and none makes
//! our own code panic, which would be caught and look like a refusal. Decoders of other people may: that must become an error.

#[path = "../../../../docs/row.rs"]
mod page;

use std::cell::{Cell, RefCell};
use std::io::Cursor;
use std::panic::{set_hook, take_hook};
use std::path::Path;
use std::sync::Once;

use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use compflow_api::{Component, LoadRequest, Loader, NoHost, Services};
use parquet::arrow::ArrowWriter;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::page::row;
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

thread_local! {
    /// Where our own code has panicked in this thread, the last time.
    static OURS: RefCell<Option<String>> = const { RefCell::new(None) };
    /// Whether a dependency has.
    static THEIRS: Cell<bool> = const { Cell::new(false) };
}

/// Notes from now on where threads panic, whoever makes an error of it.
fn watch_panics() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            match panic.location() {
                Some(place) if place.file().contains("/registry/") => THEIRS.set(true),
                place => drop(OURS.replace(Some(place.map_or_else(String::new, ToString::to_string)))),
            }
            others(panic);
        }));
    });
}

/// Whether a file is read; that it is not is fine.
fn reads<L: Component + Loader>(path: &Path, columns: &[(&str, &str)]) -> bool {
    let request = LoadRequest { path: Some(path), columns };
    let services = Services { host: &NoHost, memory: 1 << 28, ..Services::none() };
    let described = described::<L>("{}", &request).err().map(|error| error.to_string());
    THEIRS.set(false);
    let loaded = load_with::<L>("{}", &request, &services).map_err(|error| error.to_string());
    let panic = described.into_iter().chain(loaded.as_ref().err().cloned()).find(|text| text.contains("panicked"));
    let name = path.display().to_string();
    assert_eq!((panic, OURS.take()), (None, None), "{name}");
    let is_named = loaded.as_ref().is_err_and(|error| error.contains(&name));
    assert!(!THEIRS.get() || is_named, "{name}: a decoder panicked, and what is said is {loaded:?}");
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

/// How many files of a kind were mutated, and how many were cut off.
type Tried = [usize; 2];

fn tried<L: Component + Loader>(name: &str, content: &[u8], columns: &[(&str, &str)]) -> Tried {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let mut random = ChaCha8Rng::seed_from_u64(name.len() as u64);
    std::fs::write(&path, content).unwrap();
    assert!(reads::<L>(&path, columns), "{name} as it should be");
    let (mut tried, mut refused) = ([0, 0], 0);
    for _ in 0..TRIALS {
        std::fs::write(&path, mutated(content, &mut random)).unwrap();
        refused += usize::from(!reads::<L>(&path, columns));
        tried[0] += 1;
    }
    assert!(refused > TRIALS / 10, "{name}: {refused} refused");
    for cut in 0..CUT {
        std::fs::write(&path, &content[..cut * content.len() / CUT]).unwrap();
        reads::<L>(&path, columns);
        tried[1] += 1;
    }
    tried
}

const COLUMNS: [(&str, &str); 3] = [("embedding", "vector"), ("truth", "sets"), ("trial", "fold")];

#[test]
fn mutated_files_and_those_that_are_cut_off_are_read_or_refused() {
    watch_panics();
    let kinds: [fn() -> Tried; 6] = [parquet, arrow_file, arrow_stream, npy, csv, json_lines];
    let tried: Vec<Tried> = std::thread::scope(|scope| {
        let kinds = kinds.map(|kind| scope.spawn(kind));
        kinds.into_iter().map(|kind| kind.join().unwrap()).collect()
    });
    let faults = [
        "mutated Parquet, Arrow, npy, CSV and JSON files",
        "Parquet, Arrow, npy, CSV and JSON files that are cut off",
    ];
    for (at, fault) in faults.into_iter().enumerate() {
        let all: usize = tried.iter().map(|kind| kind[at]).sum();
        assert_eq!(row(&format!("{fault}, read or refused")), [all, all, 0, 0], "{fault}");
    }
}

fn parquet() -> Tried {
    let mut content = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut content, fruits().schema(), None).unwrap();
    writer.write(&fruits()).unwrap();
    writer.close().unwrap();
    tried::<Parquet>("fruits.parquet", &content, &COLUMNS)
}

fn compressed() -> IpcWriteOptions {
    IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap()
}

fn arrow_file() -> Tried {
    let mut content = Cursor::new(Vec::new());
    let mut writer = FileWriter::try_new_with_options(&mut content, &fruits().schema(), compressed()).unwrap();
    writer.write(&fruits()).unwrap();
    writer.finish().unwrap();
    drop(writer);
    tried::<Arrow>("file.arrow", content.get_ref(), &COLUMNS)
}

fn arrow_stream() -> Tried {
    let mut content = Vec::new();
    let mut writer = StreamWriter::try_new_with_options(&mut content, &fruits().schema(), compressed()).unwrap();
    writer.write(&fruits()).unwrap();
    writer.finish().unwrap();
    drop(writer);
    tried::<Arrow>("stream.arrow", &content, &COLUMNS)
}

fn npy() -> Tried {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 3), }";
    let mut content = b"\x93NUMPY\x01\x00".to_vec();
    content.extend((header.len() as u16).to_le_bytes());
    content.extend(header.as_bytes());
    content.extend([0; 12 * 3 * 4]);
    tried::<Npy>("array.npy", &content, &[("embedding", "embedding")])
}

fn csv() -> Tried {
    let mut content = "x,y,\"sets\",fold\n".to_owned();
    content.extend((0..12).map(|row| format!("{row}.5,-1e{row},\"a, {row}\",{}\r\n", row % 3)));
    let columns = [("column:x", "x"), ("column:y", "y"), ("truth", "sets"), ("trial", "fold")];
    tried::<Csv>("points.csv", content.as_bytes(), &columns)
}

fn json_lines() -> Tried {
    let line =
        |row: u32| format!("{{\"vector\": [{row}, -0.5e1], \"sets\": [\"a\", \"{row}\"], \"fold\": {row}}}\n");
    let content: String = (0..10).map(line).collect();
    tried::<Json>("points.jsonl", content.as_bytes(), &COLUMNS)
}
