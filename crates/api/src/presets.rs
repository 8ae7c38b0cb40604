//! Presets: named values for what is not given, written once, in the schema.
//!
//! A parameter named `preset` is an enumeration, and what a variant stands for is written on it:
//!
//! ```
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! #[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
//! #[serde(rename_all = "kebab-case")]
//! enum Preset {
//!     /// What the paper says.
//!     #[schemars(extend("values" = { "k": 18, "damping": 0.65 }))]
//!     Paper,
//! }
//! ```
//!
//! These values are put in place of what was left out before parameters are checked and read, so the other fields of
//! the parameter type are plain ones with plain defaults, or required ones, and no component need look at its `preset`.
//! What is given beats the preset, and the preset beats the default. Where two parameters exclude one another, the one
//! that presets set says so with `#[schemars(extend("instead_of" = "k"))]`: it is not set if `k` is given.
//!
//! The host reads the same schema: `inspect` lists the presets, and the parameters that a run records are those that
//! the component was made with ([`ForeignComponent::effective`](crate::ForeignComponent::effective)).

use serde_json::{Map, Value};

use crate::{Error, Result};

/// A variant of the parameter `preset`.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// What pipeline files call it.
    pub name: String,
    /// What it is for.
    pub meaning: String,
    /// Parameters and their values.
    pub values: Map<String, Value>,
}

/// What `schema` refers to, or itself.
pub(crate) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| root.pointer(reference.trim_start_matches('#')))
        .unwrap_or(schema)
}

/// References behind one another, or places that references and alternatives lead to: far more than any schema has.
const MOST_REFERENCES: usize = 64;
const MOST_PLACES: usize = 100_000;

/// Whether every reference in a schema leads somewhere: one that leads back to itself through references and alternatives
/// alone describes nothing, and whoever follows it does not come back; nor does who follows two that lead to two each, and
/// so on.
///
/// # Errors
/// Naming the reference.
pub(crate) fn check_references(root: &Value) -> Result<()> {
    References { root, path: Vec::new(), places: 0 }.walk(root)
}

struct References<'a> {
    root: &'a Value,
    /// Those that are being followed.
    path: Vec<&'a str>,
    /// How many there were so far.
    places: usize,
}

impl<'a> References<'a> {
    fn follow(&mut self, schema: &'a Value) -> Result<()> {
        self.places += 1;
        if self.places > MOST_PLACES {
            return Err(Error::new(format!("references and alternatives lead to more than {MOST_PLACES} places")));
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            if self.path.contains(&reference) {
                return Err(Error::new(format!("`{reference}` refers to itself")));
            }
            if self.path.len() == MOST_REFERENCES {
                return Err(Error::new(format!("`{reference}` is behind {MOST_REFERENCES} other references")));
            }
            self.path.push(reference);
            if let Some(target) = self.root.pointer(reference.trim_start_matches('#')) {
                self.follow(target)?;
            }
            self.path.pop();
        }
        let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
        alternatives.flatten().try_for_each(|alternative| self.follow(alternative))
    }

    fn walk(&mut self, schema: &'a Value) -> Result<()> {
        self.follow(schema)?;
        match schema {
            Value::Object(object) => object.values().try_for_each(|value| self.walk(value)),
            Value::Array(items) => items.iter().try_for_each(|value| self.walk(value)),
            _ => Ok(()),
        }
    }
}

/// All presets of a parameter schema.
pub(crate) fn presets(schema: &Value) -> Vec<Preset> {
    let mut found = Vec::new();
    if let Some(property) = schema.pointer("/properties/preset") {
        collect(schema, property, &mut found);
    }
    found
}

/// Enumerations and optional ones are lists of alternatives, perhaps in other places of the schema.
fn collect(root: &Value, schema: &Value, found: &mut Vec<Preset>) {
    let schema = resolve(root, schema);
    let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
    for alternative in alternatives.into_iter().flatten() {
        collect(root, alternative, found);
    }
    if let Some(name) = schema.get("const").and_then(Value::as_str) {
        let meaning = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let values = schema.get("values").and_then(Value::as_object).cloned().unwrap_or_default();
        found.push(Preset { name: name.to_owned(), meaning: meaning.to_owned(), values });
    }
}

/// Adds to parameters what their preset says of those that were left out.
pub(crate) fn apply(schema: &Value, params: &mut Map<String, Value>) {
    let Some(name) = params.get("preset").and_then(Value::as_str) else { return };
    let Some(preset) = presets(schema).into_iter().find(|preset| preset.name == name) else { return };
    let given: Vec<String> = params.keys().cloned().collect();
    for (name, value) in preset.values {
        let other = schema.pointer(&format!("/properties/{name}/instead_of")).and_then(Value::as_str);
        if !given.contains(&name) && !other.is_some_and(|other| given.iter().any(|given| given == other)) {
            params.insert(name, value);
        }
    }
}

/// The parameters that a component is made with: those given, then those of the preset, then the defaults.
pub(crate) fn effective(schema: &Value, mut params: Map<String, Value>) -> Map<String, Value> {
    apply(schema, &mut params);
    let mut filled: Map<String, Value> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone())))
        .collect();
    filled.extend(params);
    filled
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::params::{parse, schema};

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Params {
        k: usize,
        #[serde(default)]
        #[schemars(extend("maximum" = 1))]
        damping: f64,
        #[serde(default)]
        #[schemars(extend("instead_of" = "height"))]
        cut: Option<f64>,
        #[serde(default)]
        height: Option<f64>,
        #[serde(default)]
        preset: Option<Named>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    enum Named {
        /// As published.
        #[schemars(extend("values" = { "k": 18, "damping": 0.65, "cut": 1.0 }))]
        Paper,
        /// Nothing special.
        Plain,
        /// Not what the schema allows.
        #[schemars(extend("values" = { "k": 1, "damping": 2 }))]
        Wrong,
    }

    fn read(value: Value) -> Params {
        parse(&value.to_string()).unwrap()
    }

    #[test]
    fn what_is_given_beats_the_preset_and_the_preset_beats_the_default() {
        let params = read(json!({ "preset": "paper" }));
        assert_eq!((params.k, params.damping, params.cut), (18, 0.65, Some(1.0)));
        let params = read(json!({ "preset": "paper", "k": 5 }));
        assert_eq!((params.k, params.damping), (5, 0.65));
        assert_eq!(read(json!({ "k": 5 })).damping, 0.0);
    }

    #[test]
    fn references_that_lead_back_to_themselves_are_found_and_recursive_tables_are_not_them() {
        let loops = json!({ "properties": { "a": { "$ref": "#/$defs/A" } },
            "$defs": { "A": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/B" }] }, "B": { "$ref": "#/$defs/A" } } });
        assert_eq!(check_references(&loops).unwrap_err().to_string(), "`#/$defs/A` refers to itself");
        let tree = json!({ "$defs": { "Tree": { "properties": { "below": { "$ref": "#/$defs/Tree" } } } } });
        assert!(check_references(&tree).is_ok());
    }

    #[test]
    fn references_that_take_for_ever_to_follow_are_refused() {
        let chain = |count: usize, target: fn(Value) -> Value| {
            let definition =
                |at: usize| (format!("A{at}"), target(json!({ "$ref": format!("#/$defs/A{}", at + 1) })));
            let definitions: Map<String, Value> = (0..count).map(definition).collect();
            check_references(&json!({ "$defs": definitions })).unwrap_err().to_string()
        };
        let doubled = chain(40, |next| json!({ "anyOf": [next.clone(), next] }));
        assert_eq!(doubled, "references and alternatives lead to more than 100000 places");
        assert_eq!(chain(10_000, |next| next), "`#/$defs/A65` is behind 64 other references");
    }

    #[test]
    fn what_excludes_a_given_parameter_is_not_set() {
        let params = read(json!({ "preset": "paper", "height": 3.0 }));
        assert_eq!((params.cut, params.height, params.k), (None, Some(3.0), 18));
    }

    #[test]
    fn what_the_preset_leaves_open_is_still_missing_and_what_it_sets_is_checked() {
        let refused = |value: Value| parse::<Params>(&value.to_string()).unwrap_err().to_string();
        assert_eq!(refused(json!({ "preset": "plain" })), "`k` is missing");
        assert_eq!(refused(json!({ "preset": "wrong" })), "`damping` must be a number at most 1, found 2");
        assert!(refused(json!({ "preset": "papper", "k": 1 })).starts_with("`preset` must be \"paper\" or "));
    }

    #[test]
    fn the_effective_parameters_are_those_it_is_made_with() {
        let given = json!({ "preset": "paper", "damping": 0.9 });
        let found = effective(&schema::<Params>(), given.as_object().unwrap().clone());
        let expected = json!({ "preset": "paper", "damping": 0.9, "k": 18, "cut": 1.0, "height": null });
        assert_eq!(Value::Object(found), expected);
    }

    #[test]
    fn presets_are_listed_with_meaning_and_values() {
        let found = presets(&schema::<Params>());
        let names: Vec<&str> = found.iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(names, ["paper", "plain", "wrong"]);
        assert_eq!((found[0].meaning.as_str(), &found[0].values["k"]), ("As published.", &json!(18)));
        assert!(found[1].values.is_empty());
    }
}
