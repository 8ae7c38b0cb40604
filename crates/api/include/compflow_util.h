/* What most plugins in C need beside compflow.h: errors, cancellation, parameters, passes, Arrow tables, results.
 *
 * Everything here is `static`, so a plugin that includes it depends on nothing but the C library. All of it is a
 * convenience: the contract is compflow.h alone. SPDX: MIT OR Apache-2.0 */
#ifndef COMPFLOW_UTIL_H
#define COMPFLOW_UTIL_H

#include "compflow.h"

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define COMPFLOW_HELPER __attribute__((unused)) static
#define COMPFLOW_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define COMPFLOW_HELPER static
#define COMPFLOW_PRINTF(text, first)
#endif

/* A CompflowStr of a string literal; may stand in the initialiser of a static. */
#define COMPFLOW_TEXT(literal) {(const uint8_t *)(literal), sizeof(literal) - 1}

/* Whether a structure that the other side made has a field: it may be older than this header, and shorter. */
#define COMPFLOW_HAS(pointer, type, field) ((pointer)->size >= offsetof(type, field) + sizeof(((type *)0)->field))

/* Assigns a field of a result that the caller made, if it has the field. */
#define COMPFLOW_GIVE(out, type, field, value)                  \
  do {                                                          \
    if (COMPFLOW_HAS(out, type, field)) (out)->field = (value); \
  } while (0)

/* ---- texts ---- */

COMPFLOW_HELPER CompflowStr compflow_str(const char *text) {
  CompflowStr str = {(const uint8_t *)text, text ? strlen(text) : 0};
  return str;
}

COMPFLOW_HELPER int compflow_is(CompflowStr text, const char *word) {
  return text.len == strlen(word) && memcmp(text.ptr, word, (size_t)text.len) == 0;
}

/* The length of the longest beginning of UTF-8 text that does not end inside of a character. */
COMPFLOW_HELPER size_t compflow_uncut(const char *text, size_t length) {
  size_t behind = 0; /* bytes behind the first of the last character */
  while (behind < length && behind < 3 && ((unsigned char)text[length - 1 - behind] & 0xC0) == 0x80) behind++;
  if (behind == length) return length;
  unsigned char first = (unsigned char)text[length - 1 - behind];
  size_t needed = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
  return needed > behind + 1 ? length - 1 - behind : length;
}

/* What to give to printf's `%.*s` so that at most `most` bytes of a text appear. */
COMPFLOW_HELPER int compflow_shown(const char *text, uint64_t length, int most) {
  return length > (uint64_t)most ? (int)compflow_uncut(text, (size_t)most) : (int)length;
}

/* ---- arithmetic that stops at the largest number: as many bytes are over every budget, and cannot be allocated ---- */

COMPFLOW_HELPER uint64_t compflow_add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

COMPFLOW_HELPER uint64_t compflow_times(uint64_t a, uint64_t b) { return b && a > UINT64_MAX / b ? UINT64_MAX : a * b; }

/* Memory for `count` values of `size` bytes, ended by `free`; NULL if there is not that much, or cannot be. */
COMPFLOW_HELPER void *compflow_alloc(uint64_t count, size_t size) {
  uint64_t bytes = compflow_times(count, size);
  if (bytes > PTRDIFF_MAX) return NULL;
  return malloc(bytes ? (size_t)bytes : 1);
}

/* ---- errors and cancellation ---- */

/* Reports a problem; returns what the function should return. `help` may be NULL. A text of more than 1023 bytes is cut. */
COMPFLOW_PRINTF(5, 0)
COMPFLOW_HELPER int32_t compflow_report(const CompflowHost *host, uint32_t code, CompflowStr parameter, const char *help,
                                        const char *format, va_list arguments) {
  char text[1024];
  int written = vsnprintf(text, sizeof text, format, arguments);
  size_t length = written < 0 ? 0 : (size_t)written;
  if (length >= sizeof text) length = compflow_uncut(text, sizeof text - 1);
  CompflowError error;
  memset(&error, 0, sizeof error);
  error.size = sizeof error;
  error.code = code;
  error.parameter = parameter;
  error.text.ptr = (const uint8_t *)text;
  error.text.len = length;
  error.help = compflow_str(help);
  host->error(host->ctx, &error);
  return COMPFLOW_STATUS_ERROR;
}

/* Reports in the manner of printf a problem that none of the others describes. */
COMPFLOW_PRINTF(2, 3)
COMPFLOW_HELPER int32_t compflow_fail(const CompflowHost *host, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int32_t status = compflow_report(host, COMPFLOW_ERROR_INTERNAL, compflow_str(NULL), NULL, format, arguments);
  va_end(arguments);
  return status;
}

/* A problem with a parameter, whose name stands before the text: (host, "k", "must be at least 1, found %d", k). */
COMPFLOW_PRINTF(3, 4)
COMPFLOW_HELPER int32_t compflow_fail_parameter(const CompflowHost *host, const char *parameter, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int32_t status = compflow_report(host, COMPFLOW_ERROR_PARAMETER, compflow_str(parameter), NULL, format, arguments);
  va_end(arguments);
  return status;
}

/* A problem with the data, whatever the parameters. */
COMPFLOW_PRINTF(2, 3)
COMPFLOW_HELPER int32_t compflow_fail_data(const CompflowHost *host, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int32_t status = compflow_report(host, COMPFLOW_ERROR_DATA, compflow_str(NULL), NULL, format, arguments);
  va_end(arguments);
  return status;
}

/* A column that was asked for and that the source lacks; `help` says which there are. */
COMPFLOW_PRINTF(4, 5)
COMPFLOW_HELPER int32_t compflow_fail_column(const CompflowHost *host, CompflowStr name, const char *help,
                                             const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int32_t status = compflow_report(host, COMPFLOW_ERROR_COLUMN, name, help, format, arguments);
  va_end(arguments);
  return status;
}

/* More memory would be needed than there is; `help` says what to do. */
COMPFLOW_PRINTF(3, 4)
COMPFLOW_HELPER int32_t compflow_fail_budget(const CompflowHost *host, const char *help, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int32_t status = compflow_report(host, COMPFLOW_ERROR_BUDGET, compflow_str(NULL), help, format, arguments);
  va_end(arguments);
  return status;
}

COMPFLOW_HELPER int32_t compflow_no_memory(const CompflowHost *host) { return compflow_fail(host, "out of memory"); }

/* Refuses work that would allocate more than the budget; 0, or the status to return. */
COMPFLOW_HELPER int32_t compflow_require_memory(const CompflowHost *host, uint64_t bytes, const char *help) {
  if (bytes <= host->memory) return COMPFLOW_STATUS_OK;
  return compflow_fail_budget(host, help, "needs %llu bytes of memory, over the budget of %llu", (unsigned long long)bytes,
                              (unsigned long long)host->memory);
}

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
  char name[64];     /* cut if it is longer */
  char kind;         /* 'n' number, 's' string, 'b' true or false, '0' null, 'x' a list or a table */
  double number;     /* of 'n'; 1 or 0 of 'b' */
  int length;        /* of `value` */
  const char *value; /* as it is written, not terminated; without the quotes of a string */
} CompflowParam;

COMPFLOW_HELPER const char *compflow_skip_space(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r' || *at == ',' || *at == ':')) at++;
  return at;
}

/* Behind the string that begins at `at`; `*length` is what is between its quotes. */
COMPFLOW_HELPER const char *compflow_skip_string(const char *at, const char *end, size_t *length) {
  const char *begin = ++at;
  for (; at < end && *at != '"'; at++)
    if (*at == '\\' && at + 1 < end) at++;
  *length = (size_t)(at - begin);
  return at < end ? at + 1 : end;
}

/* Reads the next parameter. `*at` starts at NULL and is advanced; 1 if there was one, 0 at the end. */
COMPFLOW_HELPER int compflow_next_param(CompflowStr params, const char **at, CompflowParam *out) {
  if (params.len == 0) return 0;
  const char *end = (const char *)params.ptr + params.len;
  const char *here = *at ? *at : (const char *)params.ptr;
  size_t length;
  here = compflow_skip_space(here, end);
  if (!*at && here < end && *here == '{') here = compflow_skip_space(here + 1, end);
  if (here >= end || *here != '"') return 0;
  const char *name = here + 1;
  here = compflow_skip_string(here, end, &length);
  if (length >= sizeof out->name) length = compflow_uncut(name, sizeof out->name - 1);
  memcpy(out->name, name, length);
  out->name[length] = 0;
  const char *value = compflow_skip_space(here, end);
  if (value >= end) return 0;
  out->number = 0;
  here = value;
  if (*value == '"') {
    here = compflow_skip_string(value, end, &length);
    out->kind = 's';
    out->value = value + 1;
  } else {
    int depth = 0;
    while (here < end) {
      if (*here == '"') {
        here = compflow_skip_string(here, end, &length);
        continue;
      }
      if (*here == '{' || *here == '[') depth++;
      if (depth == 0 && (*here == ',' || *here == '}' || *here == ']')) break;
      if (*here == '}' || *here == ']') depth--;
      here++;
    }
    char number[64];
    out->value = value;
    length = (size_t)(here - value);
    size_t digits = length < sizeof number - 1 ? length : sizeof number - 1;
    memcpy(number, value, digits);
    number[digits] = 0;
    out->kind = *value == 'n' ? '0' : *value == 't' || *value == 'f' ? 'b' : *value == '{' || *value == '[' ? 'x' : 'n';
    if (out->kind == 'n') out->number = strtod(number, NULL);
    if (out->kind == 'b') out->number = *value == 't';
  }
  out->length = length > INT_MAX ? INT_MAX : (int)length;
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
  return compflow_fail_parameter(host, param->name, "must be a whole number at least %llu, found %.*s",
                                 (unsigned long long)least, compflow_shown(param->value, (uint64_t)param->length, 80),
                                 param->value);
}

/* Takes a parameter that must be a number in [least, most]; 0, or the status to return. */
COMPFLOW_HELPER int32_t compflow_number(const CompflowHost *host, const CompflowParam *param, double least, double most,
                                        double *out) {
  if (param->kind == 'n' && param->number >= least && param->number <= most) {
    *out = param->number;
    return COMPFLOW_STATUS_OK;
  }
  return compflow_fail_parameter(host, param->name, "must be a number at least %g and at most %g, found %.*s", least, most,
                                 compflow_shown(param->value, (uint64_t)param->length, 80), param->value);
}

/* Takes a parameter that must be true or false; 0, or the status to return. */
COMPFLOW_HELPER int32_t compflow_boolean(const CompflowHost *host, const CompflowParam *param, int *out) {
  if (param->kind == 'b') {
    *out = param->number != 0;
    return COMPFLOW_STATUS_OK;
  }
  return compflow_fail_parameter(host, param->name, "must be true or false, found %.*s",
                                 compflow_shown(param->value, (uint64_t)param->length, 80), param->value);
}

COMPFLOW_HELPER int32_t compflow_unknown(const CompflowHost *host, const CompflowParam *param) {
  return compflow_fail_parameter(host, param->name, "is not a parameter");
}

/* ---- passes over the examples ---- */

/* Takes some examples, the first of them being row `first`; anything but COMPFLOW_STATUS_OK ends the pass. */
typedef int32_t (*CompflowEachFn)(void *ctx, uint64_t first, uint64_t rows, const float *values);

typedef struct CompflowEach {
  const CompflowHost *host;
  CompflowEachFn each;
  void *ctx;
  uint64_t first, rows;
} CompflowEach;

COMPFLOW_HELPER int32_t compflow_take_batch(void *ctx, uint64_t rows, const float *values) {
  CompflowEach *pass = (CompflowEach *)ctx;
  if (compflow_cancelled(pass->host)) return COMPFLOW_STATUS_CANCELLED;
  if (rows > pass->rows - pass->first)
    return compflow_fail(pass->host, "a pass handed over more than the %llu examples", (unsigned long long)pass->rows);
  uint64_t first = pass->first;
  pass->first += rows;
  return pass->each(pass->ctx, first, rows, values);
}

COMPFLOW_HELPER int32_t compflow_pass(const CompflowHost *host, CompflowPassFn pass, void *pass_ctx, uint64_t rows,
                                      CompflowEachFn each, void *ctx) {
  CompflowEach batches = {host, each, ctx, 0, rows};
  if (!pass) return compflow_fail_data(host, "needs embeddings, and there are none");
  int32_t status = pass(pass_ctx, compflow_take_batch, &batches, host->error, host->ctx);
  if (status || batches.first == rows) return status;
  return compflow_fail(host, "a pass over %llu examples handed over %llu", (unsigned long long)rows,
                       (unsigned long long)batches.first);
}

/* Hands all examples of a task to `each`, in order, batch by batch, whether they are in memory or not, and stops when the
 * work is no longer wanted. May be called again. 0, or the status to return: the reason has been reported. */
COMPFLOW_HELPER int32_t compflow_task_pass(const CompflowTask *task, const CompflowHost *host, CompflowEachFn each,
                                           void *ctx) {
  return compflow_pass(host, task->pass, task->ctx, task->rows, each, ctx);
}

/* Likewise for an evaluator. */
COMPFLOW_HELPER int32_t compflow_evaluation_pass(const CompflowEvaluation *evaluation, const CompflowHost *host,
                                                 CompflowEachFn each, void *ctx) {
  return compflow_pass(host, evaluation->pass, evaluation->ctx, evaluation->rows, each, ctx);
}

/* ---- Arrow tables; every function copies, and returns 0 or one of these, after which the table is to be released ---- */

#define COMPFLOW_TABLE_MEMORY -1 /* there is no memory */
#define COMPFLOW_TABLE_ROOM -2   /* more columns than compflow_table_begin made room for */
#define COMPFLOW_TABLE_VALUES -3 /* more values than can be counted, or offsets that descend */

/* Reports why a table could not be made; returns what the function should return. */
COMPFLOW_HELPER int32_t compflow_fail_table(const CompflowHost *host, int problem) {
  if (problem == COMPFLOW_TABLE_ROOM) return compflow_fail(host, "a table has more columns than it has room for");
  if (problem == COMPFLOW_TABLE_VALUES) return compflow_fail(host, "a table has more values than can be counted");
  return compflow_no_memory(host);
}

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
  void *copy = compflow_alloc(length, 1);
  if (copy && length) memcpy(copy, bytes, length);
  return copy;
}

/* Lets go of a table that is not handed over after all; one that is released, or all zeroes, stays as it is. */
COMPFLOW_HELPER void compflow_table_release(CompflowTable *table) {
  if (table->array.release) table->array.release(&table->array);
  if (table->schema.release) table->schema.release(&table->schema);
}

/* Fills one array and its schema: `buffers` buffers, the first of them no validity, and room for `children`. */
COMPFLOW_HELPER int compflow_fill(CompflowTable *table, const char *name, const char *format, uint64_t length,
                                  uint32_t buffers, uint32_t children) {
  struct ArrowArray array;
  struct ArrowSchema schema;
  memset(&array, 0, sizeof array);
  memset(&schema, 0, sizeof schema);
  memset(table, 0, sizeof *table);
  if (length >= INT64_MAX) return COMPFLOW_TABLE_VALUES;
  array.length = (int64_t)length;
  array.release = compflow_release_array;
  array.private_data = (void *)(uintptr_t)children; /* how much room there is */
  schema.release = compflow_release_schema;
  array.buffers = (const void **)calloc(buffers ? buffers : 1, sizeof(void *));
  array.n_buffers = array.buffers ? (int64_t)buffers : 0;
  array.children = (struct ArrowArray **)calloc(children ? children : 1, sizeof(void *));
  schema.children = (struct ArrowSchema **)calloc(children ? children : 1, sizeof(void *));
  schema.name = (const char *)compflow_copy(name, strlen(name) + 1);
  schema.format = (const char *)compflow_copy(format, strlen(format) + 1);
  table->array = array;
  table->schema = schema;
  if (array.buffers && array.children && schema.children && schema.name && schema.format) return 0;
  compflow_table_release(table);
  return COMPFLOW_TABLE_MEMORY;
}

/* Gives `child` to `parent`, or lets go of it. */
COMPFLOW_HELPER int compflow_adopt(CompflowTable *parent, CompflowTable *child) {
  int problem = (uint64_t)parent->array.n_children >= (uintptr_t)parent->array.private_data ? COMPFLOW_TABLE_ROOM : 0;
  struct ArrowArray *array = (struct ArrowArray *)malloc(sizeof *array);
  struct ArrowSchema *schema = (struct ArrowSchema *)malloc(sizeof *schema);
  if (!problem && (!array || !schema)) problem = COMPFLOW_TABLE_MEMORY;
  if (problem) {
    free(array);
    free(schema);
    compflow_table_release(child);
    return problem;
  }
  *array = child->array;
  *schema = child->schema;
  parent->array.children[parent->array.n_children++] = array;
  parent->schema.children[parent->schema.n_children++] = schema;
  return 0;
}

/* Likewise, if everything went well so far. */
COMPFLOW_HELPER int compflow_adopt_if(int problem, CompflowTable *parent, CompflowTable *child) {
  if (!problem) return compflow_adopt(parent, child);
  compflow_table_release(child);
  return problem;
}

/* A table of `rows` rows with room for `columns` columns, released by compflow_table_release or by who gets it. */
COMPFLOW_HELPER int compflow_table_begin(CompflowTable *table, uint64_t rows, uint32_t columns) {
  return compflow_fill(table, "", "+s", rows, 1, columns);
}

/* Copies `count` values of `width` bytes into a buffer of a column. */
COMPFLOW_HELPER int compflow_buffer(CompflowTable *column, int at, const void *values, uint64_t count, size_t width) {
  void *copy = compflow_alloc(count, width);
  if (!copy) return COMPFLOW_TABLE_MEMORY;
  if (count) memcpy(copy, values, (size_t)count * width);
  column->array.buffers[at] = copy;
  return 0;
}

/* One column of plain values; `format` is Arrow's, e.g. "g" for double, "l" for int64_t. */
COMPFLOW_HELPER int compflow_column(CompflowTable *table, const char *name, const char *format, uint64_t length,
                                    const void *values, size_t width) {
  CompflowTable column;
  int problem = compflow_fill(&column, name, format, length, 2, 0);
  if (!problem) problem = compflow_buffer(&column, 1, values, length, width);
  return compflow_adopt_if(problem, table, &column);
}

COMPFLOW_HELPER int compflow_table_doubles(CompflowTable *table, const char *name, const double *values) {
  return compflow_column(table, name, "g", (uint64_t)table->array.length, values, sizeof *values);
}

COMPFLOW_HELPER int compflow_table_integers(CompflowTable *table, const char *name, const int64_t *values) {
  return compflow_column(table, name, "l", (uint64_t)table->array.length, values, sizeof *values);
}

/* Whole numbers that are not negative, as the column `singleton` has them. */
COMPFLOW_HELPER int compflow_table_numbers(CompflowTable *table, const char *name, const uint32_t *values) {
  return compflow_column(table, name, "I", (uint64_t)table->array.length, values, sizeof *values);
}

/* Yes where a byte is not 0. */
COMPFLOW_HELPER int compflow_table_booleans(CompflowTable *table, const char *name, const uint8_t *values) {
  size_t rows = (size_t)table->array.length;
  CompflowTable column;
  int problem = compflow_fill(&column, name, "b", rows, 2, 0);
  uint8_t *bits = problem ? NULL : (uint8_t *)calloc(rows / 8 + 1, 1);
  if (!problem && !bits) problem = COMPFLOW_TABLE_MEMORY;
  if (bits) {
    for (size_t row = 0; row < rows; row++)
      if (values[row]) bits[row / 8] = (uint8_t)(bits[row / 8] | 1u << (row % 8));
    column.array.buffers[1] = bits;
  }
  return compflow_adopt_if(problem, table, &column);
}

/* Where the values of every row begin, as 32 bits if that is enough for the last of them, else as 64. */
COMPFLOW_HELPER int compflow_offsets(CompflowTable *column, const uint64_t *offsets, uint64_t rows) {
  int wide = offsets[rows] > INT32_MAX;
  char *to = (char *)compflow_alloc(compflow_add(rows, 1), wide ? sizeof(int64_t) : sizeof(int32_t));
  if (!to) return COMPFLOW_TABLE_MEMORY;
  column->array.buffers[1] = to;
  for (uint64_t row = 0; row <= rows; row++) {
    if (offsets[row] > offsets[rows] || offsets[row] > INT64_MAX || (row && offsets[row] < offsets[row - 1]))
      return COMPFLOW_TABLE_VALUES;
    int64_t large = (int64_t)offsets[row];
    int32_t small = (int32_t)(wide ? 0 : offsets[row]);
    if (wide) memcpy(to + row * sizeof large, &large, sizeof large);
    else memcpy(to + row * sizeof small, &small, sizeof small);
  }
  return 0;
}

/* A set per row: row i has values[offsets[i] .. offsets[i + 1]], ascending; there are rows + 1 offsets, the first 0. */
COMPFLOW_HELPER int compflow_table_sets(CompflowTable *table, const char *name, const uint64_t *offsets,
                                        const uint32_t *values) {
  uint64_t rows = (uint64_t)table->array.length;
  CompflowTable column;
  int problem = compflow_fill(&column, name, offsets[rows] > INT32_MAX ? "+L" : "+l", rows, 2, 1);
  if (!problem) problem = compflow_offsets(&column, offsets, rows);
  if (!problem) problem = compflow_column(&column, "item", "I", offsets[rows], values, sizeof *values);
  return compflow_adopt_if(problem, table, &column);
}

/* A text per row. */
COMPFLOW_HELPER int compflow_table_texts(CompflowTable *table, const char *name, const CompflowStr *texts) {
  uint64_t rows = (uint64_t)table->array.length;
  CompflowTable column;
  memset(&column, 0, sizeof column);
  uint64_t *offsets = (uint64_t *)compflow_alloc(compflow_add(rows, 1), sizeof *offsets);
  if (!offsets) return COMPFLOW_TABLE_MEMORY;
  offsets[0] = 0;
  for (uint64_t row = 0; row < rows; row++) offsets[row + 1] = compflow_add(offsets[row], texts[row].len);
  int problem = compflow_fill(&column, name, offsets[rows] > INT32_MAX ? "U" : "u", rows, 3, 0);
  if (!problem) problem = compflow_offsets(&column, offsets, rows);
  char *bytes = problem ? NULL : (char *)compflow_alloc(offsets[rows], 1);
  if (!problem && !bytes) problem = COMPFLOW_TABLE_MEMORY;
  if (bytes) {
    for (uint64_t row = 0; row < rows; row++)
      if (texts[row].len) memcpy(bytes + offsets[row], texts[row].ptr, (size_t)texts[row].len);
    column.array.buffers[2] = bytes;
  }
  free(offsets);
  return compflow_adopt_if(problem, table, &column);
}

/* A vector of `dim` numbers per row. */
COMPFLOW_HELPER int compflow_table_vectors(CompflowTable *table, const char *name, uint64_t dim, const float *values) {
  uint64_t rows = (uint64_t)table->array.length;
  CompflowTable column;
  char format[32];
  if (dim > INT32_MAX) return COMPFLOW_TABLE_VALUES;
  snprintf(format, sizeof format, "+w:%llu", (unsigned long long)dim);
  int problem = compflow_fill(&column, name, format, rows, 1, 1);
  if (!problem) problem = compflow_column(&column, "item", "f", compflow_times(rows, dim), values, sizeof *values);
  return compflow_adopt_if(problem, table, &column);
}

/* ---- results ---- */

/* Moves a table of a result to the caller, or lets go of it if the caller's structure is too short for it. */
#define COMPFLOW_GIVE_TABLE(out, type, field, table)   \
  do {                                                 \
    if (COMPFLOW_HAS(out, type, field)) {              \
      (out)->field = *(table);                         \
      (table)->array.release = NULL;                   \
      (table)->schema.release = NULL;                  \
    } else compflow_table_release(table);              \
  } while (0)

/* A clustering to be filled: no tables, and an objective of NaN. */
COMPFLOW_HELPER void compflow_clustering_begin(CompflowClustering *found) {
  memset(found, 0, sizeof *found);
  found->size = sizeof *found;
  found->objective = strtod("nan", NULL);
}

COMPFLOW_HELPER void compflow_clustering_release(CompflowClustering *found) {
  compflow_table_release(&found->assignments);
  compflow_table_release(&found->clusters);
  compflow_table_release(&found->trace);
  compflow_table_release(&found->scalars);
  compflow_table_release(&found->resolved);
  compflow_table_release(&found->singletons);
}

/* Hands a clustering back, field by field: the caller's structure may be shorter than ours, or longer. */
COMPFLOW_HELPER void compflow_clustering_give(CompflowClustering *out, CompflowClustering *found) {
  COMPFLOW_GIVE(out, CompflowClustering, converged, found->converged);
  COMPFLOW_GIVE(out, CompflowClustering, iterations, found->iterations);
  COMPFLOW_GIVE(out, CompflowClustering, objective, found->objective);
  COMPFLOW_GIVE_TABLE(out, CompflowClustering, assignments, &found->assignments);
  COMPFLOW_GIVE_TABLE(out, CompflowClustering, clusters, &found->clusters);
  COMPFLOW_GIVE_TABLE(out, CompflowClustering, trace, &found->trace);
  COMPFLOW_GIVE_TABLE(out, CompflowClustering, scalars, &found->scalars);
  COMPFLOW_GIVE_TABLE(out, CompflowClustering, resolved, &found->resolved);
  COMPFLOW_GIVE_TABLE(out, CompflowClustering, singletons, &found->singletons);
}

/* Hands back what a table's columns are, and lets go of its values. */
COMPFLOW_HELPER void compflow_description_give(CompflowDescription *out, uint64_t rows, uint64_t dim, CompflowTable *table) {
  COMPFLOW_GIVE(out, CompflowDescription, rows, rows);
  COMPFLOW_GIVE(out, CompflowDescription, dim, dim);
  if (COMPFLOW_HAS(out, CompflowDescription, columns)) {
    out->columns = table->schema;
    table->schema.release = NULL;
  }
  compflow_table_release(table);
}

/* ---- a stream of one table, for loaders ---- */

COMPFLOW_HELPER int compflow_copy_schema(const struct ArrowSchema *from, struct ArrowSchema *to) {
  CompflowTable copy;
  if (compflow_fill(&copy, from->name, from->format, 0, 1, (uint32_t)from->n_children)) return -1;
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

/* Makes a stream of one table, which it takes over even if there is no memory; 0, or COMPFLOW_TABLE_MEMORY. */
COMPFLOW_HELPER int compflow_stream(struct ArrowArrayStream *out, CompflowTable *table) {
  CompflowTable *kept = (CompflowTable *)malloc(sizeof *kept);
  if (!kept) {
    compflow_table_release(table);
    return COMPFLOW_TABLE_MEMORY;
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
