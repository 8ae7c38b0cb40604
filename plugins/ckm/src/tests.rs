//! Tests of the whole clusterer, by subject.

mod authors;
mod invariance;
mod many;
mod recovery;
mod refusal;
mod weights;

use compflow_api::{
    Clusterer, Clustering, Component, Composer, Embeddings, Normalize, Registration, Result, Services, Sets,
    Space, Task,
};
use compflow_kernels::testing::composers::Plain;
use compflow_kernels::testing::examples;

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

/// Examples and the sets they come from.
struct Planted {
    values: Vec<f32>,
    truth: Sets,
    dim: usize,
    degree: usize,
    g: Plain,
}

/// `each` examples around every composition of at most `degree` of `k` prototypes, interleaved.
fn plant(g: Plain, k: usize, degree: usize, dim: usize, each: usize, noise: f64, seed: u64) -> Planted {
    let prototypes: Vec<f64> =
        examples::uniform(k, dim, seed).iter().map(|&value| 2.0 * f64::from(value)).collect();
    let sets = Sets::all_up_to(k, degree);
    let centres: Vec<Vec<f64>> = sets.iter().map(|set| g.compose_set(&prototypes, dim, set)).collect();
    let drawn = examples::uniform(each * sets.len(), dim, seed + 1000);
    let (mut values, mut truth) = (Vec::new(), Sets::default());
    for (row, drawn) in drawn.chunks_exact(dim).enumerate() {
        let at = row % sets.len();
        values.extend(centres[at].iter().zip(drawn).map(|(c, &drawn)| (c + noise * f64::from(drawn)) as f32));
        truth.push(&sets[at]);
    }
    Planted { values, truth, dim, degree, g }
}

impl Planted {
    fn task(&self, normalize: Normalize) -> Task<'_> {
        Task {
            space: Space { normalize, ..Space::default() },
            degree: self.degree,
            composer: Some(&self.g as &dyn Composer),
            ..Task::new(Embeddings::new(&self.values, self.dim))
        }
    }

    fn cluster(&self, params: Params, services: &Services<'_>) -> Result<Clustering> {
        cluster(&self.task(Normalize::None), params, services)
    }
}

fn cluster(task: &Task<'_>, params: Params, services: &Services<'_>) -> Result<Clustering> {
    let clustering = Ckm::new(params, services)?.cluster(task, services)?;
    clustering.check(task)?;
    Ok(clustering)
}

fn contains(a: &[u32], b: &[u32]) -> bool {
    b.iter().all(|member| a.contains(member))
}

/// The compositional Rand index, as it is defined: the part of ordered pairs on whose containment both agree.
fn cri(found: &Sets, truth: &Sets) -> f64 {
    let (n, mut agreed) = (truth.len(), 0);
    for a in 0..n {
        for b in (0..n).filter(|&b| b != a) {
            agreed += usize::from(contains(&found[a], &found[b]) == contains(&truth[a], &truth[b]));
        }
    }
    agreed as f64 / (n * (n - 1)) as f64
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
