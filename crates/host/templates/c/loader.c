/* plugin_name: a loader for compflow. compflow.h says what every structure means. */

#include "compflow_util.h"

#include <errno.h>

#define FLAGS COMPFLOW_NEEDS_PATH

static const char NAME[] = "plugin_name";
static const char SUMMARY[] = "lines of text: a label, then the numbers of an embedding";
static const char DOCUMENTATION[] =
    "Reads lines such as `3 0.5 -1.25`: a whole number, the label, and the numbers of the embedding. The columns are "
    "called `embedding` and `label`.";
static const char SCHEMA[] = "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {}}";

static char NOTHING; /* stands for an instance that has nothing to remember */

static int32_t create(CompflowStr params, const CompflowHost *host, void **instance) {
  CompflowParam param;
  const char *at = NULL;
  if (compflow_next_param(params, &at, &param)) return compflow_unknown(host, &param);
  *instance = &NOTHING;
  return COMPFLOW_STATUS_OK;
}

static int32_t destroy(void *instance, const CompflowHost *host) {
  (void)instance, (void)host;
  return COMPFLOW_STATUS_OK;
}

typedef struct {
  uint64_t rows, dim, room;
  int64_t *labels;
  float *values;
} Lines;

/* Adds one line; 0, or the status to return. */
static int32_t parse(Lines *lines, char *line, uint64_t number, const CompflowHost *host) {
  char *end, *here = line;
  long long label = strtoll(here, &end, 10);
  if (end == here) {
    while (*here == ' ' || *here == '\t' || *here == '\r' || *here == '\n') here++;
    return *here ? compflow_fail_data(host, "line %llu: does not begin with a whole number", (unsigned long long)number) : 0;
  }
  uint64_t dim = 0;
  for (here = end;; here = end, dim++) {
    float value = strtof(here, &end);
    if (end == here) break;
    if (lines->rows * lines->dim + dim >= lines->room || lines->rows >= lines->room) {
      lines->room = lines->room * 2 + 64;
      float *values = realloc(lines->values, lines->room * sizeof *values);
      if (values) lines->values = values;
      int64_t *labels = realloc(lines->labels, lines->room * sizeof *labels);
      if (labels) lines->labels = labels;
      if (!values || !labels) return compflow_no_memory(host);
    }
    lines->values[lines->rows * lines->dim + dim] = value;
  }
  while (*here == ' ' || *here == '\t' || *here == '\r' || *here == '\n') here++;
  if (*here)
    return compflow_fail_data(host, "line %llu: `%.*s` is not a number", (unsigned long long)number,
                              compflow_shown(here, strlen(here), 20), here);
  if (lines->rows == 0) lines->dim = dim;
  if (dim == 0 || dim != lines->dim)
    return compflow_fail_data(host, "line %llu: has %llu numbers, and the first line has %llu", (unsigned long long)number,
                         (unsigned long long)dim, (unsigned long long)lines->dim);
  lines->labels[lines->rows++] = label;
  return 0;
}

static int32_t read_lines(Lines *lines, CompflowStr path, const CompflowHost *host) {
  char name[4096], line[65536];
  if (!path.ptr || path.len >= sizeof name) return compflow_fail(host, "needs a path of less than 4096 bytes");
  memcpy(name, path.ptr, path.len);
  name[path.len] = 0;
  FILE *file = fopen(name, "r");
  if (!file) return compflow_fail_data(host, "%s: %s", name, strerror(errno));
  int32_t status = 0;
  for (uint64_t number = 1; !status && fgets(line, sizeof line, file); number++)
    status = strlen(line) < sizeof line - 1
                 ? parse(lines, line, number, host)
                 : compflow_fail_data(host, "line %llu: is longer than 65534 bytes", (unsigned long long)number);
  fclose(file);
  return status || lines->rows ? status : compflow_fail_data(host, "%s: there are no lines", name);
}

/* Adds a column that was asked for, under the name of the request; 0, or the status to return. */
static int32_t add(CompflowTable *table, const CompflowColumn *wanted, const Lines *lines, const CompflowHost *host) {
  const char *source = (const char *)wanted->source.ptr;
  int problem;
  char *name = compflow_alloc(compflow_add(wanted->name.len, 1), 1); /* terminated, as Arrow wants it */
  if (!name) return compflow_no_memory(host);
  memcpy(name, wanted->name.ptr, wanted->name.len);
  name[wanted->name.len] = 0;
  if (compflow_is(wanted->source, "embedding")) problem = compflow_table_vectors(table, name, lines->dim, lines->values);
  else if (compflow_is(wanted->source, "label")) problem = compflow_table_integers(table, name, lines->labels);
  else problem = 1;
  free(name);
  if (problem == 1)
    return compflow_fail_column(host, wanted->name, "there are `embedding` and `label`",
                                "names the column `%.*s`, which is not in the file",
                                compflow_shown(source, wanted->source.len, 80), source);
  return problem ? compflow_fail_table(host, problem) : COMPFLOW_STATUS_OK;
}

static int32_t load(void *instance, const CompflowLoadRequest *request, const CompflowHost *host,
                    struct ArrowArrayStream *out) {
  (void)instance;
  Lines lines = {0, 0, 0, NULL, NULL};
  CompflowTable table;
  memset(&table, 0, sizeof table);
  int32_t status = read_lines(&lines, request->path, host);
  if (!status && request->column_count > UINT32_MAX) status = compflow_fail(host, "too many columns are asked for");
  if (!status) {
    int problem = compflow_table_begin(&table, lines.rows, (uint32_t)request->column_count);
    if (problem) status = compflow_fail_table(host, problem);
  }
  for (uint64_t at = 0; at < request->column_count && !status; at++)
    status = add(&table, &request->columns[at], &lines, host);
  if (status) compflow_table_release(&table);
  else if (compflow_stream(out, &table)) status = compflow_no_memory(host);
  free(lines.labels), free(lines.values);
  return status;
}

static const CompflowLoaderMethods METHODS = {.size = sizeof METHODS, .load = load};
