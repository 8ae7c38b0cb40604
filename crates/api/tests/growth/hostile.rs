//! Descriptors and results that nobody should believe.

use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::sync::Mutex;

use compflow_api::abi::*;
use compflow_api::arrow::{ArrowArray, ArrowArrayStream, ArrowSchema};
use compflow_api::*;

use crate::build::built;
use crate::raw::*;

/// Keeps a value for the life of the process.
fn keep<T: Send>(value: T) -> &'static T {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let value = Box::leak(Box::new(value));
    KEPT.lock().unwrap().push(std::ptr::from_ref(value) as usize);
    value
}

/// Structures of pointers that nobody writes to.
struct Shared<T>(T);
// SAFETY: only read.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

/// A library of one component, after `change`; the component's methods begin with the two numbers of `methods`, if given.
fn hand_made(
    kind: u32,
    methods: Option<[u32; 2]>,
    change: impl FnOnce(&mut RawLibrary, &mut RawComponent),
) -> String {
    let mut component = raw_component(built().plain, kind);
    if let Some([size, reserved]) = methods {
        let mut words = [0u64; 8];
        words[0] = u64::from(size) | u64::from(reserved) << 32;
        component.methods = std::ptr::from_ref(keep(words)).cast();
    }
    let mut library = RawLibrary {
        size: size_of::<RawLibrary>() as u32,
        reserved: 0,
        name: lend("hand-made"),
        version: lend("0"),
        components: std::ptr::null(),
        component_count: 1,
    };
    change(&mut library, &mut component);
    if library.components.is_null() && library.component_count == 1 {
        let pointer: *const RawComponent = &keep(Shared(component)).0;
        library.components = &keep(Shared(pointer)).0;
    }
    // SAFETY: everything it points to is kept.
    match unsafe { ForeignLibrary::from_raw(&library) } {
        Ok(library) => match library.components.first() {
            Some(component) => format!("{:?}", component.flags()),
            None => library.refused[0].to_string(),
        },
        Err(error) => error.to_string(),
    }
}

#[test]
fn descriptors_that_cannot_be_are_refused() {
    let library = |change: fn(&mut RawLibrary)| hand_made(KIND_CLUSTERER, None, |library, _| change(library));
    assert_eq!(
        library(|library| library.size = 55),
        "the library's descriptor is truncated: 55 bytes, at least 56 expected"
    );
    assert_eq!(
        library(|library| library.size = 0),
        "the library's descriptor is truncated: 0 bytes, at least 56 expected"
    );
    assert_eq!(
        library(|library| library.reserved = 1),
        "a reserved field of the library's descriptor is 1, not 0"
    );
    assert_eq!(
        library(|library| library.component_count = 1 << 31),
        "the library claims 2147483648 components, more than 4096"
    );
    assert_eq!(
        library(|library| library.component_count = 2),
        "the library's list of components: a pointer to 2 values is null"
    );

    let component =
        |change: fn(&mut RawComponent)| hand_made(KIND_CLUSTERER, None, |_, component| change(component));
    assert_eq!(
        component(|component| component.size = 119),
        "a component's descriptor is truncated: 119 bytes, at least 120 expected"
    );
    assert_eq!(component(|component| component.kind = 5), "component `halves` is of the unknown kind 5");
    assert!(
        component(|component| component.flags = 1 << 31)
            .contains("clusterer `halves`: has flags 0x80000000 that this compflow does not understand")
    );
    // The other half is for whoever knows it.
    assert_eq!(component(|component| component.flags = 1 << 62), "Flags(0)");
    assert_eq!(component(|component| component.create = None), "clusterer `halves` lacks a function");
    assert_eq!(component(|component| component.methods = std::ptr::null()), "clusterer `halves` lacks a function");

    for (kind, least, name) in [
        (KIND_LOADER, 24, "loader `made`: the methods of a loader"),
        (KIND_COMPOSER, 48, "composer `crooked`: the methods of a composer"),
        (KIND_CLUSTERER, 32, "clusterer `halves`: the methods of a clusterer"),
        (KIND_EVALUATOR, 24, "evaluator `sizes`: the methods of an evaluator"),
    ] {
        let truncated = hand_made(kind, Some([least - 1, 0]), |_, _| {});
        assert_eq!(truncated, format!("{name} is truncated: {} bytes, at least {least} expected", least - 1));
        let reserved = hand_made(kind, Some([least, 7]), |_, _| {});
        assert!(reserved.ends_with("a reserved field of its methods is 7, not 0"), "{reserved}");
    }
    // Declared, and not there.
    let lacking = hand_made(KIND_COMPOSER, Some([48, 0]), |_, component| component.flags = COMPOSES_SETS);
    assert_eq!(lacking, "composer `crooked`: `compose_sets`: lacks the function");
}

// ---- results that nobody should believe ----

type Changes<T> = Box<dyn Fn(&mut T)>;

thread_local! {
    /// What the fake clusterer and evaluator of this thread do.
    static CLUSTERS: RefCell<Changes<RawClustering>> = RefCell::new(Box::new(|_| {}));
    static MEASURES: RefCell<Changes<RawMetric>> = RefCell::new(Box::new(|_| {}));
}

unsafe extern "C" fn fake_cluster(
    _instance: *mut c_void,
    _task: *const RawTask,
    _host: *const RawHost,
    out: *mut RawClustering,
) -> i32 {
    // SAFETY: the caller made room for a result.
    CLUSTERS.with_borrow(|clusters| clusters(unsafe { &mut *out }));
    STATUS_OK
}

unsafe extern "C" fn fake_metrics(
    _instance: *mut c_void,
    _host: *const RawHost,
    sink: MetricFn,
    sink_ctx: *mut c_void,
) -> i32 {
    let mut metric = RawMetric {
        size: size_of::<RawMetric>() as u32,
        unit: UNIT_NUMBER,
        name: lend("a"),
        least: 0.0,
        most: 1.0,
        larger_is_better: 1,
        reserved: 0,
    };
    MEASURES.with_borrow(|measures| measures(&mut metric));
    // SAFETY: the sink takes its context.
    unsafe { sink(sink_ctx, &metric) };
    STATUS_OK
}

unsafe extern "C" fn fake_create(params: RawStr, _host: *const RawHost, instance: *mut *mut c_void) -> i32 {
    // SAFETY: the text is lent, and there is room for a pointer.
    unsafe {
        let made = if text(params) == "null" {
            std::ptr::null_mut()
        } else {
            std::ptr::from_ref(&NOT_CANCELLED).cast_mut().cast()
        };
        *instance = made;
    }
    STATUS_OK
}

unsafe extern "C" fn fake_destroy(_instance: *mut c_void, _host: *const RawHost) -> i32 {
    STATUS_OK
}

fn fake_component(kind: u32) -> RawComponent {
    static CLUSTERER: RawClustererMethods = RawClustererMethods {
        size: size_of::<RawClustererMethods>() as u32,
        reserved: 0,
        memory: None,
        cluster: Some(fake_cluster),
        streams: None,
        partial: None,
        partial_of: None,
    };
    static EVALUATOR: RawEvaluatorMethods = RawEvaluatorMethods {
        size: size_of::<RawEvaluatorMethods>() as u32,
        reserved: 0,
        metrics: Some(fake_metrics),
        evaluate: None,
    };
    RawComponent {
        create: Some(fake_create),
        destroy: Some(fake_destroy),
        methods: match kind {
            KIND_CLUSTERER => std::ptr::from_ref(&CLUSTERER).cast(),
            _ => std::ptr::from_ref(&EVALUATOR).cast(),
        },
        flags_of: None,
        columns: None,
        ..raw_component(built().plain, kind)
    }
}

/// The fake component of a kind, as a host finds it.
fn fake(kind: u32) -> ForeignComponent {
    let pointer: *const RawComponent = &keep(Shared(fake_component(kind))).0;
    let library = RawLibrary {
        size: size_of::<RawLibrary>() as u32,
        reserved: 0,
        name: lend("fake"),
        version: lend("0"),
        components: &keep(Shared(pointer)).0,
        component_count: 1,
    };
    // SAFETY: everything it points to is kept.
    unsafe { ForeignLibrary::from_raw(&library) }.unwrap().components[0]
}

/// What the host says of a good result of three examples after `attack`.
fn attacked(attack: impl Fn(&mut RawClustering) + 'static) -> String {
    CLUSTERS.set(Box::new(move |out| {
        let sets = || vec![("clusters".to_owned(), Column::Sets(Sets::singletons(&[0, 1, 2])))];
        (out.assignments, out.clusters) = (table(sets()), table(sets()));
        attack(out);
    }));
    let instance = fake(KIND_CLUSTERER).create("{}", &Services::none()).unwrap();
    let clusterer = ForeignClusterer::try_from(instance).unwrap();
    let services = Services { memory: 1 << 20, ..Services::none() };
    match clusterer.cluster(&Task::new(Embeddings::new(&[0.0, 1.0, 2.0], 1)), &services) {
        Ok(_) => "fine".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// The only column of a table.
fn column(table: &mut RawTable) -> &mut ArrowArray {
    // SAFETY: the table is one of ours.
    unsafe { &mut **table.array.children }
}

/// The values inside of the lists that the only column of a table consists of.
fn items(table: &mut RawTable) -> &mut ArrowArray {
    // SAFETY: as in `column`.
    unsafe { &mut **column(table).children }
}

fn only_schema(table: &mut RawTable) -> &mut ArrowSchema {
    // SAFETY: as in `column`.
    unsafe { &mut **table.schema.children }
}

/// A struct of a struct of a struct and so on: its only child is itself.
fn bottomless() -> RawTable {
    struct Itself {
        table: RawTable,
        schemas: [*mut ArrowSchema; 1],
        arrays: [*mut ArrowArray; 1],
        buffers: [*const c_void; 1],
    }
    unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
        // SAFETY: the caller owns the schema.
        unsafe { (*schema).release = None };
    }
    unsafe extern "C" fn release_array(array: *mut ArrowArray) {
        // SAFETY: the caller owns the array.
        unsafe { (*array).release = None };
    }
    fn fill(table: &mut RawTable, itself: *mut Itself) {
        table.schema.format = c"+s".as_ptr().cast::<c_char>();
        table.schema.name = c"clusters".as_ptr().cast::<c_char>();
        (table.schema.n_children, table.array.n_children) = (1, 1);
        (table.array.length, table.array.n_buffers) = (3, 1);
        // SAFETY: `itself` is kept.
        unsafe {
            table.schema.children = (&raw mut (*itself).schemas).cast();
            table.array.children = (&raw mut (*itself).arrays).cast();
            table.array.buffers = (&raw mut (*itself).buffers).cast();
        }
        table.schema.release = Some(release_schema);
        table.array.release = Some(release_array);
    }
    let itself = Itself {
        table: no_table(),
        schemas: [std::ptr::null_mut()],
        arrays: [std::ptr::null_mut()],
        buffers: [std::ptr::null()],
    };
    let itself: *mut Itself = std::ptr::from_ref(&keep(Shared(itself)).0).cast_mut();
    let mut outer = no_table();
    // SAFETY: nobody else has it yet.
    unsafe {
        fill(&mut (*itself).table, itself);
        (*itself).schemas = [&raw mut (*itself).table.schema];
        (*itself).arrays = [&raw mut (*itself).table.array];
    }
    fill(&mut outer, itself);
    outer
}

#[test]
fn arrow_structures_that_cannot_be_are_refused_before_they_are_read() {
    let refused = |wanted: &str, attack: fn(&mut RawClustering)| {
        let said = attacked(attack);
        assert!(said.starts_with("an impossible result: ") && said.contains(wanted), "{wanted}: {said}");
    };
    assert_eq!(attacked(|_| {}), "fine");

    // Lengths and offsets.
    refused("4611686018427387904 assignments were returned for 3 examples", |out| {
        out.assignments.array.length = 1 << 62
    });
    refused("the table `clusters`", |out| out.clusters.array.length = 1 << 62);
    refused("claims 1099511627776 values, more than the memory budget holds", |out| {
        (out.clusters.array.length, column(&mut out.clusters).length) = (1 << 40, 1 << 40);
    });
    refused("has the length -1 and the offset 0", |out| column(&mut out.clusters).length = -1);
    refused("has the length 3 and the offset -2", |out| out.assignments.array.offset = -2);
    refused("has the length 3 and the offset -9223372036854775808", |out| {
        column(&mut out.clusters).offset = i64::MIN
    });
    refused("more than the memory budget holds", |out| column(&mut out.assignments).offset = i64::MAX);
    refused("has 3 values where there must be 4", |out| out.assignments.array.offset = 1);
    refused("has 4 nulls among 3 values", |out| column(&mut out.assignments).null_count = 4);
    refused("refers to value", |out| items(&mut out.assignments).length = 2);

    // Children.
    refused("child 0 is null or was released", |out| {
        // The list itself is what its owner releases by.
        let nothing = &keep(Shared([std::ptr::null_mut::<ArrowArray>()])).0;
        out.assignments.array.children = nothing.as_ptr().cast_mut();
    });
    refused("its 1 children are null", |out| out.assignments.array.children = std::ptr::null_mut());
    refused("its 1 children are null", |out| out.clusters.schema.children = std::ptr::null_mut());
    refused("1099511627776 children", |out| out.assignments.array.n_children = 1 << 40);
    refused("-1 children", |out| out.assignments.schema.n_children = -1);
    refused("has 0 children, its type 1", |out| column(&mut out.assignments).n_children = 0);
    refused("has types more than 16 deep", |out| out.assignments = bottomless());

    // Buffers.
    refused("has 1 buffers, and its type needs 2", |out| column(&mut out.assignments).n_buffers = 1);
    refused("has 1099511627776 buffers", |out| column(&mut out.assignments).n_buffers = 1 << 40);
    refused("has 2 buffers, and its type needs 2", |out| {
        column(&mut out.assignments).buffers = std::ptr::null_mut()
    });
    refused("lacks a buffer", |out| {
        // SAFETY: the column has two buffers.
        unsafe { *column(&mut out.assignments).buffers.add(1) = std::ptr::null() };
    });

    // Types.
    refused("must be a list of u32, found Arrow's `l`", |out| {
        out.assignments = table(vec![("clusters".to_owned(), Column::Integers(vec![0, 1, 2]))]);
    });
    refused("must be a struct", |out| out.assignments.schema.format = c"+w:1".as_ptr().cast());
    refused("is too wide", |out| {
        only_schema(&mut out.assignments).format = c"+w:99999999999".as_ptr().cast();
        column(&mut out.assignments).n_buffers = 1;
    });
    refused("was not returned", |out| out.clusters = no_table());
}

#[test]
fn a_stream_that_cannot_be_is_refused() {
    unsafe extern "C" fn too_long(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> i32 {
        let _ = stream;
        let mut made = table(some_numbers());
        made.array.length = 1 << 62;
        column(&mut made).length = 1 << 62;
        // SAFETY: there is room for an array.
        unsafe { out.write(std::mem::replace(&mut made.array, ArrowArray::empty())) };
        0
    }
    let mut raw = Stream::of(some_numbers()).unwrap().into_raw();
    raw.get_next = Some(too_long);
    // SAFETY: a stream of ours, but for the lengths.
    let error = unsafe { Stream::from_raw(raw) }.unwrap().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("claims 4611686018427387904 values"), "{error}");
    // SAFETY: refused.
    let error = unsafe { Stream::from_raw(ArrowArrayStream::empty()) }.unwrap_err();
    assert_eq!(error.to_string(), "no stream was returned, or one that lacks a function");
}

#[test]
fn an_instance_that_is_none_is_refused() {
    let error = fake(KIND_CLUSTERER).create("null", &Services::none()).unwrap_err();
    assert_eq!(error.to_string(), "returned no instance, and no error");
    // A composer that a caller hands over without an instance.
    let composer = raw_component(built().plain, KIND_COMPOSER);
    let nobody = RawInstance { instance: std::ptr::null_mut(), component: &composer };
    let mut task = raw_task(size_of::<RawTask>());
    // SAFETY: the task was just made.
    unsafe { task.value.assume_init_mut() }.composer = &nobody;
    let clusterer = Registration::clusterer::<Both>().describe();
    let mut out = raw_clustering(size_of::<RawClustering>());
    // SAFETY: the arguments are what the boundary allows, but for the composer.
    let refused = unsafe {
        let methods = &*clusterer.methods.cast::<RawClustererMethods>();
        with_raw(&clusterer, size_of::<RawHost>(), |instance, host| {
            methods.cluster.unwrap()(instance, task.pointer(), host, out.pointer())
        })
    };
    assert_eq!(refused.unwrap_err(), "composer `crooked`: there is no instance");
}

#[test]
fn metrics_that_cannot_be_are_refused() {
    let measured = |change: fn(&mut RawMetric)| {
        MEASURES.set(Box::new(change));
        let instance = fake(KIND_EVALUATOR).create("{}", &Services::none()).unwrap();
        ForeignEvaluator::try_from(instance).unwrap().try_metrics().map_err(|error| error.to_string())
    };
    assert_eq!(measured(|_| {}).unwrap().len(), 1);
    let truncated = measured(|metric| metric.size = 40).unwrap_err();
    assert_eq!(truncated, "a metric is truncated: 40 bytes, at least 48 expected");
    assert_eq!(measured(|metric| metric.reserved = 2).unwrap_err(), "a reserved field of a metric is 2, not 0");
}
