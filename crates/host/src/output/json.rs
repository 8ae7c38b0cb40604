//! JSON: a list of objects.

use serde_json::Value as Json;

use super::{Records, Value};

/// An object for every record.
pub(super) fn render(records: &Records) -> String {
    let object = |row: &Vec<Value>| -> Json {
        records.columns.iter().cloned().zip(row.iter().map(value)).collect::<serde_json::Map<_, _>>().into()
    };
    let objects: Vec<Json> = records.rows.iter().map(object).collect();
    format!("{:#}\n", Json::from(objects))
}

fn value(value: &Value) -> Json {
    match value {
        Value::Text(text) => text.as_str().into(),
        Value::Count(count) => (*count).into(),
        Value::Number(number) => (*number).into(),
        Value::Flag(flag) => (*flag).into(),
        Value::Json(value) => value.clone(),
    }
}
