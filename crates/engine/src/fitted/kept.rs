//! What remains of a fit, and its bytes.

use serde::{Deserialize, Serialize};

use crate::assign::Cell;
use crate::error::{Error, Result};
use crate::results::CellTables;
use crate::run::Outcome;
use crate::run::cache::Sort;

/// The number changes when [`Kept`] does.
const FITTED: Sort = Sort { ending: "fitted", header: "compflow fitted ", version: "1\n" };

/// What remains of a fit when the data is gone.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Under what a run keeps the cell.
    pub(super) key: String,
    pub(super) place: Cell,
    /// Examples and dimensions.
    pub(super) shape: (usize, usize),
    pub(super) outcome: Outcome,
    /// The clusters, with a point for each, or densities.
    pub(super) found: CellTables,
    /// From every example to its cluster's point.
    pub(super) distances: Vec<f32>,
    /// Whether the clusterer composes unions.
    pub(super) composes: bool,
    pub(super) params: String,
    pub(super) names: Vec<String>,
}

impl Kept {
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        FITTED.bytes("", self).map_err(|error| Error::run(error.to_string()))
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let text = "these bytes are no fitted clusterer of this version of compflow, or they are damaged";
        FITTED.value("", bytes).ok_or_else(|| Error::request(text))
    }
}
