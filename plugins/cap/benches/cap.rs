//! `cargo bench -p compflow-cap --bench cap`: what an iteration costs beside summing up all similarities once.
//!
//! Both run on two threads, one after the other, several times; the best of each counts. Words as arguments choose what
//! is measured: `ratio` (also if there are none), `exact` (all of 1500 examples with pairs and of 250 with triples),
//! `budget` (1500 examples in 1 GB, beside 8 GB), `many` (15,000 by candidates and by a subset).

use std::time::Instant;

use compflow_api::{Clusterer, Component, Composer, Embeddings, Result, Services, Task};
use compflow_cap::{Cap, Params, PerExample, Preference};
use compflow_kernels::workers::Workers;
use pulp::{Arch, NullaryFnOnce};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const DIM: usize = 32;
const THREADS: usize = 2;

struct Sum;

impl Composer for Sum {
    fn compose(&self, _: usize, left: &[f32], right: &[f32], out: &mut [f32], _: &Services<'_>) -> Result<()> {
        out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left + right);
        Ok(())
    }
}

/// Five classes and all unions of up to `degree` of them, with noise.
fn data(n: usize, degree: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let singles: Vec<f32> = (0..5 * DIM).map(|_| rng.random_range(-1.0..1.0)).collect();
    let sets = compflow_api::Sets::all_up_to(5, degree);
    let centres: Vec<f32> = sets
        .iter()
        .flat_map(|set| (0..DIM).map(|axis| set.iter().map(|&at| singles[at as usize * DIM + axis]).sum::<f32>()))
        .collect();
    (0..n * DIM).map(|at| centres[at / DIM % sets.len() * DIM + at % DIM] + rng.random_range(-0.4..0.4)).collect()
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn best(times: usize, mut work: impl FnMut() -> f64) -> f64 {
    (0..times).map(|_| work()).fold(f64::INFINITY, f64::min)
}

/// Clusters with a preference that suits the data; no run may end early if `iterations` are given.
fn cluster(
    values: &[f32],
    degree: usize,
    params: Params,
    iterations: Option<usize>,
    memory: u64,
) -> (f64, String) {
    let preference = Preference::PerExample(PerExample { per_example: -0.2 });
    let params = Params { preference, ..params };
    let params = match iterations {
        Some(max_iter) => Params { max_iter, fixed_iterations: true, ..params },
        None => params,
    };
    run(values, degree, params, memory)
}

fn run(values: &[f32], degree: usize, params: Params, memory: u64) -> (f64, String) {
    let task = Task { degree, composer: Some(&Sum), ..Task::new(Embeddings::new(values, DIM)) };
    let services = Services { threads: THREADS, memory, ..Services::none() };
    let cap = Cap::new(params, &services).expect("the parameters are good");
    let mut said = String::new();
    let time = seconds(|| {
        let found = cap.cluster(&task, &services).expect("the task is good");
        let singletons = found.clusters.iter().filter(|set| set.len() == 1).count();
        said = format!("{} iterations, {singletons} singletons", found.diagnostics.iterations);
    });
    (time, said)
}

/// The sum of some numbers, in as many additions at a time as the processor has room for.
struct Total<'a>(&'a [f32]);

impl NullaryFnOnce for Total<'_> {
    type Output = f32;

    #[inline(always)]
    fn call(self) -> f32 {
        let (chunks, rest) = self.0.as_chunks::<64>();
        let mut sums = [0.0; 64];
        for chunk in chunks {
            for lane in 0..64 {
                sums[lane] += chunk[lane];
            }
        }
        sums.iter().chain(rest).sum()
    }
}

/// An iteration beside the sum of all similarities.
fn ratio(n: usize, degree: usize, promised: f64) {
    let (values, few) = (data(n, degree), 60);
    let many = few + if n > 150 || degree > 2 { 60 } else { 400 };
    let run = |iterations| cluster(&values, degree, Params::default(), Some(iterations), u64::MAX).0;
    let sets = compflow_api::Sets::all_up_to(n, degree).len();
    let (workers, arch) = (Workers::new(THREADS).expect("there are threads"), Arch::new());
    let (mut iteration, mut sum) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..3 {
        // Composing and all else that is done once cancels out; after so many iterations exemplars are settled.
        let (short, long) = (best(2, || run(few)), best(2, || run(many)));
        iteration = iteration.min((long - short) / (many - few) as f64);
        let similarities = vec![-1.0f32; n * sets];
        let total = || {
            let sums = workers.map(similarities.chunks(n * sets / 30), |part| Ok(arch.dispatch(Total(part))));
            let _ = std::hint::black_box(sums);
        };
        sum = sum.min(best(5, || seconds(|| (0..4).for_each(|_| total())) / 4.0));
    }
    println!(
        "n = {n}, degree {degree}: iteration {:.3} ms, sum of S {:.3} ms, ratio {:.2} (promised {promised})",
        1e3 * iteration,
        1e3 * sum,
        iteration / sum
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let wanted = |word: &str| words.iter().any(|given| given == word);
    if words.is_empty() || wanted("ratio") {
        ratio(150, 2, 4.0);
        ratio(150, 3, 2.0);
        ratio(750, 2, 2.0);
        let values = data(150, 2);
        let (time, said) = (0..5)
            .map(|_| cluster(&values, 2, Params::default(), None, u64::MAX))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .expect("it ran");
        println!("n = 150, degree 2, to convergence: {time:.3} s, {said} (promised 0.1 s)");
    }
    if wanted("exact") {
        for (n, degree) in [(1500, 2), (250, 3)] {
            let all = Params { candidates: Some(n), ..Params::default() };
            let (time, said) = cluster(&data(n, degree), degree, all, None, 8_000_000_000);
            println!("n = {n}, degree {degree}: {time:.1} s, {said} (promised 180 s)");
        }
    }
    if wanted("budget") {
        let values = data(1500, 2);
        let all = || Params { candidates: Some(1500), ..Params::default() };
        let run = |memory| cluster(&values, 2, all(), None, memory);
        let ((kept, said), (anew, _)) = (run(8_000_000_000), run(1_000_000_000));
        println!("n = 1500, {said}: {kept:.1} s, in 1 GB {anew:.1} s, ratio {:.2} (promised 3)", anew / kept);
    }
    if wanted("many") {
        let values = data(15_000, 2);
        let candidates = Params { candidates: Some(150), ..Params::default() };
        let (time, said) = cluster(&values, 2, candidates, None, u64::MAX);
        println!("n = 15000, candidates = 150: {time:.1} s, {said} (promised 300 s)");
        let subset = || Params { subset: Some(150), ..Params::default() };
        let time = best(3, || cluster(&values, 2, subset(), None, u64::MAX).0);
        println!("n = 15000, subset = 150: {time:.2} s (promised 1 s)");
        let (time, said) = run(&values, 2, subset(), u64::MAX);
        println!("n = 15000, subset = 150, default preference: {time:.2} s, {said} (promised 1 s)");
    }
}
