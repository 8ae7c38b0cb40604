//! `cargo bench -p compflow-baselines --bench soft`: seconds that `fcm` and `gmm` take for fifty iterations.
//!
//! With an argument, of those whose name contains it. 15,000 examples without structure and no tolerance, so that no run ends early.

use std::time::Instant;

use compflow_api::{Clusterer, Component, Embeddings, Result, Services, Task};
use compflow_baselines::{Covariance, Fcm, FcmParams, Gmm, GmmInit, GmmParams, Variant};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ITERATIONS: usize = 50;

fn main() -> Result<()> {
    let (n, dim, k) = (15_000, 32, 18);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    // The sum of four uniform numbers is near enough to a normal one.
    let values: Vec<f32> = (0..n * dim).map(|_| (0..4).map(|_| rng.random::<f32>() - 0.5).sum()).collect();
    let task = Task::new(Embeddings::new(&values, dim));
    for m in [2.0, 1.2, 1.35] {
        let params = FcmParams { k, m, threshold: None, error: 0.0, max_iter: ITERATIONS, preset: None };
        measure(&format!("fcm, m = {m}"), &Fcm::new(params, &Services::none())?, &task)?;
    }
    for covariance in [Covariance::Full, Covariance::Tied, Covariance::Diag, Covariance::Spherical] {
        for variant in [Variant::Em, Variant::Bayes] {
            let params = GmmParams {
                k,
                variant,
                covariance,
                reg_covar: 1e-6,
                tol: 0.0,
                max_iter: ITERATIONS,
                restarts: 1,
                init: GmmInit::Random,
                threshold: None,
                preset: None,
            };
            let name = format!("gmm, {variant:?}, {covariance:?}");
            measure(&name, &Gmm::new(params, &Services::none())?, &task)?;
        }
    }
    Ok(())
}

/// The median of five runs, for one and two threads.
fn measure(name: &str, clusterer: &dyn Clusterer, task: &Task<'_>) -> Result<()> {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    if !name.contains(&wanted) {
        return Ok(());
    }
    for threads in [1, 2] {
        let mut seconds = Vec::new();
        let mut iterations = 0;
        for _ in 0..5 {
            let start = Instant::now();
            iterations =
                clusterer.cluster(task, &Services { threads, ..Services::none() })?.diagnostics.iterations;
            seconds.push(start.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        println!("{name}, {threads} threads: {:.3} s, {iterations} iterations", seconds[2]);
    }
    Ok(())
}
