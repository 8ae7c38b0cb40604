//! `--format latex`: the paper's table. Methods are rows; every data set is a group of columns, one per metric.

use std::fmt::Write;

use crate::results::distinct;
use crate::summary::Summary;

/// From which p on a method counts as not worse than the best.
pub(crate) const SIGNIFICANT: f64 = 0.05;

/// A `tabular` in the style of `booktabs`: mean (s.e.) in per cent, the best in bold, a dagger on what is not
/// significantly worse. `heading` says what to call a data set.
pub(crate) fn summary(entries: &[Summary], heading: impl Fn(&str) -> String) -> String {
    let data = distinct(entries.iter().map(|entry| entry.data.as_str()));
    let clusterers = distinct(entries.iter().map(|entry| entry.clusterer.as_str()));
    let groups: Vec<(&str, Vec<&str>)> = data
        .into_iter()
        .map(|data| {
            let here = entries.iter().filter(|entry| entry.data == data);
            (data, distinct(here.map(|entry| entry.metric.as_str())))
        })
        .collect();
    let trials = entries.iter().map(|entry| entry.trials).max().unwrap_or(0);
    let columns: usize = groups.iter().map(|(_, metrics)| metrics.len()).sum();
    // Writing to a string cannot fail.
    let mut text = "% \\usepackage{booktabs}\n".to_owned();
    let _ = writeln!(
        text,
        "% mean (s.e.) in % over {trials} trials; bold: the best; dagger: not significantly worse than the best\n\
         % (matched-pair t-test over trials, p >= {SIGNIFICANT})\n\\begin{{tabular}}{{l{}}}\n\\toprule",
        "r".repeat(columns)
    );
    let mut rules = String::new();
    let mut first = 2;
    for (data, metrics) in &groups {
        let title = heading(data);
        let title = match title.strip_prefix("n = ") {
            Some(n) => format!("$n = {n}$"),
            None => escape(&title),
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
        text += &escape(clusterer);
        for (data, metrics) in &groups {
            for metric in metrics {
                let entry = entries
                    .iter()
                    .find(|entry| entry.data == *data && entry.clusterer == *clusterer && entry.metric == *metric);
                let _ = write!(
                    text,
                    " & {}",
                    entry.map_or_else(|| "--".to_owned(), |entry| cell(entry, clusterers.len()))
                );
            }
        }
        text += " \\\\\n";
    }
    text + "\\bottomrule\n\\end{tabular}\n"
}

fn cell(entry: &Summary, methods: usize) -> String {
    let se = entry.se.map_or_else(String::new, |se| format!(" ({:.1})", 100.0 * se));
    let text = format!("{:.1}{se}", 100.0 * entry.mean);
    match (entry.best, entry.p_vs_best) {
        // Being the best of one says nothing.
        (true, _) if methods > 1 => format!("\\textbf{{{text}}}"),
        (false, Some(p)) if p >= SIGNIFICANT => format!("{text}$^\\dagger$"),
        _ => text,
    }
}

/// A metric as people write it: abbreviations are in capitals.
pub(crate) fn metric_name(metric: &str) -> String {
    match metric {
        "acri" => "aCRI".to_owned(),
        "bcubed" => "BCubed".to_owned(),
        "set_f1" => "set F1".to_owned(),
        "cri" | "ari" | "nmi" | "ami" => metric.to_ascii_uppercase(),
        _ => metric.to_owned(),
    }
}

/// Text that LaTeX sets as it stands.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped += "\\textbackslash{}",
            '~' => escaped += "\\textasciitilde{}",
            '^' => escaped += "\\textasciicircum{}",
            '_' | '%' | '&' | '$' | '#' | '{' | '}' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(data: &str, clusterer: &str, metric: &str, mean: f64, p_vs_best: Option<f64>) -> Summary {
        Summary {
            data: data.to_owned(),
            clusterer: clusterer.to_owned(),
            metric: metric.to_owned(),
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
        let table = summary(&entries, |data| data.replace('n', "n = "));
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

    #[test]
    fn every_special_character_is_escaped() {
        assert_eq!(
            escape(r"a\b{c}~^_%&$#"),
            r"a\textbackslash{}b\{c\}\textasciitilde{}\textasciicircum{}\_\%\&\$\#"
        );
    }
}
