//! The caller's side of the crossing: from a library's tables of functions to the Rust traits.

use std::ffi::c_void;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::{Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use crate::abi::*;
use crate::guard::catch;
use crate::raw::{lend, lend_optional, lend_sets, read_sized, slice, text};
use crate::{
    Batches, Clusterer, Clustering, Composer, Error, Evaluator, Flags, Kind, Level, LoadRequest, Loader, Metric,
    Preset, Result, Rows, Services, Sets, StreamTask, Task, presets,
};

/// What a library offers, after its descriptor has been read and found well-formed.
#[derive(Debug)]
pub struct ForeignLibrary {
    /// Name for people.
    pub name: String,
    /// Version for people.
    pub version: String,
    /// Its components.
    pub components: Vec<ForeignComponent>,
}

impl ForeignLibrary {
    /// Reads a descriptor.
    ///
    /// # Errors
    /// If a part of it is missing or malformed.
    ///
    /// # Safety
    /// `raw` was returned by the entry function of a library that stays loaded and whose [`RawAbi`] has been checked.
    pub unsafe fn from_raw(raw: *const RawLibrary) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::new("the library failed to describe its components"));
        }
        // SAFETY: the caller vouches for a descriptor of this ABI version, whose `size` comes first.
        let size = unsafe { (*raw).size };
        if size < MIN_LIBRARY_SIZE {
            return Err(Error::new(format!(
                "the library's descriptor is truncated: {size} bytes, at least {MIN_LIBRARY_SIZE} expected"
            )));
        }
        // SAFETY: `size` covers all fields of the first release, and these are among them.
        unsafe {
            if (*raw).components.is_null() {
                return Err(Error::new("the library's list of components is null"));
            }
            let components = slice((*raw).components, (*raw).component_count);
            let library = Self {
                name: text((*raw).name)?.to_owned(),
                version: text((*raw).version)?.to_owned(),
                components: components
                    .iter()
                    .map(|&component| ForeignComponent::from_raw(component))
                    .collect::<Result<_>>()?,
            };
            for ForeignComponent { kind, name, schema, .. } in &library.components {
                serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(schema)
                    .map_err(|error| Error::new(format!("the parameter schema of {kind} `{name}`: {error}")))?;
            }
            Ok(library)
        }
    }
}

/// A component of some library: what it is and how to make one.
#[derive(Clone, Copy)]
pub struct ForeignComponent {
    raw: &'static RawComponent,
    /// What it does.
    pub kind: Kind,
    /// The name that pipeline files use.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Markdown; may be empty.
    pub documentation: &'static str,
    /// JSON Schema of the parameters.
    pub schema: &'static str,
}

// SAFETY: descriptors are never written, and their functions may be called from any thread.
unsafe impl Send for ForeignComponent {}
// SAFETY: as above.
unsafe impl Sync for ForeignComponent {}

impl fmt::Debug for ForeignComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind, self.name)
    }
}

impl ForeignComponent {
    /// # Safety
    /// `raw` is null or a descriptor that lives as long as the process.
    pub(crate) unsafe fn from_raw(raw: *const RawComponent) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::new("a component's descriptor is null"));
        }
        // SAFETY: the caller vouches for the pointer; every version of a descriptor begins with its size.
        let size = unsafe { raw.cast::<u32>().read() };
        if size < MIN_COMPONENT_SIZE {
            return Err(Error::new(format!(
                "a component's descriptor is truncated: {size} bytes, at least {MIN_COMPONENT_SIZE} expected"
            )));
        }
        // SAFETY: the descriptor is long enough for all that is looked at.
        let raw: &'static RawComponent = unsafe { &*raw };
        // SAFETY: the texts live as long as the descriptor.
        let (name, summary, documentation, schema) =
            unsafe { (text(raw.name)?, text(raw.summary)?, text(raw.documentation)?, text(raw.schema)?) };
        let kind = Kind::from_raw(raw.kind)
            .ok_or_else(|| Error::new(format!("component `{name}` is of the unknown kind {}", raw.kind)))?;
        if name.is_empty() {
            return Err(Error::new(format!("a {kind} has no name")));
        }
        if raw.methods.is_null() || raw.create.is_none() || raw.destroy.is_none() {
            return Err(Error::new(format!("{kind} `{name}` lacks a function")));
        }
        let least = match kind {
            Kind::Loader => 16,
            Kind::Composer => 32,
            Kind::Clusterer | Kind::Evaluator => 24,
        };
        // SAFETY: every table of methods begins with its size.
        let size = unsafe { raw.methods.cast::<u32>().read() };
        if size < least {
            return Err(Error::new(format!(
                "the methods of {kind} `{name}` are truncated: {size} bytes, at least {least} expected"
            )));
        }
        Ok(Self { raw, kind, name, summary, documentation, schema })
    }

    /// What it needs and what it has.
    pub fn flags(&self) -> Flags {
        Flags(self.raw.flags)
    }

    /// The presets that its parameters offer.
    pub fn presets(&self) -> Vec<Preset> {
        presets::presets(&self.parsed_schema())
    }

    /// Parameters, a JSON object, with those that were left out at what the preset says, else at their defaults.
    pub fn effective(&self, params: &str) -> String {
        let given = serde_json::from_str(params).unwrap_or_default();
        serde_json::Value::Object(presets::effective(&self.parsed_schema(), given)).to_string()
    }

    fn parsed_schema(&self) -> serde_json::Value {
        serde_json::from_str(self.schema).unwrap_or_default()
    }

    /// Makes an instance from parameters, a JSON object.
    ///
    /// # Errors
    /// If the component refuses them; one line per problem.
    pub fn create(&self, params: &str, services: &Services<'_>) -> Result<Instance> {
        let mut instance = std::ptr::null_mut();
        let create = required(self.raw.create, "create")?;
        call(services, |host| {
            // SAFETY: the arguments are as `RawComponent::create` says.
            unsafe { create(lend(params), host, &mut instance) }
        })?;
        Ok(Instance { raw: instance, component: *self })
    }
}

/// An instance of any kind, ended on drop. Turned into the trait of its kind by `try_from`.
#[derive(Debug)]
pub struct Instance {
    raw: *mut c_void,
    component: ForeignComponent,
}

// SAFETY: the functions of an instance may be called from any thread, and from several at once.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Instance {
    /// # Safety
    /// `raw` is an instance that nobody else will end.
    pub(crate) unsafe fn from_raw(raw: RawInstance) -> Result<Self> {
        // SAFETY: the component of an instance lives as long as the process.
        let component = unsafe { ForeignComponent::from_raw(raw.component) }?;
        Ok(Self { raw: raw.instance, component })
    }

    /// What it is an instance of.
    pub fn component(&self) -> &ForeignComponent {
        &self.component
    }

    /// Hands the instance to the other side of the boundary, which ends it.
    fn into_raw(self) -> RawInstance {
        ManuallyDrop::new(self).lend()
    }

    fn lend(&self) -> RawInstance {
        RawInstance { instance: self.raw, component: self.component.raw }
    }

    fn destroy(&mut self) -> Result<()> {
        let destroy = required(self.component.raw.destroy, "destroy")?;
        call(&Services::none(), |host| {
            // SAFETY: called once, by `close` or by `drop`.
            unsafe { destroy(self.raw, host) }
        })
    }

    /// Ends the instance; says if that went wrong, which a drop does not.
    ///
    /// # Errors
    /// If the component failed or panicked while it was being ended. It is gone all the same.
    pub fn close(self) -> Result<()> {
        ManuallyDrop::new(self).destroy()
    }

    /// # Safety
    /// `M` is the methods' type of the component's kind.
    unsafe fn methods<M>(&self) -> M {
        // SAFETY: `methods` is not null (checked by `from_raw`) and of the type that the kind says.
        unsafe { read_sized(self.component.raw.methods.cast()) }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Whoever wants to know calls `close`.
        let _ = self.destroy();
    }
}

/// A function that a table must have.
fn required<F>(function: Option<F>, name: &str) -> Result<F> {
    function.ok_or_else(|| Error::new(format!("the component lacks the function `{name}`")))
}

/// What a [`RawHost`] made by [`call`] points to.
struct Sink<'a> {
    services: &'a Services<'a>,
    errors: Mutex<Vec<String>>,
}

/// Makes a call with a service table that answers with `services`, and turns its status into a result.
fn call(services: &Services<'_>, function: impl FnOnce(*const RawHost) -> i32) -> Result<()> {
    let sink = Sink { services, errors: Mutex::default() };
    let host = RawHost {
        size: size_of::<RawHost>() as u32,
        threads: services.threads as u32,
        seed: services.seed,
        memory: services.memory,
        cancel: services.host.cancel().as_ptr(),
        ctx: std::ptr::from_ref(&sink).cast_mut().cast(),
        error: on_error,
        log: on_log,
        progress: on_progress,
        input: on_input,
        create: on_create,
    };
    match function(&host) {
        STATUS_OK => Ok(()),
        STATUS_CANCELLED => Err(Error::Cancelled),
        status => {
            let errors = sink.errors.into_inner().unwrap_or_else(PoisonError::into_inner);
            if errors.is_empty() {
                return Err(Error::new(format!("failed with status {status} without saying why")));
            }
            Err(Error::Failed(errors.join("\n")))
        }
    }
}

/// Runs a callback of the service table: a panic on this side must not unwind into the library either.
///
/// # Safety
/// `ctx` is that of a table made by [`call`], which has not returned.
unsafe fn answer<R>(ctx: *mut c_void, callback: impl FnOnce(&Sink<'_>) -> Result<R>) -> Result<R> {
    // SAFETY: the caller vouches for `ctx`; a `Sink` is only ever shared.
    let sink = unsafe { &*ctx.cast::<Sink<'_>>() };
    catch(|| callback(sink))
}

unsafe extern "C" fn on_error(ctx: *mut c_void, raw: RawStr) {
    // SAFETY: `ctx` is ours and the text is lent for the call.
    let _ = unsafe {
        answer(ctx, |sink| {
            let text = String::from_utf8_lossy(slice(raw.ptr, raw.len)).into_owned();
            sink.errors.lock().unwrap_or_else(PoisonError::into_inner).push(text);
            Ok(())
        })
    };
}

unsafe extern "C" fn on_log(ctx: *mut c_void, level: u32, raw: RawStr) {
    let level = match level {
        LOG_DEBUG => Level::Debug,
        LOG_INFO => Level::Info,
        _ => Level::Warn,
    };
    // SAFETY: as in `on_error`.
    let _ = unsafe {
        answer(ctx, |sink| {
            sink.services.host.log(level, &String::from_utf8_lossy(slice(raw.ptr, raw.len)));
            Ok(())
        })
    };
}

unsafe extern "C" fn on_progress(ctx: *mut c_void, done: u64, total: u64) {
    // SAFETY: as in `on_error`.
    let _ = unsafe {
        answer(ctx, |sink| {
            sink.services.host.progress(done, total);
            Ok(())
        })
    };
}

/// Hands a result to a text sink: its text on success, the reason on failure.
///
/// # Safety
/// `sink` takes `sink_ctx`, as the service table's user promises.
unsafe fn hand_over(result: Result<String>, sink: TextFn, sink_ctx: *mut c_void) -> i32 {
    let (status, text) = match result {
        Ok(text) => (STATUS_OK, text),
        Err(Error::Cancelled) => return STATUS_CANCELLED,
        Err(Error::Failed(text)) => (STATUS_ERROR, text),
    };
    // SAFETY: the caller vouches for the sink; the text is lent for the call.
    unsafe { sink(sink_ctx, lend(&text)) };
    status
}

unsafe extern "C" fn on_input(ctx: *mut c_void, path: RawStr, sink: TextFn, sink_ctx: *mut c_void) -> i32 {
    // SAFETY: as in `on_error`, and the sink is the library's own.
    unsafe {
        let found = answer(ctx, |sink| {
            let found = sink.services.host.input(text(path)?)?;
            found.into_os_string().into_string().map_err(|_| Error::new("a path is not UTF-8"))
        });
        hand_over(found, sink, sink_ctx)
    }
}

unsafe extern "C" fn on_create(
    ctx: *mut c_void,
    kind: u32,
    name: RawStr,
    params: RawStr,
    instance: *mut RawInstance,
    sink: TextFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: as in `on_input`; `instance` is the library's own.
    unsafe {
        let made = answer(ctx, |sink| {
            let kind = Kind::from_raw(kind)
                .ok_or_else(|| Error::new(format!("there is no kind {kind} of components")))?;
            let made = sink.services.host.create(kind, text(name)?, text(params)?)?;
            instance.write(made.into_raw());
            Ok(String::new())
        });
        hand_over(made, sink, sink_ctx)
    }
}

macro_rules! foreign {
    ($(#[$doc:meta])* $name:ident, $kind:ident, $methods:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(Instance);

        impl TryFrom<Instance> for $name {
            type Error = Error;

            fn try_from(instance: Instance) -> Result<Self> {
                // The descriptor's own word: it decides what its methods are.
                if instance.component.raw.kind == Kind::$kind as u32 {
                    return Ok(Self(instance));
                }
                let ForeignComponent { name, kind, .. } = instance.component;
                Err(Error::new(format!("`{name}` is a {kind}, not a {}", Kind::$kind)))
            }
        }

        impl $name {
            /// What it is an instance of.
            pub fn component(&self) -> &ForeignComponent {
                self.0.component()
            }

            /// Ends the instance; see [`Instance::close`].
            ///
            /// # Errors
            /// If the component failed or panicked while it was being ended.
            pub fn close(self) -> Result<()> {
                self.0.close()
            }

            fn methods(&self) -> $methods {
                // SAFETY: `try_from` has checked the kind.
                unsafe { self.0.methods() }
            }
        }
    };
}

foreign! {
    /// A [`Loader`] of some library.
    ForeignLoader, Loader, RawLoaderMethods
}
foreign! {
    /// A [`Composer`] of some library.
    ForeignComposer, Composer, RawComposerMethods
}
foreign! {
    /// A [`Clusterer`] of some library.
    ForeignClusterer, Clusterer, RawClustererMethods
}
foreign! {
    /// An [`Evaluator`] of some library.
    ForeignEvaluator, Evaluator, RawEvaluatorMethods
}

impl Loader for ForeignLoader {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Batches> {
        let path = match request.path {
            None => None,
            Some(path) => Some(
                path.to_str().ok_or_else(|| Error::new(format!("the path {} is not UTF-8", path.display())))?,
            ),
        };
        let raw = RawLoadRequest {
            size: size_of::<RawLoadRequest>() as u32,
            reserved: 0,
            path: lend_optional(path),
            embedding: lend_optional(request.embedding),
            truth: lend_optional(request.truth),
            trial: lend_optional(request.trial),
            id: lend_optional(request.id),
            preference: lend_optional(request.preference),
        };
        let load = required(self.methods().load, "load")?;
        let mut stream = FFI_ArrowArrayStream::empty();
        call(services, |host| {
            // SAFETY: the arguments are as `RawLoaderMethods::load` says.
            unsafe { load(self.0.raw, &raw, host, &mut stream) }
        })?;
        Ok(Box::new(Checked(catch(|| Ok(StreamReader::try_new(stream)?))?)))
    }
}

/// Arrow's reader of streams, under the name that all versions have.
#[expect(clippy::allow_attributes, reason = "an expectation would not be met by all versions")]
#[allow(deprecated, reason = "the other name is from version 60.1")]
type StreamReader = arrow_array::ffi_stream::ArrowArrayStreamReader;

/// Batches of another library, each found well-formed before it is handed on.
struct Checked(StreamReader);

impl Iterator for Checked {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Arrow asserts what it expects of a structure's shape, and trusts its content.
        let next = catch(|| {
            let batch = self.0.next().transpose()?;
            for column in batch.iter().flat_map(RecordBatch::columns) {
                column.to_data().validate_full()?;
            }
            Ok(batch)
        });
        next.map_err(|error| ArrowError::ComputeError(error.to_string())).transpose()
    }
}

impl RecordBatchReader for Checked {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}

/// A composer that the caller keeps.
///
/// # Safety
/// `raw` is a composer's instance that outlives the result.
pub(crate) unsafe fn borrow_composer(raw: RawInstance) -> Result<ManuallyDrop<ForeignComposer>> {
    // SAFETY: the caller vouches for the instance; it is not ended here.
    let instance = ManuallyDrop::new(unsafe { Instance::from_raw(raw) }?);
    if instance.component.kind != Kind::Composer {
        return Err(Error::new(format!("`{}` was handed over as a composer", instance.component.name)));
    }
    Ok(ManuallyDrop::new(ForeignComposer(ManuallyDrop::into_inner(instance))))
}

impl Composer for ForeignComposer {
    fn as_foreign(&self) -> Option<&ForeignComposer> {
        Some(self)
    }

    fn dim(&self) -> Option<usize> {
        // SAFETY: the instance is alive.
        match unsafe { self.methods().dim?(self.0.raw) } {
            0 => None,
            dim => Some(dim as usize),
        }
    }

    fn compose(&self, dim: usize, left: &[f32], right: &[f32], out: &mut [f32]) -> Result<()> {
        let compose = required(self.methods().compose, "compose")?;
        let rows = require_rows(dim, &[left.len(), right.len(), out.len()])?;
        let (left, right, out) = (left.as_ptr(), right.as_ptr(), out.as_mut_ptr());
        call(&Services::none(), |host| {
            // SAFETY: all three matrices have `rows` rows of `dim`.
            unsafe { compose(self.0.raw, rows, dim as u64, left, right, out, host) }
        })
    }

    fn vjp(
        &self,
        dim: usize,
        left: &[f32],
        right: &[f32],
        grad: &[f32],
        grad_left: &mut [f32],
        grad_right: &mut [f32],
    ) -> Result<()> {
        let name = self.0.component.name;
        let vjp =
            self.methods().vjp.ok_or_else(|| Error::new(format!("the composer `{name}` has no gradients")))?;
        let lens = [left.len(), right.len(), grad.len(), grad_left.len(), grad_right.len()];
        let rows = require_rows(dim, &lens)?;
        let (left, right, grad) = (left.as_ptr(), right.as_ptr(), grad.as_ptr());
        let (grad_left, grad_right) = (grad_left.as_mut_ptr(), grad_right.as_mut_ptr());
        call(&Services::none(), |host| {
            // SAFETY: all five matrices have `rows` rows of `dim`.
            unsafe { vjp(self.0.raw, rows, dim as u64, left, right, grad, grad_left, grad_right, host) }
        })
    }
}

/// The number of rows that all matrices have.
fn require_rows(dim: usize, lens: &[usize]) -> Result<u64> {
    if dim == 0 || !lens[0].is_multiple_of(dim) || lens.iter().any(|len| *len != lens[0]) {
        return Err(Error::new(format!("matrices of {lens:?} numbers are not equally many rows of {dim}")));
    }
    Ok((lens[0] / dim) as u64)
}

/// What an error begins with that is about what a component returned, in contrast to one that it reported itself.
pub const IMPOSSIBLE: &str = "an impossible result";

/// Takes over a clustering, found to be one of these examples.
fn possible(out: RawClustering, examples: &dyn Rows) -> Result<Clustering> {
    let clustering = Clustering::try_from(out);
    let checked = clustering.and_then(|clustering| clustering.check_rows(examples).map(|()| clustering));
    checked.map_err(|error| error.context(IMPOSSIBLE))
}

impl Clusterer for ForeignClusterer {
    fn memory(&self, rows: usize, dim: usize, degree: usize) -> u64 {
        let Some(memory) = self.methods().memory else { return 0 };
        // SAFETY: the instance is alive.
        unsafe { memory(self.0.raw, rows as u64, dim as u64, degree as u32) }
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let composer = lend_composer(task.composer)?;
        let truth = task.truth.map(lend_sets);
        let raw = RawTask {
            size: size_of::<RawTask>() as u32,
            degree: task.degree as u32,
            rows: task.embeddings.len() as u64,
            dim: task.embeddings.dim() as u64,
            embeddings: task.embeddings.values().as_ptr(),
            normalize: task.space.normalize as u32,
            distance: task.space.distance as u32,
            composer: composer.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            truth: truth.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            preferences: task.preferences.map_or(std::ptr::null(), <[f32]>::as_ptr),
        };
        let cluster = required(self.methods().cluster, "cluster")?;
        let mut out = RawClustering::empty();
        call(services, |host| {
            // SAFETY: the arguments are as `RawClustererMethods::cluster` says.
            unsafe { cluster(self.0.raw, &raw, host, &mut out) }
        })?;
        possible(out, &task.embeddings)
    }

    fn streams(&self) -> bool {
        let methods = self.methods();
        let Some(streams) = methods.streams.filter(|_| methods.cluster_stream.is_some()) else { return false };
        // SAFETY: the instance is alive.
        unsafe { streams(self.0.raw) != 0 }
    }

    fn cluster_stream(&self, task: &StreamTask<'_>, services: &Services<'_>) -> Result<Clustering> {
        let composer = lend_composer(task.composer)?;
        let raw = RawStreamTask {
            size: size_of::<RawStreamTask>() as u32,
            degree: task.degree as u32,
            rows: task.rows.len() as u64,
            dim: task.rows.dim() as u64,
            normalize: task.space.normalize as u32,
            distance: task.space.distance as u32,
            composer: composer.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            ctx: std::ptr::from_ref(&task.rows).cast_mut().cast(),
            pass: on_pass,
        };
        let cluster_stream = required(self.methods().cluster_stream, "cluster_stream")?;
        let mut out = RawClustering::empty();
        call(services, |host| {
            // SAFETY: the arguments are as `RawClustererMethods::cluster_stream` says.
            unsafe { cluster_stream(self.0.raw, &raw, host, &mut out) }
        })?;
        possible(out, task.rows)
    }
}

fn lend_composer(composer: Option<&dyn Composer>) -> Result<Option<RawInstance>> {
    let Some(composer) = composer else { return Ok(None) };
    let foreign = composer
        .as_foreign()
        .ok_or_else(|| Error::new("only a composer that was created as a component can cross to a clusterer"))?;
    Ok(Some(foreign.0.lend()))
}

unsafe extern "C" fn on_pass(
    ctx: *mut c_void,
    each: BatchFn,
    each_ctx: *mut c_void,
    sink: TextFn,
    sink_ctx: *mut c_void,
) -> i32 {
    // SAFETY: `ctx` is that of `cluster_stream`, which has not returned.
    let rows: &dyn Rows = unsafe { *ctx.cast::<&dyn Rows>() };
    let mut ended = STATUS_OK;
    let passed = catch(|| {
        rows.pass(&mut |batch| {
            // SAFETY: the library hands over a function together with its context; the rows are lent for the call.
            ended = unsafe { each(each_ctx, batch.len() as u64, batch.values().as_ptr()) };
            if ended == STATUS_OK { Ok(()) } else { Err(Error::Cancelled) }
        })
    });
    if ended != STATUS_OK {
        return ended;
    }
    // SAFETY: the sink is the library's own.
    unsafe { hand_over(passed.map(|()| String::new()), sink, sink_ctx) }
}

/// Pushes a named number to the `Vec` behind `sink_ctx`.
///
/// # Safety
/// `sink_ctx` points to a `Vec<(String, f64)>` that nobody else uses meanwhile.
unsafe extern "C" fn collect_score(sink_ctx: *mut c_void, name: RawStr, value: f64) {
    // SAFETY: the caller vouches for the sink; the name is lent for the call.
    let (scores, name) = unsafe { (&mut *sink_ctx.cast::<Vec<(String, f64)>>(), slice(name.ptr, name.len)) };
    scores.push((String::from_utf8_lossy(name).into_owned(), value));
}

impl ForeignEvaluator {
    fn scores(
        &self,
        services: &Services<'_>,
        function: impl FnOnce(*const RawHost, *mut c_void) -> i32,
    ) -> Result<Vec<(String, f64)>> {
        let mut scores: Vec<(String, f64)> = Vec::new();
        let sink = std::ptr::from_mut(&mut scores).cast();
        call(services, |host| function(host, sink))?;
        Ok(scores)
    }

    /// The metrics it reports, the main one first.
    ///
    /// # Errors
    /// If it fails to say.
    pub fn try_metrics(&self) -> Result<Vec<Metric>> {
        let metrics = required(self.methods().metrics, "metrics")?;
        let scores = self.scores(&Services::none(), |host, sink| {
            // SAFETY: the sink is as `collect_score` expects.
            unsafe { metrics(self.0.raw, host, collect_score, sink) }
        })?;
        Ok(scores.into_iter().map(|(name, sign)| Metric { name, larger_is_better: sign >= 0.0 }).collect())
    }
}

impl Evaluator for ForeignEvaluator {
    fn metrics(&self) -> Vec<Metric> {
        self.try_metrics().unwrap_or_default()
    }

    fn evaluate(&self, truth: &Sets, predicted: &Sets, services: &Services<'_>) -> Result<Vec<f64>> {
        if truth.len() != predicted.len() {
            return Err(Error::new(format!(
                "{} true sets cannot be compared with {} predicted ones",
                truth.len(),
                predicted.len()
            )));
        }
        let metrics = self.try_metrics()?;
        let evaluate = required(self.methods().evaluate, "evaluate")?;
        let (truth, predicted) = (lend_sets(truth), lend_sets(predicted));
        let scores = self.scores(services, |host, sink| {
            // SAFETY: the sets are lent for the call; the sink is as `collect_score` expects.
            unsafe { evaluate(self.0.raw, &truth, &predicted, host, collect_score, sink) }
        })?;
        if let Some((name, _)) = scores.iter().find(|(name, _)| !metrics.iter().any(|metric| metric.name == *name))
        {
            return Err(Error::new(format!("a score was returned for `{name}`, which is not one of the metrics")));
        }
        metrics
            .iter()
            .map(|metric| match scores.iter().filter(|(name, _)| *name == metric.name).collect::<Vec<_>>()[..] {
                [(_, value)] => Ok(*value),
                ref found => {
                    Err(Error::new(format!("{} scores were returned for `{}`", found.len(), metric.name)))
                }
            })
            .collect()
    }
}
