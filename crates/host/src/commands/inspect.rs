//! `compflow inspect`: what a component does and how it is used.

use std::path::PathBuf;

use compflow_api::{Flags, ForeignComponent, Kind, Services};
use compflow_engine::Registry;
use compflow_engine::causes::Cause;
use compflow_engine::pipeline::Problem;
use compflow_engine::pipeline::selection::KEYWORD;
use serde_json::{Value, json};

use super::{plugins, print, print_json};
use crate::failure::Failure;
use crate::output::{Grid, table};
use crate::terminal::clean::one_line;
#[cfg(unix)]
use crate::terminal::crash;

/// A parameter as its schema describes it.
struct Parameter {
    name: String,
    kind: String,
    /// `None` if it must be given.
    default: Option<Value>,
    /// What it might be.
    example: Option<Value>,
    range: String,
    meaning: String,
}

/// Runs the command.
///
/// # Errors
/// If there is no such component.
pub(crate) fn run(plugins: &[PathBuf], name: &str, as_json: bool) -> Result<i32, Failure> {
    let text = inspect(&plugins::registry(plugins)?, name, as_json)?;
    if as_json { print_json(&text) } else { print(&text) }
}

/// Describes every component of that name.
///
/// # Errors
/// If there is none.
fn inspect(registry: &Registry, name: &str, as_json: bool) -> Result<String, Failure> {
    let found: Vec<_> = match name.contains(':') {
        true => Kind::ALL.into_iter().filter_map(|kind| registry.find(kind, name).ok()).collect(),
        false => registry.entries().filter(|entry| entry.component.name == name).collect(),
    };
    if found.is_empty() {
        let names: Vec<&str> = Kind::ALL.into_iter().flat_map(|kind| registry.names(kind)).collect();
        let problem = Problem::without_place(Cause::NoComponent, format!("there is no component named `{name}`"))
            .suggest(name, names);
        let help = problem.help.map_or_else(String::new, |help| format!("; {help}"));
        return Err(Failure::request(problem.text + &help));
    }
    let described: Vec<(String, ForeignComponent)> = found
        .iter()
        .map(|entry| (registry.libraries[entry.library].path.display().to_string(), entry.component))
        .collect();
    if as_json {
        let list: Vec<Value> = described.iter().map(|(path, component)| to_json(path, component)).collect();
        return Ok(format!("{:#}\n", Value::from(list)));
    }
    let texts: Vec<String> = described.iter().map(|(path, component)| describe(path, component)).collect();
    Ok(texts.join("\n"))
}

fn needs(component: &ForeignComponent) -> Vec<&'static str> {
    [
        (Flags::NEEDS_COMPOSER, "a composer"),
        (Flags::NEEDS_GRADIENTS, "a composer with gradients"),
        (Flags::NEEDS_TRUTH, "the true sets"),
        (Flags::NEEDS_PATH, "a path"),
    ]
    .into_iter()
    .filter(|(flag, _)| component.flags().contains(*flag))
    .map(|(_, text)| text)
    .collect()
}

fn uses(component: &ForeignComponent) -> Vec<&'static str> {
    [(Flags::USES_WEIGHTS, "weights"), (Flags::USES_SEEDS, "seeds")]
        .into_iter()
        .filter(|(flag, _)| component.flags().contains(*flag))
        .map(|(_, text)| text)
        .collect()
}

/// The further columns that an instance with usual parameters asks for; none if it cannot be made like that.
fn columns(path: &str, component: &ForeignComponent, parameters: &[Parameter]) -> Vec<String> {
    #[cfg(unix)]
    let _calling = crash::calling("its creation", &format!("{} `{}` of {path}", component.kind, component.name));
    #[cfg(not(unix))]
    let _ = path;
    let required = parameters.iter().filter(|parameter| parameter.default.is_none());
    let params: Value = required.filter_map(|one| Some((one.name.clone(), one.example.clone()?))).collect();
    let made = component.create(&params.to_string(), &Services::none());
    made.and_then(|instance| instance.columns()).unwrap_or_default()
}

fn to_json(path: &str, component: &ForeignComponent) -> Value {
    json!({
        "kind": component.kind,
        "name": component.name,
        "summary": component.summary,
        "documentation": component.documentation,
        "needs": needs(component),
        "uses": uses(component),
        "columns": columns(path, component, &parameters(component.schema)),
        "gradients": component.flags().contains(Flags::HAS_GRADIENTS),
        "library": path,
        "schema": serde_json::from_str::<Value>(component.schema).unwrap_or_default(),
    })
}

fn describe(path: &str, component: &ForeignComponent) -> String {
    let mut text = format!("{} `{}`: {}\n", component.kind, component.name, one_line(component.summary));
    if !component.documentation.is_empty() {
        text += &format!("\n{}\n", component.documentation);
    }
    text += &format!("\nlibrary: {path}\n");
    let needs = needs(component);
    if !needs.is_empty() {
        text += &format!("needs:   {}\n", needs.join(", "));
    }
    let uses = uses(component);
    if !uses.is_empty() {
        text += &format!("uses:    {}\n", uses.join(", "));
    }
    if component.flags().contains(Flags::HAS_GRADIENTS) {
        text += "has:     gradients\n";
    }
    let parameters = parameters(component.schema);
    let columns = columns(path, component, &parameters);
    if !columns.is_empty() {
        text += &format!("columns: {}\n", columns.join(", "));
    }
    if parameters.is_empty() {
        text += "\nno parameters\n";
    } else {
        let rows = parameters.iter().map(|parameter| {
            vec![
                parameter.name.clone(),
                parameter.kind.clone(),
                parameter.default.as_ref().map_or_else(|| "required".to_owned(), to_toml),
                parameter.range.clone(),
                parameter.meaning.clone(),
            ]
        });
        let header = ["parameter", "type", "default", "range", "meaning"].map(str::to_owned).to_vec();
        let grid = Grid { title: String::new(), header, rows: rows.collect(), numbers: false };
        text += &format!("\n{}", table::render(&grid));
    }
    let presets = component.presets();
    if !presets.is_empty() {
        let rows = presets.into_iter().map(|preset| {
            let values = preset.values.iter().map(|(name, value)| format!("{name} = {}", to_toml(value)));
            vec![preset.name, values.collect::<Vec<_>>().join(", "), preset.meaning.replace('\n', " ")]
        });
        let header = ["preset", "values for what is not given", "meaning"].map(str::to_owned).to_vec();
        let grid = Grid { title: String::new(), header, rows: rows.collect(), numbers: false };
        text += &format!("\n{}", table::render(&grid));
    }
    text + "\n" + &example(component, &parameters)
}

/// A table to paste into a pipeline, with every parameter at its example or, if it has none, at its default.
fn example(component: &ForeignComponent, parameters: &[Parameter]) -> String {
    let params: Vec<String> = parameters
        .iter()
        .filter_map(|Parameter { name, kind, default, example, .. }| {
            let value = example.as_ref().or(default.as_ref().filter(|value| !value.is_null()));
            let value = match (value, default) {
                (Some(value), _) => to_toml(value),
                (None, Some(_)) => return None,
                (None, None) => placeholder(kind),
            };
            Some(format!("{name} = {value}"))
        })
        .collect();
    let params = if params.is_empty() { String::new() } else { format!("params = {{ {} }}\n", params.join(", ")) };
    let name = component.name;
    match component.kind {
        Kind::Loader => {
            let path = if component.flags().contains(Flags::NEEDS_PATH) {
                "path = \"…\"\ncolumns = { embedding = \"embedding\", truth = \"labels\" }\n"
            } else {
                ""
            };
            format!("[[data]]\nname = \"my-data\"\nloader = \"{name}\"\n{path}{params}")
        }
        Kind::Composer => format!("[composer]\nuse = \"{name}\"\n{params}"),
        kind => format!("[[{kind}]]\nuse = \"{name}\"\n{params}"),
    }
}

fn placeholder(kind: &str) -> String {
    match kind {
        "integer" | "integer or \"auto\"" => "1",
        "number" => "1.0",
        "boolean" => "true",
        "string" => "\"…\"",
        _ => "…",
    }
    .to_owned()
}

/// A JSON value as TOML would write it inline.
pub(super) fn to_toml(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let entries: Vec<String> = table
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| format!("{key} = {}", to_toml(value)))
                .collect();
            if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(to_toml).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

fn parameters(schema: &str) -> Vec<Parameter> {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    properties
        .into_iter()
        .flatten()
        .map(|(name, property)| Parameter {
            name: name.clone(),
            kind: match property.get(KEYWORD) {
                None => kind(&schema, property),
                Some(_) => format!("{} or \"auto\"", kind(&schema, property)),
            },
            default: if required.contains(&name.as_str()) {
                None
            } else {
                Some(property.get("default").cloned().unwrap_or(Value::Null))
            },
            example: property.pointer("/examples/0").cloned(),
            range: range(property),
            meaning: property.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " "),
        })
        .collect()
}

/// A schema's type in a few words.
fn kind(root: &Value, schema: &Value) -> String {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return root.pointer(target.trim_start_matches('#')).map_or_else(String::new, |schema| kind(root, schema));
    }
    let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
    if let Some(alternatives) = alternatives {
        let kinds: Vec<String> =
            alternatives.iter().map(|schema| kind(root, schema)).filter(|kind| kind != "null").collect();
        return kinds.join(" or ");
    }
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ");
    }
    match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

fn range(schema: &Value) -> String {
    let bound = |key: &str, sign: &str| schema.get(key).map(|bound| format!("{sign} {bound}"));
    [bound("minimum", "≥"), bound("exclusiveMinimum", ">"), bound("maximum", "≤"), bound("exclusiveMaximum", "<")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}
