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

static uint64_t pairs_of(uint64_t k, uint32_t degree) { return degree > 1 ? compflow_times(k, k - 1) / 2 : 0; }

static uint64_t bytes_for(const Params *params, uint64_t rows, uint64_t dim, uint32_t degree) {
  uint64_t pairs = pairs_of(params->k, degree), vector = compflow_times(dim, 4);
  uint64_t candidates = compflow_add(params->k, pairs);
  /* The points and what is composed; a label and a distance per example; and the result with its copy. */
  uint64_t bytes = compflow_times(compflow_add(rows, compflow_add(candidates, compflow_times(2, pairs))), vector);
  bytes = compflow_add(bytes, compflow_times(rows, 4 + 8));
  bytes = compflow_add(bytes, compflow_times(compflow_add(rows, candidates), 2 * (8 + 2 * 4 + 2 * 4)));
  return compflow_add(bytes, compflow_add(compflow_times(pairs, 8), compflow_times(params->max_iter, 8)));
}

static int32_t memory(void *instance, const CompflowShape *shape, const CompflowHost *host, uint64_t *bytes) {
  (void)host;
  *bytes = bytes_for(instance, shape->rows, shape->dim, shape->degree);
  return COMPFLOW_STATUS_OK;
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

/* Whether an example is the medoid of another cluster; of equal examples it could be. */
static int is_taken(const Run *run, uint64_t row, uint64_t medoid) {
  for (uint64_t other = 0; other < run->k; other++)
    if (other != medoid && run->medoids[other] == row) return 1;
  return 0;
}

/* Makes the member that is nearest to all others the medoid of its own examples; `*moved` says whether any changed. */
static int32_t move(Run *run, int *moved) {
  *moved = 0;
  for (uint64_t medoid = 0; medoid < run->k; medoid++) {
    double best = INFINITY;
    uint64_t chosen = run->medoids[medoid];
    for (uint64_t row = 0; row < run->n; row++) {
      if (run->labels[row] != medoid || is_taken(run, row, medoid)) continue;
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

/* Appends the members of a candidate; returns where the next set begins. */
static uint64_t append(const Run *run, uint64_t candidate, uint32_t *values, uint64_t at) {
  if (candidate < run->k) {
    values[at] = (uint32_t)candidate;
    return at + 1;
  }
  memcpy(values + at, run->pairs + 2 * (candidate - run->k), 2 * sizeof *values);
  return at + 2;
}

/* The result as Arrow tables: a set per example; a set and its exemplars per candidate. */
static int tables(const Run *run, uint64_t iterations, CompflowClustering *found) {
  uint64_t most = run->n > run->candidates ? run->n : run->candidates;
  uint64_t *offsets = compflow_alloc(compflow_add(most, 1), sizeof *offsets);
  uint32_t *values = compflow_alloc(compflow_times(most, 2), sizeof *values);
  uint32_t *exemplars = compflow_alloc(compflow_times(run->candidates, 2), sizeof *exemplars);
  int problem = offsets && values && exemplars ? 0 : COMPFLOW_TABLE_MEMORY;
  if (!problem) {
    offsets[0] = 0;
    for (uint64_t row = 0; row < run->n; row++) offsets[row + 1] = append(run, run->labels[row], values, offsets[row]);
    problem = compflow_table_begin(&found->assignments, run->n, 1);
    if (!problem) problem = compflow_table_sets(&found->assignments, "clusters", offsets, values);
  }
  if (!problem) {
    for (uint64_t candidate = 0; candidate < run->candidates; candidate++)
      offsets[candidate + 1] = append(run, candidate, values, offsets[candidate]);
    for (uint64_t at = 0; at < offsets[run->candidates]; at++) exemplars[at] = run->medoids[values[at]];
    problem = compflow_table_begin(&found->clusters, run->candidates, 2);
    if (!problem) problem = compflow_table_sets(&found->clusters, "clusters", offsets, values);
    if (!problem) problem = compflow_table_sets(&found->clusters, "exemplars", offsets, exemplars);
    if (!problem) problem = compflow_table_begin(&found->trace, iterations, 1);
    if (!problem) problem = compflow_table_doubles(&found->trace, "objective", run->trace);
  }
  free(offsets), free(values), free(exemplars);
  return problem;
}

static int32_t work(Run *run, uint64_t max_iter, CompflowClustering *found) {
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
    if (!status) status = assign(run, &found->objective);
    if (status) return status;
    run->trace[iteration++] = found->objective;
  }
  found->converged = !moved;
  found->iterations = iteration;
  int problem = tables(run, iteration, found);
  return problem ? compflow_fail_table(run->host, problem) : COMPFLOW_STATUS_OK;
}

static int32_t cluster(void *instance, const CompflowTask *task, const CompflowHost *host, CompflowClustering *out) {
  const Params *params = instance;
  if (params->k > task->rows)
    return compflow_fail_parameter(host, "k", "= %llu is more than the %llu examples", (unsigned long long)params->k,
                                   (unsigned long long)task->rows);
  int32_t status = compflow_require_memory(host, bytes_for(params, task->rows, task->dim, task->degree), "lower `k`");
  if (status) return status;
  uint64_t pairs = task->composer ? pairs_of(params->k, task->degree) : 0;
  Run run = {.task = task, .host = host, .n = task->rows, .dim = task->dim, .k = params->k, .candidates = params->k + pairs};
  run.points = compflow_alloc(compflow_times(run.n, run.dim), sizeof(float));
  run.places = compflow_alloc(compflow_times(run.candidates, run.dim), sizeof(float));
  run.left = compflow_alloc(compflow_times(pairs, run.dim), sizeof(float));
  run.right = compflow_alloc(compflow_times(pairs, run.dim), sizeof(float));
  run.pairs = compflow_alloc(pairs, 2 * sizeof(uint32_t));
  run.medoids = compflow_alloc(run.k, sizeof(uint32_t));
  run.labels = compflow_alloc(run.n, sizeof(uint32_t));
  run.distances = compflow_alloc(run.n, sizeof(double));
  run.trace = compflow_alloc(params->max_iter, sizeof(double));
  CompflowClustering found;
  compflow_clustering_begin(&found);
  if (run.points && run.places && run.left && run.right && run.pairs && run.medoids && run.labels && run.distances && run.trace)
    status = work(&run, params->max_iter, &found);
  else status = compflow_no_memory(host);
  /* Field by field: the caller's structure may be older than this one, or newer. */
  if (!status) compflow_clustering_give(out, &found);
  compflow_clustering_release(&found);
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

const CompflowLibrary *compflow_library(CompflowErrorFn sink, void *sink_ctx) {
  (void)sink, (void)sink_ctx;
  return &LIBRARY;
}
