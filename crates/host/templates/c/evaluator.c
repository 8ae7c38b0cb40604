/* plugin_name: an evaluator for compflow. compflow.h says what every structure means. */

#include "compflow_util.h"

#define FLAGS COMPFLOW_NEEDS_TRUTH /* an evaluator without it also runs where nobody knows the truth */

static const char NAME[] = "plugin_name";
static const char SUMMARY[] = "pairs on which both agree whether they have a label in common";
static const char DOCUMENTATION[] =
    "The share of pairs of examples of which truth and prediction agree whether the two have a label in common.";
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

static int32_t metrics(void *instance, const CompflowHost *host, CompflowMetricFn sink, void *sink_ctx) {
  (void)instance, (void)host;
  CompflowMetric metric = {
      .size = sizeof metric,
      .unit = COMPFLOW_UNIT_SHARE,
      .name = COMPFLOW_TEXT("plugin_name"),
      .least = 0,
      .most = 1,
      .larger_is_better = 1,
  };
  sink(sink_ctx, &metric);
  return COMPFLOW_STATUS_OK;
}

/* Whether two sets, both ascending, have a member in common. */
static int meet(const CompflowSets *sets, uint64_t i, uint64_t j) {
  uint64_t a = sets->offsets[i], b = sets->offsets[j];
  while (a < sets->offsets[i + 1] && b < sets->offsets[j + 1]) {
    if (sets->values[a] == sets->values[b]) return 1;
    if (sets->values[a] < sets->values[b]) a++;
    else b++;
  }
  return 0;
}

static int32_t evaluate(void *instance, const CompflowEvaluation *evaluation, const CompflowHost *host,
                        CompflowScoreFn sink, void *sink_ctx) {
  (void)instance;
  const CompflowSets *truth = evaluation->truth, *predicted = evaluation->predicted;
  uint64_t n = evaluation->rows, agree = 0;
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
