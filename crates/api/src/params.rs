//! Parameters: from the JSON that crosses the boundary to a component's own type, with every problem named.
//!
//! The JSON Schema that `compflow inspect` shows is also what is checked here, so a range is written once, in an
//! attribute of the field. Only what schemars generates is understood; the rest is left to serde.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Code, Error, Problem, Result, presets};

/// The JSON Schema of a parameter type.
pub(crate) fn schema<P: JsonSchema>() -> Value {
    schemars::schema_for!(P).to_value()
}

/// Reads parameters, those of their preset included.
///
/// # Errors
/// All problems, each with the parameter's path.
pub(crate) fn parse<P: DeserializeOwned + JsonSchema>(json: &str) -> Result<P> {
    let mut value: Value =
        serde_json::from_str(json).map_err(|e| Error::new(format!("parameters are not JSON: {e}")))?;
    let schema = schema::<P>();
    match &mut value {
        Value::Object(params) => presets::apply(&schema, params),
        other => return Err(Error::new(format!("the parameters must be a table, found {other}"))),
    }
    let problems = problems(&schema, &value);
    if !problems.is_empty() {
        return Err(Error::Failed(problems));
    }
    serde_json::from_value(value).map_err(Error::new)
}

/// What parameters are called here, and by other tools.
const SYNONYMS: [(&str, &[&str]); 5] = [
    ("k", &["n_clusters", "n_components", "num_clusters", "clusters", "nclusters", "n_classes"]),
    ("restarts", &["n_init", "n_restarts", "nstart", "num_init"]),
    ("max_iter", &["max_iterations", "n_iter", "maxiter", "iterations"]),
    ("tol", &["tolerance", "eps", "epsilon"]),
    ("seed", &["random_state", "random_seed", "rng"]),
];

/// The candidate that `name` is most likely a slip of, if any is near enough.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len().min(name.len()) / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

/// All the ways in which `value` is not what `schema` describes.
pub(crate) fn problems(schema: &Value, value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    Checker { root: schema }.check(schema, value, "", &mut problems);
    problems
}

fn problem(path: &str, text: String) -> Problem {
    Problem { code: Code::Parameter, parameter: Some(path.to_owned()), text, help: None }
}

struct Checker<'a> {
    root: &'a Value,
}

impl<'a> Checker<'a> {
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        presets::resolve(self.root, schema)
    }

    fn check(&self, schema: &'a Value, value: &Value, path: &str, problems: &mut Vec<Problem>) {
        // Whoever reads pipelines writes "auto" out; a component that is asked directly cannot select.
        if let (Some(from), Some("auto")) = (schema.get("x-select"), value.as_str()) {
            let help =
                format!("give a number, or in a pipeline `{{ select = … }}`; \"auto\" selects from {from} there");
            let text = "cannot be \"auto\" here: it is selected by who runs a pipeline, trial by trial".to_owned();
            problems.push(Problem { help: Some(help), ..problem(path, text) });
            return;
        }
        if let (Some(_), Some(text)) = (schema.get("x-select"), value.as_str())
            && !self.has_type(self.resolve(schema), value)
        {
            let help = nearest(text, ["auto"]).map(|_| "did you mean \"auto\"?".to_owned());
            let text = format!("must be {} or \"auto\", found {value}", self.describe(self.resolve(schema)));
            problems.push(Problem { help, ..problem(path, text) });
            return;
        }
        let schema = self.resolve(schema);
        let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
        if let Some(alternatives) = alternatives {
            self.check_alternatives(schema, alternatives, value, path, problems);
        } else if !self.has_type(schema, value) {
            problems.push(problem(path, format!("must be {}, found {value}", self.describe(schema))));
        } else if let Value::Object(object) = value {
            self.check_object(schema, object, path, problems);
        } else if let (Value::Array(items), Some(item)) = (value, schema.get("items")) {
            for (at, value) in items.iter().enumerate() {
                self.check(item, value, &format!("{path}[{at}]"), problems);
            }
        } else if !allows(schema, value) {
            problems.push(problem(path, format!("must be {}, found {value}", self.describe(schema))));
        }
    }

    /// One alternative must fit. If none does and only one has the value's type, or of several tables only one knows
    /// a name in the value, its problems are the problems.
    fn check_alternatives(
        &self,
        schema: &'a Value,
        alternatives: &'a [Value],
        value: &Value,
        path: &str,
        problems: &mut Vec<Problem>,
    ) {
        let mut of_its_type = Vec::new();
        for alternative in alternatives {
            let mut found = Vec::new();
            self.check(alternative, value, path, &mut found);
            if found.is_empty() {
                return;
            }
            let alternative = self.resolve(alternative);
            if self.has_type(alternative, value) {
                let properties = alternative.get("properties").and_then(Value::as_object);
                let knows = |name: &String| properties.is_some_and(|properties| properties.contains_key(name));
                of_its_type.push((value.as_object().is_some_and(|object| object.keys().any(knows)), found));
            }
        }
        if of_its_type.iter().any(|(known, _)| *known) {
            of_its_type.retain(|(known, _)| *known);
        }
        match &mut of_its_type[..] {
            [(_, only)] if value.is_object() || value.is_array() => problems.append(only),
            _ => problems.push(problem(path, format!("must be {}, found {value}", self.describe(schema)))),
        }
    }

    fn check_object(
        &self,
        schema: &'a Value,
        object: &Map<String, Value>,
        path: &str,
        problems: &mut Vec<Problem>,
    ) {
        let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let properties = schema.get("properties").and_then(Value::as_object);
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        for (name, value) in object {
            match properties.and_then(|properties| properties.get(name)) {
                Some(property) => self.check(property, value, &inside(name), problems),
                None if closed => {
                    let help = Some(known(name, properties));
                    problems.push(Problem { help, ..problem(&inside(name), "is not a parameter".to_owned()) });
                }
                None => {}
            }
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if let Some(name) = name.as_str()
                && !object.contains_key(name)
            {
                problems.push(problem(&inside(name), "is missing".to_owned()));
            }
        }
    }

    fn has_type(&self, schema: &Value, value: &Value) -> bool {
        let is = |name: &str| match name {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => true,
        };
        match (schema.get("type"), schema.get("const")) {
            (Some(Value::String(name)), _) => is(name),
            (Some(Value::Array(names)), _) => names.iter().filter_map(Value::as_str).any(is),
            (_, Some(constant)) => std::mem::discriminant(constant) == std::mem::discriminant(value),
            _ => true,
        }
    }

    /// What would do, in words.
    fn describe(&self, schema: &'a Value) -> String {
        if let Some(alternatives) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) {
            let described: Vec<String> = alternatives
                .iter()
                .filter(|alternative| alternative.get("type") != Some(&Value::from("null")))
                .map(|alternative| self.describe(self.resolve(alternative)))
                .collect();
            return described.join(" or ");
        }
        if let Some(constant) = schema.get("const") {
            return constant.to_string();
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            return values.join(" or ");
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let names: Vec<String> = properties.keys().map(|name| format!("{name} = …")).collect();
            return format!("{{ {} }}", names.join(", "));
        }
        let types = match schema.get("type") {
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect()
            }
            _ => vec!["something else"],
        };
        let types: Vec<&str> = types
            .into_iter()
            .map(|name| match name {
                "integer" => "a whole number",
                "number" => "a number",
                "string" => "a string",
                "boolean" => "true or false",
                "array" => "a list",
                "object" => "a table",
                other => other,
            })
            .collect();
        let bounds = [
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        ]
        .into_iter()
        .filter_map(|(key, word)| Some(format!("{word} {}", schema.get(key)?)))
        .collect::<Vec<_>>()
        .join(" and ");
        let types = types.join(" or ");
        let bounds = match (bounds.as_str(), schema.get("format").and_then(Value::as_str)) {
            ("at least 0", Some("uint32")) => format!("between 0 and {}", u32::MAX),
            ("", Some("int32")) => format!("between {} and {}", i32::MIN, i32::MAX),
            _ => bounds,
        };
        if bounds.is_empty() { types } else { format!("{types} {bounds}") }
    }
}

/// Whether constants, enumerations and bounds admit a value of the right type.
fn allows(schema: &Value, value: &Value) -> bool {
    let bound =
        |key: &str, holds: fn(f64, f64) -> bool| match (schema.get(key).and_then(Value::as_f64), value.as_f64()) {
            (Some(bound), Some(value)) => holds(value, bound),
            _ => true,
        };
    // schemars gives 32-bit numbers no bounds, only the name of their format.
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("uint32") => (0, i64::from(u32::MAX)),
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    if value.as_i64().is_some_and(|value| value < least || value > most) {
        return false;
    }
    schema.get("const").is_none_or(|constant| constant == value)
        && schema.get("enum").and_then(Value::as_array).is_none_or(|values| values.contains(value))
        && bound("minimum", |value, bound| value >= bound)
        && bound("maximum", |value, bound| value <= bound)
        && bound("exclusiveMinimum", |value, bound| value > bound)
        && bound("exclusiveMaximum", |value, bound| value < bound)
}

/// Which parameter was probably meant, or which there are.
fn known(name: &str, properties: Option<&Map<String, Value>>) -> String {
    let names = || properties.into_iter().flat_map(Map::keys);
    let same = SYNONYMS.iter().filter(|(_, others)| others.contains(&name)).map(|(own, _)| *own);
    if let Some(own) = same.into_iter().find(|own| names().any(|name| name == own)) {
        return format!("here it is called `{own}`");
    }
    if let Some("seed") = SYNONYMS.iter().find(|(_, others)| others.contains(&name)).map(|(own, _)| *own) {
        return "`seed` is a key of the whole pipeline".to_owned();
    }
    if let Some(near) = nearest(name, names().map(String::as_str)) {
        return format!("did you mean `{near}`?");
    }
    if names().next().is_none() {
        return "there are none".to_owned();
    }
    let names: Vec<String> = names().map(|name| format!("`{name}`")).collect();
    format!("there are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Shape {
        /// Round.
        Full,
        /// Not round.
        Diag,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Preference {
        Number(f64),
        Target(Target),
        Each(Each),
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Each {
        each: f64,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Target {
        #[schemars(range(min = 1))]
        k: u32,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    struct Params {
        #[schemars(range(min = 1))]
        k: usize,
        #[schemars(extend("minimum" = 0.5, "exclusiveMaximum" = 1.0))]
        damping: f64,
        tol: Option<f32>,
        shape: Shape,
        preference: Option<Preference>,
        weights: Vec<f32>,
    }

    impl Default for Params {
        fn default() -> Self {
            Self { k: 3, damping: 0.5, tol: None, shape: Shape::Full, preference: None, weights: vec![] }
        }
    }

    fn refused(json: &str) -> String {
        parse::<Params>(json).unwrap_err().to_string()
    }

    #[test]
    fn good_parameters_are_read_and_defaults_filled_in() {
        assert_eq!(parse::<Params>("{}").unwrap(), Params::default());
        let params: Params = parse(r#"{"shape":"diag","preference":{"k":2},"tol":1}"#).unwrap();
        assert_eq!(params.shape, Shape::Diag);
        assert_eq!(params.preference, Some(Preference::Target(Target { k: 2 })));
        assert_eq!(params.tol, Some(1.0));
    }

    #[test]
    fn the_schema_carries_the_defaults() {
        let schema = schema::<Params>();
        assert_eq!(schema["properties"]["damping"]["default"], 0.5);
        assert_eq!(schema["properties"]["shape"]["default"], "full");
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let lines = refused(r#"{"k":0,"damping":1.0,"dampin":1,"shape":"round"}"#);
        assert_eq!(
            lines.lines().collect::<Vec<_>>(),
            [
                "`k` must be a whole number at least 1, found 0",
                "`damping` must be a number at least 0.5 and below 1.0, found 1.0",
                "`dampin` is not a parameter; did you mean `damping`?",
                r#"`shape` must be "full" or "diag", found "round""#,
            ]
        );
    }

    #[test]
    fn a_wrong_type_says_what_would_do() {
        assert_eq!(refused(r#"{"k":2.5}"#), "`k` must be a whole number at least 1, found 2.5");
        assert_eq!(refused(r#"{"k":"3"}"#), r#"`k` must be a whole number at least 1, found "3""#);
        assert_eq!(refused(r#"{"weights":[1,"a"]}"#), r#"`weights[1]` must be a number, found "a""#);
    }

    #[test]
    fn alternatives_are_described_and_looked_into() {
        assert_eq!(
            refused(r#"{"preference":"low"}"#),
            r#"`preference` must be a number or { k = … } or { each = … }, found "low""#
        );
        assert_eq!(
            refused(r#"{"preference":{"l":1}}"#),
            r#"`preference` must be a number or { k = … } or { each = … }, found {"l":1}"#
        );
        assert_eq!(
            refused(r#"{"preference":{"k":0}}"#),
            "`preference.k` must be a whole number at least 1, found 0"
        );
    }

    #[test]
    fn numbers_that_do_not_fit_their_type_are_named() {
        assert_eq!(
            refused(r#"{"preference":{"k":5000000000}}"#),
            "`preference.k` must be a whole number at least 1, found 5000000000"
        );
        assert_eq!(refused("[]"), "the parameters must be a table, found []");
    }

    #[test]
    fn a_far_name_gets_the_list() {
        assert_eq!(
            refused(r#"{"colour":1}"#),
            "`colour` is not a parameter; there are `k`, `damping`, `tol`, `shape`, `preference`, `weights`"
        );
    }

    #[test]
    fn the_nearest_name_is_near() {
        assert_eq!(nearest("kmean", ["kmeans", "kmedoids"]), Some("kmeans"));
        assert_eq!(nearest("cpa", ["ac", "cap", "ckm"]), Some("cap"));
        assert_eq!(nearest("xyz", ["ac", "cap", "ckm"]), None);
    }
}
