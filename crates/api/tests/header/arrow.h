
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
