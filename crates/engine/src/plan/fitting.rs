//! Whether data and components fit together: what can be said before anything is computed.

use compflow_api::{Kind, plural};
use serde_json::Value as Json;

use super::check::Checked;
use super::{PlannedClusterer, Variant};
use crate::causes::Cause;
use crate::data::request::Request;
use crate::data::{Dataset, Trial};
use crate::pipeline::keys::COLUMN_KEYS;
use crate::pipeline::selection::KEYWORD;
use crate::pipeline::{Data, Pipeline};
use crate::plugin::Registry;
use crate::plugin::factory::Factory;
use crate::problem::Problem;

/// What somebody needs and the data is not asked for: true sets, or a column that a parameter names, as in
/// `preference = "column"`.
pub(super) fn check_columns(request: &Request, data: &Data, checked: &Checked, problems: &mut Vec<Problem>) {
    if !request.has("truth") {
        let clusterers = checked.clusterers.iter().filter(|clusterer| clusterer.knows_truth());
        let mut who: Vec<String> = clusterers.map(|clusterer| format!("clusterer `{}`", clusterer.name)).collect();
        let evaluators = checked.evaluators.iter().filter(|evaluator| evaluator.needs_truth());
        who.extend(evaluators.map(|evaluator| format!("evaluator `{}`", evaluator.name())));
        if !who.is_empty() {
            let need = if who.len() == 1 { "needs" } else { "need" };
            let text = format!("data `{}` has no true sets, and {} {need} them", data.name, who.join(", "));
            let help = "name the column: `columns = { embedding = …, truth = … }`";
            problems.push(Problem::new(Cause::NoTruth, &data.origin, text).help(help));
        }
    }
    for planned in &checked.clusterers {
        let wants = |key: &&&str| {
            let is = |variant: &Variant| parameters(variant).get(**key).is_some_and(|value| value == "column");
            planned.variants.iter().any(is) && !request.has(key)
        };
        if let Some(key) = COLUMN_KEYS.iter().find(wants) {
            let text = format!(
                "data `{}` has no column of {key}s, and clusterer `{}` takes them from it: `{key} = \"column\"`",
                data.name, planned.name
            );
            let help =
                format!("name the column: `columns = {{ embedding = …, {key} = … }}`, or take another `{key}`");
            problems.push(Problem::new(Cause::NoPreference, &data.origin, text).help(help));
        }
    }
}

/// What turns out only when the data is there: embeddings of another length than the composer's, or fewer examples than a
/// clusterer is to find clusters.
pub(super) fn check_dataset(
    dataset: &Dataset,
    data: &Data,
    checked: &Checked,
    pipeline: &Pipeline,
    factory: &Factory,
    problems: &mut Vec<Problem>,
) {
    if let Some(composer) = &checked.composer
        && let Some(dim) = composer.get(factory).and_then(|composer| composer.try_dim()).unwrap_or_default()
        && dim != dataset.dim
    {
        let text = format!(
            "data `{}` has embeddings of length {}, and the composer `{}` is made for {dim}",
            data.name, dataset.dim, composer.recipe.name
        );
        problems.push(Problem::new(Cause::Dimensions, &data.origin, text));
    }
    let Some(smallest) = dataset.trials.iter().min_by_key(|trial| trial.size()) else { return };
    for (planned, written) in checked.clusterers.iter().zip(&pipeline.contents.clusterers) {
        let Some((path, k)) = too_many(planned, smallest, &factory.registry) else { continue };
        let examples = plural(smallest.size(), "example");
        let of = match dataset.trials.len() {
            1 => format!("data `{}` has {examples}", data.name),
            _ => format!("trial {} of data `{}` has {examples}", smallest.number, data.name),
        };
        let text = format!("clusterer `{}` is to find {k} clusters, and {of}", planned.name);
        let place = written.component.params.locate(&path);
        let help = format!("`{path}` can be at most {}", smallest.size());
        problems.push(Problem::new(Cause::TooFewExamples, &place, text).help(help));
    }
}

/// The parameter that asks for more clusters than a trial has examples, in every point of the grids.
fn too_many(planned: &PlannedClusterer, trial: &Trial, registry: &Registry) -> Option<(String, u64)> {
    let found = planned.variants.iter().map(|variant| {
        // Of values to select from, those that fail are left out.
        let [setup] = &variant.options[..] else { return None };
        let counts = counts(&setup.recipe.name, &parameters(variant), registry);
        counts.into_iter().find(|(_, k)| *k > trial.size() as u64)
    });
    let found: Option<Vec<(String, u64)>> = found.collect();
    found?.into_iter().next()
}

/// How many clusters a clusterer and those inside of it are asked for: their parameters called `k` that could also be
/// selected.
fn counts(component: &str, params: &Json, registry: &Registry) -> Vec<(String, u64)> {
    let schema = registry.find(Kind::Clusterer, component).ok();
    let schema: Json =
        schema.and_then(|entry| serde_json::from_str(entry.component.schema).ok()).unwrap_or_default();
    let is_count = !schema["properties"]["k"][KEYWORD].is_null();
    let own = params["k"].as_u64().filter(|_| is_count).map(|k| ("k".to_owned(), k));
    let inner = params.as_object().into_iter().flatten().flat_map(|(name, value)| {
        let used = value["use"].as_str().map(|used| counts(used, &value["params"], registry)).unwrap_or_default();
        used.into_iter().map(move |(path, k)| (format!("{name}.params.{path}"), k))
    });
    own.into_iter().chain(inner).collect()
}

fn parameters(variant: &Variant) -> Json {
    serde_json::from_str(&variant.params).unwrap_or_default()
}
