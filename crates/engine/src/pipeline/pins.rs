//! Which content a pipeline requires of libraries.

use std::collections::BTreeMap;

/// Libraries that must have a certain content: their names, `cap` for `libcompflow_cap.so`, and the BLAKE3 of the file.
pub type Pins = BTreeMap<String, String>;

/// What a pin begins with; the hash in hexadecimal follows.
pub(crate) const PREFIX: &str = "blake3:";

/// Whether a text is a pin that a library could have.
pub(crate) fn is_pin(text: &str) -> bool {
    text.strip_prefix(PREFIX)
        .is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_a_whole_hash() {
        assert!(is_pin(&format!("blake3:{}", "0a".repeat(32))));
        for wrong in ["", "blake3:", "blake3:0a", &"0a".repeat(32), &format!("blake3:{}", "0A".repeat(32))] {
            assert!(!is_pin(wrong), "{wrong}");
        }
    }
}
