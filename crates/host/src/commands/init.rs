//! `compflow init`: looks at data and writes a commented pipeline for it.

mod columns;
mod found;
mod judge;
mod text;
mod weights;

use std::io::Write;
use std::path::{Path, PathBuf};

use compflow_engine::data::Survey;
use compflow_engine::files::{plain, write_whole};

use self::found::{Found, usable};
use self::judge::judge;
use super::place::Place;
use super::{plugins, print};
use crate::cli::{InitArgs, PIPELINE};
use crate::failure::Failure;
use crate::terminal::{Terminal, interrupt};

/// Runs the command.
///
/// # Errors
/// If data cannot be read, it is not clear which columns are meant, or the pipeline is there already.
pub(crate) fn run(plugins: &[PathBuf], args: &InitArgs) -> Result<i32, Failure> {
    let cancel = interrupt::listen()?;
    let out = args.out.display();
    if args.out.exists() && !args.force {
        return Err(Failure::request(format!(
            "{out} is there already; --force overwrites it, --out names another"
        )));
    }
    let folder = match args.out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let folder = folder
        .canonicalize()
        .map_err(|_| Failure::request(format!("{out}: there is no folder {}", folder.display())))?;
    let place = Place::new(&args.out);
    let registry = plugins::registry(plugins)?;
    let survey = Survey::new(&registry, &folder, &Terminal::shared(false), &cancel);
    let mut found: Vec<Found> = Vec::new();
    for data in &args.data {
        let mut next = Found::look(&survey, data, &folder, args)?;
        while found.iter().any(|other| other.name == next.name) {
            next.name += "-2";
        }
        found.push(next);
    }
    let judgement = judge(&found);
    let name = name(args, &found);
    let pipeline = text::pipeline(&name, &found, judgement.as_ref());
    write_whole(&place.path, false, |file| file.write_all(pipeline.as_bytes()))
        .map_err(|error| Failure::run(format!("{out}: {}", plain(&error))))?;
    let mut said: String = found.iter().map(Found::summary).collect();
    if let Some(judgement) = &judgement {
        said += &format!("{}\n", judgement.summary());
    }
    for note in found.iter().flat_map(|found| &found.notes) {
        said += &format!("note: {note}\n");
    }
    let one_each = |found: &Found| found.labels().is_some_and(|labels| labels.largest < 2);
    if found.iter().all(one_each) {
        said += "note: every example has one label, so no unions are looked for; --truth none writes a pipeline that looks for them\n";
    }
    let results = PathBuf::from("results").join(name);
    print(&format!(
        "{said}\n{out} is written, with comments on what was chosen and why. Next:\n  compflow run {out}\n  compflow report {}\n",
        results.display()
    ))
}

/// What the pipeline is called, and so its results: as its file, if that has a name of its own; there may be several for one data
/// set. Otherwise as the data.
fn name(args: &InitArgs, found: &[Found]) -> String {
    match args.out.file_stem().map(|stem| usable(&stem.to_string_lossy())) {
        Some(own) if args.out.as_os_str() != PIPELINE => own,
        _ => found.first().map_or_else(|| "data".to_owned(), |found| found.name.clone()),
    }
}
