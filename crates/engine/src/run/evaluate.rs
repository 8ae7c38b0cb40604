//! Scoring.

use compflow_api::{Error, Evaluator, ForeignEvaluator, Result, Services, Sets};

use crate::plan::recipe::Recipe;
use crate::plugin::factory::Factory;
use crate::plugin::services::ComponentHost;

/// Scores sets with one evaluator.
///
/// # Errors
/// Whatever it says, and a score that is not a number.
pub(crate) fn evaluate(
    factory: &Factory,
    recipe: &Recipe,
    truth: &Sets,
    predicted: &Sets,
    about: &str,
) -> Result<Vec<(String, f64)>> {
    let evaluator = ForeignEvaluator::try_from(recipe.make(factory)?)?;
    let host = ComponentHost::sealed(factory, about);
    let services = Services { host: &host, memory: factory.memory, ..Services::none() };
    let names = evaluator.try_metrics()?;
    let values = evaluator.evaluate(truth, predicted, &services)?;
    names
        .into_iter()
        .zip(values)
        .map(|(metric, value)| match value.is_finite() {
            true => Ok((metric.name, value)),
            false => Err(Error::new(format!("the score `{}` is {value}", metric.name))),
        })
        .collect()
}
