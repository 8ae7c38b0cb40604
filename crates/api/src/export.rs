//! The plugin's side of the crossing: from the Rust traits to the tables of functions that a library exports.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, OnceLock, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use crate::abi::*;
use crate::foreign::{Instance, borrow_composer};
use crate::guard::{Slot, catch, enter, into_raw, remember_panics_instead_of_printing, report};
use crate::raw::{collect_text, copy_sets, lend, optional_text, read_sized, slice, slice_mut, text};
use crate::{
    Clusterer, Component, Composer, Distance, Embeddings, Error, Evaluator, Flags, Host, Kind, Level, LoadRequest,
    Loader, Normalize, Result, Rows, Services, Sets, Space, StreamTask, Task, params,
};

/// An entry in the library's own list of components, made by [`register!`](crate::register).
#[derive(Debug)]
pub struct Registration {
    describe: fn() -> RawComponent,
}

inventory::collect!(Registration);

/// The datum that [`export_library!`](crate::export_library) exports.
pub const ABI: RawAbi = RawAbi { magic: MAGIC, abi_version: ABI_VERSION, size: size_of::<RawLibrary>() as u32 };

/// What the library exports, built once from its registrations; null if describing them panics, and `sink` takes why.
///
/// # Safety
/// `sink` takes `sink_ctx`.
pub unsafe fn library(
    name: &'static str,
    version: &'static str,
    sink: TextFn,
    sink_ctx: *mut c_void,
) -> *const RawLibrary {
    struct Shared(Result<*const RawLibrary>);
    // SAFETY: the descriptor is never written after it was made.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}
    static LIBRARY: OnceLock<Shared> = OnceLock::new();
    let describe = || {
        remember_panics_instead_of_printing();
        let describe_all = || {
            let mut components: Vec<RawComponent> =
                inventory::iter::<Registration>().map(|registration| (registration.describe)()).collect();
            // The linker decides the order of registrations; lists should not depend on it.
            // SAFETY: the names were made from `&'static str`.
            components.sort_by_key(|component| (component.kind, unsafe { text(component.name) }.ok()));
            let components: Vec<*const RawComponent> = components
                .into_iter()
                .map(|component| &*Box::leak(Box::new(component)) as *const RawComponent)
                .collect();
            let components: &'static [*const RawComponent] = components.leak();
            Ok(&*Box::leak(Box::new(RawLibrary {
                size: size_of::<RawLibrary>() as u32,
                reserved: 0,
                name: lend(name),
                version: lend(version),
                components: components.as_ptr(),
                component_count: components.len() as u64,
            })) as *const RawLibrary)
        };
        Shared(catch(describe_all))
    };
    match &LIBRARY.get_or_init(describe).0 {
        Ok(library) => *library,
        Err(error) => {
            // SAFETY: the caller vouches for the sink; the text is lent for the call.
            unsafe { sink(sink_ctx, lend(&error.to_string())) };
            std::ptr::null()
        }
    }
}

/// Exports the components that the crate [registers](crate::register). Stands once in `lib.rs`.
#[macro_export]
macro_rules! export_library {
    () => {
        #[doc(hidden)]
        #[unsafe(no_mangle)]
        pub static COMPFLOW_ABI: $crate::abi::RawAbi = $crate::export::ABI;

        #[doc(hidden)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn compflow_library(
            sink: $crate::abi::TextFn,
            sink_ctx: *mut ::std::ffi::c_void,
        ) -> *const $crate::abi::RawLibrary {
            // SAFETY: the host hands over a sink together with its context.
            unsafe { $crate::export::library(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"), sink, sink_ctx) }
        }
    };
}

/// Adds a component to the library: `register!(clusterer KMeans);`, likewise `loader`, `composer` and `evaluator`.
#[macro_export]
macro_rules! register {
    ($kind:ident $component:ty) => {
        $crate::inventory::submit! { $crate::Registration::$kind::<$component>() }
    };
}

fn component<C: Component>(kind: Kind, methods: *const c_void) -> RawComponent {
    let schema = params::schema::<C::Params>();
    let of_params = schema.get("description").and_then(|text| text.as_str()).unwrap_or_default();
    let documentation = if C::DOCUMENTATION.is_empty() { of_params } else { C::DOCUMENTATION };
    RawComponent {
        size: size_of::<RawComponent>() as u32,
        kind: kind as u32,
        flags: C::FLAGS.0,
        reserved: 0,
        name: lend(C::NAME),
        summary: lend(C::SUMMARY),
        documentation: lend(documentation.to_owned().leak()),
        schema: lend(schema.to_string().leak()),
        create: Some(create::<C>),
        destroy: Some(destroy::<C>),
        methods,
    }
}

impl Registration {
    /// A loader.
    pub const fn loader<C: Component + Loader>() -> Self {
        Self {
            describe: || {
                let methods = const {
                    &RawLoaderMethods {
                        size: size_of::<RawLoaderMethods>() as u32,
                        reserved: 0,
                        load: Some(load::<C>),
                    }
                };
                component::<C>(Kind::Loader, std::ptr::from_ref(methods).cast())
            },
        }
    }

    /// A composer.
    pub const fn composer<C: Component + Composer>() -> Self {
        Self {
            describe: || {
                let methods = const {
                    &RawComposerMethods {
                        size: size_of::<RawComposerMethods>() as u32,
                        reserved: 0,
                        dim: Some(dim::<C>),
                        compose: Some(compose::<C>),
                        vjp: if C::FLAGS.contains(Flags::HAS_GRADIENTS) { Some(vjp::<C>) } else { None },
                    }
                };
                component::<C>(Kind::Composer, std::ptr::from_ref(methods).cast())
            },
        }
    }

    /// A clusterer.
    pub const fn clusterer<C: Component + Clusterer>() -> Self {
        Self {
            describe: || {
                let methods = const {
                    &RawClustererMethods {
                        size: size_of::<RawClustererMethods>() as u32,
                        reserved: 0,
                        memory: Some(memory::<C>),
                        cluster: Some(cluster::<C>),
                        streams: Some(streams::<C>),
                        cluster_stream: Some(cluster_stream::<C>),
                    }
                };
                component::<C>(Kind::Clusterer, std::ptr::from_ref(methods).cast())
            },
        }
    }

    /// An evaluator.
    pub const fn evaluator<C: Component + Evaluator>() -> Self {
        Self {
            describe: || {
                let methods = const {
                    &RawEvaluatorMethods {
                        size: size_of::<RawEvaluatorMethods>() as u32,
                        reserved: 0,
                        metrics: Some(metrics::<C>),
                        evaluate: Some(evaluate::<C>),
                    }
                };
                component::<C>(Kind::Evaluator, std::ptr::from_ref(methods).cast())
            },
        }
    }

    /// The component, as a library that exported it would hand it to the host: for tests that cross the boundary
    /// within one process.
    ///
    /// # Errors
    /// If it is not well-formed.
    pub fn component(&self) -> Result<crate::ForeignComponent> {
        let raw: &'static RawComponent = Box::leak(Box::new((self.describe)()));
        // SAFETY: made by this file, and leaked.
        unsafe { crate::ForeignComponent::from_raw(raw) }
    }
}

/// The caller's service table, as a [`Host`].
struct Caller(*const RawHost);

// SAFETY: the functions of a `RawHost` may be called from any thread, and its fields are not written.
unsafe impl Send for Caller {}
// SAFETY: as above.
unsafe impl Sync for Caller {}

impl Host for Caller {
    fn log(&self, level: Level, line: &str) {
        // SAFETY: the table is valid for the call in which this exists; the text is lent.
        unsafe { ((*self.0).log)((*self.0).ctx, level as u32, lend(line)) }
    }

    fn progress(&self, done: u64, total: u64) {
        // SAFETY: as in `log`.
        unsafe { ((*self.0).progress)((*self.0).ctx, done, total) }
    }

    fn cancel(&self) -> &AtomicU32 {
        // SAFETY: the caller promises a valid, aligned `u32` that everybody accesses atomically.
        unsafe { AtomicU32::from_ptr((*self.0).cancel.cast_mut()) }
    }

    fn input(&self, path: &str) -> Result<PathBuf> {
        let mut answer = String::new();
        let sink = std::ptr::from_mut(&mut answer).cast();
        // SAFETY: as in `log`; the sink is a `String`, as `collect_text` expects.
        let status = unsafe { ((*self.0).input)((*self.0).ctx, lend(path), collect_text, sink) };
        match status {
            STATUS_OK => Ok(answer.into()),
            STATUS_CANCELLED => Err(Error::Cancelled),
            _ => Err(Error::Failed(answer)),
        }
    }

    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        let mut answer = String::new();
        let mut instance = RawInstance { instance: std::ptr::null_mut(), component: std::ptr::null() };
        // SAFETY: as in `input`.
        let status = unsafe {
            ((*self.0).create)(
                (*self.0).ctx,
                kind as u32,
                lend(name),
                lend(params),
                &mut instance,
                collect_text,
                std::ptr::from_mut(&mut answer).cast(),
            )
        };
        match status {
            // SAFETY: on success the table hands over an instance with its component.
            STATUS_OK => unsafe { Instance::from_raw(instance) },
            STATUS_CANCELLED => Err(Error::Cancelled),
            _ => Err(Error::Failed(answer)),
        }
    }
}

/// Lets `call` use the caller's services.
///
/// # Safety
/// `host` is valid for the duration of the call.
unsafe fn with_services<R>(host: *const RawHost, call: impl FnOnce(&Services<'_>) -> R) -> R {
    let caller = Caller(host);
    // SAFETY: the caller vouches for `host`.
    let (seed, threads, memory) = unsafe { ((*host).seed, (*host).threads, (*host).memory) };
    call(&Services { host: &caller, seed, threads: (threads as usize).max(1), memory })
}

unsafe extern "C" fn create<C: Component>(
    raw_params: RawStr,
    host: *const RawHost,
    instance: *mut *mut c_void,
) -> i32 {
    // SAFETY: the arguments are as `RawComponent::create` says.
    unsafe {
        report(
            host,
            catch(|| {
                let params = params::parse::<C::Params>(text(raw_params)?)?;
                let made = with_services(host, |services| C::new(params, services))?;
                *instance = into_raw(made);
                Ok(())
            }),
        )
    }
}

unsafe extern "C" fn destroy<C: Component>(instance: *mut c_void, host: *const RawHost) -> i32 {
    // SAFETY: the pointer came from `create` above and is not used again.
    let slot = unsafe { Box::from_raw(instance.cast::<Slot<C>>()) };
    // SAFETY: the caller vouches for `host`.
    unsafe {
        report(
            host,
            catch(|| {
                drop(slot);
                Ok(())
            }),
        )
    }
}

/// Passes batches on. The callbacks of an Arrow stream do not expect a panic, nor a NUL in an error's text, so neither
/// gets there; a stream that panicked has ended.
struct Guarded {
    batches: Option<crate::Batches>,
    schema: SchemaRef,
}

impl Guarded {
    fn end(&mut self) {
        let batches = self.batches.take();
        // What goes wrong while it is being dropped has nobody to be told to.
        let _ = catch(|| {
            drop(batches);
            Ok(())
        });
    }
}

impl Iterator for Guarded {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.batches.as_mut()?;
        let error = match catch(|| Ok(batches.next())) {
            Ok(Some(Err(error))) => error.to_string(),
            Ok(next) => return next,
            Err(error) => {
                self.end();
                error.to_string()
            }
        };
        Some(Err(ArrowError::ComputeError(error.replace('\0', "\u{fffd}"))))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.end();
    }
}

impl RecordBatchReader for Guarded {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

unsafe extern "C" fn load<C: Component + Loader>(
    instance: *mut c_void,
    request: *const RawLoadRequest,
    host: *const RawHost,
    out: *mut FFI_ArrowArrayStream,
) -> i32 {
    // SAFETY: the arguments are as `RawLoaderMethods::load` says.
    unsafe {
        enter::<C>(instance, host, |loader| {
            let request = read_sized(request);
            let request = LoadRequest {
                path: optional_text(request.path)?.map(Path::new),
                embedding: optional_text(request.embedding)?,
                truth: optional_text(request.truth)?,
                trial: optional_text(request.trial)?,
                id: optional_text(request.id)?,
                preference: optional_text(request.preference)?,
            };
            let batches = with_services(host, |services| loader.load(&request, services))?;
            let schema = batches.schema();
            out.write(FFI_ArrowArrayStream::new(Box::new(Guarded { batches: Some(batches), schema })));
            Ok(())
        })
    }
}

unsafe extern "C" fn dim<C: Component + Composer>(instance: *mut c_void) -> u64 {
    // SAFETY: the pointer came from `create`.
    let slot = unsafe { &*instance.cast::<Slot<C>>() };
    slot.call(|composer| Ok(composer.dim())).ok().flatten().unwrap_or(0) as u64
}

unsafe extern "C" fn compose<C: Component + Composer>(
    instance: *mut c_void,
    rows: u64,
    dim: u64,
    left: *const f32,
    right: *const f32,
    out: *mut f32,
    host: *const RawHost,
) -> i32 {
    let len = rows * dim;
    // SAFETY: the arguments are as `RawComposerMethods::compose` says.
    unsafe {
        enter::<C>(instance, host, |composer| {
            composer.compose(dim as usize, slice(left, len), slice(right, len), slice_mut(out, len))
        })
    }
}

unsafe extern "C" fn vjp<C: Component + Composer>(
    instance: *mut c_void,
    rows: u64,
    dim: u64,
    left: *const f32,
    right: *const f32,
    grad: *const f32,
    grad_left: *mut f32,
    grad_right: *mut f32,
    host: *const RawHost,
) -> i32 {
    let len = rows * dim;
    // SAFETY: the arguments are as `RawComposerMethods::vjp` says.
    unsafe {
        enter::<C>(instance, host, |composer| {
            composer.vjp(
                dim as usize,
                slice(left, len),
                slice(right, len),
                slice(grad, len),
                slice_mut(grad_left, len),
                slice_mut(grad_right, len),
            )
        })
    }
}

unsafe extern "C" fn memory<C: Component + Clusterer>(
    instance: *mut c_void,
    rows: u64,
    dim: u64,
    degree: u32,
) -> u64 {
    // SAFETY: the pointer came from `create`.
    let slot = unsafe { &*instance.cast::<Slot<C>>() };
    slot.call(|clusterer| Ok(clusterer.memory(rows as usize, dim as usize, degree as usize))).unwrap_or(0)
}

unsafe extern "C" fn cluster<C: Component + Clusterer>(
    instance: *mut c_void,
    task: *const RawTask,
    host: *const RawHost,
    out: *mut RawClustering,
) -> i32 {
    // SAFETY: the arguments are as `RawClustererMethods::cluster` says.
    unsafe {
        enter::<C>(instance, host, |clusterer| {
            let task = read_sized(task);
            require_examples(task.rows, task.dim)?;
            let composer = task.composer.as_ref().map(|raw| borrow_composer(*raw)).transpose()?;
            let truth = task.truth.as_ref().map(|raw| copy_sets(raw)).transpose()?;
            let (rows, dim) = (task.rows, task.dim);
            let task = Task {
                embeddings: Embeddings::new(slice(task.embeddings, rows * dim), dim as usize),
                space: space(task.normalize, task.distance)?,
                degree: task.degree as usize,
                composer: composer.as_deref().map(|composer| composer as &dyn Composer),
                truth: truth.as_ref(),
                preferences: (!task.preferences.is_null()).then(|| slice(task.preferences, rows)),
            };
            let clustering = with_services(host, |services| clusterer.cluster(&task, services))?;
            hand_back(clustering, out)
        })
    }
}

/// A caller that keeps its promise has examples; one that does not must not make every clusterer divide by zero.
fn require_examples(rows: u64, dim: u64) -> Result<()> {
    if rows > 0 && dim > 0 { Ok(()) } else { Err(Error::new("there are no examples to cluster")) }
}

/// # Safety
/// `out` is as `RawClustererMethods::cluster` says.
unsafe fn hand_back(clustering: crate::Clustering, out: *mut RawClustering) -> Result<()> {
    let found = RawClustering::try_from(clustering)?;
    // SAFETY: the caller vouches for `out`; it is written field by field as it may be longer than ours.
    unsafe {
        (*out).converged = found.converged;
        (*out).iterations = found.iterations;
        (*out).objective = found.objective;
        (*out).assignments = found.assignments;
        (*out).clusters = found.clusters;
        (*out).trace = found.trace;
    }
    Ok(())
}

fn space(normalize: u32, distance: u32) -> Result<Space> {
    Ok(Space {
        normalize: match normalize {
            NORMALIZE_NONE => Normalize::None,
            NORMALIZE_L2 => Normalize::L2,
            other => return Err(Error::new(format!("normalisation {other} is not known here"))),
        },
        distance: match distance {
            DISTANCE_SQEUCLIDEAN => Distance::SqEuclidean,
            DISTANCE_EUCLIDEAN => Distance::Euclidean,
            other => return Err(Error::new(format!("distance {other} is not known here"))),
        },
    })
}

unsafe extern "C" fn streams<C: Component + Clusterer>(instance: *mut c_void) -> u32 {
    // SAFETY: the pointer came from `create`.
    let slot = unsafe { &*instance.cast::<Slot<C>>() };
    slot.call(|clusterer| Ok(clusterer.streams())).unwrap_or(false).into()
}

/// The caller's examples, as [`Rows`].
struct CallersRows {
    ctx: *mut c_void,
    pass: PassFn,
    len: usize,
    dim: usize,
    /// One pass at a time.
    turn: Mutex<()>,
}

// SAFETY: `pass` is called by one thread at a time, and the context is the caller's own.
unsafe impl Send for CallersRows {}
// SAFETY: as above.
unsafe impl Sync for CallersRows {}

/// What a pass calls for every batch, and why that ended the pass.
struct Each<'a> {
    each: &'a mut dyn FnMut(Embeddings<'_>) -> Result<()>,
    dim: u64,
    failed: Option<Error>,
}

unsafe extern "C" fn take_batch(sink_ctx: *mut c_void, rows: u64, values: *const f32) -> i32 {
    // SAFETY: `CallersRows::pass` hands this function over together with an `Each` that nobody else uses meanwhile,
    // and the rows are lent for the call.
    let (each, values) = unsafe {
        let each = &mut *sink_ctx.cast::<Each<'_>>();
        let values = slice(values, rows * each.dim);
        (each, values)
    };
    let dim = each.dim as usize;
    match catch(|| (each.each)(Embeddings::new(values, dim))) {
        Ok(()) => STATUS_OK,
        Err(error) => {
            each.failed = Some(error);
            STATUS_ERROR
        }
    }
}

impl Rows for CallersRows {
    fn len(&self) -> usize {
        self.len
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn pass(&self, each: &mut dyn FnMut(Embeddings<'_>) -> Result<()>) -> Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut each = Each { each, dim: self.dim as u64, failed: None };
        let mut why = String::new();
        // SAFETY: the task is valid for the call in which this exists; the sinks are as the functions expect.
        let status = unsafe {
            let (each, why) = (std::ptr::from_mut(&mut each).cast(), std::ptr::from_mut(&mut why).cast());
            (self.pass)(self.ctx, take_batch, each, collect_text, why)
        };
        match (status, each.failed) {
            (_, Some(error)) => Err(error),
            (STATUS_OK, None) => Ok(()),
            (STATUS_CANCELLED, None) => Err(Error::Cancelled),
            (_, None) => Err(Error::Failed(why)),
        }
    }
}

unsafe extern "C" fn cluster_stream<C: Component + Clusterer>(
    instance: *mut c_void,
    task: *const RawStreamTask,
    host: *const RawHost,
    out: *mut RawClustering,
) -> i32 {
    // SAFETY: the arguments are as `RawClustererMethods::cluster_stream` says.
    unsafe {
        enter::<C>(instance, host, |clusterer| {
            let raw = read_sized(task);
            require_examples(raw.rows, raw.dim)?;
            let composer = raw.composer.as_ref().map(|raw| borrow_composer(*raw)).transpose()?;
            let (len, dim) = (raw.rows as usize, raw.dim as usize);
            let rows = CallersRows { ctx: raw.ctx, pass: raw.pass, len, dim, turn: Mutex::new(()) };
            let task = StreamTask {
                rows: &rows,
                space: space(raw.normalize, raw.distance)?,
                degree: raw.degree as usize,
                composer: composer.as_deref().map(|composer| composer as &dyn Composer),
            };
            let clustering = with_services(host, |services| clusterer.cluster_stream(&task, services))?;
            hand_back(clustering, out)
        })
    }
}

unsafe extern "C" fn metrics<C: Component + Evaluator>(
    instance: *mut c_void,
    host: *const RawHost,
    sink: ScoreFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the arguments are as `RawEvaluatorMethods::metrics` says.
    unsafe {
        enter::<C>(instance, host, |evaluator| {
            for metric in evaluator.metrics() {
                sink(sink_ctx, lend(&metric.name), if metric.larger_is_better { 1.0 } else { -1.0 });
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn evaluate<C: Component + Evaluator>(
    instance: *mut c_void,
    truth: *const RawSets,
    predicted: *const RawSets,
    host: *const RawHost,
    sink: ScoreFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the arguments are as `RawEvaluatorMethods::evaluate` says.
    unsafe {
        enter::<C>(instance, host, |evaluator| {
            let (truth, predicted): (Sets, Sets) = (copy_sets(&*truth)?, copy_sets(&*predicted)?);
            let values = with_services(host, |services| evaluator.evaluate(&truth, &predicted, services))?;
            let metrics = evaluator.metrics();
            if values.len() != metrics.len() {
                let (values, metrics) = (values.len(), metrics.len());
                return Err(Error::new(format!("{values} scores were returned for {metrics} metrics")));
            }
            for (metric, value) in metrics.iter().zip(values) {
                sink(sink_ctx, lend(&metric.name), value);
            }
            Ok(())
        })
    }
}
