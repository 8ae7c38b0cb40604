//! What a fit was made from, for [assigning](crate::assign): while the data is there, and afterwards.

use compflow_api::{Embeddings, Flags, Level, Sets, Space};

use super::kept::Kept;
use crate::assign::{Cell as Place, Examples, Origin};
use crate::error::{Error, Result};
use crate::pipeline::Pipeline;
use crate::plan::Plan;
use crate::plan::cell::Cell;
use crate::plan::checker::Checker;
use crate::plan::compose::compose_sets;
use crate::plugin::factory::Factory;
use crate::run::Outcome;

/// A cell that was just computed, with its data.
pub(super) struct InMemory<'a> {
    pub(super) plan: &'a Plan,
    pub(super) cell: Cell,
    pub(super) outcome: &'a Outcome,
}

impl InMemory<'_> {
    pub(super) fn composes_unions(&self) -> bool {
        let flags = self.cell.setup(self.plan).recipe.flags;
        flags.contains(Flags::NEEDS_COMPOSER) || flags.contains(Flags::NEEDS_GRADIENTS)
    }
}

impl Origin for InMemory<'_> {
    fn space(&self) -> Space {
        self.plan.setting.space
    }

    fn degree(&self) -> usize {
        self.plan.setting.degree
    }

    fn has_composer(&self) -> bool {
        self.plan.setting.composer.is_some()
    }

    fn composes(&self, _: &Place) -> Option<bool> {
        Some(self.composes_unions())
    }

    fn compose(&self, rows: Embeddings<'_>, sets: &Sets) -> Result<Vec<f32>> {
        let setting = &self.plan.setting;
        compose_sets(setting.composer.as_ref(), &self.plan.factory, setting.space, rows, sets)
    }

    fn memory(&self) -> u64 {
        self.plan.factory.memory
    }

    fn log(&self, level: Level, about: &str, text: &str) {
        self.plan.factory.observer.log(level, about, text);
    }

    fn examples(&self, _: &Place) -> Result<Examples> {
        let embeddings = self.cell.trial(self.plan).embeddings.clone();
        if embeddings.is_empty() {
            return Err(Error::request("a method that is known by its examples cannot read them batch by batch"));
        }
        Ok(Examples { embeddings, dim: self.plan.data[self.cell.data].dataset.dim })
    }

    fn assignments(&self, _: &Place) -> Result<Sets> {
        Ok(self.outcome.clustering.assignments.clone())
    }

    fn distances(&self, _: &Place) -> Result<Vec<f32>> {
        // Of those that belong to nothing there is none.
        Ok(self.outcome.distances.iter().copied().filter(|distance| !distance.is_nan()).collect())
    }
}

/// A cell whose data is gone.
pub(super) struct Remembered<'a> {
    pub(super) kept: &'a Kept,
    pub(super) pipeline: &'a Pipeline,
    pub(super) factory: Factory,
}

impl Origin for Remembered<'_> {
    fn space(&self) -> Space {
        self.pipeline.contents.space
    }

    fn degree(&self) -> usize {
        self.pipeline.contents.degree
    }

    fn has_composer(&self) -> bool {
        self.pipeline.contents.composer.is_some()
    }

    fn composes(&self, _: &Place) -> Option<bool> {
        Some(self.kept.composes)
    }

    fn compose(&self, rows: Embeddings<'_>, sets: &Sets) -> Result<Vec<f32>> {
        let needed = sets.iter().any(|set| set.len() > 1);
        let used = self.pipeline.contents.composer.as_ref().filter(|_| needed);
        let mut problems = Vec::new();
        let variables = &self.pipeline.variables;
        let mut checker = Checker { factory: &self.factory, variables, problems: &mut problems };
        let composer = used.and_then(|used| checker.composer(used));
        if !problems.is_empty() {
            return Err(Error::problems(problems, &self.pipeline.document.sources));
        }
        compose_sets(composer.as_ref(), &self.factory, self.space(), rows, sets)
    }

    fn memory(&self) -> u64 {
        self.factory.memory
    }

    fn log(&self, level: Level, about: &str, text: &str) {
        self.factory.observer.log(level, about, text);
    }

    fn examples(&self, place: &Place) -> Result<Examples> {
        Err(Error::request(format!("the examples of {} are not kept", place.about())))
    }

    fn assignments(&self, _: &Place) -> Result<Sets> {
        Ok(self.kept.outcome.clustering.assignments.clone())
    }

    fn distances(&self, _: &Place) -> Result<Vec<f32>> {
        Ok(self.kept.distances.clone())
    }
}
