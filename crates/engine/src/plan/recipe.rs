//! Components that are known to accept their parameters.

use std::path::PathBuf;

use compflow_api::{Flags, ForeignComposer, Kind, Space};

use super::shared::{PlannedEvaluator, Shared};
use crate::plugin::factory::Factory;

/// A component with its parameters as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) params: String,
    /// Changes whenever what the component computes might.
    pub(crate) key: String,
    pub(crate) flags: Flags,
    /// The further columns that it wants.
    pub(crate) columns: Vec<String>,
    /// The files that it may read at any time.
    pub(crate) inputs: Vec<PathBuf>,
}

/// What is the same for all cells of a run.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) degree: usize,
    pub(crate) space: Space,
    pub(crate) composer: Option<Shared<ForeignComposer>>,
    pub(crate) evaluators: Vec<PlannedEvaluator>,
    /// Whether memberships are kept.
    pub(crate) memberships: bool,
    pub(crate) threads: usize,
    pub(crate) memory: u64,
}

impl Recipe {
    /// Makes an instance.
    ///
    /// # Errors
    /// Whatever the component says.
    pub(crate) fn make(&self, factory: &Factory) -> compflow_api::Result<compflow_api::Instance> {
        let created = factory.create(self.kind, &self.name, &self.params, "")?;
        // Results are kept under the content that was there when the run was planned.
        if created.key != self.key {
            let text = format!("a file that {} `{}` reads has changed since the run began", self.kind, self.name);
            return Err(compflow_api::Error::data(text));
        }
        Ok(created.instance)
    }
}
