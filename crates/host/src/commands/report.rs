//! `compflow report`: a results folder as one self-contained HTML page, or several as the tables of `docs/results.md`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compflow_engine::Results;
use compflow_engine::files::{make_folders, plain, write_file, write_whole};

use super::print;
use crate::cli::{Layout, Pages, ReportArgs};
use crate::failure::Failure;
use crate::report::reference::Reference;
use crate::report::{ReportData, markdown, page, pairs};
use crate::terminal::clean::{clean, one_line};
use crate::terminal::stdout::real;

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
            for (given, option) in [
                (args.reference.is_some(), "--reference"),
                (args.tests.is_some(), "--tests"),
                (args.layout != Layout::Page, "--layout"),
            ] {
                if given {
                    return Err(Failure::request(format!("{option} is for --format md")));
                }
            }
            let data = ReportData::gather(folder, plugins)?;
            (page::page(&data, &args.cell)?, Some(folder.join("report.html")))
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
            let runs: Vec<ReportData> =
                args.folders.iter().map(|folder| ReportData::gather(folder, plugins)).collect::<Result<_, _>>()?;
            if let Some(folder) = &args.tests {
                write_tests(&runs, folder)?;
            }
            (markdown(&runs, reference.as_ref(), args), None)
        }
    };
    let path = match (&args.out, default) {
        (None, None) => return print(&text),
        (Some(path), _) => {
            write_whole(&real(path), false, |file| file.write_all(clean(&text).as_bytes()))
                .map_err(|error| unwritable(path, &error))?;
            path.clone()
        }
        (None, Some(path)) => {
            write(&path, &text)?;
            path
        }
    };
    print(&format!("{}\n", one_line(&path.to_string_lossy())))?;
    if args.open { open(&path) } else { Ok(0) }
}

/// Makes the page of a run beside its tables; returns where it is.
///
/// # Errors
/// If the folder is no results folder, or the file cannot be written.
pub(super) fn write_page(folder: &Path, plugins: &[PathBuf]) -> Result<PathBuf, Failure> {
    let path = folder.join("report.html");
    write(&path, &page::page(&ReportData::gather(folder, plugins)?, &[])?)?;
    Ok(path)
}

/// Shows the page in the user's browser, if there is a display to show it on.
pub(super) fn open(page: &Path) -> Result<i32, Failure> {
    let mac = cfg!(target_os = "macos");
    let display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !mac && !display {
        return Err(Failure::run(format!("there is no display to open {} on", page.display())));
    }
    let viewer = if mac { "open" } else { "xdg-open" };
    let opened = Command::new(viewer).arg(page).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match opened {
        Ok(status) if status.success() => Ok(0),
        _ => Err(Failure::run(format!("{viewer} could not open {}", page.display()))),
    }
}

fn markdown(runs: &[ReportData], reference: Option<&Reference>, args: &ReportArgs) -> String {
    // As the page refers to them: from where it is itself.
    let folder = args.tests.as_deref().map(|tests| {
        let page = args.out.as_deref().and_then(Path::parent);
        page.and_then(|page| tests.strip_prefix(page).ok()).unwrap_or(tests)
    });
    let tests = |results: &Results| Some(tests_of(folder?, &results.record.name).display().to_string());
    match args.layout {
        Layout::Page => markdown::page(runs, reference, &tests),
        Layout::Wide => markdown::tables(runs, markdown::wide),
        Layout::Long => markdown::tables(runs, markdown::long),
    }
}

/// The matched-pair tests of each run in a file of its name.
fn write_tests(runs: &[ReportData], folder: &Path) -> Result<(), Failure> {
    for (at, run) in runs.iter().enumerate() {
        let name = run.name();
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return Err(Failure::request(format!("--tests: `{name}` cannot be the name of a file")));
        }
        if runs[..at].iter().any(|other| other.name() == name) {
            return Err(Failure::request(format!("--tests: two runs are named `{name}`")));
        }
    }
    make_folders(folder).map_err(|error| unwritable(folder, &error))?;
    runs.iter().try_for_each(|run| write(&tests_of(folder, run.name()), &pairs::csv(run.results())))
}

fn tests_of(folder: &Path, run: &str) -> PathBuf {
    folder.join(format!("{run}.csv"))
}

/// Writes a file that nobody but us has named.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_file(path, |file| file.write_all(clean(text).as_bytes())).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::run(format!("{} cannot be written: {}", path.display(), plain(error)))
}
