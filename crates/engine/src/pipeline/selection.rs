//! Selections: a parameter written `{ select = [2, 3, 4] }` or `{ select = { from = 2, to = 10 } }` is settled for every
//! trial by how stable the clusterings are that its values lead to.
//!
//! `"auto"` is short for a selection where the parameter's schema has the keyword `x-select`, which holds what stands
//! behind `select`. Components inside of components, tables with `use` and `params`, are looked up by their own schema.

use std::collections::HashSet;

use serde_json::Value as Json;

use super::document::{Key, Node, Table, Value};
use super::grid::{Point, replace, too_large, value_text};
use crate::causes::Cause;
use crate::problem::Problem;

/// In a schema: what a parameter that is `"auto"` is selected from.
pub const KEYWORD: &str = "x-select";

/// More values than this are more likely a slip than a wish.
const MOST: usize = 10_000;

/// All combinations of the values of the selections in a parameter table, the last varying fastest; one point with the
/// parameters as they are if there is none.
pub(crate) fn options(params: &Node, problems: &mut Vec<Problem>) -> Vec<Point> {
    let mut selections = Vec::new();
    let before = problems.len();
    find(params, &mut Vec::new(), &mut selections, problems);
    let combinations =
        selections.iter().try_fold(1usize, |product, (_, values)| product.checked_mul(values.len()));
    match combinations {
        Some(combinations) if combinations <= MOST => problems.extend(too_large(params, combinations as f64)),
        _ => {
            let text = format!("the combinations to select from are more than {MOST}");
            problems.push(Problem::new(Cause::Grid, &params.origin, text));
        }
    }
    if problems.len() > before {
        return Vec::new();
    }
    let mut points = vec![Point { params: params.clone(), choices: Vec::new() }];
    for (path, values) in selections {
        points = points.iter().flat_map(|point| values.iter().map(|value| chosen(point, &path, value))).collect();
    }
    points
}

fn chosen(point: &Point, path: &[String], value: &Node) -> Point {
    let mut point = point.clone();
    replace(&mut point.params, path, value);
    point.choices.push((path.join("."), value_text(value)));
    point
}

fn find(
    node: &Node,
    path: &mut Vec<String>,
    selections: &mut Vec<(Vec<String>, Vec<Node>)>,
    problems: &mut Vec<Problem>,
) {
    let Value::Table(table) = &node.value else { return };
    for (key, inner) in &table.0 {
        path.push(key.name.clone());
        match selected_from(inner) {
            None => find(inner, path, selections, problems),
            Some(from) => match values(from) {
                Ok(values) => selections.push((path.clone(), values)),
                Err(problem) => problems.push(problem),
            },
        }
        path.pop();
    }
}

/// What stands behind `select` in a table with that key alone.
fn selected_from(node: &Node) -> Option<&Node> {
    match &node.value {
        Value::Table(table) if table.0.len() == 1 => table.get("select"),
        _ => None,
    }
}

/// The values to select from: a list of numbers, or all whole numbers of a range.
fn values(from: &Node) -> Result<Vec<Node>, Problem> {
    const FORMS: &str = "write `{ select = [2, 3, 5] }` or `{ select = { from = 2, to = 10 } }`";
    let refuse = |node: &Node, text: String| Err(Problem::new(Cause::Grid, &node.origin, text).help(FORMS));
    match &from.value {
        Value::Array(values) if values.len() > MOST => {
            refuse(from, format!("`select` has {} values, more than {MOST}", values.len()))
        }
        Value::Array(values) if values.len() >= 2 => {
            let mut seen = HashSet::new();
            for value in values {
                if !matches!(value.value, Value::Integer(_) | Value::Float(_)) {
                    return refuse(value, format!("`select` takes numbers, found {}", value.value.kind()));
                }
                if !seen.insert(value_text(value)) {
                    return refuse(value, "this value is there twice".to_owned());
                }
            }
            Ok(values.clone())
        }
        Value::Array(_) => refuse(from, "`select` must be a list of at least two values".to_owned()),
        Value::Table(range) => {
            if let Some((key, _)) = range.0.iter().find(|(key, _)| !["from", "to"].contains(&key.name.as_str())) {
                let problem =
                    Problem::new(Cause::Grid, &key.origin, format!("`{}` is not a key of `select`", key.name));
                return Err(problem.suggest(&key.name, ["from", "to"]));
            }
            let whole = |name: &str| match range.get(name) {
                Some(Node { value: Value::Integer(number), .. }) => Ok(*number),
                Some(other) => {
                    let text = format!("`{name}` must be a whole number, found {}", other.value.kind());
                    Err(Problem::new(Cause::Grid, &other.origin, text).help(FORMS))
                }
                None => {
                    Err(Problem::new(Cause::Grid, &from.origin, format!("`select` needs `{name}`")).help(FORMS))
                }
            };
            let (low, high) = (whole("from")?, whole("to")?);
            if low >= high {
                return refuse(from, format!("`from` = {low} must be less than `to` = {high}"));
            }
            if high.abs_diff(low) >= MOST as u64 {
                return refuse(from, format!("`from` = {low} to `to` = {high} are more than {MOST} values"));
            }
            let node = |number| Node { value: Value::Integer(number), origin: from.origin.clone() };
            Ok((low..=high).map(node).collect())
        }
        other => refuse(from, format!("`select` must be a list or a range, found {}", other.kind())),
    }
}

/// Writes out what `"auto"` is short for. `schema_of` knows the schemas of clusterers by their names, `schema` is that of
/// the one whose parameters these are.
pub(crate) fn write_out_auto(params: &mut Node, schema: &Json, schema_of: &dyn Fn(&str) -> Option<Json>) {
    let Value::Table(table) = &mut params.value else { return };
    for (key, node) in &mut table.0 {
        let property = schema.get("properties").and_then(|properties| properties.get(&key.name));
        let from = property.and_then(|property| property.get(KEYWORD));
        if let (Value::Text(text), Some(from)) = (&node.value, from)
            && text == "auto"
        {
            let key = Key { name: "select".to_owned(), origin: node.origin.clone() };
            let from = at(Node::from_json(from), node);
            node.value = Value::Table(Table(vec![(key, from)]));
            continue;
        }
        let Value::Table(inner) = &mut node.value else { continue };
        let named = match inner.get("use").map(|node| &node.value) {
            Some(Value::Text(name)) => Some(name.clone()),
            Some(_) => None,
            None => {
                let default = property.and_then(|property| property.get("default")?.get("use")?.as_str());
                default.map(str::to_owned)
            }
        };
        if let Some(schema) = named.and_then(|name| schema_of(&name))
            && let Some((_, params)) = inner.0.iter_mut().find(|(key, _)| key.name == "params")
        {
            write_out_auto(params, &schema, schema_of);
        }
    }
}

/// A value as if it had been written at the place of another.
fn at(mut node: Node, place: &Node) -> Node {
    node.origin = place.origin.clone();
    match &mut node.value {
        Value::Array(items) => items.iter_mut().for_each(|item| item.origin = place.origin.clone()),
        Value::Table(table) => {
            for (key, value) in &mut table.0 {
                key.origin = place.origin.clone();
                value.origin = place.origin.clone();
            }
        }
        _ => {}
    }
    node
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pipeline::document::Document;
    use crate::problem::Source;

    fn parse(text: &str) -> Node {
        Document::parse(Source { name: String::new(), text: text.to_owned() }, &[], &mut Vec::new()).root
    }

    fn labels(params: &Node) -> Result<Vec<String>, String> {
        let mut problems = Vec::new();
        let points = options(params, &mut problems);
        match problems.into_iter().next() {
            Some(problem) => Err(problem.text),
            None => Ok(points.iter().map(|point| point.label("X")).collect()),
        }
    }

    #[test]
    fn selections_multiply_and_reach_into_tables() {
        let found = labels(&parse("a = { select = [1, 2.5] }\nb = { c = { select = { from = 3, to = 4 } } }"));
        assert_eq!(found.unwrap(), ["X a=1 b.c=3", "X a=1 b.c=4", "X a=2.5 b.c=3", "X a=2.5 b.c=4"]);
        assert_eq!(labels(&parse("a = 1")).unwrap(), ["X"]);
    }

    #[test]
    fn what_is_no_selection_is_refused() {
        for (text, refusal) in [
            ("[]", "`select` must be a list of at least two values"),
            ("[3]", "`select` must be a list of at least two values"),
            ("[3, 'four']", "`select` takes numbers, found a string"),
            ("[3, 4, 3]", "this value is there twice"),
            ("{ from = 5, to = 2 }", "`from` = 5 must be less than `to` = 2"),
            ("{ from = 2 }", "`select` needs `to`"),
            ("{ from = 2, to = 'ten' }", "`to` must be a whole number, found a string"),
            ("{ from = 2, to = 4, by = 2 }", "`by` is not a key of `select`"),
            ("{ from = 0, to = 100000 }", "`from` = 0 to `to` = 100000 are more than 10000 values"),
            ("7", "`select` must be a list or a range, found a whole number"),
        ] {
            assert_eq!(labels(&parse(&format!("k = {{ select = {text} }}"))).unwrap_err(), refusal);
        }
    }

    #[test]
    fn auto_is_written_out_by_the_schema_of_the_component_that_it_belongs_to() {
        let inner = json!({ "properties": { "k": { "x-select": [7, 8] } } });
        let outer = json!({ "properties": {
            "k": { "type": "integer", "x-select": { "from": 2, "to": 3 } },
            "threshold": { "type": "number" },
            "base": { "default": { "use": "inner", "params": {} } },
        } });
        let schema_of = |name: &str| (name == "inner").then(|| inner.clone());
        let written = |text: &str| {
            let mut params = parse(text);
            write_out_auto(&mut params, &outer, &schema_of);
            labels(&params).unwrap()
        };
        assert_eq!(written("k = 'auto'"), ["X k=2", "X k=3"]);
        assert_eq!(written("threshold = 'auto'"), ["X"]);
        assert_eq!(
            written("base = { use = 'inner', params = { k = 'auto' } }"),
            ["X base.params.k=7", "X base.params.k=8"]
        );
        assert_eq!(written("base = { params = { k = 'auto' } }"), ["X base.params.k=7", "X base.params.k=8"]);
        assert_eq!(written("base = { use = 'other', params = { k = 'auto' } }"), ["X"]);
    }
}
