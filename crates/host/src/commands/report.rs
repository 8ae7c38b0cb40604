//! `compflow report`: a results folder as one self-contained HTML page, or several as the tables of `docs/results.md`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compflow_engine::Results;
use compflow_engine::files::{make_folders, plain, write_file, write_whole};

use super::place::Place;
use super::{plugins, print};
use crate::cli::{Layout, Pages, ReportArgs};
use crate::failure::Failure;
use crate::report::reference::Reference;
use crate::report::{ReportData, markdown, page, pairs};
use crate::terminal::clean::{clean, one_line};

/// Runs the command: prints where the report is, or the report itself.
///
/// # Errors
/// If a folder is no results folder, a cell does not exist, or the file cannot be written.
pub(crate) fn run(plugins: &[PathBuf], args: &ReportArgs) -> Result<i32, Failure> {
    let out = args.out.as_deref().map(Place::new);
    let (text, default) = match args.format {
        Pages::Html => {
            let [folder] = &args.folders[..] else {
                return Err(Failure::request("a page shows one run; give one folder, or --format md"));
            };
            for (given, option) in [
                (args.reference.is_some(), "--reference"),
                (args.tests.is_some(), "--tests"),
                (args.layout != Layout::Page, "--layout"),
            ] {
                if given {
                    return Err(Failure::request(format!("{option} is for --format md")));
                }
            }
            let (page, place) = page_of(folder, plugins, &args.cell)?;
            (page, Some(place))
        }
        Pages::Md => {
            for (given, option) in [(!args.cell.is_empty(), "--cell"), (args.open, "--open")] {
                if given {
                    return Err(Failure::request(format!("{option} is for --format html")));
                }
            }
            if args.reference.is_some() && args.layout != Layout::Page {
                return Err(Failure::request("--reference is for --layout page"));
            }
            let reference = args.reference.as_deref().map(Reference::read).transpose()?;
            let tests = args.tests.as_deref().map(Place::new);
            let results: Vec<Results> =
                args.folders.iter().map(|folder| Results::open(folder)).collect::<Result<_, _>>()?;
            let folders = plugins::search_path(plugins)?;
            let runs: Vec<ReportData> =
                results.into_iter().map(|results| ReportData::gather(results, &folders)).collect();
            if let Some(folder) = &tests {
                write_tests(&runs, folder)?;
            }
            (markdown(&runs, reference.as_ref(), args), None)
        }
    };
    let place = match (out, default) {
        (None, None) => return print(&text),
        (Some(place), _) => {
            write_whole(&place.path, false, |file| file.write_all(clean(&text).as_bytes()))
                .map_err(|error| unwritable(&place, &error))?;
            place
        }
        (None, Some(place)) => {
            write(&place, &text)?;
            place
        }
    };
    print(&format!("{}\n", one_line(&place.shown.to_string_lossy())))?;
    if args.open { open(&place) } else { Ok(0) }
}

/// The page of a run, and where it goes if nobody says where.
fn page_of(folder: &Path, plugins: &[PathBuf], cells: &[String]) -> Result<(String, Place), Failure> {
    let place = Place::new(&folder.join("report.html"));
    let (results, folders) = (Results::open(folder)?, plugins::search_path(plugins)?);
    Ok((page::page(&ReportData::gather(results, &folders), cells)?, place))
}

/// Makes the page of a run beside its tables; returns where it is.
///
/// # Errors
/// If the folder is no results folder, or the file cannot be written.
pub(super) fn write_page(folder: &Path, plugins: &[PathBuf]) -> Result<Place, Failure> {
    let (page, place) = page_of(folder, plugins, &[])?;
    write(&place, &page)?;
    Ok(place)
}

/// Shows the page in the user's browser, if there is a display to show it on.
pub(super) fn open(page: &Place) -> Result<i32, Failure> {
    let mac = cfg!(target_os = "macos");
    let display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !mac && !display {
        return Err(Failure::run(format!("there is no display to open {} on", page.shown.display())));
    }
    let viewer = if mac { "open" } else { "xdg-open" };
    let opened = Command::new(viewer).arg(&page.path).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match opened {
        Ok(status) if status.success() => Ok(0),
        _ => Err(Failure::run(format!("{viewer} could not open {}", page.shown.display()))),
    }
}

fn markdown(runs: &[ReportData], reference: Option<&Reference>, args: &ReportArgs) -> String {
    // As the page refers to them: from where it is itself.
    let folder = args.tests.as_deref().map(|tests| {
        let page = args.out.as_deref().and_then(Path::parent);
        page.and_then(|page| tests.strip_prefix(page).ok()).unwrap_or(tests)
    });
    let tests = |results: &Results| Some(folder?.join(tests_of(&results.record.name)).display().to_string());
    match args.layout {
        Layout::Page => markdown::page(runs, reference, &tests),
        Layout::Wide => markdown::tables(runs, markdown::wide),
        Layout::Long => markdown::tables(runs, markdown::long),
    }
}

/// The matched-pair tests of each run in a file of its name.
fn write_tests(runs: &[ReportData], folder: &Place) -> Result<(), Failure> {
    for (at, run) in runs.iter().enumerate() {
        let name = run.name();
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return Err(Failure::request(format!("--tests: `{name}` cannot be the name of a file")));
        }
        if runs[..at].iter().any(|other| other.name() == name) {
            return Err(Failure::request(format!("--tests: two runs are named `{name}`")));
        }
    }
    make_folders(&folder.path).map_err(|error| unwritable(folder, &error))?;
    runs.iter().try_for_each(|run| write(&folder.join(&tests_of(run.name())), &pairs::csv(run.results())))
}

fn tests_of(run: &str) -> String {
    format!("{run}.csv")
}

/// Writes a file that nobody but us has named.
fn write(place: &Place, text: &str) -> Result<(), Failure> {
    write_file(&place.path, |file| file.write_all(clean(text).as_bytes()))
        .map_err(|error| unwritable(place, &error))
}

fn unwritable(place: &Place, error: &std::io::Error) -> Failure {
    Failure::run(format!("{} cannot be written: {}", place.shown.display(), plain(error)))
}
