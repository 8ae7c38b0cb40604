//! `cargo bench -p compflow-ckm`: what time and SSD depend on.
//!
//! Examples are noisy compositions of drawn prototypes, p = 32, by a bilinear function with drawn weights, and vectors
//! are normalised. Tables on standard output: optimisers and starts (n = 15,000, k = 5, d = 2, 100 restarts, mean over
//! several data sets), time by n and by the number of compositions, a round beside one matrix product of the same shape,
//! and many singletons. `-- starts`, `-- n`, `-- sets`, `-- gemm` and `-- many` print one of them, `-- n large` goes on to
//! n = 10⁷.

use std::hint::black_box;
use std::time::Instant;

use compflow_api::{
    Clusterer, Component, Diagnostics, Embeddings, Normalize, Result, Services, Sets, Space, Task,
};
use compflow_ckm::{Ckm, Init, Optimizer, Params, Start};
use compflow_kernels::testing::composers::Plain;
use compflow_kernels::testing::examples;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2};

const DIM: usize = 32;
const THREADS: usize = 2;

/// `n` examples around the compositions of at most `degree` of `k` prototypes.
fn plant(g: &Plain, n: usize, k: usize, degree: usize, noise: f32, seed: u64) -> Vec<f32> {
    let prototypes: Vec<f64> = examples::uniform(k, DIM, seed).iter().map(|&value| f64::from(value)).collect();
    let sets = Sets::all_up_to(k, degree);
    let centres: Vec<Vec<f64>> = sets.iter().map(|set| g.compose_set(&prototypes, DIM, set)).collect();
    let mut values = examples::uniform(n, DIM, seed + 1000);
    for (row, values) in values.chunks_exact_mut(DIM).enumerate() {
        let centre = &centres[row % sets.len()];
        values.iter_mut().zip(centre).for_each(|(value, &centre)| *value = centre as f32 + noise * *value);
    }
    values
}

/// Seconds, and what came out.
fn run(g: &Plain, values: &[f32], degree: usize, params: &Params) -> Result<(f64, Diagnostics)> {
    run_with(THREADS, g, values, degree, params)
}

fn run_with(
    threads: usize,
    g: &Plain,
    values: &[f32],
    degree: usize,
    params: &Params,
) -> Result<(f64, Diagnostics)> {
    let services = Services { threads, ..Services::none() };
    let space = Space { normalize: Normalize::L2, ..Space::default() };
    let task = Task { space, degree, composer: Some(g), ..Task::new(Embeddings::new(values, DIM)) };
    let ckm = Ckm::new(params.clone(), &services)?;
    let start = Instant::now();
    let found = ckm.cluster(&task, &services)?;
    Ok((start.elapsed().as_secs_f64(), found.diagnostics))
}

fn random() -> Init {
    Init::Start(Start::Random)
}

/// A fixed number of rounds, so that only the size differs.
fn fixed(k: usize) -> Params {
    Params { restarts: 5, max_iter: 10, tol: 0.0, prune: false, refine: false, init: random(), ..Params::new(k) }
}

fn main() -> Result<()> {
    let g = Plain::bilinear(DIM, 1);
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let wanted = |name: &str| named.is_empty() || named.iter().any(|wanted| wanted == name);
    if wanted("starts") {
        optimizers_and_starts(&g)?;
    }
    if wanted("n") {
        examples_by_number(&g, if named.iter().any(|name| name == "large") { 7 } else { 6 })?;
    }
    if wanted("sets") {
        compositions_by_number(&g)?;
    }
    if wanted("gemm") {
        round_beside_product(&g)?;
    }
    if wanted("many") {
        many_singletons()?;
    }
    Ok(())
}

fn optimizers_and_starts(g: &Plain) -> Result<()> {
    println!("| n = 15,000, k = 5, d = 2, 100 restarts | seconds | mean final SSD |\n|---|---|---|");
    let sets: Vec<Vec<f32>> = (0..3).map(|seed| plant(g, 15_000, 5, 2, 1.0, seed)).collect();
    for (name, params) in [
        ("lbfgs, plusplus", Params::new(5)),
        ("lbfgs, random", Params { init: random(), ..Params::new(5) }),
        ("lbfgs, plusplus, none given up", Params { prune: false, ..Params::new(5) }),
        ("lbfgs, random, none given up", Params { init: random(), prune: false, ..Params::new(5) }),
        ("lbfgs, plusplus, one restart", Params { restarts: 1, ..Params::new(5) }),
        ("lbfgs, random, one restart", Params { restarts: 1, init: random(), ..Params::new(5) }),
        ("adam, plusplus", Params { optimizer: Optimizer::Adam, ..Params::new(5) }),
        ("adam, random (authors-code)", Params { optimizer: Optimizer::Adam, init: random(), ..Params::new(5) }),
    ] {
        let (mut seconds, mut ssd) = (0.0, 0.0);
        for values in &sets {
            let (took, found) = run(g, values, 2, &params)?;
            (seconds, ssd) = (seconds + took / sets.len() as f64, ssd + found.objective / sets.len() as f64);
        }
        println!("| {name} | {seconds:.2} | {ssd:.3} |");
    }
    Ok(())
}

fn examples_by_number(g: &Plain, largest: u32) -> Result<()> {
    println!(
        "\n| n (k = 5, d = 2, 5 restarts × 10 rounds) | seconds | ns per example, restart and round |\n|---|---|---|"
    );
    for power in 4..=largest {
        let n = 10usize.pow(power);
        let (seconds, found) = run(g, &plant(g, n, 5, 2, 1.0, 9), 2, &fixed(5))?;
        println!("| {n} | {seconds:.3} | {:.1} |", 1e9 * seconds / (n as u64 * 5 * found.iterations) as f64);
    }
    Ok(())
}

fn compositions_by_number(g: &Plain) -> Result<()> {
    println!(
        "\n| k, d (n = 100,000) | compositions | seconds | ns per example, composition, restart and round |\n|---|---|---|---|"
    );
    for (k, degree) in [(5, 1), (5, 2), (5, 3), (10, 2), (10, 3), (20, 2), (20, 3)] {
        let (n, sets) = (100_000, Sets::all_up_to(k, degree).len());
        let (seconds, found) = run(g, &plant(g, n, k, degree, 1.0, 9), degree, &fixed(k))?;
        let per = 1e9 * seconds / (n * sets * 5) as f64 / found.iterations as f64;
        println!("| {k}, {degree} | {sets} | {seconds:.3} | {per:.2} |");
    }
    Ok(())
}

/// One thread; what both take is measured by turns, and the shortest of several times counts, so that a busy machine
/// changes their ratio little. Two runs that differ by some rounds tell what a round takes.
fn round_beside_product(g: &Plain) -> Result<()> {
    let (n, sets) = (1_000_000, 15);
    let values = plant(g, n, 5, 2, 1.0, 9);
    let rows = ArrayView2::from_shape((n, DIM), &values)?;
    let centres = Array2::from_shape_fn((DIM, sets), |(axis, set)| values[set * DIM + axis]);
    let mut products = Array2::zeros((n, sets));
    let rounds = |max_iter| Params { restarts: 1, max_iter, ..fixed(5) };
    let (mut product, mut few, mut many, mut between) = (f64::INFINITY, f64::INFINITY, f64::INFINITY, 0);
    for _ in 0..5 {
        let start = Instant::now();
        general_mat_mul(1.0, &rows, &centres, 0.0, &mut products);
        black_box(&products);
        product = product.min(start.elapsed().as_secs_f64());
        let (seconds, two) = run_with(1, g, &values, 2, &rounds(2))?;
        few = few.min(seconds);
        let (seconds, ten) = run_with(1, g, &values, 2, &rounds(10))?;
        many = many.min(seconds);
        between = ten.iterations - two.iterations;
    }
    let round = (many - few) / between as f64;
    println!("\n| n = 1,000,000, k = 5, d = 2, one thread | ms |\n|---|---|");
    println!("| product with {sets} centres (ndarray) | {:.1} |", 1e3 * product);
    println!("| a round, of {between} | {:.1} |", 1e3 * round);
    println!("| ratio | {:.2} |", round / product);
    Ok(())
}

fn many_singletons() -> Result<()> {
    println!(
        "\n| n = 15,000, d = 2, 100 restarts | k | seconds | SSD beside that of the noise |\n|---|---|---|---|"
    );
    for (name, g) in [("sum", Plain::Sum), ("max", Plain::Max)] {
        for k in [20, 50] {
            let values = plant(&g, 15_000, k, 2, 0.5, 3);
            let task = Task { degree: 2, composer: Some(&g), ..Task::new(Embeddings::new(&values, DIM)) };
            let noise = values.len() as f64 * 0.25 / 3.0;
            for (search, params) in
                [("swaps", Params::new(k)), ("restarts only", Params { refine: false, ..Params::new(k) })]
            {
                let services = Services { threads: THREADS, ..Services::none() };
                let start = Instant::now();
                let found = Ckm::new(params, &services)?.cluster(&task, &services)?.diagnostics.objective;
                println!(
                    "| {name}, {search} | {k} | {:.1} | {:.3} |",
                    start.elapsed().as_secs_f64(),
                    found / noise
                );
            }
        }
    }
    Ok(())
}
