//! `plugin_name`: an evaluator for compflow.

#![deny(unsafe_code)]

use compflow_api::{
    Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services, export_library, register,
};

export_library!();

struct PluginType;
register!(evaluator PluginType);

impl Component for PluginType {
    const NAME: &'static str = "plugin_name";
    const SUMMARY: &'static str = "pairs on which both agree whether they have a label in common";
    const DOCUMENTATION: &'static str =
        "The share of pairs of examples of which truth and prediction agree whether the two have a label in common.";
    const FLAGS: Flags = Flags::NEEDS_TRUTH; // an evaluator without it also runs where nobody knows the truth
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

/// Whether two sets, both ascending, have a member in common.
fn meet(a: &[u32], b: &[u32]) -> bool {
    a.iter().any(|member| b.binary_search(member).is_ok())
}

impl Evaluator for PluginType {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::share("plugin_name")]
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let (truth, predicted) = (evaluation.truth()?, evaluation.predicted);
        let n = truth.len();
        let mut agree = 0u64;
        for i in 0..n {
            services.progress(i, n)?; // ends the work here if it is no longer wanted
            for j in i + 1..n {
                agree += u64::from(meet(&truth[i], &truth[j]) == meet(&predicted[i], &predicted[j]));
            }
        }
        // Fewer than two examples have no pairs, and nothing to disagree about.
        let pairs = n as u64 * (n as u64).saturating_sub(1) / 2;
        Ok(vec![if pairs == 0 { 1.0 } else { agree as f64 / pairs as f64 }])
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{ForeignEvaluator, Registration, Sets};

    use super::*;

    /// As the host would use it, across the boundary.
    #[test]
    fn agreement_is_counted() {
        let component = Registration::evaluator::<PluginType>().component().unwrap();
        let made = component.create("{}", &Services::none()).unwrap();
        let evaluator = ForeignEvaluator::try_from(made).unwrap();
        let score = |predicted: &Sets| {
            let truth = Sets::singletons(&[0, 0, 1]);
            evaluator.evaluate(&Evaluation::new(predicted, &truth), &Services::none()).unwrap()[0]
        };
        assert_eq!(score(&Sets::singletons(&[5, 5, 2])), 1.0);
        assert_eq!(score(&Sets::from_iter([vec![0], vec![0, 1], vec![1]])), 2.0 / 3.0);
    }
}
