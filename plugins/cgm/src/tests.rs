//! Tests of the whole clusterer, by subject.

mod hostile;
mod invariance;
mod likelihood;
mod recovery;
mod seeds;

use compflow_api::{Clusterer, Clustering, Embeddings, Normalize, Result, Services, Sets, Space, Task};
use compflow_kernels::testing::composers::Plain;
use compflow_kernels::testing::examples;
use compflow_kernels::testing::planted::{Given, Planted, cri, turned};

use crate::{Auto, Cgm, Params, Residual, Shrinkage};

const AUTO: Residual = Residual::Auto(Auto::Auto);

/// `each` examples around every composition of at most `degree` of `k` prototypes. The noise has another size in every
/// dimension: `noise` in the first, and `stretch` times as much from one to the next.
#[expect(clippy::too_many_arguments, reason = "a test names each")]
fn plant(
    g: Plain,
    k: usize,
    degree: usize,
    dim: usize,
    each: usize,
    noise: f64,
    stretch: f64,
    seed: u64,
) -> Planted {
    Planted::new(g, (k, degree, dim), each, |axis| noise * stretch.powi(axis as i32), seed)
}

/// Clusters what was planted.
trait Found {
    fn cluster(&self, params: Params) -> Clustering;
}

impl Found for Planted {
    fn cluster(&self, params: Params) -> Clustering {
        cluster(&self.task(Normalize::None), params, &self.start, &Services::none()).unwrap()
    }
}

/// From these singletons.
fn cluster(task: &Task<'_>, params: Params, start: &[f32], services: &Services<'_>) -> Result<Clustering> {
    params.check()?;
    let found = Cgm::beginning_with(params, Box::new(Given(start.to_vec()))).cluster(task, services)?;
    if found.assignments.iter().all(|set| !set.is_empty()) {
        found.check(task)?;
    }
    Ok(found)
}

fn scalar(found: &Clustering, name: &str) -> f64 {
    found.scalars.iter().find(|(scalar, _)| scalar == name).unwrap().1
}

fn resolved(found: &Clustering, name: &str) -> f64 {
    found.resolved.iter().find(|(parameter, _)| parameter == name).unwrap().1.parse().unwrap()
}
