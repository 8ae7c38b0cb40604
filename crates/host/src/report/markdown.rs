//! The tables of `docs/results.md`: ours beside somebody else's, what is significant, and where they differ; and tables
//! alone, for pages that have a text of their own.

use std::collections::BTreeMap;
use std::fmt::Write;

use compflow_engine::Results;
use compflow_engine::results::statistics::mean;
use compflow_engine::results::{Summary, Trivial, score_text, shown};

use super::ReportData;
use super::reference::{Entry, Reference, welch};
use super::svg;
use crate::output::latex::{SIGNIFICANT, metric_name};
use crate::output::markdown::escape;
use crate::output::summary::mean_text;

/// The page of several runs; `tests` says where the matched-pair tests of a run are, if anywhere. Writing to a string
/// cannot fail.
pub(crate) fn page(
    runs: &[ReportData],
    reference: Option<&Reference>,
    tests: &dyn Fn(&Results) -> Option<String>,
) -> String {
    let mut text = "# Results\n\n".to_owned();
    let _ = writeln!(
        text,
        "Mean (s.e.) over trials, shares in %. **Bold** is the best of its column, † is not significantly worse (matched-pair \
         t-test\nover trials, p ≥ {SIGNIFICANT}). Methods in *italics* are given the truth and do not compete. *All alone* \
         makes every example a\ncluster of its own, *one cluster* puts all together: what a method scores that looks at \
         nothing. Seconds are those of one cell."
    );
    if let Some(reference) = reference {
        let _ = writeln!(text, "The columns *{}* are from {}.", reference.name, reference.source);
    }
    for run in runs {
        section(&mut text, run, reference, tests(&run.results));
    }
    text
}

/// Tables alone, one for each run, under its name if there are several.
pub(crate) fn tables(runs: &[ReportData], table: fn(&mut String, &Results)) -> String {
    let mut text = String::new();
    for (at, run) in runs.iter().enumerate() {
        if runs.len() > 1 {
            let gap = if at > 0 { "\n" } else { "" };
            let _ = writeln!(text, "{gap}### {}\n", escape(&run.results.record.name));
        }
        table(&mut text, &run.results);
    }
    text
}

/// A row for every method, a group of columns for every data set.
pub(crate) fn wide(text: &mut String, results: &Results) {
    let (data, metrics) = (results.data(), results.metrics());
    let mut header = vec![String::new()];
    for data in &data {
        for (at, metric) in metrics.iter().enumerate() {
            let group = if at == 0 { format!("{}: ", escape(&results.heading(data))) } else { String::new() };
            header.push(group + &escape(&metric_name(metric)));
        }
    }
    begin(text, &header, 1);
    for clusterer in results.clusterers() {
        let mut cells = vec![method(results, clusterer)];
        for data in &data {
            cells.extend(metrics.iter().map(|metric| cell(results, data, clusterer, metric)));
        }
        row(text, &cells);
    }
}

/// A row for every data set and method, a column for every metric.
pub(crate) fn long(text: &mut String, results: &Results) {
    let metrics = results.metrics();
    let mut header = vec!["data".to_owned(), "method".to_owned()];
    header.extend(metrics.iter().map(|metric| escape(&metric_name(metric))));
    begin(text, &header, 2);
    for data in results.data() {
        for clusterer in results.clusterers() {
            let mut cells = vec![escape(data), method(results, clusterer)];
            cells.extend(metrics.iter().map(|metric| cell(results, data, clusterer, metric)));
            row(text, &cells);
        }
    }
}

fn section(text: &mut String, run: &ReportData, reference: Option<&Reference>, tests: Option<String>) {
    let results = &run.results;
    let record = &results.record;
    let _ = writeln!(text, "\n## {}\n", escape(&record.name));
    let _ = writeln!(
        text,
        "`{}`, seed {}, compflow {}, {} {} with {} cores.",
        // Inside backticks nothing else is markup.
        record.file.replace(['`', '\n'], "'"),
        record.seed,
        escape(&record.compflow),
        escape(&record.host.os),
        escape(&record.host.arch),
        record.host.cores
    );
    let about = reference.map(|reference| reference.about(&record.name));
    if let Some((sources, cautions)) = about {
        match sources.is_empty() {
            true => *text += "There is nothing to compare this run with.\n",
            false => {
                let _ = writeln!(text, "Beside it: {}.", sources.join("; "));
            }
        }
        cautions.iter().for_each(|caution| {
            let _ = writeln!(text, "\n> {caution}");
        });
    }
    for data in results.data() {
        let _ = writeln!(text, "\n### {}, {}\n", escape(&record.name), escape(&results.heading(data)));
        table(text, run, data, reference);
    }
    if let Some(tests) = tests {
        let _ = writeln!(text, "\nMatched-pair t-tests between all methods: [{}](<{tests}>).", escape(&tests));
    }
    if let Some(reference) = reference.filter(|reference| !reference.about(&record.name).0.is_empty()) {
        differences(text, results, reference);
    }
}

/// The methods, then the trivial clusterings: every metric with the reference beside it, then the seconds.
fn table(text: &mut String, run: &ReportData, data: &str, reference: Option<&Reference>) {
    let results = &run.results;
    let name = &results.record.name;
    let referred = |metric: &str| reference.filter(|reference| reference.has(name, data, metric));
    let mut header = vec![String::new()];
    for metric in results.metrics() {
        header.push(escape(&metric_name(metric)));
        header.extend(referred(metric).map(|reference| format!("*{}*", reference.name)));
    }
    header.push("seconds".to_owned());
    begin(text, &header, 1);
    let mut footnotes = Vec::new();
    for clusterer in results.clusterers() {
        let mut cells = vec![method(results, clusterer)];
        for metric in results.metrics() {
            cells.push(cell(results, data, clusterer, metric));
            if let Some(reference) = referred(metric) {
                let theirs = reference.entry(name, data, clusterer, metric);
                let mark = theirs.and(reference.footnote(name, clusterer, metric)).map(|footnote| {
                    let known = footnotes.iter().position(|known| *known == footnote);
                    let at = known.unwrap_or_else(|| {
                        footnotes.push(footnote);
                        footnotes.len() - 1
                    });
                    format!("<sup>{}</sup>", at + 1)
                });
                cells.push(theirs.map_or_else(String::new, |Entry { mean, se }| {
                    format!("*{mean:.1} ({se:.1})*{}", mark.unwrap_or_default())
                }));
            }
        }
        let taken = results.seconds(data, clusterer);
        cells.push(if taken.is_empty() { "–".to_owned() } else { svg::short(mean(&taken)) });
        row(text, &cells);
    }
    for which in Trivial::ALL {
        let mut cells = vec![format!("*{}*", which.name())];
        for metric in results.metrics() {
            let value = run.trivial(data, which, metric);
            cells.push(value.map_or_else(|| "–".to_owned(), |value| score_text(results.unit(metric), value)));
            cells.extend(referred(metric).map(|_| String::new()));
        }
        cells.push(String::new());
        row(text, &cells);
    }
    let failed =
        run.data.get(data).and_then(|again| again.trivial.iter().find_map(|(_, scores)| scores.as_ref().err()));
    if let Some(reason) = failed {
        let _ = writeln!(text, "\nThe trivial clusterings could not be scored: {}.", escape(reason));
    }
    for (at, footnote) in footnotes.into_iter().enumerate() {
        let _ = writeln!(text, "\n<sup>{}</sup> {footnote}", at + 1);
    }
}

/// The head of a table whose first columns are texts.
fn begin(text: &mut String, header: &[String], texts: usize) {
    row(text, header);
    let _ = writeln!(text, "|{}{}", "---|".repeat(texts), "---:|".repeat(header.len() - texts));
}

/// A method's name, in italics if it is given the truth.
fn method(results: &Results, clusterer: &str) -> String {
    let name = escape(clusterer);
    if results.is_oracle(clusterer) { format!("*{name}*") } else { name }
}

/// An entry of the results table, and of how many trials if not of all.
fn cell(results: &Results, data: &str, clusterer: &str, metric: &str) -> String {
    let Some(entry) = results.entry(data, clusterer, metric) else { return "–".to_owned() };
    let trials = results.trials(data).len();
    let some = if entry.trials < trials { format!(" [{}/{trials}]", entry.trials) } else { String::new() };
    ours(entry, results.clusterers().len()) + &some
}

fn row(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn ours(entry: &Summary, methods: usize) -> String {
    let value = mean_text(entry);
    match entry.p_vs_best {
        _ if entry.best && methods > 1 => format!("**{value}**"),
        Some(p) if p >= SIGNIFICANT => format!("{value}†"),
        _ => value,
    }
}

/// Where our numbers differ from the reference's, and why.
fn differences(text: &mut String, results: &Results, reference: &Reference) {
    let name = &results.record.name;
    let _ = writeln!(
        text,
        "\n### {}: where our numbers differ from the {}'s\n\nListed is what Welch's t-test calls different (p < {SIGNIFICANT}).\n",
        escape(name),
        reference.name
    );
    let (mut compared, mut different) = (0, 0);
    let mut reasons: BTreeMap<usize, (&str, Vec<String>)> = BTreeMap::new();
    let mut unexplained = Vec::new();
    for clusterer in results.clusterers() {
        let mut lines = Vec::new();
        for metric in results.metrics() {
            for data in results.data() {
                let Some(theirs) = reference.entry(name, data, clusterer, metric) else { continue };
                let Some(entry) = results.entry(data, clusterer, metric) else { continue };
                let ours = {
                    let shown = |value| shown(entry.unit, value);
                    Entry { mean: shown(entry.mean), se: shown(entry.se.unwrap_or(f64::NAN)) }
                };
                compared += 1;
                let p = welch(ours, entry.trials, theirs, reference.trials);
                if p.is_some_and(|p| p < SIGNIFICANT) {
                    let place = format!("{} at {}", escape(&metric_name(metric)), escape(&results.heading(data)));
                    lines.push(format!("{place} {:.1} against {:.1}", ours.mean, theirs.mean));
                }
            }
        }
        different += lines.len();
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(text, "- **{}**: {}.", escape(clusterer), lines.join(", "));
        let before = reasons.values().map(|(_, names)| names.len()).sum::<usize>();
        for (at, note) in reference.notes(name, clusterer) {
            reasons.entry(at).or_insert((note, Vec::new())).1.push(escape(clusterer));
        }
        if reasons.values().map(|(_, names)| names.len()).sum::<usize>() == before {
            unexplained.push(escape(clusterer));
        }
    }
    if different > 0 {
        *text += "\nWhy, as far as it is known:\n\n";
    }
    for (note, names) in reasons.values() {
        let _ = writeln!(text, "- {}: {note}", names.join(", "));
    }
    if !unexplained.is_empty() {
        let _ = writeln!(text, "- {}: not known yet.", unexplained.join(", "));
    }
    let unmatched: Vec<String> = results
        .clusterers()
        .into_iter()
        .filter(|clusterer| {
            let known = |data: &str, metric: &str| reference.entry(name, data, clusterer, metric).is_some();
            !results.data().iter().any(|data| results.metrics().iter().any(|metric| known(data, metric)))
        })
        .map(escape)
        .collect();
    let _ = writeln!(text, "\n{different} of {compared} entries differ.");
    if !unmatched.is_empty() {
        let _ = writeln!(text, "The {} has no numbers for {}.", reference.name, unmatched.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::Unit;

    use super::*;

    #[test]
    fn entries_are_marked() {
        let entry = |best, p_vs_best| Summary {
            data: String::new(),
            clusterer: String::new(),
            metric: String::new(),
            unit: Unit::Share,
            trials: 10,
            mean: 0.5,
            se: Some(0.01),
            best,
            p_vs_best,
        };
        assert_eq!(ours(&entry(true, None), 2), "**50.0 (1.0)**");
        assert_eq!(ours(&entry(true, None), 1), "50.0 (1.0)");
        assert_eq!(ours(&entry(false, Some(0.2)), 2), "50.0 (1.0)†");
        assert_eq!(ours(&entry(false, Some(0.01)), 2), "50.0 (1.0)");
    }
}
