/* One component of every kind, which uses every field of the boundary once.
 *
 * Compiled by tests/growth.rs against headers in which structures have grown. For every structure that begins with its
 * size these headers define three macros, which do nothing if it has not grown:
 *
 *   GROWN_x        initialises the further field with rubbish, for what the plugin makes
 *   SEES_x(at)     whether the caller claims to have the further field, which it never does
 *   GIVES_x(out)   assigns the further field as COMPFLOW_GIVE does, for results */

#include "compflow_util.h"

#include <math.h>

static char NOTHING;

static int32_t grown(const CompflowHost *host, const char *what) { return compflow_fail(host, "%s has grown", what); }

static int32_t create(CompflowStr params, const CompflowHost *host, void **instance) {
  CompflowParam param;
  const char *at = NULL;
  if (SEES_CompflowHost(host)) return grown(host, "the host");
  if (compflow_next_param(params, &at, &param)) {
    CompflowError error = {.size = sizeof error, GROWN_CompflowError .code = COMPFLOW_ERROR_PARAMETER};
    error.parameter = compflow_str(param.name);
    error.text = compflow_str("is not a parameter");
    error.help = compflow_str("there are none");
    host->error(host->ctx, &error);
    return COMPFLOW_STATUS_ERROR;
  }
  *instance = &NOTHING;
  return COMPFLOW_STATUS_OK;
}

static int32_t destroy(void *instance, const CompflowHost *host) {
  return instance == &NOTHING ? COMPFLOW_STATUS_OK : compflow_fail(host, "is no instance of ours");
}

/* ---- loader ---- */

/* The columns of the source, or those of a request. */
static int source(CompflowTable *table, uint64_t rows, const CompflowLoadRequest *request) {
  static const float EMBEDDINGS[] = {0, 1, 1, 0, 2, 2};
  static const int64_t LABELS[] = {7, 7, -1};
  static const uint64_t OFFSETS[] = {0, 1, 3, 3};
  static const uint32_t MEMBERS[] = {4, 1, 2};
  static const uint8_t MARKS[] = {1, 0, 1};
  static const CompflowStr WORDS[] = {COMPFLOW_TEXT("eins"), COMPFLOW_TEXT(""), COMPFLOW_TEXT("zw\xc3\xb6lf")};
  static const double WEIGHTS[] = {0.5, 1, 2};
  static const char *const NAMES[] = {"embedding", "label", "sets", "mark", "word", "weight"};
  int problem = compflow_table_begin(table, rows, 6);
  for (int at = 0; at < 6 && !problem; at++) {
    char name[64];
    uint64_t wanted = 0;
    snprintf(name, sizeof name, "%s", NAMES[at]);
    if (request) {
      while (wanted < request->column_count && !compflow_is(request->columns[wanted].source, NAMES[at])) wanted++;
      if (wanted == request->column_count) continue;
      snprintf(name, sizeof name, "%.*s", (int)request->columns[wanted].name.len, (const char *)request->columns[wanted].name.ptr);
    }
    problem = at == 0   ? compflow_table_vectors(table, name, 2, EMBEDDINGS)
              : at == 1 ? compflow_table_integers(table, name, LABELS)
              : at == 2 ? compflow_table_sets(table, name, OFFSETS, MEMBERS)
              : at == 3 ? compflow_table_booleans(table, name, MARKS)
              : at == 4 ? compflow_table_texts(table, name, WORDS)
                        : compflow_table_doubles(table, name, WEIGHTS);
  }
  return problem;
}

static int32_t load(void *instance, const CompflowLoadRequest *request, const CompflowHost *host,
                    struct ArrowArrayStream *out) {
  (void)instance;
  CompflowTable table;
  if (SEES_CompflowLoadRequest(request)) return grown(host, "the request");
  if (!compflow_is(request->path, "/some/file"))
    return compflow_fail_data(host, "%.*s: is no file of ours", (int)request->path.len, (const char *)request->path.ptr);
  for (uint64_t at = 0; at < request->column_count; at++)
    if (compflow_is(request->columns[at].source, "other"))
      return compflow_fail_column(host, request->columns[at].name, "there are others", "names the column `other`");
  int problem = source(&table, 3, request);
  if (!problem) problem = compflow_stream(out, &table);
  else compflow_table_release(&table);
  return problem ? compflow_fail_table(host, problem) : COMPFLOW_STATUS_OK;
}

static int32_t describe(void *instance, const CompflowLoadRequest *request, const CompflowHost *host,
                        CompflowDescription *out) {
  (void)instance, (void)request;
  CompflowTable table;
  if (SEES_CompflowDescription(out)) return grown(host, "the description");
  int problem = source(&table, 0, NULL);
  if (problem) {
    compflow_table_release(&table);
    return compflow_fail_table(host, problem);
  }
  compflow_description_give(out, 3, 2, &table);
  GIVES_CompflowDescription(out);
  return COMPFLOW_STATUS_OK;
}

static const CompflowLoaderMethods LOADER = {
    .size = sizeof LOADER, GROWN_CompflowLoaderMethods .load = load, .describe = describe};

/* ---- composer ---- */

static int32_t dim(void *instance, const CompflowHost *host, uint64_t *dim) {
  (void)instance, (void)host;
  *dim = 2;
  return COMPFLOW_STATUS_OK;
}

static int32_t compose(void *instance, uint64_t rows, uint64_t dim, const float *left, const float *right, float *out,
                       const CompflowHost *host) {
  (void)instance, (void)host;
  for (uint64_t at = 0; at < rows * dim; at++) out[at] = 2 * left[at] + 3 * right[at];
  return COMPFLOW_STATUS_OK;
}

static int32_t vjp(void *instance, uint64_t rows, uint64_t dim, const float *left, const float *right, const float *grad,
                   float *grad_left, float *grad_right, const CompflowHost *host) {
  (void)instance, (void)host, (void)left, (void)right;
  for (uint64_t at = 0; at < rows * dim; at++) grad_left[at] = 2 * grad[at], grad_right[at] = 3 * grad[at];
  return COMPFLOW_STATUS_OK;
}

static int32_t compose_sets(void *instance, uint64_t rows, uint64_t dim, const float *vectors, const CompflowSets *sets,
                            float *out, const CompflowHost *host) {
  (void)instance, (void)host, (void)rows;
  for (uint64_t set = 0; set < sets->len; set++)
    for (uint64_t i = 0; i < dim; i++) {
      out[set * dim + i] = 0;
      for (uint64_t at = sets->offsets[set]; at < sets->offsets[set + 1]; at++)
        out[set * dim + i] += vectors[sets->values[at] * dim + i];
    }
  return COMPFLOW_STATUS_OK;
}

static int32_t compose_sets_vjp(void *instance, uint64_t rows, uint64_t dim, const float *vectors, const CompflowSets *sets,
                                const float *grad, float *grad_vectors, const CompflowHost *host) {
  (void)instance, (void)host, (void)vectors;
  for (uint64_t at = 0; at < rows * dim; at++) grad_vectors[at] = 0;
  for (uint64_t set = 0; set < sets->len; set++)
    for (uint64_t at = sets->offsets[set]; at < sets->offsets[set + 1]; at++)
      for (uint64_t i = 0; i < dim; i++) grad_vectors[sets->values[at] * dim + i] += grad[set * dim + i];
  return COMPFLOW_STATUS_OK;
}

static const CompflowComposerMethods COMPOSER = {.size = sizeof COMPOSER,
                                                 GROWN_CompflowComposerMethods .dim = dim,
                                                 .compose = compose,
                                                 .vjp = vjp,
                                                 .compose_sets = compose_sets,
                                                 .compose_sets_vjp = compose_sets_vjp};

/* ---- clusterer: everything with a positive first number is cluster 1, the rest is cluster 0 ---- */

static int32_t memory(void *instance, const CompflowShape *shape, const CompflowHost *host, uint64_t *bytes) {
  (void)instance, (void)host;
  *bytes = compflow_times(compflow_times(shape->rows, shape->dim), shape->degree);
  return COMPFLOW_STATUS_OK;
}

static int32_t streams(void *instance, const CompflowHost *host, uint32_t *streams) {
  (void)instance, (void)host;
  *streams = 1;
  return COMPFLOW_STATUS_OK;
}

static int32_t flags_of(void *instance, const CompflowHost *host, uint64_t *flags) {
  (void)instance, (void)host;
  *flags = COMPFLOW_USES_WEIGHTS | COMPFLOW_NEEDS_TRUTH | COMPFLOW_ASSIGNS_NONE;
  return COMPFLOW_STATUS_OK;
}

static int32_t columns(void *instance, const CompflowHost *host, CompflowTextFn sink, void *sink_ctx) {
  (void)instance, (void)host;
  sink(sink_ctx, compflow_str("word"));
  sink(sink_ctx, compflow_str("id"));
  return COMPFLOW_STATUS_OK;
}

typedef struct {
  uint64_t dim, rows;
  uint32_t *labels;
  double sum;
} Seen;

static int32_t see(void *ctx, uint64_t first, uint64_t rows, const float *values) {
  Seen *seen = ctx;
  for (uint64_t row = 0; row < rows; row++) {
    if (seen->labels) seen->labels[first + row] = values[row * seen->dim] > 0;
    for (uint64_t i = 0; i < seen->dim; i++) seen->sum += (double)values[row * seen->dim + i];
  }
  seen->rows += rows;
  return COMPFLOW_STATUS_OK;
}

/* What a task or evaluation has in its further columns, as a number. */
static double further(const CompflowTable *columns) {
  return columns ? (double)(100 * columns->array.n_children + columns->array.length) : 0;
}

/* How many members known sets have; -1 if there are none, or none that this library knows of. */
static double seeds(const CompflowTask *task) {
#ifdef COMPFLOW_USES_SEEDS
  if (COMPFLOW_HAS(task, CompflowTask, seeds) && task->seeds) return (double)task->seeds->offsets[task->seeds->len];
#endif
  (void)task;
  return -1;
}

static int fill(const CompflowTask *task, const Seen *seen, CompflowClustering *found) {
  static const uint64_t BEGINS[] = {0, 1, 2}, EXEMPLARS_BEGIN[] = {0, 1, 2};
  static const uint32_t NUMBERS[] = {0, 1}, EXEMPLARS[] = {1, 0};
  static const float CENTROIDS[] = {0.5F, 1.5F, 2.5F, 3.5F};
  const double trace[] = {9, 8, NAN};
  const CompflowStr names[] = {COMPFLOW_TEXT("sum"),       COMPFLOW_TEXT("further"), COMPFLOW_TEXT("weights"),
                               COMPFLOW_TEXT("preferences"), COMPFLOW_TEXT("truth"),   COMPFLOW_TEXT("space"),
                               COMPFLOW_TEXT("seeds")};
  const double scalars[] = {seen->sum,
                            further(task->columns),
                            task->weights ? (double)task->weights[task->rows - 1] : -1,
                            task->preferences ? (double)task->preferences[0] : -1,
                            task->truth ? (double)task->truth->offsets[task->truth->len] : -1,
                            (double)(100 * task->degree + 10 * task->normalize + task->distance),
                            seeds(task)};
  const CompflowStr settled[] = {COMPFLOW_TEXT("threshold")}, values[] = {COMPFLOW_TEXT("0.25")};
  uint64_t *offsets = compflow_alloc(task->rows + 1, sizeof *offsets);
  float *memberships = compflow_alloc(task->rows, 2 * sizeof *memberships);
  uint8_t *marks = compflow_alloc(task->rows, 1);
  int problem = offsets && memberships && marks ? 0 : COMPFLOW_TABLE_MEMORY;
  if (!problem) {
    /* The last example belongs to nothing. */
    for (uint64_t row = 0; row <= task->rows; row++) offsets[row] = row < task->rows ? row : row - 1;
    for (uint64_t row = 0; row < task->rows; row++) {
      memberships[2 * row] = (float)!seen->labels[row], memberships[2 * row + 1] = (float)seen->labels[row];
      marks[row] = (uint8_t)seen->labels[row];
    }
    problem = compflow_table_begin(&found->assignments, task->rows, 3);
    if (!problem) problem = compflow_table_sets(&found->assignments, "clusters", offsets, seen->labels);
    if (!problem) problem = compflow_table_vectors(&found->assignments, "memberships", 2, memberships);
    if (!problem) problem = compflow_table_booleans(&found->assignments, "positive", marks);
  }
  if (!problem) problem = compflow_table_begin(&found->clusters, 2, 3);
  if (!problem) problem = compflow_table_sets(&found->clusters, "clusters", BEGINS, NUMBERS);
  if (!problem) problem = compflow_table_sets(&found->clusters, "exemplars", EXEMPLARS_BEGIN, EXEMPLARS);
  if (!problem) problem = compflow_table_vectors(&found->clusters, "centroid", task->dim, CENTROIDS);
  if (!problem) problem = compflow_table_begin(&found->trace, 3, 1);
  if (!problem) problem = compflow_table_doubles(&found->trace, "objective", trace);
  if (!problem) problem = compflow_table_begin(&found->scalars, 7, 2);
  if (!problem) problem = compflow_table_texts(&found->scalars, "name", names);
  if (!problem) problem = compflow_table_doubles(&found->scalars, "value", scalars);
  if (!problem) problem = compflow_table_begin(&found->resolved, 1, 2);
  if (!problem) problem = compflow_table_texts(&found->resolved, "name", settled);
  if (!problem) problem = compflow_table_texts(&found->resolved, "value", values);
  if (!problem) problem = compflow_table_begin(&found->singletons, 2, 2);
  if (!problem) problem = compflow_table_numbers(&found->singletons, "singleton", NUMBERS);
  if (!problem) problem = compflow_table_vectors(&found->singletons, "vector", task->dim, CENTROIDS);
  free(offsets), free(memberships), free(marks);
  return problem;
}

static int32_t cluster(void *instance, const CompflowTask *task, const CompflowHost *host, CompflowClustering *out) {
  (void)instance;
  if (SEES_CompflowTask(task)) return grown(host, "the task");
  if (SEES_CompflowClustering(out)) return grown(host, "the clustering");
  if (task->dim != 2) return compflow_fail_data(host, "is for examples of length 2, not %llu", (unsigned long long)task->dim);
  host->progress(host->ctx, 1, 2);
  host->log(host->ctx, COMPFLOW_LOG_INFO, host->version);
  Seen seen = {task->dim, 0, compflow_alloc(task->rows, sizeof(uint32_t)), 0};
  CompflowClustering found;
  compflow_clustering_begin(&found);
  int32_t status = seen.labels ? compflow_task_pass(task, host, see, &seen) : compflow_no_memory(host);
  if (!status && task->composer) {
    /* Another library's component, which may be older or newer than this one. */
    const float left[] = {1, 2}, right[] = {3, 4};
    float composed[2];
    const CompflowComposerMethods *methods = task->composer->component->methods;
    status = methods->compose(task->composer->instance, 1, 2, left, right, composed, host);
    found.objective = (double)(composed[0] + composed[1]);
  }
  if (!status) {
    found.iterations = seen.rows;
    found.converged = task->embeddings != NULL;
    int problem = fill(task, &seen, &found);
    if (problem) status = compflow_fail_table(host, problem);
  }
  if (!status) {
    compflow_clustering_give(out, &found);
    GIVES_CompflowClustering(out);
  }
  compflow_clustering_release(&found);
  free(seen.labels);
  return status;
}

static const CompflowClustererMethods CLUSTERER = {
    .size = sizeof CLUSTERER, GROWN_CompflowClustererMethods .memory = memory, .cluster = cluster, .streams = streams};

/* ---- evaluator ---- */

static int32_t metrics(void *instance, const CompflowHost *host, CompflowMetricFn sink, void *sink_ctx) {
  (void)instance, (void)host;
  const CompflowMetric sizes = {.size = sizeof sizes,
                                GROWN_CompflowMetric .unit = COMPFLOW_UNIT_COUNT,
                                .name = COMPFLOW_TEXT("sizes"),
                                .least = 0,
                                .most = INFINITY};
  const CompflowMetric sum = {.size = sizeof sum,
                              GROWN_CompflowMetric .unit = 99, /* of a later release */
                              .name = COMPFLOW_TEXT("sum"),
                              .least = -INFINITY,
                              .most = 7,
                              .larger_is_better = 1};
  sink(sink_ctx, &sizes);
  sink(sink_ctx, &sum);
  return COMPFLOW_STATUS_OK;
}

static int32_t evaluate(void *instance, const CompflowEvaluation *evaluation, const CompflowHost *host,
                        CompflowScoreFn sink, void *sink_ctx) {
  (void)instance;
  if (SEES_CompflowEvaluation(evaluation)) return grown(host, "the evaluation");
  if (evaluation->predicted->len != evaluation->rows) return compflow_fail(host, "has other sets than examples");
  uint64_t sizes = evaluation->predicted->offsets[evaluation->rows];
  if (evaluation->truth) sizes += 10 * evaluation->truth->offsets[evaluation->rows];
  if (evaluation->clusters) sizes += 100 * evaluation->clusters->len;
  Seen seen = {evaluation->dim, 0, NULL, further(evaluation->columns)};
  if (evaluation->pass) {
    int32_t status = compflow_evaluation_pass(evaluation, host, see, &seen);
    if (status) return status;
  }
  if (evaluation->embeddings) seen.sum += 0.25;
  if (evaluation->centroids) seen.sum += (double)evaluation->centroids[evaluation->dim];
  sink(sink_ctx, compflow_str("sum"), seen.sum + 10000 * evaluation->degree + 1000 * evaluation->normalize);
  sink(sink_ctx, compflow_str("sizes"), (double)sizes);
  return COMPFLOW_STATUS_OK;
}

static const CompflowEvaluatorMethods EVALUATOR = {
    .size = sizeof EVALUATOR, GROWN_CompflowEvaluatorMethods .metrics = metrics, .evaluate = evaluate};

/* ---- the library ---- */

#define COMPONENT(of, called, more)                                            \
  {                                                                            \
    .size = sizeof(CompflowComponent), GROWN_CompflowComponent .kind = COMPFLOW_KIND_##of,  \
    .flags = (more) | UINT64_C(1) << 63 /* of a later release, for whoever knows it */, .name = COMPFLOW_TEXT(called), \
    .summary = COMPFLOW_TEXT("a " called), .documentation = COMPFLOW_TEXT("# " called),    \
    .schema = COMPFLOW_TEXT("{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {}}"), \
    .create = create, .destroy = destroy, .methods = &of, .flags_of = FLAGS_OF_##of, .columns = COLUMNS_##of \
  }

#define FLAGS_OF_LOADER NULL
#define FLAGS_OF_COMPOSER NULL
#define FLAGS_OF_CLUSTERER flags_of
#define FLAGS_OF_EVALUATOR NULL
#define COLUMNS_LOADER NULL
#define COLUMNS_COMPOSER NULL
#define COLUMNS_CLUSTERER columns
#define COLUMNS_EVALUATOR columns

static const CompflowComponent A_LOADER = COMPONENT(LOADER, "made", COMPFLOW_NEEDS_PATH);
static const CompflowComponent A_COMPOSER =
    COMPONENT(COMPOSER, "crooked", COMPFLOW_HAS_GRADIENTS | COMPFLOW_COMPOSES_SETS);
static const CompflowComponent A_CLUSTERER = COMPONENT(CLUSTERER, "halves", 0);
static const CompflowComponent AN_EVALUATOR = COMPONENT(EVALUATOR, "sizes", 0);

static const CompflowComponent *const COMPONENTS[] = {&A_LOADER, &A_COMPOSER, &A_CLUSTERER, &AN_EVALUATOR};

static const CompflowLibrary LIBRARY = {
    .size = sizeof LIBRARY,
    GROWN_CompflowLibrary .name = COMPFLOW_TEXT("growth"),
    .version = COMPFLOW_TEXT("1.2.3"),
    .components = COMPONENTS,
    .component_count = 4,
};

const CompflowAbi COMPFLOW_ABI = {COMPFLOW_MAGIC, COMPFLOW_ABI_VERSION, sizeof(CompflowLibrary)};

const CompflowLibrary *compflow_library(CompflowErrorFn sink, void *sink_ctx) {
  (void)sink, (void)sink_ctx;
  return &LIBRARY;
}
