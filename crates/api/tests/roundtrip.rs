//! Out through the exported functions and back in through the foreign traits, within one process: values, errors,
//! panics, services and the end of instances, for every kind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::{Int32Array, RecordBatch, RecordBatchIterator};
use arrow_schema::ArrowError;
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
                    return Err(Error::new("`mode` cannot be `refuse`"));
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
    fn load(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Batches> {
        self.0.act()?;
        assert_eq!(request.path, Some(Path::new("/there/x")));
        assert_eq!(request.columns().collect::<Vec<_>>(), [("embedding", "e"), ("id", "i")]);
        let batch =
            |value| RecordBatch::try_from_iter([("id", Arc::new(Int32Array::from(vec![value])) as _)]).unwrap();
        let mode = self.0.mode.clone();
        let batches = (0..3).map(move |at| match (mode.as_str(), at) {
            ("fail late", 2) => Err(ArrowError::ComputeError("the third is missing".to_owned())),
            ("panic late", 2) => panic!("the third is rotten"),
            _ => Ok(batch(at)),
        });
        Ok(Box::new(RecordBatchIterator::new(batches, batch(0).schema())))
    }
}

impl Composer for TestComposer {
    fn dim(&self) -> Option<usize> {
        Some(2)
    }

    fn compose(&self, dim: usize, left: &[f32], right: &[f32], out: &mut [f32]) -> Result<()> {
        self.0.act()?;
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
        extra: vec![("base".to_owned(), Sets::singletons(&[4, 5, 4]))],
        diagnostics: Diagnostics { iterations: 9, converged: false, objective: -2.5, trace: vec![3.0, 1.0] },
    }
}

impl Clusterer for TestClusterer {
    fn memory(&self, rows: usize, dim: usize, degree: usize) -> u64 {
        (100 * rows + 10 * dim + degree) as u64
    }

    fn streams(&self) -> bool {
        self.0.mode.starts_with("stream")
    }

    fn cluster_stream(&self, task: &StreamTask<'_>, _services: &Services<'_>) -> Result<Clustering> {
        let (mut sum, mut batches) = (0.0, 0);
        for _ in 0..2 {
            task.rows.pass(&mut |batch| {
                batches += 1;
                sum += batch.values().iter().sum::<f32>();
                match self.0.mode.as_str() {
                    "stream no more" => Err(Error::new("had enough")),
                    "stream and panic" => panic!("too much"),
                    _ => Ok(()),
                }
            })?;
        }
        assert_eq!((task.rows.len(), task.rows.dim(), task.degree), (BATCH_ROWS + 1, 1, 2));
        assert!(task.composer.is_some_and(|composer| composer.dim() == Some(2)));
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
            assert_eq!((services.seed, services.threads, services.memory), (11, 3, 12345));
            assert_eq!(services.input("a/b")?, PathBuf::from("/base/a/b"));
            let missing = services.input("missing").unwrap_err();
            assert_eq!(missing.to_string(), "no such file");
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
        let composed = compose_sets(task.composer()?, task.embeddings, &Sets::from_iter([[0, 2]]))?;
        assert_eq!(composed, [51.0, 62.0]);
        Ok(everything())
    }
}

impl Evaluator for TestEvaluator {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::larger("good"), Metric::smaller("bad")]
    }

    fn evaluate(&self, truth: &Sets, predicted: &Sets, _services: &Services<'_>) -> Result<Vec<f64>> {
        self.0.act()?;
        Ok(vec![truth.len() as f64, f64::from(predicted[0][0])])
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
    assert_eq!(clusterer("fine").memory(3, 2, 1), 321);
}

/// One row more than a batch, or none of them after the first pass began.
struct Column(bool);

impl Rows for Column {
    fn len(&self) -> usize {
        BATCH_ROWS + 1
    }

    fn dim(&self) -> usize {
        1
    }

    fn pass(&self, each: &mut dyn FnMut(Embeddings<'_>) -> Result<()>) -> Result<()> {
        if !self.0 {
            return Err(Error::new("the file is gone"));
        }
        Embeddings::new(&vec![1.0; BATCH_ROWS + 1], 1).pass(each)
    }
}

#[test]
fn examples_are_read_batch_by_batch_as_often_as_wanted() {
    with_task(|task| {
        assert!(!clusterer("fine").streams());
        let run = |mode: &str, there: bool| {
            let clusterer = clusterer(mode);
            assert!(clusterer.streams());
            clusterer.cluster_stream(&StreamTask { rows: &Column(there), ..task.stream() }, &Services::none())
        };
        let found = run("stream", true).unwrap();
        let Diagnostics { iterations, objective, .. } = found.diagnostics;
        assert_eq!((found.assignments.len(), iterations, objective), (BATCH_ROWS + 1, 4, 2.0 * 65_537.0));
        assert_eq!(run("stream", false).unwrap_err().to_string(), "the file is gone");
        assert_eq!(run("stream no more", true).unwrap_err().to_string(), "had enough");
        assert!(run("stream and panic", true).unwrap_err().to_string().ends_with("too much"));
    });
}

#[test]
fn errors_cancellation_and_panics_come_out_as_what_they_are() {
    with_task(|task| {
        let run = |clusterer: &ForeignClusterer| clusterer.cluster(task, &Services::none()).unwrap_err();
        assert_eq!(run(&clusterer("fail")), Error::new("cannot"));
        assert_eq!(run(&clusterer("cancel")), Error::Cancelled);
        let panicking = clusterer("panic");
        let first = run(&panicking).to_string();
        assert!(first.ends_with(": did not"));
        assert_eq!(run(&panicking), Error::new(format!("this instance is not used again since it {first}")));
    });
    let refused: Result<ForeignClusterer> = make(&Registration::clusterer::<TestClusterer>(), "refuse");
    assert_eq!(refused.unwrap_err().to_string(), "`mode` cannot be `refuse`");
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
    composer.compose(2, &[1.0, 2.0], &[3.0, 4.0], &mut out).unwrap();
    assert_eq!(out, [31.0, 42.0]);
    let (mut left, mut right) = ([0.0; 2], [0.0; 2]);
    composer.vjp(2, &[0.0; 2], &[0.0; 2], &[1.0, 2.0], &mut left, &mut right).unwrap();
    assert_eq!((left, right), ([1.0, 2.0], [10.0, 20.0]));
    assert!(composer.compose(2, &[1.0, 2.0], &[3.0], &mut out).is_err(), "matrices of different size");
    assert!(composer.compose(2, &[1.0; 3], &[3.0; 3], &mut [0.0; 3]).is_err(), "half a row");
    let failing: ForeignComposer = make(&Registration::composer::<TestComposer>(), "fail").unwrap();
    assert_eq!(failing.compose(2, &[1.0; 2], &[1.0; 2], &mut out), Err(Error::new("cannot")));
}

#[test]
fn a_composer_without_gradients_says_so() {
    component!(Rough, "rough", Flags::NONE);
    impl Composer for Rough {
        fn compose(&self, _dim: usize, _left: &[f32], _right: &[f32], _out: &mut [f32]) -> Result<()> {
            self.0.act()
        }
    }
    let rough: ForeignComposer = make(&Registration::composer::<Rough>(), "fine").unwrap();
    let error = rough.vjp(1, &[0.0], &[0.0], &[0.0], &mut [0.0], &mut [0.0]).unwrap_err();
    assert_eq!(error.to_string(), "the composer `rough` has no gradients");
}

#[test]
fn batches_stream_until_the_end_or_an_error() {
    let request = LoadRequest {
        path: Some(Path::new("/there/x")),
        embedding: Some("e"),
        id: Some("i"),
        ..LoadRequest::default()
    };
    let load = |mode: &str| {
        let loader: ForeignLoader = make(&Registration::loader::<TestLoader>(), mode).unwrap();
        loader.load(&request, &Services::none())
    };
    assert_eq!(load("fine").unwrap().map(Result::unwrap).count(), 3);
    assert_eq!(load("fail").err(), Some(Error::new("cannot")));
    for (mode, text) in [("fail late", "the third is missing"), ("panic late", "the third is rotten")] {
        let results: Vec<_> = load(mode).unwrap().take(3).collect();
        assert!(results[0].is_ok() && results[1].is_ok());
        let error = results[2].as_ref().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn scores_cross_with_their_names_and_directions() {
    let evaluator: ForeignEvaluator = make(&Registration::evaluator::<TestEvaluator>(), "fine").unwrap();
    assert_eq!(evaluator.metrics(), [Metric::larger("good"), Metric::smaller("bad")]);
    let (truth, predicted) = (Sets::singletons(&[0, 1]), Sets::singletons(&[7, 8]));
    assert_eq!(evaluator.evaluate(&truth, &predicted, &Services::none()), Ok(vec![2.0, 7.0]));
    let error = evaluator.evaluate(&truth, &Sets::singletons(&[1]), &Services::none()).unwrap_err();
    assert_eq!(error.to_string(), "2 true sets cannot be compared with 1 predicted ones");
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

    fn input(&self, path: &str) -> Result<PathBuf> {
        if path == "missing" { Err(Error::new("no such file")) } else { Ok(Path::new("/base").join(path)) }
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
