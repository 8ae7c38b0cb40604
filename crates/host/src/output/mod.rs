//! What goes to stdout: tables in the format that the user asked for.

pub(crate) mod csv;
mod duration;
pub(crate) mod found;
mod json;
pub(crate) mod latex;
pub(crate) mod markdown;
pub(crate) mod summary;
pub(crate) mod table;

pub(crate) use self::duration::duration;
use crate::terminal::clean::one_line;

/// Formats of tables.
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

/// Something that can be printed in every format: for programs as records, for people as grids.
pub(crate) trait Output {
    /// Exact values.
    fn records(&self) -> Records;

    /// Rounded texts, one grid below the other.
    fn grids(&self) -> Vec<Grid>;

    /// What stands below the grids, a line each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// For papers; the grids, unless there is something better.
    fn latex(&self) -> String {
        joined(&self.grids(), latex::render)
    }
}

impl Format {
    /// Renders it.
    pub(crate) fn render(self, output: &dyn Output) -> String {
        match self {
            Self::Table => joined(&output.grids(), table::render) + &noted(&output.notes(), ""),
            Self::Json => json::render(&output.records()),
            Self::Csv => csv::render(&output.records()),
            Self::Md => joined(&output.grids(), markdown::render) + &listed(&output.notes()),
            Self::Latex => output.latex() + &noted(&output.notes(), "% "),
        }
    }
}

/// Notes as a list of Markdown.
fn listed(notes: &[String]) -> String {
    let notes: Vec<String> = notes.iter().map(|note| markdown::escape(note)).collect();
    if notes.is_empty() { String::new() } else { format!("\n{}", noted(&notes, "- ")) }
}

/// Notes, a line each.
fn noted(notes: &[String], before: &str) -> String {
    notes.iter().map(|note| format!("{before}{}\n", one_line(note))).collect()
}

fn joined(grids: &[Grid], render: fn(&Grid) -> String) -> String {
    grids.iter().map(render).collect::<Vec<_>>().join("\n")
}

/// Rows and columns of text with a title.
#[derive(Debug)]
pub(crate) struct Grid {
    /// May be empty.
    pub(crate) title: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Whether all columns but the first are numbers.
    pub(crate) numbers: bool,
}

impl Grid {
    /// Every text made harmless and passed through `escape`.
    fn shown(&self, escape: fn(&str) -> String) -> Self {
        let shown = |text: &String| escape(&one_line(text));
        let each = |texts: &Vec<String>| texts.iter().map(shown).collect();
        Self {
            title: shown(&self.title),
            header: each(&self.header),
            rows: self.rows.iter().map(each).collect(),
            numbers: self.numbers,
        }
    }
}

/// Rows of values with named columns.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// A value of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Count(usize),
    /// `None` where there is none.
    Number(Option<f64>),
    Flag(bool),
    /// Something with parts.
    Json(serde_json::Value),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(Some(number))
    }
}
