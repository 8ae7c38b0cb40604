//! The tables of `docs/results.md`: ours beside somebody else's, what is significant, and where they differ.

use std::fmt::Write;

use compflow_engine::Results;
use compflow_engine::results::statistics::mean;
use compflow_engine::results::{Summary, Trivial, score_text, shown};

use super::ReportData;
use super::reference::{Entry, Reference, welch};
use super::scores::{p_text, pair};
use super::svg;
use crate::output::latex::{SIGNIFICANT, metric_name};
use crate::output::summary::mean_text;

/// The page of several runs. Writing to a string cannot fail.
pub(crate) fn page(runs: &[ReportData], reference: Option<&Reference>) -> String {
    let mut text = "# Results\n\n".to_owned();
    let _ = writeln!(
        text,
        "Mean (s.e.) over trials, shares in %. **Bold** is the best of its column, † is not significantly worse (matched-pair \
         t-test\nover trials, p ≥ {SIGNIFICANT}). *All alone* makes every example a cluster of its own, *one cluster* \
         puts all together: what a\nmethod scores that looks at nothing. Seconds are those of one cell."
    );
    if let Some(reference) = reference {
        let _ = writeln!(text, "The columns *{}* are from {}.", reference.name, reference.source);
    }
    for run in runs {
        section(&mut text, run, reference);
    }
    text
}

fn section(text: &mut String, run: &ReportData, reference: Option<&Reference>) {
    let results = &run.results;
    let record = &results.record;
    let _ = writeln!(text, "\n## {}\n", escape(&record.name));
    let _ = writeln!(
        text,
        "`{}`, seed {}, compflow {}, {} {} with {} cores.",
        record.file, record.seed, record.compflow, record.host.os, record.host.arch, record.host.cores
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
    tests(text, results, reference);
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
        header.push(metric_name(metric));
        header.extend(referred(metric).map(|reference| format!("*{}*", reference.name)));
    }
    header.push("seconds".to_owned());
    row(text, &header);
    let _ = writeln!(text, "|---|{}", "---:|".repeat(header.len() - 1));
    let clusterers = results.clusterers();
    for clusterer in &clusterers {
        let mut cells = vec![escape(clusterer)];
        for metric in results.metrics() {
            let entry = results.entry(data, clusterer, metric);
            cells.push(entry.map_or_else(|| "–".to_owned(), |entry| ours(entry, clusterers.len())));
            if let Some(reference) = referred(metric) {
                let theirs = reference.entry(name, data, clusterer, metric);
                cells.push(theirs.map_or_else(String::new, |Entry { mean, se }| format!("*{mean:.1} ({se:.1})*")));
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
        let _ = writeln!(text, "\nThe trivial clusterings could not be scored: {reason}.");
    }
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

/// A name as Markdown shows it.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '<' => escaped += "&lt;",
            '&' => escaped += "&amp;",
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => escaped.extend(['\\', character]),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Matched-pair tests between all methods, for the metrics that the reference has, or the first one.
fn tests(text: &mut String, results: &Results, reference: Option<&Reference>) {
    let clusterers = results.clusterers();
    if clusterers.len() < 2 {
        return;
    }
    let (name, data) = (&results.record.name, results.data());
    let referred = |metric: &str| {
        data.iter().any(|data| reference.is_some_and(|reference| reference.has(name, data, metric)))
    };
    let mut metrics = results.metrics();
    if metrics.iter().any(|metric| referred(metric)) {
        metrics.retain(|metric| referred(metric));
    } else {
        metrics.truncate(1);
    }
    for metric in metrics {
        let _ = writeln!(
            text,
            "\n<details><summary>{}: matched-pair t-tests between methods</summary>\n\n\
             p of the row against the column; + and − where the row is significantly better or worse.",
            metric_name(metric)
        );
        for data in &data {
            let mut header = vec![escape(&results.heading(data))];
            header.extend(clusterers.iter().map(|clusterer| escape(clusterer)));
            text.push('\n');
            row(text, &header);
            let _ = writeln!(text, "|---|{}", "---|".repeat(clusterers.len()));
            for clusterer in &clusterers {
                let mut cells = vec![escape(clusterer)];
                cells.extend(clusterers.iter().map(|other| match pair(results, data, metric, clusterer, other) {
                    None => String::new(),
                    Some(pair) => {
                        let sign = match (pair.significant(), pair.better) {
                            (false, _) => "",
                            (true, true) => "+ ",
                            (true, false) => "− ",
                        };
                        format!("{sign}{}", p_text(pair.p).replace('<', "&lt;"))
                    }
                }));
                row(text, &cells);
            }
        }
        *text += "\n</details>\n";
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
                    let place = format!("{} at {}", metric_name(metric), results.heading(data));
                    lines.push(format!("{place} {:.1} against {:.1}", ours.mean, theirs.mean));
                }
            }
        }
        different += lines.len();
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(text, "- **{}**: {}.", escape(clusterer), lines.join(", "));
        let notes: Vec<&str> = reference.notes(name, clusterer).collect();
        let why = if notes.is_empty() { "We do not know why yet.".to_owned() } else { notes.join(" ") };
        let _ = writeln!(text, "  {why}");
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
    fn names_do_not_break_the_table() {
        assert_eq!(escape("a|b*c\n<d>"), "a\\|b\\*c &lt;d>");
    }

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
