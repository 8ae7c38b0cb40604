//! Calls without this crate on the caller's side, so that everything about their arguments can be chosen.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use compflow_api::abi::*;
use compflow_api::arrow::{ArrowArray, ArrowArrayStream, ArrowSchema};
use compflow_api::*;

/// A value with something behind it, which begins where `size` ends.
#[repr(C)]
pub(crate) struct Guarded<T> {
    pub(crate) value: MaybeUninit<T>,
    pub(crate) behind: [u64; 8],
}

pub(crate) const CANARY: u64 = 0xA5A5_5A5A_A5A5_5A5A;

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: MaybeUninit::new(value), behind: [CANARY; 8] }
    }

    /// The value, as somebody sees it who thinks that it is longer: a pointer to all of it.
    pub(crate) fn pointer(&mut self) -> *mut T {
        std::ptr::from_mut(self).cast()
    }
}

unsafe extern "C" fn take_problem(ctx: *mut c_void, error: *const RawError) {
    // SAFETY: `ctx` is that of `raw_host`, and the texts are lent for the call.
    unsafe { (*ctx.cast::<String>()).push_str(text((*error).text)) };
}

unsafe extern "C" fn take_log(_ctx: *mut c_void, _level: u32, _text: RawStr) {}
unsafe extern "C" fn take_progress(_ctx: *mut c_void, _done: u64, _total: u64) {}

/// # Safety
/// `error` takes `error_ctx`.
unsafe fn refuse(text: &str, error: ErrorFn, error_ctx: *mut c_void) -> i32 {
    let (parameter, help) = (lend(""), lend(""));
    let size = size_of::<RawError>() as u32;
    // SAFETY: the caller vouches for the function; the problem is lent for the call.
    unsafe { error(error_ctx, &RawError { size, code: ERROR_DATA, parameter, text: lend(text), help }) };
    STATUS_ERROR
}

unsafe extern "C" fn no_input(
    _ctx: *mut c_void,
    _path: RawStr,
    _sink: TextFn,
    _sink_ctx: *mut c_void,
    error: ErrorFn,
    error_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the sink is the library's own.
    unsafe { refuse("no path", error, error_ctx) }
}
unsafe extern "C" fn no_content(
    _ctx: *mut c_void,
    _path: RawStr,
    _sink: FileFn,
    _sink_ctx: *mut c_void,
    error: ErrorFn,
    error_ctx: *mut c_void,
) -> i32 {
    // SAFETY: as in `no_input`.
    unsafe { refuse("no content", error, error_ctx) }
}
unsafe extern "C" fn no_create(
    _ctx: *mut c_void,
    _kind: u32,
    _name: RawStr,
    _params: RawStr,
    _instance: *mut RawInstance,
    _error: ErrorFn,
    _error_ctx: *mut c_void,
) -> i32 {
    STATUS_ERROR
}

/// # Safety
/// The text lives for `'a`.
pub(crate) unsafe fn text<'a>(raw: RawStr) -> &'a str {
    // SAFETY: the caller vouches for the bytes.
    std::str::from_utf8(unsafe { std::slice::from_raw_parts(raw.ptr, raw.len as usize) }).unwrap()
}

pub(crate) fn lend(text: &str) -> RawStr {
    RawStr { ptr: text.as_ptr(), len: text.len() as u64 }
}

pub(crate) static NOT_CANCELLED: u32 = 0;

/// A host that only takes problems, into `said`.
pub(crate) fn raw_host(size: usize, said: &mut String) -> Guarded<RawHost> {
    Guarded::new(RawHost {
        size: size as u32,
        threads: 1,
        seed: 0,
        memory: 1 << 30,
        cancel: &NOT_CANCELLED,
        version: lend("a test"),
        ctx: std::ptr::from_mut(said).cast(),
        error: take_problem,
        log: take_log,
        progress: take_progress,
        input: no_input,
        create: no_create,
        content: Some(no_content),
    })
}

/// The examples of the raw tasks below: 3 of length 2.
pub(crate) static EXAMPLES: [f32; 6] = [1.0, 0.5, -1.0, 0.25, 3.0, 1.0];

unsafe extern "C" fn pass_examples(
    _ctx: *mut c_void,
    each: BatchFn,
    each_ctx: *mut c_void,
    _error: ErrorFn,
    _error_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the function takes its context; the rows are lent.
    unsafe { each(each_ctx, 3, EXAMPLES.as_ptr()) }
}

/// What an older caller has behind its task; who reads it takes the examples to be elsewhere.
unsafe extern "C" fn not_there(
    _ctx: *mut c_void,
    _state: *const u8,
    _state_len: u64,
    _sink: PartialFn,
    _sink_ctx: *mut c_void,
    _error: ErrorFn,
    _error_ctx: *mut c_void,
) -> i32 {
    STATUS_ERROR
}

/// The sizes of a task and of the services in the first release.
pub(crate) const FIRST_TASK: usize = 96;
pub(crate) const FIRST_HOST: usize = 96;

pub(crate) fn raw_task(size: usize) -> Guarded<RawTask> {
    Guarded::new(RawTask {
        size: size as u32,
        degree: 1,
        rows: 3,
        dim: 2,
        embeddings: EXAMPLES.as_ptr(),
        normalize: NORMALIZE_NONE,
        distance: DISTANCE_SQEUCLIDEAN,
        composer: std::ptr::null(),
        truth: std::ptr::null(),
        preferences: std::ptr::null(),
        weights: std::ptr::null(),
        columns: std::ptr::null(),
        ctx: std::ptr::null_mut(),
        pass: Some(pass_examples),
        // A caller of the first release has something else here.
        seeds: if size == FIRST_TASK { std::ptr::without_provenance(8) } else { std::ptr::null() },
        reduce: if size < size_of::<RawTask>() { Some(not_there) } else { None },
    })
}

pub(crate) fn no_table() -> RawTable {
    RawTable { array: ArrowArray::empty(), schema: ArrowSchema::empty() }
}

pub(crate) fn raw_clustering(size: usize) -> Guarded<RawClustering> {
    Guarded::new(RawClustering {
        size: size as u32,
        converged: 0,
        iterations: 0,
        objective: 0.0,
        assignments: no_table(),
        clusters: no_table(),
        trace: no_table(),
        scalars: no_table(),
        resolved: no_table(),
        singletons: no_table(),
        densities: no_table(),
        factors: no_table(),
    })
}

/// Makes an instance, has `call` use it, and ends it; what was said, if the status is not OK.
///
/// # Safety
/// The component is a well-formed one, and `call` does with the instance and the host what the boundary allows.
pub(crate) unsafe fn with_raw(
    component: &RawComponent,
    host_size: usize,
    call: impl FnOnce(*mut c_void, *const RawHost) -> i32,
) -> Result<(), String> {
    let mut said = String::new();
    let mut host = raw_host(host_size, &mut said);
    let host: *const RawHost = host.pointer();
    let mut instance = std::ptr::null_mut();
    // SAFETY: the caller vouches for the component.
    let status = unsafe {
        assert_eq!(component.create.unwrap()(lend("{}"), host, &mut instance), STATUS_OK);
        let status = call(instance, host);
        assert_eq!(component.destroy.unwrap()(instance, host), STATUS_OK);
        status
    };
    if status == STATUS_OK { Ok(()) } else { Err(said) }
}

/// A component of a library of `built`.
pub(crate) fn raw_component(library: usize, kind: u32) -> RawComponent {
    // SAFETY: made by `open`.
    unsafe {
        let library = &*(library as *const RawLibrary);
        let components = std::slice::from_raw_parts(library.components, library.component_count as usize);
        let found = components.iter().find(|component| (***component).kind == kind).unwrap();
        **found
    }
}

/// Clusters with a host, a task and room for a result whose sizes are as given; the result, if there is one.
pub(crate) fn raw_cluster(
    component: &RawComponent,
    [host_size, task_size, out_size]: [usize; 3],
) -> Result<Guarded<RawClustering>, String> {
    let (mut task, mut out) = (raw_task(task_size), raw_clustering(out_size));
    // SAFETY: the component is a clusterer, and both structures are at least as long as they say.
    let status = unsafe {
        let methods = &*component.methods.cast::<RawClustererMethods>();
        let (task, out) = (task.pointer(), out.pointer());
        with_raw(component, host_size, |instance, host| methods.cluster.unwrap()(instance, task, host, out))
    };
    assert_eq!(out.behind, [CANARY; 8], "was written behind the structure");
    status.map(|()| out)
}

/// Likewise describes.
pub(crate) fn raw_describe(
    component: &RawComponent,
    [host_size, request_size, out_size]: [usize; 3],
) -> Result<Guarded<RawDescription>, String> {
    let mut request = Guarded::new(RawLoadRequest {
        size: request_size as u32,
        reserved: 0,
        path: lend("/some/file"),
        columns: std::ptr::null(),
        column_count: 0,
    });
    let mut out = Guarded::new(RawDescription {
        size: out_size as u32,
        reserved: 0,
        rows: 0,
        dim: 0,
        columns: ArrowSchema::empty(),
    });
    // SAFETY: as in `raw_cluster`, for a loader.
    let status = unsafe {
        let methods = &*component.methods.cast::<RawLoaderMethods>();
        let (request, out) = (request.pointer(), out.pointer());
        with_raw(component, host_size, |instance, host| methods.describe.unwrap()(instance, request, host, out))
    };
    assert_eq!(out.behind, [CANARY; 8], "was written behind the structure");
    status.map(|()| out)
}

/// One component that is a clusterer and, under another name, a loader.
pub(crate) struct Both;

impl Component for Both {
    const NAME: &'static str = "both";
    const SUMMARY: &'static str = "clusters and describes";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Clusterer for Both {
    fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
        let labels: Vec<u32> = task.embeddings.values().chunks(2).map(|row| (row[0] > 0.0).into()).collect();
        Ok(Clustering::from_labels(&labels))
    }
}

impl Loader for Both {
    fn load(&self, _request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Stream> {
        Err(Error::new("only describes"))
    }

    fn describe(&self, _request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Option<Description>> {
        Ok(Some(Description { rows: Some(3), dim: Some(2), columns: table(some_numbers()).schema }))
    }
}

/// A clusterer that asks for a file.
pub(crate) struct Reads;

impl Component for Reads {
    const NAME: &'static str = "reads";
    const SUMMARY: &'static str = "asks for a file";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Clusterer for Reads {
    fn cluster(&self, _task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        services.content("file").map(|_| Clustering::default())
    }
}

pub(crate) fn some_numbers() -> Table {
    vec![("numbers".to_owned(), Column::Integers(vec![1, 2, 3]))]
}

/// A table as it crosses.
pub(crate) fn table(columns: Table) -> RawTable {
    let mut stream: ArrowArrayStream = Stream::of(columns).unwrap().into_raw();
    let mut table = no_table();
    // SAFETY: the stream is live, and both structures are there to be overwritten.
    unsafe {
        assert_eq!(stream.get_schema.unwrap()(&mut stream, &mut table.schema), 0);
        assert_eq!(stream.get_next.unwrap()(&mut stream, &mut table.array), 0);
    }
    table
}
