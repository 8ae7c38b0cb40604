//! Means over trials, their standard errors, and matched-pair comparisons with the best.

use std::collections::BTreeMap;

use compflow_api::{Flags, Metric};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::check::Plan;
use crate::run::Row;

/// One entry of the results table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Summary {
    pub(crate) data: String,
    pub(crate) clusterer: String,
    pub(crate) metric: String,
    /// How many trials were scored.
    pub(crate) trials: usize,
    pub(crate) mean: f64,
    /// Standard error of the mean; `None` with fewer than two trials.
    pub(crate) se: Option<f64>,
    /// Whether the mean is the best of its data and metric. A method that is given the truth does not compete.
    pub(crate) best: bool,
    /// Two-sided p of a matched-pair t-test against the best; `None` for the best itself and with fewer than two
    /// common trials.
    pub(crate) p_vs_best: Option<f64>,
}

/// Scores of one clusterer on one data set, by trial.
pub(crate) type Scores = BTreeMap<usize, f64>;

/// Summarises all scored rows: by data, metric and clusterer in the order of the pipeline.
pub(crate) fn summarize(plan: &Plan, rows: &[Row]) -> Vec<Summary> {
    let mut entries = Vec::new();
    for (data, loaded) in plan.data.iter().enumerate() {
        for metric in &plan.metrics {
            let mut groups: Vec<Group<'_>> = Vec::new();
            for row in rows.iter().filter(|row| row.cell.data == data) {
                let trial = &loaded.dataset.trials[row.cell.trial];
                let Some(outcome) = &row.outcome else { continue };
                let score = outcome.scores(&plan.setting, trial).find(|(name, _)| *name == metric.name);
                let Some((_, value)) = score else { continue };
                let label = row.cell.label(plan);
                if groups.last().is_none_or(|last| last.label != label) {
                    let oracle = row.cell.variant(plan).recipe.flags.contains(Flags::NEEDS_TRUTH);
                    groups.push(Group { label, oracle, scores: Scores::new() });
                }
                if let Some(group) = groups.last_mut() {
                    group.scores.insert(row.cell.trial, *value);
                }
            }
            entries.extend(compare(&groups, &loaded.name, metric));
        }
    }
    entries
}

/// One clusterer's scores.
struct Group<'p> {
    label: &'p str,
    /// Whether it is given the truth.
    oracle: bool,
    scores: Scores,
}

/// The entries of one data set and metric.
fn compare(groups: &[Group<'_>], data: &str, metric: &Metric) -> Vec<Summary> {
    let sign = if metric.larger_is_better { 1.0 } else { -1.0 };
    let all_know = groups.iter().all(|group| group.oracle);
    // A mean over fewer trials is no better for it: only methods that were scored on the most compete.
    let allowed = |group: &&Group<'_>| all_know || !group.oracle;
    let most = groups.iter().filter(allowed).map(|group| group.scores.len()).max().unwrap_or(0);
    let competes = |group: &&Group<'_>| allowed(group) && group.scores.len() == most;
    let merit = |group: &Group<'_>| sign * mean(&group.scores);
    let best = groups.iter().filter(competes).max_by(|a, b| merit(a).total_cmp(&merit(b)));
    let Some(best) = best.map(|group| &group.scores) else { return Vec::new() };
    groups
        .iter()
        .map(|group| {
            let scores = &group.scores;
            let is_best = competes(&group) && mean(scores) == mean(best);
            Summary {
                data: data.to_owned(),
                clusterer: group.label.to_owned(),
                metric: metric.name.clone(),
                trials: scores.len(),
                mean: mean(scores),
                se: standard_error(&scores.values().copied().collect::<Vec<_>>()),
                best: is_best,
                p_vs_best: if is_best { None } else { matched_pairs(scores, best) },
            }
        })
        .collect()
}

pub(crate) fn mean(scores: &Scores) -> f64 {
    scores.values().sum::<f64>() / scores.len() as f64
}

/// s/√n with the sample's standard deviation s.
pub(crate) fn standard_error(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((variance / n).sqrt())
}

/// Two-sided p of the paired t-test on the trials that both have: t = mean(Δ) / se(Δ) with n-1 degrees of freedom.
pub(crate) fn matched_pairs(a: &Scores, b: &Scores) -> Option<f64> {
    let differences: Vec<f64> = a.iter().filter_map(|(trial, value)| Some(value - b.get(trial)?)).collect();
    let se = standard_error(&differences)?;
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    if se == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    let distribution = StudentsT::new(0.0, 1.0, differences.len() as f64 - 1.0).ok()?;
    Some(2.0 * distribution.sf((mean / se).abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(values: &[f64]) -> Scores {
        values.iter().copied().enumerate().collect()
    }

    #[test]
    fn the_standard_error_is_that_of_the_mean() {
        assert_eq!(standard_error(&[1.0]), None);
        let se = standard_error(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((se - 0.645_497_224_367_902_8).abs() < 1e-15, "{se}");
    }

    /// Reference: scipy.stats.ttest_rel([30, 31, 34, 40, 36], [30, 29, 29, 31, 30]).pvalue.
    #[test]
    fn the_matched_pair_test_agrees_with_scipy() {
        let p = matched_pairs(&scores(&[30.0, 31.0, 34.0, 40.0, 36.0]), &scores(&[30.0, 29.0, 29.0, 31.0, 30.0]));
        assert!((p.unwrap() - 0.048_546_820_372_036_975).abs() < 1e-12, "{p:?}");
    }

    #[test]
    fn a_method_that_is_given_the_truth_does_not_compete() {
        let group = |label, oracle, values: &[f64]| Group { label, oracle, scores: scores(values) };
        let groups = [group("OSC", true, &[1.0, 1.0]), group("A", false, &[0.5, 0.6]), group("B", false, &[0.9])];
        let entries = compare(&groups, "d", &Metric::larger("cri"));
        assert_eq!(entries.iter().map(|entry| entry.best).collect::<Vec<_>>(), [false, true, false]);
        assert!(entries[0].p_vs_best.is_some() && entries[1].p_vs_best.is_none());
        assert!(compare(&groups[..1], "d", &Metric::larger("cri"))[0].best, "unless there is no other");
        let smaller = compare(&groups[1..2], "d", &Metric::smaller("loss"));
        assert!(smaller[0].best);
    }

    #[test]
    fn equal_and_constantly_shifted_scores_have_p_one_and_zero() {
        assert_eq!(matched_pairs(&scores(&[1.0, 2.0]), &scores(&[1.0, 2.0])), Some(1.0));
        assert_eq!(matched_pairs(&scores(&[1.0, 2.0]), &scores(&[2.0, 3.0])), Some(0.0));
        assert_eq!(matched_pairs(&scores(&[1.0]), &scores(&[2.0])), None);
    }
}
