//! Which libraries may run: loading one runs its code.

use std::path::Path;

/// Why a library must not be loaded, if so: another user could have put anything into it.
///
/// Both the folder that was searched and the one that a link leads to count.
pub fn writable_by_anyone(library: &Path) -> Option<String> {
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
pub fn stem(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?;
    name.strip_prefix(std::env::consts::DLL_PREFIX)?
        .strip_prefix("compflow_")?
        .strip_suffix(std::env::consts::DLL_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_called_by_what_only_it_has() {
        let file = format!("{}compflow_cap{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        assert_eq!(stem(&Path::new("/somewhere").join(file)), Some("cap"));
        assert_eq!(stem(Path::new("/somewhere/cap.so")), None);
    }
}
