//! Safetensors files beside the data: one may be a composer's weights.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Headers of weights are far smaller.
const LONGEST_HEADER: u64 = 1 << 20;

/// The files in the folder of some data whose arrays fit embeddings of `dim` numbers, in the order of their names.
pub(super) fn beside(data: &Path, dim: usize) -> Vec<PathBuf> {
    let entries = data.parent().and_then(|parent| std::fs::read_dir(parent).ok());
    let files = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let named = |file: &PathBuf| file.is_file() && file.extension().is_some_and(|ending| ending == "safetensors");
    let mut files: Vec<PathBuf> = files.filter(named).filter(|file| fits(file, dim).unwrap_or(false)).collect();
    files.sort();
    files
}

/// Whether all arrays of a file have a side of `dim`, by its header; `None` if that cannot be read.
fn fits(path: &Path, dim: usize) -> Option<bool> {
    let mut file = File::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    let mut header = Vec::new();
    file.take(length.min(LONGEST_HEADER)).read_to_end(&mut header).ok()?;
    let header: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&header).ok()?;
    let mut arrays = header.iter().filter(|(name, _)| *name != "__metadata__").peekable();
    let fits = |array: &serde_json::Value| {
        let sides = array.get("shape").and_then(serde_json::Value::as_array);
        sides.is_some_and(|sides| sides.iter().any(|side| side.as_u64() == Some(dim as u64)))
    };
    Some(arrays.peek().is_some() && arrays.all(|(_, array)| fits(array)))
}
