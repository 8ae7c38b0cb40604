//! JSON that tells whether it is what was written: the last field of the object is a checksum.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What stands for the checksum while it is computed.
const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// BLAKE3 of a text but for its checksum, which stands `at` a place, in hexadecimal.
fn checksum(text: &str, at: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&text.as_bytes()[..at]);
    hasher.update(ZEROS.as_bytes());
    hasher.update(&text.as_bytes()[at + ZEROS.len()..]);
    hasher.finalize().to_hex().to_string()
}

/// Adds the checksum to an object, as it was written.
pub(crate) fn seal(object: &str) -> String {
    let (before, after) = object.rsplit_once('}').unwrap_or((object, ""));
    // Objects that people read have a field on a line.
    let pretty = before.ends_with('\n');
    let field = if pretty { ",\n  \"checksum\": \"" } else { ",\"checksum\":\"" };
    let before = format!("{}{field}", before.trim_end());
    let end = if pretty { "\"\n}" } else { "\"}" };
    let sum = checksum(&format!("{before}{ZEROS}{end}{after}"), before.len());
    format!("{before}{sum}{end}{after}")
}

/// Whether an object is what was written; `None` if it has no checksum. What follows it does not count.
pub(crate) fn is_intact(bytes: &[u8]) -> Option<bool> {
    #[derive(Deserialize)]
    struct Sealed {
        checksum: String,
    }
    let text = std::str::from_utf8(bytes).ok()?.trim_end();
    let Sealed { checksum: known } = serde_json::from_str(text).ok()?;
    let at = (!known.is_empty()).then(|| text.rfind(&known)).flatten()?;
    Some(known.len() == ZEROS.len() && checksum(text, at) == known)
}

/// A value with its checksum.
pub(crate) fn to_json<T: Serialize>(value: &T) -> serde_json::Result<String> {
    Ok(seal(&serde_json::to_string(value)?))
}

/// The value of bytes that are what was written.
pub(crate) fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    if is_intact(bytes) == Some(true) { serde_json::from_slice(bytes).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_noticed() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Value {
            name: String,
            cells: Vec<usize>,
        }
        let value = Value { name: "made".to_owned(), cells: vec![1, 2] };
        let json = to_json(&value).unwrap();
        assert_eq!(from_json::<Value>(json.as_bytes()), Some(value));
        for at in 0..json.len() {
            for bit in 0..8 {
                let mut bytes = json.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                assert_eq!(from_json::<Value>(&bytes), None, "bit {bit} of byte {at}");
            }
        }
        assert_eq!(is_intact(b"{\"name\":\"made\"}"), None);
    }
}
