//! LaTeX.

use super::Grid;
use crate::terminal::clean::one_line;

/// From which p on a method counts as not worse than the best.
pub(crate) const SIGNIFICANT: f64 = 0.05;

/// A `tabular`: what is marked with a star is bold.
pub(super) fn render(grid: &Grid) -> String {
    let grid = grid.shown(str::to_owned);
    let line = |texts: &[String]| {
        let texts: Vec<String> = texts
            .iter()
            .map(|text| match text.strip_suffix('*') {
                Some(best) => format!("\\textbf{{{}}}", escape(best.trim_end())),
                None => escape(text.trim_end()),
            })
            .collect();
        begins_row(texts.join(" & ")) + " \\\\\n"
    };
    let mut text = if grid.title.is_empty() { String::new() } else { format!("% {}\n", grid.title) };
    text += &format!("\\begin{{tabular}}{{l{}}}\n\\hline\n", "r".repeat(grid.header.len() - 1));
    text += &line(&grid.header);
    text += "\\hline\n";
    grid.rows.iter().for_each(|row| text += &line(row));
    text += "\\hline\n\\end{tabular}\n";
    text
}

/// A metric as people write it: abbreviations are in capitals.
pub(crate) fn metric_name(metric: &str) -> String {
    match metric {
        "acri" => "aCRI".to_owned(),
        "bcubed_f1" => "BCubed F1".to_owned(),
        "set_f1" => "set F1".to_owned(),
        "set_accuracy" => "set accuracy".to_owned(),
        "union_precision" => "union precision".to_owned(),
        "union_recall" => "union recall".to_owned(),
        "false_alarm" => "false alarm".to_owned(),
        "cri" | "ari" | "nmi" | "ami" | "der" | "jer" => metric.to_ascii_uppercase(),
        _ => metric.to_owned(),
    }
}

/// A row, whose text is escaped: the end of the row before it, or a rule, would take a star or a bracket for its own.
pub(super) fn begins_row(row: String) -> String {
    if row.starts_with(['*', '[']) { format!("{{}}{row}") } else { row }
}

/// Text that LaTeX sets as it stands.
pub(super) fn escape(text: &str) -> String {
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
    one_line(&escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latex_escapes_and_sets_the_best_in_bold() {
        let rows = vec![["B_b", "75.0 (1.0) *", "20.0 (1.0)  "].map(str::to_owned).to_vec()];
        let header = ["clusterer", "cri", "ari"].map(str::to_owned).to_vec();
        let text = render(&Grid { title: String::new(), header, rows, numbers: true });
        assert!(text.contains("B\\_b & \\textbf{75.0 (1.0)} & 20.0 (1.0) \\\\"), "{text}");
    }

    #[test]
    fn a_row_that_begins_with_what_the_one_before_it_would_take_is_kept_from_it() {
        for (name, expected) in [("[k=3] KM", "\n{}[k=3] KM &"), ("*KM", "\n{}*KM &"), ("KM [a]", "\nKM [a] &")] {
            let rows = vec![vec![name.to_owned(), "1".to_owned()]];
            let header = ["clusterer", "cri"].map(str::to_owned).to_vec();
            let text = render(&Grid { title: String::new(), header, rows, numbers: true });
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn every_special_character_is_escaped() {
        assert_eq!(
            escape(r"a\b{c}~^_%&$#"),
            r"a\textbackslash{}b\{c\}\textasciitilde{}\textasciicircum{}\_\%\&\$\#"
        );
    }
}
