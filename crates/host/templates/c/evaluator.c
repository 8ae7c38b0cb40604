/* plugin_name: an evaluator for compflow. compflow.h says what every structure means. */

#include "compflow_util.h"

static const char NAME[] = "plugin_name";
static const char SUMMARY[] = "pairs on which both agree whether they have a label in common";
static const char DOCUMENTATION[] =
    "The share of pairs of examples of which truth and prediction agree whether the two have a label in common.";
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

static int32_t metrics(void *instance, const CompflowHost *host, CompflowScoreFn sink, void *sink_ctx) {
  (void)instance, (void)host;
  CompflowStr name = COMPFLOW_TEXT("plugin_name");
  sink(sink_ctx, name, 1); /* larger is better */
  return COMPFLOW_STATUS_OK;
}

/* Whether two sets, both ascending, have a member in common. */
static int meet(const CompflowSets *sets, uint64_t i, uint64_t j) {
  uint32_t a = sets->offsets[i], b = sets->offsets[j];
  while (a < sets->offsets[i + 1] && b < sets->offsets[j + 1]) {
    if (sets->values[a] == sets->values[b]) return 1;
    if (sets->values[a] < sets->values[b]) a++;
    else b++;
  }
  return 0;
}

static int32_t evaluate(void *instance, const CompflowSets *truth, const CompflowSets *predicted, const CompflowHost *host,
                        CompflowScoreFn sink, void *sink_ctx) {
  (void)instance;
  uint64_t n = truth->len, agree = 0;
  for (uint64_t i = 0; i < n; i++) {
    host->progress(host->ctx, i, n);
    if (compflow_cancelled(host)) return COMPFLOW_STATUS_CANCELLED;
    for (uint64_t j = i + 1; j < n; j++) agree += meet(truth, i, j) == meet(predicted, i, j);
  }
  CompflowStr name = COMPFLOW_TEXT("plugin_name");
  /* Fewer than two examples have no pairs, and nothing to disagree about. */
  sink(sink_ctx, name, n < 2 ? 1 : (double)agree / ((double)n * (double)(n - 1) / 2));
  return COMPFLOW_STATUS_OK;
}

static const CompflowEvaluatorMethods METHODS = {.size = sizeof METHODS, .metrics = metrics, .evaluate = evaluate};
