//! `compflow demo`: a bundled example, from nothing to an open report.

use std::io::Write;
use std::path::{Path, PathBuf};

use compflow_engine::files::{make_folders, plain, read_file, write_file};

use super::{print, report, run};
use crate::cli::{DemoArgs, DemoName, PipelineArgs, RunArgs};
use crate::failure::Failure;
use crate::output::Format;

/// An example: what it is about, its files, and what is special in its report.
struct Demo {
    about: &'static str,
    /// What the pipeline calls its data.
    data: &'static str,
    files: &'static [(&'static str, &'static [u8])],
    look: &'static str,
}

const DIGITS: Demo = Demo {
    about: "150 images of 8×8 pixels a trial: one handwritten digit, or two drawn over one another",
    data: "images",
    files: &[
        ("pipeline.toml", include_bytes!("../../demo/digits.toml")),
        ("digits.parquet", include_bytes!("../../../../data/digits/d2_n150_test.parquet")),
    ],
    look: "Images are hard: no network has prepared them, and a 1 hides in most other digits",
};

const SPEECH: Demo = Demo {
    about: "150 recordings of two seconds a trial: one person speaks, or two at once",
    data: "recordings",
    files: &[
        ("pipeline.toml", include_bytes!("../../demo/speech.toml")),
        ("speech.parquet", include_bytes!("../../../../data/speech/d2_n150_test.parquet")),
        ("g.safetensors", include_bytes!("../../../../data/speech/g.safetensors")),
    ],
    look: "Voices are easy: their embedding was trained together with the composer, on other people",
};

const TOPICS: Demo = Demo {
    about: "150 made-up documents a trial: about one topic, or about two",
    data: "documents",
    files: &[
        ("pipeline.toml", include_bytes!("../../demo/topics.toml")),
        ("topics.parquet", include_bytes!("../../../../data/topics/d2_n150_test.parquet")),
    ],
    look: "Topics need no trained composer: the vector of two texts is nearly the sum of both",
};

/// Runs the command.
///
/// # Errors
/// If the folder has other files in the place of the example's, or the run fails.
pub(crate) fn run(plugins: &[PathBuf], args: &DemoArgs) -> Result<i32, Failure> {
    let demo = match args.name {
        DemoName::Digits => DIGITS,
        DemoName::Speech => SPEECH,
        DemoName::Topics => TOPICS,
    };
    let folder = args.out.clone().unwrap_or_else(|| Path::new("compflow-demo").join(args.name.name()));
    write(&folder, demo.files)?;
    let (pipeline, results) = (folder.join("pipeline.toml"), folder.join("results"));
    print(&format!("{}\n\n", demo.about))?;
    let run_args = RunArgs {
        isolate: false,
        timeout: None,
        pipeline: PipelineArgs { file: pipeline.clone(), out: Some(results.clone()), ..PipelineArgs::default() },
        fresh: false,
        strict: false,
        format: Format::Table,
        quiet: false,
        part: None,
        phase: None,
    };
    let code = run::run(plugins, &run_args)?;
    if code != 0 {
        return Ok(code);
    }
    let page = report::write_page(&results, plugins)?;
    print(&guide(&demo, &pipeline, &results, &page.shown))?;
    if args.open { report::open(&page) } else { Ok(0) }
}

/// Writes the example's files. Those that are there already must be the same: somebody may have worked on them.
fn write(folder: &Path, files: &[(&str, &[u8])]) -> Result<(), Failure> {
    let unwritable =
        |path: &Path, error: &std::io::Error| Failure::run(format!("{}: {}", path.display(), plain(error)));
    make_folders(folder).map_err(|error| unwritable(folder, &error))?;
    let mut missing = Vec::new();
    for (name, content) in files {
        let path = folder.join(name);
        match path.symlink_metadata() {
            Err(_) => missing.push((path, content)),
            // Nobody waits for what comes out of a pipe that is called like one of them.
            Ok(_) if read_file(&path, content.len() as u64).is_ok_and(|found| found == *content) => {}
            Ok(_) => {
                return Err(Failure::request(format!(
                    "{} is there and is not the demo's own; choose another folder with --out, or run it with \
                     compflow run",
                    path.display()
                )));
            }
        }
    }
    let written = |(path, content): &(PathBuf, &&[u8])| {
        write_file(path, |file| file.write_all(content)).map_err(|error| unwritable(path, &error))
    };
    missing.iter().try_for_each(written)
}

/// What to look at, and how to go on.
fn guide(demo: &Demo, pipeline: &Path, results: &Path, page: &Path) -> String {
    let Demo { look, data, .. } = demo;
    let (pipeline, results, page) = (pipeline.display(), results.display(), page.display());
    format!(
        "
The report: {page}
What to look at in it:
  1. Scores: acri is agreement with the true sets, corrected for chance: 0 is guessing, 100 is all right. k-means, which knows no
     unions, stays far below the methods that look for them; the t-tests say whether a difference is more than luck.
  2. Scores: union_precision says how often what is called a union is that union, union_recall how many of them are
     found. {look}.
  3. One trial, “Where the points lie”: circles are single things and plusses unions, in the colours of their two members. Compare
     each method with the truth, which is the first. Click a cluster anywhere, or draw a lasso around points: the same examples
     light up in every picture, and are listed below with how clearly they belong to their cluster.
  4. One trial, “Which singletons make which cluster”: left what was found, right what it makes; ✓ marks unions that are right.
  5. One trial, “True sets against inferred sets”: what is dark on the diagonal is right, what is beside it is mixed up.

Next:
  compflow run {pipeline} --out {results} --set clusterer.CKM.k=6
      what CKM makes of it if it looks for six
  compflow report {results} --cell {data}/3
      the figures of another trial
  compflow inspect ckm
      what a method does, and its parameters
  compflow init YOUR.parquet
      the same for your own embeddings
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_files_stay_small() {
        let files = [DIGITS, SPEECH, TOPICS].into_iter().flat_map(|demo| demo.files);
        let bytes: usize = files.map(|(_, content)| content.len()).sum();
        assert!(bytes < 1 << 20, "{bytes} bytes are in the executable");
    }

    #[test]
    fn what_the_user_changed_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("a.toml", b"a"), ("b.toml", b"b")]).unwrap();
        write(folder.path(), &[("a.toml", b"a"), ("b.toml", b"b")]).unwrap();
        std::fs::write(folder.path().join("b.toml"), b"mine").unwrap();
        std::fs::remove_file(folder.path().join("a.toml")).unwrap();
        let error = write(folder.path(), &[("a.toml", b"a"), ("b.toml", b"b")]).unwrap_err().to_string();
        assert!(error.contains("b.toml is there and is not the demo's own"), "{error}");
        assert_eq!(std::fs::read(folder.path().join("b.toml")).unwrap(), b"mine");
        assert!(!folder.path().join("a.toml").exists(), "nothing was written");
    }

    #[test]
    #[cfg(unix)]
    fn pipes_and_links_in_the_way_are_neither_read_nor_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link, elsewhere) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("c"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        for name in ["a", "b"] {
            let error = write(folder.path(), &[(name, b"mine")]).unwrap_err().to_string();
            assert!(error.contains(&format!("/{name} is there and is not the demo's own")), "{error}");
        }
        assert!(!elsewhere.exists());
    }
}
