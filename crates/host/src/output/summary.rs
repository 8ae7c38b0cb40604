//! The results table of a run.

use std::collections::HashMap;
use std::fmt::Write;

use compflow_api::Unit;
use compflow_engine::results::{Summary, distinct, lead, score_text};

use super::latex::{SIGNIFICANT, begins_row, escape, metric_name};
use super::{Grid, Output, Records, Value};

/// Means over trials: methods are rows, metrics are columns.
pub(crate) struct SummaryTable<'a> {
    pub(crate) entries: &'a [Summary],
    /// What to call a data set in a paper.
    pub(crate) heading: &'a dyn Fn(&str) -> String,
}

impl Output for SummaryTable<'_> {
    fn records(&self) -> Records {
        let columns = ["data", "clusterer", "metric", "trials", "mean", "se", "best", "p_vs_best"];
        let row = |entry: &Summary| {
            vec![
                Value::from(entry.data.as_str()),
                Value::from(entry.clusterer.as_str()),
                Value::from(entry.metric.as_str()),
                Value::Count(entry.trials),
                Value::from(entry.mean),
                Value::Number(entry.se),
                Value::Flag(entry.best),
                Value::Number(entry.p_vs_best),
            ]
        };
        Records { columns: columns.map(str::to_owned).to_vec(), rows: self.entries.iter().map(row).collect() }
    }

    fn grids(&self) -> Vec<Grid> {
        grids(self.entries)
    }

    /// The paper's table; nothing if nothing was scored.
    fn latex(&self) -> String {
        if self.entries.is_empty() { String::new() } else { booktabs(self.entries, self.heading) }
    }
}

/// One grid per data set: a row per clusterer, a column per metric, mean (s.e.), shares in per cent, the best by the
/// leading metric marked.
fn grids(entries: &[Summary]) -> Vec<Grid> {
    let mut grids = Vec::new();
    for data in distinct(entries.iter().map(|entry| entry.data.as_str())) {
        let here: Vec<&Summary> = entries.iter().filter(|entry| entry.data == data).collect();
        let metrics = distinct(here.iter().map(|entry| entry.metric.as_str()));
        let trials = here.iter().map(|entry| entry.trials).max().unwrap_or(0);
        // Of those of the same name, the first.
        let named = here.iter().rev().map(|&entry| ((entry.clusterer.as_str(), entry.metric.as_str()), entry));
        let named: HashMap<(&str, &str), &Summary> = named.collect();
        let clusterers = distinct(here.iter().map(|entry| entry.clusterer.as_str()));
        // With one method alone nothing is marked as the best.
        let starred = lead(&metrics).filter(|_| clusterers.len() > 1);
        let all_shares = here.iter().all(|entry| entry.unit == Unit::Share);
        let is_share = |metric: &str| here.iter().any(|entry| entry.metric == metric && entry.unit == Unit::Share);
        let header: Vec<String> = metrics
            .iter()
            .map(|metric| format!("{metric}{}", if !all_shares && is_share(metric) { " %" } else { "" }))
            .collect();
        let rows = clusterers
            .into_iter()
            .map(|clusterer| {
                let texts = metrics.iter().map(|metric| {
                    named
                        .get(&(clusterer, *metric))
                        .map_or("–".to_owned(), |entry| entry_text(entry, starred == Some(*metric), trials))
                });
                std::iter::once(clusterer.to_owned()).chain(texts).collect()
            })
            .collect();
        grids.push(Grid {
            title: format!(
                "{data}: mean (s.e.){} over {trials} trial{}{}",
                if all_shares { " in %" } else { "" },
                if trials == 1 { "" } else { "s" },
                match starred {
                    Some(metric) if metrics.len() > 1 => format!(", * best by {metric}"),
                    Some(_) => ", * best".to_owned(),
                    None => String::new(),
                }
            ),
            header: std::iter::once("clusterer".to_owned()).chain(header).collect(),
            rows,
            numbers: true,
        });
    }
    grids
}

/// Mean and standard error: `96.5 (0.4)`.
pub(crate) fn mean_text(entry: &Summary) -> String {
    let se = entry.se.map_or_else(String::new, |se| format!(" ({})", score_text(entry.unit, se)));
    format!("{}{se}", score_text(entry.unit, entry.mean))
}

/// An entry as it stands in its column: with a star if it is the best of one in which the best is `starred`.
fn entry_text(entry: &Summary, starred: bool, trials: usize) -> String {
    let mut text = mean_text(entry);
    if entry.trials < trials {
        let _ = write!(text, " [{}/{trials}]", entry.trials);
    }
    match (starred, entry.best) {
        (false, _) => text,
        (true, true) => text + " *",
        (true, false) => text + "  ",
    }
}

/// A `tabular` in the style of `booktabs`: mean (s.e.) in per cent, the best in bold, a dagger on what is not
/// significantly worse. `heading` says what to call a data set.
fn booktabs(entries: &[Summary], heading: &dyn Fn(&str) -> String) -> String {
    let data = distinct(entries.iter().map(|entry| entry.data.as_str()));
    let clusterers = distinct(entries.iter().map(|entry| entry.clusterer.as_str()));
    let groups: Vec<(&str, Vec<&str>)> = data
        .into_iter()
        .map(|data| {
            let here = entries.iter().filter(|entry| entry.data == data);
            (data, distinct(here.map(|entry| entry.metric.as_str())))
        })
        .collect();
    let named: HashMap<[&str; 3], &Summary> = entries
        .iter()
        .rev()
        .map(|entry| ([&entry.data, &entry.clusterer, &entry.metric].map(String::as_str), entry))
        .collect();
    let trials = entries.iter().map(|entry| entry.trials).max().unwrap_or(0);
    let columns: usize = groups.iter().map(|(_, metrics)| metrics.len()).sum();
    // Writing to a string cannot fail.
    let mut text = "% \\usepackage{booktabs}\n".to_owned();
    let _ = writeln!(
        text,
        "% mean (s.e.) over {trials} trial{}, shares in %; bold: the best; dagger: not significantly worse than the best\n\
         % (matched-pair t-test over trials, p >= {SIGNIFICANT})\n\\begin{{tabular}}{{l{}}}\n\\toprule",
        if trials == 1 { "" } else { "s" },
        "r".repeat(columns)
    );
    let mut rules = String::new();
    let mut first = 2;
    for (data, metrics) in &groups {
        let title = heading(data);
        let title = match title.strip_prefix("n = ") {
            Some(n) if n.bytes().all(|digit| digit.is_ascii_digit()) => format!("$n = {n}$"),
            _ => escape(&title),
        };
        let _ = write!(text, " & \\multicolumn{{{}}}{{c}}{{{title}}}", metrics.len());
        let _ = write!(rules, "\\cmidrule(lr){{{first}-{}}}", first + metrics.len() - 1);
        first += metrics.len();
    }
    let _ = writeln!(text, " \\\\\n{rules}");
    for metric in groups.iter().flat_map(|(_, metrics)| metrics) {
        let _ = write!(text, " & {}", escape(&metric_name(metric)));
    }
    text += " \\\\\n\\midrule\n";
    for clusterer in &clusterers {
        text += &begins_row(escape(clusterer));
        for (data, metrics) in &groups {
            for metric in metrics {
                let entry = named.get(&[*data, *clusterer, *metric]);
                let _ = write!(
                    text,
                    " & {}",
                    entry.map_or_else(|| "--".to_owned(), |entry| latex_entry(entry, clusterers.len()))
                );
            }
        }
        text += " \\\\\n";
    }
    text + "\\bottomrule\n\\end{tabular}\n"
}

fn latex_entry(entry: &Summary, methods: usize) -> String {
    let text = mean_text(entry);
    match (entry.best, entry.p_vs_best) {
        // With one method alone nothing is marked as the best.
        (true, _) if methods > 1 => format!("\\textbf{{{text}}}"),
        (false, Some(p)) if p >= SIGNIFICANT => format!("{text}$^\\dagger$"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;

    fn render(format: Format) -> String {
        format.render(&SummaryTable { entries: &entries(), heading: &str::to_owned })
    }

    fn entries() -> Vec<Summary> {
        let entry = |clusterer: &str, metric: &str, mean, best| Summary {
            data: "n150".to_owned(),
            clusterer: clusterer.to_owned(),
            metric: metric.to_owned(),
            unit: Unit::Share,
            trials: 2,
            mean,
            se: Some(0.01),
            best,
            p_vs_best: if best { None } else { Some(0.25) },
        };
        vec![
            entry("A, a", "cri", 0.5, false),
            entry("B_b", "cri", 0.75, true),
            entry("A, a", "ari", 0.3, true),
            entry("B_b", "ari", 0.2, false),
        ]
    }

    #[test]
    fn csv_quotes_what_has_a_comma() {
        let text = render(Format::Csv);
        assert_eq!(text.lines().nth(1), Some("n150,\"A, a\",cri,2,0.5,0.01,false,0.25"));
        assert_eq!(text.lines().nth(2), Some("n150,B_b,cri,2,0.75,0.01,true,"));
    }

    fn entry(data: &str, clusterer: &str, metric: &str, mean: f64, p_vs_best: Option<f64>) -> Summary {
        Summary {
            data: data.to_owned(),
            clusterer: clusterer.to_owned(),
            metric: metric.to_owned(),
            unit: Unit::Share,
            trials: 10,
            mean,
            se: Some(0.004),
            best: p_vs_best.is_none(),
            p_vs_best,
        }
    }

    #[test]
    fn the_table_has_a_group_of_columns_per_data_set() {
        let entries = [
            entry("n150", "GCR", "cri", 0.949, None),
            entry("n150", "C_M", "cri", 0.943, Some(0.3)),
            entry("n150", "GCR", "ari", 0.76, Some(0.01)),
            entry("n150", "C_M", "ari", 0.777, None),
            entry("n750", "GCR", "cri", 0.959, None),
        ];
        let table = booktabs(&entries, &|data: &str| data.replace('n', "n = "));
        let body: Vec<&str> = table.lines().filter(|line| !line.starts_with('%')).collect();
        assert_eq!(
            body,
            [
                "\\begin{tabular}{lrrr}",
                "\\toprule",
                " & \\multicolumn{2}{c}{$n = 150$} & \\multicolumn{1}{c}{$n = 750$} \\\\",
                "\\cmidrule(lr){2-3}\\cmidrule(lr){4-4}",
                " & CRI & ARI & CRI \\\\",
                "\\midrule",
                "GCR & \\textbf{94.9 (0.4)} & 76.0 (0.4) & \\textbf{95.9 (0.4)} \\\\",
                "C\\_M & 94.3 (0.4)$^\\dagger$ & \\textbf{77.7 (0.4)} & -- \\\\",
                "\\bottomrule",
                "\\end{tabular}",
            ]
        );
    }

    /// Many small clusters can have the best raw CRI and be wrong about everything.
    #[test]
    fn the_star_is_given_once_by_what_is_corrected_for_chance() {
        let entries = [
            entry("d", "many", "cri", 0.86, None),
            entry("d", "few", "cri", 0.85, Some(0.01)),
            entry("d", "many", "acri", 0.04, Some(0.01)),
            entry("d", "few", "acri", 0.40, None),
        ];
        let starred = |entries: &[Summary]| {
            let text = Format::Table.render(&SummaryTable { entries, heading: &str::to_owned });
            let lines = text.lines().map(|line| line.trim().to_owned());
            lines.filter(|line| line.contains(" *")).collect::<Vec<_>>()
        };
        let rows = starred(&entries);
        assert!(rows[0].ends_with(", * best by acri"), "{rows:?}");
        assert!(rows.len() == 2 && rows[1].starts_with("few") && rows[1].ends_with("40.0 (0.4) *"), "{rows:?}");
        let rows = starred(&entries[..2]);
        assert!(rows[0].ends_with(", * best") && rows[1].starts_with("many"), "the only metric decides: {rows:?}");
    }

    #[test]
    fn markdown_has_a_row_per_clusterer() {
        let text = render(Format::Md);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 4, "{text}");
        assert!(rows[3].starts_with("| B\\_b"), "{text}");
    }

    #[test]
    fn json_is_a_list_of_entries() {
        let parsed: serde_json::Value = serde_json::from_str(&render(Format::Json)).unwrap();
        assert_eq!(parsed[1]["mean"], 0.75);
        assert_eq!(parsed[1]["p_vs_best"], serde_json::Value::Null);
    }
}
