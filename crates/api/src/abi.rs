//! The C ABI: every type that crosses between the host and a library, and nothing else.
//!
//! Rules that hold for everything on this page:
//!
//! - *Ownership.* Nobody frees what it did not allocate. A pointer in an argument is borrowed for the duration
//!   of the call; Arrow structures carry their producer's `release`; instances end by their component's `destroy`.
//! - *Threads.* Every function may be called from any thread, and the functions of one instance from several
//!   threads at once.
//! - *Panics.* No call unwinds into its caller: a panic (or C++ exception) is caught where it happens, reported
//!   through [`RawHost::error`] and returned as [`STATUS_ERROR`].
//! - *Growth.* Structures that begin with `size` grow at the end only, by multiples of eight bytes and without padding: what
//!   is left over is a reserved field. `size` is what the maker of the value was compiled with; a reader looks at a later field only if `size` covers it, and a writer of a result
//!   assigns a later field only if the `size` that it was handed covers it. Nobody ever copies a whole structure over
//!   one that the other side allocated. Structures without `size` never change.
//! - *Reserved* fields are zero; another value is refused.
//! - *Null.* A pointer is non-null unless its comment says otherwise; a zero-length slice may have any pointer.
//!   Function pointers are `Option` here only so that a null one can be noticed and refused.

use std::ffi::c_void;

use crate::arrow::{ArrowArray, ArrowArrayStream, ArrowSchema};

/// First bytes of [`RawAbi`].
pub const MAGIC: [u8; 8] = *b"compflow";

/// Raised only when a library built for the old number can no longer be used.
///
/// History: 1, the first.
pub const ABI_VERSION: u32 = 1;

/// Name of the exported [`RawAbi`] datum.
pub const ABI_SYMBOL: &str = "COMPFLOW_ABI";

/// Name of the exported [`EntryFn`].
pub const ENTRY_SYMBOL: &str = "compflow_library";

/// Size of [`RawLibrary`] in ABI version 1 as first released; a smaller descriptor is truncated.
pub const MIN_LIBRARY_SIZE: u32 = 56;

/// Likewise the size of [`RawComponent`].
pub const MIN_COMPONENT_SIZE: u32 = 120;

/// More components in one library than anybody has; a larger number is a mistake.
pub const MAX_COMPONENTS: u64 = 4096;

/// The call did what it was asked.
pub const STATUS_OK: i32 = 0;
/// The call failed and said why through [`RawHost::error`], or through the sink that came with it.
pub const STATUS_ERROR: i32 = 1;
/// The call stopped because [`RawHost::cancel`] was raised; never otherwise.
pub const STATUS_CANCELLED: i32 = 2;

/// [`RawError::code`]: none of the others; a fault of the callee, or of something it uses.
pub const ERROR_INTERNAL: u32 = 0;
/// [`RawError::code`]: a parameter is wrong, [`RawError::parameter`] says which.
pub const ERROR_PARAMETER: u32 = 1;
/// [`RawError::code`]: this data cannot be worked on, whatever the parameters: too few examples, an unreadable file.
pub const ERROR_DATA: u32 = 2;
/// [`RawError::code`]: the work would take more than [`RawHost::memory`].
pub const ERROR_BUDGET: u32 = 3;
/// [`RawError::code`]: the work was cancelled. The status says so as well: this is for who hands errors on.
pub const ERROR_CANCELLED: u32 = 5;
/// [`RawError::code`]: the source lacks a column that was asked for; [`RawError::parameter`] is its name in the request.
pub const ERROR_COLUMN: u32 = 4;

/// [`RawComponent::kind`]: yields tables of embeddings; its methods are [`RawLoaderMethods`].
pub const KIND_LOADER: u32 = 1;
/// [`RawComponent::kind`]: composes embeddings; its methods are [`RawComposerMethods`].
pub const KIND_COMPOSER: u32 = 2;
/// [`RawComponent::kind`]: clusters; its methods are [`RawClustererMethods`].
pub const KIND_CLUSTERER: u32 = 3;
/// [`RawComponent::kind`]: scores; its methods are [`RawEvaluatorMethods`].
pub const KIND_EVALUATOR: u32 = 4;

/// The half of [`RawComponent::flags`] that must be understood: a component with an unknown flag in it is refused, and so is
/// one of an unknown kind; the others of its library are not. An unknown flag in the other half is ignored.
pub const FLAGS_TO_UNDERSTAND: u64 = 0xffff_ffff;

/// [`RawComponent::flags`]: a clusterer that cannot work without a composer if the degree is above 1.
pub const NEEDS_COMPOSER: u64 = 1;
/// [`RawComponent::flags`]: a clusterer that is given the true sets, or an evaluator that cannot do without them.
pub const NEEDS_TRUTH: u64 = 1 << 1;
/// [`RawComponent::flags`]: a clusterer whose composer must have `vjp`.
pub const NEEDS_GRADIENTS: u64 = 1 << 2;
/// [`RawComponent::flags`]: a loader that reads the file named by `path`.
pub const NEEDS_PATH: u64 = 1 << 3;
/// [`RawComponent::flags`]: an evaluator that cannot do without embeddings.
pub const NEEDS_EMBEDDINGS: u64 = 1 << 4;
/// [`RawComponent::flags`]: a clusterer that may assign an example to the empty set, "none of them".
pub const ASSIGNS_NONE: u64 = 1 << 5;
/// [`RawComponent::flags`]: a composer that has `vjp`.
pub const HAS_GRADIENTS: u64 = 1 << 32;
/// [`RawComponent::flags`]: a composer for which neither order nor grouping matters, but for rounding.
pub const IS_ASSOCIATIVE: u64 = 1 << 33;
/// [`RawComponent::flags`]: a composer that has `compose_sets`.
pub const COMPOSES_SETS: u64 = 1 << 34;
/// [`RawComponent::flags`]: a clusterer that makes use of weights.
pub const USES_WEIGHTS: u64 = 1 << 35;
/// [`RawComponent::flags`]: a clusterer that keeps to [`RawTask::seeds`]; one without it is not given any.
pub const USES_SEEDS: u64 = 1 << 36;
/// [`RawComponent::flags`]: a clusterer that can do without seeing the examples: it has `partial`, and makes use of
/// [`RawTask::reduce`].
pub const HAS_PARTIAL: u64 = 1 << 37;

/// [`RawTask::normalize`]: vectors are used as they are.
pub const NORMALIZE_NONE: u32 = 0;
/// [`RawTask::normalize`]: vectors are divided by their Euclidean norm before distances are taken.
pub const NORMALIZE_L2: u32 = 1;

/// [`RawTask::distance`]: squared Euclidean.
pub const DISTANCE_SQEUCLIDEAN: u32 = 0;
/// [`RawTask::distance`]: Euclidean.
pub const DISTANCE_EUCLIDEAN: u32 = 1;

/// [`RawHost::log`]: of interest when looking for a fault.
pub const LOG_DEBUG: u32 = 0;
/// [`RawHost::log`]: of interest to a curious user.
pub const LOG_INFO: u32 = 1;
/// [`RawHost::log`]: the result is usable, the user should know something about it.
pub const LOG_WARN: u32 = 2;

/// [`RawMetric::unit`]: a plain number.
pub const UNIT_NUMBER: u32 = 0;
/// [`RawMetric::unit`]: a part of 1, shown in per cent.
pub const UNIT_SHARE: u32 = 1;
/// [`RawMetric::unit`]: how many.
pub const UNIT_COUNT: u32 = 2;
/// [`RawMetric::unit`]: a distance of the space, or a sum of them.
pub const UNIT_DISTANCE: u32 = 3;

/// [`RawDescription::rows`]: not known without reading everything.
pub const ROWS_UNKNOWN: u64 = u64::MAX;

/// What a library exports as the datum [`ABI_SYMBOL`]; read before any of its functions is called.
///
/// These sixteen bytes never change.
#[repr(C)]
#[derive(Debug)]
pub struct RawAbi {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`ABI_VERSION`] of the api the library was built with.
    pub abi_version: u32,
    /// Size of [`RawLibrary`] in that api.
    pub size: u32,
}

/// What a library exports as the function [`ENTRY_SYMBOL`]. The result lives as long as the process; null means
/// that the library could not describe itself, and `sink` has taken the reason.
pub type EntryFn = unsafe extern "C" fn(sink: ErrorFn, sink_ctx: *mut c_void) -> *const RawLibrary;

/// Takes a text, borrowed for the call. Called on the thread of the call it was handed to, before that returns.
pub type TextFn = unsafe extern "C" fn(sink_ctx: *mut c_void, text: RawStr);

/// Takes a file: its absolute path and all of its content, borrowed for the call. Called on the thread of the call it was
/// handed to, before that returns.
pub type FileFn = unsafe extern "C" fn(sink_ctx: *mut c_void, path: RawStr, content: *const u8, content_len: u64);

/// Takes a problem, borrowed for the call; several calls are several problems. Called on the thread of the call it was
/// handed to, before that returns.
pub type ErrorFn = unsafe extern "C" fn(sink_ctx: *mut c_void, error: *const RawError);

/// UTF-8 text, borrowed, without a terminating zero.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawStr {
    /// First byte; null where the comment of the field allows the text to be absent.
    pub ptr: *const u8,
    /// Length in bytes.
    pub len: u64,
}

/// A problem.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawError {
    /// Size of this structure.
    pub size: u32,
    /// One of the `ERROR_*`; one that is not known counts as [`ERROR_INTERNAL`].
    pub code: u32,
    /// The path of the parameter it is about, `base.params.k`; null if it is about none.
    pub parameter: RawStr,
    /// For the user: lower case, no full stop, naming the thing, what was found and what would do. It does not repeat
    /// the parameter's name, which is put before it: "must be at least 1, found 0".
    pub text: RawStr,
    /// What would help, if that is known: "did you mean `k`?". May be null.
    pub help: RawStr,
}

/// A sequence of sets of numbers, borrowed. Set `i` is `values[offsets[i]..offsets[i + 1]]`, strictly ascending; it may be
/// empty.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawSets {
    /// How many sets.
    pub len: u64,
    /// `len + 1` ascending numbers, the first 0.
    pub offsets: *const u64,
    /// The members, set after set.
    pub values: *const u32,
}

/// What a library offers.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawLibrary {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Name for people, usually the crate's.
    pub name: RawStr,
    /// Version for people.
    pub version: RawStr,
    /// `component_count` pointers, each valid for the life of the process.
    pub components: *const *const RawComponent,
    /// How many components; at most [`MAX_COMPONENTS`].
    pub component_count: u64,
}

/// One component: what it is and how it is made.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawComponent {
    /// Size of this structure.
    pub size: u32,
    /// One of the `KIND_*`.
    pub kind: u32,
    /// Any of the `NEEDS_*`, `HAS_*` and others that say so: what holds for every instance. See [`FLAGS_TO_UNDERSTAND`]. A flag
    /// that stands for a function is set if and only if the function is there.
    pub flags: u64,
    /// The name that pipeline files use: lower case, unique among components of its kind.
    pub name: RawStr,
    /// One line.
    pub summary: RawStr,
    /// Markdown; may be empty.
    pub documentation: RawStr,
    /// JSON Schema of the parameters, an object schema in which every optional property has its `default`. The
    /// alternatives of a property `preset` may have `values`: an object of what `create` takes for other properties
    /// that are not given.
    pub schema: RawStr,
    /// Makes an instance from parameters, a JSON object. Validates all of them; does no work on data.
    /// On success the caller owns `*instance` and ends it with `destroy`.
    pub create:
        Option<unsafe extern "C" fn(params: RawStr, host: *const RawHost, instance: *mut *mut c_void) -> i32>,
    /// Ends an instance. Called once, after every other call on it has returned; whatever the status, the
    /// instance is gone afterwards.
    pub destroy: Option<unsafe extern "C" fn(instance: *mut c_void, host: *const RawHost) -> i32>,
    /// The functions of `kind`: a `Raw*Methods`, valid for the life of the process.
    pub methods: *const c_void,
    /// Writes the flags of this instance, for a component whose parameters decide what it needs. Null if all have
    /// those of the component.
    pub flags_of:
        Option<unsafe extern "C" fn(instance: *mut c_void, host: *const RawHost, flags: *mut u64) -> i32>,
    /// For clusterers and evaluators: hands the name of every further column that this instance wants to `sink`, as the
    /// source of the data has it; `id` for the identifiers. Null if it wants none.
    pub columns: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            host: *const RawHost,
            sink: TextFn,
            sink_ctx: *mut c_void,
        ) -> i32,
    >,
}

/// An instance together with its component.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawInstance {
    /// Passed to every method; only the component knows what it is.
    pub instance: *mut c_void,
    /// Valid for the life of the process.
    pub component: *const RawComponent,
}

/// What the caller of a function offers to it. Valid for the duration of the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawHost {
    /// Size of this structure.
    pub size: u32,
    /// How many threads the callee may keep busy, itself included; at least 1. Results do not depend on it.
    pub threads: u32,
    /// The source of all randomness in the call.
    pub seed: u64,
    /// How many bytes the callee may allocate; more is an error that names the number, not a try.
    pub memory: u64,
    /// Non-zero once the work is no longer wanted; read it atomically, several times a second.
    pub cancel: *const u32,
    /// Name and version of the program for people, such as `compflow 0.2.0`.
    pub version: RawStr,
    /// Passed to every function below.
    pub ctx: *mut c_void,
    /// Takes a problem. The callee returns [`STATUS_ERROR`] afterwards; if it returns [`STATUS_OK`], it has failed all the
    /// same.
    pub error: ErrorFn,
    /// Takes a line for the user, with one of the `LOG_*`.
    pub log: unsafe extern "C" fn(ctx: *mut c_void, level: u32, text: RawStr),
    /// Takes how much of the call's work is done; `total` is 0 if unknown.
    pub progress: unsafe extern "C" fn(ctx: *mut c_void, done: u64, total: u64),
    /// Resolves a path as the user wrote it, relative to the pipeline file, and notes that the result depends on
    /// the file's content. `sink` takes the absolute path; if there is no such file, `error` takes the reason.
    pub input: unsafe extern "C" fn(
        ctx: *mut c_void,
        path: RawStr,
        sink: TextFn,
        sink_ctx: *mut c_void,
        error: ErrorFn,
        error_ctx: *mut c_void,
    ) -> i32,
    /// Creates another component from its kind, name and parameters (a JSON object). On success the callee owns
    /// `*instance`; on failure `error` takes the reason.
    pub create: unsafe extern "C" fn(
        ctx: *mut c_void,
        kind: u32,
        name: RawStr,
        params: RawStr,
        instance: *mut RawInstance,
        error: ErrorFn,
        error_ctx: *mut c_void,
    ) -> i32,
    /// Like `input`, for a file that is read whole: hands its content to `sink`, once. It is read once in a run, so that
    /// whoever asks is handed the same, whatever becomes of the file meanwhile; one that is larger than `memory` is an
    /// error. Null from a caller of the first release.
    pub content: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            path: RawStr,
            sink: FileFn,
            sink_ctx: *mut c_void,
            error: ErrorFn,
            error_ctx: *mut c_void,
        ) -> i32,
    >,
}

/// A column that a loader is asked for.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawColumn {
    /// What it is called in the stream.
    pub name: RawStr,
    /// What the source calls it.
    pub source: RawStr,
}

/// What a loader is asked for.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawLoadRequest {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Absolute path of the file; null for a loader without `NEEDS_PATH`.
    pub path: RawStr,
    /// `column_count` columns; each name once.
    pub columns: *const RawColumn,
    /// How many columns.
    pub column_count: u64,
}

/// What a loader says of a source without reading all of it.
#[repr(C)]
#[derive(Debug)]
pub struct RawDescription {
    /// Size of this structure, set by the caller.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// How many rows; [`ROWS_UNKNOWN`] if that takes reading them.
    pub rows: u64,
    /// Length of an embedding; 0 if unknown, or if the request names no column `embedding`.
    pub dim: u64,
    /// All columns of the source, under its own names: a struct, which the caller releases. Comes released, and stays so
    /// if the loader cannot say.
    pub columns: ArrowSchema,
}

/// Methods of [`KIND_LOADER`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawLoaderMethods {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Writes a stream of structs, which may outlive the call and the instance and must not use `host`, of all columns that
    /// were asked for, and no others, under the names of the request. `embedding` is a (fixed-size) list of
    /// 16-, 32- or 64-bit floats; `truth` a list of integers or strings, or one of those itself; `trial` integers; `id`
    /// integers or strings; `preference` and `weight` numbers; `seed` as `truth`, or null; a name that begins with `column:` stands for a further
    /// column of integers, floats or strings.
    pub load: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            request: *const RawLoadRequest,
            host: *const RawHost,
            out: *mut ArrowArrayStream,
        ) -> i32,
    >,
    /// Says what the source holds without reading all of it, and fails if a column of the request is not there. Null if
    /// it cannot; then it is opened instead.
    pub describe: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            request: *const RawLoadRequest,
            host: *const RawHost,
            out: *mut RawDescription,
        ) -> i32,
    >,
}

/// Methods of [`KIND_COMPOSER`]. All matrices are row-major, `rows` (which may be 0) by `dim`, and do not overlap.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawComposerMethods {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Writes the only dimension it works for; 0 if it works for all.
    pub dim: Option<unsafe extern "C" fn(instance: *mut c_void, host: *const RawHost, dim: *mut u64) -> i32>,
    /// `out[i] = g(left[i], right[i])`; every number of `out` is written.
    pub compose: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            rows: u64,
            dim: u64,
            left: *const f32,
            right: *const f32,
            out: *mut f32,
            host: *const RawHost,
        ) -> i32,
    >,
    /// Vector-Jacobian product: overwrites `grad_left[i]` and `grad_right[i]` with `grad[i]` pulled back through
    /// g at `(left[i], right[i])`. Null without [`HAS_GRADIENTS`].
    pub vjp: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            rows: u64,
            dim: u64,
            left: *const f32,
            right: *const f32,
            grad: *const f32,
            grad_left: *mut f32,
            grad_right: *mut f32,
            host: *const RawHost,
        ) -> i32,
    >,
    /// `out[i]` is the composition of the set `sets[i]` of rows of `vectors`, none of them empty: for a composer that is
    /// more than its pairs, such as the mean. Null without [`COMPOSES_SETS`].
    pub compose_sets: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            rows: u64,
            dim: u64,
            vectors: *const f32,
            sets: *const RawSets,
            out: *mut f32,
            host: *const RawHost,
        ) -> i32,
    >,
    /// Overwrites `grad_vectors` (`rows` by `dim`) with `grad` (a row per set) pulled back through `compose_sets`. Not null
    /// if that is not and there is `vjp`.
    pub compose_sets_vjp: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            rows: u64,
            dim: u64,
            vectors: *const f32,
            sets: *const RawSets,
            grad: *const f32,
            grad_vectors: *mut f32,
            host: *const RawHost,
        ) -> i32,
    >,
}

/// How many rows every batch of a pass has, except the last.
pub const BATCH_ROWS: u64 = 1 << 16;

/// Takes some rows, row-major, borrowed for the call; anything but [`STATUS_OK`] ends the pass. Called on the thread
/// of the call it was handed to, before that returns.
pub type BatchFn = unsafe extern "C" fn(sink_ctx: *mut c_void, rows: u64, values: *const f32) -> i32;

/// Hands all examples to `each`, in order, finite, not normalised, in batches of [`BATCH_ROWS`]. May be called again;
/// while a pass is under way, another is refused. Returns what `each` returned if that ended the pass; if the
/// examples cannot be read, `error` takes the reason.
pub type PassFn = unsafe extern "C" fn(
    ctx: *mut c_void,
    each: BatchFn,
    each_ctx: *mut c_void,
    error: ErrorFn,
    error_ctx: *mut c_void,
) -> i32;

/// What some examples add up to. Two of these, of earlier and of later examples, are put together by adding up `sums`,
/// taking the greater of `largest`, number by number, and putting the later `rows` behind the earlier.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawPartial {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Borrowed.
    pub sums: *const f64,
    /// How many.
    pub sums_len: u64,
    /// Borrowed.
    pub largest: *const f64,
    /// How many.
    pub largest_len: u64,
    /// Borrowed.
    pub rows: *const f32,
    /// How many numbers.
    pub rows_len: u64,
}

/// Takes what some examples add up to, borrowed for the call. Called on the thread of the call it was handed to, before
/// that returns.
pub type PartialFn = unsafe extern "C" fn(sink_ctx: *mut c_void, partial: *const RawPartial);

/// Hands to `sink` what all examples add up to: has `partial` of an instance with the same parameters called with `state`,
/// somewhere, for every batch of [`BATCH_ROWS`] examples, and puts the results together in an order that depends on nothing
/// but their number. May be called again. If that fails, `error` takes the reason.
pub type ReduceFn = unsafe extern "C" fn(
    ctx: *mut c_void,
    state: *const u8,
    state_len: u64,
    sink: PartialFn,
    sink_ctx: *mut c_void,
    error: ErrorFn,
    error_ctx: *mut c_void,
) -> i32;

/// What a clusterer is given.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawTask {
    /// Size of this structure.
    pub size: u32,
    /// Largest composition considered; at least 1.
    pub degree: u32,
    /// Number of examples; at least 1.
    pub rows: u64,
    /// Length of an embedding; at least 1.
    pub dim: u64,
    /// `rows` by `dim`, row-major, finite, not normalised; never written to. Null for an instance that `streams`.
    pub embeddings: *const f32,
    /// One of the `NORMALIZE_*`.
    pub normalize: u32,
    /// One of the `DISTANCE_*`.
    pub distance: u32,
    /// Null if the pipeline has none.
    pub composer: *const RawInstance,
    /// The true sets, one per example; null without [`NEEDS_TRUTH`].
    pub truth: *const RawSets,
    /// How gladly each example becomes an exemplar, `rows` numbers; null if the data does not say.
    pub preferences: *const f32,
    /// How much each example counts, `rows` numbers of at least 0; null if all count the same.
    pub weights: *const f32,
    /// The further columns that the instance asked for, under the names that it asked for, a row per example: Arrow's `l`
    /// (64-bit integers), `g` (64-bit floats, NaN where the source has none) or `U` (texts with 64-bit offsets), without
    /// nulls. Borrowed, not to be released. Null if it asked for none.
    pub columns: *const RawTable,
    /// Passed to `pass`.
    pub ctx: *mut c_void,
    /// Reads the examples, also those that are in memory.
    pub pass: Option<PassFn>,
    /// The sets that are known beforehand, one per example, empty where it is not known: of at most `degree` of the numbers
    /// 0 to m-1, each of which occurs in one. An instance with [`USES_SEEDS`] returns known sets as they are, so that the
    /// singletons 0 to m-1 are those that the numbers stand for; others have other numbers. Null if nothing is known.
    pub seeds: *const RawSets,
    /// Null unless the examples are elsewhere; then `embeddings` is null, `pass` refuses, and the result has no assignments:
    /// clusters are listed in the order of their first examples, those of one singleton first. Only an instance with
    /// [`HAS_PARTIAL`] is given such a task. Takes `ctx`.
    pub reduce: Option<ReduceFn>,
}

/// An Arrow struct array with its schema.
#[repr(C)]
#[derive(Debug)]
pub struct RawTable {
    /// The columns.
    pub array: ArrowArray,
    /// Their types.
    pub schema: ArrowSchema,
}

/// What a clusterer returns. The caller sets `size` and hands over tables that are released already; the callee assigns
/// the fields that `size` covers, on success only. A table that stays released is one that there is not.
#[repr(C)]
#[derive(Debug)]
pub struct RawClustering {
    /// Size of this structure, set by the caller.
    pub size: u32,
    /// Non-zero if the method stopped because nothing changed any more.
    pub converged: u32,
    /// Iterations done.
    pub iterations: u64,
    /// What the method minimised or maximised; NaN if it has no such number.
    pub objective: f64,
    /// A row per example, in order: `clusters` `list<u32>`, the set of singleton clusters it belongs to, of at most
    /// `degree` members and empty only with [`ASSIGNS_NONE`]; optional `memberships` `fixed_size_list<f32>`, one finite
    /// number per singleton, those that no example is in included, and no more than there are examples; further
    /// columns, kept under their names: `list<u32>` of ascending members (numbers of the method's own, which are kept
    /// as they are while clusters are renumbered), `f64` (NaN counts as null), `i64`, `bool`, `utf8`. In all tables
    /// lists may be Arrow's `+l` or `+L`, texts `u` or `U`.
    pub assignments: RawTable,
    /// A row per cluster, at least those that occur in `assignments` and are not empty: `clusters` `list<u32>`; optional
    /// `exemplars` `list<u32>`, rows of `embeddings`, one per member in the same order and all different; optional
    /// `centroid` `fixed_size_list<f32>`, a point of the pipeline's space (already normalised where it normalises).
    pub clusters: RawTable,
    /// A row per iteration: `objective` `f64`. May be left released.
    pub trace: RawTable,
    /// Named numbers about the result: `name` `utf8`, `value` `f64`. May be left released. No name occurs twice or has control
    /// characters, here and in `resolved`.
    pub scalars: RawTable,
    /// Parameters that the method settled by itself, such as a threshold found: `name` `utf8`, the parameter's path, and
    /// `value` `utf8`, JSON. May be left released.
    pub resolved: RawTable,
    /// What unions are composed from, before normalisation: `singleton` `u32` and `vector` `fixed_size_list<f32>`. May be
    /// left released if there are exemplars, or if the method composes nothing.
    pub singletons: RawTable,
    /// The log-density of every set that an example may be given to, at a point x of the space
    /// `offset` - ½‖F(x - `centre`)‖²: `clusters` `list<u32>`, where the empty set is "none of them",
    /// `centre` `fixed_size_list<f32>`, `offset` `f64`, and `factor` `u32`, the row of `factors` that F is in. May be left
    /// released: new examples are then given to the nearest cluster.
    pub densities: RawTable,
    /// The lower triangular matrices F of `densities`: `factor` `fixed_size_list<f32>`, row by row without what is above the
    /// diagonal. Released if that is.
    pub factors: RawTable,
}

/// How large a task is.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawShape {
    /// Size of this structure.
    pub size: u32,
    /// Largest composition considered; at least 1.
    pub degree: u32,
    /// Number of examples.
    pub rows: u64,
    /// Length of an embedding.
    pub dim: u64,
}

/// A batch of examples, and what is known of them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawBatch {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// The number of the first of them among all.
    pub first: u64,
    /// How many; at least 1.
    pub rows: u64,
    /// Length of an embedding; at least 1.
    pub dim: u64,
    /// `rows` by `dim`, row-major, finite, not normalised.
    pub values: *const f32,
    /// How much each counts, `rows` numbers of at least 0: those of [`RawTask::weights`]. Null if that is.
    pub weights: *const f32,
    /// The sets that are known beforehand: those of [`RawTask::seeds`]. Null if that is.
    pub seeds: *const RawSets,
}

/// Methods of [`KIND_CLUSTERER`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawClustererMethods {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Writes how many bytes `cluster` would allocate for a task of this shape with the threads of `host`, 0 if it cannot
    /// tell. The host refuses the work if that is more than the budget. May be null.
    pub memory: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            shape: *const RawShape,
            host: *const RawHost,
            bytes: *mut u64,
        ) -> i32,
    >,
    /// Clusters.
    pub cluster: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            task: *const RawTask,
            host: *const RawHost,
            out: *mut RawClustering,
        ) -> i32,
    >,
    /// Writes 1 if this instance reads the examples pass by pass and does without the matrix, else 0. May be null.
    pub streams:
        Option<unsafe extern "C" fn(instance: *mut c_void, host: *const RawHost, streams: *mut u32) -> i32>,
    /// Hands to `sink` what a batch of examples adds up to for a state that `cluster` gave to [`RawTask::reduce`], perhaps in
    /// another process: `rows` by `dim` of them, row-major, finite, not normalised, of which the first has the number
    /// `first` among all. May be null without [`HAS_PARTIAL`].
    pub partial: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            state: *const u8,
            state_len: u64,
            first: u64,
            rows: u64,
            dim: u64,
            values: *const f32,
            host: *const RawHost,
            sink: PartialFn,
            sink_ctx: *mut c_void,
        ) -> i32,
    >,
    /// The same of a batch with all that is known of it, in the place of `partial` where it is not null. Without it, examples
    /// that are elsewhere have neither weights nor seeds.
    pub partial_of: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            state: *const u8,
            state_len: u64,
            batch: *const RawBatch,
            host: *const RawHost,
            sink: PartialFn,
            sink_ctx: *mut c_void,
        ) -> i32,
    >,
}

/// A number that an evaluator reports.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawMetric {
    /// Size of this structure.
    pub size: u32,
    /// One of the `UNIT_*`; one that is not known counts as [`UNIT_NUMBER`].
    pub unit: u32,
    /// The name in tables and in `[tune] metric`.
    pub name: RawStr,
    /// The smallest value there can be; may be -∞.
    pub least: f64,
    /// The largest value there can be; may be ∞.
    pub most: f64,
    /// 1 if larger is better, 0 if smaller is.
    pub larger_is_better: u32,
    /// Zero.
    pub reserved: u32,
}

/// Takes a metric, borrowed for the call. Called on the thread of the call it was handed to, before that returns.
pub type MetricFn = unsafe extern "C" fn(sink_ctx: *mut c_void, metric: *const RawMetric);

/// Takes the value of a metric. Called on the thread of the call it was handed to, before that returns.
pub type ScoreFn = unsafe extern "C" fn(sink_ctx: *mut c_void, name: RawStr, value: f64);

/// What an evaluator is given.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawEvaluation {
    /// Size of this structure.
    pub size: u32,
    /// Largest composition considered; at least 1.
    pub degree: u32,
    /// Number of examples; may be 0.
    pub rows: u64,
    /// Length of an embedding; 0 if there are none.
    pub dim: u64,
    /// The set of every example.
    pub predicted: *const RawSets,
    /// The true set of every example; null if the data does not say, never with [`NEEDS_TRUTH`].
    pub truth: *const RawSets,
    /// `rows` by `dim`, as in [`RawTask::embeddings`]. Null if they are not in memory or there are none.
    pub embeddings: *const f32,
    /// One of the `NORMALIZE_*`.
    pub normalize: u32,
    /// One of the `DISTANCE_*`.
    pub distance: u32,
    /// The clusters, each the set of its members; null if nothing but the sets is known.
    pub clusters: *const RawSets,
    /// A point of the space for every cluster, row-major; null if the method has none, or there are no embeddings.
    pub centroids: *const f32,
    /// The further columns that the instance asked for, as in [`RawTask::columns`].
    pub columns: *const RawTable,
    /// Passed to `pass`.
    pub ctx: *mut c_void,
    /// Reads the embeddings, also those that are in memory; null if there are none, never with [`NEEDS_EMBEDDINGS`].
    pub pass: Option<PassFn>,
}

/// Methods of [`KIND_EVALUATOR`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawEvaluatorMethods {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Hands every metric that `evaluate` reports to `sink`, the main one first.
    pub metrics: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            host: *const RawHost,
            sink: MetricFn,
            sink_ctx: *mut c_void,
        ) -> i32,
    >,
    /// Scores; hands one value per metric to `sink`. Members of sets are names without meaning.
    pub evaluate: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            evaluation: *const RawEvaluation,
            host: *const RawHost,
            sink: ScoreFn,
            sink_ctx: *mut c_void,
        ) -> i32,
    >,
}

// Sizes and offsets are compared with docs/abi-layout.txt by tests/layout.rs.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_descriptors_are_long_enough_for_their_own_version() {
        assert!(size_of::<RawLibrary>() >= MIN_LIBRARY_SIZE as usize);
        assert!(size_of::<RawComponent>() >= MIN_COMPONENT_SIZE as usize);
    }
}
