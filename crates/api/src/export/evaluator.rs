//! What a library exports of an evaluator.

use std::ffi::c_void;

use super::services::with_services;
use crate::abi::*;
use crate::guard::enter;
use crate::raw::{copy_sets, lend};
use crate::{Component, Error, Evaluator, Sets};

/// The functions of an evaluator.
pub(super) const fn methods<C: Component + Evaluator>() -> &'static RawEvaluatorMethods {
    const {
        &RawEvaluatorMethods {
            size: size_of::<RawEvaluatorMethods>() as u32,
            reserved: 0,
            metrics: Some(metrics::<C>),
            evaluate: Some(evaluate::<C>),
        }
    }
}

unsafe extern "C" fn metrics<C: Component + Evaluator>(
    instance: *mut c_void,
    host: *const RawHost,
    sink: ScoreFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the arguments are as `RawEvaluatorMethods::metrics` says.
    unsafe {
        enter::<C>(instance, host, |evaluator| {
            for metric in evaluator.metrics() {
                sink(sink_ctx, lend(&metric.name), if metric.larger_is_better { 1.0 } else { -1.0 });
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn evaluate<C: Component + Evaluator>(
    instance: *mut c_void,
    truth: *const RawSets,
    predicted: *const RawSets,
    host: *const RawHost,
    sink: ScoreFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the arguments are as `RawEvaluatorMethods::evaluate` says.
    unsafe {
        enter::<C>(instance, host, |evaluator| {
            let (truth, predicted): (Sets, Sets) = (copy_sets(&*truth)?, copy_sets(&*predicted)?);
            let values = with_services(host, |services| evaluator.evaluate(&truth, &predicted, services))?;
            let metrics = evaluator.metrics();
            if values.len() != metrics.len() {
                let (values, metrics) = (values.len(), metrics.len());
                return Err(Error::new(format!("{values} scores were returned for {metrics} metrics")));
            }
            for (metric, value) in metrics.iter().zip(values) {
                sink(sink_ctx, lend(&metric.name), value);
            }
            Ok(())
        })
    }
}
