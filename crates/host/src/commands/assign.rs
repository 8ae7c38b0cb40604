//! `compflow assign`: new examples to the clusters of a finished run.

use std::path::{Path, PathBuf};

use compflow_api::plural;
use compflow_engine::assign::{AssignOptions, Assigner, Basis, Cell, CellRequest, NewData, Tally, assign_files};
use compflow_engine::data::{ENDINGS, data_files, loader_of};
use compflow_engine::pipeline::Named;
use compflow_engine::results::RecordedRun;
use compflow_engine::{Cancel, Level, Results};

use super::eval::filter;
use super::place::Place;
use super::{plugins, variables};
use crate::cli::AssignArgs;
use crate::failure::Failure;
use crate::terminal::{Terminal, interrupt, to_stderr};

/// Runs the command.
///
/// # Errors
/// If the run or the new data cannot be used, the table cannot be written, or the user stopped it.
pub(crate) fn run(plugins: &[PathBuf], args: &AssignArgs) -> Result<i32, Failure> {
    let cancel = interrupt::listen()?;
    let terminal = Terminal::shared(args.quiet);
    let results = Results::open(&args.run)?;
    let request =
        CellRequest { data: args.of.as_deref(), trial: args.trial, clusterer: args.clusterer.as_deref() };
    let cell = Cell::choose(&results, &request)?;
    let files = files(&args.data, &cancel)?;
    check_out(&args.out, &files, &results.folder)?;
    let out = Place::new(&args.out);
    let (loader, params) = loader(&files, &args.filter)?;
    let folders = plugins::search_path(plugins)?;
    let recorded = RecordedRun::new(
        &results.record,
        |pins| plugins::scanned(&folders, pins),
        variables(),
        &terminal,
        &cancel,
    );
    let options = AssignOptions { degree: args.degree, seen_only: args.seen_only, novel: args.novel };
    let assigner = Assigner::open(&results, &recorded, &cell, &options)?;
    let data = NewData {
        files,
        loader,
        params,
        embedding: match &args.embedding {
            Some(embedding) => Named::from_option(embedding),
            None => recorded.embedding_column(&cell.data),
        },
        id: args.id.as_deref(),
        columns: &args.columns,
    };
    let threads = args.threads.map(|threads| threads as usize);
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    terminal.log(Level::Info, "", &basis(&assigner));
    interrupt::working();
    let tally = assign_files(&assigner, &recorded, &data, (&out.path, &out.shown), threads)?;
    if tally.examples == 0 {
        terminal.log(Level::Warn, "", "there are no examples, so the table is empty");
    }
    if !args.quiet {
        to_stderr(&said(&assigner, &tally, &out.shown));
    }
    Ok(0)
}

/// What examples were compared with.
fn basis(assigner: &Assigner) -> String {
    let what = match assigner.basis() {
        Basis::Centroids => "the nearest of",
        Basis::Exemplars => "the nearest, by exemplars, of",
        Basis::Means => "the nearest, by the means of the run's examples, of",
        Basis::Densities => "the likeliest of",
    };
    format!("every example is given {what} {}", plural(assigner.sets().len(), "set"))
}

/// How many examples went where.
fn said(assigner: &Assigner, tally: &Tally, out: &Path) -> String {
    let cell = assigner.cell();
    let (mut unions, mut nothing) = (0, 0);
    for (set, count) in &tally.sets {
        match set.len() {
            0 => nothing += count,
            1 => {}
            _ => unions += count,
        }
    }
    let mut text = format!(
        "{} to {} of {} on {}, trial {}",
        plural(tally.examples as usize, "example"),
        plural(tally.sets.keys().filter(|set| !set.is_empty()).count(), "set"),
        cell.clusterer,
        cell.data,
        cell.trial
    );
    text.push_str(&format!("; {unions} to unions, {nothing} to nothing"));
    if let Some(limit) = assigner.limit() {
        text.push_str(&format!(" (farther than {limit:.4})"));
    }
    format!("{text}; table in {}", out.display())
}

/// The files that paths and patterns name, with their real names.
fn files(named: &[String], cancel: &Cancel) -> Result<Vec<PathBuf>, Failure> {
    let files: Result<Vec<Vec<PathBuf>>, String> =
        named.iter().map(|path| data_files(Path::new(path), None, cancel)).collect();
    Ok(files.map_err(Failure::request)?.concat())
}

/// Refuses to write over what is read, and a table under the name of another kind of file.
fn check_out(out: &Path, files: &[PathBuf], run: &Path) -> Result<(), Failure> {
    if out.is_dir() {
        return Err(Failure::request(format!("--out: {} is a folder, not a file", out.display())));
    }
    // What has no ending, such as a pipe, is nobody's.
    if out.extension().is_some() && loader_of(out) != Some("parquet") {
        return Err(Failure::request(format!(
            "--out: the table is Parquet, and {} would be taken for something else; call it {}",
            out.display(),
            out.with_extension("parquet").display()
        )));
    }
    let parent = out.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let folder = parent
        .canonicalize()
        .map_err(|_| Failure::request(format!("--out: there is no folder {}", parent.display())))?;
    let name = out.file_name().unwrap_or_default();
    let real = folder.join(name);
    if files.contains(&out.canonicalize().unwrap_or(real)) {
        return Err(Failure::request(format!("--out: {} is what is read; choose another name", out.display())));
    }
    // Tables of the run are what later commands read.
    if run.canonicalize().is_ok_and(|run| run == folder) && out.exists() {
        let text =
            format!("--out: {} is there already, in the results folder; choose another name", out.display());
        return Err(Failure::request(text));
    }
    Ok(())
}

/// The loader of files, by how their names end, and its parameters.
fn loader(files: &[PathBuf], conditions: &[String]) -> Result<(&'static str, serde_json::Value), Failure> {
    let mut chosen = None;
    for file in files {
        let loader = loader_of(file)
            .ok_or_else(|| Failure::request(format!("{}: expected a {ENDINGS} file", file.display())))?;
        if *chosen.get_or_insert(loader) != loader {
            return Err(Failure::request("the files are of different kinds; assign each kind by itself"));
        }
    }
    let loader = chosen.ok_or_else(|| Failure::request("there are no files"))?;
    if loader == "npy" && !conditions.is_empty() {
        return Err(Failure::request("--where: .npy files have no columns"));
    }
    let params = match loader {
        "npy" => serde_json::json!({}),
        _ => serde_json::json!({ "where": filter(conditions)? }),
    };
    Ok((loader, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_choose_the_loader_and_must_agree() {
        let of = |names: &[&str]| loader(&names.iter().map(PathBuf::from).collect::<Vec<_>>(), &[]);
        assert_eq!(of(&["a.parquet", "b.pq"]).unwrap().0, "parquet");
        assert_eq!(of(&["a.npy"]).unwrap().0, "npy");
        assert!(of(&["a.txt"]).unwrap_err().to_string().contains("a.txt: expected a .parquet"));
        assert!(of(&["a.npy", "a.arrow"]).unwrap_err().to_string().contains("different kinds"));
    }
}
