//! What a library exports of an evaluator.

use std::ffi::c_void;

use super::rows::CallersRows;
use super::services::with_services;
use crate::abi::*;
use crate::guard::enter;
use crate::raw::{area, borrow_sets, copy_columns, lend, read_sized, slice, space};
use crate::{Component, Error, Evaluation, Evaluator, Rows};

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
    sink: MetricFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the arguments are as `RawEvaluatorMethods::metrics` says.
    unsafe {
        enter::<C>(instance, host, |evaluator| {
            for metric in evaluator.metrics() {
                let raw = RawMetric {
                    size: size_of::<RawMetric>() as u32,
                    unit: metric.unit as u32,
                    name: lend(&metric.name),
                    least: metric.range.0,
                    most: metric.range.1,
                    larger_is_better: metric.larger_is_better.into(),
                    reserved: 0,
                };
                sink(sink_ctx, &raw);
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn evaluate<C: Component + Evaluator>(
    instance: *mut c_void,
    evaluation: *const RawEvaluation,
    host: *const RawHost,
    sink: ScoreFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the arguments are as `RawEvaluatorMethods::evaluate` says.
    unsafe {
        enter::<C>(instance, host, |evaluator| {
            let raw = read_sized(evaluation)?;
            let sets = |ptr: *const RawSets| ptr.as_ref().map(|raw| borrow_sets(raw)).transpose();
            let predicted = sets(raw.predicted)?.ok_or_else(|| Error::new("there are no predicted sets"))?;
            let (truth, clusters) = (sets(raw.truth)?, sets(raw.clusters)?);
            let counts = [Some(predicted.len()), truth.as_ref().map(|truth| truth.len())];
            if let Some(count) = counts.into_iter().flatten().find(|&count| count as u64 != raw.rows) {
                return Err(Error::new(format!("{count} sets were given for {} examples", raw.rows)));
            }
            let rows = raw.pass.filter(|_| raw.dim > 0);
            let rows = rows.map(|pass| CallersRows::new(raw.ctx, pass, raw.rows, raw.dim));
            let centroids = match &clusters {
                Some(clusters) if !raw.centroids.is_null() => {
                    Some(slice(raw.centroids, area(clusters.len() as u64, raw.dim)?)?)
                }
                _ => None,
            };
            let evaluation = Evaluation {
                predicted: &predicted,
                truth: truth.as_ref(),
                rows: rows.as_ref().map(|rows| rows as &dyn Rows),
                space: space(raw.normalize, raw.distance)?,
                degree: raw.degree as usize,
                clusters: clusters.as_ref(),
                centroids,
                columns: &copy_columns(raw.columns, raw.rows)?,
            };
            let values = with_services(host, |services| evaluator.evaluate(&evaluation, services))?;
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
