//! `compflow export`: what a run has found, as other tools read it.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

use compflow_engine::assign::{Cell, CellRequest};
use compflow_engine::data::{Segment, Trial};
use compflow_engine::files::{plain, write_whole};
use compflow_engine::pipeline::keys::SEGMENT_KEYS;
use compflow_engine::results::{self, RecordedRun};
use compflow_engine::{Cancel, Results};

use super::place::Place;
use super::{plugins, print, variables};
use crate::cli::RttmArgs;
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::terminal::clean::clean;

/// Sets in the order of the examples, and names of their members.
type Found = (Vec<Vec<u32>>, BTreeMap<u32, String>);

/// Runs `export rttm`.
///
/// # Errors
/// If it is not clear what is meant, the data does not say where in recordings the examples are, or is gone.
pub(crate) fn rttm(plugins: &[PathBuf], args: &RttmArgs) -> Result<i32, Failure> {
    let parent = args.out.parent().filter(|parent| *parent != Path::new(""));
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        return Err(Failure::request(format!("--out: there is no folder {}", parent.display())));
    }
    let out = Place::new(&args.out);
    let run = Results::open(&args.folder)?;
    let request =
        CellRequest { data: args.data.as_deref(), trial: args.trial, clusterer: args.clusterer.as_deref() };
    let cells = Cell::choose_trials(&run, &request)?;
    let folders = plugins::search_path(plugins)?;
    let recorded = RecordedRun::new(
        &run.record,
        |pins| plugins::scanned(&folders, pins),
        variables(),
        &Terminal::shared(true),
        &Cancel::new(),
    );
    let dataset = match cells.first() {
        Some(cell) => recorded.data(&cell.data)?,
        None => return Err(Failure::request("the run has found nothing")),
    };
    let mut recordings: HashMap<String, u32> = HashMap::new();
    let mut names: HashMap<u32, BTreeMap<u32, String>> = HashMap::new();
    let mut found: Vec<(Segment, Vec<u32>)> = Vec::new();
    for cell in &cells {
        let Cell { data, trial, clusterer } = cell;
        let same = |found: &&Trial| found.number == *trial;
        let trial = dataset
            .trials
            .iter()
            .find(same)
            .ok_or_else(|| Failure::request(format!("data `{data}` has no trial {trial} any more")))?;
        let lacks = |name: &&&str| trial.columns.iter().all(|(known, _)| known != **name);
        if let Some(name) = SEGMENT_KEYS.iter().find(lacks) {
            let keys = "`columns = { …, file = …, start = …, end = … }`";
            let text =
                format!("data `{data}` has no `{name}`: name the columns of its segments and run again, {keys}");
            return Err(Failure::request(text));
        }
        let segments = trial.segments()?;
        for segment in &segments {
            let first = *recordings.entry(segment.file.clone()).or_insert(trial.number);
            if first != trial.number {
                return Err(Failure::request(format!(
                    "`{}` is in the trials {first} and {}: choose one with --trial",
                    segment.file, trial.number
                )));
            }
        }
        let (sets, called) = sets_of(&run, data, trial, clusterer)?;
        names.insert(trial.number, called);
        found.extend(segments.into_iter().zip(sets));
    }
    // Seeds have names; they are of one trial, and so is a recording.
    let speaker = |file: &str, cluster: u32| {
        let called = recordings.get(file).and_then(|trial| names.get(trial)?.get(&cluster));
        called.map_or_else(|| format!("speaker{cluster}"), Clone::clone)
    };
    let text = results::rttm(found.iter().map(|(segment, set)| (segment, &set[..])), speaker)?;
    let text = clean(&text);
    if args.out == Path::new("-") {
        return print(&text);
    }
    write_whole(&out.path, false, |file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::run(format!("{} cannot be written: {}", out.shown.display(), plain(&error))))?;
    Ok(0)
}

/// The set that a clusterer gave to every example of a trial, and what clusters are called, if they have names.
fn sets_of(run: &Results, data: &str, trial: &Trial, clusterer: &str) -> Result<Found, Failure> {
    let number = trial.number;
    let assignments = run.assignments(data, number)?;
    let Some(assigned) = assignments.iter().find(|assigned| assigned.clusterer == clusterer) else {
        return Err(Failure::request(format!("`{clusterer}` has found nothing in trial {number} of `{data}`")));
    };
    let sets: HashMap<&str, &[u32]> = assigned.ids.iter().map(String::as_str).zip(assigned.sets.iter()).collect();
    let set = |id: &String| {
        let set = sets.get(id.as_str()).map(|set| set.to_vec());
        set.ok_or_else(|| Failure::request(format!("the run has no example {id} in trial {number} of `{data}`")))
    };
    let sets = trial.ids.texts().iter().map(set).collect::<Result<_, _>>()?;
    Ok((sets, assigned.names.clone()))
}
