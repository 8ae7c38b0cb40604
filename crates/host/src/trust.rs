//! Which libraries may run: loading one runs its code.

use std::collections::BTreeMap;
use std::path::Path;

/// Libraries that must have a certain content: their names, `cap` for `libcompflow_cap.so`, and the BLAKE3 of the file.
pub(crate) type Pins = BTreeMap<String, String>;

/// What a pin begins with; the hash in hexadecimal follows.
pub(crate) const PREFIX: &str = "blake3:";

/// Why a library must not be loaded, if so: another user could have put anything into it.
///
/// Both the folder that was searched and the one that a link leads to count.
pub(crate) fn writable_by_anyone(library: &Path) -> Option<String> {
    let real = library.canonicalize().ok()?;
    if is_writable(&real) {
        return Some(format!("is not loaded: anyone may write to it; chmod o-w {}", real.display()));
    }
    let folder = [library.parent(), real.parent()].into_iter().flatten().find(|folder| is_writable(folder))?;
    Some(format!("is not loaded: anyone may write to its folder; chmod o-w {}", folder.display()))
}

#[cfg(unix)]
fn is_writable(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    path.metadata().is_ok_and(|metadata| metadata.mode() & 0o002 != 0)
}

/// Elsewhere the system's own access lists decide.
#[cfg(not(unix))]
fn is_writable(_path: &Path) -> bool {
    false
}

/// The name of a library file in a pin.
pub(crate) fn stem(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?;
    name.strip_prefix(std::env::consts::DLL_PREFIX)?
        .strip_prefix("compflow_")?
        .strip_suffix(std::env::consts::DLL_SUFFIX)
}

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

    #[test]
    fn a_library_is_called_by_what_only_it_has() {
        let file = format!("{}compflow_cap{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        assert_eq!(stem(&Path::new("/somewhere").join(file)), Some("cap"));
        assert_eq!(stem(Path::new("/somewhere/cap.so")), None);
    }
}
