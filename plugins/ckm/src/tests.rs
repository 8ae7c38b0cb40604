//! Tests of the whole clusterer, by subject.

mod authors;
mod invariance;
mod many;
mod recovery;
mod refusal;
mod seeds;
mod weights;

use compflow_api::{
    Clusterer, Clustering, Component, Composer, Embeddings, Normalize, Registration, Result, Services, Sets, Task,
};
use compflow_kernels::testing::composers::Plain;
use compflow_kernels::testing::examples;
use compflow_kernels::testing::planted::{Given, Planted, cri, turned};

use crate::Ckm;
use crate::params::{Init, Params, Start};

/// Ten restarts from random examples, to the end.
fn params(k: usize) -> Params {
    Params { restarts: 10, tol: 0.0, max_iter: 300, init: Init::Start(Start::Random), ..Params::new(k) }
}

/// As a pipeline's parameters are read.
pub(crate) fn read(params: &str) -> Params {
    let component = Registration::clusterer::<Ckm>().component().unwrap();
    serde_json::from_str(&component.effective(params)).unwrap()
}

/// `each` examples around every composition of at most `degree` of `k` prototypes.
fn plant(g: Plain, k: usize, degree: usize, dim: usize, each: usize, noise: f64, seed: u64) -> Planted {
    Planted::new(g, (k, degree, dim), each, |_| noise, seed)
}

/// Clusters what was planted.
trait Found {
    fn cluster(&self, params: Params, services: &Services<'_>) -> Result<Clustering>;
}

impl Found for Planted {
    fn cluster(&self, params: Params, services: &Services<'_>) -> Result<Clustering> {
        cluster(&self.task(Normalize::None), params, services)
    }
}

fn cluster(task: &Task<'_>, params: Params, services: &Services<'_>) -> Result<Clustering> {
    let clustering = Ckm::new(params, services)?.cluster(task, services)?;
    clustering.check(task)?;
    Ok(clustering)
}

/// Σ‖x - c‖² of every example and the centroid of its set.
fn ssd(task: &Task<'_>, clustering: &Clustering) -> f64 {
    let (dim, points) = (task.embeddings.dim(), task.points());
    let squared = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
    };
    let centroid = |set: &[u32]| {
        let at = clustering.clusters.iter().position(|cluster| cluster == set).unwrap();
        &clustering.centroids[at * dim..][..dim]
    };
    clustering.assignments.iter().zip(points.chunks_exact(dim)).map(|(set, x)| squared(x, centroid(set))).sum()
}
