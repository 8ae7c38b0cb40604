//! Examples with all that is known of them, batches, and what was found.

use std::path::PathBuf;

use compflow_api::*;

use crate::component::{Params, make};
use crate::composer::TestComposer;

component!(TestClusterer, "c", Flags::NEEDS_COMPOSER.and(Flags::NEEDS_TRUTH));

pub(crate) fn everything() -> Clustering {
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
            assert_eq!(services.content("a/b")?, (PathBuf::from("/base/a/b"), b"con\0tent".to_vec()));
            assert_eq!(services.content("empty")?.1, b"");
            assert_eq!(services.content("missing").unwrap_err(), missing);
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

/// Runs `check` with a task that has everything in it.
pub(crate) fn with_task(check: impl FnOnce(&Task<'_>)) {
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

pub(crate) fn clusterer(mode: &str) -> ForeignClusterer {
    make(&Registration::clusterer::<TestClusterer>(), mode).unwrap()
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
