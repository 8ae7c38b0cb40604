//! Making every component and opening every file that a pipeline names, and saying at which place what is wrong.

use std::path::{Path, PathBuf};

use compflow_api::{
    Clusterer, Flags, ForeignClusterer, ForeignComposer, ForeignEvaluator, ForeignLoader, Kind, Metric,
};

use super::recipe::Recipe;
use super::seed::derive_seed;
use super::{PlannedClusterer, Variant};
use crate::data::source::DataSource;
use crate::files::{display, plain};
use crate::pipeline::{self, Columns, Contents, Data, Use, Variables, grid};
use crate::plugin::factory::Factory;
use crate::plugin::texts::refusal;
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
        let entry = match self.factory.registry.find(kind, &component.component) {
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
        match self.factory.create(kind, name, &params, name) {
            Ok(created) => Some(Component {
                recipe: Recipe {
                    kind,
                    name: name.clone(),
                    params,
                    key: created.key,
                    flags: entry.component.flags(),
                },
                instance: created.instance,
            }),
            Err(error) => {
                for line in error.to_string().lines() {
                    self.problems.push(about_parameter(component, line));
                }
                None
            }
        }
    }

    pub(super) fn composer(&mut self, component: &Use) -> Option<(Recipe, ForeignComposer)> {
        let Component { recipe, instance } = self.make(component, Kind::Composer)?;
        Some((recipe, ForeignComposer::try_from(instance).ok()?))
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
            if let Err(error) = open.load(file.as_deref(), self.factory, 1) {
                self.problems
                    .extend(error.to_string().lines().map(|line| about_column(data, file.as_deref(), line)));
            }
        }
        (self.problems.len() == before).then_some(open)
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
            let read = file
                .canonicalize()
                .and_then(|file| self.factory.inputs.hash(&file, &self.factory.cancel).map(|_| file));
            match read {
                Ok(file) => resolved.push(file),
                Err(error) => self.problems.push(problem(format!("{}: {}", display(&file), plain(&error)))),
            }
        }
        Some(resolved)
    }
}

/// A refusal at the place of the parameter it names first.
fn about_parameter(component: &Use, line: &str) -> Problem {
    let refusal = refusal(line);
    let origin = match refusal.parameter {
        None => component.origin.clone(),
        Some(path) => {
            let place = component.params.locate(path);
            if place == component.params.origin { component.origin.clone() } else { place }
        }
    };
    let help = refusal.suggestion.map(|near| format!("did you mean {near}"));
    Problem { text: format!("{}: {}", component.component, refusal.text), origin: Some(origin), help }
}

/// A loader's refusal at the place of the column or parameter it names first, with the file called as elsewhere.
fn about_column(data: &Data, file: Option<&Path>, line: &str) -> Problem {
    let line = match file {
        Some(file) => line.replace(&file.display().to_string(), &display(file)),
        None => line.to_owned(),
    };
    let mut problem = about_parameter(&data.loader, &line);
    let column = refusal(&line).column;
    let columns = data.columns.as_ref().map(Columns::all).into_iter().flatten();
    if let Some((_, origin)) = columns.flatten().find(|(known, _)| Some(known.as_str()) == column) {
        problem.origin = Some(origin.clone());
    } else if let Some((_, origin)) =
        data.path.as_ref().filter(|_| problem.origin.as_ref() == Some(&data.loader.origin))
    {
        problem.origin = Some(origin.clone());
    }
    problem
}
