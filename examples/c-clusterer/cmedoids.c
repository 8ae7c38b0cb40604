/* cmedoids: k-medoids that knows unions.
 *
 * Finds k examples, the medoids, such that every example is near to a medoid or near to the composition of two of them.
 * Alternates two steps until nothing changes: give every example to the nearest medoid or composed pair; make that member
 * of each medoid's own examples its medoid that is nearest to all others. The composer is another component, possibly of
 * another library, called through the same structures that the host uses. */

#include "compflow_util.h"

#include <math.h>

typedef struct {
  uint64_t k, max_iter;
} Params;

/* Everything one run works on. Candidates are the k medoids, then the pairs of them, first with second ascending. */
typedef struct {
  const CompflowTask *task;
  const CompflowHost *host;
  uint64_t n, dim, k, candidates;
  float *points;      /* the examples in the space of the task */
  float *places;      /* the candidates in the space of the task */
  float *left, *right; /* what is composed, as it was before it entered the space */
  uint32_t *pairs;    /* two medoids per pair */
  uint32_t *medoids;  /* rows */
  uint32_t *labels;   /* a candidate per example */
  double *distances;  /* to it */
  double *trace;
} Run;

static int32_t create(CompflowStr params, const CompflowHost *host, void **instance) {
  Params made = {3, 50};
  CompflowParam param;
  const char *at = NULL;
  while (compflow_next_param(params, &at, &param)) {
    int32_t status = strcmp(param.name, "k") == 0          ? compflow_whole(host, &param, 1, &made.k)
                     : strcmp(param.name, "max_iter") == 0 ? compflow_whole(host, &param, 1, &made.max_iter)
                                                           : compflow_unknown(host, &param);
    if (status) return status;
  }
  *instance = compflow_copy(&made, sizeof made);
  return *instance ? COMPFLOW_STATUS_OK : compflow_no_memory(host);
}

static int32_t destroy(void *instance, const CompflowHost *host) {
  (void)host;
  free(instance);
  return COMPFLOW_STATUS_OK;
}

static uint64_t pairs_of(uint64_t k, uint32_t degree) { return degree > 1 ? k * (k - 1) / 2 : 0; }

static uint64_t memory(void *instance, uint64_t rows, uint64_t dim, uint32_t degree) {
  const Params *params = instance;
  uint64_t pairs = pairs_of(params->k, degree);
  return rows * (dim * 4 + 4 + 8) + (params->k + 3 * pairs) * dim * 4 + pairs * 8 + params->k * 4 + params->max_iter * 8;
}

/* Brings vectors into the space of the task. */
static void enter(const CompflowTask *task, float *rows, uint64_t count) {
  if (task->normalize != COMPFLOW_NORMALIZE_L2) return;
  for (uint64_t row = 0; row < count; row++) {
    float *vector = rows + row * task->dim;
    double sum = 0;
    for (uint64_t i = 0; i < task->dim; i++) sum += (double)vector[i] * vector[i];
    for (uint64_t i = 0; i < task->dim && sum > 0; i++) vector[i] = (float)(vector[i] / sqrt(sum));
  }
}

static double distance(const Run *run, const float *a, const float *b) {
  double sum = 0;
  for (uint64_t i = 0; i < run->dim; i++) sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
  return run->task->distance == COMPFLOW_DISTANCE_EUCLIDEAN ? sqrt(sum) : sum;
}

/* Takes examples that are far from one another as the first medoids, the first of them by the seed. */
static void begin(Run *run) {
  uint64_t next = run->host->seed % run->n;
  for (uint64_t row = 0; row < run->n; row++) run->distances[row] = INFINITY;
  for (uint64_t medoid = 0; medoid < run->k; medoid++) {
    run->medoids[medoid] = (uint32_t)next;
    for (uint64_t row = 0; row < run->n; row++) {
      double here = distance(run, run->points + row * run->dim, run->points + next * run->dim);
      if (here < run->distances[row]) run->distances[row] = here;
    }
    run->distances[next] = -1; /* is taken */
    for (uint64_t row = next = 0; row < run->n; row++)
      if (run->distances[row] > run->distances[next]) next = row;
  }
}

/* Where the candidates lie. Compositions are folded in ascending order of the rows. */
static int32_t place(Run *run) {
  const CompflowTask *task = run->task;
  uint64_t dim = run->dim, pairs = run->candidates - run->k;
  for (uint64_t medoid = 0; medoid < run->k; medoid++)
    memcpy(run->places + medoid * dim, run->points + run->medoids[medoid] * dim, dim * sizeof(float));
  if (pairs == 0) return COMPFLOW_STATUS_OK;
  for (uint64_t pair = 0; pair < pairs; pair++) {
    uint32_t a = run->medoids[run->pairs[2 * pair]], b = run->medoids[run->pairs[2 * pair + 1]];
    memcpy(run->left + pair * dim, task->embeddings + (a < b ? a : b) * dim, dim * sizeof(float));
    memcpy(run->right + pair * dim, task->embeddings + (a < b ? b : a) * dim, dim * sizeof(float));
  }
  const CompflowComposerMethods *methods = task->composer->component->methods;
  float *composed = run->places + run->k * dim;
  int32_t status = methods->compose(task->composer->instance, pairs, dim, run->left, run->right, composed, run->host);
  if (status) return status; /* the composer has said why */
  for (uint64_t at = 0; at < pairs * dim; at++)
    if (!isfinite(composed[at])) return compflow_fail(run->host, "composing two medoids gave %g", (double)composed[at]);
  enter(task, composed, pairs);
  return COMPFLOW_STATUS_OK;
}

/* Gives every example to the nearest candidate, the first of equals. */
static int32_t assign(Run *run, double *objective) {
  *objective = 0;
  for (uint64_t row = 0; row < run->n; row++) {
    if (row % 256 == 0 && compflow_cancelled(run->host)) return COMPFLOW_STATUS_CANCELLED;
    run->distances[row] = INFINITY;
    run->labels[row] = 0;
    for (uint64_t candidate = 0; candidate < run->candidates; candidate++) {
      double here = distance(run, run->points + row * run->dim, run->places + candidate * run->dim);
      if (here < run->distances[row]) {
        run->distances[row] = here;
        run->labels[row] = (uint32_t)candidate;
      }
    }
    *objective += run->distances[row];
  }
  return COMPFLOW_STATUS_OK;
}

/* Makes the member that is nearest to all others the medoid of its own examples; `*moved` says whether any changed. */
static int32_t move(Run *run, int *moved) {
  *moved = 0;
  for (uint64_t medoid = 0; medoid < run->k; medoid++) {
    double best = INFINITY;
    uint64_t chosen = run->medoids[medoid];
    for (uint64_t row = 0; row < run->n; row++) {
      if (run->labels[row] != medoid) continue;
      if (compflow_cancelled(run->host)) return COMPFLOW_STATUS_CANCELLED;
      double sum = 0;
      for (uint64_t other = 0; other < run->n && sum < best; other++)
        if (run->labels[other] == medoid)
          sum += distance(run, run->points + row * run->dim, run->points + other * run->dim);
      if (sum < best) {
        best = sum;
        chosen = row;
      }
    }
    *moved |= chosen != run->medoids[medoid];
    run->medoids[medoid] = (uint32_t)chosen;
  }
  return COMPFLOW_STATUS_OK;
}

/* The result as Arrow tables: a set per example; a set and its exemplars per candidate. */
static int tables(const Run *run, uint64_t iterations, CompflowClustering *out) {
  uint64_t pairs = run->candidates - run->k;
  uint32_t *offsets = malloc((run->n + run->candidates + 1) * sizeof *offsets);
  uint32_t *values = malloc((2 * run->n + run->k + 2 * pairs + 1) * sizeof *values);
  uint32_t *exemplars = malloc((run->k + 2 * pairs + 1) * sizeof *exemplars);
  int failed = !offsets || !values || !exemplars;
  if (!failed) {
    uint32_t length = offsets[0] = 0;
    for (uint64_t row = 0; row < run->n; row++) {
      uint32_t label = run->labels[row];
      if (label < run->k) values[length++] = label;
      else memcpy(values + length, run->pairs + 2 * (label - run->k), 2 * sizeof *values), length += 2;
      offsets[row + 1] = length;
    }
    failed = compflow_table_begin(&out->assignments, run->n, 1) ||
             compflow_table_sets(&out->assignments, "clusters", offsets, values);
  }
  if (!failed) {
    uint32_t length = 0;
    for (uint64_t candidate = 0; candidate < run->candidates; candidate++) {
      if (candidate < run->k) values[length++] = (uint32_t)candidate;
      else memcpy(values + length, run->pairs + 2 * (candidate - run->k), 2 * sizeof *values), length += 2;
      offsets[candidate + 1] = length;
    }
    for (uint32_t at = 0; at < length; at++) exemplars[at] = run->medoids[values[at]];
    failed = compflow_table_begin(&out->clusters, run->candidates, 2) ||
             compflow_table_sets(&out->clusters, "clusters", offsets, values) ||
             compflow_table_sets(&out->clusters, "exemplars", offsets, exemplars) ||
             compflow_table_begin(&out->trace, iterations, 1) ||
             compflow_table_doubles(&out->trace, "objective", run->trace);
  }
  free(offsets), free(values), free(exemplars);
  return failed;
}

static int32_t work(Run *run, uint64_t max_iter, CompflowClustering *out) {
  memcpy(run->points, run->task->embeddings, run->n * run->dim * sizeof(float));
  enter(run->task, run->points, run->n);
  for (uint32_t a = 0, pair = 0; a < run->k && run->candidates > run->k; a++)
    for (uint32_t b = a + 1; b < run->k; b++, pair++) run->pairs[2 * pair] = a, run->pairs[2 * pair + 1] = b;
  begin(run);
  int moved = 1;
  uint64_t iteration = 0;
  while (moved && iteration < max_iter) {
    run->host->progress(run->host->ctx, iteration, max_iter);
    if (iteration > 0) {
      int32_t status = move(run, &moved);
      if (status) return status;
      if (!moved) break;
    }
    int32_t status = place(run);
    if (!status) status = assign(run, &out->objective);
    if (status) return status;
    run->trace[iteration++] = out->objective;
  }
  out->converged = !moved;
  out->iterations = iteration;
  if (!tables(run, iteration, out)) return COMPFLOW_STATUS_OK;
  compflow_table_release(&out->assignments);
  compflow_table_release(&out->clusters);
  compflow_table_release(&out->trace);
  return compflow_no_memory(run->host);
}

static int32_t cluster(void *instance, const CompflowTask *task, const CompflowHost *host, CompflowClustering *out) {
  const Params *params = instance;
  uint64_t needed = memory(instance, task->rows, task->dim, task->degree);
  if (params->k > task->rows)
    return compflow_fail(host, "`k` = %llu is more than the %llu examples", (unsigned long long)params->k,
                         (unsigned long long)task->rows);
  if (needed > host->memory)
    return compflow_fail(host, "needs %llu bytes of memory, over the budget of %llu; lower `k`",
                         (unsigned long long)needed, (unsigned long long)host->memory);
  uint64_t pairs = task->composer ? pairs_of(params->k, task->degree) : 0;
  Run run = {.task = task, .host = host, .n = task->rows, .dim = task->dim, .k = params->k, .candidates = params->k + pairs};
  run.points = malloc(run.n * run.dim * sizeof(float));
  run.places = malloc(run.candidates * run.dim * sizeof(float));
  run.left = malloc((pairs + 1) * run.dim * sizeof(float));
  run.right = malloc((pairs + 1) * run.dim * sizeof(float));
  run.pairs = malloc((pairs + 1) * 2 * sizeof(uint32_t));
  run.medoids = malloc(run.k * sizeof(uint32_t));
  run.labels = malloc(run.n * sizeof(uint32_t));
  run.distances = malloc(run.n * sizeof(double));
  run.trace = malloc(params->max_iter * sizeof(double));
  CompflowClustering found;
  memset(&found, 0, sizeof found);
  found.size = out->size;
  int32_t status;
  if (run.points && run.places && run.left && run.right && run.pairs && run.medoids && run.labels && run.distances && run.trace)
    status = work(&run, params->max_iter, &found);
  else status = compflow_no_memory(host);
  if (!status) *out = found;
  free(run.points), free(run.places), free(run.left), free(run.right), free(run.pairs);
  free(run.medoids), free(run.labels), free(run.distances), free(run.trace);
  return status;
}

static const CompflowClustererMethods METHODS = {.size = sizeof METHODS, .memory = memory, .cluster = cluster};

static const CompflowComponent COMPONENT = {
    .size = sizeof COMPONENT,
    .kind = COMPFLOW_KIND_CLUSTERER,
    .name = COMPFLOW_TEXT("cmedoids"),
    .summary = COMPFLOW_TEXT("k-medoids that knows unions of two"),
    .documentation = COMPFLOW_TEXT(
        "Finds `k` examples such that every example is near to one of them or to the composition of two. "
        "Without a composer, or at degree 1, it is ordinary k-medoids."),
    .schema = COMPFLOW_TEXT(
        "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
        "\"k\": {\"type\": \"integer\", \"minimum\": 1, \"default\": 3, \"description\": \"Number of medoids.\"}, "
        "\"max_iter\": {\"type\": \"integer\", \"minimum\": 1, \"default\": 50, "
        "\"description\": \"Iterations after which it stops even if medoids still move.\"}}}"),
    .create = create,
    .destroy = destroy,
    .methods = &METHODS,
};

static const CompflowComponent *const COMPONENTS[] = {&COMPONENT};

static const CompflowLibrary LIBRARY = {
    .size = sizeof LIBRARY,
    .name = COMPFLOW_TEXT("c-clusterer"),
    .version = COMPFLOW_TEXT("0.1.0"),
    .components = COMPONENTS,
    .component_count = 1,
};

const CompflowAbi COMPFLOW_ABI = {COMPFLOW_MAGIC, COMPFLOW_ABI_VERSION, sizeof(CompflowLibrary)};

const CompflowLibrary *compflow_library(CompflowTextFn sink, void *sink_ctx) {
  (void)sink, (void)sink_ctx;
  return &LIBRARY;
}
