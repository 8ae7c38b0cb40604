//! Instances that cells share.

use std::sync::{Arc, Mutex, PoisonError};

use compflow_api::{Error, Flags, ForeignEvaluator, Instance, Metric, Result};

use super::recipe::Recipe;
use crate::observer::Observer;
use crate::plugin::factory::Factory;

/// An instance that all cells use, so that what it reads when it is made is read once. After a cell failed, it is made
/// anew: one that panicked is not used again. Cells that use it at the same moment fail with it.
pub(crate) struct Shared<T> {
    pub(crate) recipe: Recipe,
    instance: Mutex<Option<Arc<T>>>,
    /// Who is told when it is ended, and its full name.
    observer: Arc<dyn Observer>,
    name: String,
}

impl<T> std::fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("recipe", &self.recipe).finish_non_exhaustive()
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        self.discard();
    }
}

impl<T> Shared<T> {
    /// Lets go of an instance that something failed with, or that nobody needs any more.
    pub(crate) fn discard(&self) {
        let _calling = self.observer.calling("its end", &self.name);
        *self.instance.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl<T: TryFrom<Instance, Error = Error>> Shared<T> {
    pub(crate) fn new(recipe: Recipe, instance: T, factory: &Factory) -> Self {
        let name = factory.full_name(recipe.kind, &recipe.name);
        let instance = Mutex::new(Some(Arc::new(instance)));
        Self { recipe, instance, observer: factory.observer.clone(), name }
    }

    /// The instance.
    ///
    /// # Errors
    /// If it must be made anew, and the component refuses.
    pub(crate) fn get(&self, factory: &Factory) -> Result<Arc<T>> {
        let mut instance = self.instance.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(instance) = &*instance {
            return Ok(instance.clone());
        }
        let made = Arc::new(T::try_from(self.recipe.make(factory)?)?);
        *instance = Some(made.clone());
        Ok(made)
    }
}

/// An `[[evaluator]]` table.
#[derive(Debug)]
pub struct PlannedEvaluator {
    pub(crate) shared: Shared<ForeignEvaluator>,
    /// What it reports.
    pub(crate) metrics: Vec<Metric>,
}

impl PlannedEvaluator {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.recipe.name
    }

    /// Whether it compares with the true sets.
    pub(crate) fn needs_truth(&self) -> bool {
        self.shared.recipe.flags.contains(Flags::NEEDS_TRUTH)
    }

    /// What it reports, the main metric first.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }
}
