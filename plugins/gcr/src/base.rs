//! The parameter `base`: another clusterer, of this library or any other.

use std::cell::Cell;

use compflow_api::{Error, ForeignClusterer, Result, Services};
use compflow_kernels::nested::Nested;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A clusterer and its parameters; unlike [`Nested`], one that need not be named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Base {
    /// The name of a clusterer.
    #[serde(rename = "use")]
    pub component: String,
    /// Its parameters.
    pub params: Map<String, Value>,
}

impl Default for Base {
    /// Agglomerative clustering, by Ward's linkage unless the parameters say otherwise.
    fn default() -> Self {
        Self { component: "ac".to_owned(), params: Map::new() }
    }
}

thread_local! {
    /// Whether a base is being made.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Ends the making of a base, however it goes.
struct Outside;

impl Drop for Outside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

impl Base {
    /// Makes the clusterer.
    ///
    /// # Errors
    /// If there is none of that name, if it refuses its parameters, or if it makes a clusterer of this kind in its turn:
    /// all of them about `base` or what is below it.
    pub(crate) fn create(&self, services: &Services<'_>) -> Result<ForeignClusterer> {
        // A component makes others in its own `new`, on the thread that called it.
        if INSIDE.replace(true) {
            return Err(Error::new("`gcr` cannot be the base of `gcr`, nor can a clusterer that uses it"));
        }
        let outside = Outside;
        let nested = Nested { r#use: self.component.clone(), params: self.params.clone() };
        let made = nested.create("base", services);
        drop(outside);
        made
    }
}
