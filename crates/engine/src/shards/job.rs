//! What is to be done with examples, the same for everybody who takes part.

use std::path::PathBuf;

use compflow_api::Space;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::plan::seed::derive_seed;

/// A component and its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Its name.
    pub name: String,
    /// Its parameters, a JSON object.
    #[serde(default = "nothing")]
    pub params: serde_json::Value,
}

impl Used {
    /// A component with default parameters.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), params: nothing() }
    }
}

fn nothing() -> serde_json::Value {
    serde_json::Value::Object(serde_json::Map::new())
}

/// What is to be done with examples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What clusters them.
    pub clusterer: Used,
    /// The composition function.
    #[serde(default)]
    pub composer: Option<Used>,
    /// Where distances are taken.
    #[serde(default)]
    pub space: Space,
    /// The largest composition considered.
    pub degree: usize,
    /// The seed of all randomness; see [`seed`].
    #[serde(default)]
    pub seed: u64,
    /// What reads files.
    pub loader: Used,
    /// The column of embeddings.
    pub embedding: String,
    /// The column of identifiers for labels; rows are numbered if it is not given.
    #[serde(default)]
    pub id: Option<String>,
    /// The column that says how much each example counts.
    #[serde(default)]
    pub weight: Option<String>,
    /// The column of sets that are known beforehand.
    #[serde(default)]
    pub known: Option<String>,
    /// What stands between the labels of one text in that column.
    #[serde(default)]
    pub split: Option<String>,
    /// The folder that paths in parameters are relative to.
    pub folder: PathBuf,
}

impl Job {
    /// As bytes, to be sent to others.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|error| Error::request(format!("these bytes are no job: {error}")))
    }
}

/// The seed that a run of a pipeline gives to a clusterer on a trial, so that a job finds what the run does.
pub fn seed(pipeline: u64, data: &str, trial: u32, clusterer: &str) -> u64 {
    derive_seed(pipeline, &[data, &trial.to_string(), clusterer])
}
