//! From a pipeline file to a plan: every component made, every file read, every problem found.

use std::path::{Path, PathBuf};
use std::time::Instant;

use compflow_api::{
    Clusterer, Composer, Flags, ForeignClusterer, ForeignComposer, ForeignEvaluator, ForeignLoader, Kind, Level,
    Metric,
};

use crate::cell::{Recipe, Setting, derive_seed};
use crate::dataset::{Dataset, Keep, Trial};
use crate::diagnostics::{self, Origin, Problem, Source};
use crate::document::Document;
use crate::environment::{Environment, plain};
use crate::failure::Failure;
use crate::files::{Inputs, display};
use crate::pipeline::{Columns, Data, Pin, Pipeline, Use};
use crate::registry::{Found, Registry, State};
use crate::source::DataSource;
use crate::terminal::Terminal;
use crate::{grid, interrupt, pipeline, trust};

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
    let pins = pipeline.pins.iter().map(|pin| (pin.library.clone(), pin.hash.clone())).collect();
    let environment = Environment {
        registry: Registry::scan_pinned(&folders, &pins),
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

/// Makes components and collects what is wrong with them.
pub(crate) struct Checker<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) problems: &'a mut Vec<Problem>,
}

/// A component that could be made.
struct Checked {
    recipe: Recipe,
    instance: compflow_api::Instance,
}

impl Checker<'_> {
    /// Makes a component; what it refuses becomes problems at the place of the parameter.
    fn make(&mut self, component: &Use, kind: Kind) -> Option<Checked> {
        let entry = match self.environment.registry.find(kind, &component.component) {
            Ok(entry) => entry,
            Err(mut problem) => {
                problem.origin = Some(component.origin.clone());
                self.problems.push(problem);
                return None;
            }
        };
        let before = self.problems.len();
        let params = component.params.to_json(self.problems);
        if self.problems.len() > before {
            return None;
        }
        let name = &component.component;
        let params = params.to_string();
        match self.environment.make(kind, name, &params, name) {
            Ok(made) => Some(Checked {
                recipe: Recipe { kind, name: name.clone(), params, key: made.key, flags: entry.component.flags() },
                instance: made.instance,
            }),
            Err(error) => {
                for line in error.to_string().lines() {
                    self.problems.push(about_parameter(component, line));
                }
                None
            }
        }
    }

    fn composer(&mut self, component: &Use) -> Option<(Recipe, ForeignComposer)> {
        let Checked { recipe, instance } = self.make(component, Kind::Composer)?;
        Some((recipe, ForeignComposer::try_from(instance).ok()?))
    }

    fn clusterer(
        &mut self,
        clusterer: &pipeline::Clusterer,
        pipeline: &Pipeline,
        composer: Option<&Recipe>,
    ) -> PlannedClusterer {
        let Use { component, origin, params } = &clusterer.component;
        let mut variants = Vec::new();
        let points = grid::expand(params, self.problems);
        for point in &points {
            let at_point =
                Use { component: component.clone(), origin: origin.clone(), params: point.params.clone() };
            let Some(checked) = self.make(&at_point, Kind::Clusterer) else { continue };
            let params = checked.instance.component().effective(&checked.recipe.params);
            let label = if points.len() == 1 { clusterer.name.clone() } else { point.label(&clusterer.name) };
            let streams = ForeignClusterer::try_from(checked.instance).is_ok_and(|instance| instance.streams());
            variants.push(Variant { label, recipe: checked.recipe, params, streams });
        }
        if let Some(variant) = variants.first() {
            let flags = variant.recipe.flags;
            let needs_composer = flags.contains(Flags::NEEDS_COMPOSER) || flags.contains(Flags::NEEDS_GRADIENTS);
            if needs_composer && pipeline.composer.is_none() {
                self.problems.push(
                    Problem::new(origin, format!("clusterer `{component}` needs a composer"))
                        .help("add a [composer] table, for example `use = \"max\"`"),
                );
            }
            if let Some(composer) = composer
                && flags.contains(Flags::NEEDS_GRADIENTS)
                && !composer.flags.contains(Flags::HAS_GRADIENTS)
            {
                let text = format!(
                    "clusterer `{component}` needs gradients, and the composer `{}` has none",
                    composer.name
                );
                let registry = &self.environment.registry;
                let with_gradients: Vec<String> = registry
                    .entries()
                    .filter(|entry| entry.component.kind == Kind::Composer)
                    .filter(|entry| entry.component.flags().contains(Flags::HAS_GRADIENTS))
                    .map(|entry| format!("`{}`", entry.component.name))
                    .collect();
                let help = format!("these have: {}", with_gradients.join(", "));
                self.problems.push(Problem::new(origin, text).help(help));
            }
        }
        PlannedClusterer { name: clusterer.name.clone(), variants }
    }

    pub(crate) fn evaluators(&mut self, evaluators: &[Use]) -> (Vec<Recipe>, Vec<Metric>) {
        let mut recipes = Vec::new();
        let mut metrics: Vec<Metric> = Vec::new();
        for component in evaluators {
            let Some(checked) = self.make(component, Kind::Evaluator) else { continue };
            let Ok(evaluator) = ForeignEvaluator::try_from(checked.instance) else { continue };
            let reported = evaluator.try_metrics().unwrap_or_else(|error| {
                self.problems.push(about_parameter(component, &error.to_string()));
                Vec::new()
            });
            if let Some(again) =
                reported.iter().find(|metric| metrics.iter().any(|known| known.name == metric.name))
            {
                let text = format!("a second evaluator reports the metric `{}`", again.name);
                self.problems.push(Problem::new(&component.origin, text).help("remove one of the two"));
            }
            metrics.extend(reported);
            recipes.push(checked.recipe);
        }
        (recipes, metrics)
    }

    fn tune(
        &mut self,
        tune: &pipeline::Tune,
        pipeline: &Pipeline,
        metrics: &[Metric],
        all_made: bool,
    ) -> Option<Metric> {
        let (name, origin) = &tune.data;
        match pipeline.data.iter().find(|data| data.name == *name) {
            None => {
                let known: Vec<&str> = pipeline.data.iter().map(|data| data.name.as_str()).collect();
                self.problems.push(
                    Problem::new(origin, format!("there is no [[data]] named `{name}`")).suggest(name, known),
                );
            }
            Some(data) if !data.tunes => self.problems.push(
                Problem::new(origin, format!("the [[data]] named `{name}` is not for tuning"))
                    .help("add `role = \"tune\"` to it"),
            ),
            Some(_) => {}
        }
        let (name, origin) = &tune.metric;
        let metric = metrics.iter().find(|metric| metric.name == *name).cloned();
        if metric.is_none() && all_made {
            let text = format!("no [[evaluator]] reports the metric `{name}`");
            let known: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
            self.problems.push(Problem::new(origin, text).suggest(name, known));
        }
        metric
    }

    /// Makes the loader and opens every file, so that missing files and columns are found before anything is read.
    pub(crate) fn open(&mut self, data: &Data, seed: u64) -> Option<DataSource> {
        let checked = self.make(&data.loader, Kind::Loader)?;
        let needs_path = checked.recipe.flags.contains(Flags::NEEDS_PATH);
        let name = &data.loader.component;
        let files = match (&data.path, needs_path) {
            (Some((pattern, origin)), true) => self.files(pattern, origin)?.into_iter().map(Some).collect(),
            (None, false) => vec![None],
            (None, true) => {
                let text = format!("[[data]] `{}` needs a `path`: the loader `{name}` reads files", data.name);
                self.problems.push(Problem::new(&data.origin, text));
                return None;
            }
            (Some((_, origin)), false) => {
                let text = format!("`path` means nothing here: the loader `{name}` reads no files");
                self.problems.push(Problem::new(origin, text));
                return None;
            }
        };
        let loader = ForeignLoader::try_from(checked.instance).ok()?;
        let seed = derive_seed(seed, &["data", &data.name]);
        // A loader without files makes its columns; one with files has to be told their names.
        let mut columns = match &data.columns {
            Some(columns) => columns.all().map(|column| column.map(|(name, _)| name.clone())),
            None if data.path.is_none() => {
                ["embedding", "truth", "trial", "id", ""].map(|name| (!name.is_empty()).then(|| name.to_owned()))
            }
            None => Default::default(),
        };
        columns[0].get_or_insert_with(|| "embedding".to_owned());
        let open = DataSource { name: data.name.clone(), loader, seed, files, columns };
        let before = self.problems.len();
        for file in &open.files {
            if let Err(text) = open.load(file.as_deref(), self.environment, 1) {
                self.problems.extend(text.lines().map(|line| about_column(data, file.as_deref(), line)));
            }
        }
        (self.problems.len() == before).then_some(open)
    }

    /// The files that a path or pattern names.
    fn files(&mut self, pattern: &str, origin: &Origin) -> Option<Vec<PathBuf>> {
        let problem = |text: String| Problem::new(origin, text);
        let pattern = match with_variables(pattern, |name| std::env::var(name).ok()) {
            Ok(pattern) => pattern,
            Err(name) => {
                let text = format!("`path` refers to the environment variable `{name}`, which is not set");
                let help = "set it, or give the path with --set data.NAME.path=…";
                self.problems.push(problem(text).help(help));
                return None;
            }
        };
        let absolute = self.environment.folder.join(&pattern);
        let files = if pattern.contains(['*', '?', '[']) && !absolute.exists() {
            let matches = match glob::glob(&absolute.to_string_lossy()) {
                Ok(matches) => matches,
                Err(error) => {
                    self.problems.push(problem(format!("`path` is no valid pattern: {}", error.msg)));
                    return None;
                }
            };
            let mut files: Vec<PathBuf> = matches.filter_map(Result::ok).filter(|file| file.is_file()).collect();
            files.sort();
            if files.is_empty() {
                self.problems.push(problem(format!("no file matches {}", display(&absolute))));
                return None;
            }
            files
        } else {
            vec![absolute]
        };
        let mut resolved = Vec::new();
        for file in files {
            // The content's hash goes into run.json; a file that cannot be read is noticed here.
            let read = file.canonicalize().and_then(|file| self.environment.inputs.hash(&file).map(|_| file));
            match read {
                Ok(file) => resolved.push(file),
                Err(error) => self.problems.push(problem(format!("{}: {}", display(&file), plain(&error)))),
            }
        }
        Some(resolved)
    }
}

/// A text with every `${NAME}` replaced; or the name of the first that has no value.
fn with_variables(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, &str> {
    let (mut expanded, mut left) = (String::new(), text);
    while let Some((before, after)) = left.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        expanded.push_str(before);
        expanded.push_str(&value(name).ok_or(name)?);
        left = after;
    }
    Ok(expanded + left)
}

/// A refusal at the place of the parameter it names first.
fn about_parameter(component: &Use, line: &str) -> Problem {
    let parameter = line.strip_prefix('`').and_then(|rest| rest.split_once('`')).map(|(name, _)| name);
    let origin = match parameter {
        None => component.origin.clone(),
        Some(path) => {
            let place = component.params.locate(path);
            if place == component.params.origin { component.origin.clone() } else { place }
        }
    };
    let (text, help) = match line.split_once("; did you mean ") {
        Some((text, near)) => (text, Some(format!("did you mean {near}"))),
        None => (line, None),
    };
    Problem { text: format!("{}: {text}", component.component), origin: Some(origin), help }
}

/// A loader's refusal at the place of the column or parameter it names first, with the file called as elsewhere.
fn about_column(data: &Data, file: Option<&Path>, line: &str) -> Problem {
    let line = match file {
        Some(file) => line.replace(&file.display().to_string(), &display(file)),
        None => line.to_owned(),
    };
    let mut problem = about_parameter(&data.loader, &line);
    let named = line.strip_prefix("no column `").and_then(|rest| rest.split_once('`')).map(|(name, _)| name);
    let columns = data.columns.as_ref().map(Columns::all).into_iter().flatten();
    if let Some((_, origin)) = columns.flatten().find(|(column, _)| Some(column.as_str()) == named) {
        problem.origin = Some(origin.clone());
    } else if let Some((_, origin)) =
        data.path.as_ref().filter(|_| problem.origin.as_ref() == Some(&data.loader.origin))
    {
        problem.origin = Some(origin.clone());
    }
    problem
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_refer_to_the_environment() {
        let value = |name: &str| (name == "DATA").then(|| "/there".to_owned());
        assert_eq!(with_variables("${DATA}/a-${DATA}.parquet", value), Ok("/there/a-/there.parquet".to_owned()));
        assert_eq!(with_variables("$DATA/${a", value), Ok("$DATA/${a".to_owned()));
        assert_eq!(with_variables("${DATA}/${NONE}", value), Err("NONE"));
    }
}
