//! `cargo bench -p compflow-baselines`: seconds for twenty iterations on a million examples.
//!
//! One restart from random examples, normally distributed data without structure, so that no run ends early.

use std::time::Instant;

use compflow_api::{Clusterer, Component, Embeddings, Services, Task};
use compflow_baselines::{Init, KMeans, KMeansParams};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn main() -> compflow_api::Result<()> {
    let (n, dim, k) = (1_000_000, 32, 15);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    // The sum of four uniform numbers is near enough to a normal one.
    let values: Vec<f32> = (0..n * dim).map(|_| (0..4).map(|_| rng.random::<f32>() - 0.5).sum()).collect();
    let task = Task::new(Embeddings::new(&values, dim));
    for init in [Init::Random, Init::PlusPlus] {
        let params = KMeansParams { k, restarts: 1, max_iter: 20, tol: 0.0, init };
        for threads in [1, 2] {
            let services = Services { threads, ..Services::none() };
            let kmeans = KMeans::new(params, &services)?;
            let start = Instant::now();
            let found = kmeans.cluster(&task, &services)?.diagnostics;
            let seconds = start.elapsed().as_secs_f64();
            println!("{init:?}, {threads} threads: {seconds:.3} s, {} iterations", found.iterations);
        }
    }
    Ok(())
}
