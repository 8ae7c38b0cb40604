/* plugin_name: a composer for compflow. compflow.h says what every structure means. */

#include "compflow_util.h"

#define FLAGS COMPFLOW_HAS_GRADIENTS /* 0 if there is no `vjp` */

static const char NAME[] = "plugin_name";
static const char SUMMARY[] = "a multiple of the sum";
static const char DOCUMENTATION[] = "`g(a, b) = scale * (a + b)`.";
static const char SCHEMA[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "\"scale\": {\"type\": \"number\", \"minimum\": 0.0, \"maximum\": 10.0, \"default\": 0.5, "
    "\"description\": \"What sums are multiplied with.\"}}}";

typedef struct {
  double scale;
} Instance;

/* Checks every parameter: those that are left out have their defaults. */
static int32_t create(CompflowStr params, const CompflowHost *host, void **instance) {
  Instance made = {0.5};
  CompflowParam param;
  const char *at = NULL;
  while (compflow_next_param(params, &at, &param)) {
    int32_t status = strcmp(param.name, "scale") == 0 ? compflow_number(host, &param, 0, 10, &made.scale)
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

static int32_t dim(void *instance, const CompflowHost *host, uint64_t *dim) {
  (void)instance, (void)host;
  *dim = 0;
  return COMPFLOW_STATUS_OK;
}

static int32_t compose(void *instance, uint64_t rows, uint64_t dim, const float *left, const float *right, float *out,
                       const CompflowHost *host) {
  (void)host;
  float scale = (float)((Instance *)instance)->scale;
  for (uint64_t at = 0; at < rows * dim; at++) out[at] = scale * (left[at] + right[at]);
  return COMPFLOW_STATUS_OK;
}

static int32_t vjp(void *instance, uint64_t rows, uint64_t dim, const float *left, const float *right, const float *grad,
                   float *grad_left, float *grad_right, const CompflowHost *host) {
  (void)host, (void)left, (void)right;
  float scale = (float)((Instance *)instance)->scale;
  for (uint64_t at = 0; at < rows * dim; at++) grad_left[at] = grad_right[at] = scale * grad[at];
  return COMPFLOW_STATUS_OK;
}

static const CompflowComposerMethods METHODS = {.size = sizeof METHODS, .dim = dim, .compose = compose, .vjp = vjp};
