//! `compflow diff`: two runs side by side, trial by trial, and what got significantly better or worse.

use std::path::Path;

use compflow_api::Unit;
use compflow_engine::Results;
use compflow_engine::results::score_text;
use compflow_engine::results::statistics::{Scores, matched_pairs, mean};

use super::print_table;
use crate::cli::DiffArgs;
use crate::failure::Failure;
use crate::output::latex::SIGNIFICANT;
use crate::output::{Grid, Output, Records, Value};
use crate::terminal::to_stderr;

/// What two runs have in common for one data set, clusterer and metric.
#[derive(Debug, Clone, PartialEq)]
struct Change {
    data: String,
    clusterer: String,
    metric: String,
    unit: Unit,
    /// How many trials both have.
    trials: usize,
    /// Means over the common trials.
    a: f64,
    b: f64,
    p: Option<f64>,
    verdict: Verdict,
}

/// From A to B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Better,
    Worse,
    /// Every trial is equal.
    Same,
    /// They differ, and it may be chance.
    Unclear,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unclear => "unclear",
        }
    }
}

/// The metric that every run has: how long a cell took.
const SECONDS: &str = "seconds";

/// Runs the command: prints the table, then says what else there is to say.
///
/// # Errors
/// If a folder cannot be read, or nothing matches.
pub(crate) fn run(args: &DiffArgs) -> Result<i32, Failure> {
    let (a, b) = (Results::open(&args.a)?, Results::open(&args.b)?);
    let changes = changes(&a, &b);
    if changes.is_empty() {
        let list = |results: &Results| {
            format!(
                "{}: data {}, clusterers {}",
                results.folder.display(),
                results.data().join(", "),
                results.clusterers().join(", ")
            )
        };
        return Err(Failure::request(format!(
            "the runs have no data, trial and clusterer in common\n  {}\n  {}",
            list(&a),
            list(&b)
        )));
    }
    let mut notes = differences(&a, &b);
    notes.extend(verdicts(&changes));
    let printed = print_table(args.format, &DiffTable { changes: &changes, a: &args.a, b: &args.b });
    notes.iter().for_each(|note| to_stderr(note));
    printed
}

/// The comparison, to be printed.
struct DiffTable<'a> {
    changes: &'a [Change],
    a: &'a Path,
    b: &'a Path,
}

impl Output for DiffTable<'_> {
    fn records(&self) -> Records {
        let columns = ["data", "clusterer", "metric", "trials", "mean_a", "mean_b", "difference", "p", "b_is"];
        let row = |change: &Change| {
            vec![
                Value::from(change.data.as_str()),
                Value::from(change.clusterer.as_str()),
                Value::from(change.metric.as_str()),
                Value::Count(change.trials),
                Value::from(change.a),
                Value::from(change.b),
                Value::from(change.b - change.a),
                Value::Number(change.p),
                Value::from(change.verdict.word()),
            ]
        };
        Records { columns: columns.map(str::to_owned).to_vec(), rows: self.changes.iter().map(row).collect() }
    }

    fn grids(&self) -> Vec<Grid> {
        vec![grid(self.changes, &self.a.display().to_string(), &self.b.display().to_string())]
    }
}

fn changes(a: &Results, b: &Results) -> Vec<Change> {
    let mut changes = Vec::new();
    let (others, clusterers) = (b.data(), b.clusterers());
    for data in a.data().into_iter().filter(|data| others.contains(data)) {
        for metric in a.metrics().into_iter().chain([SECONDS]) {
            for clusterer in a.clusterers().into_iter().filter(|clusterer| clusterers.contains(clusterer)) {
                let scores = |results: &Results| match metric {
                    SECONDS => results.seconds(data, clusterer),
                    _ => results.scores(data, clusterer, metric),
                };
                let larger = metric != SECONDS && a.larger_is_better(metric);
                if let Some((trials, [from, to], p, verdict)) = compare(&scores(a), &scores(b), larger) {
                    let [data, clusterer, metric] = [data, clusterer, metric].map(str::to_owned);
                    let unit = a.unit(&metric);
                    changes.push(Change { data, clusterer, metric, unit, trials, a: from, b: to, p, verdict });
                }
            }
        }
    }
    changes
}

/// The number of common trials, both means over them, p and what it means; `None` without common trials.
fn compare(a: &Scores, b: &Scores, larger_is_better: bool) -> Option<(usize, [f64; 2], Option<f64>, Verdict)> {
    let common = |scores: &Scores, other: &Scores| -> Scores {
        scores
            .iter()
            .filter(|(trial, _)| other.contains_key(trial))
            .map(|(trial, value)| (*trial, *value))
            .collect()
    };
    let (a, b) = (common(a, b), common(b, a));
    if a.is_empty() {
        return None;
    }
    let (means, p) = ([mean(&a), mean(&b)], matched_pairs(&a, &b));
    let verdict = match p {
        _ if a == b => Verdict::Same,
        Some(p) if p < SIGNIFICANT && (means[1] > means[0]) == larger_is_better => Verdict::Better,
        Some(p) if p < SIGNIFICANT => Verdict::Worse,
        _ => Verdict::Unclear,
    };
    Some((a.len(), means, p, verdict))
}

/// What is in only one of the runs, and data that is not the same.
fn differences(a: &Results, b: &Results) -> Vec<String> {
    let mut notes = Vec::new();
    for (from, other, folder) in [(a, b, a.folder.display()), (b, a, b.folder.display())] {
        let only = |mine: Vec<&str>, theirs: Vec<&str>| -> Vec<String> {
            mine.into_iter().filter(|name| !theirs.contains(name)).map(str::to_owned).collect()
        };
        let mut names = only(from.data(), other.data());
        names.extend(only(from.clusterers(), other.clusterers()));
        names.extend(only(from.metrics(), other.metrics()));
        if !names.is_empty() {
            notes.push(format!("only in {folder}: {}", names.join(", ")));
        }
    }
    for (name, data) in &a.record.data {
        if b.record.data.get(name).is_some_and(|other| other.blake3 != data.blake3) {
            notes.push(format!("warning: data `{name}` had other content in {}", b.folder.display()));
        }
    }
    for (path, hash) in &a.record.inputs {
        let name = |path: &str| std::path::Path::new(path).file_name().map(std::ffi::OsStr::to_owned);
        let others: Vec<&String> =
            b.record.inputs.iter().filter(|(other, _)| name(other) == name(path)).map(|(_, hash)| hash).collect();
        if !others.is_empty() && !others.contains(&hash) {
            notes.push(format!("warning: {path} had other content in {}", b.folder.display()));
        }
    }
    notes
}

fn verdicts(changes: &[Change]) -> Vec<String> {
    let list = |verdict: Verdict| {
        let found = changes.iter().filter(|change| change.verdict == verdict);
        let texts: Vec<String> =
            found.map(|change| format!("{} {} {}", change.data, change.clusterer, change.metric)).collect();
        (!texts.is_empty()).then(|| format!("{}: {}", verdict.word(), texts.join(", ")))
    };
    let rest = |verdict: Verdict| changes.iter().filter(|change| change.verdict == verdict).count();
    let mut notes: Vec<String> = [Verdict::Better, Verdict::Worse].into_iter().filter_map(list).collect();
    if notes.is_empty() {
        notes.push(format!("nothing is significantly better or worse (p < {SIGNIFICANT})"));
    }
    notes.push(format!("{} unclear, {} the same", rest(Verdict::Unclear), rest(Verdict::Same)));
    notes
}

fn grid(changes: &[Change], a: &str, b: &str) -> Grid {
    let rows = changes.iter().map(|change| {
        let seconds = change.metric == SECONDS;
        let number = |value: f64| if seconds { format!("{value:.3}") } else { score_text(change.unit, value) };
        let difference = change.b - change.a;
        let sign = if difference < 0.0 { "" } else { "+" };
        let difference = format!("{sign}{}", number(difference));
        let p = change.p.map_or_else(|| "–".to_owned(), |p| format!("{p:.3}"));
        let verdict = if change.verdict == Verdict::Unclear { "" } else { change.verdict.word() };
        vec![
            change.data.clone(),
            change.clusterer.clone(),
            change.metric.clone(),
            change.trials.to_string(),
            number(change.a),
            number(change.b),
            difference,
            p,
            verdict.to_owned(),
        ]
    });
    Grid {
        title: format!("A: {a}, B: {b}; shares in %, p of a matched-pair t-test over trials"),
        header: ["data", "clusterer", "metric", "trials", "A", "B", "B - A", "p", "B is"]
            .map(str::to_owned)
            .to_vec(),
        rows: rows.collect(),
        numbers: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(values: &[(usize, f64)]) -> Scores {
        values.iter().copied().collect()
    }

    #[test]
    fn only_common_trials_are_compared() {
        let a = scores(&[(0, 0.1), (1, 0.2), (2, 0.9)]);
        let b = scores(&[(0, 0.2), (1, 0.3), (7, 0.0)]);
        let (trials, means, _, verdict) = compare(&a, &b, true).unwrap();
        assert_eq!(trials, 2);
        assert!((means[0] - 0.15).abs() < 1e-12 && (means[1] - 0.25).abs() < 1e-12);
        assert_eq!(verdict, Verdict::Better);
        assert!(compare(&a, &scores(&[(9, 1.0)]), true).is_none());
    }

    #[test]
    fn which_way_is_better_depends_on_the_metric() {
        let (a, b) = (scores(&[(0, 1.0), (1, 2.0), (2, 3.0)]), scores(&[(0, 1.5), (1, 2.5), (2, 3.6)]));
        assert_eq!(compare(&a, &b, true).unwrap().3, Verdict::Better);
        assert_eq!(compare(&a, &b, false).unwrap().3, Verdict::Worse);
        assert_eq!(compare(&a, &a, true).unwrap().3, Verdict::Same);
        let noisy = scores(&[(0, 2.0), (1, 1.0), (2, 3.1)]);
        assert_eq!(compare(&a, &noisy, true).unwrap().3, Verdict::Unclear);
    }
}
