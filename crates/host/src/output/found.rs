//! What a run prints: its scores, what was found where there is nothing to score with, and what methods settled themselves.

use std::collections::HashMap;

use compflow_api::Unit;
use compflow_engine::results::{Found, FoundCluster, Settled, distinct, score_text};
use serde_json::json;

use super::summary::SummaryTable;
use super::{Grid, Output, Records, Value};

/// So many clusters are named.
const LARGEST: usize = 8;
/// So many settled parameters are listed below a table.
const NOTED: usize = 12;

/// Scores, what was found without them, and notes.
pub(crate) struct RunTable<'a> {
    pub(crate) scores: SummaryTable<'a>,
    /// Cells of data that has no scores that compare it with a truth.
    pub(crate) found: &'a [Found],
    pub(crate) settled: &'a [Settled],
}

impl Output for RunTable<'_> {
    /// The scores; what was found if there are none.
    fn records(&self) -> Records {
        if self.scores.entries.is_empty() { records(self.found) } else { self.scores.records() }
    }

    fn grids(&self) -> Vec<Grid> {
        let mut grids = self.scores.grids();
        grids.extend(grids_of(self.found));
        grids
    }

    fn notes(&self) -> Vec<String> {
        notes(self.settled)
    }

    fn latex(&self) -> String {
        let found = super::joined(&grids_of(self.found), super::latex::render);
        self.scores.latex() + &found
    }
}

/// A record for every cell.
fn records(found: &[Found]) -> Records {
    let columns = [
        "data",
        "trial",
        "clusterer",
        "n",
        "singletons",
        "unions",
        "unassigned",
        "largest",
        "median",
        "smallest",
        "objective",
        "converged",
        "stability",
        "clusters",
    ];
    let row = |found: &Found| {
        let size = |cluster: Option<&FoundCluster>| cluster.map_or(0, |cluster| cluster.size as usize);
        let cluster = |cluster: &FoundCluster| json!({ "members": cluster.members, "size": cluster.size });
        vec![
            Value::from(found.data.as_str()),
            Value::Count(found.trial as usize),
            Value::from(found.clusterer.as_str()),
            Value::Count(found.n as usize),
            Value::Count(found.singletons as usize),
            Value::Count(found.unions as usize),
            Value::Count(found.unassigned as usize),
            Value::Count(size(found.clusters.first())),
            Value::Count(found.median_size() as usize),
            Value::Count(size(found.clusters.last())),
            Value::Number(found.objective),
            Value::Flag(found.converged),
            Value::Number(found.stability),
            Value::Json(found.clusters.iter().take(LARGEST).map(cluster).collect()),
        ]
    };
    Records { columns: columns.map(str::to_owned).to_vec(), rows: found.iter().map(row).collect() }
}

/// Two grids per data set: a row of numbers for every method, and its largest clusters.
fn grids_of(found: &[Found]) -> Vec<Grid> {
    let mut grids = Vec::new();
    for data in distinct(found.iter().map(|found| found.data.as_str())) {
        let here: Vec<&Found> = found.iter().filter(|found| found.data == data).collect();
        grids.extend(numbers(data, &here));
        grids.push(largest(data, &here));
    }
    grids
}

/// A column: its name, what a cell has in it, and whether that is there in all cells.
type Measure = (&'static str, fn(&Found) -> Option<f64>, Unit);

const MEASURES: [Measure; 8] = [
    ("singletons", |found| Some(f64::from(found.singletons)), Unit::Count),
    ("unions", |found| Some(f64::from(found.unions)), Unit::Count),
    ("largest", |found| Some(f64::from(found.clusters.first()?.size)), Unit::Count),
    ("median", |found| Some(f64::from(found.median_size())), Unit::Count),
    ("smallest", |found| Some(f64::from(found.clusters.last()?.size)), Unit::Count),
    ("unassigned", |found| (found.unassigned > 0).then(|| f64::from(found.unassigned)), Unit::Count),
    ("objective", |found| found.objective, Unit::Number),
    ("stable %", |found| found.stability, Unit::Share),
];

fn numbers(data: &str, here: &[&Found]) -> Option<Grid> {
    let clusterers = distinct(here.iter().map(|found| found.clusterer.as_str()));
    let trials = here.iter().map(|found| found.trial).collect::<std::collections::BTreeSet<_>>().len();
    let n = here.first()?.n;
    let examples = match here.iter().all(|found| found.n == n) {
        true => format!("{} examples", grouped(n)),
        false => "the examples".to_owned(),
    };
    // What no method has is no column.
    let measures: Vec<&Measure> =
        MEASURES.iter().filter(|(_, of, _)| here.iter().any(|found| of(found).is_some())).collect();
    let mut cells: HashMap<&str, Vec<&Found>> = HashMap::new();
    here.iter().for_each(|found| cells.entry(&found.clusterer).or_default().push(found));
    let row = |clusterer: &str| -> Vec<String> {
        let cells = cells.get(clusterer).map_or(&[][..], Vec::as_slice);
        let text = |(_, of, unit): &Measure| {
            let values: Vec<f64> = cells.iter().filter_map(|found| of(found)).collect();
            if values.is_empty() {
                return "–".to_owned();
            }
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            match unit {
                Unit::Count if trials == 1 => grouped(mean as u32),
                _ => score_text(*unit, mean),
            }
        };
        std::iter::once(clusterer.to_owned()).chain(measures.iter().map(|measure| text(measure))).collect()
    };
    let over = if trials > 1 { format!(", means over {trials} trials") } else { String::new() };
    Some(Grid {
        title: format!("{data}: what was found in {examples}, sizes in examples{over}"),
        header: std::iter::once("clusterer")
            .chain(measures.iter().map(|(name, ..)| *name))
            .map(str::to_owned)
            .collect(),
        rows: clusterers.into_iter().map(row).collect(),
        numbers: true,
    })
}

fn largest(data: &str, here: &[&Found]) -> Grid {
    let first = here.iter().map(|found| found.trial).min().unwrap_or(0);
    let several = here.iter().any(|found| found.trial != first);
    let row = |found: &&Found| {
        let mut texts: Vec<String> =
            found.clusters.iter().take(LARGEST).map(|cluster| cluster_text(cluster, found.n)).collect();
        let more = found.clusters.len().saturating_sub(LARGEST);
        if more > 0 {
            texts.push(format!("{} more", grouped(more as u32)));
        }
        vec![found.clusterer.clone(), texts.join(", ")]
    };
    let of = if several { format!(" of trial {first}") } else { String::new() };
    Grid {
        title: format!("{data}: the largest clusters{of}; A∪B is the union of A and B"),
        header: ["clusterer", "cluster (examples, share)"].map(str::to_owned).to_vec(),
        rows: here.iter().filter(|found| found.trial == first).map(row).collect(),
        numbers: false,
    }
}

/// `0∪2 (31, 10 %)`.
fn cluster_text(cluster: &FoundCluster, n: u32) -> String {
    format!("{} ({},\u{a0}{})", cluster.members.join("∪"), grouped(cluster.size), share(cluster.size, n))
}

/// A share in per cent: whole, but what is there is never nothing.
pub(crate) fn share(part: u32, of: u32) -> String {
    let percent = 100.0 * f64::from(part) / f64::from(of.max(1));
    if part > 0 && percent < 1.0 { "< 1\u{a0}%".to_owned() } else { format!("{percent:.0}\u{a0}%") }
}

/// A count in groups of three digits.
pub(crate) fn grouped(count: u32) -> String {
    let digits = count.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let at_group = |at: usize| at > 0 && (digits.len() - at).is_multiple_of(3);
    let each = digits
        .chars()
        .enumerate()
        .flat_map(|(at, digit)| at_group(at).then_some('\u{202f}').into_iter().chain([digit]));
    each.collect()
}

/// Parameters that nobody gave, a line per clusterer and data set.
fn notes(settled: &[Settled]) -> Vec<String> {
    let several = distinct(settled.iter().map(|one| one.data.as_str())).len() > 1;
    let mut lines: Vec<(&str, &str, Vec<String>)> = Vec::new();
    let mut known: HashMap<(&str, &str), usize> = HashMap::new();
    for Settled { data, clusterer, parameter, text } in settled {
        let value = format!("{parameter} = {text}");
        let at = *known.entry((data, clusterer)).or_insert(lines.len());
        match lines.get_mut(at) {
            Some((.., values)) => values.push(value),
            None => lines.push((data, clusterer, vec![value])),
        }
    }
    let all = lines.len();
    let line = |(data, clusterer, values): (&str, &str, Vec<String>)| {
        let on = if several { format!(" on {data}") } else { String::new() };
        format!("settled: {clusterer}{on}: {}", values.join(", "))
    };
    let mut notes: Vec<String> = lines.into_iter().take(NOTED).map(line).collect();
    if all > NOTED {
        notes.push(format!("settled: {} more, in the column `resolved` of runs.parquet", all - NOTED));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;

    fn found(trial: u32, clusterer: &str) -> Found {
        let cluster = |members: &[&str], size| FoundCluster {
            members: members.iter().map(|&name| name.to_owned()).collect(),
            size,
        };
        Found {
            data: "mine".to_owned(),
            trial,
            clusterer: clusterer.to_owned(),
            n: 12_345,
            singletons: 2,
            unions: 1,
            unassigned: 0,
            objective: Some(1.5),
            converged: true,
            stability: None,
            clusters: vec![cluster(&["ann"], 12_000), cluster(&["ann", "ben"], 341), cluster(&["ben"], 4)],
        }
    }

    fn render(format: Format, cells: &[Found], settled: &[Settled]) -> String {
        let scores = SummaryTable { entries: &[], heading: &str::to_owned };
        format.render(&RunTable { scores, found: cells, settled })
    }

    #[test]
    fn counts_and_shares_are_readable() {
        assert_eq!(
            [grouped(999), grouped(9999), grouped(12_345), grouped(1_234_567)]
                .map(|text| text.replace('\u{202f}', " ")),
            ["999", "9999", "12 345", "1 234 567"]
        );
        assert_eq!(
            [share(1, 1000), share(0, 10), share(5, 10), share(1, 0)],
            ["< 1\u{a0}%", "0\u{a0}%", "50\u{a0}%", "100\u{a0}%"]
        );
    }

    #[test]
    fn without_scores_every_format_says_what_was_found() {
        let cells = [found(0, "CKM")];
        let text = render(Format::Table, &cells, &[]).replace(['\u{202f}', '\u{a0}'], " ");
        assert!(text.contains("mine: what was found in 12 345 examples"), "{text}");
        assert!(text.contains("ann (12 000, 97 %), ann∪ben (341, 3 %), ben (4, < 1 %)"), "{text}");
        assert!(!text.contains("stability") && !text.contains("unassigned"), "no method has them: {text}");
        let json: serde_json::Value = serde_json::from_str(&render(Format::Json, &cells, &[])).unwrap();
        assert_eq!(json[0]["clusters"][1], json!({ "members": ["ann", "ben"], "size": 341 }));
        assert_eq!((&json[0]["unions"], &json[0]["stability"]), (&json!(1), &serde_json::Value::Null));
        let csv = render(Format::Csv, &cells, &[]);
        assert!(
            csv.lines()
                .nth(1)
                .is_some_and(|line| line.starts_with("mine,0,CKM,12345,2,1,0,12000,341,4,1.5,true,,")),
            "{csv}"
        );
        assert!(render(Format::Md, &cells, &[]).contains("| CKM"), "a row of Markdown");
        assert!(render(Format::Latex, &cells, &[]).contains("CKM &"), "a row of LaTeX");
    }

    #[test]
    fn trials_are_averaged_and_the_first_shown() {
        let mut second = found(1, "CKM");
        second.singletons = 3;
        let text = render(Format::Table, &[found(0, "CKM"), second], &[]);
        assert!(
            text.contains("means over 2 trials") && text.contains("the largest clusters of trial 0"),
            "{text}"
        );
        assert!(text.contains(" 2.5 "), "{text}");
    }

    #[test]
    fn what_was_settled_is_noted_once_a_method() {
        let settled = |clusterer: &str, parameter: &str| Settled {
            data: "mine".to_owned(),
            clusterer: clusterer.to_owned(),
            parameter: parameter.to_owned(),
            text: "3".to_owned(),
        };
        let text = render(Format::Table, &[], &[settled("A", "k"), settled("A", "threshold"), settled("B", "k")]);
        assert_eq!(text, "settled: A: k = 3, threshold = 3\nsettled: B: k = 3\n");
        let many: Vec<Settled> = (0..30).map(|at| settled(&at.to_string(), "k")).collect();
        assert!(
            render(Format::Table, &[], &many)
                .ends_with("settled: 18 more, in the column `resolved` of runs.parquet\n")
        );
    }
}
