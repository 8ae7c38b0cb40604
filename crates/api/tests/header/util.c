/* Tries compflow_util.h; every line that fails is printed. */

#include "compflow_util.h"

#include <math.h>

static int failures;

#define CHECK(what)                                              \
  do {                                                           \
    if (!(what)) failures++, printf("line %d: %s\n", __LINE__, #what); \
  } while (0)

static char said[2048];
static uint32_t said_code;

static void on_error(void *ctx, const CompflowError *error) {
  (void)ctx;
  said_code = error->code;
  snprintf(said, sizeof said, "%.*s|%.*s|%.*s", (int)error->parameter.len, (const char *)error->parameter.ptr,
           (int)error->text.len, (const char *)error->text.ptr, (int)error->help.len, (const char *)error->help.ptr);
}

static const uint32_t NOT_CANCELLED = 0;
static const CompflowHost HOST = {.size = sizeof HOST, .threads = 1, .memory = 100, .cancel = &NOT_CANCELLED, .error = on_error};

static void texts_are_not_cut_inside_of_a_character(void) {
  CHECK(compflow_uncut("a\xc3\xa4", 2) == 1);
  CHECK(compflow_uncut("a\xc3\xa4", 3) == 3);
  CHECK(compflow_uncut("\xf0\x9f\x98\x80", 3) == 0);
  CHECK(compflow_uncut("\xf0\x9f\x98\x80", 4) == 4);
  CHECK(compflow_uncut("", 0) == 0);
  char text[2001];
  for (int at = 0; at < 2000; at += 2) memcpy(text + at, "\xc3\xa4", 2);
  text[2000] = 0;
  CHECK(compflow_fail(&HOST, "%s", text) == COMPFLOW_STATUS_ERROR);
  CHECK(strlen(said) == 1 + 1022 + 1 && said_code == COMPFLOW_ERROR_INTERNAL);
}

static void problems_have_codes(void) {
  compflow_fail_parameter(&HOST, "k", "must be at least %d", 1);
  CHECK(strcmp(said, "k|must be at least 1|") == 0 && said_code == COMPFLOW_ERROR_PARAMETER);
  CHECK(compflow_require_memory(&HOST, 100, "") == 0);
  CHECK(compflow_require_memory(&HOST, 101, "lower `k`") == COMPFLOW_STATUS_ERROR);
  CHECK(strcmp(said, "|needs 101 bytes of memory, over the budget of 100|lower `k`") == 0);
  CHECK(said_code == COMPFLOW_ERROR_BUDGET);
}

static void parameters_are_read(void) {
  const char *json = "{\"k\": 3, \"name\": \"a \\\" b\", \"on\": true, \"list\": [1, {\"x\": \"]\"}], \"none\": null, \"r\": -1.5e3}";
  CompflowParam param;
  const char *at = NULL, *kinds = "nsbx0n";
  int count = 0;
  while (compflow_next_param(compflow_str(json), &at, &param)) CHECK(param.kind == kinds[count++]);
  CHECK(count == 6 && param.number == -1500 && strcmp(param.name, "r") == 0);
  uint64_t whole;
  CHECK(compflow_whole(&HOST, &param, 1, &whole) == COMPFLOW_STATUS_ERROR);
  CHECK(strcmp(said, "r|must be a whole number at least 1, found -1.5e3|") == 0);
  /* What is cut off is no reason to read on. */
  for (size_t length = 0; length <= strlen(json); length++) {
    char *cut = malloc(length ? length : 1);
    memcpy(cut, json, length);
    CompflowStr text = {(const uint8_t *)cut, length};
    for (at = NULL; compflow_next_param(text, &at, &param);) CHECK(param.length >= 0);
    free(cut);
  }
}

static void tables_have_bounds(void) {
  CompflowTable table;
  const double values[] = {1, NAN};
  const uint8_t flags[] = {1, 0};
  const CompflowStr texts[] = {COMPFLOW_TEXT("a"), COMPFLOW_TEXT("")};
  const uint64_t offsets[] = {0, 2, 3}, descending[] = {0, 2, 1};
  const uint32_t members[] = {1, 4, 2};
  CHECK(compflow_table_begin(&table, 2, 4) == 0);
  CHECK(compflow_table_doubles(&table, "a", values) == 0);
  CHECK(compflow_table_booleans(&table, "b", flags) == 0);
  CHECK(compflow_table_texts(&table, "c", texts) == 0);
  CHECK(compflow_table_sets(&table, "d", descending, members) == COMPFLOW_TABLE_VALUES);
  CHECK(compflow_table_sets(&table, "d", offsets, members) == 0);
  CHECK(compflow_table_doubles(&table, "e", values) == COMPFLOW_TABLE_ROOM);
  CHECK(table.array.n_children == 4 && table.schema.n_children == 4);
  CHECK(strcmp(table.schema.children[3]->format, "+l") == 0);
  compflow_table_release(&table);
  compflow_table_release(&table);
  CHECK(compflow_table_begin(&table, UINT64_MAX, 1) == COMPFLOW_TABLE_VALUES);
  CHECK(compflow_table_begin(&table, UINT64_C(1) << 61, 1) == 0);
  CHECK(compflow_table_doubles(&table, "a", values) == COMPFLOW_TABLE_MEMORY);
  CHECK(compflow_table_vectors(&table, "v", 1 << 20, NULL) != 0);
  compflow_table_release(&table);
  CHECK(compflow_alloc(UINT64_MAX, 8) == NULL && compflow_times(UINT64_MAX / 2, 3) == UINT64_MAX);
}

static void streams_end(void) {
  CompflowTable table;
  const int64_t values[] = {1, 2};
  struct ArrowArrayStream stream;
  struct ArrowSchema schema;
  struct ArrowArray array;
  CHECK(compflow_table_begin(&table, 2, 1) == 0 && compflow_table_integers(&table, "id", values) == 0);
  CHECK(compflow_stream(&stream, &table) == 0);
  CHECK(stream.get_schema(&stream, &schema) == 0 && strcmp(schema.children[0]->name, "id") == 0);
  schema.release(&schema);
  CHECK(stream.get_next(&stream, &array) == 0 && array.length == 2);
  array.release(&array);
  CHECK(stream.get_next(&stream, &array) == 0 && !array.release);
  stream.release(&stream);
}

/* A caller of an earlier release, and what lies behind its structure. */
static void results_are_not_longer_than_the_callers(void) {
  CompflowClustering found, out;
  memset(&out, 0xAA, sizeof out);
  memset(&out, 0, offsetof(CompflowClustering, scalars));
  out.size = offsetof(CompflowClustering, scalars);
  compflow_clustering_begin(&found);
  CHECK(isnan(found.objective));
  found.iterations = 7;
  CHECK(compflow_table_begin(&found.assignments, 0, 0) == 0 && compflow_table_begin(&found.resolved, 0, 0) == 0);
  compflow_clustering_give(&out, &found);
  CHECK(out.iterations == 7 && out.assignments.array.release && !found.assignments.array.release);
  CHECK(!found.resolved.array.release);
  const unsigned char *behind = (const unsigned char *)&out;
  for (size_t at = out.size; at < sizeof out; at++) CHECK(behind[at] == 0xAA);
  compflow_table_release(&out.assignments);
  compflow_clustering_release(&found);
}

static int32_t pass(void *ctx, CompflowBatchFn each, void *each_ctx, CompflowErrorFn error, void *error_ctx) {
  const float values[] = {1, 2, 3};
  (void)error, (void)error_ctx;
  for (uint64_t at = 0; at < *(uint64_t *)ctx; at++) {
    int32_t status = each(each_ctx, 3, values);
    if (status) return status;
  }
  return COMPFLOW_STATUS_OK;
}

static int32_t add(void *ctx, uint64_t first, uint64_t rows, const float *values) {
  for (uint64_t row = 0; row < rows; row++) *(double *)ctx += (double)(first + row) * (double)values[row];
  return COMPFLOW_STATUS_OK;
}

static void passes_are_counted(void) {
  uint64_t batches = 2;
  double sum = 0;
  CompflowTask task = {.size = sizeof task, .rows = 6, .dim = 1, .ctx = &batches, .pass = pass};
  CHECK(compflow_task_pass(&task, &HOST, add, &sum) == 0 && sum == 0 + 2 + 6 + 3 + 8 + 15);
  batches = 1;
  CHECK(compflow_task_pass(&task, &HOST, add, &sum) == COMPFLOW_STATUS_ERROR);
  CHECK(strcmp(said, "|a pass over 6 examples handed over 3|") == 0);
  batches = 3;
  CHECK(compflow_task_pass(&task, &HOST, add, &sum) == COMPFLOW_STATUS_ERROR);
}

int main(void) {
  texts_are_not_cut_inside_of_a_character();
  problems_have_codes();
  parameters_are_read();
  tables_have_bounds();
  streams_end();
  results_are_not_longer_than_the_callers();
  passes_are_counted();
  return failures != 0;
}
