//! Examples that are elsewhere, and what is added up there.

use compflow_api::*;

use crate::clusterer::clusterer;
use crate::component::{Params, make};

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

        fn partial(&self, state: &[u8], batch: &Batch<'_>, _services: &Services<'_>) -> Result<Partial> {
            self.0.act()?;
            let Batch { first, examples, weights, seeds } = *batch;
            assert_eq!((state, examples.dim()), (&b"state"[..], 2));
            assert_eq!(weights, (first == 2).then_some(&[0.5][..]));
            assert_eq!(seeds, (first == 2).then(|| Sets::from_iter([[0, 3]])).as_ref());
            let sum = examples.values().iter().copied().map(f64::from).sum();
            Ok(Partial { sums: vec![sum], largest: vec![first as f64], rows: examples.row(0).to_vec() })
        }
    }
    /// Three examples, of which the last is a batch of its own, with a weight and a known set.
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
            let (mut fold, known) = (Fold::new(), Sets::from_iter([[0, 3]]));
            for (batch, values) in [&[1.0, 2.0, 3.0, 4.0][..], &[5.0, 6.0]].into_iter().enumerate() {
                let mut told = Batch::new(2 * batch as u64, Embeddings::new(values, 2));
                if batch == 1 {
                    (told.weights, told.seeds) = (Some(&[0.5][..]), Some(&known));
                }
                fold.push(batch as u64, self.0.partial(state, &told, &Services::none())?)?;
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
    let short = Batch { weights: Some(&[1.0, 2.0]), ..Batch::new(0, Embeddings::new(&values, 2)) };
    let refused = adding("fine").partial(b"state", &short, &Services::none()).unwrap_err().to_string();
    assert_eq!(refused, "2 weights were given for 1 examples");
    let unable = run(&clusterer("stream"), "fine").unwrap_err().to_string();
    assert_eq!(unable, "cannot cluster examples that are elsewhere");
}
