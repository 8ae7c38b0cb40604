//! Pipelines, options, cells, records and descriptions that anybody may have written: for `fuzz/`, and for the tests, which
//! replay what it has found.

use std::path::Path;

use crate::error::Error;
use crate::pipeline::{Options, Pipeline, Problem, Source, Variables, grid, selection};
use crate::plugin::{Answer, Answered, Description, Kept};
use crate::results::RunRecord;
use crate::run::cache;

/// What options are laid over.
const PIPELINE: &str = r#"
name = "small"
space = { normalize = "l2" }
composer = { use = "max" }
[[data]]
name = "points"
loader = "parquet"
path = "points.parquet"
columns = { embedding = ["a", "b"] }
[[clusterer]]
use = "ckm"
params = { k = { grid = [3, 4] }, init = { use = "kmeans", params = { k = { select = [2, 3] } } } }
[[evaluator]]
use = "cri"
"#;

/// Reads the text of a pipeline, with grids and selections.
pub fn pipeline(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        typed(text, Vec::new());
    }
}

/// Lays options over a pipeline, one per line.
pub fn set(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        typed(PIPELINE, text.lines().map(str::to_owned).collect());
    }
}

fn typed(text: &str, set: Vec<String>) {
    let options = Options { set, ..Options::default() };
    let pipeline = match Pipeline::from_text("pipeline.toml", text.to_owned(), Path::new("."), &options) {
        Ok(pipeline) => pipeline,
        Err(Error::Problems { problems, sources }) => return can_be_shown(&problems, &sources),
        Err(other) => panic!("{other}"),
    };
    let mut problems = pipeline.problems().to_vec();
    for clusterer in &pipeline.contents.clusterers {
        for point in grid::expand(&clusterer.component.params, &mut problems).iter().take(10) {
            selection::options(&point.params, &mut problems);
        }
    }
    let json = pipeline.document.root.to_json(&mut problems);
    can_be_shown(&problems, &pipeline.document.sources);
    if problems.is_empty() {
        // As a worker gets it.
        let json = serde_json::from_str(&json.to_string()).expect("what was just written");
        let again = Pipeline::from_json(&json, Path::new("."), &Options::default()).expect("the same");
        assert_eq!(again.key(), pipeline.key(), "{json}");
    }
}

/// The places of problems are in their texts.
fn can_be_shown(problems: &[Problem], sources: &[Source]) {
    for problem in problems {
        if let Some(place) = &problem.origin {
            assert!(sources[place.source].text.get(place.span.clone()).is_some(), "{problem:?}");
        }
    }
}

/// Reads a file of finished cells: as it is, and as if its checksum were right.
pub fn cell(bytes: &[u8]) {
    cache::read_anything(bytes);
}

/// Reads a record of a run, and writes and reads again what can be read.
pub fn record(bytes: &[u8]) {
    let path = Path::new("run.json");
    let _ = RunRecord::from_json(bytes, path);
    let Ok(record) = serde_json::from_slice::<RunRecord>(bytes) else { return };
    let json = record.to_json().expect("what was just read");
    let again = RunRecord::from_json(json.as_bytes(), path).expect("what was just written");
    Pipeline::recorded(&again.pipeline, &again.name, &again.folder, Variables::default());
}

/// Reads what a scan for libraries has kept, and what its helper says.
pub fn description(bytes: &[u8]) {
    let _ = Kept::from_json(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = (serde_json::from_str::<Answer>(text), serde_json::from_str::<Answered>(text));
    let Ok(found) = serde_json::from_str::<Description>(text) else { return };
    let json = serde_json::to_string(&found).expect("what was just read");
    assert_eq!(serde_json::from_str::<Description>(&json).expect("what was just written"), found);
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;
    use super::*;

    #[test]
    fn pipelines_that_fuzzing_has_found_are_read_or_refused() {
        replay("pipeline", pipeline);
    }

    #[test]
    fn options_that_fuzzing_has_found_are_laid_over_or_refused() {
        replay("set", set);
    }

    #[test]
    fn cells_that_fuzzing_has_found_are_read_or_refused() {
        replay("cell", cell);
    }

    #[test]
    fn records_that_fuzzing_has_found_are_read_or_refused() {
        replay("record", record);
    }

    #[test]
    fn descriptions_that_fuzzing_has_found_are_read_or_refused() {
        replay("description", description);
    }
}
