//! Composing outside a clusterer, as clusterers do.

use compflow_api::{Composer, Embeddings, ForeignComposer, Services, Sets, Space, Task};

use super::resources::cores;
use super::shared::Shared;
use crate::error::Result;
use crate::plugin::factory::Factory;
use crate::plugin::services::ComponentHost;

/// Composes vectors (unnormalised) by sets of them into points of the space. Sets of one need no composer.
///
/// # Errors
/// What the composer says, or that there is none.
pub(crate) fn compose_sets(
    composer: Option<&Shared<ForeignComposer>>,
    factory: &Factory,
    space: Space,
    rows: Embeddings<'_>,
    sets: &Sets,
) -> Result<Vec<f32>> {
    let composer = composer.map(|shared| shared.get(factory)).transpose()?;
    let composer = composer.as_deref().map(|composer| composer as &dyn Composer);
    let host = ComponentHost::new(factory, "composing");
    let services = Services { host: &host, threads: cores(), memory: factory.memory, ..Services::none() };
    let task = Task { space, composer, ..Task::new(rows) };
    Ok(task.compose_sets(rows, sets, &services)?)
}
