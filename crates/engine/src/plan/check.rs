//! Everything about a pipeline that can be checked without reading its data.

use std::collections::{BTreeSet, HashMap};

use compflow_api::{ForeignComposer, Level, Metric};

use super::PlannedClusterer;
use super::checker::Checker;
use super::shared::{PlannedEvaluator, Shared};
use crate::causes::Cause;
use crate::data::source::DataSource;
use crate::error::{Error, Result};
use crate::pipeline::pins::{PREFIX, is_pin};
use crate::pipeline::{Contents, Pin, Pipeline};
use crate::plugin::factory::Factory;
use crate::plugin::{LibraryFile, Registry, State, trust};
use crate::problem::Problem;

/// The components of a pipeline that could be made, its data that could be opened, and what is wrong with the others.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) composer: Option<Shared<ForeignComposer>>,
    pub(super) clusterers: Vec<PlannedClusterer>,
    pub(super) evaluators: Vec<PlannedEvaluator>,
    /// Of all evaluators, in their order.
    pub(super) metrics: Vec<Metric>,
    /// The one that tunes.
    pub(super) metric: Option<Metric>,
    /// In the order of the pipeline's data; `None` for those that could not be opened.
    pub(super) sources: Vec<Option<DataSource>>,
    /// What is wrong.
    pub(super) problems: Vec<Problem>,
}

/// Makes every component and opens every file.
///
/// # Errors
/// If there are no components at all, or the work is no longer wanted.
pub(super) fn check(pipeline: &Pipeline, factory: &Factory) -> Result<Checked> {
    let (contents, registry) = (&pipeline.contents, &factory.registry);
    let mut problems = pipeline.problems.clone();
    // What is wrong with others has been said.
    let pins = contents.pins.iter().filter(|pin| is_pin(&pin.hash));
    problems.extend(pins.filter_map(|pin| unmet(pin, registry)));
    if registry.is_empty() && problems.is_empty() {
        let folders: Vec<String> = registry.folders.iter().map(|folder| folder.display().to_string()).collect();
        let refused: String =
            registry.libraries.iter().filter_map(refusal).map(|why| format!("\n  {why}")).collect();
        let what = if refused.is_empty() { "no plugins" } else { "no plugins that may be loaded" };
        return Err(Error::request(format!("{what} in {}; see --plugins{refused}", folders.join(", "))));
    }
    for file in registry.libraries.iter() {
        let path = file.path.display();
        match &file.state {
            State::Refused(_) => {
                refusal(file).iter().for_each(|text| factory.observer.log(Level::Warn, "", text));
            }
            // The same library twice is none of the user's concern; another one that hides it is.
            State::Shadowed(by) if !registry.same_content(file, by) => {
                let text = format!("{path} is not used: {} has the same name and comes first", by.display());
                factory.observer.log(Level::Warn, "", &text);
            }
            State::Shadowed(_) | State::Known(_) => {}
        }
    }
    let mut checker = Checker { factory, variables: &pipeline.variables, problems: &mut problems };
    let composer = contents.composer.as_ref().and_then(|composer| checker.composer(composer));
    let clusterers: Vec<PlannedClusterer> = contents
        .clusterers
        .iter()
        .map(|clusterer| checker.clusterer(clusterer, contents, composer.as_ref().map(|shared| &shared.recipe)))
        .collect();
    if factory.cancel.requested() {
        return Err(Error::Interrupted);
    }
    problems_of_labels(contents, &clusterers, checker.problems);
    let evaluators = checker.evaluators(&contents.evaluators);
    let metrics: Vec<Metric> = evaluators.iter().flat_map(|evaluator| evaluator.metrics.clone()).collect();
    let all_made = evaluators.len() == contents.evaluators.len();
    let metric = contents.tune.as_ref().and_then(|tune| checker.tune(tune, contents, &metrics, all_made));
    let clusterers_want = clusterers.iter().flat_map(PlannedClusterer::setups).map(|setup| &setup.recipe);
    let wanted = clusterers_want.chain(evaluators.iter().map(|evaluator| &evaluator.shared.recipe));
    // Identifiers are always there.
    let further: BTreeSet<&str> =
        wanted.flat_map(|recipe| &recipe.columns).map(String::as_str).filter(|name| *name != "id").collect();
    let sources: Vec<Option<DataSource>> =
        contents.data.iter().map(|data| checker.open(data, contents.seed, &further)).collect();
    // A component that was told to stop says so, and that is no problem of the pipeline.
    match factory.cancel.requested() && !problems.is_empty() {
        true => Err(Error::Interrupted),
        false => Ok(Checked { composer, clusterers, evaluators, metrics, metric, sources, problems }),
    }
}

/// Notes clusterers of which a method is called like one before it: a point of a grid may have the name of another clusterer. One
/// with grids goes by its own name as well, where it is tuned.
fn problems_of_labels(contents: &Contents, clusterers: &[PlannedClusterer], problems: &mut Vec<Problem>) {
    let mut first = HashMap::new();
    for (at, planned) in clusterers.iter().enumerate() {
        let labels = planned.variants.iter().map(|variant| variant.label.as_str());
        let own = Some(planned.name.as_str()).filter(|_| planned.variants.len() != 1);
        // Two of one name have been found as the pipeline was read.
        let again = labels.chain(own).find(|label| {
            let before = *first.entry(*label).or_insert(at);
            before != at && clusterers[before].name != planned.name
        });
        if let Some(label) = again {
            let text = format!("a second method is called `{label}`");
            let help = "tables join by this name, to which a grid adds what is chosen: name it otherwise";
            let origin = &contents.clusterers[at].component.origin;
            problems.push(Problem::new(Cause::UsedTwice, origin, text).help(help));
        }
    }
}

/// A library that is not loaded, and why.
fn refusal(file: &LibraryFile) -> Option<String> {
    match &file.state {
        State::Refused(reason) => Some(format!("{} {reason}", file.path.display())),
        State::Shadowed(_) | State::Known(_) => None,
    }
}

/// What is wrong with a pin: there is no such library, or its content is another.
fn unmet(pin: &Pin, registry: &Registry) -> Option<Problem> {
    let named = |file: &&LibraryFile| trust::stem(&file.path) == Some(&pin.library);
    let Some(file) = registry.libraries.iter().find(named) else {
        let known: Vec<&str> = registry.libraries.iter().filter_map(|file| trust::stem(&file.path)).collect();
        let text = format!("there is no library `{}`, and the pipeline requires it", pin.library);
        return Some(Problem::new(Cause::Pinned, &pin.origin, text).suggest(&pin.library, known));
    };
    let hash = file.hash().map_or_else(ToString::to_string, |hash| format!("{}{hash}", PREFIX));
    let text = format!("library `{}` is {hash}, and the pipeline requires {}", pin.library, pin.hash);
    (hash != pin.hash)
        .then(|| Problem::new(Cause::Pinned, &pin.origin, text).help(format!("it is {}", file.path.display())))
}
