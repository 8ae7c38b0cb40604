//! CSV, as RFC 4180 has it.

use super::{Records, Value};

/// A line for every record, after a line of names.
pub(crate) fn render(records: &Records) -> String {
    let names: Vec<String> = records.columns.iter().map(|name| field(name)).collect();
    let mut text = names.join(",") + "\n";
    for row in &records.rows {
        let fields: Vec<String> = row.iter().map(value).collect();
        text += &(fields.join(",") + "\n");
    }
    text
}

fn value(value: &Value) -> String {
    match value {
        Value::Text(text) => field(text),
        Value::Count(count) => count.to_string(),
        Value::Number(number) => number.map_or_else(String::new, |number| number.to_string()),
        Value::Flag(flag) => flag.to_string(),
        Value::Json(value) => field(&value.to_string()),
    }
}

/// A field, quoted if it has to be.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
