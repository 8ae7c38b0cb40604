//! What goes to stdout: the results table in the format the user asked for.

use std::fmt::Write;

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use serde_json::json;

use crate::latex::escape;
use crate::summary::Summary;

/// Formats of the results table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// A list of objects, one per entry.
    Json,
    /// One line per entry.
    Csv,
    /// Markdown.
    Md,
    /// A LaTeX tabular.
    Latex,
}

/// Lines above, below and under the header, none between rows.
const LINES: TableStyle = NOTHING.top_border(LINE).header_separator(LINE).bottom_border(LINE);
const LINE: LineStyle = LineStyle::none().fill('─').junction('─');

/// Width of tables with words in them where there is no terminal to ask.
const WIDTH: u16 = 115;

/// Renders a summary, data set by data set.
pub(crate) fn summary(entries: &[Summary], format: Format) -> String {
    match format {
        Format::Json => json(entries),
        Format::Csv => csv(entries),
        Format::Table | Format::Md | Format::Latex => {
            let grids = grids(entries);
            let rendered: Vec<String> = grids.iter().map(|grid| grid.render(format)).collect();
            rendered.join("\n")
        }
    }
}

/// Rows and columns of text with a title, for any of the formats for people.
#[derive(Debug)]
pub(crate) struct Grid {
    pub(crate) title: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Whether all columns but the first are numbers.
    pub(crate) numbers: bool,
}

impl Grid {
    /// Renders it as a table, as Markdown or as LaTeX.
    pub(crate) fn render(&self, format: Format) -> String {
        if format == Format::Latex {
            return self.latex();
        }
        let mut table = Table::new();
        table.load_style(if format == Format::Md { ASCII_MARKDOWN } else { LINES });
        if format == Format::Md {
            let escape = |row: &Vec<String>| row.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>();
            table.set_header(escape(&self.header)).add_rows(self.rows.iter().map(escape));
        } else {
            table.set_header(&self.header).add_rows(&self.rows);
        }
        if self.numbers {
            table.column_iter_mut().skip(1).for_each(|column| {
                column.set_cell_alignment(CellAlignment::Right);
            });
        } else {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            if !table.is_tty() {
                table.set_width(WIDTH);
            }
        }
        let title = match (self.title.as_str(), format) {
            ("", _) => String::new(),
            (title, Format::Md) => format!("**{title}**\n\n"),
            (title, _) => format!("{title}\n"),
        };
        format!("{title}{}\n", table.trim_fmt())
    }

    fn latex(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells
                .iter()
                .map(|cell| match cell.strip_suffix('*') {
                    Some(best) => format!("\\textbf{{{}}}", escape(best.trim_end())),
                    None => escape(cell.trim_end()),
                })
                .collect();
            cells.join(" & ") + " \\\\\n"
        };
        let mut text = if self.title.is_empty() { String::new() } else { format!("% {}\n", self.title) };
        text += &format!("\\begin{{tabular}}{{l{}}}\n\\hline\n", "r".repeat(self.header.len() - 1));
        text += &line(&self.header);
        text += "\\hline\n";
        self.rows.iter().for_each(|row| text += &line(row));
        text += "\\hline\n\\end{tabular}\n";
        text
    }
}

/// One grid per data set: a row per clusterer, a column per metric, mean (s.e.) in per cent, the best marked.
fn grids(entries: &[Summary]) -> Vec<Grid> {
    let distinct = |value: fn(&Summary) -> &String, entries: &[&Summary]| {
        let mut seen: Vec<String> = Vec::new();
        for entry in entries {
            if !seen.contains(value(entry)) {
                seen.push(value(entry).clone());
            }
        }
        seen
    };
    let all: Vec<&Summary> = entries.iter().collect();
    let mut grids = Vec::new();
    for data in distinct(|entry| &entry.data, &all) {
        let here: Vec<&Summary> = all.iter().copied().filter(|entry| entry.data == data).collect();
        let metrics = distinct(|entry| &entry.metric, &here);
        let trials = here.iter().map(|entry| entry.trials).max().unwrap_or(0);
        let find = |clusterer: &str, metric: &str| {
            here.iter().find(|entry| entry.clusterer == clusterer && entry.metric == metric)
        };
        let clusterers = distinct(|entry| &entry.clusterer, &here);
        // Being the best of one says nothing.
        let compared = clusterers.len() > 1;
        let rows = clusterers
            .into_iter()
            .map(|clusterer| {
                let cells = metrics.iter().map(|metric| {
                    find(&clusterer, metric).map_or("–".to_owned(), |entry| entry_text(entry, compared, trials))
                });
                std::iter::once(clusterer.clone()).chain(cells).collect()
            })
            .collect();
        grids.push(Grid {
            title: format!(
                "{data}: mean (s.e.) in % over {trials} trial{}{}",
                if trials == 1 { "" } else { "s" },
                if compared { ", * best" } else { "" }
            ),
            header: std::iter::once("clusterer".to_owned()).chain(metrics).collect(),
            rows,
            numbers: true,
        });
    }
    grids
}

fn entry_text(entry: &Summary, compared: bool, trials: usize) -> String {
    let mut text = format!("{:.1}", 100.0 * entry.mean);
    if let Some(se) = entry.se {
        // Writing to a string cannot fail.
        let _ = write!(text, " ({:.1})", 100.0 * se);
    }
    if entry.trials < trials {
        let _ = write!(text, " [{}/{trials}]", entry.trials);
    }
    match (compared, entry.best) {
        (false, _) => text,
        (true, true) => text + " *",
        (true, false) => text + "  ",
    }
}

fn json(entries: &[Summary]) -> String {
    let entries: Vec<serde_json::Value> = entries
        .iter()
        .map(|entry| {
            json!({
                "data": entry.data,
                "clusterer": entry.clusterer,
                "metric": entry.metric,
                "trials": entry.trials,
                "mean": entry.mean,
                "se": entry.se,
                "best": entry.best,
                "p_vs_best": entry.p_vs_best,
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::from(entries))
}

fn csv(entries: &[Summary]) -> String {
    let mut text = "data,clusterer,metric,trials,mean,se,best,p_vs_best\n".to_owned();
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for entry in entries {
        let fields = [
            field(&entry.data),
            field(&entry.clusterer),
            field(&entry.metric),
            entry.trials.to_string(),
            entry.mean.to_string(),
            number(entry.se),
            entry.best.to_string(),
            number(entry.p_vs_best),
        ];
        text += &(fields.join(",") + "\n");
    }
    text
}

/// A CSV field, quoted if it has to be (RFC 4180).
pub(crate) fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Summary> {
        let entry = |clusterer: &str, metric: &str, mean, best| Summary {
            data: "n150".to_owned(),
            clusterer: clusterer.to_owned(),
            metric: metric.to_owned(),
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
        let text = summary(&entries(), Format::Csv);
        assert_eq!(text.lines().nth(1), Some("n150,\"A, a\",cri,2,0.5,0.01,false,0.25"));
        assert_eq!(text.lines().nth(2), Some("n150,B_b,cri,2,0.75,0.01,true,"));
    }

    #[test]
    fn latex_escapes_and_sets_the_best_in_bold() {
        let text = summary(&entries(), Format::Latex);
        assert!(text.contains("B\\_b & \\textbf{75.0 (1.0)} & 20.0 (1.0) \\\\"), "{text}");
    }

    #[test]
    fn markdown_has_a_row_per_clusterer() {
        let text = summary(&entries(), Format::Md);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 4, "{text}");
        assert!(rows[3].starts_with("| B_b"), "{text}");
    }

    #[test]
    fn json_is_a_list_of_entries() {
        let parsed: serde_json::Value = serde_json::from_str(&summary(&entries(), Format::Json)).unwrap();
        assert_eq!(parsed[1]["mean"], 0.75);
        assert_eq!(parsed[1]["p_vs_best"], serde_json::Value::Null);
    }
}
