//! Which libraries may run: loading one runs its code.

use std::path::Path;

#[cfg(unix)]
mod unix;

/// Why a library, or the libraries of a folder, must not be loaded, if so; continues a sentence that begins with its name.
///
/// Somebody else could have put anything into a file, and into every folder and every link on the way to it, that is not the
/// user's or root's, or that others may write to. Whoever could replace the running program anyway is not somebody else.
#[cfg(unix)]
pub fn refusal(path: &Path) -> Option<String> {
    unix::Trusted::of_this_program().refusal(path)
}

/// Elsewhere the system's own access lists decide.
#[cfg(not(unix))]
pub fn refusal(_path: &Path) -> Option<String> {
    None
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
