//! An evaluator of some library.

use std::ffi::c_void;

use super::services::call;
use super::{foreign, required};
use crate::abi::*;
use crate::raw::{lend_sets, slice};
use crate::{Error, Evaluator, Metric, Result, Services, Sets};

foreign! {
    /// An [`Evaluator`] of some library.
    ForeignEvaluator, Evaluator, RawEvaluatorMethods
}

/// Pushes a named number to the `Vec` behind `sink_ctx`.
///
/// # Safety
/// `sink_ctx` points to a `Vec<(String, f64)>` that nobody else uses meanwhile.
unsafe extern "C" fn collect_score(sink_ctx: *mut c_void, name: RawStr, value: f64) {
    // SAFETY: the caller vouches for the sink; the name is lent for the call.
    let (scores, name) = unsafe { (&mut *sink_ctx.cast::<Vec<(String, f64)>>(), slice(name.ptr, name.len)) };
    scores.push((String::from_utf8_lossy(name).into_owned(), value));
}

impl ForeignEvaluator {
    fn scores(
        &self,
        services: &Services<'_>,
        function: impl FnOnce(*const RawHost, *mut c_void) -> i32,
    ) -> Result<Vec<(String, f64)>> {
        let mut scores: Vec<(String, f64)> = Vec::new();
        let sink = std::ptr::from_mut(&mut scores).cast();
        call(services, |host| function(host, sink))?;
        Ok(scores)
    }

    /// The metrics it reports, the main one first.
    ///
    /// # Errors
    /// If it fails to say.
    pub fn try_metrics(&self) -> Result<Vec<Metric>> {
        let metrics = required(self.methods().metrics, "metrics")?;
        let scores = self.scores(&Services::none(), |host, sink| {
            // SAFETY: the sink is as `collect_score` expects.
            unsafe { metrics(self.0.raw, host, collect_score, sink) }
        })?;
        Ok(scores.into_iter().map(|(name, sign)| Metric { name, larger_is_better: sign >= 0.0 }).collect())
    }
}

impl Evaluator for ForeignEvaluator {
    fn metrics(&self) -> Vec<Metric> {
        self.try_metrics().unwrap_or_default()
    }

    fn evaluate(&self, truth: &Sets, predicted: &Sets, services: &Services<'_>) -> Result<Vec<f64>> {
        if truth.len() != predicted.len() {
            return Err(Error::new(format!(
                "{} true sets cannot be compared with {} predicted ones",
                truth.len(),
                predicted.len()
            )));
        }
        let metrics = self.try_metrics()?;
        let evaluate = required(self.methods().evaluate, "evaluate")?;
        let (truth, predicted) = (lend_sets(truth), lend_sets(predicted));
        let scores = self.scores(services, |host, sink| {
            // SAFETY: the sets are lent for the call; the sink is as `collect_score` expects.
            unsafe { evaluate(self.0.raw, &truth, &predicted, host, collect_score, sink) }
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
