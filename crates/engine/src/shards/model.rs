//! What was found in shards.

use compflow_api::Clustering;

use super::job::Job;
use crate::error::{Error, Result};
use crate::run::cache::Sort;

/// The number changes when what follows does.
const MODEL: Sort = Sort { ending: "model", header: "compflow model ", version: "2\n" };

/// What was found: clusters, without the examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// What was to be done.
    pub job: Job,
    /// How many examples it was found in.
    pub rows: u64,
    /// How long each is.
    pub dim: usize,
    /// Numbered as a run does; no assignments.
    pub clustering: Clustering,
    /// What the user calls the first of the singletons.
    pub names: Vec<String>,
}

impl Model {
    /// As bytes, to be kept or sent to others. The same model is the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let parts = (self.job.to_bytes(), self.rows, self.dim, &self.clustering, &self.names);
        MODEL.bytes("", &parts).unwrap_or_default()
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are none, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let text = "these bytes are no model of this version of compflow, or damaged";
        let parts = MODEL.value::<(Vec<u8>, _, _, _, _)>("", bytes);
        let (job, rows, dim, clustering, names) = parts.ok_or_else(|| Error::request(text))?;
        Ok(Self { job: Job::from_bytes(&job)?, rows, dim, clustering, names })
    }
}
