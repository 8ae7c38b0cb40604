//! A file with somebody else's numbers, such as a paper's tables, to stand beside ours.

use std::collections::BTreeMap;
use std::path::Path;

use compflow_engine::files::plain;
use serde::Deserialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::failure::Failure;

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reference {
    /// Whose numbers these are, e.g. `paper`.
    pub(crate) name: String,
    /// Where they are from.
    pub(crate) source: String,
    /// Over how many trials they are means.
    pub(crate) trials: usize,
    #[serde(default)]
    table: Vec<Table>,
    #[serde(default)]
    note: Vec<Note>,
}

/// One table: a metric of some runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Its number and title.
    source: String,
    /// The pipelines whose data it is comparable with.
    runs: Vec<String>,
    metric: String,
    /// The data sets that its columns belong to.
    data: Vec<String>,
    /// By clusterer: a `mean (s.e.)` in per cent for every column; empty if there is none.
    rows: BTreeMap<String, Vec<String>>,
    /// What to say wherever it stands, e.g. that the data is not the same.
    #[serde(default)]
    caution: Option<String>,
    /// By clusterer: what to say below every table that has its numbers.
    #[serde(default)]
    footnotes: BTreeMap<String, String>,
}

/// Why our numbers differ.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    runs: Vec<String>,
    clusterers: Vec<String>,
    text: String,
}

/// A mean and its standard error, both in per cent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Entry {
    pub(crate) mean: f64,
    pub(crate) se: f64,
}

impl Reference {
    /// Reads a file.
    ///
    /// # Errors
    /// Naming what is wrong with it.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let fail = |text: String| Failure::request(format!("{}: {text}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| fail(plain(&error)))?;
        Self::parse(&text).map_err(fail)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let reference: Self = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        for table in &reference.table {
            if let Some(name) = table.footnotes.keys().find(|name| !table.rows.contains_key(*name)) {
                return Err(format!("{}: a footnote for `{name}`, which has no row", table.source));
            }
            for (clusterer, row) in &table.rows {
                let place = format!("{}, {clusterer}", table.source);
                if row.len() != table.data.len() {
                    return Err(format!("{place}: {} entries for {} data sets", row.len(), table.data.len()));
                }
                for entry in row.iter().filter(|entry| !entry.is_empty()) {
                    parse_entry(entry)
                        .ok_or_else(|| format!("{place}: expected `mean (s.e.)`, found `{entry}`"))?;
                }
            }
        }
        Ok(reference)
    }

    fn tables<'a>(&'a self, run: &'a str) -> impl Iterator<Item = &'a Table> {
        self.table.iter().filter(move |table| table.runs.iter().any(|known| known == run))
    }

    /// The number for one entry of a run's tables.
    pub(crate) fn entry(&self, run: &str, data: &str, clusterer: &str, metric: &str) -> Option<Entry> {
        self.tables(run).filter(|table| table.metric == metric).find_map(|table| {
            let column = table.data.iter().position(|known| known == data)?;
            parse_entry(&table.rows.get(clusterer)?[column])
        })
    }

    /// Whether there is any number for a metric of a data set.
    pub(crate) fn has(&self, run: &str, data: &str, metric: &str) -> bool {
        self.tables(run).any(|table| table.metric == metric && table.data.iter().any(|known| known == data))
    }

    /// Which tables a run is compared with, and what to keep in mind.
    pub(crate) fn about<'a>(&'a self, run: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
        let mut sources: Vec<&str> = self.tables(run).map(|table| table.source.as_str()).collect();
        sources.dedup();
        let mut cautions: Vec<&str> = self.tables(run).filter_map(|table| table.caution.as_deref()).collect();
        cautions.dedup();
        (sources, cautions)
    }

    /// What to say below the numbers for a clusterer.
    pub(crate) fn footnote(&self, run: &str, clusterer: &str, metric: &str) -> Option<&str> {
        let known = |table: &&Table| table.metric == metric && table.runs.iter().any(|known| known == run);
        self.table.iter().filter(known).find_map(|table| table.footnotes.get(clusterer)).map(String::as_str)
    }

    /// Why a clusterer's numbers differ, as far as that is known: notes and their places in the file.
    pub(crate) fn notes<'a>(&'a self, run: &'a str, clusterer: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
        let named = |list: &[String], name: &str| list.iter().any(|known| known == name);
        let notes = self.note.iter().enumerate();
        notes
            .filter(move |(_, note)| named(&note.runs, run) && named(&note.clusterers, clusterer))
            .map(|(at, note)| (at, note.text.as_str()))
    }
}

/// `94.9 (0.4)`.
fn parse_entry(text: &str) -> Option<Entry> {
    let (mean, rest) = text.split_once('(')?;
    let se = rest.trim_end().strip_suffix(')')?;
    Some(Entry { mean: mean.trim().parse().ok()?, se: se.trim().parse().ok()? })
}

/// Two-sided p of Welch's t-test between two means, of which only standard errors are known. Both were rounded to a
/// digit behind the point, so neither error counts as smaller than rounding makes it.
pub(crate) fn welch(a: Entry, trials_a: usize, b: Entry, trials_b: usize) -> Option<f64> {
    // The standard deviation of a uniform distribution of width 0.1.
    let rounding = 0.1 / 12f64.sqrt();
    let [a_var, b_var] = [a.se, b.se].map(|se| se.max(rounding).powi(2));
    let freedom = [trials_a, trials_b].map(|trials| trials.saturating_sub(1) as f64);
    if freedom.contains(&0.0) {
        return None;
    }
    let t = (a.mean - b.mean) / (a_var + b_var).sqrt();
    let freedom = (a_var + b_var).powi(2) / (a_var.powi(2) / freedom[0] + b_var.powi(2) / freedom[1]);
    Some(2.0 * StudentsT::new(0.0, 1.0, freedom).ok()?.sf(t.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        name = "paper"
        source = "a paper"
        trials = 10

        [[table]]
        source = "Table 1"
        runs = ["og"]
        metric = "cri"
        data = ["n150", "n750"]
        caution = "other data"
        [table.rows]
        AP = ["87.9 (0.1)", ""]
        [table.footnotes]
        AP = "of an older one"

        [[note]]
        runs = ["og"]
        clusterers = ["AP"]
        text = "because"
    "#;

    #[test]
    fn entries_are_found_by_run_data_clusterer_and_metric() {
        let reference = Reference::parse(FILE).unwrap();
        assert_eq!(reference.entry("og", "n150", "AP", "cri"), Some(Entry { mean: 87.9, se: 0.1 }));
        assert_eq!(reference.entry("og", "n750", "AP", "cri"), None);
        assert_eq!(reference.entry("og", "n150", "AP", "ari"), None);
        assert_eq!(reference.entry("speech", "n150", "AP", "cri"), None);
        assert!(reference.has("og", "n750", "cri") && !reference.has("og", "n9", "cri"));
        assert_eq!(reference.about("og"), (vec!["Table 1"], vec!["other data"]));
        assert_eq!(reference.notes("og", "AP").collect::<Vec<_>>(), [(0, "because")]);
        assert_eq!(reference.footnote("og", "AP", "cri"), Some("of an older one"));
        assert_eq!(reference.footnote("og", "AP", "ari"), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = FILE.replace("87.9 (0.1)", "87.9 0.1");
        assert_eq!(Reference::parse(&wrong).unwrap_err(), "Table 1, AP: expected `mean (s.e.)`, found `87.9 0.1`");
        let short = FILE.replace(", \"\"]", "]");
        assert_eq!(Reference::parse(&short).unwrap_err(), "Table 1, AP: 1 entries for 2 data sets");
        let nobody = FILE.replace("AP = \"of an", "PA = \"of an");
        assert_eq!(Reference::parse(&nobody).unwrap_err(), "Table 1: a footnote for `PA`, which has no row");
        assert!(Reference::parse("nam = 1").unwrap_err().contains("nam"));
    }

    /// Reference: scipy.stats.ttest_ind_from_stats(1, 0.5 * 10**.5, 10, 2.5, 0.3 * 10**.5, 10, equal_var=False).
    #[test]
    fn the_test_agrees_with_scipy() {
        let p = welch(Entry { mean: 1.0, se: 0.5 }, 10, Entry { mean: 2.5, se: 0.3 }, 10).unwrap();
        assert!((p - 0.021_453_909_272_332_483).abs() < 1e-12, "{p}");
        assert_eq!(welch(Entry { mean: 1.0, se: 0.5 }, 1, Entry { mean: 2.5, se: 0.3 }, 10), None);
    }
}
