//! Structures that have grown on either side of the boundary, and ones that nobody should believe.
//!
//! `growth/plugin.c` is compiled against headers in which structures that begin with their size have one field more, one
//! structure at a time and all at once: to the library, this crate is then an older caller; to this crate, it is a newer
//! library. What comes out must be the same.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "growth/build.rs"]
mod build;
#[path = "growth/hostile.rs"]
mod hostile;
#[path = "growth/raw.rs"]
mod raw;

use std::fmt::Write;
use std::mem::offset_of;
use std::path::Path;
use std::sync::Mutex;

use build::{built, library};
use compflow_api::abi::*;
use compflow_api::*;
use raw::*;

/// Remembers what was logged.
struct Recorder(Mutex<Vec<String>>);

impl Host for Recorder {
    fn log(&self, level: Level, text: &str) {
        self.0.lock().unwrap().push(format!("{level:?} {text}"));
    }

    fn progress(&self, done: u64, total: u64) {
        self.0.lock().unwrap().push(format!("{done} of {total}"));
    }

    fn version(&self) -> &str {
        "a test"
    }
}

fn make<T: TryFrom<Instance, Error = Error>>(library: &ForeignLibrary, name: &str) -> T {
    let component = library.components.iter().find(|component| component.name == name).unwrap();
    T::try_from(component.create("{}", &Services::none()).unwrap()).unwrap()
}

/// Calls every method of the library once at least; returns all that came of it.
fn transcript(library: &ForeignLibrary) -> String {
    let mut text = format!("{} {}\n", library.name, library.version);
    let recorder = Recorder(Mutex::default());
    let services = Services { host: &recorder, ..Services::none() };
    let mut say = |what: &str, value: &dyn std::fmt::Debug| writeln!(text, "{what}: {value:?}").unwrap();
    for component in &library.components {
        let ForeignComponent { kind, name, summary, documentation, schema, .. } = component;
        say(name, &(kind, summary, documentation, schema, component.flags()));
        let refused = component.create(r#"{"k": 1}"#, &services).unwrap_err();
        say("refused", &refused.problems());
    }

    let loader: ForeignLoader = make(library, "made");
    let columns = [
        ("embedding", "embedding"),
        ("truth", "sets"),
        ("id", "label"),
        ("column:mark", "mark"),
        ("column:word", "word"),
        ("weight", "weight"),
    ];
    let request = LoadRequest { path: Some(Path::new("/some/file")), columns: &columns };
    say("loaded", &loader.load(&request, &services).unwrap().collect::<Result<Vec<Table>>>().unwrap());
    let described = loader.describe(&request, &services).unwrap().unwrap();
    say("described", &(described.rows, described.dim, described.names().unwrap()));
    let request = LoadRequest { columns: &[("id", "other")], ..request };
    say("no column", &loader.load(&request, &services).unwrap_err().problems());
    let request = LoadRequest { path: None, columns: &[] };
    say("no file", &loader.load(&request, &services).unwrap_err().problems());

    let composer: ForeignComposer = make(library, "crooked");
    let (left, right, mut out, mut other) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [0.0; 4], [0.0; 4]);
    say("dim", &composer.dim());
    composer.compose(2, &left, &right, &mut out, &services).unwrap();
    say("composed", &out);
    composer.vjp(2, &left, &right, &right, &mut out, &mut other, &services).unwrap();
    say("vjp", &(out, other));
    let sets = Sets::from_iter([vec![0, 1], vec![1]]);
    let rows = Embeddings::new(&left, 2);
    composer.sets(rows, &sets, &mut out, &services).unwrap();
    say("sets", &out);
    composer.sets_vjp(rows, &sets, &right, &mut out, &services).unwrap();
    say("sets_vjp", &out);
    composer.compose(2, &[], &[], &mut [], &services).unwrap();

    let clusterer: ForeignClusterer = make(library, "halves");
    say("flags", &(clusterer.flags().unwrap(), clusterer.columns().unwrap(), clusterer.streams().unwrap()));
    say("memory", &clusterer.memory(Shape { rows: 10, dim: 4, degree: 3 }, &Services::none()).unwrap());
    let values = [1.0, 0.5, -1.0, 0.25, 3.0, 1.0];
    let truth = Sets::from_iter([vec![0], vec![0, 1], vec![]]);
    let seeds = Sets::from_iter([vec![], vec![0, 1], vec![]]);
    let columns: Table = vec![
        ("word".to_owned(), Column::Texts(["a", "", "c"].map(str::to_owned).to_vec())),
        ("id".to_owned(), Column::Integers(vec![4, 5, 6])),
    ];
    let task = Task {
        space: Space { normalize: Normalize::L2, distance: Distance::Euclidean },
        degree: 2,
        composer: Some(&composer),
        truth: Some(&truth),
        preferences: Some(&[-1.5, 0.0, 0.0]),
        weights: Some(&[1.0, 2.0, 4.0]),
        seeds: Some(&seeds),
        columns: &columns,
        ..Task::new(Embeddings::new(&values, 2))
    };
    say("clustered", &clusterer.cluster(&task, &services).unwrap());
    say("streamed", &clusterer.cluster_stream(&task.stream(), &services).unwrap());
    let bare = Task::new(Embeddings::new(&values, 2));
    say("bare", &clusterer.cluster(&bare, &services).unwrap());
    let long = Task::new(Embeddings::new(&values, 3));
    say("length", &clusterer.cluster(&long, &services).unwrap_err().problems());

    let evaluator: ForeignEvaluator = make(library, "sizes");
    say("metrics", &evaluator.try_metrics().unwrap());
    let predicted = Sets::from_iter([vec![0], vec![0, 1], vec![2]]);
    say("scores", &evaluator.evaluate(&Evaluation::new(&predicted, &truth), &services).unwrap());
    let clusters = Sets::singletons(&[0, 1]);
    let evaluation = Evaluation {
        rows: Some(&task.embeddings),
        space: task.space,
        degree: 2,
        clusters: Some(&clusters),
        centroids: Some(&values[..4]),
        columns: &columns,
        ..Evaluation::new(&predicted, &truth)
    };
    say("more scores", &evaluator.evaluate(&evaluation, &services).unwrap());

    say("log", &recorder.0.lock().unwrap());
    loader.close().unwrap();
    composer.close().unwrap();
    clusterer.close().unwrap();
    evaluator.close().unwrap();
    text
}

#[test]
fn a_library_whose_structures_have_grown_does_the_same() {
    let plain = transcript(&library(built().plain));
    // That it does anything at all.
    assert!(plain.contains("clustered: Clustering") && plain.contains(r#"("threshold", "0.25")"#), "{plain}");
    assert!(plain.contains("Info a test") && plain.contains("zwölf"), "{plain}");
    for (what, at) in &built().grown {
        assert_eq!(transcript(&library(*at)), plain, "{what}");
    }
    assert_eq!(transcript(&library(built().all)), plain);
}

#[test]
fn a_library_of_the_first_release_does_what_it_did() {
    let (now, first) = (transcript(&library(built().plain)), transcript(&library(built().first)));
    // All that it does not know of.
    assert!(now.contains(r#"("seeds", 2.0)"#) && first.contains(r#"("seeds", -1.0)"#), "{first}");
    assert_eq!(first, now.replace(r#"("seeds", 2.0)"#, r#"("seeds", -1.0)"#));
}

#[test]
fn a_caller_of_the_first_release_knows_no_sets_beforehand() {
    let [host, _, out] = CLUSTERING_NOW;
    let components = [Registration::clusterer::<Both>().describe(), raw_component(built().plain, KIND_CLUSTERER)];
    for component in &components {
        look(raw_cluster(component, [host, FIRST_TASK, out]).unwrap(), |found| {
            assert_eq!(found.assignments.array.length, 3);
        });
    }
}

#[test]
fn a_caller_of_the_first_release_is_asked_where_a_file_is() {
    let [host, task, out] = CLUSTERING_NOW;
    let component = Registration::clusterer::<Reads>().describe();
    for (host, said) in [(host, "no content"), (FIRST_HOST, "no path")] {
        assert_eq!(raw_cluster(&component, [host, task, out]).map(|_| ()).unwrap_err(), said);
    }
}

const CLUSTERING_NOW: [usize; 3] = [size_of::<RawHost>(), size_of::<RawTask>(), size_of::<RawClustering>()];
const DESCRIPTION_NOW: [usize; 3] =
    [size_of::<RawHost>(), size_of::<RawLoadRequest>(), size_of::<RawDescription>()];

/// What the structures of a later caller add, of which nothing may be touched.
const LATER: usize = size_of::<[u64; 8]>();

/// Looks at a result and releases it.
fn look<T>(mut out: Guarded<T>, look: impl FnOnce(&T)) {
    // SAFETY: it was there before it was handed over, and the call has assigned fields only.
    unsafe {
        look(out.value.assume_init_ref());
        out.value.assume_init_drop();
    }
}

#[test]
fn results_are_written_up_to_the_size_that_the_caller_has() {
    let clusterers = [Registration::clusterer::<Both>().describe(), raw_component(built().plain, KIND_CLUSTERER)];
    let loaders = [Registration::loader::<Both>().describe(), raw_component(built().plain, KIND_LOADER)];
    for later in [0, LATER] {
        for component in &clusterers {
            look(raw_cluster(component, CLUSTERING_NOW.map(|size| size + later)).unwrap(), |found| {
                assert_eq!((found.assignments.array.length, found.clusters.array.length), (3, 2));
            });
        }
        for component in &loaders {
            look(raw_describe(component, DESCRIPTION_NOW.map(|size| size + later)).unwrap(), |found| {
                assert_eq!((found.rows, found.dim), (3, 2));
                assert!(found.columns.n_children > 0);
            });
        }
    }
}

#[test]
fn a_library_with_longer_structures_writes_what_the_caller_has() {
    let (clusterer, loader) =
        (raw_component(built().all, KIND_CLUSTERER), raw_component(built().all, KIND_LOADER));
    look(raw_cluster(&clusterer, CLUSTERING_NOW).unwrap(), |found| assert_eq!(found.iterations, 3));
    look(raw_describe(&loader, DESCRIPTION_NOW).unwrap(), |found| assert_eq!(found.rows, 3));
    // With a caller that has the same, it would have found the further fields.
    let [host, task, out] = CLUSTERING_NOW;
    let seen = raw_cluster(&clusterer, [host, task + LATER, out]).map(|_| ()).unwrap_err();
    assert_eq!(seen, "the task has grown");
    let seen = raw_cluster(&clusterer, [host, task, out + LATER]).map(|_| ()).unwrap_err();
    assert_eq!(seen, "the clustering has grown");
    let [host, request, out] = DESCRIPTION_NOW;
    let seen = raw_describe(&loader, [host, request, out + LATER]).map(|_| ()).unwrap_err();
    assert_eq!(seen, "the description has grown");
}

#[test]
fn a_result_that_is_too_short_gets_what_fits_or_nothing() {
    let [host, task, _] = CLUSTERING_NOW;
    let short = [host, task, offset_of!(RawClustering, scalars)];
    look(raw_cluster(&raw_component(built().all, KIND_CLUSTERER), short).unwrap(), |found| {
        assert!(!found.trace.array.is_released() && found.scalars.array.is_released());
    });
    // Nobody has released such a caller, so those written in Rust need not make do with it.
    let refused = raw_cluster(&Registration::clusterer::<Both>().describe(), short).map(|_| ()).unwrap_err();
    assert_eq!(refused, format!("the result is truncated: {} bytes", short[2]));
    let [host, request, _] = DESCRIPTION_NOW;
    let loader = Registration::loader::<Both>().describe();
    let refused = raw_describe(&loader, [host, request, 24]).map(|_| ()).unwrap_err();
    assert_eq!(refused, "the description is truncated: 24 bytes");
}

#[test]
fn arguments_that_are_too_short_are_refused() {
    let [host, _, out] = CLUSTERING_NOW;
    let clusterer = Registration::clusterer::<Both>().describe();
    let refused = raw_cluster(&clusterer, [host, 95, out]).map(|_| ()).unwrap_err();
    assert_eq!(refused, "the task is truncated: 95 bytes, at least 96 expected");
    let [host, _, out] = DESCRIPTION_NOW;
    let loader = Registration::loader::<Both>().describe();
    let refused = raw_describe(&loader, [host, 8, out]).map(|_| ()).unwrap_err();
    assert_eq!(refused, "the load request is truncated: 8 bytes, at least 40 expected");
}
