//! What a component asks its host for.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use compflow_api::*;

use crate::clusterer::{TestClusterer, clusterer, everything, with_task};
use crate::component::{Params, make};

/// A host that notes what it is asked.
#[derive(Default)]
pub(crate) struct Noting {
    pub(crate) lines: Mutex<Vec<String>>,
    pub(crate) cancel: AtomicU32,
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

    fn content(&self, path: &str) -> Result<(PathBuf, Vec<u8>)> {
        Ok((self.input(path)?, if path == "empty" { Vec::new() } else { b"con\0tent".to_vec() }))
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
