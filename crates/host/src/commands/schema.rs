//! `compflow schema`: a JSON Schema of pipeline files, with which an editor completes and checks while one writes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use compflow_api::{Flags, ForeignComponent, Kind};
use compflow_engine::Registry;
use compflow_engine::pipeline::selection::KEYWORD;
use serde_json::{Map, Value, json};

use super::{plugins, print_json};
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// If a folder that was asked for does not exist.
pub(crate) fn run(plugins: &[PathBuf]) -> Result<i32, Failure> {
    print_json(&schema(&plugins::registry(plugins)?))
}

/// The schema for all components found.
fn schema(registry: &Registry) -> String {
    let mut components: BTreeMap<(Kind, &str), Offered> = BTreeMap::new();
    for entry in registry.entries() {
        let component = entry.component;
        let offered = components.entry((component.kind, component.name));
        let offered = offered.or_insert_with(|| Offered { component, names: vec![component.name.to_owned()] });
        offered.names.push(format!("{}:{}", registry.library_of(&entry), component.name));
    }
    format!("{:#}\n", of_pipeline(&components.into_values().collect::<Vec<_>>()))
}

/// A component, and how a pipeline may call it: by its name, or as that of a certain library.
struct Offered {
    component: ForeignComponent,
    names: Vec<String>,
}

fn of_pipeline(offered: &[Offered]) -> Value {
    let of_kind = |kind| offered.iter().filter(move |offered| offered.component.kind == kind);
    let components = offered.iter().map(|offered| &offered.component);
    let one_of = |kind| match of_kind(kind).map(usage).collect::<Vec<Value>>() {
        none if none.is_empty() => json!({ "not": {}, "description": format!("no library offers a {kind}") }),
        usages => json!({ "oneOf": usages }),
    };
    let definitions: Map<String, Value> =
        components.map(|component| (definition(component), parameters(component))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A compflow pipeline",
        "type": "object",
        "additionalProperties": false,
        "required": ["data", "clusterer"],
        "properties": {
            "name": text("Names the results folder; the file's name if left out."),
            "seed": { "type": "integer", "minimum": 0, "default": 0, "description": "The source of all randomness." },
            "degree": { "type": "integer", "minimum": 1, "maximum": u32::MAX, "default": 2, "description": "The largest composition considered." },
            "space": table("Where distances are taken.", &[], json!({
                "normalize": { "enum": ["none", "l2"], "default": "none", "description": "What is done to vectors first." },
                "distance": { "enum": ["sqeuclidean", "euclidean"], "default": "sqeuclidean", "description": "The distance." },
            })),
            "memberships": {
                "type": "boolean",
                "default": false,
                "description": "Whether soft memberships are kept, and written to memberships.parquet.",
            },
            "isolate": {
                "type": "boolean",
                "description": "Whether cells run in processes of their own; if left out, they do where a library did not come with compflow.",
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "How many seconds a cell may take, which then runs in a process of its own.",
            },
            "composer": one_of(Kind::Composer),
            "data": { "type": "array", "minItems": 1, "items": one_of(Kind::Loader) },
            "clusterer": { "type": "array", "minItems": 1, "items": one_of(Kind::Clusterer) },
            "evaluator": { "type": "array", "items": one_of(Kind::Evaluator) },
            "tune": table("Settles grids.", &["data", "metric"], json!({
                "data": text("The name of a [[data]] table with role = \"tune\"."),
                "metric": text("A metric that one of the evaluators reports, such as acri."),
            })),
            "plugins": table("What is required of libraries.", &[], json!({
                "require": {
                    "type": "object",
                    "description": "Libraries that must have this content.",
                    "additionalProperties": { "type": "string", "pattern": "^blake3:[0-9a-f]{64}$" },
                },
            })),
        },
        "$defs": definitions,
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn one_or_several(description: &str) -> Value {
    let several = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
    json!({ "anyOf": [{ "type": "string" }, several], "description": description })
}

fn table(description: &str, required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "description": description,
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

/// Where the parameters of a component are described.
fn definition(component: &ForeignComponent) -> String {
    format!("{}.{}", component.kind, component.name)
}

/// A table that uses the component.
fn usage(Offered { component, names }: &Offered) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if matches!(component.kind, Kind::Loader | Kind::Clusterer) {
        properties.insert("name".to_owned(), text("What it is called in all tables."));
    }
    if component.kind == Kind::Loader {
        required.push("name");
        properties.insert("columns".to_owned(), columns());
        let split = text("What stands between the labels of one text, such as a comma.");
        let labels = table("How labels are written.", &["split"], json!({ "split": split }));
        properties.insert("labels".to_owned(), labels);
        let role =
            json!({ "enum": ["test", "tune"], "default": "test", "description": "\"tune\" only settles grids." });
        properties.insert("role".to_owned(), role);
    }
    if component.flags().contains(Flags::NEEDS_PATH) {
        required.push("path");
        properties.insert(
            "path".to_owned(),
            text("A file, a pattern or a folder, relative to this one; `-` is standard input."),
        );
    }
    let key = if component.kind == Kind::Loader { "loader" } else { "use" };
    required.push(key);
    properties.insert(key.to_owned(), json!({ "enum": names, "description": component.summary }));
    let reference = format!("#/$defs/{}", definition(component));
    properties.insert("params".to_owned(), json!({ "$ref": reference, "description": "Its parameters." }));
    let schema: Value = serde_json::from_str(component.schema).unwrap_or_default();
    if schema.get("required").and_then(Value::as_array).is_some_and(|required| !required.is_empty()) {
        required.push("params");
    }
    table(component.summary, &required, Value::Object(properties))
}

fn columns() -> Value {
    table(
        "The source's names of the columns.",
        &[],
        json!({
            "embedding": one_or_several("The column of embeddings, or a pattern or list of columns, one for every dimension."),
            "truth": one_or_several("The column of true sets, or a pattern or list of columns of 0 and 1, one for every label."),
            "trial": text("The column of trial numbers."),
            "id": text("The column of identifiers."),
            "preference": text("The column of numbers that say how gladly each example becomes an exemplar."),
            "weight": text("The column of numbers that say how much each example counts."),
            "seed": one_or_several("The column of sets that are known beforehand, null where they are not, or a pattern or list of columns of 0 and 1."),
            "file": text("The column of recordings that the examples are segments of."),
            "start": text("The column of seconds at which segments start."),
            "end": text("The column of seconds at which segments end."),
        }),
    )
}

/// The component's own schema, made part of ours.
fn parameters(component: &ForeignComponent) -> Value {
    let mut schema: Value = serde_json::from_str(component.schema).unwrap_or_default();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        // What must be given may also come from a preset.
        let has_preset = object.get("properties").is_some_and(|properties| properties.get("preset").is_some());
        if let Some(required) = object.remove("required") {
            match has_preset {
                true => object
                    .insert("anyOf".to_owned(), json!([{ "required": required }, { "required": ["preset"] }])),
                false => object.insert("required".to_owned(), required),
            };
        }
    }
    rebase(&mut schema, &definition(component));
    if component.kind == Kind::Clusterer {
        allow_grids(&mut schema);
    }
    schema
}

/// References inside the schema are to its own definitions, which now lie deeper.
fn rebase(schema: &mut Value, below: &str) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get_mut("$ref")
                && let Some(path) = reference.strip_prefix("#/")
            {
                *reference = format!("#/$defs/{below}/{path}");
            }
            object.values_mut().for_each(|value| rebase(value, below));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| rebase(value, below)),
        _ => {}
    }
}

/// Every parameter, also inside tables, may be `{ grid = [...] }` or `{ select = ... }`, and some may be "auto".
fn allow_grids(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            // What is listed in a grid has no grids inside.
            let plain = object.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
            object.values_mut().for_each(allow_grids);
            let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
            for (property, plain) in properties.values_mut().zip(plain.values()) {
                let grid = json!({
                    "type": "object",
                    "description": "All of these values.",
                    "additionalProperties": false,
                    "required": ["grid"],
                    "properties": { "grid": { "type": "array", "minItems": 1, "items": plain } },
                });
                let whole = json!({ "type": "integer" });
                let select = json!({
                    "type": "object",
                    "description": "The one of these values whose clusters are worth most, for every trial.",
                    "additionalProperties": false,
                    "required": ["select"],
                    "properties": { "select": { "anyOf": [
                        { "type": "array", "minItems": 2, "items": plain },
                        {
                            "type": "object",
                            "additionalProperties": false,
                            "required": ["from", "to"],
                            "properties": { "from": whole, "to": whole },
                        },
                    ] } },
                });
                let mut forms = vec![property.clone(), grid, select];
                if property.get(KEYWORD).is_some() {
                    forms.push(json!({ "const": "auto", "description": "Selected for every trial." }));
                }
                // What an editor shows belongs to the whole.
                let shown = ["description", "default"].map(|key| (key, property.get(key).cloned()));
                *property = json!({ "anyOf": forms });
                for (key, value) in shown.into_iter().filter_map(|(key, value)| Some((key, value?))) {
                    property[key] = value;
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(allow_grids),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use compflow_engine::pipeline::keys as pipeline_keys;

    use super::*;

    fn keys(table: &Value) -> Vec<&str> {
        let mut keys: Vec<&str> = table["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys
    }

    fn sorted<'k>(keys: &[&'k str]) -> Vec<&'k str> {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn every_key_of_a_pipeline_is_in_the_schema() {
        let schema = of_pipeline(&[]);
        assert_eq!(keys(&schema), sorted(pipeline_keys::KEYS));
        assert_eq!(keys(&schema["properties"]["space"]), sorted(pipeline_keys::SPACE_KEYS));
        assert_eq!(keys(&schema["properties"]["tune"]), sorted(pipeline_keys::TUNE_KEYS));
        assert_eq!(keys(&schema["properties"]["plugins"]), sorted(pipeline_keys::PLUGINS_KEYS));
        assert_eq!(keys(&columns()), sorted(pipeline_keys::COLUMN_KEYS));
    }

    #[test]
    fn references_and_grids_reach_everything() {
        let mut schema = json!({
            "properties": { "base": { "$ref": "#/$defs/Base" }, "k": { "type": "integer", "default": 3 } },
            "$defs": { "Base": { "type": "object", "properties": { "k": { "type": "integer" } } } },
        });
        rebase(&mut schema, "clusterer.x");
        allow_grids(&mut schema);
        assert_eq!(schema["properties"]["base"]["anyOf"][0]["$ref"], "#/$defs/clusterer.x/$defs/Base");
        assert_eq!(schema["properties"]["k"]["default"], 3);
        let inner = &schema["$defs"]["Base"]["properties"]["k"]["anyOf"];
        assert_eq!(inner[1]["properties"]["grid"]["items"]["type"], "integer");
        assert_eq!(inner[2]["required"], json!(["select"]));
        assert_eq!(inner[3], Value::Null);
    }

    #[test]
    fn tables_in_tables_are_not_copied_over_and_over() {
        let nested = |inner: Value, _| json!({ "properties": { "a": inner } });
        let mut schema = (0..30).fold(json!({ "type": "integer" }), nested);
        allow_grids(&mut schema);
        assert!(schema.to_string().len() < 100_000);
    }

    #[test]
    fn only_what_says_from_what_it_is_selected_may_be_auto() {
        let mut schema = json!({ "properties": { "k": { "type": "integer", "x-select": [2, 3] } } });
        allow_grids(&mut schema);
        assert_eq!(schema["properties"]["k"]["anyOf"][3]["const"], "auto");
    }
}
