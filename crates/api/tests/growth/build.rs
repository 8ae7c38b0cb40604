//! Headers that have grown, and the library compiled against them.

use std::ffi::c_void;
use std::fmt::Write;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use compflow_api::ForeignLibrary;
use compflow_api::abi::*;

pub(crate) fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The structures of the header that begin with their size.
pub(crate) fn sized(header: &str) -> Vec<&str> {
    let structures = header.split("typedef struct ").skip(1);
    let sized = structures.filter(|text| {
        let mut lines = text.lines().skip(1).map(str::trim).filter(|line| !line.starts_with("//"));
        lines.next() == Some("uint32_t size;")
    });
    sized.map(|text| text.split(' ').next().unwrap()).collect()
}

/// The header with a further field at the end of those structures, and with the macros that `plugin.c` uses.
pub(crate) fn grow(header: &str, grown: &[&str], field: &str) -> String {
    let mut text = header.to_owned();
    let mut macros = String::new();
    for name in sized(header) {
        let (initialised, seen, given) = if grown.contains(&name) {
            let end = format!("\n}} {name};\n");
            assert_eq!(text.matches(&end).count(), 1, "{name}");
            text = text.replace(&end, &format!("\n  {field}{end}"));
            let behind = format!("{name}, grown_x");
            let rubbish = ".grown_x = UINT64_MAX,".to_owned();
            (rubbish, format!("COMPFLOW_HAS(at, {behind})"), format!("COMPFLOW_GIVE(out, {behind}, UINT64_MAX)"))
        } else {
            (String::new(), "((void)(at), 0)".to_owned(), "(void)(out)".to_owned())
        };
        writeln!(macros, "#define GROWN_{name} {initialised}\n#define SEES_{name}(at) {seen}").unwrap();
        writeln!(macros, "#define GIVES_{name}(out) {given}").unwrap();
    }
    text.replace("#endif /* COMPFLOW_H */", &format!("{macros}\n#endif /* COMPFLOW_H */"))
}

/// Compiles the library in `folder`.
pub(crate) fn compile(folder: &Path, header: &str) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("compflow.h"), header).unwrap();
    std::fs::copy(manifest().join("include/compflow_util.h"), folder.join("compflow_util.h")).unwrap();
    let library = folder.join("libcompflow_growth.so");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(compiler)
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden", "-shared", "-I"])
        .arg(folder)
        .arg(manifest().join("tests/growth/plugin.c"))
        .arg("-o")
        .arg(&library)
        .arg("-lm")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// Opens a library, for the life of the process.
pub(crate) fn open(path: &Path) -> *const RawLibrary {
    unsafe extern "C" fn ignore(_sink_ctx: *mut c_void, _error: *const RawError) {}
    // SAFETY: the library is one of ours, compiled above.
    unsafe {
        let library = ManuallyDrop::new(libloading::Library::new(path).unwrap());
        let abi = &**library.get::<*const RawAbi>(ABI_SYMBOL.as_bytes()).unwrap();
        assert_eq!((abi.magic, abi.abi_version), (MAGIC, ABI_VERSION));
        let entry = library.get::<EntryFn>(ENTRY_SYMBOL.as_bytes()).unwrap();
        let described = entry(ignore, std::ptr::null_mut());
        assert_eq!((*described).size, abi.size);
        described
    }
}

pub(crate) struct Built {
    pub(crate) plain: usize,
    /// What has grown, and where the library is.
    pub(crate) grown: Vec<(String, usize)>,
    /// All structures, by 64 bytes.
    pub(crate) all: usize,
    /// None, with the header of the first release.
    pub(crate) first: usize,
}

/// All libraries, as addresses of their descriptors.
pub(crate) fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let header = std::fs::read_to_string(manifest().join("include/compflow.h")).unwrap();
        let names = sized(&header);
        assert_eq!(names.len(), 17, "{names:?}");
        let folder = tempfile::tempdir().unwrap();
        let build = |folder_name: &str, grown: &[&str], field: &str| {
            open(&compile(&folder.path().join(folder_name), &grow(&header, grown, field))) as usize
        };
        let first = std::fs::read_to_string(manifest().join("tests/frozen/compflow-1.h")).unwrap();
        Built {
            first: open(&compile(&folder.path().join("first"), &grow(&first, &[], ""))) as usize,
            plain: build("plain", &[], ""),
            grown: names
                .iter()
                .map(|name| ((*name).to_owned(), build(name, &[name], "uint64_t grown_x;")))
                .collect(),
            all: build("all", &names, "uint64_t grown_x, grown_more[7];"),
        }
    })
}

pub(crate) fn library(at: usize) -> ForeignLibrary {
    // SAFETY: made by `open`.
    unsafe { ForeignLibrary::from_raw(at as *const RawLibrary) }.unwrap()
}
