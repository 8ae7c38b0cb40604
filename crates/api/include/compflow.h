/* Made from crates/api/src/abi.rs: change that, not this. SPDX: MIT OR Apache-2.0 */
#ifndef COMPFLOW_H
#define COMPFLOW_H

#include <stdint.h>

/* Rules that hold for everything in this file
 *
 * Ownership. Nobody frees what it did not allocate. A pointer in an argument is borrowed for the duration of the call;
 *   Arrow structures carry their producer's `release`; instances end by their component's `destroy`.
 * Threads. Every function may be called from any thread, and the functions of one instance from several threads at once.
 * Errors. A function that fails hands a CompflowError to CompflowHost.error and returns COMPFLOW_STATUS_ERROR. No
 *   exception and no longjmp leaves a function.
 * Growth. Structures that begin with `size` grow at the end only, by whole fields. `size` is what the maker of the value
 *   was compiled with; a reader looks at a later field only if `size` covers it, and a writer of a result assigns a later
 *   field only if the `size` that it was handed covers it. Nobody ever copies a whole structure over one that the other
 *   side allocated. Structures without `size` never change.
 * Reserved fields are zero; another value is refused.
 * Null. A pointer is not null unless its comment says so; a sequence of length zero may have any pointer. Text is
 *   UTF-8 without a terminating zero.
 *
 * docs/plugins.md explains how a library is written, docs/abi.md what may change.
 */

#if defined(_WIN32)
#define COMPFLOW_EXPORT __declspec(dllexport)
#else
#define COMPFLOW_EXPORT __attribute__((visibility("default")))
#endif

/* The first bytes of CompflowAbi. */
#define COMPFLOW_MAGIC {'c', 'o', 'm', 'p', 'f', 'l', 'o', 'w'}

/* The Arrow C data interface and the Arrow C stream interface, whose structures are the same for everybody:
 * https://arrow.apache.org/docs/format/CDataInterface.html */

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};

#endif

#ifdef __cplusplus
}
#endif

typedef struct ArrowSchema ArrowSchema;
typedef struct ArrowArray ArrowArray;
typedef struct ArrowArrayStream ArrowArrayStream;

// Raised only when a library built for the old number can no longer be used.
//
// History: 1, the first.
#define COMPFLOW_ABI_VERSION 1

// Size of CompflowLibrary in ABI version 1 as first released; a smaller descriptor is truncated.
#define COMPFLOW_MIN_LIBRARY_SIZE 56

// Likewise the size of CompflowComponent.
#define COMPFLOW_MIN_COMPONENT_SIZE 120

// More components in one library than anybody has; a larger number is a mistake.
#define COMPFLOW_MAX_COMPONENTS UINT64_C(4096)

// The call did what it was asked.
#define COMPFLOW_STATUS_OK 0

// The call failed and said why through CompflowHost.error, or through the sink that came with it.
#define COMPFLOW_STATUS_ERROR 1

// The call stopped because CompflowHost.cancel was raised; never otherwise.
#define COMPFLOW_STATUS_CANCELLED 2

// CompflowError.code: none of the others; a fault of the callee, or of something it uses.
#define COMPFLOW_ERROR_INTERNAL 0

// CompflowError.code: a parameter is wrong, CompflowError.parameter says which.
#define COMPFLOW_ERROR_PARAMETER 1

// CompflowError.code: this data cannot be worked on, whatever the parameters: too few examples, an unreadable file.
#define COMPFLOW_ERROR_DATA 2

// CompflowError.code: the work would take more than CompflowHost.memory.
#define COMPFLOW_ERROR_BUDGET 3

// CompflowError.code: the work was cancelled. The status says so as well: this is for who hands errors on.
#define COMPFLOW_ERROR_CANCELLED 5

// CompflowError.code: the source lacks a column that was asked for; CompflowError.parameter is its name in the request.
#define COMPFLOW_ERROR_COLUMN 4

// CompflowComponent.kind: yields tables of embeddings; its methods are CompflowLoaderMethods.
#define COMPFLOW_KIND_LOADER 1

// CompflowComponent.kind: composes embeddings; its methods are CompflowComposerMethods.
#define COMPFLOW_KIND_COMPOSER 2

// CompflowComponent.kind: clusters; its methods are CompflowClustererMethods.
#define COMPFLOW_KIND_CLUSTERER 3

// CompflowComponent.kind: scores; its methods are CompflowEvaluatorMethods.
#define COMPFLOW_KIND_EVALUATOR 4

// The half of CompflowComponent.flags that must be understood: a component with an unknown flag in it is refused, and so is
// one of an unknown kind; the others of its library are not. An unknown flag in the other half is ignored.
#define COMPFLOW_FLAGS_TO_UNDERSTAND UINT64_C(0xffffffff)

// CompflowComponent.flags: a clusterer that cannot work without a composer if the degree is above 1.
#define COMPFLOW_NEEDS_COMPOSER UINT64_C(1)

// CompflowComponent.flags: a clusterer that is given the true sets, or an evaluator that cannot do without them.
#define COMPFLOW_NEEDS_TRUTH (UINT64_C(1) << 1)

// CompflowComponent.flags: a clusterer whose composer must have `vjp`.
#define COMPFLOW_NEEDS_GRADIENTS (UINT64_C(1) << 2)

// CompflowComponent.flags: a loader that reads the file named by `path`.
#define COMPFLOW_NEEDS_PATH (UINT64_C(1) << 3)

// CompflowComponent.flags: an evaluator that cannot do without embeddings.
#define COMPFLOW_NEEDS_EMBEDDINGS (UINT64_C(1) << 4)

// CompflowComponent.flags: a clusterer that may assign an example to the empty set, "none of them".
#define COMPFLOW_ASSIGNS_NONE (UINT64_C(1) << 5)

// CompflowComponent.flags: a composer that has `vjp`.
#define COMPFLOW_HAS_GRADIENTS (UINT64_C(1) << 32)

// CompflowComponent.flags: a composer for which neither order nor grouping matters, but for rounding.
#define COMPFLOW_IS_ASSOCIATIVE (UINT64_C(1) << 33)

// CompflowComponent.flags: a composer that has `compose_sets`.
#define COMPFLOW_COMPOSES_SETS (UINT64_C(1) << 34)

// CompflowComponent.flags: a clusterer that makes use of weights.
#define COMPFLOW_USES_WEIGHTS (UINT64_C(1) << 35)

// CompflowComponent.flags: a clusterer that keeps to CompflowTask.seeds; one without it is not given any.
#define COMPFLOW_USES_SEEDS (UINT64_C(1) << 36)

// CompflowComponent.flags: a clusterer that can do without seeing the examples: it has `partial`, and makes use of
// CompflowTask.reduce.
#define COMPFLOW_HAS_PARTIAL (UINT64_C(1) << 37)

// CompflowTask.normalize: vectors are used as they are.
#define COMPFLOW_NORMALIZE_NONE 0

// CompflowTask.normalize: vectors are divided by their Euclidean norm before distances are taken.
#define COMPFLOW_NORMALIZE_L2 1

// CompflowTask.distance: squared Euclidean.
#define COMPFLOW_DISTANCE_SQEUCLIDEAN 0

// CompflowTask.distance: Euclidean.
#define COMPFLOW_DISTANCE_EUCLIDEAN 1

// CompflowHost.log: of interest when looking for a fault.
#define COMPFLOW_LOG_DEBUG 0

// CompflowHost.log: of interest to a curious user.
#define COMPFLOW_LOG_INFO 1

// CompflowHost.log: the result is usable, the user should know something about it.
#define COMPFLOW_LOG_WARN 2

// CompflowMetric.unit: a plain number.
#define COMPFLOW_UNIT_NUMBER 0

// CompflowMetric.unit: a part of 1, shown in per cent.
#define COMPFLOW_UNIT_SHARE 1

// CompflowMetric.unit: how many.
#define COMPFLOW_UNIT_COUNT 2

// CompflowMetric.unit: a distance of the space, or a sum of them.
#define COMPFLOW_UNIT_DISTANCE 3

// CompflowDescription.rows: not known without reading everything.
#define COMPFLOW_ROWS_UNKNOWN UINT64_MAX

// How many rows every batch of a pass has, except the last.
#define COMPFLOW_BATCH_ROWS (UINT64_C(1) << 16)

// What a library exports as the datum COMPFLOW_ABI_SYMBOL; read before any of its functions is called.
//
// These sixteen bytes never change.
typedef struct CompflowAbi {
  // COMPFLOW_MAGIC.
  uint8_t magic[8];
  // COMPFLOW_ABI_VERSION of the api the library was built with.
  uint32_t abi_version;
  // Size of CompflowLibrary in that api.
  uint32_t size;
} CompflowAbi;

// UTF-8 text, borrowed, without a terminating zero.
typedef struct CompflowStr {
  // First byte; null where the comment of the field allows the text to be absent.
  const uint8_t *ptr;
  // Length in bytes.
  uint64_t len;
} CompflowStr;

// A problem.
typedef struct CompflowError {
  // Size of this structure.
  uint32_t size;
  // One of the `COMPFLOW_ERROR_*`; one that is not known counts as COMPFLOW_ERROR_INTERNAL.
  uint32_t code;
  // The path of the parameter it is about, `base.params.k`; null if it is about none.
  struct CompflowStr parameter;
  // For the user: lower case, no full stop, naming the thing, what was found and what would do. It does not repeat
  // the parameter's name, which is put before it: "must be at least 1, found 0".
  struct CompflowStr text;
  // What would help, if that is known: "did you mean `k`?". May be null.
  struct CompflowStr help;
} CompflowError;

// A sequence of sets of numbers, borrowed. Set `i` is `values[offsets[i]..offsets[i + 1]]`, strictly ascending; it may be
// empty.
typedef struct CompflowSets {
  // How many sets.
  uint64_t len;
  // `len + 1` ascending numbers, the first 0.
  const uint64_t *offsets;
  // The members, set after set.
  const uint32_t *values;
} CompflowSets;

// Takes a problem, borrowed for the call; several calls are several problems. Called on the thread of the call it was
// handed to, before that returns.
typedef void (*CompflowErrorFn)(void *sink_ctx, const struct CompflowError *error);

// Takes a text, borrowed for the call. Called on the thread of the call it was handed to, before that returns.
typedef void (*CompflowTextFn)(void *sink_ctx, struct CompflowStr text);

// An instance together with its component.
typedef struct CompflowInstance {
  // Passed to every method; only the component knows what it is.
  void *instance;
  // Valid for the life of the process.
  const struct CompflowComponent *component;
} CompflowInstance;

// Takes a file: its absolute path and all of its content, borrowed for the call. Called on the thread of the call it was
// handed to, before that returns.
typedef void (*CompflowFileFn)(void *sink_ctx,
                               struct CompflowStr path,
                               const uint8_t *content,
                               uint64_t content_len);

// What the caller of a function offers to it. Valid for the duration of the call.
typedef struct CompflowHost {
  // Size of this structure.
  uint32_t size;
  // How many threads the callee may keep busy, itself included; at least 1. Results do not depend on it.
  uint32_t threads;
  // The source of all randomness in the call.
  uint64_t seed;
  // How many bytes the callee may allocate; more is an error that names the number, not a try.
  uint64_t memory;
  // Non-zero once the work is no longer wanted; read it atomically, several times a second.
  const uint32_t *cancel;
  // Name and version of the program for people, such as `compflow 0.2.0`.
  struct CompflowStr version;
  // Passed to every function below.
  void *ctx;
  // Takes a problem. The callee returns COMPFLOW_STATUS_ERROR afterwards; if it returns COMPFLOW_STATUS_OK, it has failed all the
  // same.
  CompflowErrorFn error;
  // Takes a line for the user, with one of the `COMPFLOW_LOG_*`.
  void (*log)(void *ctx, uint32_t level, struct CompflowStr text);
  // Takes how much of the call's work is done; `total` is 0 if unknown.
  void (*progress)(void *ctx, uint64_t done, uint64_t total);
  // Resolves a path as the user wrote it, relative to the pipeline file, and notes that the result depends on
  // the file's content. `sink` takes the absolute path; if there is no such file, `error` takes the reason.
  int32_t (*input)(void *ctx,
                   struct CompflowStr path,
                   CompflowTextFn sink,
                   void *sink_ctx,
                   CompflowErrorFn error,
                   void *error_ctx);
  // Creates another component from its kind, name and parameters (a JSON object). On success the callee owns
  // `*instance`; on failure `error` takes the reason.
  int32_t (*create)(void *ctx,
                    uint32_t kind,
                    struct CompflowStr name,
                    struct CompflowStr params,
                    struct CompflowInstance *instance,
                    CompflowErrorFn error,
                    void *error_ctx);
  // Like `input`, for a file that is read whole: hands its content to `sink`, once. It is read once in a run, so that
  // whoever asks is handed the same, whatever becomes of the file meanwhile; one that is larger than `memory` is an
  // error. Null from a caller of the first release.
  int32_t (*content)(void *ctx,
                     struct CompflowStr path,
                     CompflowFileFn sink,
                     void *sink_ctx,
                     CompflowErrorFn error,
                     void *error_ctx);
} CompflowHost;

// One component: what it is and how it is made.
typedef struct CompflowComponent {
  // Size of this structure.
  uint32_t size;
  // One of the `COMPFLOW_KIND_*`.
  uint32_t kind;
  // Any of the `COMPFLOW_NEEDS_*`, `COMPFLOW_HAS_*` and others that say so: what holds for every instance. See COMPFLOW_FLAGS_TO_UNDERSTAND. A flag
  // that stands for a function is set if and only if the function is there.
  uint64_t flags;
  // The name that pipeline files use: lower case, unique among components of its kind.
  struct CompflowStr name;
  // One line.
  struct CompflowStr summary;
  // Markdown; may be empty.
  struct CompflowStr documentation;
  // JSON Schema of the parameters, an object schema in which every optional property has its `default`. The
  // alternatives of a property `preset` may have `values`: an object of what `create` takes for other properties
  // that are not given.
  struct CompflowStr schema;
  // Makes an instance from parameters, a JSON object. Validates all of them; does no work on data.
  // On success the caller owns `*instance` and ends it with `destroy`.
  int32_t (*create)(struct CompflowStr params, const struct CompflowHost *host, void **instance);
  // Ends an instance. Called once, after every other call on it has returned; whatever the status, the
  // instance is gone afterwards.
  int32_t (*destroy)(void *instance, const struct CompflowHost *host);
  // The functions of `kind`: a `Compflow*Methods`, valid for the life of the process.
  const void *methods;
  // Writes the flags of this instance, for a component whose parameters decide what it needs. Null if all have
  // those of the component.
  int32_t (*flags_of)(void *instance, const struct CompflowHost *host, uint64_t *flags);
  // For clusterers and evaluators: hands the name of every further column that this instance wants to `sink`, as the
  // source of the data has it; `id` for the identifiers. Null if it wants none.
  int32_t (*columns)(void *instance,
                     const struct CompflowHost *host,
                     CompflowTextFn sink,
                     void *sink_ctx);
} CompflowComponent;

// What a library offers.
typedef struct CompflowLibrary {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Name for people, usually the crate's.
  struct CompflowStr name;
  // Version for people.
  struct CompflowStr version;
  // `component_count` pointers, each valid for the life of the process.
  const struct CompflowComponent *const *components;
  // How many components; at most COMPFLOW_MAX_COMPONENTS.
  uint64_t component_count;
} CompflowLibrary;

// A column that a loader is asked for.
typedef struct CompflowColumn {
  // What it is called in the stream.
  struct CompflowStr name;
  // What the source calls it.
  struct CompflowStr source;
} CompflowColumn;

// What a loader is asked for.
typedef struct CompflowLoadRequest {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Absolute path of the file; null for a loader without `COMPFLOW_NEEDS_PATH`.
  struct CompflowStr path;
  // `column_count` columns; each name once.
  const struct CompflowColumn *columns;
  // How many columns.
  uint64_t column_count;
} CompflowLoadRequest;

// What a loader says of a source without reading all of it.
typedef struct CompflowDescription {
  // Size of this structure, set by the caller.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // How many rows; COMPFLOW_ROWS_UNKNOWN if that takes reading them.
  uint64_t rows;
  // Length of an embedding; 0 if unknown, or if the request names no column `embedding`.
  uint64_t dim;
  // All columns of the source, under its own names: a struct, which the caller releases. Comes released, and stays so
  // if the loader cannot say.
  ArrowSchema columns;
} CompflowDescription;

// Methods of COMPFLOW_KIND_LOADER.
typedef struct CompflowLoaderMethods {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Writes a stream of structs, which may outlive the call and the instance and must not use `host`, of all columns that
  // were asked for, and no others, under the names of the request. `embedding` is a (fixed-size) list of
  // 16-, 32- or 64-bit floats; `truth` a list of integers or strings, or one of those itself; `trial` integers; `id`
  // integers or strings; `preference` and `weight` numbers; `seed` as `truth`, or null; a name that begins with `column:` stands for a further
  // column of integers, floats or strings.
  int32_t (*load)(void *instance,
                  const struct CompflowLoadRequest *request,
                  const struct CompflowHost *host,
                  ArrowArrayStream *out);
  // Says what the source holds without reading all of it, and fails if a column of the request is not there. Null if
  // it cannot; then it is opened instead.
  int32_t (*describe)(void *instance,
                      const struct CompflowLoadRequest *request,
                      const struct CompflowHost *host,
                      struct CompflowDescription *out);
} CompflowLoaderMethods;

// Methods of COMPFLOW_KIND_COMPOSER. All matrices are row-major, `rows` (which may be 0) by `dim`, and do not overlap.
typedef struct CompflowComposerMethods {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Writes the only dimension it works for; 0 if it works for all.
  int32_t (*dim)(void *instance, const struct CompflowHost *host, uint64_t *dim);
  // `out[i] = g(left[i], right[i])`; every number of `out` is written.
  int32_t (*compose)(void *instance,
                     uint64_t rows,
                     uint64_t dim,
                     const float *left,
                     const float *right,
                     float *out,
                     const struct CompflowHost *host);
  // Vector-Jacobian product: overwrites `grad_left[i]` and `grad_right[i]` with `grad[i]` pulled back through
  // g at `(left[i], right[i])`. Null without COMPFLOW_HAS_GRADIENTS.
  int32_t (*vjp)(void *instance,
                 uint64_t rows,
                 uint64_t dim,
                 const float *left,
                 const float *right,
                 const float *grad,
                 float *grad_left,
                 float *grad_right,
                 const struct CompflowHost *host);
  // `out[i]` is the composition of the set `sets[i]` of rows of `vectors`, none of them empty: for a composer that is
  // more than its pairs, such as the mean. Null without COMPFLOW_COMPOSES_SETS.
  int32_t (*compose_sets)(void *instance,
                          uint64_t rows,
                          uint64_t dim,
                          const float *vectors,
                          const struct CompflowSets *sets,
                          float *out,
                          const struct CompflowHost *host);
  // Overwrites `grad_vectors` (`rows` by `dim`) with `grad` (a row per set) pulled back through `compose_sets`. Not null
  // if that is not and there is `vjp`.
  int32_t (*compose_sets_vjp)(void *instance,
                              uint64_t rows,
                              uint64_t dim,
                              const float *vectors,
                              const struct CompflowSets *sets,
                              const float *grad,
                              float *grad_vectors,
                              const struct CompflowHost *host);
} CompflowComposerMethods;

// What some examples add up to. Two of these, of earlier and of later examples, are put together by adding up `sums`,
// taking the greater of `largest`, number by number, and putting the later `rows` behind the earlier.
typedef struct CompflowPartial {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Borrowed.
  const double *sums;
  // How many.
  uint64_t sums_len;
  // Borrowed.
  const double *largest;
  // How many.
  uint64_t largest_len;
  // Borrowed.
  const float *rows;
  // How many numbers.
  uint64_t rows_len;
} CompflowPartial;

// An Arrow struct array with its schema.
typedef struct CompflowTable {
  // The columns.
  ArrowArray array;
  // Their types.
  ArrowSchema schema;
} CompflowTable;

// Takes some rows, row-major, borrowed for the call; anything but COMPFLOW_STATUS_OK ends the pass. Called on the thread
// of the call it was handed to, before that returns.
typedef int32_t (*CompflowBatchFn)(void *sink_ctx, uint64_t rows, const float *values);

// Hands all examples to `each`, in order, finite, not normalised, in batches of COMPFLOW_BATCH_ROWS. May be called again;
// while a pass is under way, another is refused. Returns what `each` returned if that ended the pass; if the
// examples cannot be read, `error` takes the reason.
typedef int32_t (*CompflowPassFn)(void *ctx,
                                  CompflowBatchFn each,
                                  void *each_ctx,
                                  CompflowErrorFn error,
                                  void *error_ctx);

// Takes what some examples add up to, borrowed for the call. Called on the thread of the call it was handed to, before
// that returns.
typedef void (*CompflowPartialFn)(void *sink_ctx, const struct CompflowPartial *partial);

// Hands to `sink` what all examples add up to: has `partial` of an instance with the same parameters called with `state`,
// somewhere, for every batch of COMPFLOW_BATCH_ROWS examples, and puts the results together in an order that depends on nothing
// but their number. May be called again. If that fails, `error` takes the reason.
typedef int32_t (*CompflowReduceFn)(void *ctx,
                                    const uint8_t *state,
                                    uint64_t state_len,
                                    CompflowPartialFn sink,
                                    void *sink_ctx,
                                    CompflowErrorFn error,
                                    void *error_ctx);

// What a clusterer is given.
typedef struct CompflowTask {
  // Size of this structure.
  uint32_t size;
  // Largest composition considered; at least 1.
  uint32_t degree;
  // Number of examples; at least 1.
  uint64_t rows;
  // Length of an embedding; at least 1.
  uint64_t dim;
  // `rows` by `dim`, row-major, finite, not normalised; never written to. Null for an instance that `streams`.
  const float *embeddings;
  // One of the `COMPFLOW_NORMALIZE_*`.
  uint32_t normalize;
  // One of the `COMPFLOW_DISTANCE_*`.
  uint32_t distance;
  // Null if the pipeline has none.
  const struct CompflowInstance *composer;
  // The true sets, one per example; null without COMPFLOW_NEEDS_TRUTH.
  const struct CompflowSets *truth;
  // How gladly each example becomes an exemplar, `rows` numbers; null if the data does not say.
  const float *preferences;
  // How much each example counts, `rows` numbers of at least 0; null if all count the same.
  const float *weights;
  // The further columns that the instance asked for, under the names that it asked for, a row per example: Arrow's `l`
  // (64-bit integers), `g` (64-bit floats, NaN where the source has none) or `U` (texts with 64-bit offsets), without
  // nulls. Borrowed, not to be released. Null if it asked for none.
  const struct CompflowTable *columns;
  // Passed to `pass`.
  void *ctx;
  // Reads the examples, also those that are in memory.
  CompflowPassFn pass;
  // The sets that are known beforehand, one per example, empty where it is not known: of at most `degree` of the numbers
  // 0 to m-1, each of which occurs in one. An instance with COMPFLOW_USES_SEEDS returns known sets as they are, so that the
  // singletons 0 to m-1 are those that the numbers stand for; others have other numbers. Null if nothing is known.
  const struct CompflowSets *seeds;
  // Null unless the examples are elsewhere; then `embeddings` is null, `pass` refuses, and the result has no assignments:
  // clusters are listed in the order of their first examples, those of one singleton first. Only an instance with
  // COMPFLOW_HAS_PARTIAL is given such a task. Takes `ctx`.
  CompflowReduceFn reduce;
} CompflowTask;

// What a clusterer returns. The caller sets `size` and hands over tables that are released already; the callee assigns
// the fields that `size` covers, on success only. A table that stays released is one that there is not.
typedef struct CompflowClustering {
  // Size of this structure, set by the caller.
  uint32_t size;
  // Non-zero if the method stopped because nothing changed any more.
  uint32_t converged;
  // Iterations done.
  uint64_t iterations;
  // What the method minimised or maximised; NaN if it has no such number.
  double objective;
  // A row per example, in order: `clusters` `list<u32>`, the set of singleton clusters it belongs to, of at most
  // `degree` members and empty only with COMPFLOW_ASSIGNS_NONE; optional `memberships` `fixed_size_list<f32>`, one finite
  // number per singleton, those that no example is in included, and no more than there are examples; further
  // columns, kept under their names: `list<u32>` of ascending members (numbers of the method's own, which are kept
  // as they are while clusters are renumbered), `f64` (NaN counts as null), `i64`, `bool`, `utf8`. In all tables
  // lists may be Arrow's `+l` or `+L`, texts `u` or `U`.
  struct CompflowTable assignments;
  // A row per cluster, at least those that occur in `assignments` and are not empty: `clusters` `list<u32>`; optional
  // `exemplars` `list<u32>`, rows of `embeddings`, one per member in the same order and all different; optional
  // `centroid` `fixed_size_list<f32>`, a point of the pipeline's space (already normalised where it normalises).
  struct CompflowTable clusters;
  // A row per iteration: `objective` `f64`. May be left released.
  struct CompflowTable trace;
  // Named numbers about the result: `name` `utf8`, `value` `f64`. May be left released. No name occurs twice or has control
  // characters, here and in `resolved`.
  struct CompflowTable scalars;
  // Parameters that the method settled by itself, such as a threshold found: `name` `utf8`, the parameter's path, and
  // `value` `utf8`, JSON. May be left released.
  struct CompflowTable resolved;
  // What unions are composed from, before normalisation: `singleton` `u32` and `vector` `fixed_size_list<f32>`. May be
  // left released if there are exemplars, or if the method composes nothing.
  struct CompflowTable singletons;
  // The log-density of every set that an example may be given to, at a point x of the space
  // `offset` - ½‖F(x - `centre`)‖²: `clusters` `list<u32>`, where the empty set is "none of them",
  // `centre` `fixed_size_list<f32>`, `offset` `f64`, and `factor` `u32`, the row of `factors` that F is in. May be left
  // released: new examples are then given to the nearest cluster.
  struct CompflowTable densities;
  // The lower triangular matrices F of `densities`: `factor` `fixed_size_list<f32>`, row by row without what is above the
  // diagonal. Released if that is.
  struct CompflowTable factors;
} CompflowClustering;

// How large a task is.
typedef struct CompflowShape {
  // Size of this structure.
  uint32_t size;
  // Largest composition considered; at least 1.
  uint32_t degree;
  // Number of examples.
  uint64_t rows;
  // Length of an embedding.
  uint64_t dim;
} CompflowShape;

// A batch of examples, and what is known of them.
typedef struct CompflowBatch {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // The number of the first of them among all.
  uint64_t first;
  // How many; at least 1.
  uint64_t rows;
  // Length of an embedding; at least 1.
  uint64_t dim;
  // `rows` by `dim`, row-major, finite, not normalised.
  const float *values;
  // How much each counts, `rows` numbers of at least 0: those of CompflowTask.weights. Null if that is.
  const float *weights;
  // The sets that are known beforehand: those of CompflowTask.seeds. Null if that is.
  const struct CompflowSets *seeds;
} CompflowBatch;

// Methods of COMPFLOW_KIND_CLUSTERER.
typedef struct CompflowClustererMethods {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Writes how many bytes `cluster` would allocate for a task of this shape with the threads of `host`, 0 if it cannot
  // tell. The host refuses the work if that is more than the budget. May be null.
  int32_t (*memory)(void *instance,
                    const struct CompflowShape *shape,
                    const struct CompflowHost *host,
                    uint64_t *bytes);
  // Clusters.
  int32_t (*cluster)(void *instance,
                     const struct CompflowTask *task,
                     const struct CompflowHost *host,
                     struct CompflowClustering *out);
  // Writes 1 if this instance reads the examples pass by pass and does without the matrix, else 0. May be null.
  int32_t (*streams)(void *instance, const struct CompflowHost *host, uint32_t *streams);
  // Hands to `sink` what a batch of examples adds up to for a state that `cluster` gave to CompflowTask.reduce, perhaps in
  // another process: `rows` by `dim` of them, row-major, finite, not normalised, of which the first has the number
  // `first` among all. May be null without COMPFLOW_HAS_PARTIAL.
  int32_t (*partial)(void *instance,
                     const uint8_t *state,
                     uint64_t state_len,
                     uint64_t first,
                     uint64_t rows,
                     uint64_t dim,
                     const float *values,
                     const struct CompflowHost *host,
                     CompflowPartialFn sink,
                     void *sink_ctx);
  // The same of a batch with all that is known of it, in the place of `partial` where it is not null. Without it, examples
  // that are elsewhere have neither weights nor seeds.
  int32_t (*partial_of)(void *instance,
                        const uint8_t *state,
                        uint64_t state_len,
                        const struct CompflowBatch *batch,
                        const struct CompflowHost *host,
                        CompflowPartialFn sink,
                        void *sink_ctx);
} CompflowClustererMethods;

// A number that an evaluator reports.
typedef struct CompflowMetric {
  // Size of this structure.
  uint32_t size;
  // One of the `COMPFLOW_UNIT_*`; one that is not known counts as COMPFLOW_UNIT_NUMBER.
  uint32_t unit;
  // The name in tables and in `[tune] metric`.
  struct CompflowStr name;
  // The smallest value there can be; may be -∞.
  double least;
  // The largest value there can be; may be ∞.
  double most;
  // 1 if larger is better, 0 if smaller is.
  uint32_t larger_is_better;
  // Zero.
  uint32_t reserved;
} CompflowMetric;

// What an evaluator is given.
typedef struct CompflowEvaluation {
  // Size of this structure.
  uint32_t size;
  // Largest composition considered; at least 1.
  uint32_t degree;
  // Number of examples; may be 0.
  uint64_t rows;
  // Length of an embedding; 0 if there are none.
  uint64_t dim;
  // The set of every example.
  const struct CompflowSets *predicted;
  // The true set of every example; null if the data does not say, never with COMPFLOW_NEEDS_TRUTH.
  const struct CompflowSets *truth;
  // `rows` by `dim`, as in CompflowTask.embeddings. Null if they are not in memory or there are none.
  const float *embeddings;
  // One of the `COMPFLOW_NORMALIZE_*`.
  uint32_t normalize;
  // One of the `COMPFLOW_DISTANCE_*`.
  uint32_t distance;
  // The clusters, each the set of its members; null if nothing but the sets is known.
  const struct CompflowSets *clusters;
  // A point of the space for every cluster, row-major; null if the method has none, or there are no embeddings.
  const float *centroids;
  // The further columns that the instance asked for, as in CompflowTask.columns.
  const struct CompflowTable *columns;
  // Passed to `pass`.
  void *ctx;
  // Reads the embeddings, also those that are in memory; null if there are none, never with COMPFLOW_NEEDS_EMBEDDINGS.
  CompflowPassFn pass;
} CompflowEvaluation;

// Takes a metric, borrowed for the call. Called on the thread of the call it was handed to, before that returns.
typedef void (*CompflowMetricFn)(void *sink_ctx, const struct CompflowMetric *metric);

// Takes the value of a metric. Called on the thread of the call it was handed to, before that returns.
typedef void (*CompflowScoreFn)(void *sink_ctx, struct CompflowStr name, double value);

// Methods of COMPFLOW_KIND_EVALUATOR.
typedef struct CompflowEvaluatorMethods {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Hands every metric that `evaluate` reports to `sink`, the main one first.
  int32_t (*metrics)(void *instance,
                     const struct CompflowHost *host,
                     CompflowMetricFn sink,
                     void *sink_ctx);
  // Scores; hands one value per metric to `sink`. Members of sets are names without meaning.
  int32_t (*evaluate)(void *instance,
                      const struct CompflowEvaluation *evaluation,
                      const struct CompflowHost *host,
                      CompflowScoreFn sink,
                      void *sink_ctx);
} CompflowEvaluatorMethods;

// What a library exports as the function COMPFLOW_ENTRY_SYMBOL. The result lives as long as the process; null means
// that the library could not describe itself, and `sink` has taken the reason.
typedef const struct CompflowLibrary *(*CompflowEntryFn)(CompflowErrorFn sink, void *sink_ctx);

/* What a library defines: the datum, read before any function is called,
 *
 *     COMPFLOW_EXPORT const CompflowAbi COMPFLOW_ABI = {
 *         COMPFLOW_MAGIC, COMPFLOW_ABI_VERSION, sizeof(CompflowLibrary)};
 *
 * and the function that describes the components. */
#ifdef __cplusplus
extern "C" {
#endif
COMPFLOW_EXPORT extern const CompflowAbi COMPFLOW_ABI;
COMPFLOW_EXPORT const CompflowLibrary *compflow_library(CompflowErrorFn sink, void *sink_ctx);
#ifdef __cplusplus
}
#endif

#endif /* COMPFLOW_H */
