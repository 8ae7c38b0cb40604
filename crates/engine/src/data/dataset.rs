//! What data is once it has been read: trials of embeddings, true sets and identifiers, and the keys of their content.

use std::sync::atomic::AtomicBool;

use arrow_buffer::ScalarBuffer;
use compflow_api::{Column, Sets, Table};
use serde::{Deserialize, Serialize};

use super::seeds::Seeds;
use super::segments::{Segment, require_apart, segments};
use crate::error::{Error, Result};
use crate::files::hash_parts;
use crate::pipeline::keys::SEGMENT_KEYS;

/// A set of examples, split into trials.
#[derive(Debug)]
pub struct Dataset {
    /// How many numbers an embedding has.
    pub dim: usize,
    /// What the source calls the members of the true sets, by their number.
    pub classes: Vec<String>,
    /// By number.
    pub trials: Vec<Trial>,
    /// Hash of all that was read, but for further columns that only components want: it tells whether the data is that of an earlier run.
    pub content: String,
    /// About how much memory it takes, and took to read.
    pub(crate) bytes: u64,
}

/// The examples that are clustered together.
#[derive(Debug, Serialize, Deserialize)]
pub struct Trial {
    /// As the source counts.
    pub number: u32,
    /// Row-major; empty if the data is read batch by batch. Those that came in one piece are where the loader has them.
    #[serde(skip, default = "no_embeddings")]
    pub embeddings: ScalarBuffer<f32>,
    /// The true sets, if the source has them.
    pub truth: Option<Sets>,
    /// How gladly each example becomes an exemplar, if the source says so.
    pub preferences: Option<Vec<f32>>,
    /// How much each example counts, if the source says so.
    pub weights: Option<Vec<f32>>,
    /// The sets that are known beforehand, if there are any.
    pub seeds: Option<Seeds>,
    /// The further columns that components asked for, by the source's names.
    pub columns: Table,
    /// One for each example.
    pub ids: Ids,
    /// Hash of the embeddings, preferences and weights.
    pub(crate) key: String,
    /// Hash of the preferences and weights alone.
    pub(crate) numbers_key: String,
    /// Hash of the true sets.
    pub(crate) truth_key: String,
    /// Hash of the known sets, without their names; empty if there are none.
    pub(crate) seeds_key: String,
    /// Whether somebody has written into what components are only lent.
    #[serde(skip)]
    pub(crate) damaged: AtomicBool,
}

/// They are handed on by themselves, if at all.
fn no_embeddings() -> ScalarBuffer<f32> {
    Vec::new().into()
}

/// Identifiers as the source has them; row numbers if it has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ids {
    /// All are numbers.
    Numbers(Vec<i64>),
    /// All are texts.
    Texts(Vec<String>),
}

impl Ids {
    /// All of them as texts.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::Numbers(ids) => ids.iter().map(ToString::to_string).collect(),
            Self::Texts(ids) => ids.clone(),
        }
    }

    /// One of them, for people.
    pub(crate) fn shown(&self, at: usize) -> String {
        match self {
            Self::Numbers(ids) => ids[at].to_string(),
            Self::Texts(ids) => ids[at].clone(),
        }
    }
}

impl Trial {
    /// How many examples.
    pub fn size(&self) -> usize {
        match &self.ids {
            Ids::Numbers(ids) => ids.len(),
            Ids::Texts(ids) => ids.len(),
        }
    }

    /// The [`key`](Self::key) of embeddings that have been hashed.
    pub(crate) fn key_of(&self, embeddings: blake3::Hasher) -> String {
        content_key(embeddings, self.preferences.as_deref(), self.weights.as_deref())
    }

    /// Whether everything that components are handed is still what it was when it was read: one that writes into it
    /// changes what all others get.
    pub(crate) fn is_intact(&self) -> bool {
        let mut embeddings = blake3::Hasher::new();
        embeddings.update(bytemuck::cast_slice(&self.embeddings));
        // Embeddings that are not kept cannot be written to.
        let streamed = self.embeddings.is_empty();
        (streamed || self.key_of(embeddings) == self.key)
            && content_key(blake3::Hasher::new(), self.preferences.as_deref(), self.weights.as_deref())
                == self.numbers_key
            && self.truth.as_ref().map(truth_key).unwrap_or_default() == self.truth_key
            && self.seeds.as_ref().map(|seeds| seeds.keys().0).unwrap_or_default() == self.seeds_key
    }

    /// Hash of a column that a component asked for; `None` if it was not read.
    pub(crate) fn column_key(&self, name: &str) -> Option<String> {
        let columns = self.columns(&[name.to_owned()]).ok()?;
        let bytes = postcard::to_stdvec(&columns).ok()?;
        Some(blake3::hash(&bytes).to_hex().to_string())
    }

    /// Where in recordings the examples are.
    ///
    /// # Errors
    /// If the data does not say, or they have no place in time that is their own.
    pub fn segments(&self) -> Result<Vec<Segment>> {
        let segments = segments(&self.columns)?;
        require_apart(&segments, &(0..segments.len()).collect::<Vec<usize>>())?;
        Ok(segments)
    }

    /// The columns that a component asked for, the identifiers among them.
    ///
    /// # Errors
    /// If one was not read.
    pub(crate) fn columns(&self, names: &[String]) -> Result<Table> {
        let column = |name: &String| {
            let column = match (name.as_str(), &self.ids) {
                ("id", Ids::Numbers(ids)) => Some(Column::Integers(ids.clone())),
                ("id", Ids::Texts(ids)) => Some(Column::Texts(ids.clone())),
                _ => self.columns.iter().find(|(known, _)| known == name).map(|(_, column)| column.clone()),
            };
            column
                .map(|column| (name.clone(), column))
                .ok_or_else(|| Error::data(format!("there is no column `{name}`")))
        };
        names.iter().map(column).collect()
    }
}

pub(super) fn content_key(
    mut embeddings: blake3::Hasher,
    preferences: Option<&[f32]>,
    weights: Option<&[f32]>,
) -> String {
    for (what, numbers) in [("preferences", preferences), ("weights", weights)] {
        if let Some(numbers) = numbers {
            embeddings.update(what.as_bytes()).update(bytemuck::cast_slice(numbers));
        }
    }
    embeddings.finalize().to_hex().to_string()
}

pub(super) fn dataset_key(dim: usize, classes: &[String], trials: &[Trial], segments: bool) -> String {
    let mut parts = vec![dim.to_string()];
    parts.extend_from_slice(classes);
    for trial in trials {
        let Trial { number, ids, key, truth_key, seeds, .. } = trial;
        parts.extend([number.to_string(), key.clone(), truth_key.clone()]);
        parts.extend(seeds.as_ref().map(Seeds::keys).into_iter().flat_map(|(sets, names)| [sets, names]));
        if segments {
            parts.extend(SEGMENT_KEYS.iter().flat_map(|name| trial.column_key(name)));
        }
        parts.push(match ids {
            Ids::Numbers(ids) => hash_parts(std::iter::once(bytemuck::cast_slice(ids))),
            Ids::Texts(ids) => hash_parts(ids.iter().map(String::as_bytes)),
        });
    }
    hash_parts(parts.iter().map(String::as_bytes))
}

pub(super) fn truth_key(truth: &Sets) -> String {
    hash_parts([bytemuck::cast_slice(truth.offsets()), bytemuck::cast_slice(truth.values())].into_iter())
}
