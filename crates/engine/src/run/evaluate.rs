//! Scoring.

use compflow_api::{Error, Evaluation, Result, Services};

use crate::plan::PlannedEvaluator;
use crate::plugin::factory::Factory;
use crate::plugin::services::ComponentHost;

/// How far a score may be beyond its range for rounding alone.
const ROUNDING: f64 = 1e-9;

/// Scores sets with one evaluator.
///
/// # Errors
/// Whatever it says, and a score that is not a number or beyond the range that it declared.
pub(crate) fn evaluate(
    factory: &Factory,
    evaluator: &PlannedEvaluator,
    evaluation: &Evaluation<'_>,
    about: &str,
) -> Result<Vec<(String, f64)>> {
    let host = ComponentHost::sealed(factory, about);
    let services = Services { host: &host, memory: factory.memory, ..Services::none() };
    let _calling = factory.calling(about, evaluator.shared.recipe.kind, &evaluator.shared.recipe.name);
    let instance = evaluator.shared.get(factory)?;
    let values =
        instance.score(&evaluator.metrics, evaluation, &services).inspect_err(|_| evaluator.shared.discard())?;
    evaluator
        .metrics
        .iter()
        .zip(values)
        .map(|(metric, value)| {
            let (least, most) = metric.range;
            let allowed = least - ROUNDING * least.abs().max(1.0)..=most + ROUNDING * most.abs().max(1.0);
            match value.is_finite() && allowed.contains(&value) {
                true => Ok((metric.name.clone(), value)),
                false if value.is_finite() => Err(Error::new(format!(
                    "the score `{}` is {value}, which is not between {least} and {most}",
                    metric.name
                ))),
                false => Err(Error::new(format!("the score `{}` is {value}", metric.name))),
            }
        })
        .collect()
}
