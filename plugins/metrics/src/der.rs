//! The diarization error rate: how much of what is said is given to nobody, to somebody else, or was never said.
//!
//! In every recording, predicted speakers are named after true ones by the best [matching](crate::speakers). Where r speak
//! and h are said to, c of them the right ones, a second is missed max(0, r - h) times, a false alarm max(0, h - r) times, and
//! confused min(r, h) - c times:
//!
//! `der` = (`missed` + `false_alarm` + `confusion`), each the sum of these seconds over all recordings, divided by Σ r.
//!
//! This is `abs(DiarizationErrorRate(collar, skip_overlap))` of pyannote.metrics after all recordings have been scored. Where
//! nobody truly speaks it is 0 if nobody is said to, and 1 otherwise. It can be above 1. The same for all best matchings.

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, Result, Services};

use crate::conversation::{COLUMNS, Params, recordings};
use crate::speakers::{pairs, speech};

pub(crate) struct Der(Params);
compflow_api::register!(evaluator Der);

impl Component for Der {
    const NAME: &'static str = "der";
    const SUMMARY: &'static str =
        "diarization error rate over the segments of recordings, and what it consists of";
    const DOCUMENTATION: &'static str = "\
Examples are segments of recordings: the columns `file`, `start` and `end` (in seconds) say where they are, their true sets
who speaks. In every recording, predicted speakers are matched one to one with true ones so that they are heard together as
long as possible. `der` is the time that is missed, falsely given to somebody, or given to the wrong one, over all recordings,
divided by the time that people truly speak, those who speak at once counted each; `missed`, `false_alarm` and `confusion` are
its three parts. Less is better. The same as `DiarizationErrorRate` of pyannote.metrics.";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }

    fn columns(&self) -> Vec<String> {
        COLUMNS.map(str::to_owned).to_vec()
    }
}

impl Evaluator for Der {
    fn metrics(&self) -> Vec<Metric> {
        let rate = |name| Metric::share(name).smaller_is_better();
        vec![
            rate("der").between(0.0, f64::INFINITY),
            rate("missed"),
            rate("false_alarm").between(0.0, f64::INFINITY),
            rate("confusion"),
        ]
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let (mut total, mut missed, mut false_alarm, mut confusion) = (0.0, 0.0, 0.0, 0.0);
        for recording in recordings(evaluation, &self.0)? {
            let (truth, predicted) = speech(&recording);
            let right: f64 =
                pairs(&recording, (&truth, &predicted), services)?.iter().map(|pair| pair.seconds).sum();
            let mut both = 0.0;
            for segment in &recording {
                let (speak, said) = (segment.truth.len(), segment.predicted.len());
                total += segment.seconds * speak as f64;
                missed += segment.seconds * speak.saturating_sub(said) as f64;
                false_alarm += segment.seconds * said.saturating_sub(speak) as f64;
                both += segment.seconds * speak.min(said) as f64;
            }
            // Rounding may take a little more than there is.
            confusion += (both - right).max(0.0);
        }
        if total == 0.0 {
            let said = if false_alarm > 0.0 { 1.0 } else { 0.0 };
            return Ok(vec![said, 0.0, said, 0.0]);
        }
        Ok(vec![
            (missed + false_alarm + confusion) / total,
            missed / total,
            false_alarm / total,
            confusion / total,
        ])
    }
}
