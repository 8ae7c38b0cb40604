//! Making every component and opening every file that a pipeline names, and saying at which place what is wrong.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use compflow_api::{
    Clusterer, Code, Flags, ForeignClusterer, ForeignComposer, ForeignEvaluator, ForeignLoader, Kind, LoadRequest,
    Loader, Metric, Services,
};

use super::effective::effective;
use super::recipe::Recipe;
use super::seed::derive_seed;
use super::shared::{PlannedEvaluator, Shared};
use super::{PlannedClusterer, Setup, Variant};
use crate::causes::Cause;
use crate::data::request::Request;
use crate::data::source::DataSource;
use crate::data::survey::describe;
use crate::data::values::FURTHER;
use crate::data::{data_files, loader_of};
use crate::error::Error;
use crate::files::display;
use crate::pipeline::keys::SEGMENT_KEYS;
use crate::pipeline::{self, Columns, Contents, Data, Named, STDIN, Use, Variables, grid, selection};
use crate::plugin::factory::{Created, Factory};
use crate::plugin::services::ComponentHost;
use crate::problem::{Origin, Problem};

/// Makes components and collects what is wrong with them.
pub(crate) struct Checker<'a> {
    pub(crate) factory: &'a Factory,
    pub(crate) variables: &'a Variables,
    pub(crate) problems: &'a mut Vec<Problem>,
}

/// A component that could be made.
struct Component {
    recipe: Recipe,
    instance: compflow_api::Instance,
}

impl Checker<'_> {
    /// Makes a component; what it refuses becomes problems at the place of the parameter.
    fn make(&mut self, component: &Use, kind: Kind) -> Option<Component> {
        if let Err(mut problem) = self.factory.registry.find(kind, &component.component) {
            problem.origin = Some(component.origin.clone());
            self.problems.push(problem);
            return None;
        }
        let before = self.problems.len();
        let params = component.params.to_json(self.problems);
        if self.problems.len() > before {
            return None;
        }
        let name = &component.component;
        let params = params.to_string();
        let _calling = self.factory.calling("planning", kind, name);
        match self.factory.create(kind, name, &params, name) {
            Ok(created) => {
                let asked = created.instance.flags().and_then(|flags| Ok((flags, created.instance.columns()?)));
                match asked {
                    Ok((flags, columns)) => {
                        let Created { instance, key, inputs } = created;
                        let recipe = Recipe { kind, name: name.clone(), params, key, flags, columns, inputs };
                        Some(Component { recipe, instance })
                    }
                    Err(error) => self.refused(component, &error),
                }
            }
            Err(error) => self.refused(component, &error),
        }
    }

    /// Notes what a component refuses.
    fn refused<T>(&mut self, component: &Use, error: &compflow_api::Error) -> Option<T> {
        self.problems.extend(error.problems().iter().map(|problem| about_parameter(component, problem)));
        None
    }

    pub(crate) fn composer(&mut self, component: &Use) -> Option<Shared<ForeignComposer>> {
        let Component { recipe, instance } = self.make(component, Kind::Composer)?;
        Some(Shared::new(recipe, ForeignComposer::try_from(instance).ok()?, self.factory))
    }

    pub(super) fn clusterer(
        &mut self,
        clusterer: &pipeline::Clusterer,
        pipeline: &Contents,
        composer: Option<&Recipe>,
    ) -> PlannedClusterer {
        let Use { component, origin, params } = &clusterer.component;
        let mut variants = Vec::new();
        let points = grid::expand(params, self.problems);
        let registry = &self.factory.registry;
        let schema_of = |name: &str| {
            let entry = registry.find(Kind::Clusterer, name).ok()?;
            serde_json::from_str(entry.component.schema).ok()
        };
        let schema: serde_json::Value = schema_of(component).unwrap_or_default();
        for point in &points {
            // Nobody looks at what is missing then.
            if self.factory.cancel.requested() {
                break;
            }
            let mut params = point.params.clone();
            selection::write_out_auto(&mut params, &schema, &schema_of);
            let label = if points.len() == 1 { clusterer.name.clone() } else { point.label(&clusterer.name) };
            let options = selection::options(&params, self.problems);
            let setups: Option<Vec<Setup>> = options
                .into_iter()
                .map(|option| {
                    let with = Use { component: component.clone(), origin: origin.clone(), params: option.params };
                    self.setup(&with, option.choices)
                })
                .collect();
            let Some(setups) = setups.filter(|setups| !setups.is_empty()) else { continue };
            let params = match &setups[..] {
                [only] => only.params.clone(),
                _ => params.to_json(self.problems).to_string(),
            };
            variants.push(Variant { label, choices: point.choices.clone(), params, options: setups });
        }
        if !variants.is_empty() {
            let setups = variants.iter().flat_map(|variant| &variant.options);
            let flags = setups.fold(Flags::NONE, |flags, setup| flags.and(setup.recipe.flags));
            let needs_composer = flags.contains(Flags::NEEDS_COMPOSER) || flags.contains(Flags::NEEDS_GRADIENTS);
            // With degree 1 there are no unions, and nothing is composed.
            if needs_composer && pipeline.degree > 1 && pipeline.composer.is_none() {
                self.problems.push(
                    Problem::new(
                        Cause::NeedsComposer,
                        origin,
                        format!("clusterer `{component}` needs a composer"),
                    )
                    .help("add a [composer] table, for example `use = \"max\"`, or set `degree = 1`"),
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
                let registry = &self.factory.registry;
                let with_gradients: Vec<String> = registry
                    .entries()
                    .filter(|entry| entry.component.kind == Kind::Composer)
                    .filter(|entry| entry.component.flags().contains(Flags::HAS_GRADIENTS))
                    .map(|entry| format!("`{}`", entry.component.name))
                    .collect();
                let help = format!("these have: {}", with_gradients.join(", "));
                self.problems.push(Problem::new(Cause::NeedsGradients, origin, text).help(help));
            }
        }
        PlannedClusterer { name: clusterer.name.clone(), variants }
    }

    /// Makes a clusterer with all parameters chosen.
    fn setup(&mut self, component: &Use, choices: Vec<(String, String)>) -> Option<Setup> {
        // It is asked, and ended.
        let _calling = self.factory.calling("planning", Kind::Clusterer, &component.component);
        let checked = self.make(component, Kind::Clusterer)?;
        let params = effective(&self.factory.registry, checked.instance.component(), &checked.recipe.params);
        match ForeignClusterer::try_from(checked.instance).and_then(|instance| instance.streams()) {
            Ok(streams) => Some(Setup { choices, recipe: checked.recipe, params, streams }),
            Err(error) => self.refused(component, &error),
        }
    }

    pub(crate) fn evaluators(&mut self, evaluators: &[Use]) -> Vec<PlannedEvaluator> {
        let mut planned: Vec<PlannedEvaluator> = Vec::new();
        for component in evaluators {
            let _calling = self.factory.calling("planning", Kind::Evaluator, &component.component);
            let Some(checked) = self.make(component, Kind::Evaluator) else { continue };
            let Ok(evaluator) = ForeignEvaluator::try_from(checked.instance) else { continue };
            let metrics = evaluator.try_metrics().unwrap_or_else(|error| {
                self.refused::<()>(component, &error);
                Vec::new()
            });
            let mut known = planned.iter().flat_map(|planned| &planned.metrics);
            if let Some(again) = known.find(|known| metrics.iter().any(|metric| metric.name == known.name)) {
                let text = format!("a second evaluator reports the metric `{}`", again.name);
                self.problems
                    .push(Problem::new(Cause::UsedTwice, &component.origin, text).help("remove one of the two"));
            }
            planned
                .push(PlannedEvaluator { shared: Shared::new(checked.recipe, evaluator, self.factory), metrics });
        }
        planned
    }

    pub(super) fn tune(
        &mut self,
        tune: &pipeline::Tune,
        pipeline: &Contents,
        metrics: &[Metric],
        all_made: bool,
    ) -> Option<Metric> {
        let (name, origin) = &tune.data;
        match pipeline.data.iter().find(|data| data.name == *name) {
            None => {
                let known: Vec<&str> = pipeline.data.iter().map(|data| data.name.as_str()).collect();
                self.problems.push(
                    Problem::new(Cause::Tuning, origin, format!("there is no [[data]] named `{name}`"))
                        .suggest(name, known),
                );
            }
            Some(data) if !data.tunes => self.problems.push(
                Problem::new(Cause::Tuning, origin, format!("the [[data]] named `{name}` is not for tuning"))
                    .help("add `role = \"tune\"` to it"),
            ),
            Some(_) => {}
        }
        let (name, origin) = &tune.metric;
        let metric = metrics.iter().find(|metric| metric.name == *name).cloned();
        if metric.is_none() && all_made {
            let text = format!("no [[evaluator]] reports the metric `{name}`");
            let known: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
            self.problems.push(Problem::new(Cause::Tuning, origin, text).suggest(name, known));
        }
        metric
    }

    /// Makes the loader and opens every file, so that missing files and columns are found before anything is read.
    /// `further` are columns that components want of all data.
    pub(crate) fn open(&mut self, data: &Data, seed: u64, further: &BTreeSet<&str>) -> Option<DataSource> {
        let checked = self.make(&data.loader, Kind::Loader)?;
        let needs_path = checked.recipe.flags.contains(Flags::NEEDS_PATH);
        let name = &data.loader.component;
        let files: Vec<Option<PathBuf>> = match (&data.path, needs_path) {
            (Some((pattern, origin)), true) => self.files(pattern, name, origin)?.into_iter().map(Some).collect(),
            (None, false) => vec![None],
            (None, true) => {
                let text = format!("[[data]] `{}` needs a `path`: the loader `{name}` reads files", data.name);
                self.problems.push(Problem::new(Cause::Place, &data.origin, text));
                return None;
            }
            (Some((_, origin)), false) => {
                let text = format!("`path` means nothing here: the loader `{name}` reads no files");
                self.problems.push(Problem::new(Cause::Place, origin, text));
                return None;
            }
        };
        let loader = ForeignLoader::try_from(checked.instance).ok()?;
        let seed = derive_seed(seed, &["data", &data.name]);
        // One that reads files has to be told the names of its columns; one that does not is asked which it makes.
        let plain = |name: &str| Named::One(name.to_owned());
        let mut columns: Vec<(String, Named)> = match &data.columns {
            Some(Columns(columns)) => {
                columns.iter().map(|(key, (named, _))| (in_stream(key), named.clone())).collect()
            }
            None if data.path.is_none() => {
                let made = self.columns_made(&loader, data, seed);
                made.into_iter().map(|name| (name.to_owned(), plain(name))).collect()
            }
            None => Vec::new(),
        };
        if columns.iter().all(|(key, _)| key != "embedding") {
            columns.insert(0, ("embedding".to_owned(), plain("embedding")));
        }
        let segments = self.names_segments(data)?;
        let first = files.first().and_then(Option::as_deref);
        let about = first.map_or_else(|| format!("data `{}`", data.name), display);
        let request = Request::new(&columns, data.split.as_deref(), &about, || {
            Ok(describe(&loader, first, name, &about, self.factory)?.names()?)
        });
        let mut request = match request {
            Ok(request) => request,
            Err(error) => {
                self.unreadable(data, first, &Request::default(), error);
                return None;
            }
        };
        // The pipeline may have another name for it.
        request.also(further.iter().map(|name| (format!("{FURTHER}{name}"), (*name).to_owned())));
        let open = DataSource { name: data.name.clone(), loader, seed, files, request, segments };
        let before = self.problems.len();
        for file in &open.files {
            if let Err(error) = open.probe(file.as_deref(), self.factory) {
                self.unreadable(data, file.as_deref(), &open.request, error);
            }
        }
        (self.problems.len() == before).then_some(open)
    }

    /// Notes why a file cannot be read as it is asked.
    fn unreadable(&mut self, data: &Data, file: Option<&Path>, request: &Request, error: Error) {
        match error {
            Error::Component(error) => {
                let problems = error.problems().iter();
                self.problems.extend(problems.map(|problem| about_column(data, file, request, problem)));
            }
            error => self.problems.push(about_data(data, error)),
        }
    }

    /// Whether the pipeline says where in a recording the examples are; a part of it is worth nothing.
    fn names_segments(&mut self, data: &Data) -> Option<bool> {
        let columns = data.columns.iter().flat_map(|Columns(columns)| columns);
        let named: Vec<_> = columns.filter(|(key, _)| SEGMENT_KEYS.contains(key)).collect();
        let missing: Vec<String> = SEGMENT_KEYS
            .iter()
            .filter(|key| named.iter().all(|(known, _)| known != *key))
            .map(|key| format!("`{key}`"))
            .collect();
        match named.first() {
            None => Some(false),
            Some(_) if missing.is_empty() => Some(true),
            Some((key, (_, origin))) => {
                let text = format!("`columns` names `{key}`, but not {}", missing.join(" and "));
                let help = "a segment of a recording has all of `file`, `start` and `end`";
                self.problems.push(Problem::new(Cause::Segments, origin, text).help(help));
                None
            }
        }
    }

    /// Which of the columns that a pipeline knows a loader makes up, as far as it says so without being asked for one.
    fn columns_made(&self, loader: &ForeignLoader, data: &Data, seed: u64) -> Vec<&'static str> {
        let mut made = vec!["embedding", "truth", "trial", "id"];
        let host = ComponentHost::new(self.factory, &data.name);
        let services = Services { host: &host, seed, memory: self.factory.memory, ..Services::none() };
        if let Ok(Some(described)) = loader.describe(&LoadRequest::default(), &services) {
            let names = described.names().unwrap_or_default();
            made.retain(|column| names.iter().any(|name| name == column));
        } else {
            let columns: Vec<(&str, &str)> = made.iter().map(|name| (*name, *name)).collect();
            if let Err(error) = loader.load(&LoadRequest { path: None, columns: &columns }, &services) {
                let lacks = |name: &str| {
                    let mut problems = error.problems().iter().filter(|problem| problem.code == Code::Column);
                    problems.any(|problem| problem.parameter.as_deref() == Some(name))
                };
                made.retain(|name| !lacks(name));
            }
        }
        made
    }

    /// The files that a path, a pattern or a folder stands for.
    fn files(&mut self, pattern: &str, loader: &str, origin: &Origin) -> Option<Vec<PathBuf>> {
        let problem = |text: String| Problem::new(Cause::File, origin, text);
        let pattern = match self.variables.replace(pattern) {
            Ok(pattern) => pattern,
            Err(name) => {
                let text = format!("`path` refers to the environment variable `{name}`, which is not set");
                let help = "set it, or give the path with --set data.NAME.path=…";
                self.problems.push(Problem::new(Cause::Variable, origin, text).help(help));
                return None;
            }
        };
        if pattern == STDIN {
            let file = self.variables.stdin().map(Path::to_owned);
            if file.is_none() {
                let text = "`path` is `-`, standard input, which can be read only once, by the command that it is piped into";
                self.problems.push(problem(text.to_owned()));
            }
            return file.map(|file| vec![file]);
        }
        match data_files(&self.factory.folder.join(&pattern), Some(loader), &self.factory.cancel) {
            Ok(files) => Some(files),
            Err(text) => {
                self.problems.push(problem(text));
                None
            }
        }
    }
}

/// A refusal at the place of the parameter it is about.
fn about_parameter(component: &Use, problem: &compflow_api::Problem) -> Problem {
    let place = match (problem.code, &problem.parameter) {
        (Code::Parameter, Some(path)) => {
            Some(component.params.locate(path)).filter(|place| *place != component.params.origin)
        }
        _ => None,
    };
    let cause = match problem.code {
        Code::Parameter if problem.text.starts_with("is not a parameter") => Cause::UnknownParameter,
        Code::Parameter => Cause::Parameter,
        Code::Column => Cause::Column,
        Code::Data => Cause::Format,
        Code::Budget => Cause::Memory,
        Code::Internal => Cause::Failed,
    };
    let slip = problem.parameter.as_deref().and_then(|path| grid::misspelt(&component.params, path));
    let help = slip.map(|(found, meant)| format!("did you mean `{meant}`? `{found}` means nothing here"));
    Problem {
        cause,
        text: format!("{}: {}", component.component, problem.what()),
        origin: Some(place.unwrap_or_else(|| component.origin.clone())),
        help: help.or_else(|| problem.help.clone()),
    }
}

/// A loader's refusal at the place of the column or parameter it is about, with the file called as elsewhere.
fn about_column(data: &Data, file: Option<&Path>, request: &Request, problem: &compflow_api::Problem) -> Problem {
    // A column that is a part of an embedding or a set has no name of its own in the pipeline.
    let key = problem.parameter.as_deref().map(|name| request.key_of(name).to_owned());
    let problem = &compflow_api::Problem { parameter: key, ..problem.clone() };
    let mut placed = about_parameter(&data.loader, problem);
    if let Some(file) = file {
        placed.text = placed.text.replace(&file.display().to_string(), &display(file));
    }
    let mut columns = data.columns.iter().flat_map(|Columns(columns)| columns);
    let column = columns
        .find(|(key, _)| problem.code == Code::Column && problem.parameter.as_ref() == Some(&in_stream(key)));
    if let Some(name) = problem.parameter.as_deref().and_then(|name| name.strip_prefix(FURTHER)) {
        let file = file.map_or_else(|| format!("data `{}`", data.name), display);
        if let Some((key, (named, _))) = column {
            placed.text = format!("`{key}` names the column `{named}`, which is not in {file}");
        } else {
            placed.text = format!("a clusterer or evaluator asks for the column `{name}`, which is not in {file}");
            if SEGMENT_KEYS.contains(&name) {
                let help = "name the columns: `columns = { …, file = …, start = …, end = … }`";
                placed.help = Some(help.to_owned());
            }
        }
    }
    if placed.cause == Cause::Format
        && placed.help.is_none()
        && let Some(other) = file.and_then(loader_of).filter(|other| *other != data.loader.component)
    {
        placed.help = Some(format!("`loader = \"{other}\"` reads files of such a name"));
    }
    if let Some((_, (_, origin))) = column {
        placed.origin = Some(origin.clone());
    } else if placed.origin.as_ref() == Some(&data.loader.origin) {
        placed.origin = Some(data_place(data).clone());
    }
    placed
}

/// What is wrong with data, at the place where the pipeline names it.
pub(super) fn about_data(data: &Data, error: Error) -> Problem {
    let place = || Some(data_place(data).clone());
    match error {
        Error::Data(problem) => Problem { origin: place(), ..*problem },
        other => Problem::new(Cause::Data, data_place(data), other.to_string()),
    }
}

/// What a column of the pipeline is called in a stream.
fn in_stream(key: &str) -> String {
    if SEGMENT_KEYS.contains(&key) { format!("{FURTHER}{key}") } else { key.to_owned() }
}

/// Where a pipeline says what data is read.
pub(super) fn data_place(data: &Data) -> &Origin {
    data.path.as_ref().map_or(&data.origin, |(_, origin)| origin)
}
