//! The parameters that a component really has, and those of the components inside it.

use compflow_api::{ForeignComponent, Kind};
use serde_json::Value;

use crate::plugin::Registry;

/// Components inside one another are followed so far: a default may name its own component.
const MAX_DEPTH: usize = 16;

/// A component's parameters, a JSON object, with preset and defaults filled in; so are those of clusterers that are named in
/// them as `{ use = …, params = … }`.
pub(super) fn effective(registry: &Registry, component: &ForeignComponent, params: &str) -> String {
    filled(registry, component, params, 0)
}

fn filled(registry: &Registry, component: &ForeignComponent, params: &str, depth: usize) -> String {
    let text = component.effective(params);
    let Ok(Value::Object(mut all)) = serde_json::from_str(&text) else { return text };
    for value in all.values_mut().filter(|_| depth < MAX_DEPTH) {
        let Some(name) = value.get("use").and_then(Value::as_str) else { continue };
        let Ok(inner) = registry.find(Kind::Clusterer, name) else { continue };
        let given = value.get("params").map_or_else(|| "{}".to_owned(), ToString::to_string);
        let inner = filled(registry, &inner.component, &given, depth + 1);
        value["params"] = serde_json::from_str(&inner).unwrap_or_default();
    }
    Value::Object(all).to_string()
}
