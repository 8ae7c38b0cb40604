//! The results table: a mean over trials for every data set, clusterer and metric, compared with the best.

use compflow_api::{Flags, Metric, Unit};

use super::statistics::{Scores, matched_pairs, mean, standard_error};
use crate::plan::Plan;
use crate::run::row::Row;

/// One entry of the results table.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The data set.
    pub data: String,
    /// The clusterer, or a point of its grids.
    pub clusterer: String,
    /// The metric.
    pub metric: String,
    /// What it counts in.
    pub unit: Unit,
    /// How many trials were scored.
    pub trials: usize,
    /// Over trials.
    pub mean: f64,
    /// Standard error of the mean; `None` with fewer than two trials.
    pub se: Option<f64>,
    /// Whether the mean is the best of its data and metric. A method that is given the truth does not compete.
    pub best: bool,
    /// Two-sided p of a matched-pair t-test against the best; `None` for the best itself and with fewer than two
    /// common trials.
    pub p_vs_best: Option<f64>,
}

/// Summarises all scored rows: by data, metric and clusterer in the order of the pipeline.
pub(crate) fn summarize(plan: &Plan, rows: &[Row]) -> Vec<Summary> {
    let mut entries = Vec::new();
    for (data, loaded) in plan.data.iter().enumerate() {
        for metric in &plan.metrics {
            let mut groups: Vec<Group<'_>> = Vec::new();
            for row in rows.iter().filter(|row| row.cell.data == data) {
                let Some(value) = row.brief.as_ref().and_then(|brief| brief.score(plan, &metric.name)) else {
                    continue;
                };
                let label = row.cell.label(plan);
                if groups.last().is_none_or(|last| last.label != label) {
                    let oracle = row.cell.setup(plan).recipe.flags.contains(Flags::NEEDS_TRUTH);
                    groups.push(Group { label, oracle, scores: Scores::new() });
                }
                if let Some(group) = groups.last_mut() {
                    group.scores.insert(row.cell.trial, value);
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
    // Means over different trials cannot be compared: only methods that were scored on the most trials compete.
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
                unit: metric.unit,
                trials: scores.len(),
                mean: mean(scores),
                se: standard_error(&scores.values().copied().collect::<Vec<_>>()),
                best: is_best,
                p_vs_best: if is_best { None } else { matched_pairs(scores, best) },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(values: &[f64]) -> Scores {
        values.iter().copied().enumerate().collect()
    }

    #[test]
    fn a_method_that_is_given_the_truth_does_not_compete() {
        let group = |label, oracle, values: &[f64]| Group { label, oracle, scores: scores(values) };
        let groups = [group("OSC", true, &[1.0, 1.0]), group("A", false, &[0.5, 0.6]), group("B", false, &[0.9])];
        let entries = compare(&groups, "d", &Metric::share("cri"));
        assert_eq!(entries.iter().map(|entry| entry.best).collect::<Vec<_>>(), [false, true, false]);
        assert!(entries[0].p_vs_best.is_some() && entries[1].p_vs_best.is_none());
        assert!(compare(&groups[..1], "d", &Metric::share("cri"))[0].best, "unless there is no other");
        let smaller = compare(&groups[1..2], "d", &Metric::distance("loss"));
        assert!(smaller[0].best);
    }
}
