//! The files that somebody means by a path: one file, all that match a pattern, or those of a folder.

use std::path::{Path, PathBuf};

use crate::cancel::Cancel;
use crate::files::pattern::expand;
use crate::files::{display, plain, require_file};

/// The loader of this project that reads a file of such a name.
pub fn loader_of(path: &Path) -> Option<&'static str> {
    let ending = |path: &Path| path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
    match ending(path)?.as_str() {
        "parquet" | "pq" => Some("parquet"),
        "arrow" | "arrows" | "ipc" | "feather" => Some("arrow"),
        "csv" | "tsv" | "tab" => Some("csv"),
        "jsonl" | "ndjson" | "json" => Some("json"),
        "npy" => Some("npy"),
        // Only texts are compressed as a whole.
        "gz" | "zst" => loader_of(&path.with_extension("")).filter(|loader| ["csv", "json"].contains(loader)),
        _ => None,
    }
}

/// What files that have a loader are called, for messages.
pub const ENDINGS: &str = ".parquet, .arrow, .csv, .tsv, .jsonl or .npy";

/// The real paths of the files that are meant; see [`named_files`].
///
/// # Errors
/// If there are none, they cannot be opened, or are no longer wanted.
pub fn data_files(path: &Path, loader: Option<&str>, cancel: &Cancel) -> Result<Vec<PathBuf>, String> {
    let files = named_files(path, loader, cancel)?;
    if files.is_empty() {
        return Err(format!("no file matches {}", display(path)));
    }
    let real = |file: PathBuf| {
        let real = file.canonicalize().and_then(|real| {
            require_file(&real)?;
            std::fs::File::open(&real).map(|_| real)
        });
        real.map_err(|error| format!("{}: {}", display(&file), plain(&error)))
    };
    files.into_iter().map(real).collect()
}

/// The files that are meant, as they are called, in the order of their names; none if it is a pattern that nothing matches. A path
/// that exists is no pattern; of a folder they are those that the loader reads, or, if none is named, those that one loader reads.
/// A single file need not be there.
///
/// # Errors
/// If a folder has none, a pattern is not valid or matches too many, or they are no longer wanted.
pub fn named_files(path: &Path, loader: Option<&str>, cancel: &Cancel) -> Result<Vec<PathBuf>, String> {
    let text = path.to_string_lossy();
    if path.is_dir() {
        files_of(path, loader)
    } else if text.contains(['*', '?', '[']) && !path.exists() {
        expand(&text, cancel).map_err(|reason| format!("{} {reason}", display(path)))
    } else {
        Ok(vec![path.to_owned()])
    }
}

/// The files of a folder that a loader reads, without those that are hidden or notes of whoever wrote them.
fn files_of(folder: &Path, loader: Option<&str>) -> Result<Vec<PathBuf>, String> {
    let about = |text: String| format!("{}: {text}", display(folder));
    let entries = std::fs::read_dir(folder).map_err(|error| about(plain(&error)))?;
    let all = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|file| file.is_file());
    let hidden = |file: &Path| file.file_name().is_none_or(|name| name.to_string_lossy().starts_with(['.', '_']));
    let mut files: Vec<PathBuf> = all.filter(|file| !hidden(file)).collect();
    files.sort();
    let ours = loader.is_none_or(|loader| ["parquet", "arrow", "csv", "json", "npy"].contains(&loader));
    if ours {
        files.retain(|file| loader_of(file).is_some_and(|reads| loader.is_none_or(|loader| loader == reads)));
    }
    let mut kinds: Vec<&str> = files.iter().filter_map(|file| loader_of(file)).collect();
    kinds.dedup();
    match (files.is_empty(), loader) {
        (true, Some(loader)) => {
            Err(about(format!("there is no file in this folder that the loader `{loader}` reads")))
        }
        (true, None) => Err(about(format!("there is no {ENDINGS} file in this folder"))),
        (false, None) if kinds.iter().any(|kind| *kind != kinds[0]) => Err(about(
            "there are files of different kinds in this folder; give a pattern, such as 'FOLDER/*.parquet'"
                .to_owned(),
        )),
        _ => Ok(files),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_which_loader_reads_a_file() {
        let of = |name: &str| loader_of(Path::new(name));
        assert_eq!(
            ["a/b.pq", "b.feather", "b.CSV", "b.ndjson"].map(of),
            ["parquet", "arrow", "csv", "json"].map(Some)
        );
        assert_eq!([of("a.tsv.gz"), of("a.jsonl.zst"), of("a.parquet.gz")], [Some("csv"), Some("json"), None]);
        assert_eq!(of("a.parquet/b"), None);
    }

    #[test]
    fn a_folder_stands_for_the_files_of_one_loader() {
        let folder = tempfile::tempdir().unwrap();
        let names = |loader| {
            let files = data_files(folder.path(), loader, &Cancel::new())?;
            Ok(files.iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect())
        };
        let empty: Result<Vec<String>, String> = names(None);
        assert!(empty.unwrap_err().contains("there is no .parquet, .arrow"));
        for name in ["b.parquet", "a.parquet", "_SUCCESS", ".c.parquet", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(names(None).unwrap(), ["a.parquet", "b.parquet"]);
        assert_eq!(names(Some("mine")).unwrap(), ["a.parquet", "b.parquet", "notes.txt"]);
        assert!(names(Some("csv")).unwrap_err().contains("that the loader `csv` reads"));
        std::fs::write(folder.path().join("c.csv"), "").unwrap();
        assert!(names(None).unwrap_err().contains("files of different kinds"));
        assert_eq!(names(Some("csv")).unwrap(), ["c.csv"]);
    }
}
