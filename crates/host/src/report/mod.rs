//! `compflow report`: a results folder as one self-contained HTML page, or several as the tables of `docs/results.md`.

mod bars;
mod cell;
mod colour;
mod confusion;
mod graph;
mod markdown;
mod names;
mod page;
mod pca;
mod points;
mod reference;
mod scatter;
mod scores;
mod setup;
mod svg;
mod times;
mod traces;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::cli::{Pages, ReportArgs};
use crate::dataset::Dataset;
use crate::environment::plain;
use crate::failure::Failure;
use crate::files::write_whole;
use crate::reload::{Again, Means, Trivial};
use crate::results::Results;

/// A run's tables, and its data read again.
struct Material {
    results: Results,
    space: compflow_api::Space,
    data: BTreeMap<String, ReadAgain>,
}

/// A data set as far as it can still be had; the reasons are for people.
struct ReadAgain {
    dataset: Result<Dataset, String>,
    trivial: Vec<(Trivial, Result<Means, String>)>,
}

impl Material {
    fn gather(folder: &Path, plugins: &[PathBuf]) -> Result<Self, Failure> {
        let results = Results::open(folder)?;
        let again = Again::new(&results.record, plugins)?;
        let space = again.space();
        let mut data = BTreeMap::new();
        for name in results.data() {
            let dataset = again.data(name);
            let score = |which| match &dataset {
                Ok(dataset) => again.trivial(dataset, which),
                Err(reason) => Err(reason.clone()),
            };
            let trivial = Trivial::ALL.map(|which| (which, score(which))).to_vec();
            data.insert(name.to_owned(), ReadAgain { dataset, trivial });
        }
        drop(again);
        Ok(Self { results, space, data })
    }

    /// The mean score of a trivial clustering, if it can be had.
    fn trivial(&self, data: &str, which: Trivial, metric: &str) -> Option<f64> {
        let (_, scores) = self.data.get(data)?.trivial.iter().find(|(known, _)| *known == which)?;
        scores.as_ref().ok()?.get(metric).copied()
    }
}

/// Makes the report; returns where it is, or its text if it goes to stdout.
///
/// # Errors
/// If a folder is no results folder, a cell does not exist, or the file cannot be written.
pub(crate) fn report(plugins: &[PathBuf], args: &ReportArgs) -> Result<Output, Failure> {
    let (text, default) = match args.format {
        Pages::Html => {
            let [folder] = &args.folders[..] else {
                return Err(Failure::request("a page shows one run; give one folder, or --format md"));
            };
            if args.reference.is_some() {
                return Err(Failure::request("--reference is for --format md"));
            }
            let material = Material::gather(folder, plugins)?;
            (page::page(&material, &args.cell)?, Some(folder.join("report.html")))
        }
        Pages::Md => {
            if !args.cell.is_empty() {
                return Err(Failure::request("--cell is for --format html"));
            }
            let reference = args.reference.as_deref().map(reference::Reference::read).transpose()?;
            let runs: Vec<Material> =
                args.folders.iter().map(|folder| Material::gather(folder, plugins)).collect::<Result<_, _>>()?;
            (markdown::page(&runs, reference.as_ref()), None)
        }
    };
    let Some(path) = args.out.clone().or(default) else { return Ok(Output::Text(text)) };
    write_whole(&path, false, |file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::run(format!("{} cannot be written: {}", path.display(), plain(&error))))?;
    Ok(Output::File(path))
}

/// Where a report went.
pub(crate) enum Output {
    Text(String),
    File(PathBuf),
}
