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
//! - *Growth.* Structures that begin with `size` grow at the end only. `size` is what the maker of the value was
//!   compiled with; a reader looks at a later field only if `size` covers it. Reserved fields are zero.
//! - *Null.* A pointer is non-null unless its comment says otherwise; a zero-length slice may have any pointer.
//!   Function pointers are `Option` here only so that a null one can be noticed and refused.

use std::ffi::c_void;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;

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
pub const MIN_COMPONENT_SIZE: u32 = 104;

/// The call did what it was asked.
pub const STATUS_OK: i32 = 0;
/// The call failed and said why through [`RawHost::error`].
pub const STATUS_ERROR: i32 = 1;
/// The call stopped because [`RawHost::cancel`] was raised.
pub const STATUS_CANCELLED: i32 = 2;

/// [`RawComponent::kind`]: yields tables of embeddings; its methods are [`RawLoaderMethods`].
pub const KIND_LOADER: u32 = 1;
/// [`RawComponent::kind`]: composes embeddings; its methods are [`RawComposerMethods`].
pub const KIND_COMPOSER: u32 = 2;
/// [`RawComponent::kind`]: clusters; its methods are [`RawClustererMethods`].
pub const KIND_CLUSTERER: u32 = 3;
/// [`RawComponent::kind`]: scores; its methods are [`RawEvaluatorMethods`].
pub const KIND_EVALUATOR: u32 = 4;

/// [`RawComponent::flags`]: a clusterer that cannot work without a composer if the degree is above 1.
pub const NEEDS_COMPOSER: u32 = 1;
/// [`RawComponent::flags`]: a clusterer that is given the true sets.
pub const NEEDS_TRUTH: u32 = 1 << 1;
/// [`RawComponent::flags`]: a clusterer whose composer must have `vjp`.
pub const NEEDS_GRADIENTS: u32 = 1 << 2;
/// [`RawComponent::flags`]: a loader that reads the file named by `path`.
pub const NEEDS_PATH: u32 = 1 << 3;
/// [`RawComponent::flags`]: a composer that has `vjp`.
pub const HAS_GRADIENTS: u32 = 1 << 4;

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
pub type EntryFn = unsafe extern "C" fn(sink: TextFn, sink_ctx: *mut c_void) -> *const RawLibrary;

/// Takes a text, borrowed for the call. Called on the thread of the call it was handed to, before that returns.
pub type TextFn = unsafe extern "C" fn(sink_ctx: *mut c_void, text: RawStr);

/// UTF-8 text, borrowed, without a terminating zero.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawStr {
    /// First byte; null where the comment of the field allows the text to be absent.
    pub ptr: *const u8,
    /// Length in bytes.
    pub len: u64,
}

/// A sequence of sets of numbers, borrowed. Set `i` is `values[offsets[i]..offsets[i + 1]]`, strictly ascending.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawSets {
    /// How many sets.
    pub len: u64,
    /// `len + 1` ascending numbers, the first 0.
    pub offsets: *const u32,
    /// The members, set after set.
    pub values: *const u32,
}

/// What a library offers.
#[repr(C)]
#[derive(Debug)]
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
    /// How many components.
    pub component_count: u64,
}

/// One component: what it is and how it is made.
#[repr(C)]
#[derive(Debug)]
pub struct RawComponent {
    /// Size of this structure.
    pub size: u32,
    /// One of the `KIND_*`.
    pub kind: u32,
    /// Any of the `NEEDS_*` and `HAS_*`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
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
#[derive(Debug)]
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
    /// Passed to every function below.
    pub ctx: *mut c_void,
    /// Takes the text of an error; the callee returns [`STATUS_ERROR`] afterwards. A text about a parameter
    /// begins with its name in backticks; several lines are several problems.
    pub error: unsafe extern "C" fn(ctx: *mut c_void, text: RawStr),
    /// Takes a line for the user, with one of the `LOG_*`.
    pub log: unsafe extern "C" fn(ctx: *mut c_void, level: u32, text: RawStr),
    /// Takes how much of the call's work is done; `total` is 0 if unknown.
    pub progress: unsafe extern "C" fn(ctx: *mut c_void, done: u64, total: u64),
    /// Resolves a path as the user wrote it, relative to the pipeline file, and notes that the result depends on
    /// the file's content. `sink` takes the absolute path, or the reason if there is no such file.
    pub input: unsafe extern "C" fn(ctx: *mut c_void, path: RawStr, sink: TextFn, sink_ctx: *mut c_void) -> i32,
    /// Creates another component from its kind, name and parameters (a JSON object). On success the callee owns
    /// `*instance`; on failure `sink` takes the reason.
    pub create: unsafe extern "C" fn(
        ctx: *mut c_void,
        kind: u32,
        name: RawStr,
        params: RawStr,
        instance: *mut RawInstance,
        sink: TextFn,
        sink_ctx: *mut c_void,
    ) -> i32,
}

/// What a loader is asked for.
#[repr(C)]
#[derive(Debug)]
pub struct RawLoadRequest {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Absolute path of the file; null for a loader without `NEEDS_PATH`.
    pub path: RawStr,
    /// The source's name of the embedding column; null if it is not wanted. Likewise the others.
    pub embedding: RawStr,
    /// The source's name of the column of true sets.
    pub truth: RawStr,
    /// The source's name of the column of trial numbers.
    pub trial: RawStr,
    /// The source's name of the column of identifiers.
    pub id: RawStr,
    /// The source's name of the column of preferences. Appended later: look at `size` first.
    pub preference: RawStr,
}

/// Methods of [`KIND_LOADER`].
#[repr(C)]
#[derive(Debug)]
pub struct RawLoaderMethods {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Writes a stream, which may outlive the call and the instance and must not use `host`, of the wanted columns, and no others, under the names `embedding`, `truth`, `trial`,
    /// `id` and `preference`. `embedding` is a (fixed-size) list of 16-, 32- or 64-bit floats; `truth` a list of integers or
    /// strings, or one of those itself; `trial` integers; `id` integers or strings;
    /// `preference` numbers.
    pub load: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            request: *const RawLoadRequest,
            host: *const RawHost,
            out: *mut FFI_ArrowArrayStream,
        ) -> i32,
    >,
}

/// Methods of [`KIND_COMPOSER`]. All matrices are row-major, `rows` by `dim`, and do not overlap.
#[repr(C)]
#[derive(Debug)]
pub struct RawComposerMethods {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// The only dimension it works for; 0 if it works for all.
    pub dim: Option<unsafe extern "C" fn(instance: *mut c_void) -> u64>,
    /// `out[i] = g(left[i], right[i])`.
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
}

/// What a clusterer is given.
#[repr(C)]
#[derive(Debug)]
pub struct RawTask {
    /// Size of this structure.
    pub size: u32,
    /// Largest composition considered; at least 1.
    pub degree: u32,
    /// Number of examples; at least 1.
    pub rows: u64,
    /// Length of an embedding; at least 1.
    pub dim: u64,
    /// `rows` by `dim`, row-major, finite, not normalised.
    pub embeddings: *const f32,
    /// One of the `NORMALIZE_*`.
    pub normalize: u32,
    /// One of the `DISTANCE_*`.
    pub distance: u32,
    /// Null if the pipeline has none.
    pub composer: *const RawInstance,
    /// The true sets, one per example; null without [`NEEDS_TRUTH`].
    pub truth: *const RawSets,
    /// How gladly each example becomes an exemplar, `rows` numbers; null if the data does not say. Appended later: look at
    /// `size` first.
    pub preferences: *const f32,
}

/// How many rows every batch of a pass has, except the last.
pub const BATCH_ROWS: u64 = 1 << 16;

/// Takes some rows, row-major, borrowed for the call; anything but [`STATUS_OK`] ends the pass. Called on the thread
/// of the call it was handed to, before that returns.
pub type BatchFn = unsafe extern "C" fn(sink_ctx: *mut c_void, rows: u64, values: *const f32) -> i32;

/// Hands all examples to `each`, in order, finite, not normalised, in batches of [`BATCH_ROWS`]. May be called again,
/// from one thread at a time. Returns what `each` returned if that ended the pass; if the examples cannot be read, `sink`
/// takes the reason.
pub type PassFn = unsafe extern "C" fn(
    ctx: *mut c_void,
    each: BatchFn,
    each_ctx: *mut c_void,
    sink: TextFn,
    sink_ctx: *mut c_void,
) -> i32;

/// What a clusterer is given that reads the examples batch by batch.
#[repr(C)]
#[derive(Debug)]
pub struct RawStreamTask {
    /// Size of this structure.
    pub size: u32,
    /// Largest composition considered; at least 1.
    pub degree: u32,
    /// Number of examples; at least 1.
    pub rows: u64,
    /// Length of an embedding; at least 1.
    pub dim: u64,
    /// One of the `NORMALIZE_*`.
    pub normalize: u32,
    /// One of the `DISTANCE_*`.
    pub distance: u32,
    /// Null if the pipeline has none.
    pub composer: *const RawInstance,
    /// Passed to `pass`.
    pub ctx: *mut c_void,
    /// Reads the examples.
    pub pass: PassFn,
}

/// An Arrow struct array with its schema.
#[repr(C)]
#[derive(Debug)]
pub struct RawTable {
    /// The columns.
    pub array: FFI_ArrowArray,
    /// Their types.
    pub schema: FFI_ArrowSchema,
}

/// What a clusterer returns.
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
    /// A row per example, in order: `clusters` `list<u32>`, the set of singleton clusters it belongs to, not
    /// empty; optional `memberships` `fixed_size_list<f32>`, one per singleton; any further columns are
    /// sets as well, kept under their names.
    pub assignments: RawTable,
    /// A row per cluster, at least those that occur in `assignments`: `clusters` `list<u32>`; optional `exemplars`
    /// `list<u32>`, rows of `embeddings`, one per member in the same order (a composition is folded in
    /// ascending order of these rows); optional `centroid`
    /// `fixed_size_list<f32>`, a point of the pipeline's space (already normalised where it normalises).
    pub clusters: RawTable,
    /// A row per iteration: `objective` f64. May have no rows.
    pub trace: RawTable,
}

/// Methods of [`KIND_CLUSTERER`].
#[repr(C)]
#[derive(Debug)]
pub struct RawClustererMethods {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// How many bytes `cluster` would allocate; 0 if it cannot tell.
    pub memory: Option<unsafe extern "C" fn(instance: *mut c_void, rows: u64, dim: u64, degree: u32) -> u64>,
    /// Clusters. `out` comes with empty tables and is written only on success.
    pub cluster: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            task: *const RawTask,
            host: *const RawHost,
            out: *mut RawClustering,
        ) -> i32,
    >,
    /// Non-zero if this instance wants the examples batch by batch. Appended later: look at `size` first; null means no.
    pub streams: Option<unsafe extern "C" fn(instance: *mut c_void) -> u32>,
    /// Like `cluster`, for an instance that `streams`.
    pub cluster_stream: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            task: *const RawStreamTask,
            host: *const RawHost,
            out: *mut RawClustering,
        ) -> i32,
    >,
}

/// Takes a named number. Called on the thread of the call it was handed to, before that returns.
pub type ScoreFn = unsafe extern "C" fn(sink_ctx: *mut c_void, name: RawStr, value: f64);

/// Methods of [`KIND_EVALUATOR`].
#[repr(C)]
#[derive(Debug)]
pub struct RawEvaluatorMethods {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Hands every metric that `evaluate` reports to `sink`, with 1 if larger is better and -1 if smaller is.
    pub metrics: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            host: *const RawHost,
            sink: ScoreFn,
            sink_ctx: *mut c_void,
        ) -> i32,
    >,
    /// Scores `predicted` against `truth` (equally many sets, none empty); hands every score to `sink`.
    pub evaluate: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            truth: *const RawSets,
            predicted: *const RawSets,
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
    fn the_current_descriptor_is_long_enough_for_its_own_version() {
        assert!(size_of::<RawLibrary>() >= MIN_LIBRARY_SIZE as usize);
    }
}
