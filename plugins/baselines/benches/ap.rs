//! `cargo bench -p compflow-baselines --bench ap`: seconds for a hundred iterations on three thousand examples.
//!
//! Twenty overlapping groups; no run may end early. A number of threads as argument runs with just that many, for
//! measuring memory from outside.

use std::time::Instant;

use compflow_api::{Clusterer, Component, Embeddings, Services, Task};
use compflow_baselines::{Ap, ApParams};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn main() -> compflow_api::Result<()> {
    let (n, dim, groups) = (3000, 32, 20);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let centres: Vec<f32> = (0..groups * dim).map(|_| rng.random_range(-1.0..1.0)).collect();
    let values: Vec<f32> =
        (0..n * dim).map(|at| centres[at / dim % groups * dim + at % dim] + rng.random_range(-1.0..1.0)).collect();
    let task = Task::new(Embeddings::new(&values, dim));
    let chosen = std::env::args().find_map(|argument| argument.parse().ok());
    for threads in chosen.map_or(vec![1, 2], |threads| vec![threads]) {
        let services = Services { threads, ..Services::none() };
        let params = ApParams { max_iter: 100, convergence_iter: 1000, ..ApParams::default() };
        let ap = Ap::new(params, &services)?;
        let start = Instant::now();
        let found = ap.cluster(&task, &services)?;
        let seconds = start.elapsed().as_secs_f64();
        let (clusters, iterations) = (found.clusters.len(), found.diagnostics.iterations);
        println!("{threads} threads: {seconds:.3} s, {iterations} iterations, {clusters} clusters");
    }
    Ok(())
}
