//! What it refuses, what it says, and how it is reached from outside.

use compflow_api::{
    Error, Flags, ForeignClusterer, Host, Instance, Kind, Level, NoParams, Registration, Services, Shape,
};
use compflow_kernels::testing::watcher::Watcher;

use super::*;

fn refused(task: &Task<'_>, params: Params) -> String {
    cluster(task, params, &Services::none()).unwrap_err().to_string()
}

#[test]
fn more_singletons_than_examples_are_refused() {
    let task = Task::new(Embeddings::new(&[1.0, 2.0], 1));
    assert_eq!(refused(&task, params(3)), "`k` = 3 is more than the 2 examples");
}

#[test]
fn more_compositions_than_numbers_are_refused() {
    let values = examples::uniform(1000, 1, 1);
    let task = Task { degree: 9, composer: Some(&Plain::Sum), ..Task::new(Embeddings::new(&values, 1)) };
    assert_eq!(
        refused(&task, params(900)),
        "`k` = 900 has more compositions of up to 9 than can be counted; lower `k` or the degree"
    );
    let services = Services { memory: 1 << 20, ..Services::none() };
    let error = cluster(&Task { degree: 2, ..task }, params(900), &services).unwrap_err().to_string();
    assert!(error.ends_with("lower `k`, the degree or `restarts`, or set `stream`"), "{error}");
}

#[test]
fn a_degree_above_k_is_no_obstacle() {
    let planted = plant(Plain::Sum, 2, 2, 3, 20, 0.05, 1);
    let found =
        cluster(&Task { degree: 7, ..planted.task(Normalize::None) }, params(2), &Services::none()).unwrap();
    assert_eq!(cri(&found.assignments, &planted.truth), 1.0);
}

#[test]
fn several_need_a_composer_and_one_does_not() {
    let values = examples::uniform(50, 2, 1);
    let task = Task { degree: 2, ..Task::new(Embeddings::new(&values, 2)) };
    assert_eq!(refused(&task, params(2)), "needs a composer, and the pipeline has no [composer]");
    assert!(cluster(&task, params(1), &Services::none()).is_ok());
}

#[test]
fn fewer_distinct_examples_than_k_give_fewer_singletons_and_a_warning() {
    let values: Vec<f32> = (0..300).map(|at| [0.1, -7.3, 2.2][at % 3]).collect();
    for init in [Start::Random, Start::PlusPlus] {
        let host = Watcher::new(usize::MAX);
        let services = Services { host: &host, ..Services::none() };
        let params = Params { init: Init::Start(init), ..params(5) };
        let found = cluster(&Task::new(Embeddings::new(&values, 1)), params, &services).unwrap();
        let expected: Vec<u32> = (0..300).map(|at| at % 3).collect();
        assert_eq!(examples::partition(found.assignments.values()), expected);
        assert!(found.clusters.len() == 3 && found.diagnostics.objective < 1e-9 && found.diagnostics.converged);
        let warnings = host.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("ckm found 3 singletons for `k` = 5; "), "{warnings:?}");
    }
}

/// Composes to whatever it is made with, and has no gradients.
struct Constant(f32);

impl Composer for Constant {
    fn compose(
        &self,
        _dim: usize,
        _left: &[f32],
        _right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        out.fill(self.0);
        Ok(())
    }
}

#[test]
fn a_composer_that_does_not_do_says_why() {
    let values = examples::uniform(50, 2, 1);
    let task = |g| Task { degree: 2, composer: Some(g), ..Task::new(Embeddings::new(&values, 2)) };
    assert_eq!(refused(&task(&Constant(f32::NAN)), params(2)), "composing the set [0, 1] gave NaN");
    assert_eq!(
        refused(&task(&Constant(0.0)), params(2)),
        "gradients of the composer: the composer has no gradients"
    );
}

#[test]
fn diverging_steps_are_taken_back_and_the_user_is_told() {
    /// Sums, but has no numbers beyond a bound.
    struct Bounded;
    impl Composer for Bounded {
        fn compose(
            &self,
            dim: usize,
            left: &[f32],
            right: &[f32],
            out: &mut [f32],
            services: &Services<'_>,
        ) -> Result<()> {
            Plain::Sum.compose(dim, left, right, out, services)?;
            out.iter_mut().filter(|value| value.abs() > 2.0).for_each(|value| *value = f32::INFINITY);
            Ok(())
        }

        fn vjp(
            &self,
            dim: usize,
            left: &[f32],
            right: &[f32],
            grad: &[f32],
            grad_left: &mut [f32],
            grad_right: &mut [f32],
            services: &Services<'_>,
        ) -> Result<()> {
            Plain::Sum.vjp(dim, left, right, grad, grad_left, grad_right, services)
        }
    }
    // A learning rate that leaves the bounds at once.
    let values = examples::uniform(50, 2, 1);
    let task = Task { degree: 2, composer: Some(&Bounded), ..Task::new(Embeddings::new(&values, 2)) };
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let params = Params { optimizer: crate::Optimizer::Adam, lr: Some(30.0), max_iter: 10, ..params(2) };
    let found = cluster(&task, params, &services).unwrap();
    assert!(found.diagnostics.objective.is_finite());
    let warnings = host.warnings();
    assert!(warnings.iter().any(|line| line.contains("diverging steps")), "{warnings:?}");
}

#[test]
fn work_that_is_no_longer_wanted_stops() {
    let planted = plant(Plain::bilinear(8, 1), 5, 2, 8, 200, 1.0, 6);
    for (threads, patience) in [(1, 1), (2, 3)] {
        let host = Watcher::new(patience);
        let services = Services { host: &host, threads, ..Services::none() };
        let params = Params { max_iter: 1_000_000, prune: false, ..params(5) };
        assert_eq!(planted.cluster(params, &services).unwrap_err(), Error::Cancelled);
        assert_eq!(host.reports.lock().unwrap().len(), patience);
    }
}

/// Every `1/parts` of the first dimension is a cluster of its own; the last one is in none.
struct Slices(usize);

impl Component for Slices {
    const NAME: &'static str = "slices";
    const SUMMARY: &'static str = "";
    const FLAGS: Flags = Flags::ASSIGNS_NONE;
    type Params = NoParams;

    fn new(_: NoParams, _: &Services<'_>) -> Result<Self> {
        Ok(Self(4))
    }
}

impl Clusterer for Slices {
    fn cluster(&self, task: &Task<'_>, _: &Services<'_>) -> Result<Clustering> {
        let slice = |row: &[f32]| (row[0] * self.0 as f32) as u32;
        let last = self.0 as u32 - 1;
        let set = |row: &[f32]| if slice(row) == last { vec![] } else { vec![slice(row)] };
        let assignments: Sets = task.embeddings.rows().map(set).collect();
        let mut clusters: Vec<Vec<u32>> = assignments.iter().map(<[u32]>::to_vec).collect();
        clusters.sort();
        clusters.dedup();
        clusters.retain(|set| !set.is_empty());
        Ok(Clustering { assignments, clusters: clusters.iter().collect(), ..Clustering::default() })
    }
}

/// A clusterer that asks for the truth.
struct Oracle;

impl Component for Oracle {
    const NAME: &'static str = "oracle";
    const SUMMARY: &'static str = "";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = NoParams;

    fn new(_: NoParams, _: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Clusterer for Oracle {
    fn cluster(&self, _: &Task<'_>, _: &Services<'_>) -> Result<Clustering> {
        Err(Error::new("was given no truth"))
    }
}

/// A host that has these clusterers.
struct WithSlices;

impl Host for WithSlices {
    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        let registration = match (kind, name) {
            (Kind::Clusterer, "slices") => Registration::clusterer::<Slices>(),
            (Kind::Clusterer, "oracle") => Registration::clusterer::<Oracle>(),
            _ => return Err(Error::new(format!("no {kind} named `{name}`"))),
        };
        registration.component()?.create(params, &Services::none())
    }
}

#[test]
fn another_clusterer_may_say_where_to_begin() {
    let component = Registration::clusterer::<Ckm>().component().unwrap();
    let services = Services { host: &WithSlices, ..Services::none() };
    let create = |params: &str| component.create(params, &services);
    // Three slices for three singletons, of different directions and lengths.
    let values: Vec<f32> = (0..80).flat_map(|row| [row as f32 / 80.0, (row % 4) as f32]).collect();
    let task = Task::new(Embeddings::new(&values, 2));
    for k in [1, 2, 3, 5] {
        let params = format!(r#"{{"k": {k}, "init": {{"use": "slices"}}, "restarts": 1, "max_iter": 1}}"#);
        let ckm = ForeignClusterer::try_from(create(&params).unwrap()).unwrap();
        let found = ckm.cluster(&task, &services).unwrap();
        // Not moved yet: means of the slices, which have 20 examples each.
        let mean = |slice: usize, axis: usize| {
            (0..20).map(|row| f64::from(values[(slice * 20 + row) * 2 + axis])).sum::<f64>() / 20.0
        };
        for slice in 0..k.min(3) {
            let expected = [mean(slice, 0) as f32, mean(slice, 1) as f32];
            assert!(found.centroids.chunks_exact(2).any(|centroid| centroid == expected), "{k} {slice}");
        }
        assert_eq!(found.clusters.len(), k);
    }
    let error = create(r#"{"k": 2, "init": {"use": "halves"}}"#).unwrap_err().to_string();
    assert_eq!(error, "`init` `halves`: no clusterer named `halves`");
    let error = create(r#"{"k": 2, "init": {"use": "oracle"}}"#).unwrap_err().to_string();
    assert_eq!(error, "`init` must not be `oracle`, which is given the truth: a start has to do without it");
    let error = create(r#"{"k": 2, "init": {"use": "slices", "params": {"parts": 3}}}"#).unwrap_err().to_string();
    assert!(error.starts_with("`init.params.parts` of `slices` is not a parameter"), "{error}");
}

#[test]
fn works_across_the_boundary() {
    let component = Registration::clusterer::<Ckm>().component().unwrap();
    let create = |params: &str| component.create(params, &Services::none());
    let planted = plant(Plain::Max, 3, 2, 6, 20, 0.1, 5);
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let ckm = ForeignClusterer::try_from(create(r#"{"k": 3, "preset": "paper"}"#).unwrap()).unwrap();
    let task = Task { degree: 1, composer: None, ..planted.task(Normalize::None) };
    let params = read(r#"{"k": 3, "preset": "paper"}"#);
    assert_eq!(ckm.cluster(&task, &services).unwrap(), cluster(&task, params, &Services::none()).unwrap());
    assert!(ckm.memory(Shape { rows: 450, dim: 3, degree: 1 }, &Services::none()).unwrap() > 450 * 3 * 4);
    let lines = host.lines.into_inner().unwrap();
    assert_eq!(lines[0].0, Level::Info);
    assert_eq!(lines[0].1, "3 compositions of up to 1");

    let refused = |params: &str| create(params).unwrap_err().to_string();
    assert_eq!(refused("{}"), "`k` is missing");
    assert_eq!(refused(r#"{"k": 0}"#), "`k` must be a whole number at least 1, found 0");
    assert!(refused(r#"{"k": 2, "init": "kmeans"}"#).starts_with("`init` must be "));
    assert!(refused(r#"{"k": 2, "optimizer": "sgd"}"#).starts_with(r#"`optimizer` must be "lbfgs" or "adam""#));
}
