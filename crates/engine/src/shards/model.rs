//! What was found in shards.

use compflow_api::Clustering;

use super::job::Job;
use crate::error::{Error, Result};

/// First bytes of a model; the number changes when what follows does.
const HEADER: &[u8] = b"compflow model 1\n";

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
}

impl Model {
    /// As bytes, to be kept or sent to others. The same model is the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let parts = (self.job.to_bytes(), self.rows, self.dim, &self.clustering);
        let payload = postcard::to_stdvec(&parts).unwrap_or_default();
        [HEADER, blake3::hash(&payload).as_bytes(), &payload].concat()
    }

    /// From bytes.
    ///
    /// # Errors
    /// If they are none, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::request("these bytes are no model of this version of compflow, or damaged");
        let rest = bytes.strip_prefix(HEADER).ok_or_else(damaged)?;
        let (hash, payload) = rest.split_at_checked(blake3::OUT_LEN).ok_or_else(damaged)?;
        if blake3::hash(payload).as_bytes() != hash {
            return Err(damaged());
        }
        let (job, rows, dim, clustering): (Vec<u8>, u64, usize, Clustering) =
            postcard::from_bytes(payload).map_err(|_| damaged())?;
        Ok(Self { job: Job::from_bytes(&job)?, rows, dim, clustering })
    }
}
