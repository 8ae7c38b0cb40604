//! From a pipeline file to a plan: every component made, every file read, every problem found.

mod checker;

use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) use checker::Checker;
use compflow_api::{Composer, Flags, ForeignComposer, Level, Metric};

use crate::cell::{Recipe, Setting};
use crate::dataset::{Dataset, Keep, Trial};
use crate::diagnostics::{self, Problem, Source};
use crate::document::Document;
use crate::environment::{Environment, plain};
use crate::failure::Failure;
use crate::files::Inputs;
use crate::pipeline::{Data, Pin, Pipeline};
use crate::registry::{Found, Registry, State};
use crate::source::DataSource;
use crate::terminal::Terminal;
use crate::{interrupt, pipeline, trust};

/// Everything that a run needs; nothing in it can turn out to be wrong because of the pipeline file.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) environment: Environment,
    pub(crate) file: PathBuf,
    /// The file and the `--set` options, as JSON.
    pub(crate) resolved: serde_json::Value,
    pub(crate) name: String,
    pub(crate) seed: u64,
    /// What `--only` named.
    pub(crate) only: Vec<String>,
    pub(crate) setting: Setting,
    pub(crate) data: Vec<LoadedData>,
    pub(crate) clusterers: Vec<PlannedClusterer>,
    /// Of all evaluators, in their order.
    pub(crate) metrics: Vec<Metric>,
    pub(crate) tune: Option<PlannedTune>,
}

/// A `[[data]]` table and what it holds.
#[derive(Debug)]
pub(crate) struct LoadedData {
    pub(crate) name: String,
    /// Whether it only settles grids.
    pub(crate) tunes: bool,
    pub(crate) dataset: Dataset,
    /// To read the embeddings again, if they were not kept.
    pub(crate) streamed: Option<DataSource>,
}

/// A `[[clusterer]]` table and the points of its grids.
#[derive(Debug)]
pub(crate) struct PlannedClusterer {
    pub(crate) name: String,
    pub(crate) variants: Vec<Variant>,
}

impl PlannedClusterer {
    /// Whether it is given the true sets.
    pub(crate) fn knows_truth(&self) -> bool {
        self.variants.iter().any(|variant| variant.recipe.flags.contains(Flags::NEEDS_TRUTH))
    }
}

/// A clusterer with all parameters chosen.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The name and the choices made from grids.
    pub(crate) label: String,
    pub(crate) recipe: Recipe,
    /// The parameters with preset and defaults filled in, as JSON.
    pub(crate) params: String,
    /// Whether it reads the examples batch by batch.
    pub(crate) streams: bool,
}

/// `[tune]`, resolved.
#[derive(Debug)]
pub(crate) struct PlannedTune {
    /// Index in [`Plan::data`].
    pub(crate) data: usize,
    pub(crate) metric: Metric,
}

/// What the command line adds to a pipeline file.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) plugins: Vec<PathBuf>,
    pub(crate) set: Vec<String>,
    /// Names of clusterers or data; empty means all.
    pub(crate) only: Vec<String>,
    pub(crate) threads: usize,
    pub(crate) memory: u64,
    pub(crate) quiet: bool,
}

/// Reads a pipeline and everything it names.
///
/// # Errors
/// All problems at once, rendered.
pub(crate) fn prepare(file: &Path, options: &Options) -> Result<Plan, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::request(format!("{}: {}", file.display(), plain(&error))))?;
    let folders = crate::registry::search_path(&options.plugins).map_err(Failure::request)?;
    let mut problems = Vec::new();
    let source = Source { name: file.display().to_string(), text };
    let document = Document::parse(source, &options.set, &mut problems);
    let styled = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let render = |problems: Vec<Problem>| match interrupt::requested() {
        true => Failure::Interrupted,
        false => Failure::Problems(diagnostics::render(problems, &document.sources, styled)),
    };
    if !problems.is_empty() {
        return Err(render(problems));
    }
    let stem = file.file_stem().map_or_else(|| "pipeline".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let mut pipeline = pipeline::read(&document, &stem, &mut problems);
    let environment = Environment {
        registry: Registry::scan_pinned(&folders, &pipeline.pinned()),
        folder: folder_of(file),
        inputs: Inputs::default(),
        terminal: Terminal::new(options.quiet),
        memory: options.memory,
    };
    problems.extend(pipeline.pins.iter().filter_map(|pin| unmet(pin, &environment.registry)));
    if environment.registry.entries().next().is_none() && problems.is_empty() {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        return Err(Failure::request(format!("no plugins in {}; see --plugins", folders.join(", "))));
    }
    for found in &environment.registry.libraries {
        if let State::Refused(reason) = &found.state {
            environment.terminal.say(&format!("warning: {} {reason}", found.path.display()));
        }
    }
    select(&mut pipeline, &options.only, &mut problems);
    let mut checker = Checker { environment: &environment, problems: &mut problems };
    let composer = pipeline.composer.as_ref().and_then(|composer| checker.composer(composer));
    let clusterers: Vec<PlannedClusterer> = pipeline
        .clusterers
        .iter()
        .map(|clusterer| checker.clusterer(clusterer, &pipeline, composer.as_ref().map(|(recipe, _)| recipe)))
        .collect();
    let (evaluators, metrics) = checker.evaluators(&pipeline.evaluators);
    let all_made = evaluators.len() == pipeline.evaluators.len();
    let metric = pipeline.tune.as_ref().and_then(|tune| checker.tune(tune, &pipeline, &metrics, all_made));
    let sources: Vec<Option<DataSource>> =
        pipeline.data.iter().map(|data| checker.open(data, pipeline.seed)).collect();
    let evaluates = !pipeline.evaluators.is_empty();
    if !problems.is_empty() {
        return Err(render(problems));
    }
    let mut loaded = Vec::new();
    let bar = environment.terminal.count("loading", sources.len());
    // The matrix is read only if somebody wants it whole.
    let streamed = clusterers.iter().flat_map(|clusterer| &clusterer.variants).all(|variant| variant.streams);
    let keep = if streamed { Keep::Streamed } else { Keep::Matrix };
    for (source, data) in sources.into_iter().flatten().zip(&pipeline.data) {
        let started = Instant::now();
        match source.read(keep, &environment, options.threads) {
            Ok(dataset) => {
                let rows: usize = dataset.trials.iter().map(Trial::len).sum();
                let seconds = started.elapsed().as_secs_f64();
                let text = format!("loaded {rows} rows of {} in {seconds:.3} s", dataset.dim);
                environment.terminal.log(Level::Info, &data.name, &text);
                check_dataset(&dataset, data, composer.as_ref(), evaluates, &clusterers, &mut problems);
                loaded.push(LoadedData {
                    name: data.name.clone(),
                    tunes: data.tunes,
                    dataset,
                    streamed: streamed.then_some(source),
                });
            }
            Err(_) if interrupt::requested() => return Err(Failure::Interrupted),
            Err(text) => {
                let origin = data.path.as_ref().map_or(&data.origin, |(_, origin)| origin);
                problems.push(Problem::new(origin, text));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !problems.is_empty() {
        return Err(render(problems));
    }
    let tune = pipeline.tune.as_ref().zip(metric).and_then(|(tune, metric)| {
        let data = loaded.iter().position(|data| data.name == tune.data.0)?;
        Some(PlannedTune { data, metric })
    });
    Ok(Plan {
        file: file.to_owned(),
        resolved: document.root.to_json(&mut Vec::new()),
        name: pipeline.name,
        seed: pipeline.seed,
        only: options.only.clone(),
        setting: Setting {
            degree: pipeline.degree,
            space: pipeline.space,
            composer: composer.map(|(recipe, _)| recipe),
            evaluators,
            threads: options.threads,
            memory: options.memory,
        },
        data: loaded,
        clusterers,
        metrics,
        tune,
        environment,
    })
}

/// What is wrong with a pin: there is no such library, or its content is another.
fn unmet(pin: &Pin, registry: &Registry) -> Option<Problem> {
    let named = |found: &&Found| trust::stem(&found.path) == Some(&pin.library);
    let Some(found) = registry.libraries.iter().find(named) else {
        let known: Vec<&str> = registry.libraries.iter().filter_map(|found| trust::stem(&found.path)).collect();
        let text = format!("there is no library `{}`, and the pipeline requires it", pin.library);
        return Some(Problem::new(&pin.origin, text).suggest(&pin.library, known));
    };
    let hash = found.hash().map_or_else(str::to_owned, |hash| format!("{}{hash}", trust::PREFIX));
    let text = format!("library `{}` is {hash}, and the pipeline requires {}", pin.library, pin.hash);
    (hash != pin.hash).then(|| Problem::new(&pin.origin, text).help(format!("it is {}", found.path.display())))
}

/// The folder of a file; a bare name is in the current one.
fn folder_of(file: &Path) -> PathBuf {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    file.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Keeps the clusterers and data that `--only` names; what settles grids stays.
fn select(pipeline: &mut Pipeline, only: &[String], problems: &mut Vec<Problem>) {
    let clusterers: Vec<String> = pipeline.clusterers.iter().map(|clusterer| clusterer.name.clone()).collect();
    let data: Vec<String> = pipeline.data.iter().map(|data| data.name.clone()).collect();
    for name in only {
        if !clusterers.contains(name) && !data.contains(name) {
            let text = format!("--only: there is no clusterer or data named `{name}`");
            let known = clusterers.iter().chain(&data).map(String::as_str);
            problems.push(Problem::without_place(text).suggest(name, known));
        }
    }
    if only.iter().any(|name| clusterers.contains(name)) {
        pipeline.clusterers.retain(|clusterer| only.contains(&clusterer.name));
    }
    if only.iter().any(|name| data.contains(name)) {
        pipeline.data.retain(|data| data.tunes || only.contains(&data.name));
    }
    let tunes = |data: &Data| pipeline.tune.as_ref().is_some_and(|tune| tune.data.0 == data.name);
    if !only.is_empty() && pipeline.data.iter().all(|data| data.tunes) {
        problems
            .push(Problem::without_place("--only leaves nothing to run: all that is left of the data only tunes"));
    }
    for data in pipeline.data.iter().filter(|data| data.tunes && !tunes(data)) {
        let text = format!("the [[data]] named `{}` is for tuning, and no [tune] uses it", data.name);
        problems.push(Problem::new(&data.origin, text));
    }
}

/// What can only be said once the data is there.
fn check_dataset(
    dataset: &Dataset,
    data: &Data,
    composer: Option<&(Recipe, ForeignComposer)>,
    evaluates: bool,
    clusterers: &[PlannedClusterer],
    problems: &mut Vec<Problem>,
) {
    if let Some((recipe, composer)) = composer
        && let Some(dim) = composer.dim()
        && dim != dataset.dim
    {
        problems.push(Problem::new(
            &data.origin,
            format!(
                "data `{}` has embeddings of length {}, and the composer `{}` is made for {dim}",
                data.name, dataset.dim, recipe.name
            ),
        ));
    }
    if dataset.trials.iter().all(|trial| trial.truth.is_some()) {
        return;
    }
    let clusterer = clusterers.iter().find(|clusterer| clusterer.knows_truth());
    let who = clusterer.map(|clusterer| format!("clusterer `{}` needs", clusterer.name));
    if let Some(who) = who.or_else(|| evaluates.then(|| "the evaluators need".to_owned())) {
        let text = format!("data `{}` has no true sets, and {who} them", data.name);
        let help = "name the column: `columns = { embedding = …, truth = … }`";
        problems.push(Problem::new(&data.origin, text).help(help));
    }
}
