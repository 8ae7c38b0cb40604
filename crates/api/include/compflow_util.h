/* What most plugins in C need beside compflow.h: errors, cancellation, parameters, Arrow tables.
 *
 * Everything here is `static`, so a plugin that includes it depends on nothing but the C library. All of it is a
 * convenience: the contract is compflow.h alone. SPDX: MIT OR Apache-2.0 */
#ifndef COMPFLOW_UTIL_H
#define COMPFLOW_UTIL_H

#include "compflow.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define COMPFLOW_HELPER __attribute__((unused)) static
#else
#define COMPFLOW_HELPER static
#endif

/* A CompflowStr of a string literal; may stand in the initialiser of a static. */
#define COMPFLOW_TEXT(literal) {(const uint8_t *)(literal), sizeof(literal) - 1}

/* ---- errors and cancellation ---- */

/* Reports an error in the manner of printf; returns what the function should return. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 2, 3)))
#endif
COMPFLOW_HELPER int32_t compflow_fail(const CompflowHost *host, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) length = 0;
  if ((size_t)length >= sizeof text) length = (int)sizeof text - 1;
  CompflowStr error = {(const uint8_t *)text, (uint64_t)length};
  host->error(host->ctx, error);
  return COMPFLOW_STATUS_ERROR;
}

COMPFLOW_HELPER int32_t compflow_no_memory(const CompflowHost *host) { return compflow_fail(host, "out of memory"); }

/* Whether the work is no longer wanted: then free everything and return COMPFLOW_STATUS_CANCELLED. */
COMPFLOW_HELPER int compflow_cancelled(const CompflowHost *host) {
#if defined(__GNUC__) || defined(__clang__)
  return __atomic_load_n(host->cancel, __ATOMIC_RELAXED) != 0;
#else
  return *(const volatile uint32_t *)host->cancel != 0;
#endif
}

/* ---- parameters: a flat JSON object, member by member ---- */

typedef struct CompflowParam {
  char name[64];   /* cut if it is longer */
  char kind;       /* 'n' number, 's' string, 'b' true or false, '0' null, 'x' a list or a table */
  double number;   /* of 'n'; 1 or 0 of 'b' */
  int length;      /* of `value` */
  const char *value; /* as it is written, not terminated; without the quotes of a string */
} CompflowParam;

COMPFLOW_HELPER const char *compflow_skip_space(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r' || *at == ',' || *at == ':')) at++;
  return at;
}

/* Behind the string that begins at `at`. */
COMPFLOW_HELPER const char *compflow_skip_string(const char *at, const char *end) {
  for (at++; at < end && *at != '"'; at++)
    if (*at == '\\' && at + 1 < end) at++;
  return at < end ? at + 1 : end;
}

/* Reads the next parameter. `*at` starts at NULL and is advanced; 1 if there was one, 0 at the end. */
COMPFLOW_HELPER int compflow_next_param(CompflowStr params, const char **at, CompflowParam *out) {
  const char *end = (const char *)params.ptr + params.len;
  const char *here = *at ? *at : (const char *)params.ptr;
  here = compflow_skip_space(here, end);
  if (!*at && here < end && *here == '{') here = compflow_skip_space(here + 1, end);
  if (here >= end || *here != '"') return 0;
  const char *name_end = compflow_skip_string(here, end);
  size_t length = (size_t)(name_end - here) > 2 ? (size_t)(name_end - here) - 2 : 0;
  if (length >= sizeof out->name) length = sizeof out->name - 1;
  memcpy(out->name, here + 1, length);
  out->name[length] = 0;
  const char *value = compflow_skip_space(name_end, end);
  if (value >= end) return 0;
  out->number = 0;
  here = value;
  if (*value == '"') {
    here = compflow_skip_string(value, end);
    out->kind = 's';
    out->value = value + 1;
    out->length = (int)(here - value) - 2;
  } else {
    int depth = 0;
    while (here < end) {
      if (*here == '"') {
        here = compflow_skip_string(here, end);
        continue;
      }
      if (*here == '{' || *here == '[') depth++;
      if (depth == 0 && (*here == ',' || *here == '}' || *here == ']')) break;
      if (*here == '}' || *here == ']') depth--;
      here++;
    }
    char number[64];
    out->value = value;
    out->length = (int)(here - value);
    size_t digits = (size_t)out->length < sizeof number - 1 ? (size_t)out->length : sizeof number - 1;
    memcpy(number, value, digits);
    number[digits] = 0;
    out->kind = *value == 'n' ? '0' : *value == 't' || *value == 'f' ? 'b' : *value == '{' || *value == '[' ? 'x' : 'n';
    if (out->kind == 'n') out->number = strtod(number, NULL);
    if (out->kind == 'b') out->number = *value == 't';
  }
  *at = here;
  return 1;
}

/* Takes a parameter that must be a whole number of at least `least`; 0, or the status to return. */
COMPFLOW_HELPER int32_t compflow_whole(const CompflowHost *host, const CompflowParam *param, uint64_t least, uint64_t *out) {
  if (param->kind == 'n' && param->number >= (double)least && param->number <= 9007199254740992.0 &&
      param->number == (double)(uint64_t)param->number && !memchr(param->value, '.', (size_t)param->length)) {
    *out = (uint64_t)param->number;
    return COMPFLOW_STATUS_OK;
  }
  return compflow_fail(host, "`%s` must be a whole number at least %llu, found %.*s", param->name,
                       (unsigned long long)least, param->length, param->value);
}

/* Takes a parameter that must be a number in [least, most]; 0, or the status to return. */
COMPFLOW_HELPER int32_t compflow_number(const CompflowHost *host, const CompflowParam *param, double least, double most,
                                        double *out) {
  if (param->kind == 'n' && param->number >= least && param->number <= most) {
    *out = param->number;
    return COMPFLOW_STATUS_OK;
  }
  return compflow_fail(host, "`%s` must be a number at least %g and at most %g, found %.*s", param->name, least, most,
                       param->length, param->value);
}

COMPFLOW_HELPER int32_t compflow_unknown(const CompflowHost *host, const CompflowParam *param) {
  return compflow_fail(host, "`%s` is not a parameter", param->name);
}

/* ---- Arrow tables; every function copies, and returns 0 or, without memory, -1 ---- */

COMPFLOW_HELPER void compflow_release_array(struct ArrowArray *array) {
  for (int64_t at = 0; at < array->n_children; at++) {
    if (array->children[at]->release) array->children[at]->release(array->children[at]);
    free(array->children[at]);
  }
  for (int64_t at = 0; at < array->n_buffers; at++) free((void *)array->buffers[at]);
  free(array->children);
  free((void *)array->buffers);
  array->release = NULL;
}

COMPFLOW_HELPER void compflow_release_schema(struct ArrowSchema *schema) {
  for (int64_t at = 0; at < schema->n_children; at++) {
    if (schema->children[at]->release) schema->children[at]->release(schema->children[at]);
    free(schema->children[at]);
  }
  free(schema->children);
  free((void *)schema->format);
  free((void *)schema->name);
  schema->release = NULL;
}

COMPFLOW_HELPER void *compflow_copy(const void *bytes, size_t length) {
  void *copy = malloc(length ? length : 1);
  if (copy && length) memcpy(copy, bytes, length);
  return copy;
}

/* Lets go of a table that is not handed over after all. */
COMPFLOW_HELPER void compflow_table_release(CompflowTable *table) {
  if (table->array.release) table->array.release(&table->array);
  if (table->schema.release) table->schema.release(&table->schema);
}

/* Fills one array and its schema: `buffers` buffers, the first of them no validity, and room for `children`. */
COMPFLOW_HELPER int compflow_fill(CompflowTable *table, const char *name, const char *format, uint64_t length,
                                  int64_t buffers, int64_t children) {
  struct ArrowArray array = {0};
  struct ArrowSchema schema = {0};
  array.length = (int64_t)length;
  array.release = compflow_release_array;
  schema.release = compflow_release_schema;
  array.buffers = (const void **)calloc((size_t)buffers, sizeof(void *));
  array.n_buffers = array.buffers ? buffers : 0;
  array.children = (struct ArrowArray **)calloc((size_t)(children ? children : 1), sizeof(void *));
  schema.children = (struct ArrowSchema **)calloc((size_t)(children ? children : 1), sizeof(void *));
  schema.name = (const char *)compflow_copy(name, strlen(name) + 1);
  schema.format = (const char *)compflow_copy(format, strlen(format) + 1);
  table->array = array;
  table->schema = schema;
  if (array.buffers && array.children && schema.children && schema.name && schema.format) return 0;
  compflow_table_release(table);
  return -1;
}

/* Gives `child` to `parent`, whose children have room for it. */
COMPFLOW_HELPER int compflow_adopt(CompflowTable *parent, CompflowTable *child) {
  struct ArrowArray *array = (struct ArrowArray *)malloc(sizeof *array);
  struct ArrowSchema *schema = (struct ArrowSchema *)malloc(sizeof *schema);
  if (!array || !schema) {
    free(array);
    free(schema);
    compflow_table_release(child);
    return -1;
  }
  *array = child->array;
  *schema = child->schema;
  parent->array.children[parent->array.n_children++] = array;
  parent->schema.children[parent->schema.n_children++] = schema;
  return 0;
}

/* A table of `rows` rows with room for `columns` columns, released by compflow_table_release or by who gets it. */
COMPFLOW_HELPER int compflow_table_begin(CompflowTable *table, uint64_t rows, uint32_t columns) {
  return compflow_fill(table, "", "+s", rows, 1, columns);
}

/* One column of plain values; `format` is Arrow's, e.g. "g" for double, "l" for int64_t. */
COMPFLOW_HELPER int compflow_column(CompflowTable *table, const char *name, const char *format, uint64_t length,
                                    const void *values, size_t width) {
  CompflowTable column;
  if (compflow_fill(&column, name, format, length, 2, 0)) return -1;
  if (!(column.array.buffers[1] = compflow_copy(values, (size_t)length * width))) {
    compflow_table_release(&column);
    return -1;
  }
  return compflow_adopt(table, &column);
}

COMPFLOW_HELPER int compflow_table_doubles(CompflowTable *table, const char *name, const double *values) {
  return compflow_column(table, name, "g", (uint64_t)table->array.length, values, sizeof *values);
}

COMPFLOW_HELPER int compflow_table_integers(CompflowTable *table, const char *name, const int64_t *values) {
  return compflow_column(table, name, "l", (uint64_t)table->array.length, values, sizeof *values);
}

/* A set per row: row i has values[offsets[i] .. offsets[i + 1]], ascending. */
COMPFLOW_HELPER int compflow_table_sets(CompflowTable *table, const char *name, const uint32_t *offsets,
                                        const uint32_t *values) {
  size_t rows = (size_t)table->array.length;
  CompflowTable column;
  if (compflow_fill(&column, name, "+l", rows, 2, 1)) return -1;
  /* Arrow counts with int32_t; the numbers are the same. */
  if (!(column.array.buffers[1] = compflow_copy(offsets, (rows + 1) * sizeof *offsets)) ||
      compflow_column(&column, "item", "I", offsets[rows], values, sizeof *values)) {
    compflow_table_release(&column);
    return -1;
  }
  return compflow_adopt(table, &column);
}

/* A vector of `dim` numbers per row. */
COMPFLOW_HELPER int compflow_table_vectors(CompflowTable *table, const char *name, uint64_t dim, const float *values) {
  size_t rows = (size_t)table->array.length;
  CompflowTable column;
  char format[32];
  snprintf(format, sizeof format, "+w:%llu", (unsigned long long)dim);
  if (compflow_fill(&column, name, format, rows, 1, 1)) return -1;
  if (compflow_column(&column, "item", "f", rows * dim, values, sizeof *values)) {
    compflow_table_release(&column);
    return -1;
  }
  return compflow_adopt(table, &column);
}

/* ---- a stream of one table, for loaders ---- */

COMPFLOW_HELPER int compflow_copy_schema(const struct ArrowSchema *from, struct ArrowSchema *to) {
  CompflowTable copy;
  if (compflow_fill(&copy, from->name, from->format, 0, 1, from->n_children)) return -1;
  copy.array.release(&copy.array);
  for (int64_t at = 0; at < from->n_children; at++) {
    struct ArrowSchema *child = (struct ArrowSchema *)malloc(sizeof *child);
    if (!child || compflow_copy_schema(from->children[at], child)) {
      free(child);
      copy.schema.release(&copy.schema);
      return -1;
    }
    copy.schema.children[copy.schema.n_children++] = child;
  }
  *to = copy.schema;
  return 0;
}

COMPFLOW_HELPER int compflow_stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
  return compflow_copy_schema(&((CompflowTable *)stream->private_data)->schema, out) ? 12 /* ENOMEM */ : 0;
}

COMPFLOW_HELPER int compflow_stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  CompflowTable *table = (CompflowTable *)stream->private_data;
  *out = table->array; /* once; afterwards a released array says that there is no more */
  table->array.release = NULL;
  return 0;
}

COMPFLOW_HELPER const char *compflow_stream_error(struct ArrowArrayStream *stream) {
  (void)stream;
  return NULL;
}

COMPFLOW_HELPER void compflow_stream_release(struct ArrowArrayStream *stream) {
  compflow_table_release((CompflowTable *)stream->private_data);
  free(stream->private_data);
  stream->release = NULL;
}

/* Makes a stream of one table, which it takes over even if there is no memory. */
COMPFLOW_HELPER int compflow_stream(struct ArrowArrayStream *out, CompflowTable *table) {
  CompflowTable *kept = (CompflowTable *)malloc(sizeof *kept);
  if (!kept) {
    compflow_table_release(table);
    return -1;
  }
  *kept = *table;
  out->get_schema = compflow_stream_schema;
  out->get_next = compflow_stream_next;
  out->get_last_error = compflow_stream_error;
  out->release = compflow_stream_release;
  out->private_data = kept;
  return 0;
}

#endif
