//! `cargo bench -p compflow-cgm`: what a round costs.
//!
//! Examples are noisy compositions of drawn prototypes, k = 5, d = 2, p = 32, by a bilinear function with drawn weights, and
//! vectors are normalised. The table has, in one run, the time of a round (the difference between few rounds and many) by
//! its assignment and the component of outliers, beside that of one product of n×p with p×|K| numbers, which is what any
//! method has to compute at least.

use std::time::Instant;

use compflow_api::{
    Clusterer, Clustering, Embeddings, Normalize, Result, Services, Sets, Singletons, Space, Task,
};
use compflow_cgm::{Assignment, Cgm, Kind, Params};
use compflow_kernels::testing::composers::Plain;
use compflow_kernels::testing::examples;
use ndarray::{Array2, ArrayView2};

const DIM: usize = 32;
const K: usize = 5;
const THREADS: usize = 2;
/// Rounds whose difference is taken.
const ROUNDS: [usize; 2] = [2, 12];

/// Says that these are the singletons.
struct Given(Vec<f32>);

impl Clusterer for Given {
    fn cluster(&self, task: &Task<'_>, _: &Services<'_>) -> Result<Clustering> {
        let singletons = Singletons { numbers: (0..K as u32).collect(), vectors: self.0.clone() };
        Ok(Clustering { singletons, ..Clustering::from_labels(&vec![0; task.embeddings.len()]) })
    }
}

fn main() -> Result<()> {
    let g = Plain::bilinear(DIM, 1);
    println!("| n | product | hard | hard, outliers | soft | spheres, hard |\n|---|---|---|---|---|---|");
    for n in [10_000, 100_000, 1_000_000] {
        let prototypes: Vec<f64> = examples::uniform(K, DIM, 9).iter().map(|&value| f64::from(value)).collect();
        let sets = Sets::all_up_to(K, 2);
        let centres: Vec<Vec<f64>> = sets.iter().map(|set| g.compose_set(&prototypes, DIM, set)).collect();
        let mut values = examples::uniform(n, DIM, 1009);
        for (row, values) in values.chunks_exact_mut(DIM).enumerate() {
            let centre = &centres[row % sets.len()];
            values.iter_mut().zip(centre).for_each(|(value, &centre)| *value += centre as f32);
        }
        let start: Vec<f32> = prototypes.iter().map(|&value| 0.8 * value as f32).collect();
        let task = Task {
            space: Space { normalize: Normalize::L2, ..Space::default() },
            degree: 2,
            composer: Some(&g),
            ..Task::new(Embeddings::new(&values, DIM))
        };
        let round = |params: Params| -> Result<f64> {
            let mut seconds = [0.0; 2];
            for (seconds, max_iter) in seconds.iter_mut().zip(ROUNDS) {
                // Below any rise there is, so that all rounds are made.
                let params = Params { max_iter, tol: f64::NEG_INFINITY, ..params.clone() };
                let cgm = Cgm::beginning_with(params, Box::new(Given(start.clone())));
                let services = Services { threads: THREADS, ..Services::none() };
                let begin = Instant::now();
                cgm.cluster(&task, &services)?;
                *seconds = begin.elapsed().as_secs_f64();
            }
            Ok(1e3 * (seconds[1] - seconds[0]) / (ROUNDS[1] - ROUNDS[0]) as f64)
        };
        let plain = Params::new(K);
        let times = [
            product(&values, sets.len())?,
            round(plain.clone())?,
            round(Params { outliers: true, ..plain.clone() })?,
            round(Params { assignment: Assignment::Soft, ..plain.clone() })?,
            round(Params { covariance: Kind::Spherical, ..plain.clone() })?,
        ];
        println!("| {n} | {} |", times.map(|time| format!("{time:.2} ms")).join(" | "));
    }
    Ok(())
}

/// Milliseconds of a product with as many columns as there are sets, shared out to the threads.
fn product(values: &[f32], sets: usize) -> Result<f64> {
    let centres = Array2::<f32>::ones((DIM, sets));
    let rows = values.len() / DIM;
    let halves: Vec<&[f32]> = values.chunks(rows.div_ceil(THREADS) * DIM).collect();
    let begin = Instant::now();
    const TIMES: usize = 5;
    for _ in 0..TIMES {
        std::thread::scope(|scope| {
            for half in &halves {
                scope.spawn(|| {
                    for chunk in half.chunks(4096 * DIM) {
                        let rows = ArrayView2::from_shape((chunk.len() / DIM, DIM), chunk);
                        std::hint::black_box(rows.map(|rows| rows.dot(&centres)).is_ok());
                    }
                });
            }
        });
    }
    Ok(1e3 * begin.elapsed().as_secs_f64() / TIMES as f64)
}
