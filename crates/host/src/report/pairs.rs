//! Matched-pair tests between all methods of a run, as CSV.

use compflow_engine::Results;
use compflow_engine::results::statistics::{Scores, matched_pairs, mean, standard_error};

use crate::output::{Records, Value, csv};

/// A line for every data set, metric and pair of methods: the mean of the differences between them over the trials that
/// both have, its standard error, and the two-sided p of the t-test over matched pairs.
pub(crate) fn csv(results: &Results) -> String {
    let columns = ["data", "metric", "a", "b", "trials", "a_minus_b", "se", "p"];
    let clusterers = results.clusterers();
    let mut rows = Vec::new();
    for data in results.data() {
        for metric in results.metrics() {
            for (at, a) in clusterers.iter().enumerate() {
                for b in &clusterers[at + 1..] {
                    let [first, second] = [a, b].map(|clusterer| results.scores(data, clusterer, metric));
                    let differences = differences(&first, &second);
                    if differences.is_empty() {
                        continue;
                    }
                    rows.push(vec![
                        Value::from(data),
                        Value::from(metric),
                        Value::from(*a),
                        Value::from(*b),
                        Value::Count(differences.len()),
                        Value::from(mean(&differences)),
                        Value::Number(standard_error(&differences.values().copied().collect::<Vec<_>>())),
                        Value::Number(matched_pairs(&first, &second)),
                    ]);
                }
            }
        }
    }
    csv::render(&Records { columns: columns.map(str::to_owned).to_vec(), rows })
}

/// Of the trials that both have.
fn differences(a: &Scores, b: &Scores) -> Scores {
    a.iter().filter_map(|(trial, value)| Some((*trial, value - b.get(trial)?))).collect()
}
