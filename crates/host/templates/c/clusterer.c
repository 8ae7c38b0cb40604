/* plugin_name: a clusterer for compflow. compflow.h says what every structure means. */

#include "compflow_util.h"

#include <math.h>

#define FLAGS 0

static const char NAME[] = "plugin_name";
static const char SUMMARY[] = "the nearest of examples that are far from one another";
static const char DOCUMENTATION[] =
    "Takes `k` examples that are far from one another, the first by the seed, and gives every example to the nearest.";
static const char SCHEMA[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "\"k\": {\"type\": \"integer\", \"minimum\": 1, \"default\": 3, \"description\": \"Number of clusters.\"}}}";

typedef struct {
  uint64_t k;
} Instance;

/* Checks every parameter: those that are left out have their defaults. */
static int32_t create(CompflowStr params, const CompflowHost *host, void **instance) {
  Instance made = {3};
  CompflowParam param;
  const char *at = NULL;
  while (compflow_next_param(params, &at, &param)) {
    int32_t status = strcmp(param.name, "k") == 0 ? compflow_whole(host, &param, 1, &made.k)
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

/* What `cluster` allocates for every example, and what the result is copied to. */
static uint64_t bytes_for(uint64_t rows) {
  return compflow_times(rows, 2 * sizeof(double) + 6 * sizeof(uint32_t) + 4 * sizeof(uint64_t));
}

static int32_t memory(void *instance, const CompflowShape *shape, const CompflowHost *host, uint64_t *bytes) {
  (void)instance, (void)host;
  *bytes = bytes_for(shape->rows);
  return COMPFLOW_STATUS_OK;
}

static double norm(const float *vector, uint64_t dim) {
  double sum = 0;
  for (uint64_t i = 0; i < dim; i++) sum += (double)vector[i] * vector[i];
  return sum > 0 ? sqrt(sum) : 1; /* the zero vector stays */
}

/* The distance of two examples in the space of the task. */
static double distance(const CompflowTask *task, const double *norms, uint64_t a, uint64_t b) {
  const float *left = task->embeddings + a * task->dim, *right = task->embeddings + b * task->dim;
  double sum = 0;
  for (uint64_t i = 0; i < task->dim; i++) {
    double difference = left[i] / norms[a] - right[i] / norms[b];
    sum += difference * difference;
  }
  return task->distance == COMPFLOW_DISTANCE_EUCLIDEAN ? sqrt(sum) : sum;
}

static int32_t work(uint64_t k, const CompflowTask *task, const CompflowHost *host, double *norms, double *nearest,
                    uint32_t *labels, uint32_t *exemplars, double *objective) {
  uint64_t n = task->rows;
  for (uint64_t row = 0; row < n; row++) {
    norms[row] = task->normalize == COMPFLOW_NORMALIZE_L2 ? norm(task->embeddings + row * task->dim, task->dim) : 1;
    nearest[row] = INFINITY;
    labels[row] = UINT32_MAX;
  }
  uint64_t next = host->seed % n;
  for (uint32_t label = 0; label < k; label++) {
    host->progress(host->ctx, label, k);
    exemplars[label] = (uint32_t)next;
    for (uint64_t row = 0; row < n; row++) {
      if (row % 1024 == 0 && compflow_cancelled(host)) return COMPFLOW_STATUS_CANCELLED;
      double here = distance(task, norms, row, next);
      if (here < nearest[row] || labels[row] == UINT32_MAX) {
        nearest[row] = here;
        labels[row] = label;
      }
    }
    labels[next] = label;
    nearest[next] = -1; /* is an exemplar: never the farthest, and nothing is nearer */
    for (uint64_t row = next = 0; row < n; row++)
      if (nearest[row] > nearest[next]) next = row;
  }
  *objective = 0;
  for (uint64_t row = 0; row < n; row++) *objective += nearest[row] > 0 ? nearest[row] : 0;
  return COMPFLOW_STATUS_OK;
}

/* The result as Arrow tables: a set of one cluster per example, and a row per cluster. */
static int tables(uint64_t n, uint64_t k, const uint32_t *labels, const uint32_t *exemplars, const uint64_t *begins,
                  const uint32_t *numbers, CompflowClustering *found) {
  int problem = compflow_table_begin(&found->assignments, n, 1);
  if (!problem) problem = compflow_table_sets(&found->assignments, "clusters", begins, labels);
  if (!problem) problem = compflow_table_begin(&found->clusters, k, 2);
  if (!problem) problem = compflow_table_sets(&found->clusters, "clusters", begins, numbers);
  if (!problem) problem = compflow_table_sets(&found->clusters, "exemplars", begins, exemplars);
  return problem;
}

static int32_t cluster(void *instance, const CompflowTask *task, const CompflowHost *host, CompflowClustering *out) {
  uint64_t n = task->rows, k = ((Instance *)instance)->k;
  if (k > n)
    return compflow_fail_parameter(host, "k", "= %llu is more than the %llu examples", (unsigned long long)k,
                                   (unsigned long long)n);
  int32_t status = compflow_require_memory(host, bytes_for(n), "cluster fewer examples");
  if (status) return status;
  double *norms = compflow_alloc(n, sizeof *norms), *nearest = compflow_alloc(n, sizeof *nearest);
  uint32_t *labels = compflow_alloc(n, sizeof *labels), *exemplars = compflow_alloc(n, sizeof *exemplars);
  uint32_t *numbers = compflow_alloc(n, sizeof *numbers); /* 0, 1, 2, …: what the clusters are called */
  uint64_t *begins = compflow_alloc(compflow_add(n, 1), sizeof *begins); /* likewise: where sets of one begin */
  CompflowClustering found;
  compflow_clustering_begin(&found);
  if (!norms || !nearest || !labels || !exemplars || !numbers || !begins) status = compflow_no_memory(host);
  if (!status) status = work(k, task, host, norms, nearest, labels, exemplars, &found.objective);
  if (!status) {
    for (uint64_t at = 0; at <= n; at++) begins[at] = at;
    for (uint64_t at = 0; at < n; at++) numbers[at] = (uint32_t)at;
    found.converged = 1;
    found.iterations = k;
    int problem = tables(n, k, labels, exemplars, begins, numbers, &found);
    if (problem) status = compflow_fail_table(host, problem);
  }
  /* Field by field: the caller's structure may be older than this one. */
  if (!status) compflow_clustering_give(out, &found);
  compflow_clustering_release(&found);
  free(norms), free(nearest), free(labels), free(exemplars), free(numbers), free(begins);
  return status;
}

static const CompflowClustererMethods METHODS = {.size = sizeof METHODS, .memory = memory, .cluster = cluster};
