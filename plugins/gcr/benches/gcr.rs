//! `cargo bench -p compflow-gcr`: milliseconds that `gcr` takes beyond its base, and that nesting a clusterer takes.
//!
//! Thirty clusters in 32 dimensions, compositions of up to three by a bilinear map, 1500 examples; the base hands out
//! labels and crosses the boundary as one of another library would. The fastest of many runs, as other work
//! on the machine only ever adds to it.

use std::time::Instant;

use compflow_api::{
    Clusterer, Clustering, Component, Composer, Embeddings, Error, Flags, ForeignClusterer, ForeignComposer, Host,
    Instance, Kind, NoParams, Registration, Result, Services, Task,
};
use compflow_gcr::Gcr;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, concatenate};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const K: usize = 30;
const DIM: usize = 32;
const EACH: usize = 50;

/// Row after row the next of `K` clusters.
struct Labels;

impl Component for Labels {
    const NAME: &'static str = "labels";
    const SUMMARY: &'static str = "";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Clusterer for Labels {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        let labels: Vec<u32> = (0..task.embeddings.len()).map(|row| (row % K) as u32).collect();
        Ok(Clustering::from_labels(&labels))
    }
}

/// g(a, b) = W₁(a+b) + W₂(a∘b).
struct Bilinear(Array2<f32>);

impl Component for Bilinear {
    const NAME: &'static str = "bilinear";
    const SUMMARY: &'static str = "";
    const FLAGS: Flags = Flags::NONE;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        Ok(Self(Array2::from_shape_simple_fn((2 * DIM, DIM), || rng.random_range(-0.2..0.2))))
    }
}

impl Composer for Bilinear {
    fn compose(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        let shape = (left.len() / dim, dim);
        let (left, right) = (ArrayView2::from_shape(shape, left)?, ArrayView2::from_shape(shape, right)?);
        let features = concatenate(Axis(1), &[(&left + &right).view(), (&left * &right).view()])?;
        ArrayViewMut2::from_shape(shape, out)?.assign(&features.dot(&self.0));
        Ok(())
    }
}

/// Offers the two.
struct Shop;

impl Host for Shop {
    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        let component = match (kind, name) {
            (Kind::Clusterer, "labels") => Registration::clusterer::<Labels>(),
            (Kind::Composer, "bilinear") => Registration::composer::<Bilinear>(),
            _ => return Err(Error::new(format!("there is no {kind} named `{name}`"))),
        };
        component.component()?.create(params, &Services { host: self, ..Services::none() })
    }
}

fn main() -> Result<()> {
    let services = Services { host: &Shop, ..Services::none() };
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let centres: Vec<f32> = (0..K * DIM).map(|_| rng.random_range(-1.0..1.0)).collect();
    let values: Vec<f32> =
        (0..K * EACH * DIM).map(|at| centres[at % (K * DIM)] + rng.random_range(-0.2..0.2)).collect();
    let composer: ForeignComposer = services.composer("bilinear", "{}")?;
    let task = Task { degree: 3, composer: Some(&composer), ..Task::new(Embeddings::new(&values, DIM)) };
    let gcr = Registration::clusterer::<Gcr>().component()?;
    let gcr = || ForeignClusterer::try_from(gcr.create(r#"{"base": {"use": "labels"}}"#, &services)?);
    let labels: ForeignClusterer = services.clusterer("labels", "{}")?;

    let direct = fastest(|| Labels.cluster(&task, &services).map(drop))?;
    let base = fastest(|| labels.cluster(&task, &services).map(drop))?;
    let made = gcr()?;
    let whole = fastest(|| made.cluster(&task, &services).map(drop))?;
    let sets = compflow_api::Sets::all_up_to(K, 3);
    let means = Embeddings::new(&centres, DIM);
    let composing = fastest(|| task.compose_sets(means, &sets, &services).map(drop))?;
    let create = fastest(|| gcr().map(drop))?;
    let alone = fastest(|| services.clusterer("labels", "{}").map(drop))?;
    println!(
        "k = {K}, degree = 3: gcr {whole:.3} ms, its base {base:.3} ms, beyond it {:.3} ms, of which composing \
         {composing:.3} ms",
        whole - base
    );
    println!(
        "nesting: calling a base across the boundary {:.3} ms more than directly, making one inside {:.3} ms",
        base - direct,
        create.max(alone)
    );
    Ok(())
}

/// The fastest of two hundred runs, in milliseconds.
fn fastest(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..200 {
        let start = Instant::now();
        run()?;
        least = least.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(least)
}
