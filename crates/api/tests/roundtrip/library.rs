//! What a library says of itself and its components.

use std::sync::Mutex;

use compflow_api::*;

use crate::clusterer::TestClusterer;

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
