//! Tests of the whole clusterer, by subject.

mod hostile;
mod invariance;
mod likelihood;
mod recovery;

use compflow_api::{
    Clusterer, Clustering, Composer, Embeddings, Normalize, Result, Services, Sets, Singletons, Space, Task,
};
use compflow_kernels::testing::composers::Plain;
use compflow_kernels::testing::examples;

use crate::{Auto, Cgm, Params, Residual, Shrinkage};

const AUTO: Residual = Residual::Auto(Auto::Auto);

/// Examples and the sets they come from.
struct Planted {
    values: Vec<f32>,
    truth: Sets,
    dim: usize,
    degree: usize,
    g: Plain,
    /// Roughly the prototypes.
    start: Vec<f32>,
}

/// `each` examples around every composition of at most `degree` of `k` prototypes, interleaved. The noise is uniform and
/// has another size in every dimension: `noise` in the first, and `stretch` times as much from one to the next.
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
    let prototypes: Vec<f64> =
        examples::uniform(k, dim, seed).iter().map(|&value| 2.0 * f64::from(value)).collect();
    let sets = Sets::all_up_to(k, degree);
    let centres: Vec<Vec<f64>> = sets.iter().map(|set| g.compose_set(&prototypes, dim, set)).collect();
    let drawn = examples::uniform(each * sets.len(), dim, seed + 1000);
    let (mut values, mut truth) = (Vec::new(), Sets::default());
    for (row, drawn) in drawn.chunks_exact(dim).enumerate() {
        let at = row % sets.len();
        for (axis, (centre, &drawn)) in centres[at].iter().zip(drawn).enumerate() {
            values.push((centre + noise * stretch.powi(axis as i32) * f64::from(drawn)) as f32);
        }
        truth.push(&sets[at]);
    }
    let moved = examples::uniform(k, dim, seed + 2000);
    let start = prototypes.iter().zip(moved).map(|(&value, moved)| value as f32 + 0.3 * moved).collect();
    Planted { values, truth, dim, degree, g, start }
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

/// Says that these are the singletons.
struct Given(Vec<f32>);

impl Clusterer for Given {
    fn cluster(&self, task: &Task<'_>, _: &Services<'_>) -> Result<Clustering> {
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        let numbers = (0..(self.0.len() / dim) as u32).collect();
        let singletons = Singletons { numbers, vectors: self.0.clone() };
        Ok(Clustering { singletons, ..Clustering::from_labels(&vec![0; n]) })
    }
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

fn scalar(found: &Clustering, name: &str) -> f64 {
    found.scalars.iter().find(|(scalar, _)| scalar == name).unwrap().1
}

fn resolved(found: &Clustering, name: &str) -> f64 {
    found.resolved.iter().find(|(parameter, _)| parameter == name).unwrap().1.parse().unwrap()
}
