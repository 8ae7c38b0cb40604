//! The points about parameters: the schema, the defaults, and what must be refused.

use compflow_api::{Code, Result};
use serde_json::{Map, Value, json};

use crate::conformance::report::{Verdict, refused, require};
use crate::conformance::subject::Subject;

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// A schema, or what it refers to.
fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let target =
        schema.get("$ref").and_then(Value::as_str).and_then(|path| root.pointer(path.trim_start_matches('#')));
    target.unwrap_or(schema)
}

/// Every parameter is described, and has a default unless it must be given.
///
/// # Errors
/// Naming the first that is not.
pub(crate) fn describes_all(schema: &Value) -> Result<()> {
    require(schema.get("type") == Some(&json!("object")), || "its schema is not that of an object".to_owned())?;
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for (name, property) in properties(schema) {
        let described = resolve(schema, property).get("description").or(property.get("description"));
        require(described.is_some_and(Value::is_string), || format!("`{name}` is not described"))?;
        let has_default = property.get("default").is_some() || required.contains(&json!(name));
        require(has_default, || format!("`{name}` need not be given and has no default"))?;
    }
    Ok(())
}

/// Some value that a parameter could have, if one can be guessed.
pub(crate) fn some_value(schema: &Value) -> Option<Value> {
    if let Some(example) = schema.get("examples").and_then(Value::as_array).and_then(|examples| examples.first()) {
        return Some(example.clone());
    }
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|values| values.first()) {
        return Some(first.clone());
    }
    let least = schema.get("minimum").and_then(Value::as_f64);
    match schema.get("type").and_then(Value::as_str)? {
        "integer" => Some(json!(least.map_or(2, |least| (least as i64).max(2)))),
        "number" => Some(json!(least.unwrap_or(0.5))),
        "boolean" => Some(json!(false)),
        _ => None,
    }
}

/// It can be made from what must be given alone, and with every default written out.
///
/// # Errors
/// Its own.
pub(crate) fn defaults(subject: &Subject) -> Result<Verdict> {
    subject.instance(&subject.params)?.close()?;
    let all = subject.written_out();
    let made = subject.instance(&all);
    made.map_err(|error| error.context(format!("with {}", Value::Object(all))))?.close()?;
    Ok(Verdict::Pass)
}

/// Values that a parameter cannot have, and why.
fn bad_values(schema: &Value) -> Vec<(Value, &'static str)> {
    let mut bad = Vec::new();
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |name: &str| types.contains(&name);
    if !types.is_empty() && !is("string") {
        bad.push((json!("no such value"), "a text"));
    }
    if !types.is_empty() && !is("boolean") {
        bad.push((json!(true), "a truth value"));
    }
    if !types.is_empty() && !is("array") {
        bad.push((json!([[]]), "a list"));
    }
    if is("integer") && !is("number") {
        bad.push((json!(2.5), "not a whole number"));
    }
    if schema.get("enum").is_some() {
        bad.push((json!("no such value"), "not one of the choices"));
    }
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let number = |value: f64| if is("integer") && !is("number") { json!(value as i64) } else { json!(value) };
    if let Some(bound) = bound("minimum") {
        bad.push((number(bound - bound.abs().max(1.0)), "below its minimum"));
    }
    if let Some(bound) = bound("exclusiveMinimum") {
        bad.push((number(bound), "at its exclusive minimum"));
    }
    if let Some(bound) = bound("maximum") {
        bad.push((number(bound + bound.abs().max(1.0)), "above its maximum"));
    }
    if let Some(bound) = bound("exclusiveMaximum") {
        bad.push((number(bound), "at its exclusive maximum"));
    }
    bad
}

/// What is no parameter, of the wrong type or out of range is refused, with the code and the name that say so.
///
/// # Errors
/// Naming the first that is accepted, or refused without its name.
pub(crate) fn refuses_bad(subject: &Subject) -> Result<Verdict> {
    let refuses = |params: &Map<String, Value>, name: &str, why: &str| -> Result<()> {
        let what = format!("`{name}` = {}, which is {why}", params[name]);
        refused(subject.instance(params), &what, Code::Parameter, name).map(|_| ())
    };
    let mut params = subject.params.clone();
    params.insert("no_such_parameter".to_owned(), json!(1));
    refuses(&params, "no_such_parameter", "no parameter")?;
    for (name, property) in properties(&subject.schema) {
        for (value, why) in bad_values(resolve(&subject.schema, property)) {
            let mut params = subject.params.clone();
            params.insert(name.clone(), value);
            refuses(&params, name, why)?;
        }
    }
    let required = subject.schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        let mut params = subject.params.clone();
        params.remove(name);
        let what = format!("to be made without `{name}`, which must be given");
        refused(subject.instance(&params), &what, Code::Parameter, name)?;
    }
    Ok(Verdict::Pass)
}

/// An instance has at least the flags that its component says all have, and asks for columns by names, each once.
///
/// # Errors
/// Naming what is not so; among others, that a flag is not known.
pub(crate) fn says_what_it_needs(subject: &Subject) -> Result<Verdict> {
    let instance = subject.instance(&subject.params)?;
    let (flags, columns) = (instance.flags()?, instance.columns()?);
    require(flags.contains(subject.component.flags()), || {
        "an instance lacks a flag that the component says all have".to_owned()
    })?;
    for (at, column) in columns.iter().enumerate() {
        require(!column.trim().is_empty(), || "asks for a column without a name".to_owned())?;
        require(!columns[..at].contains(column), || format!("asks for the column `{column}` twice"))?;
    }
    instance.close()?;
    Ok(Verdict::Pass)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_has_a_value_beyond_it() {
        let schema = json!({ "type": "integer", "minimum": 1, "maximum": 9 });
        let values: Vec<Value> = bad_values(&schema).into_iter().map(|(value, _)| value).collect();
        assert_eq!(values, [json!("no such value"), json!(true), json!([[]]), json!(2.5), json!(0), json!(18)]);
        let schema = json!({ "type": "number", "minimum": 0.5, "exclusiveMaximum": 1.0 });
        let values: Vec<Value> = bad_values(&schema).into_iter().map(|(value, _)| value).collect();
        assert!(values.ends_with(&[json!(-0.5), json!(1.0)]), "{values:?}");
    }

    #[test]
    fn a_schema_must_describe_and_default() {
        let with = |property: Value| json!({ "type": "object", "properties": { "k": property } });
        assert!(describes_all(&with(json!({ "description": "Many.", "default": null }))).is_ok());
        assert!(describes_all(&with(json!({ "description": "Many." }))).is_err());
        assert!(describes_all(&with(json!({ "default": 1 }))).is_err());
        assert!(describes_all(&json!({ "type": "array" })).is_err());
    }
}
