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
use crate::data::dataset::FURTHER;
use crate::data::source::DataSource;
use crate::error::Error;
use crate::files::pattern::expand;
use crate::files::{display, plain, require_file};
use crate::pipeline::keys::SEGMENT_KEYS;
use crate::pipeline::{self, Columns, Contents, Data, Use, Variables, grid, selection};
use crate::plugin::factory::Factory;
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
        match self.factory.create(kind, name, &params, name) {
            Ok(created) => {
                let asked = created.instance.flags().and_then(|flags| Ok((flags, created.instance.columns()?)));
                match asked {
                    Ok((flags, columns)) => {
                        let recipe = Recipe { kind, name: name.clone(), params, key: created.key, flags, columns };
                        Some(Component { recipe, instance: created.instance })
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
        Some(Shared::new(recipe, ForeignComposer::try_from(instance).ok()?))
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
            variants.push(Variant { label, params, options: setups });
        }
        if !variants.is_empty() {
            let setups = variants.iter().flat_map(|variant| &variant.options);
            let flags = setups.fold(Flags::NONE, |flags, setup| flags.and(setup.recipe.flags));
            let needs_composer = flags.contains(Flags::NEEDS_COMPOSER) || flags.contains(Flags::NEEDS_GRADIENTS);
            // With degree 1 there are no unions, and nothing is composed.
            if needs_composer && pipeline.degree > 1 && pipeline.composer.is_none() {
                self.problems.push(
                    Problem::new(origin, format!("clusterer `{component}` needs a composer"))
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
                self.problems.push(Problem::new(origin, text).help(help));
            }
        }
        PlannedClusterer { name: clusterer.name.clone(), variants }
    }

    /// Makes a clusterer with all parameters chosen.
    fn setup(&mut self, component: &Use, choices: Vec<(String, String)>) -> Option<Setup> {
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
            let Some(checked) = self.make(component, Kind::Evaluator) else { continue };
            let Ok(evaluator) = ForeignEvaluator::try_from(checked.instance) else { continue };
            let metrics = evaluator.try_metrics().unwrap_or_else(|error| {
                self.refused::<()>(component, &error);
                Vec::new()
            });
            let mut known = planned.iter().flat_map(|planned| &planned.metrics);
            if let Some(again) = known.find(|known| metrics.iter().any(|metric| metric.name == known.name)) {
                let text = format!("a second evaluator reports the metric `{}`", again.name);
                self.problems.push(Problem::new(&component.origin, text).help("remove one of the two"));
            }
            planned.push(PlannedEvaluator { shared: Shared::new(checked.recipe, evaluator), metrics });
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
    /// `further` are columns that components want of all data.
    pub(crate) fn open(&mut self, data: &Data, seed: u64, further: &BTreeSet<&str>) -> Option<DataSource> {
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
        // One that reads files has to be told the names of its columns; one that does not is asked which it makes.
        let mut columns: Vec<(String, String)> = match &data.columns {
            Some(Columns(columns)) => {
                columns.iter().map(|(key, (name, _))| (in_stream(key), name.clone())).collect()
            }
            None if data.path.is_none() => {
                let made = self.columns_made(&loader, data, seed);
                made.into_iter().map(|name| (name.to_owned(), name.to_owned())).collect()
            }
            None => Vec::new(),
        };
        if columns.iter().all(|(key, _)| key != "embedding") {
            columns.insert(0, ("embedding".to_owned(), "embedding".to_owned()));
        }
        let segments = self.names_segments(data)?;
        for name in further {
            let key = format!("{FURTHER}{name}");
            // The pipeline may have another name for it.
            if columns.iter().all(|(known, _)| *known != key) {
                columns.push((key, (*name).to_owned()));
            }
        }
        let open = DataSource { name: data.name.clone(), loader, seed, files, columns, segments };
        let before = self.problems.len();
        for file in &open.files {
            match open.probe(file.as_deref(), self.factory) {
                Ok(()) => {}
                Err(Error::Component(error)) => {
                    let problems = error.problems().iter();
                    self.problems.extend(problems.map(|problem| about_column(data, file.as_deref(), problem)));
                }
                Err(error) => self.problems.push(Problem::new(data_place(data), error.to_string())),
            }
        }
        (self.problems.len() == before).then_some(open)
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
                self.problems.push(Problem::new(origin, text).help(help));
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

    /// The files that a path or pattern names.
    fn files(&mut self, pattern: &str, origin: &Origin) -> Option<Vec<PathBuf>> {
        let problem = |text: String| Problem::new(origin, text);
        let pattern = match self.variables.replace(pattern) {
            Ok(pattern) => pattern,
            Err(name) => {
                let text = format!("`path` refers to the environment variable `{name}`, which is not set");
                let help = "set it, or give the path with --set data.NAME.path=…";
                self.problems.push(problem(text).help(help));
                return None;
            }
        };
        let absolute = self.factory.folder.join(&pattern);
        let files = if pattern.contains(['*', '?', '[']) && !absolute.exists() {
            let files = match expand(&absolute.to_string_lossy(), &self.factory.cancel) {
                Ok(files) => files,
                Err(reason) => {
                    self.problems.push(problem(format!("`path` {reason}")));
                    return None;
                }
            };
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
            match readable(&file) {
                Ok(file) => resolved.push(file),
                Err(error) => self.problems.push(problem(format!("{}: {}", display(&file), plain(&error)))),
            }
        }
        Some(resolved)
    }
}

/// The real path of a file that can be opened.
fn readable(file: &Path) -> std::io::Result<PathBuf> {
    let file = file.canonicalize()?;
    require_file(&file)?;
    std::fs::File::open(&file)?;
    Ok(file)
}

/// A refusal at the place of the parameter it is about.
fn about_parameter(component: &Use, problem: &compflow_api::Problem) -> Problem {
    let place = match (problem.code, &problem.parameter) {
        (Code::Parameter, Some(path)) => {
            Some(component.params.locate(path)).filter(|place| *place != component.params.origin)
        }
        _ => None,
    };
    Problem {
        text: format!("{}: {}", component.component, problem.what()),
        origin: Some(place.unwrap_or_else(|| component.origin.clone())),
        help: problem.help.clone(),
    }
}

/// A loader's refusal at the place of the column or parameter it is about, with the file called as elsewhere.
fn about_column(data: &Data, file: Option<&Path>, problem: &compflow_api::Problem) -> Problem {
    let mut placed = about_parameter(&data.loader, problem);
    if let Some(file) = file {
        placed.text = placed.text.replace(&file.display().to_string(), &display(file));
    }
    let mut columns = data.columns.iter().flat_map(|Columns(columns)| columns);
    let column = columns
        .find(|(key, _)| problem.code == Code::Column && problem.parameter.as_ref() == Some(&in_stream(key)));
    if let Some(name) = problem.parameter.as_deref().and_then(|name| name.strip_prefix(FURTHER)) {
        let file = file.map_or_else(|| format!("data `{}`", data.name), display);
        if let Some((key, (source, _))) = column {
            placed.text = format!("`{key}` names the column `{source}`, which is not in {file}");
        } else {
            placed.text = format!("a clusterer or evaluator asks for the column `{name}`, which is not in {file}");
            if SEGMENT_KEYS.contains(&name) {
                let help = "name the columns: `columns = { …, file = …, start = …, end = … }`";
                placed.help = Some(help.to_owned());
            }
        }
    }
    if let Some((_, (_, origin))) = column {
        placed.origin = Some(origin.clone());
    } else if placed.origin.as_ref() == Some(&data.loader.origin) {
        placed.origin = Some(data_place(data).clone());
    }
    placed
}

/// What a column of the pipeline is called in a stream.
fn in_stream(key: &str) -> String {
    if SEGMENT_KEYS.contains(&key) { format!("{FURTHER}{key}") } else { key.to_owned() }
}

/// Where a pipeline says what data is read.
pub(super) fn data_place(data: &Data) -> &Origin {
    data.path.as_ref().map_or(&data.origin, |(_, origin)| origin)
}
