//! Out through the exported functions and back in through the foreign traits, within one process: values, errors,
//! panics, services and the end of instances, for every kind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use compflow_api::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the test components can be told to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Params {
    mode: String,
}

impl Default for Params {
    fn default() -> Self {
        Self { mode: "fine".to_owned() }
    }
}

impl Params {
    fn act(&self) -> Result<()> {
        match self.mode.as_str() {
            "fail" => Err(Error::new("cannot")),
            "panic" => panic!("did not"),
            "cancel" => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }
}

macro_rules! component {
    ($name:ident, $text:literal, $flags:expr) => {
        struct $name(Params);

        impl Component for $name {
            const NAME: &'static str = $text;
            const SUMMARY: &'static str = "for tests";
            const FLAGS: Flags = $flags;
            type Params = Params;

            fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
                if params.mode == "refuse" {
                    return Err(Error::parameter("mode", "cannot be `refuse`"));
                }
                Ok(Self(params))
            }
        }
    };
}

component!(TestLoader, "l", Flags::NEEDS_PATH);
component!(TestComposer, "g", Flags::HAS_GRADIENTS);
component!(TestClusterer, "c", Flags::NEEDS_COMPOSER.and(Flags::NEEDS_TRUTH));
component!(TestEvaluator, "e", Flags::NONE);

impl Loader for TestLoader {
    fn load(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Stream> {
        self.0.act()?;
        assert_eq!(request.path, Some(Path::new("/there/x")));
        assert_eq!(request.columns, [("embedding", "e"), ("id", "i")]);
        let table = |value: i64| -> Table {
            let ids = Column::Integers(vec![value]);
            let vectors = Column::Vectors { width: 2, values: vec![value as f32; 2] };
            vec![("embedding".to_owned(), vectors), ("id".to_owned(), ids)]
        };
        let mode = self.0.mode.clone();
        Stream::from_tables((0..3).map(move |at| match (mode.as_str(), at) {
            ("fail late", 2) => Err(Error::new("the third is missing")),
            ("panic late", 2) => panic!("the third is rotten"),
            ("other columns", 2) => Ok(vec![("id".to_owned(), Column::Texts(vec!["x".to_owned()]))]),
            _ => Ok(table(at)),
        }))
    }

    fn describe(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Option<Description>> {
        if self.0.mode == "fine" {
            return Ok(None);
        }
        if self.0.mode == "described" {
            let columns = vec![("e".to_owned(), Column::Vectors { width: 2, values: Vec::new() })];
            return Description::of(&columns, Some(3), Some(2)).map(Some);
        }
        Err(Error::column("id", request.column("id").unwrap_or_default(), "/there/x", ["number", "vector"]))
    }
}

impl Composer for TestComposer {
    fn dim(&self) -> Option<usize> {
        Some(2)
    }

    fn compose(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        services: &Services<'_>,
    ) -> Result<()> {
        self.0.act()?;
        if self.0.mode == "idle" {
            return Ok(());
        }
        services.check_cancelled()?;
        assert_eq!(dim, 2);
        out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left + 10.0 * right);
        Ok(())
    }

    fn vjp(
        &self,
        _dim: usize,
        _left: &[f32],
        _right: &[f32],
        grad: &[f32],
        grad_left: &mut [f32],
        grad_right: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        self.0.act()?;
        grad_left.copy_from_slice(grad);
        grad_right.iter_mut().zip(grad).for_each(|(out, grad)| *out = 10.0 * grad);
        Ok(())
    }
}

fn everything() -> Clustering {
    Clustering {
        assignments: Sets::from_iter([vec![0], vec![1], vec![0, 1]]),
        clusters: Sets::from_iter([vec![0], vec![1], vec![0, 1]]),
        exemplars: vec![vec![0], vec![1], vec![0, 1]],
        centroids: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        memberships: vec![0.5, 0.5, 0.25, 0.75, 1.0, 0.0],
        extra: vec![
            ("base".to_owned(), Column::Sets(Sets::singletons(&[4, 5, 4]))),
            ("margin".to_owned(), Column::Floats(vec![0.5, -1.0, 2.0])),
            ("rank".to_owned(), Column::Integers(vec![3, -2, 1])),
            ("core".to_owned(), Column::Flags(vec![true, false, true])),
            ("why".to_owned(), Column::Texts(vec!["near".to_owned(), String::new(), "ünsure".to_owned()])),
        ],
        singletons: Singletons { numbers: vec![1, 0], vectors: vec![1.0, 2.0, 3.0, 4.0] },
        densities: Densities {
            sets: Sets::from_iter([vec![1], vec![0], vec![0, 1]]),
            centres: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            offsets: vec![-1.0, -2.0, -3.5],
            factor_of: vec![0, 0, 1],
            factors: vec![1.0, 0.5, 2.0, 0.25, 0.0, 0.25],
        },
        scalars: vec![("bic".to_owned(), -7.5)],
        resolved: vec![("threshold".to_owned(), "0.25".to_owned())],
        diagnostics: Diagnostics { iterations: 9, converged: false, objective: -2.5, trace: vec![3.0, 1.0] },
    }
}

impl Clusterer for TestClusterer {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, degree } = shape;
        self.0.act()?;
        Ok((100 * rows + 10 * dim + degree) as u64)
    }

    fn streams(&self) -> Result<bool> {
        self.0.act()?;
        Ok(self.0.mode.starts_with("stream"))
    }

    fn cluster_stream(&self, task: &StreamTask<'_>, _services: &Services<'_>) -> Result<Clustering> {
        let (mut sum, mut batches) = (0.0, 0);
        for _ in 0..2 {
            task.rows.pass(&mut |batch| {
                batches += 1;
                sum += batch.values().iter().sum::<f32>();
                match self.0.mode.as_str() {
                    "stream inside" => task.rows.pass(&mut |_| Ok(())),
                    "stream no more" => Err(Error::new("had enough")),
                    "stream and panic" => panic!("too much"),
                    _ => Ok(()),
                }
            })?;
        }
        assert_eq!((task.rows.len(), task.rows.dim(), task.degree), (BATCH_ROWS + 1, 1, 2));
        assert!(task.composer.is_some_and(|composer| composer.dim() == Some(2)));
        // What is known of the examples comes along.
        assert_eq!((task.truth.map(Sets::len), task.weights.map(<[f32]>::len)), (Some(BATCH_ROWS + 1), None));
        assert_eq!(task.preferences.map(<[f32]>::len), Some(BATCH_ROWS + 1));
        assert_eq!((task.seeds.map(Sets::len), task.named()), (Some(BATCH_ROWS + 1), 1));
        let mut found = Clustering::from_labels(&vec![0; task.rows.len()]);
        found.diagnostics = Diagnostics { iterations: batches, objective: sum.into(), ..Default::default() };
        Ok(found)
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        self.0.act()?;
        if self.0.mode == "services" {
            services.log(Level::Warn, "look out");
            services.progress(3, 4)?;
            assert_eq!(task.preferences, Some(&[-1.0, -2.0, -3.0][..]));
            assert_eq!(task.weights, Some(&[1.0, 0.0, 2.0][..]));
            assert_eq!(task.seeds, Some(&Sets::from_iter([vec![], vec![1], vec![0, 1]])));
            assert_eq!(task.column("id")?, &Column::Texts(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]));
            assert!(task.column("price").unwrap_err().to_string().contains("no further column `price`"));
            assert_eq!(services.host.version(), "compflow in a test");
            assert_eq!((services.seed, services.threads, services.memory), (11, 3, 12345));
            assert_eq!(services.input("a/b")?, PathBuf::from("/base/a/b"));
            let missing = services.input("missing").unwrap_err();
            assert_eq!((missing.to_string().as_str(), missing.problems()[0].code), ("no such file", Code::Data));
            let refused = services.clusterer("none", "{}").unwrap_err();
            assert_eq!(refused.to_string(), "there is no clusterer `none`");
            let other = services.clusterer("c", "{}")?;
            return other.cluster(task, services);
        }
        assert_eq!(task.embeddings.values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(
            (task.degree, task.space.normalize, task.space.distance),
            (2, Normalize::L2, Distance::Euclidean)
        );
        assert_eq!(task.truth, Some(&Sets::from_iter([vec![0], vec![1], vec![0, 1]])));
        let composed = compose_sets(task.composer()?, task.embeddings, &Sets::from_iter([[0, 2]]), services)?;
        assert_eq!(composed, [51.0, 62.0]);
        Ok(everything())
    }
}

fn metrics() -> Vec<Metric> {
    vec![Metric::share("good"), Metric::count("bad").between(2.0, 8.0), Metric::number("sum").smaller_is_better()]
}

impl Evaluator for TestEvaluator {
    fn metrics(&self) -> Vec<Metric> {
        metrics()
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, _services: &Services<'_>) -> Result<Vec<f64>> {
        self.0.act()?;
        let mut sum = 0.0;
        if let Some(rows) = evaluation.rows {
            rows.pass(&mut |batch| {
                sum += batch.values().iter().sum::<f32>();
                Ok(())
            })?;
        }
        sum += evaluation.centroids.map_or(0.0, |centroids| centroids.iter().sum());
        sum += evaluation.clusters.map_or(0.0, |clusters| 100.0 * clusters.len() as f32);
        let truth = evaluation.truth.map_or(-1.0, |truth| truth.len() as f64);
        Ok(vec![truth, evaluation.predicted[0].first().copied().map_or(-1.0, f64::from), sum.into()])
    }
}

fn make<T: TryFrom<Instance, Error = Error>>(registration: &Registration, mode: &str) -> Result<T> {
    let component = registration.component()?;
    let params = serde_json::json!({ "mode": mode }).to_string();
    T::try_from(component.create(&params, &Services::none())?)
}

/// Runs `check` with a task that has everything in it.
fn with_task(check: impl FnOnce(&Task<'_>)) {
    let composer: ForeignComposer = make(&Registration::composer::<TestComposer>(), "fine").unwrap();
    let truth = Sets::from_iter([vec![0], vec![1], vec![0, 1]]);
    check(&Task {
        embeddings: Embeddings::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2),
        space: Space { normalize: Normalize::L2, distance: Distance::Euclidean },
        degree: 2,
        composer: Some(&composer),
        truth: Some(&truth),
        preferences: Some(&[-1.0, -2.0, -3.0]),
        weights: Some(&[1.0, 0.0, 2.0]),
        seeds: Some(&Sets::from_iter([vec![], vec![1], vec![0, 1]])),
        columns: &vec![("id".to_owned(), Column::Texts(["a", "b", "c"].map(str::to_owned).to_vec()))],
    });
}

fn clusterer(mode: &str) -> ForeignClusterer {
    make(&Registration::clusterer::<TestClusterer>(), mode).unwrap()
}

#[test]
fn a_descriptor_says_what_the_component_is() {
    let component = Registration::clusterer::<TestClusterer>().component().unwrap();
    assert_eq!((component.kind, component.name, component.summary), (Kind::Clusterer, "c", "for tests"));
    assert_eq!(component.documentation, "What the test components can be told to do.");
    assert!(component.flags().contains(Flags::NEEDS_COMPOSER) && component.flags().contains(Flags::NEEDS_TRUTH));
    assert!(!component.flags().contains(Flags::NEEDS_GRADIENTS));
    let schema: serde_json::Value = serde_json::from_str(component.schema).unwrap();
    assert_eq!(schema["properties"]["mode"]["default"], "fine");
}

#[test]
fn a_clustering_crosses_whole_both_ways() {
    with_task(|task| assert_eq!(clusterer("fine").cluster(task, &Services::none()).unwrap(), everything()));
    assert_eq!(clusterer("fine").memory(Shape { rows: 3, dim: 2, degree: 1 }, &Services::none()), Ok(321));
    assert_eq!(
        clusterer("fail").memory(Shape { rows: 3, dim: 2, degree: 1 }, &Services::none()),
        Err(Error::new("cannot"))
    );
    assert_eq!(clusterer("fail").streams(), Err(Error::new("cannot")));
}

/// One row more than a batch, or none of them after the first pass began.
struct Long {
    there: bool,
    dim_of_batches: usize,
}

impl Rows for Long {
    fn len(&self) -> usize {
        BATCH_ROWS + 1
    }

    fn dim(&self) -> usize {
        1
    }

    fn pass(&self, each: &mut dyn FnMut(Embeddings<'_>) -> Result<()>) -> Result<()> {
        if !self.there {
            return Err(Error::data("the file is gone"));
        }
        let dim = self.dim_of_batches;
        Embeddings::new(&vec![1.0; (BATCH_ROWS + 1) * dim], dim).pass(each)
    }
}

#[test]
fn examples_are_read_batch_by_batch_as_often_as_wanted() {
    with_task(|task| {
        assert_eq!(clusterer("fine").streams(), Ok(false));
        let truth = Sets::singletons(&vec![0; BATCH_ROWS + 1]);
        let preferences = vec![0.0; BATCH_ROWS + 1];
        let run = |mode: &str, there: bool, dim_of_batches: usize| {
            let clusterer = clusterer(mode);
            assert_eq!(clusterer.streams(), Ok(true));
            let task = StreamTask {
                rows: &Long { there, dim_of_batches },
                truth: Some(&truth),
                preferences: Some(&preferences),
                weights: None,
                seeds: Some(&truth),
                columns: &Table::new(),
                ..task.stream()
            };
            clusterer.cluster_stream(&task, &Services::none())
        };
        let found = run("stream", true, 1).unwrap();
        let Diagnostics { iterations, objective, .. } = found.diagnostics;
        assert_eq!((found.assignments.len(), iterations, objective), (BATCH_ROWS + 1, 4, 2.0 * 65_537.0));
        assert_eq!(run("stream", false, 1).unwrap_err(), Error::data("the file is gone"));
        let other = run("stream", true, 2).unwrap_err().to_string();
        assert_eq!(other, "a batch has examples of length 2, the others of 1");
        assert_eq!(run("stream no more", true, 1).unwrap_err().to_string(), "had enough");
        let inside = run("stream inside", true, 1).unwrap_err().to_string();
        assert_eq!(inside, "a pass over the examples was asked for while another is under way");
        assert!(run("stream and panic", true, 1).unwrap_err().to_string().ends_with("too much"));
    });
}

#[test]
fn errors_cancellation_and_panics_come_out_as_what_they_are() {
    with_task(|task| {
        let run = |clusterer: &ForeignClusterer| clusterer.cluster(task, &Services::none()).unwrap_err();
        assert_eq!(run(&clusterer("fail")), Error::new("cannot"));
        let unasked = run(&clusterer("cancel")).to_string();
        assert_eq!(unasked, "stopped as if it had been cancelled, and nobody has cancelled it");
        let panicking = clusterer("panic");
        let first = run(&panicking).to_string();
        assert!(first.ends_with(": did not"));
        assert_eq!(run(&panicking), Error::new(format!("this instance is not used again since it {first}")));
    });
    let refused: Result<ForeignClusterer> = make(&Registration::clusterer::<TestClusterer>(), "refuse");
    assert_eq!(refused.unwrap_err(), Error::parameter("mode", "cannot be `refuse`"));
}

#[test]
fn who_says_that_it_keeps_known_sets_is_held_to_it() {
    component!(Forgetful, "forgetful", Flags::USES_SEEDS);
    impl Clusterer for Forgetful {
        fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
            self.0.act()?;
            Ok(Clustering::from_labels(&vec![0; task.embeddings.len()]))
        }
    }
    let forgetful: ForeignClusterer = make(&Registration::clusterer::<Forgetful>(), "fine").unwrap();
    let cluster = |seeds: &Sets| {
        let task = Task { seeds: Some(seeds), ..Task::new(Embeddings::new(&[1.0, 2.0], 1)) };
        forgetful.cluster(&task, &Services::none()).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(cluster(&Sets::from_iter([vec![], vec![0]])), Ok(()));
    let refused = "an impossible result: example 1 is known to belong to [1] and was assigned to [0]";
    assert_eq!(cluster(&Sets::from_iter([vec![0], vec![1]])), Err(refused.to_owned()));
    let few = "1 known sets were given for 2 examples";
    assert_eq!(cluster(&Sets::from_iter([vec![0]])), Err(few.to_owned()));
}

#[test]
fn examples_that_are_elsewhere_are_added_up_there() {
    component!(Adding, "adding", Flags::HAS_PARTIAL);
    impl Clusterer for Adding {
        fn cluster(&self, _task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
            Err(Error::new("wants to be asked elsewhere"))
        }

        fn cluster_stream(&self, task: &StreamTask<'_>, _services: &Services<'_>) -> Result<Clustering> {
            assert!(task.rows.is_elsewhere());
            assert!(task.rows.pass(&mut |_| Ok(())).is_err());
            let Partial { sums, largest, rows } = task.rows.reduce(b"state")?;
            let labels = if self.0.mode == "labels" { vec![0] } else { Vec::new() };
            let mut found = Clustering::from_labels(&labels);
            found.scalars = vec![("sum".to_owned(), sums[0]), ("largest".to_owned(), largest[0])];
            found.diagnostics.trace = rows.into_iter().map(f64::from).collect();
            Ok(found)
        }

        fn partial(
            &self,
            state: &[u8],
            first: u64,
            batch: Embeddings<'_>,
            _services: &Services<'_>,
        ) -> Result<Partial> {
            self.0.act()?;
            assert_eq!((state, batch.dim()), (&b"state"[..], 2));
            let sum = batch.values().iter().copied().map(f64::from).sum();
            Ok(Partial { sums: vec![sum], largest: vec![first as f64], rows: batch.row(0).to_vec() })
        }
    }
    /// Three examples, of which the last is a batch of its own.
    struct There(ForeignClusterer);
    impl Rows for There {
        fn len(&self) -> usize {
            3
        }

        fn dim(&self) -> usize {
            2
        }

        fn pass(&self, _each: &mut dyn FnMut(Embeddings<'_>) -> Result<()>) -> Result<()> {
            Err(Error::new("not here"))
        }

        fn is_elsewhere(&self) -> bool {
            true
        }

        fn reduce(&self, state: &[u8]) -> Result<Partial> {
            let mut fold = Fold::new();
            for (batch, values) in [&[1.0, 2.0, 3.0, 4.0][..], &[5.0, 6.0]].into_iter().enumerate() {
                let batch_rows = Embeddings::new(values, 2);
                let partial = self.0.partial(state, 2 * batch as u64, batch_rows, &Services::none())?;
                fold.push(batch as u64, partial)?;
            }
            fold.finish(2)
        }
    }
    let adding = |mode: &str| make::<ForeignClusterer>(&Registration::clusterer::<Adding>(), mode).unwrap();
    let values = [0.0; 2];
    let run = |clusterer: &ForeignClusterer, mode: &str| {
        let task = Task::new(Embeddings::new(&values, 2));
        let rows = There(adding(mode));
        clusterer.cluster_stream(&StreamTask { rows: &rows, ..task.stream() }, &Services::none())
    };
    let found = run(&adding("fine"), "fine").unwrap();
    assert_eq!(found.scalars, [("sum".to_owned(), 21.0), ("largest".to_owned(), 2.0)]);
    assert_eq!((found.diagnostics.trace, found.assignments.len()), (vec![1.0, 2.0, 5.0, 6.0], 0));
    assert_eq!(run(&adding("fine"), "fail").unwrap_err(), Error::new("cannot"));
    assert!(run(&adding("fine"), "panic").unwrap_err().to_string().ends_with("did not"));
    let refused = run(&adding("labels"), "fine").unwrap_err().to_string();
    assert_eq!(refused, "an impossible result: 1 assignments were returned for 0 examples");
    let unable = run(&clusterer("stream"), "fine").unwrap_err().to_string();
    assert_eq!(unable, "cannot cluster examples that are elsewhere");
}

#[test]
fn an_instance_of_another_kind_is_refused() {
    let wrong: Result<ForeignLoader> = make(&Registration::clusterer::<TestClusterer>(), "fine");
    assert_eq!(wrong.unwrap_err().to_string(), "`c` is a clusterer, not a loader");
}

#[test]
fn a_composer_crosses_with_its_gradients() {
    let composer: ForeignComposer = make(&Registration::composer::<TestComposer>(), "fine").unwrap();
    assert_eq!(composer.dim(), Some(2));
    let mut out = [0.0; 2];
    let none = Services::none();
    composer.compose(2, &[1.0, 2.0], &[3.0, 4.0], &mut out, &none).unwrap();
    assert_eq!(out, [31.0, 42.0]);
    let (mut left, mut right) = ([0.0; 2], [0.0; 2]);
    composer.vjp(2, &[0.0; 2], &[0.0; 2], &[1.0, 2.0], &mut left, &mut right, &none).unwrap();
    assert_eq!((left, right), ([1.0, 2.0], [10.0, 20.0]));
    assert!(composer.compose(2, &[1.0, 2.0], &[3.0], &mut out, &none).is_err(), "matrices of different size");
    assert!(composer.compose(2, &[1.0; 3], &[3.0; 3], &mut [0.0; 3], &none).is_err(), "half a row");
    let failing: ForeignComposer = make(&Registration::composer::<TestComposer>(), "fail").unwrap();
    assert_eq!(failing.compose(2, &[1.0; 2], &[1.0; 2], &mut out, &none), Err(Error::new("cannot")));
}

#[test]
fn what_a_composer_does_not_write_is_not_taken_for_a_result() {
    let idle: ForeignComposer = make(&Registration::composer::<TestComposer>(), "idle").unwrap();
    let rows = Embeddings::new(&[1.0, 2.0, 3.0, 4.0], 2);
    let error = compose_sets(&idle, rows, &Sets::from_iter([[0, 1]]), &Services::none()).unwrap_err();
    assert_eq!(error.to_string(), "composing the set [0, 1] gave NaN");
}

/// The mean, which is more than its pairs.
#[derive(Default)]
struct TestMean;

impl Component for TestMean {
    const NAME: &'static str = "m";
    const SUMMARY: &'static str = "for tests";
    const FLAGS: Flags = Flags::COMPOSES_SETS.and(Flags::HAS_GRADIENTS);
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Composer for TestMean {
    fn compose(&self, _: usize, _: &[f32], _: &[f32], _: &mut [f32], _: &Services<'_>) -> Result<()> {
        Err(Error::new("pairs are sets as well"))
    }

    fn composes_sets(&self) -> bool {
        true
    }

    fn sets(&self, rows: Embeddings<'_>, sets: &Sets, out: &mut [f32], _services: &Services<'_>) -> Result<()> {
        for (set, out) in sets.iter().zip(out.chunks_exact_mut(rows.dim())) {
            for (at, out) in out.iter_mut().enumerate() {
                *out = set.iter().map(|row| rows[*row as usize][at]).sum::<f32>() / set.len() as f32;
            }
        }
        Ok(())
    }

    fn sets_vjp(
        &self,
        rows: Embeddings<'_>,
        sets: &Sets,
        grad: &[f32],
        grad_rows: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        grad_rows.fill(0.0);
        for (set, grad) in sets.iter().zip(grad.chunks_exact(rows.dim())) {
            for row in set {
                let to = &mut grad_rows[*row as usize * rows.dim()..][..rows.dim()];
                to.iter_mut().zip(grad).for_each(|(to, grad)| *to += grad / set.len() as f32);
            }
        }
        Ok(())
    }
}

#[test]
fn a_composer_may_compose_whole_sets_itself() {
    let component = Registration::composer::<TestMean>().component().unwrap();
    let mean = ForeignComposer::try_from(component.create("{}", &Services::none()).unwrap()).unwrap();
    let rows = Embeddings::new(&[1.0, 2.0, 6.0, 20.0], 1);
    let sets = Sets::from_iter([vec![0, 1, 2], vec![3]]);
    assert_eq!(compose_sets(&mean, rows, &sets, &Services::none()).unwrap(), [3.0, 20.0]);
    let grad = compose_sets_vjp(&mean, rows, &sets, &[3.0, 5.0], &Services::none()).unwrap();
    assert_eq!(grad, [1.0, 1.0, 1.0, 5.0]);
    let outside = Sets::from_iter([vec![4]]);
    assert!(mean.sets(rows, &outside, &mut [0.0], &Services::none()).is_err(), "there is no row 4");
}

/// A wrapper of another clusterer, which can only know what that needs.
struct Wrapper(ForeignClusterer);

impl Component for Wrapper {
    const NAME: &'static str = "w";
    const SUMMARY: &'static str = "for tests";
    type Params = NoParams;

    fn new(_params: NoParams, services: &Services<'_>) -> Result<Self> {
        services.clusterer("c", "{}").map(Self)
    }

    fn flags(&self) -> Flags {
        self.0.flags().unwrap_or_default().and(Flags::ASSIGNS_NONE)
    }

    fn columns(&self) -> Vec<String> {
        vec!["id".to_owned(), "price".to_owned()]
    }
}

impl Clusterer for Wrapper {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        let mut found = Clustering::from_labels(&vec![0; task.embeddings.len()]);
        found.assignments = (0..task.embeddings.len()).map(|row| vec![0; row % 2]).collect();
        Ok(found)
    }
}

#[test]
fn what_an_instance_needs_may_depend_on_another() {
    let host = Noting::default();
    let services = Services { host: &host, ..Services::none() };
    let component = Registration::clusterer::<Wrapper>().component().unwrap();
    assert!(!component.flags().contains(Flags::NEEDS_TRUTH));
    let wrapper = ForeignClusterer::try_from(component.create("{}", &services).unwrap()).unwrap();
    assert!(wrapper.flags().unwrap().contains(Flags::NEEDS_TRUTH.and(Flags::NEEDS_COMPOSER)));
    assert_eq!(wrapper.columns().unwrap(), ["id", "price"]);
    // It declares that it may assign an example to nothing.
    let found = wrapper.cluster(&Task::new(Embeddings::new(&[1.0, 2.0], 1)), &services).unwrap();
    assert_eq!(found.assignments, Sets::from_iter([vec![], vec![0]]));
}

#[test]
fn a_flag_that_must_be_understood_and_is_not_refuses_the_component() {
    let with_flags = |flags: u64| {
        let mut raw = Registration::clusterer::<TestClusterer>().describe();
        raw.flags |= flags;
        // SAFETY: kept, so it lives as long as the process.
        unsafe { ForeignLibrary::from_raw(library(keep(raw), 1)) }.unwrap()
    };
    assert_eq!((with_flags(1 << 60).components.len(), with_flags(1 << 60).refused.len()), (1, 0));
    let refused = with_flags(1 << 30);
    assert_eq!((refused.components.len(), refused.refused.len()), (0, 1));
    assert_eq!(
        refused.refused[0].to_string(),
        "clusterer `c`: has flags 0x40000000 that this compflow does not understand: it needs a newer one"
    );
}

fn library(component: &'static abi::RawComponent, component_count: u64) -> *const abi::RawLibrary {
    let text = |text: &'static str| abi::RawStr { ptr: text.as_ptr(), len: text.len() as u64 };
    let components = keep([std::ptr::from_ref(component)]);
    keep(abi::RawLibrary {
        size: size_of::<abi::RawLibrary>() as u32,
        reserved: 0,
        name: text("test"),
        version: text("1"),
        components: components.as_ptr(),
        component_count,
    })
}

/// Keeps a value for the life of the process, where Valgrind finds it.
fn keep<T>(value: T) -> &'static T {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let value = Box::leak(Box::new(value));
    KEPT.lock().unwrap().push(std::ptr::from_ref(value).expose_provenance());
    value
}

#[test]
fn more_components_than_anybody_has_are_refused() {
    let raw = keep(Registration::clusterer::<TestClusterer>().describe());
    // SAFETY: refused before the list is read.
    let refused = unsafe { ForeignLibrary::from_raw(library(raw, 1 << 31)) }.unwrap_err().to_string();
    assert_eq!(refused, "the library claims 2147483648 components, more than 4096");
}

#[test]
fn a_composer_without_gradients_says_so() {
    component!(Rough, "rough", Flags::NONE);
    impl Composer for Rough {
        fn compose(&self, _: usize, _: &[f32], _: &[f32], _: &mut [f32], _: &Services<'_>) -> Result<()> {
            self.0.act()
        }
    }
    let rough: ForeignComposer = make(&Registration::composer::<Rough>(), "fine").unwrap();
    let error = rough.vjp(1, &[0.0], &[0.0], &[0.0], &mut [0.0], &mut [0.0], &Services::none()).unwrap_err();
    assert_eq!(error.to_string(), "the composer `rough` has no gradients");
}

#[test]
fn tables_stream_until_the_end_or_an_error() {
    let request = LoadRequest { path: Some(Path::new("/there/x")), columns: &[("embedding", "e"), ("id", "i")] };
    let loader = |mode: &str| make::<ForeignLoader>(&Registration::loader::<TestLoader>(), mode).unwrap();
    let load = |mode: &str| loader(mode).load(&request, &Services::none());
    let tables: Vec<Table> = load("fine").unwrap().map(Result::unwrap).collect();
    assert_eq!(tables.len(), 3);
    assert_eq!(tables[2][0].1, Column::Vectors { width: 2, values: vec![2.0, 2.0] });
    assert_eq!(load("fail").err(), Some(Error::new("cannot")));
    let late = [
        ("fail late", "the third is missing"),
        ("panic late", "the third is rotten"),
        ("other columns", "a table has other columns than the first"),
    ];
    for (mode, text) in late {
        let results: Vec<_> = load(mode).unwrap().take(4).collect();
        assert!(results.len() == 3 && results[0].is_ok() && results[1].is_ok(), "{results:?}");
        let error = results[2].as_ref().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    assert!(loader("fine").describe(&request, &Services::none()).unwrap().is_none());
    let described = loader("described").describe(&request, &Services::none()).unwrap().unwrap();
    assert_eq!(
        (described.rows, described.dim, described.names().unwrap()),
        (Some(3), Some(2), vec!["e".to_owned()])
    );
    let missing = loader("describe").describe(&request, &Services::none()).unwrap_err();
    assert_eq!(
        (missing.problems()[0].code, missing.problems()[0].parameter.as_deref()),
        (Code::Column, Some("id"))
    );
    let text = "`id` names the column `i`, which is not in /there/x; there are `number`, `vector`";
    assert_eq!(missing.to_string(), text);
}

#[test]
fn scores_cross_with_their_names_units_and_ranges() {
    let evaluator: ForeignEvaluator = make(&Registration::evaluator::<TestEvaluator>(), "fine").unwrap();
    assert_eq!(evaluator.metrics(), metrics());
    let (truth, predicted) = (Sets::singletons(&[0, 1]), Sets::singletons(&[7, 8]));
    let evaluation = Evaluation::new(&predicted, &truth);
    let none = Services::none();
    assert_eq!(evaluator.evaluate(&evaluation, &none), Ok(vec![2.0, 7.0, 0.0]));
    let other = Sets::singletons(&[1]);
    let error = evaluator.evaluate(&Evaluation::new(&other, &truth), &none).unwrap_err();
    assert_eq!(error.to_string(), "2 true sets cannot be compared with 1 predicted ones");
    let rows = Embeddings::new(&[1.0, 2.0, 3.0, 4.0], 2);
    let full = Evaluation {
        truth: None,
        predicted: &Sets::from_iter([vec![], vec![7]]),
        rows: Some(&rows),
        clusters: Some(&other),
        centroids: Some(&[0.5, 0.25]),
        ..evaluation
    };
    assert_eq!(evaluator.evaluate(&full, &none), Ok(vec![-1.0, -1.0, 110.75]));
    let short = Evaluation { centroids: Some(&[0.5]), ..full };
    assert!(evaluator.evaluate(&short, &none).is_err(), "half a centroid");
}

/// A host that notes what it is asked.
#[derive(Default)]
struct Noting {
    lines: Mutex<Vec<String>>,
    cancel: AtomicU32,
}

impl Host for Noting {
    fn log(&self, level: Level, text: &str) {
        self.lines.lock().unwrap().push(format!("{level:?} {text}"));
    }

    fn progress(&self, done: u64, total: u64) {
        self.lines.lock().unwrap().push(format!("{done}/{total}"));
    }

    fn cancel(&self) -> &AtomicU32 {
        &self.cancel
    }

    fn version(&self) -> &str {
        "compflow in a test"
    }

    fn input(&self, path: &str) -> Result<PathBuf> {
        if path == "missing" { Err(Error::data("no such file")) } else { Ok(Path::new("/base").join(path)) }
    }

    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        if name != "c" {
            return Err(Error::new(format!("there is no {kind} `{name}`")));
        }
        Registration::clusterer::<TestClusterer>().component()?.create(params, &Services::none())
    }
}

#[test]
fn services_answer_across_the_boundary() {
    let host = Noting::default();
    let services = Services { host: &host, seed: 11, threads: 3, memory: 12345 };
    with_task(|task| {
        assert_eq!(clusterer("services").cluster(task, &services).unwrap(), everything());
        assert_eq!(*host.lines.lock().unwrap(), ["Warn look out", "3/4"]);
        host.cancel.store(1, Ordering::Relaxed);
        assert_eq!(clusterer("services").cluster(task, &services), Err(Error::Cancelled));
    });
}

#[test]
fn a_panic_of_the_host_does_not_unwind_into_the_component() {
    struct Panicking;
    impl Host for Panicking {
        fn log(&self, _level: Level, _text: &str) {
            panic!("the host is out of order");
        }

        fn input(&self, _path: &str) -> Result<PathBuf> {
            panic!("the host is out of order");
        }
    }
    component!(Asking, "asking", Flags::NONE);
    impl Clusterer for Asking {
        fn cluster(&self, _task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
            self.0.act()?;
            services.log(Level::Info, "nobody hears this");
            services.input("x").map(|_| Clustering::default())
        }
    }
    let asking: ForeignClusterer = make(&Registration::clusterer::<Asking>(), "fine").unwrap();
    let services = Services { host: &Panicking, ..Services::none() };
    let error = asking.cluster(&Task::new(Embeddings::new(&[1.0], 1)), &services).unwrap_err();
    assert!(error.to_string().ends_with("the host is out of order"), "{error}");
}

#[test]
fn every_instance_is_ended_once_whatever_happened_to_it() {
    static ALIVE: AtomicUsize = AtomicUsize::new(0);
    struct Counted(Params);
    impl Component for Counted {
        const NAME: &'static str = "counted";
        const SUMMARY: &'static str = "for tests";
        type Params = Params;

        fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
            ALIVE.fetch_add(1, Ordering::SeqCst);
            Ok(Self(params))
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            ALIVE.fetch_sub(1, Ordering::SeqCst);
            assert!(self.0.mode != "panic", "in drop");
        }
    }
    impl Clusterer for Counted {
        fn cluster(&self, _task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
            self.0.act().map(|()| Clustering::default())
        }
    }
    let registration = Registration::clusterer::<Counted>();
    let task = Task::new(Embeddings::new(&[1.0], 1));
    for mode in ["fine", "fail", "panic"] {
        let counted: ForeignClusterer = make(&registration, mode).unwrap();
        let _ = counted.cluster(&task, &Services::none());
        assert_eq!(ALIVE.load(Ordering::SeqCst), 1);
        let closed = counted.close();
        assert_eq!(closed.is_err(), mode == "panic", "{closed:?}");
        assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
        drop(make::<ForeignClusterer>(&registration, mode).unwrap());
        assert_eq!(ALIVE.load(Ordering::SeqCst), 0, "dropped as well as closed");
    }
    // The wrong kind: the instance is ended although nobody got to use it.
    assert!(make::<ForeignLoader>(&registration, "fine").is_err());
    assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
}
