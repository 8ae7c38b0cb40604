//! A folder to work in, the command with the libraries of this build, and readers for what it leaves behind.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, OnceLock};

use arrow_array::types::{Float32Type, UInt32Type};
use arrow_array::{ArrayRef, FixedSizeListArray, ListArray, RecordBatch, UInt32Array};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// A folder that disappears with the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    /// `compflow` as an installed command: a value of PATH on which it is, without its libraries beside it.
    pub(crate) fn with_command_on_path(&self) -> std::ffi::OsString {
        let bin = self.path("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(executable(), bin.join("compflow")).unwrap();
        let before = std::env::var_os("PATH").unwrap_or_default();
        std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&before))).unwrap()
    }

    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The command in this folder, with the libraries of this build and no others of the user's.
    pub(crate) fn compflow(&self, args: &[&str]) -> Command {
        let mut command = Command::new(executable());
        command.current_dir(self.0.path()).args(args);
        command.env("COMPFLOW_PLUGIN_PATH", libraries()).env_remove("COMPFLOW_LOG").env_remove("COMPFLOW_DATA");
        command.env("XDG_CACHE_HOME", build_folder("test-cache"));
        command
    }

    /// Runs the command; panics with what it printed if the exit code is not the one expected. Messages come without their codes.
    pub(crate) fn run(&self, args: &[&str], code: i32) -> (String, String) {
        finished(self.compflow(args).output().unwrap(), code)
    }

    /// The same, with what was printed as it is.
    pub(crate) fn run_exactly(&self, args: &[&str], code: i32) -> (String, String) {
        ended(self.compflow(args).output().unwrap(), code)
    }

    /// Copies the misbehaving library to where `--plugins faulty` finds it.
    pub(crate) fn add_faulty(&self) {
        std::fs::create_dir_all(self.path("faulty")).unwrap();
        let to = self.path("faulty").join(library_name("faulty"));
        let built = library_name("faulty").replace("compflow_", "");
        std::fs::copy(libraries().join(built), to).unwrap();
    }

    pub(crate) fn write_parquet(&self, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
                .unwrap();
        let path = self.path(name);
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        path
    }

    /// A small Arrow file with a column of embeddings.
    pub(crate) fn write_arrow(&self, name: &str) {
        let batch = RecordBatch::try_from_iter([("embedding", embeddings(&[&[0.0, 1.0], &[2.0, 3.0]]))]).unwrap();
        let file = File::create(self.path(name)).unwrap();
        let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }

    pub(crate) fn read_parquet(&self, name: &str) -> RecordBatch {
        read_parquet(&self.path(name))
    }
}

pub(crate) fn read_parquet(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap())
        .unwrap()
        .with_batch_size(1 << 20)
        .build()
        .unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1, "{}", path.display());
    batches.into_iter().next().unwrap()
}

/// `cargo test` leaves the plugins' libraries beside the test executables.
pub(crate) fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// The command, beside the libraries of this build: where `cargo build` leaves it may be libraries of another.
pub(crate) fn executable() -> &'static Path {
    static LINKED: OnceLock<PathBuf> = OnceLock::new();
    LINKED.get_or_init(|| {
        let (built, linked) = (Path::new(env!("CARGO_BIN_EXE_compflow")), libraries().join("compflow"));
        let _ = std::fs::remove_file(&linked);
        std::fs::hard_link(built, &linked).or_else(|_| std::fs::copy(built, &linked).map(|_| ())).unwrap();
        linked
    })
}

/// The file name of a plugin.
pub(crate) fn library_name(stem: &str) -> String {
    format!("{}compflow_{stem}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// A folder for what tests build: below the build's own, so that it is kept from run to run.
pub(crate) fn build_folder(name: &str) -> PathBuf {
    libraries().join("../..").canonicalize().unwrap().join(name)
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What was printed, messages without their codes.
pub(crate) fn finished(output: Output, code: i32) -> (String, String) {
    let (stdout, stderr) = ended(output, code);
    (stdout, without_codes(&stderr))
}

fn ended(output: Output, code: i32) -> (String, String) {
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "stdout:\n{stdout}\nstderr:\n{stderr}");
    (stdout, stderr)
}

/// `error: …` for `error[C012]: …`.
fn without_codes(text: &str) -> String {
    let line = |line: &str| match line.split_once("[C").map(|(word, rest)| (word, rest.split_once("]: "))) {
        Some((word @ ("error" | "warning"), Some((code, rest)))) if code.len() == 3 => format!("{word}: {rest}"),
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Rows of an embedding column.
pub(crate) fn embeddings(rows: &[&[f32]]) -> ArrayRef {
    Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        rows.iter().map(|row| Some(row.iter().copied().map(Some))),
        rows[0].len() as i32,
    ))
}

/// Rows of a column of true sets.
pub(crate) fn sets(rows: &[&[u32]]) -> ArrayRef {
    Arc::new(ListArray::from_iter_primitive::<UInt32Type, _, _>(
        rows.iter().map(|row| Some(row.iter().copied().map(Some))),
    ))
}

pub(crate) fn numbers(values: &[u32]) -> ArrayRef {
    Arc::new(UInt32Array::from(values.to_vec()))
}

/// A pipeline on made-up data that runs in no time.
pub(crate) const SMALL: &str = r#"
name = "small"
seed = 3

[[data]]
name = "made"
loader = "synthetic"
params = { n = 45, dim = 4, k = 3, noise = 0.05, trials = 3 }

[[clusterer]]
name = "KM"
use = "kmeans"
params = { k = 6, restarts = 3 }

[[evaluator]]
use = "cri"

[[evaluator]]
use = "ari"
"#;

/// A column of texts.
pub(crate) fn texts<'t>(table: &'t RecordBatch, column: &str) -> Vec<&'t str> {
    use arrow_array::cast::AsArray;
    let column = table.column_by_name(column).unwrap();
    match column.data_type() {
        arrow_schema::DataType::Utf8View => {
            column.as_string_view().iter().map(Option::unwrap_or_default).collect()
        }
        arrow_schema::DataType::LargeUtf8 => {
            column.as_string::<i64>().iter().map(Option::unwrap_or_default).collect()
        }
        _ => column.as_string::<i32>().iter().map(Option::unwrap_or_default).collect(),
    }
}
