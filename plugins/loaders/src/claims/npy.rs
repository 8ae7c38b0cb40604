//! Headers of npy files: a Python literal, which a recursive parser reads.

use std::fs::File;
use std::io::{Read, Seek};

/// A header is a table with a tuple in it; its records, which are refused anyway, may have further ones. The parser goes back
/// and tries again at every level, so that thirty of them take for ever.
const MOST_LEVELS: usize = 6;
const MOST_BYTES: usize = 1 << 20;
const MAGIC: &[u8] = b"\x93NUMPY";

/// Refuses headers that are too long or too deep. The file is then where it was; what is wrong otherwise is for the parser to say.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check(mut file: &File) -> Result<(), String> {
    let mut start = Vec::new();
    let read = file.take((MOST_BYTES + 12) as u64).read_to_end(&mut start).and_then(|_| file.rewind());
    read.map_err(|error| error.to_string())?;
    let length = match start.strip_prefix(MAGIC) {
        Some([1, _, a, b, ..]) => usize::from(u16::from_le_bytes([*a, *b])),
        Some([2 | 3, _, a, b, c, d, ..]) => u32::from_le_bytes([*a, *b, *c, *d]) as usize,
        _ => return Ok(()),
    };
    if length > MOST_BYTES {
        return Err(format!("its header claims {length} bytes, more than {MOST_BYTES}"));
    }
    let mut levels = 0_usize;
    for byte in start.iter().skip(MAGIC.len()).take(length + 6) {
        match byte {
            b'(' | b'[' | b'{' => levels += 1,
            b')' | b']' | b'}' => levels = levels.saturating_sub(1),
            _ => {}
        }
        if levels > MOST_LEVELS {
            return Err(format!("its header is nested more than {MOST_LEVELS} deep"));
        }
    }
    Ok(())
}
