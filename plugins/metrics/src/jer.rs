//! The Jaccard error rate: how badly each speaker is found, all counting the same however much they speak.
//!
//! In every recording, predicted speakers are named after true ones by the best [matching](crate::speakers). With R the time
//! in which a true speaker speaks and H that in which the partner is said to, the error is 1 - |R ∩ H| / |R ∪ H|, and 1 for a
//! speaker without a partner. `jer` is its mean over the true speakers of all recordings; predicted speakers without a
//! partner cost nothing.
//!
//! This is `abs(JaccardErrorRate(collar, skip_overlap))` of pyannote.metrics after all recordings have been scored. Where
//! nobody truly speaks, which has no value there, it is 0 if nobody is said to, and 1 otherwise. Equally good matchings may
//! have different errors; it is that of one of them.

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, Result, Services};

use crate::conversation::{COLUMNS, Params, recordings};
use crate::speakers::{pairs, speech};

pub(crate) struct Jer(Params);
compflow_api::register!(evaluator Jer);

impl Component for Jer {
    const NAME: &'static str = "jer";
    const SUMMARY: &'static str = "Jaccard error rate over the segments of recordings: the mean over speakers";
    const DOCUMENTATION: &'static str = "\
Examples are segments of recordings: the columns `file`, `start` and `end` (in seconds) say where they are, their true sets
who speaks. In every recording, predicted speakers are matched one to one with true ones so that they are heard together as
long as possible. The error of a true speaker is 1 less the time in which both speak, divided by the time in which either does;
`jer` is the mean over all true speakers of all recordings. Less is better. The same as `JaccardErrorRate` of
pyannote.metrics.";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }

    fn columns(&self) -> Vec<String> {
        COLUMNS.map(str::to_owned).to_vec()
    }
}

impl Evaluator for Jer {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::share("jer").smaller_is_better()]
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let (mut speakers, mut found, mut said) = (0, 0.0, false);
        for recording in recordings(evaluation, &self.0)? {
            let (truth, predicted) = speech(&recording);
            speakers += truth.len();
            said |= !predicted.is_empty();
            for pair in pairs(&recording, (&truth, &predicted), services)? {
                let either = truth[&pair.truth] + predicted[&pair.predicted] - pair.seconds;
                found += pair.seconds / either;
            }
        }
        Ok(vec![match speakers {
            0 if said => 1.0,
            0 => 0.0,
            speakers => 1.0 - found / speakers as f64,
        }])
    }
}
