/* plugin_name: a clusterer for compflow. compflow.h says what every structure means. */

#include "compflow_util.h"

#include <math.h>

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

static uint64_t memory(void *instance, uint64_t rows, uint64_t dim, uint32_t degree) {
  (void)instance, (void)dim, (void)degree;
  return rows * (sizeof(double) * 2 + sizeof(uint32_t) * 4);
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
static int tables(uint64_t n, uint64_t k, const uint32_t *labels, const uint32_t *exemplars, const uint32_t *count,
                  CompflowClustering *out) {
  if (compflow_table_begin(&out->assignments, n, 1)) return -1;
  if (compflow_table_sets(&out->assignments, "clusters", count, labels)) return -1;
  if (compflow_table_begin(&out->clusters, k, 2)) return -1;
  if (compflow_table_sets(&out->clusters, "clusters", count, count)) return -1;
  if (compflow_table_sets(&out->clusters, "exemplars", count, exemplars)) return -1;
  if (compflow_table_begin(&out->trace, 0, 1)) return -1;
  return compflow_table_doubles(&out->trace, "objective", NULL);
}

static int32_t cluster(void *instance, const CompflowTask *task, const CompflowHost *host, CompflowClustering *out) {
  uint64_t n = task->rows, k = ((Instance *)instance)->k;
  if (k > n) return compflow_fail(host, "`k` = %llu is more than the %llu examples", (unsigned long long)k, (unsigned long long)n);
  if (memory(instance, n, task->dim, task->degree) > host->memory)
    return compflow_fail(host, "needs %llu bytes of memory, over the budget of %llu",
                         (unsigned long long)memory(instance, n, task->dim, task->degree), (unsigned long long)host->memory);
  double *norms = malloc(n * sizeof *norms), *nearest = malloc(n * sizeof *nearest);
  uint32_t *labels = malloc(n * sizeof *labels), *exemplars = malloc(n * sizeof *exemplars);
  uint32_t *count = malloc((n + 1) * sizeof *count); /* 0, 1, 2, …: where sets of one begin */
  int32_t status = COMPFLOW_STATUS_ERROR;
  CompflowClustering found;
  memset(&found, 0, sizeof found);
  if (!norms || !nearest || !labels || !exemplars || !count) {
    status = compflow_no_memory(host);
    goto end;
  }
  status = work(k, task, host, norms, nearest, labels, exemplars, &found.objective);
  if (status) goto end;
  for (uint64_t at = 0; at <= n; at++) count[at] = (uint32_t)at;
  found.size = out->size;
  found.converged = 1;
  found.iterations = k;
  if (tables(n, k, labels, exemplars, count, &found)) {
    compflow_table_release(&found.assignments);
    compflow_table_release(&found.clusters);
    compflow_table_release(&found.trace);
    status = compflow_no_memory(host);
    goto end;
  }
  *out = found;
end:
  free(norms), free(nearest), free(labels), free(exemplars), free(count);
  return status;
}

static const CompflowClustererMethods METHODS = {.size = sizeof METHODS, .memory = memory, .cluster = cluster};
