/* plugin_name: a loader for compflow. compflow.h says what every structure means. */

#include "compflow_util.h"

#include <errno.h>

static const char NAME[] = "plugin_name";
static const char SUMMARY[] = "lines of text: a label, then the numbers of an embedding";
static const char DOCUMENTATION[] =
    "Reads lines such as `3 0.5 -1.25`: a whole number, the label, and the numbers of the embedding. The columns are "
    "called `embedding` and `label`.";
static const char SCHEMA[] = "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {}}";

static int32_t create(CompflowStr params, const CompflowHost *host, void **instance) {
  CompflowParam param;
  const char *at = NULL;
  if (compflow_next_param(params, &at, &param)) return compflow_unknown(host, &param);
  *instance = NULL; /* there is nothing to remember */
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
    return *here ? compflow_fail(host, "line %llu: does not begin with a whole number", (unsigned long long)number) : 0;
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
  if (*here) return compflow_fail(host, "line %llu: `%.20s` is not a number", (unsigned long long)number, here);
  if (lines->rows == 0) lines->dim = dim;
  if (dim == 0 || dim != lines->dim)
    return compflow_fail(host, "line %llu: has %llu numbers, and the first line has %llu", (unsigned long long)number,
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
  if (!file) return compflow_fail(host, "%s: %s", name, strerror(errno));
  int32_t status = 0;
  for (uint64_t number = 1; !status && fgets(line, sizeof line, file); number++)
    status = parse(lines, line, number, host);
  fclose(file);
  return status || lines->rows ? status : compflow_fail(host, "%s: there are no lines", name);
}

static int is(CompflowStr text, const char *word) {
  return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

/* Adds the wanted column under compflow's name; -1 without memory, 1 if there is no such column. */
static int column(CompflowTable *table, const char *name, CompflowStr source, const Lines *lines) {
  if (!source.ptr) return 0; /* not wanted */
  if (is(source, "embedding")) return compflow_table_vectors(table, name, lines->dim, lines->values);
  if (is(source, "label")) return compflow_table_integers(table, name, lines->labels);
  return 1;
}

static int32_t load(void *instance, const CompflowLoadRequest *request, const CompflowHost *host,
                    struct ArrowArrayStream *out) {
  (void)instance;
  Lines lines = {0, 0, 0, NULL, NULL};
  CompflowTable table;
  memset(&table, 0, sizeof table);
  int32_t status = read_lines(&lines, request->path, host);
  if (!status && compflow_table_begin(&table, lines.rows, 4)) status = compflow_no_memory(host);
  const char *names[] = {"embedding", "truth", "trial", "id"};
  CompflowStr sources[] = {request->embedding, request->truth, request->trial, request->id};
  for (int at = 0; at < 4 && !status; at++) {
    int added = column(&table, names[at], sources[at], &lines);
    if (added < 0) status = compflow_no_memory(host);
    if (added > 0)
      status = compflow_fail(host, "no column `%.*s`; there are `embedding` and `label`", (int)sources[at].len,
                             (const char *)sources[at].ptr);
  }
  if (status) compflow_table_release(&table);
  else if (compflow_stream(out, &table)) status = compflow_no_memory(host);
  free(lines.labels), free(lines.values);
  return status;
}

static const CompflowLoaderMethods METHODS = {.size = sizeof METHODS, .load = load};
