//! An evaluator of some library.

use std::ffi::c_void;

use super::rows::{Examples, on_pass};
use super::services::call;
use super::{foreign, required};
use crate::abi::*;
use crate::raw::{lend_columns, lend_sets, lossy, read_sized, require_reserved};
use crate::{Error, Evaluation, Evaluator, Metric, Result, Services, Unit};

foreign! {
    /// An [`Evaluator`] of some library.
    ForeignEvaluator, Evaluator, RawEvaluatorMethods
}

/// Pushes a metric to the `Vec` behind `sink_ctx`.
///
/// # Safety
/// `sink_ctx` points to a `Vec<Result<Metric>>` that nobody else uses meanwhile.
unsafe extern "C" fn collect_metric(sink_ctx: *mut c_void, metric: *const RawMetric) {
    // SAFETY: the caller vouches for the sink; the metric is lent for the call.
    unsafe {
        let metric = read_sized(metric).and_then(|raw| {
            require_reserved("a metric", raw.reserved)?;
            Ok(Metric {
                name: lossy(raw.name),
                larger_is_better: raw.larger_is_better != 0,
                unit: Unit::from_raw(raw.unit),
                range: (raw.least, raw.most),
            })
        });
        (*sink_ctx.cast::<Vec<Result<Metric>>>()).push(metric);
    }
}

/// Pushes a named number to the `Vec` behind `sink_ctx`.
///
/// # Safety
/// `sink_ctx` points to a `Vec<(String, f64)>` that nobody else uses meanwhile.
unsafe extern "C" fn collect_score(sink_ctx: *mut c_void, name: RawStr, value: f64) {
    // SAFETY: the caller vouches for the sink; the name is lent for the call.
    unsafe { (*sink_ctx.cast::<Vec<(String, f64)>>()).push((lossy(name), value)) };
}

impl ForeignEvaluator {
    /// The metrics it reports, the main one first.
    ///
    /// # Errors
    /// If it fails to say.
    pub fn try_metrics(&self) -> Result<Vec<Metric>> {
        let metrics = required(self.methods.metrics, "metrics")?;
        let mut found: Vec<Result<Metric>> = Vec::new();
        let sink = std::ptr::from_mut(&mut found).cast();
        call(&Services::none(), |host| {
            // SAFETY: the sink is as `collect_metric` expects.
            unsafe { metrics(self.instance.raw, host, collect_metric, sink) }
        })?;
        found.into_iter().collect()
    }

    /// One value for each of `metrics`, which are those of [`try_metrics`](Self::try_metrics).
    ///
    /// # Errors
    /// If there is no such value, or values are returned for other metrics.
    pub fn score(
        &self,
        metrics: &[Metric],
        evaluation: &Evaluation<'_>,
        services: &Services<'_>,
    ) -> Result<Vec<f64>> {
        let rows = evaluation.predicted.len();
        if let Some(truth) = evaluation.truth.filter(|truth| truth.len() != rows) {
            let truth = truth.len();
            return Err(Error::new(format!("{truth} true sets cannot be compared with {rows} predicted ones")));
        }
        if let Some(examples) = evaluation.rows.filter(|examples| examples.len() != rows) {
            return Err(Error::new(format!("{rows} sets are not those of {} examples", examples.len())));
        }
        let dim = evaluation.rows.map_or(0, |examples| examples.dim());
        let clusters = evaluation.clusters.map_or(0, |clusters| clusters.len());
        if evaluation.centroids.is_some_and(|centroids| centroids.len() != clusters * dim) {
            return Err(Error::new(format!("the centroids are not {clusters} vectors of {dim}")));
        }
        let evaluate = required(self.methods.evaluate, "evaluate")?;
        let (predicted, truth, clusters) =
            (lend_sets(evaluation.predicted), evaluation.truth.map(lend_sets), evaluation.clusters.map(lend_sets));
        let columns = lend_columns(evaluation.columns)?;
        let examples = evaluation.rows.map(Examples::new);
        let pointer = |sets: &Option<RawSets>| sets.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let raw = RawEvaluation {
            size: size_of::<RawEvaluation>() as u32,
            degree: evaluation.degree.try_into().unwrap_or(u32::MAX),
            rows: rows as u64,
            dim: dim as u64,
            predicted: &predicted,
            truth: pointer(&truth),
            embeddings: evaluation
                .rows
                .and_then(|rows| rows.in_memory())
                .map_or(std::ptr::null(), |rows| rows.values().as_ptr()),
            normalize: evaluation.space.normalize as u32,
            distance: evaluation.space.distance as u32,
            clusters: pointer(&clusters),
            centroids: evaluation.centroids.map_or(std::ptr::null(), <[f32]>::as_ptr),
            columns: columns.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            ctx: examples.as_ref().map_or(std::ptr::null_mut(), |rows| std::ptr::from_ref(rows).cast_mut().cast()),
            pass: examples.as_ref().map(|_| on_pass as PassFn),
        };
        let mut scores: Vec<(String, f64)> = Vec::new();
        let sink = std::ptr::from_mut(&mut scores).cast();
        call(services, |host| {
            // SAFETY: everything is lent for the call; the sink is as `collect_score` expects.
            unsafe { evaluate(self.instance.raw, &raw, host, collect_score, sink) }
        })?;
        if let Some((name, _)) = scores.iter().find(|(name, _)| !metrics.iter().any(|metric| metric.name == *name))
        {
            return Err(Error::new(format!("a score was returned for `{name}`, which is not one of the metrics")));
        }
        metrics
            .iter()
            .map(|metric| match scores.iter().filter(|(name, _)| *name == metric.name).collect::<Vec<_>>()[..] {
                [(_, value)] => Ok(*value),
                ref found => {
                    Err(Error::new(format!("{} scores were returned for `{}`", found.len(), metric.name)))
                }
            })
            .collect()
    }
}

impl Evaluator for ForeignEvaluator {
    fn metrics(&self) -> Vec<Metric> {
        self.try_metrics().unwrap_or_default()
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        self.score(&self.try_metrics()?, evaluation, services)
    }
}
