//! Grids: a parameter written `{ grid = [a, b] }` stands for several clusterers, one per value.

use std::collections::HashSet;

use super::document::{Node, Value};
use crate::causes::Cause;
use crate::problem::Problem;

/// More points than this are more likely a slip than a wish.
const MOST: usize = 100_000;
/// Values that all points may have together, each with the whole table: a gigabyte.
const MOST_VALUES: f64 = 1e7;

/// One choice from every grid of a parameter table.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// The parameters with the choices made.
    pub(crate) params: Node,
    /// The choices: dotted name and value, in the order written. Empty if there are no grids.
    pub(crate) choices: Vec<(String, String)>,
}

impl Point {
    /// What to call a clusterer named `name` at this point.
    pub(crate) fn label(&self, name: &str) -> String {
        let choices = self.choices.iter().map(|(key, value)| format!(" {key}={value}"));
        choices.fold(name.to_owned(), |label, choice| label + &choice)
    }
}

/// All points of the grids in a parameter table, the last grid varying fastest.
pub(crate) fn expand(params: &Node, problems: &mut Vec<Problem>) -> Vec<Point> {
    let mut points = vec![Point { params: params.clone(), choices: Vec::new() }];
    let mut grids = Vec::new();
    let before = problems.len();
    find(params, &mut Vec::new(), &mut grids, problems);
    let count = grids.iter().fold(1.0, |product, (_, values)| product * values.len() as f64);
    if count > MOST as f64 {
        let text = format!("the grids have {count} points together, more than {MOST}");
        problems.push(
            Problem::new(Cause::Grid, &params.origin, text)
                .help("leave out values, or split them into several runs"),
        );
    } else {
        problems.extend(too_large(params, count));
    }
    if problems.len() > before {
        return Vec::new();
    }
    for (path, values) in grids {
        points = points
            .iter()
            .flat_map(|point| {
                values.iter().map(|value| {
                    let mut point = point.clone();
                    replace(&mut point.params, &path, value);
                    point.choices.push((path.join("."), value_text(value)));
                    point
                })
            })
            .collect();
    }
    points
}

/// What is wrong with so many copies of a parameter table, if they are too much.
pub(super) fn too_large(params: &Node, copies: f64) -> Option<Problem> {
    fn values(node: &Node) -> usize {
        match &node.value {
            Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
            Value::Table(table) => 1 + table.0.iter().map(|(_, node)| values(node)).sum::<usize>(),
            _ => 1,
        }
    }
    let each = values(params);
    (copies * each as f64 > MOST_VALUES).then(|| {
        let text = format!("{copies} times the {each} values of `params` are more than {MOST_VALUES}");
        Problem::new(Cause::Grid, &params.origin, text).help("leave out values, or split them into several runs")
    })
}

fn find(
    node: &Node,
    path: &mut Vec<String>,
    grids: &mut Vec<(Vec<String>, Vec<Node>)>,
    problems: &mut Vec<Problem>,
) {
    let Value::Table(table) = &node.value else { return };
    for (key, inner) in &table.0 {
        path.push(key.name.clone());
        match grid_values(inner) {
            None => find(inner, path, grids, problems),
            Some(Value::Array(values)) if !values.is_empty() => {
                let mut seen = HashSet::new();
                if let Some(again) = values.iter().find(|value| !seen.insert(value_text(value))) {
                    problems.push(
                        Problem::new(Cause::Grid, &again.origin, "this value is in the grid twice")
                            .help("remove one of the two"),
                    );
                }
                grids.push((path.clone(), values.clone()));
            }
            Some(_) => problems.push(Problem::new(
                Cause::Grid,
                &inner.origin,
                "`grid` must be a list of at least one value",
            )),
        }
        path.pop();
    }
}

/// A value as it appears in labels.
pub(super) fn value_text(value: &Node) -> String {
    match value.to_json(&mut Vec::new()) {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

/// What stands behind `grid` in a table with that key alone.
fn grid_values(node: &Node) -> Option<&Value> {
    match &node.value {
        Value::Table(table) if table.0.len() == 1 => table.get("grid").map(|values| &values.value),
        _ => None,
    }
}

/// The one key of the table behind a dotted path, if it is probably a slip of `grid` or `select`, and which of them.
pub(crate) fn misspelt<'a>(params: &'a Node, path: &str) -> Option<(&'a str, &'static str)> {
    let mut node = params;
    // A component that expects no table may complain of the key in it.
    for step in path.split('.') {
        let Value::Table(table) = &node.value else { break };
        node = table.get(step)?;
    }
    let Value::Table(table) = &node.value else { return None };
    let [(key, _)] = &table.0[..] else { return None };
    compflow_api::nearest(&key.name, ["grid", "select"]).map(|meant| (key.name.as_str(), meant))
}

pub(super) fn replace(node: &mut Node, path: &[String], value: &Node) {
    let [first, rest @ ..] = path else {
        *node = value.clone();
        return;
    };
    if let Value::Table(table) = &mut node.value
        && let Some((_, inner)) = table.0.iter_mut().find(|(key, _)| key.name == *first)
    {
        replace(inner, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::document::Document;
    use crate::problem::Source;

    fn labels(text: &str) -> (Vec<String>, Vec<String>) {
        let mut problems = Vec::new();
        let file = Source { name: String::new(), text: text.to_owned() };
        let params = Document::parse(file, &[], &mut problems).root;
        let points = expand(&params, &mut problems);
        let labels = points.iter().map(|point| point.label("X")).collect();
        (labels, problems.into_iter().map(|problem| problem.text).collect())
    }

    #[test]
    fn grids_multiply_and_reach_into_tables() {
        let (found, _) = labels("a = { grid = [1, 2] }\nb = 3\nc = { d = { grid = ['x', 'y'] } }");
        assert_eq!(found, ["X a=1 c.d=x", "X a=1 c.d=y", "X a=2 c.d=x", "X a=2 c.d=y"]);
    }

    #[test]
    fn no_grid_is_one_point_with_the_plain_name() {
        assert_eq!(labels("a = 1").0, ["X"]);
    }

    #[test]
    fn a_grid_of_a_billion_points_is_a_problem_and_not_made() {
        let values: Vec<String> = (0..1000).map(|value| value.to_string()).collect();
        let grid = format!("{{ grid = [{}] }}", values.join(","));
        let (found, problems) = labels(&format!("a = {grid}\nb = {grid}\nc = {grid}"));
        assert_eq!(problems, ["the grids have 1000000000 points together, more than 100000"]);
        assert!(found.is_empty());
    }

    #[test]
    fn many_points_of_a_large_table_are_a_problem() {
        let values: Vec<String> = (0..1000).map(|value| value.to_string()).collect();
        let (found, problems) = labels(&format!(
            "a = {{ grid = [{0}] }}\nb = {{ grid = [1, 2, 3, 4, 5, 6, 7, 8, 9] }}\nc = [{0}]",
            values.join(",")
        ));
        assert_eq!(problems, ["9000 times the 2015 values of `params` are more than 10000000"]);
        assert!(found.is_empty());
    }

    #[test]
    fn an_empty_grid_is_a_problem() {
        assert_eq!(labels("a = { grid = [] }").1, ["`grid` must be a list of at least one value"]);
        assert_eq!(labels("a = { grid = [1, 2, 1] }").1, ["this value is in the grid twice"]);
        assert_eq!(labels("a = { grid = 3 }").1, ["`grid` must be a list of at least one value"]);
    }
}
