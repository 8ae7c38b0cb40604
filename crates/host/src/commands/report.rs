//! `compflow report`: a results folder as one self-contained HTML page, or several as the tables of `docs/results.md`.

use std::io::Write;
use std::path::PathBuf;

use compflow_engine::files::{plain, write_whole};

use super::print;
use crate::cli::{Pages, ReportArgs};
use crate::failure::Failure;
use crate::report::reference::Reference;
use crate::report::{ReportData, markdown, page};

/// Runs the command: prints where the report is, or the report itself.
///
/// # Errors
/// If a folder is no results folder, a cell does not exist, or the file cannot be written.
pub(crate) fn run(plugins: &[PathBuf], args: &ReportArgs) -> Result<i32, Failure> {
    let (text, default) = match args.format {
        Pages::Html => {
            let [folder] = &args.folders[..] else {
                return Err(Failure::request("a page shows one run; give one folder, or --format md"));
            };
            if args.reference.is_some() {
                return Err(Failure::request("--reference is for --format md"));
            }
            let data = ReportData::gather(folder, plugins)?;
            (page::page(&data, &args.cell)?, Some(folder.join("report.html")))
        }
        Pages::Md => {
            if !args.cell.is_empty() {
                return Err(Failure::request("--cell is for --format html"));
            }
            let reference = args.reference.as_deref().map(Reference::read).transpose()?;
            let runs: Vec<ReportData> =
                args.folders.iter().map(|folder| ReportData::gather(folder, plugins)).collect::<Result<_, _>>()?;
            (markdown::page(&runs, reference.as_ref()), None)
        }
    };
    let Some(path) = args.out.clone().or(default) else { return print(&text) };
    write_whole(&path, false, |file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::run(format!("{} cannot be written: {}", path.display(), plain(&error))))?;
    print(&format!("{}\n", path.display()))
}
