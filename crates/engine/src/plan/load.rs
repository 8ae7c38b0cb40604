//! Reading the data of a pipeline.

use std::time::Instant;

use compflow_api::{Flags, Level, Sets, plural};

use super::check::Checked;
use super::checker::about_data;
use super::fitting::{check_columns, check_dataset};
use super::{PlannedClusterer, PlannedData, PlannedEvaluator, Setup};
use crate::causes::Cause;
use crate::data::build::Keep;
use crate::data::source::DataSource;
use crate::data::{Dataset, Trial};
use crate::error::{Error, Result};
use crate::observer::Counted;
use crate::pipeline::{Data, Pipeline};
use crate::plugin::factory::Factory;
use crate::problem::Problem;

/// Files of more bytes than this are read only for a pipeline in which nothing else is wrong.
const LARGE: u64 = 1 << 28;

/// Reads all data that [`check`](super::check::check) has opened.
///
/// # Errors
/// All problems at once, those of the file and the components included.
pub(super) fn load(
    pipeline: &Pipeline,
    factory: &Factory,
    checked: &mut Checked,
    threads: usize,
) -> Result<Vec<PlannedData>> {
    let mut problems = std::mem::take(&mut checked.problems);
    let sound = problems.is_empty();
    let mut loaded = Vec::new();
    let sources = std::mem::take(&mut checked.sources);
    let total = sources.len();
    let progress = factory.observer.count(Counted::Data, total);
    let streamed = streams(checked);
    let keep = if streamed { Keep::Streamed } else { Keep::Matrix };
    // All data together must fit, not each by itself, beside the files that components have read.
    let mut memory = factory.memory.saturating_sub(factory.inputs.bytes());
    for (at, (source, data)) in sources.into_iter().zip(&pipeline.contents.data).enumerate() {
        let Some(source) = source else { continue };
        check_columns(&source.request, data, checked, &mut problems);
        // Who has to correct the file anyway does not wait for what would be wrong with much data.
        if !sound && size(&source) > LARGE {
            continue;
        }
        let started = Instant::now();
        match source.read(keep, factory, threads, memory) {
            Ok(dataset) => {
                let rows: usize = dataset.trials.iter().map(Trial::size).sum();
                let seconds = started.elapsed().as_secs_f64();
                let text = format!("loaded {} of {} in {seconds:.3} s", plural(rows, "row"), dataset.dim);
                factory.observer.log(Level::Info, &data.name, &text);
                memory = memory.saturating_sub(dataset.bytes);
                check_dataset(&dataset, data, checked, pipeline, factory, &mut problems);
                check_seeds(&dataset, data, pipeline.contents.degree, &mut problems);
                warn_of_what_is_not_used(&dataset, data, checked, factory);
                say_what_is_scored(&dataset, data, checked, factory);
                warn_of_larger_sets(&dataset, data, pipeline.contents.degree, factory);
                loaded.push(planned(dataset, source, data, streamed));
            }
            Err(_) if factory.cancel.requested() => return Err(Error::Interrupted),
            Err(error) => {
                problems.push(about_data(data, error));
            }
        }
        progress.advance(at as u64 + 1, total as u64);
    }
    if problems.is_empty() { Ok(loaded) } else { Err(Error::problems(problems, &pipeline.document.sources)) }
}

/// The bytes of all files.
fn size(source: &DataSource) -> u64 {
    let files = source.files.iter().flatten();
    files.filter_map(|file| std::fs::metadata(file).ok()).map(|about| about.len()).sum()
}

/// Data that was read before, beside the sources that it is from.
pub(super) fn handed_on(pipeline: &Pipeline, checked: &mut Checked, datasets: Vec<Dataset>) -> Vec<PlannedData> {
    let streamed = streams(checked);
    let sources = std::mem::take(&mut checked.sources).into_iter().zip(&pipeline.contents.data);
    let planned = |(dataset, (source, data)): (_, (Option<_>, _))| Some(planned(dataset, source?, data, streamed));
    datasets.into_iter().zip(sources).filter_map(planned).collect()
}

/// Whether nobody wants the matrix as a whole.
fn streams(checked: &Checked) -> bool {
    checked.clusterers.iter().flat_map(PlannedClusterer::setups).all(|setup| setup.streams)
}

fn planned(dataset: Dataset, source: DataSource, data: &Data, streamed: bool) -> PlannedData {
    PlannedData {
        name: data.name.clone(),
        tunes: data.tunes,
        dataset,
        files: source.files.iter().flatten().cloned().collect(),
        streamed: streamed.then_some(source),
    }
}

/// Weights and known sets that a method takes no notice of are worth a word.
fn warn_of_what_is_not_used(dataset: &Dataset, data: &Data, checked: &Checked, factory: &Factory) {
    let has = |has: fn(&Trial) -> bool| dataset.trials.iter().any(has);
    let there = [
        ("weights", has(|trial| trial.weights.is_some()), Flags::USES_WEIGHTS),
        ("seeds", has(|trial| trial.seeds.is_some()), Flags::USES_SEEDS),
    ];
    for (what, _, flag) in there.into_iter().filter(|(_, there, _)| *there) {
        let uses = |setup: &Setup| setup.recipe.flags.contains(flag);
        let others = checked.clusterers.iter().filter(|clusterer| !clusterer.setups().all(uses));
        let names: Vec<String> = others.map(|clusterer| format!("`{}`", clusterer.name)).collect();
        if !names.is_empty() {
            let text = format!("no use of its {what} is made by {}", names.join(", "));
            factory.observer.log(Level::Warn, &format!("data `{}`", data.name), &text);
        }
    }
}

/// Known sets are right without having been found, so they are not compared with the truth.
fn say_what_is_scored(dataset: &Dataset, data: &Data, checked: &Checked, factory: &Factory) {
    let seeds = || dataset.trials.iter().filter_map(|trial| trial.seeds.as_ref());
    let known = seeds().flat_map(|seeds| seeds.sets.iter()).filter(|set| !set.is_empty()).count();
    let compares = checked.evaluators.iter().any(PlannedEvaluator::needs_truth)
        && dataset.trials.iter().any(|trial| trial.truth.is_some());
    if known > 0 && compares {
        let all: usize = dataset.trials.iter().map(Trial::size).sum();
        let text = match all - known {
            0 => "every example has a seed, so that none is left to be compared with the truth".to_owned(),
            others => {
                format!("the {known} examples with a seed are not compared with the truth: scores are of {others}")
            }
        };
        factory.observer.log(Level::Warn, &format!("data `{}`", data.name), &text);
    }
}

/// True sets that no clusterer can find. Without unions nobody looks for sets.
fn warn_of_larger_sets(dataset: &Dataset, data: &Data, degree: usize, factory: &Factory) {
    let truth = || dataset.trials.iter().filter_map(|trial| trial.truth.as_ref());
    let larger = truth().flat_map(|truth| truth.iter()).filter(|set| set.len() > degree).count();
    if degree > 1 && larger > 0 {
        let all: usize = truth().map(Sets::len).sum();
        let text = format!(
            "{larger} of {} have more labels than the degree, {degree}: unions of so many are not looked for",
            plural(all, "true set")
        );
        factory.observer.log(Level::Warn, &format!("data `{}`", data.name), &text);
    }
}

/// Known sets that no clusterer could keep.
fn check_seeds(dataset: &Dataset, data: &Data, degree: usize, problems: &mut Vec<Problem>) {
    for Trial { number, ids, seeds, .. } in &dataset.trials {
        let Some(seeds) = seeds else { continue };
        let Some(at) = seeds.sets.iter().position(|set| set.len() > degree) else { continue };
        let set = &seeds.sets[at];
        let text = format!(
            "data `{}`: the seed of example {} in trial {number}, {}, has {} members, more than the degree, {degree}",
            data.name,
            ids.shown(at),
            seeds.shown(set),
            set.len(),
        );
        let place = data.columns.as_ref().and_then(|columns| columns.get("seed")).map(|(_, origin)| origin);
        let help = format!("set `degree = {}`, or leave the seed null", set.len());
        problems.push(Problem::new(Cause::Seeds, place.unwrap_or(&data.origin), text).help(help));
        return;
    }
}
