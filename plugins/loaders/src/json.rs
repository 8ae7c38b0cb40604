//! The loader `json`: an object per line.

use std::io::{BufRead, BufReader};
use std::path::Path;

use arrow_array::RecordBatchIterator;
use arrow_json::ReaderBuilder;
use arrow_json::reader::infer_json_schema_from_iterator;
use arrow_schema::{ArrowError, Schema};
use compflow_api::{Batches, Component, Description, Error, Flags, LoadRequest, Loader, Result, Services, Stream};
use schemars::JsonSchema;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::select::{Selection, Where, check_where};
use crate::source::{decode, decoded, most_at_once, path, rows_of_batch};
use crate::text_file::{Measured, Text, open_text};

/// How many times as much memory a value takes as its text: `1,` is two bytes.
const VALUE: usize = 4;
/// Letters of an error that may quote all of a file.
const MOST_LETTERS: usize = 500;

/// Reads JSON lines, an object for every example, plain or compressed with gzip or Zstandard; or one list of such objects.
///
/// Embeddings are lists of numbers; true sets are lists of whole numbers or texts, or single ones. The file is read twice,
/// once to see what its columns hold: for large data, Parquet is many times faster.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// Only the rows in which these columns have these values, as in `where = { split = "test", trial = 3 }`. A value
    /// is a string, a number, true or false.
    r#where: Where,
}

pub(crate) struct Json(Params);
compflow_api::register!(loader Json);

impl Component for Json {
    const NAME: &'static str = "json";
    const SUMMARY: &'static str = "JSON lines, plain or compressed";
    const FLAGS: Flags = Flags::NEEDS_PATH;
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        check_where(&params.r#where)?;
        Ok(Self(params))
    }
}

impl Loader for Json {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Stream> {
        let path = path(request)?;
        let Found { schema, batch, .. } = look(path, services)?;
        let selection = Selection::new(&schema, request, &self.0.r#where, path)?;
        let emitted = selection.schema();
        let Begun { text, is_list, .. } = begun(path)?;
        let reader = ReaderBuilder::new(schema.project(&selection.read())?.into())
            .with_batch_size(batch)
            .with_coerce_primitive(true)
            .with_flatten(is_list)
            .build(text)?;
        let selected = decoded(path.to_owned(), reader, move |batch| selection.apply(batch));
        let batches: Batches = Box::new(RecordBatchIterator::new(selected, emitted));
        Ok(batches.into())
    }

    fn describe(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Option<Description>> {
        let path = path(request)?;
        let Found { schema, rows, .. } = look(path, services)?;
        Selection::new(&schema, request, &self.0.r#where, path)?;
        let rows = Some(rows as u64).filter(|_| self.0.r#where.is_empty());
        Description::from_schema(&schema, rows, None).map(Some)
    }
}

/// The text of a file from its first object on, and whether it is one list.
struct Begun {
    text: Text,
    is_list: bool,
    /// The line on which it begins.
    line: u64,
}

fn begun(path: &Path) -> Result<Begun> {
    let mut text = open_text(path)?;
    let mut line = 1;
    loop {
        let filled = text.fill_buf()?;
        let blank = filled.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        line += filled[..blank].iter().filter(|byte| **byte == b'\n').count() as u64;
        if let (None, false) = (filled.get(blank), filled.is_empty()) {
            text.consume(blank);
            continue;
        }
        let is_list = filled.get(blank) == Some(&b'[');
        text.consume(blank);
        return Ok(Begun { text, is_list, line });
    }
}

/// What the columns hold, how many rows there are, and how many of them make a batch.
struct Found {
    schema: Schema,
    rows: usize,
    batch: usize,
}

fn look(path: &Path, services: &Services<'_>) -> Result<Found> {
    let Begun { text, is_list, line } = begun(path)?;
    let mut text = Measured::new(text, line, is_list, most_at_once(services.memory) / VALUE, services);
    let found = decode(|| if is_list { look_into_list(&mut text) } else { look_into_lines(&mut text) });
    services.check_cancelled()?;
    let (schema, rows) = found.map_err(|text| {
        let cut = text
            .char_indices()
            .nth(MOST_LETTERS)
            .map_or_else(|| text.clone(), |(at, _)| format!("{}…", &text[..at]));
        let text = format!("{} cannot be read as JSON: {cut}", path.display());
        Error::data(text)
            .help("it must be an object on every line, such as {\"embedding\": [0.1, 0.2], \"labels\": [3]}")
    })?;
    // A list has no lines to measure.
    let longest = if is_list { 0 } else { text.longest };
    Ok(Found { schema, rows, batch: rows_of_batch(text.bytes, rows, longest, services.memory) })
}

fn look_into_list(text: impl BufRead) -> Result<(Schema, usize), ArrowError> {
    let rows: Vec<Row> =
        serde_json::from_reader(BufReader::new(text)).map_err(|error| ArrowError::JsonError(error.to_string()))?;
    let schema = infer_json_schema_from_iterator(rows.iter().map(|row| Ok::<_, ArrowError>(&row.0)))?;
    Ok((schema, rows.len()))
}

fn look_into_lines(mut text: impl BufRead) -> Result<(Schema, usize), ArrowError> {
    let (mut line, mut rows) = (String::new(), 0);
    let values = std::iter::from_fn(|| {
        loop {
            line.clear();
            match text.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) if line.trim().is_empty() => {}
                Ok(_) => {
                    rows += 1;
                    let row = serde_json::from_str::<Row>(line.trim());
                    let about = |error| ArrowError::JsonError(format!("object {rows}: {error}"));
                    return Some(row.map(|row| row.0).map_err(about));
                }
                Err(error) => return Some(Err(ArrowError::JsonError(error.to_string()))),
            }
        }
    });
    let schema = infer_json_schema_from_iterator(values)?;
    Ok((schema, rows))
}

/// An object in which no key is twice: of two values, only one would be read.
struct Row(Value);

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Row;

            fn expecting(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                text.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Row, A::Error> {
                let mut row = Map::new();
                while let Some(key) = entries.next_key::<String>()? {
                    if row.contains_key(&key) {
                        return Err(A::Error::custom(format!("the key `{key}` is there twice")));
                    }
                    row.insert(key, entries.next_value()?);
                }
                Ok(Row(Value::Object(row)))
            }
        }
        from.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};

    use super::*;
    use crate::testing::{concat, described, load, load_with, refusal};

    const LINES: &str = r#"{"e": [1, 2.5], "who": ["a", "b"], "fold": 0}
{"who": [], "e": [3, 4], "fold": 1}
"#;

    #[test]
    fn lines_and_lists_of_objects_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let list = format!("\n[{}\n]", LINES.trim().replace("}\n", "},\n  "));
        for text in [LINES, &list] {
            std::fs::write(&path, text).unwrap();
            let columns = [("embedding", "e"), ("truth", "who"), ("trial", "fold")];
            let request = LoadRequest { path: Some(&path), columns: &columns };
            let found = concat(&load::<Json>("{}", &request, 1).unwrap());
            let numbers = found["embedding"].as_list::<i32>();
            assert_eq!(numbers.values().as_primitive::<Float64Type>().values()[..], [1.0, 2.5, 3.0, 4.0]);
            assert_eq!(found["truth"].as_list::<i32>().value(0).len(), 2);
            assert_eq!(found["trial"].as_primitive::<Int64Type>().values()[..], [0, 1]);
            let one = concat(&load::<Json>(r#"{"where": {"fold": 1}}"#, &request, 1).unwrap());
            assert_eq!(one.num_rows(), 1);
            let described = described::<Json>("{}", &request).unwrap();
            assert_eq!((described.rows, described.names().unwrap().len()), (Some(2), 3));
        }
    }

    #[test]
    fn a_line_or_a_list_that_takes_more_than_the_memory_allows_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let services = Services { memory: 1 << 20, ..Services::none() };
        let request = LoadRequest { path: Some(&path), columns: &[("embedding", "e")] };
        let long = format!("{{\"e\": [1{}]}}", ", 1".repeat(1 << 17));
        for (text, what) in
            [(format!("\n\n{{\"e\": [1]}}\n{long}\n"), "line 4"), (format!("[{long}]"), "a list of objects")]
        {
            std::fs::write(&path, &text).unwrap();
            let refused = load_with::<Json>("{}", &request, &services).unwrap_err().to_string();
            assert!(refused.contains(&format!("{what} takes more than 32768 bytes")), "{refused}");
            assert!(load::<Json>("{}", &request, 1).is_ok());
        }
    }

    #[test]
    fn a_key_that_an_object_has_twice_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let request = LoadRequest { path: Some(&path), columns: &[("embedding", "e")] };
        let twice = r#"{"e": [1], "e": [2]}"#;
        for (text, place) in
            [(format!("{{\"e\": [0]}}\n\n{twice}\n"), "object 2: "), (format!("[{{\"e\": [0]}},\n{twice}]"), "")]
        {
            std::fs::write(&path, &text).unwrap();
            let refused = refusal::<Json>("{}", &request);
            assert!(refused.contains(&format!("{place}the key `e` is there twice")), "{refused}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused_with_what_would_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let request = LoadRequest { path: Some(&path), columns: &[("embedding", "e")] };
        for text in ["a,b\n", "{\"e\": [1}\n", "[1, 2"] {
            std::fs::write(&path, text).unwrap();
            let refused = refusal::<Json>("{}", &request);
            assert!(
                refused.contains("t.jsonl cannot be read as JSON: ") && refused.contains("on every line"),
                "{refused}"
            );
        }
    }
}
