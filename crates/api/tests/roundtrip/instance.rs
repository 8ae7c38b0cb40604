//! Instances: of which kind, what they need, and their end.

use std::sync::atomic::{AtomicUsize, Ordering};

use compflow_api::*;

use crate::clusterer::TestClusterer;
use crate::component::{Params, make};
use crate::services::Noting;

#[test]
fn an_instance_of_another_kind_is_refused() {
    let wrong: Result<ForeignLoader> = make(&Registration::clusterer::<TestClusterer>(), "fine");
    assert_eq!(wrong.unwrap_err().to_string(), "`c` is a clusterer, not a loader");
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
