/* Made from crates/api/src/abi.rs: change that, not this. SPDX: MIT OR Apache-2.0 */
#ifndef COMPFLOW_H
#define COMPFLOW_H

#include <stdint.h>

/* Rules that hold for everything in this file
 *
 * Ownership. Nobody frees what it did not allocate. A pointer in an argument is borrowed for the duration of the call;
 *   Arrow structures carry their producer's `release`; instances end by their component's `destroy`.
 * Threads. Every function may be called from any thread, and the functions of one instance from several threads at once.
 * Errors. A function that fails hands a text to CompflowHost.error and returns COMPFLOW_STATUS_ERROR. No exception and
 *   no longjmp leaves a function.
 * Growth. Structures that begin with `size` grow at the end only. `size` is what the maker of the value was compiled
 *   with; a reader looks at a later field only if `size` covers it. Reserved fields are zero.
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
#define COMPFLOW_MIN_COMPONENT_SIZE 104

// The call did what it was asked.
#define COMPFLOW_STATUS_OK 0

// The call failed and said why through CompflowHost.error.
#define COMPFLOW_STATUS_ERROR 1

// The call stopped because CompflowHost.cancel was raised.
#define COMPFLOW_STATUS_CANCELLED 2

// CompflowComponent.kind: yields tables of embeddings; its methods are CompflowLoaderMethods.
#define COMPFLOW_KIND_LOADER 1

// CompflowComponent.kind: composes embeddings; its methods are CompflowComposerMethods.
#define COMPFLOW_KIND_COMPOSER 2

// CompflowComponent.kind: clusters; its methods are CompflowClustererMethods.
#define COMPFLOW_KIND_CLUSTERER 3

// CompflowComponent.kind: scores; its methods are CompflowEvaluatorMethods.
#define COMPFLOW_KIND_EVALUATOR 4

// CompflowComponent.flags: a clusterer that cannot work without a composer if the degree is above 1.
#define COMPFLOW_NEEDS_COMPOSER 1

// CompflowComponent.flags: a clusterer that is given the true sets.
#define COMPFLOW_NEEDS_TRUTH (1 << 1)

// CompflowComponent.flags: a clusterer whose composer must have `vjp`.
#define COMPFLOW_NEEDS_GRADIENTS (1 << 2)

// CompflowComponent.flags: a loader that reads the file named by `path`.
#define COMPFLOW_NEEDS_PATH (1 << 3)

// CompflowComponent.flags: a composer that has `vjp`.
#define COMPFLOW_HAS_GRADIENTS (1 << 4)

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

// How many rows every batch of a pass has, except the last.
#define COMPFLOW_BATCH_ROWS (1 << 16)

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

// A sequence of sets of numbers, borrowed. Set `i` is `values[offsets[i]..offsets[i + 1]]`, strictly ascending.
typedef struct CompflowSets {
  // How many sets.
  uint64_t len;
  // `len + 1` ascending numbers, the first 0.
  const uint32_t *offsets;
  // The members, set after set.
  const uint32_t *values;
} CompflowSets;

// Takes a text, borrowed for the call. Called on the thread of the call it was handed to, before that returns.
typedef void (*CompflowTextFn)(void *sink_ctx, struct CompflowStr text);

// An instance together with its component.
typedef struct CompflowInstance {
  // Passed to every method; only the component knows what it is.
  void *instance;
  // Valid for the life of the process.
  const struct CompflowComponent *component;
} CompflowInstance;

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
  // Passed to every function below.
  void *ctx;
  // Takes the text of an error; the callee returns COMPFLOW_STATUS_ERROR afterwards. A text about a parameter
  // begins with its name in backticks; several lines are several problems.
  void (*error)(void *ctx, struct CompflowStr text);
  // Takes a line for the user, with one of the `COMPFLOW_LOG_*`.
  void (*log)(void *ctx, uint32_t level, struct CompflowStr text);
  // Takes how much of the call's work is done; `total` is 0 if unknown.
  void (*progress)(void *ctx, uint64_t done, uint64_t total);
  // Resolves a path as the user wrote it, relative to the pipeline file, and notes that the result depends on
  // the file's content. `sink` takes the absolute path, or the reason if there is no such file.
  int32_t (*input)(void *ctx, struct CompflowStr path, CompflowTextFn sink, void *sink_ctx);
  // Creates another component from its kind, name and parameters (a JSON object). On success the callee owns
  // `*instance`; on failure `sink` takes the reason.
  int32_t (*create)(void *ctx,
                    uint32_t kind,
                    struct CompflowStr name,
                    struct CompflowStr params,
                    struct CompflowInstance *instance,
                    CompflowTextFn sink,
                    void *sink_ctx);
} CompflowHost;

// One component: what it is and how it is made.
typedef struct CompflowComponent {
  // Size of this structure.
  uint32_t size;
  // One of the `COMPFLOW_KIND_*`.
  uint32_t kind;
  // Any of the `COMPFLOW_NEEDS_*` and `COMPFLOW_HAS_*`.
  uint32_t flags;
  // Zero.
  uint32_t reserved;
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
  // How many components.
  uint64_t component_count;
} CompflowLibrary;

// What a loader is asked for.
typedef struct CompflowLoadRequest {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Absolute path of the file; null for a loader without `COMPFLOW_NEEDS_PATH`.
  struct CompflowStr path;
  // The source's name of the embedding column; null if it is not wanted. Likewise the others.
  struct CompflowStr embedding;
  // The source's name of the column of true sets.
  struct CompflowStr truth;
  // The source's name of the column of trial numbers.
  struct CompflowStr trial;
  // The source's name of the column of identifiers.
  struct CompflowStr id;
  // The source's name of the column of preferences. Appended later: look at `size` first.
  struct CompflowStr preference;
} CompflowLoadRequest;

// Methods of COMPFLOW_KIND_LOADER.
typedef struct CompflowLoaderMethods {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Writes a stream, which may outlive the call and the instance and must not use `host`, of the wanted columns, and no others, under the names `embedding`, `truth`, `trial`,
  // `id` and `preference`. `embedding` is a (fixed-size) list of 16-, 32- or 64-bit floats; `truth` a list of integers or
  // strings, or one of those itself; `trial` integers; `id` integers or strings;
  // `preference` numbers.
  int32_t (*load)(void *instance,
                  const struct CompflowLoadRequest *request,
                  const struct CompflowHost *host,
                  ArrowArrayStream *out);
} CompflowLoaderMethods;

// Methods of COMPFLOW_KIND_COMPOSER. All matrices are row-major, `rows` by `dim`, and do not overlap.
typedef struct CompflowComposerMethods {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // The only dimension it works for; 0 if it works for all.
  uint64_t (*dim)(void *instance);
  // `out[i] = g(left[i], right[i])`.
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
} CompflowComposerMethods;

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
  // `rows` by `dim`, row-major, finite, not normalised.
  const float *embeddings;
  // One of the `COMPFLOW_NORMALIZE_*`.
  uint32_t normalize;
  // One of the `COMPFLOW_DISTANCE_*`.
  uint32_t distance;
  // Null if the pipeline has none.
  const struct CompflowInstance *composer;
  // The true sets, one per example; null without COMPFLOW_NEEDS_TRUTH.
  const struct CompflowSets *truth;
  // How gladly each example becomes an exemplar, `rows` numbers; null if the data does not say. Appended later: look at
  // `size` first.
  const float *preferences;
} CompflowTask;

// Takes some rows, row-major, borrowed for the call; anything but COMPFLOW_STATUS_OK ends the pass. Called on the thread
// of the call it was handed to, before that returns.
typedef int32_t (*CompflowBatchFn)(void *sink_ctx, uint64_t rows, const float *values);

// Hands all examples to `each`, in order, finite, not normalised, in batches of COMPFLOW_BATCH_ROWS. May be called again,
// from one thread at a time. Returns what `each` returned if that ended the pass; if the examples cannot be read, `sink`
// takes the reason.
typedef int32_t (*CompflowPassFn)(void *ctx,
                                  CompflowBatchFn each,
                                  void *each_ctx,
                                  CompflowTextFn sink,
                                  void *sink_ctx);

// What a clusterer is given that reads the examples batch by batch.
typedef struct CompflowStreamTask {
  // Size of this structure.
  uint32_t size;
  // Largest composition considered; at least 1.
  uint32_t degree;
  // Number of examples; at least 1.
  uint64_t rows;
  // Length of an embedding; at least 1.
  uint64_t dim;
  // One of the `COMPFLOW_NORMALIZE_*`.
  uint32_t normalize;
  // One of the `COMPFLOW_DISTANCE_*`.
  uint32_t distance;
  // Null if the pipeline has none.
  const struct CompflowInstance *composer;
  // Passed to `pass`.
  void *ctx;
  // Reads the examples.
  CompflowPassFn pass;
} CompflowStreamTask;

// An Arrow struct array with its schema.
typedef struct CompflowTable {
  // The columns.
  ArrowArray array;
  // Their types.
  ArrowSchema schema;
} CompflowTable;

// What a clusterer returns.
typedef struct CompflowClustering {
  // Size of this structure, set by the caller.
  uint32_t size;
  // Non-zero if the method stopped because nothing changed any more.
  uint32_t converged;
  // Iterations done.
  uint64_t iterations;
  // What the method minimised or maximised; NaN if it has no such number.
  double objective;
  // A row per example, in order: `clusters` `list<u32>`, the set of singleton clusters it belongs to, not
  // empty; optional `memberships` `fixed_size_list<f32>`, one per singleton; any further columns are
  // sets as well, kept under their names.
  struct CompflowTable assignments;
  // A row per cluster, at least those that occur in `assignments`: `clusters` `list<u32>`; optional `exemplars`
  // `list<u32>`, rows of `embeddings`, one per member in the same order (a composition is folded in
  // ascending order of these rows); optional `centroid`
  // `fixed_size_list<f32>`, a point of the pipeline's space (already normalised where it normalises).
  struct CompflowTable clusters;
  // A row per iteration: `objective` f64. May have no rows.
  struct CompflowTable trace;
} CompflowClustering;

// Methods of COMPFLOW_KIND_CLUSTERER.
typedef struct CompflowClustererMethods {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // How many bytes `cluster` would allocate; 0 if it cannot tell.
  uint64_t (*memory)(void *instance, uint64_t rows, uint64_t dim, uint32_t degree);
  // Clusters. `out` comes with empty tables and is written only on success.
  int32_t (*cluster)(void *instance,
                     const struct CompflowTask *task,
                     const struct CompflowHost *host,
                     struct CompflowClustering *out);
  // Non-zero if this instance wants the examples batch by batch. Appended later: look at `size` first; null means no.
  uint32_t (*streams)(void *instance);
  // Like `cluster`, for an instance that `streams`.
  int32_t (*cluster_stream)(void *instance,
                            const struct CompflowStreamTask *task,
                            const struct CompflowHost *host,
                            struct CompflowClustering *out);
} CompflowClustererMethods;

// Takes a named number. Called on the thread of the call it was handed to, before that returns.
typedef void (*CompflowScoreFn)(void *sink_ctx, struct CompflowStr name, double value);

// Methods of COMPFLOW_KIND_EVALUATOR.
typedef struct CompflowEvaluatorMethods {
  // Size of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Hands every metric that `evaluate` reports to `sink`, with 1 if larger is better and -1 if smaller is.
  int32_t (*metrics)(void *instance,
                     const struct CompflowHost *host,
                     CompflowScoreFn sink,
                     void *sink_ctx);
  // Scores `predicted` against `truth` (equally many sets, none empty); hands every score to `sink`.
  int32_t (*evaluate)(void *instance,
                      const struct CompflowSets *truth,
                      const struct CompflowSets *predicted,
                      const struct CompflowHost *host,
                      CompflowScoreFn sink,
                      void *sink_ctx);
} CompflowEvaluatorMethods;

// What a library exports as the function COMPFLOW_ENTRY_SYMBOL. The result lives as long as the process; null means
// that the library could not describe itself, and `sink` has taken the reason.
typedef const struct CompflowLibrary *(*CompflowEntryFn)(CompflowTextFn sink, void *sink_ctx);

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
COMPFLOW_EXPORT const CompflowLibrary *compflow_library(CompflowTextFn sink, void *sink_ctx);
#ifdef __cplusplus
}
#endif

#endif /* COMPFLOW_H */
